"""RTTs and rates from the HTTP API of Prometheus."""
