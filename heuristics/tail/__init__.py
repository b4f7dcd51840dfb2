"""Local search for a percentile of the latency."""
