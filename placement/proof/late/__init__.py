"""Checks of certificates about percentiles, with nothing lost and after losses."""
