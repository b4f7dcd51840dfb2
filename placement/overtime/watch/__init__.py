"""Recommendations from arriving demand: after every interval, keep or move.

arrivals.py         arrived intervals: a folder of files, or one table that grows
recommend.py        settings; state + interval -> state + recommendation (pure)
state_store.py      the state file: one transaction per interval
watch_loop.py       arrivals into recommendations, in order, with reports of unusable intervals
"""

from placement.support.lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__)
