"""Exact methods for a percentile of the latency."""
