"""Study: the tier-3 figures of the source paper."""
