"""Benchmarks, run from a checkout: ``python -m benchmarks.foundation.study`` and its neighbours."""
