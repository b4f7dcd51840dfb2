"""Watching demand as it arrives, and saying after every interval whether a move pays.

settings.py   what is asked, and the fingerprint by which a state file knows it again
readings.py   files -> intervals, each whole or refused
source.py     what has arrived: a folder of files, or one table that grows
advice.py     state + interval -> state + recommendation (pure)
store.py      the state file: one transaction per interval
loop.py       arrivals into advice, in order; what is late, twice or malformed is reported
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from placement.lazy import lazy_names

if TYPE_CHECKING:
    from placement.overtime.watch.arrivals import FolderSource as FolderSource
    from placement.overtime.watch.arrivals import TableSource as TableSource
    from placement.overtime.watch.arrivals import source_of as source_of
    from placement.overtime.watch.recommend import Recommendation as Recommendation
    from placement.overtime.watch.recommend import WatchState as WatchState
    from placement.overtime.watch.recommend import advise as advise
    from placement.overtime.watch.state_store import Report as Report
    from placement.overtime.watch.state_store import Store as Store
    from placement.overtime.watch.watch_loop import Watch as Watch
    from placement.overtime.watch.watch_settings import Settings as Settings

_HOME = {
    "FolderSource": "placement.overtime.watch.arrivals",
    "Recommendation": "placement.overtime.watch.recommend",
    "Report": "placement.overtime.watch.state_store",
    "Settings": "placement.overtime.watch.watch_settings",
    "Store": "placement.overtime.watch.state_store",
    "TableSource": "placement.overtime.watch.arrivals",
    "Watch": "placement.overtime.watch.watch_loop",
    "WatchState": "placement.overtime.watch.recommend",
    "advise": "placement.overtime.watch.recommend",
    "source_of": "placement.overtime.watch.arrivals",
}

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

__getattr__, __dir__ = lazy_names(__name__, _HOME)
