"""Study: tiers 1 and 2 on the bundled data sets."""
