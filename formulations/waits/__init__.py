"""Placement for operations with waits: the search over sets of replicas."""
