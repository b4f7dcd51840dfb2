"""Study: reads from the leader or a majority."""
