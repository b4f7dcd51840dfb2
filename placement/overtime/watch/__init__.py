"""Recommendations from arriving demand: after every interval, keep or move.

watch_settings.py   options, and the fingerprint that ties them to a state file
arrivals.py         arrived intervals: a folder of files, or one table that grows
recommend.py        state + interval -> state + recommendation (pure)
state_store.py      the state file: one transaction per interval
watch_loop.py       arrivals into recommendations, in order, with reports of unusable intervals
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

if TYPE_CHECKING:
    from placement.overtime.watch.arrivals import FolderSource as FolderSource
    from placement.overtime.watch.arrivals import TableSource as TableSource
    from placement.overtime.watch.arrivals import source_of as source_of
    from placement.overtime.watch.recommend import Recommendation as Recommendation
    from placement.overtime.watch.recommend import WatchState as WatchState
    from placement.overtime.watch.recommend import advise as advise
    from placement.overtime.watch.state_store import Rejection as Rejection
    from placement.overtime.watch.state_store import Store as Store
    from placement.overtime.watch.watch_loop import Watch as Watch
    from placement.overtime.watch.watch_settings import WatchSettings as WatchSettings

_HOME = {
    "placement.overtime.watch.arrivals": ("FolderSource", "TableSource", "source_of"),
    "placement.overtime.watch.recommend": ("Recommendation", "WatchState", "advise"),
    "placement.overtime.watch.state_store": ("Rejection", "Store"),
    "placement.overtime.watch.watch_loop": ("Watch",),
    "placement.overtime.watch.watch_settings": ("WatchSettings",),
}

__all__ = [*chain.from_iterable(_HOME.values())]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
