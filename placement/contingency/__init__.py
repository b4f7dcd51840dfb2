"""The percentile after losses of sites or domains."""
