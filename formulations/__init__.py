"""Exact methods: one module per decision problem, each with the bound that proves its answer."""
