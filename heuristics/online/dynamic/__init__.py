"""Choice of dynamic copies: votes, votes in milliseconds, greedy, caches."""
