"""RTTs and operations from a Prometheus server."""
