"""Studies of N-1 placement: methods, delays, assumptions, the experiments of the paper."""
