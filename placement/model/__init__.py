"""The model of the world: operations, instances, demand, configurations, constraints."""
