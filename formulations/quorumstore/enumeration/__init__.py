"""Enumeration of replica sets for quorum stores, with the screening rules that prune it."""
