"""Studies of the exact method: speed, sweeps, kernels."""
