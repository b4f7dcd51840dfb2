"""Study: dynamic replication by votes."""
