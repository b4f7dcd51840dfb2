"""Benchmarks, run from a checkout: ``python -m benchmarks list``, ``run NAME``."""
