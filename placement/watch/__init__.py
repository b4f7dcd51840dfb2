"""Watching demand as it arrives, and saying after every interval whether a move pays.

settings.py   what is asked, and the fingerprint by which a state file knows it again
readings.py   files -> intervals, each whole or refused
source.py     what has arrived: a folder of files, or one table that grows
advice.py     state + interval -> state + recommendation (pure)
store.py      the state file: one transaction per interval
loop.py       arrivals into advice, in order; what is late, twice or malformed is reported
"""

from placement.watch.advice import Recommendation, WatchState, advise
from placement.watch.loop import Watch
from placement.watch.settings import Settings
from placement.watch.source import FolderSource, TableSource, source_of
from placement.watch.store import Report, Store

__all__ = [
    "FolderSource",
    "Recommendation",
    "Report",
    "Settings",
    "Store",
    "TableSource",
    "Watch",
    "WatchState",
    "advise",
    "source_of",
]
