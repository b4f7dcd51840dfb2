"""Enumeration of replica sets: exhaustive search and tier 2 by brute force."""
