"""The caches that the paper compares with, by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placement.errors import InputError, MissingDependencyError
from placement.online.dynamic.cache_simulator import Cache

__all__ = ["NAMES", "cache_maker"]

NAMES = ("LRU", "MRU", "RR", "ARC")


def cache_maker(name: str, rng: np.random.Generator) -> Callable[[int], Cache]:
    """Return the function that makes a cache of a kind for a given capacity.

    Parameters
    ----------
    name
        LRU, MRU (least, most recently used), RR (random replacement) or ARC (adaptive).
    rng
        What RR draws from; the others draw nothing.

    Raises
    ------
    MissingDependencyError
        Without cachetools (extra ``online``).
    """
    try:
        from heuristics.online.dynamic import cache_policies as replacement
    except ImportError:
        raise MissingDependencyError.of("caches need cachetools", "online") from None
    makers: dict[str, Callable[[int], Cache]] = {
        "LRU": replacement.make_lru,
        "MRU": replacement.make_mru,
        "RR": lambda room: replacement.make_random(room, rng),
        "ARC": replacement.ArcCache,
    }
    if name not in makers:
        raise InputError("unknown cache", field="name", value=name, expected=f"one of {NAMES}")
    return makers[name]
