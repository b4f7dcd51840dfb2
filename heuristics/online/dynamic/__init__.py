"""Which dynamic copies to keep: votes, votes in milliseconds, greedy, caches."""
