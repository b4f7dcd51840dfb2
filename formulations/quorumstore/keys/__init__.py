"""Placement of many keys of a quorum store in batches."""
