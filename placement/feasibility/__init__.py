"""Which configurations are feasible, and why there is none."""
