"""Exact methods for leaderless quorum stores.

One entry per question:

- :func:`place`: the proven best configuration of a key, or why there is none;
- :func:`tie_envelope`: all best configurations, and the ranges over them;
- :func:`solve_keys`: a table of keys in, a table of configurations out.

The model is :mod:`placement.quorumstore`.
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
