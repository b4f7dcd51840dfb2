"""Benchmarks, run from a checkout: ``python -m benchmarks.foundation`` and its neighbours."""
