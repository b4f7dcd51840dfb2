"""Cassandra on the network."""
