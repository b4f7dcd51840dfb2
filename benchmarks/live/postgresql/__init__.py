"""PostgreSQL with synchronous standbys on the network."""
