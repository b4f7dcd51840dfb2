"""Optima of replica selection: what no policy can beat, on a window and at full size."""
