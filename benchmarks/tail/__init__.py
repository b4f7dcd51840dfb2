"""Study: percentiles of the latency."""
