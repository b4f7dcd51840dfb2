"""Study: gap and run time of local search."""
