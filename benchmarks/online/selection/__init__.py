"""Study: replica selection (C3 and its rivals)."""
