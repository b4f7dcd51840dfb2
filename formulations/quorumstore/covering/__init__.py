"""The covering model of quorum stores, solved by bisection on the latency threshold."""
