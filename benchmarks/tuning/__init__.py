"""Study: time and result of searches with each of their tuning constants changed."""
