"""Questions about several plans: comparison, sweep, sensitivity, next best plans."""
