"""The search over scenarios with thresholds, for losses, percentiles and limits."""
