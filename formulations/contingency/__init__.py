"""Exact methods for leader-based placement under the loss of sites."""
