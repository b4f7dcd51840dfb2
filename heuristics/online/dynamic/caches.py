"""The caches that the paper compares with: least and most recently used, random, adaptive.

LRU and RR are those of cachetools (extra ``online``). It has no MRU, which is a few lines on its
base class, and no ARC, which does not fit that class: what ARC evicts depends on the key that comes
in.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from placement.errors import InputError, MissingDependencyError
from placement.online.dynamic.cache_simulator import Cache

try:
    from cachetools import Cache as BaseCache
    from cachetools import LRUCache, RRCache
except ImportError:
    raise MissingDependencyError.of("caches need cachetools", "online") from None

__all__ = [
    "NAMES",
    "ArcCache",
    "HeldCache",
    "MruCache",
    "cache_maker",
]


class MruCache(BaseCache[Any, Any]):
    """Cache that evicts the most recently used key."""

    def __init__(self, maxsize: int) -> None:
        super().__init__(maxsize)
        self._order: OrderedDict[Any, None] = OrderedDict()

    def __getitem__(self, key: Any) -> Any:
        value = super().__getitem__(key)
        self._order.move_to_end(key)
        return value

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(key, value)
        self._order[key] = None
        self._order.move_to_end(key)

    def __delitem__(self, key: Any) -> None:
        super().__delitem__(key)
        del self._order[key]

    def popitem(self) -> tuple[Any, Any]:
        """Remove the most recently used item and return it."""
        if not self._order:
            raise KeyError("MruCache is empty")
        key = next(reversed(self._order))
        return key, self.pop(key)


class HeldCache:
    """A cache of cachetools as a :class:`placement.online.dynamic.cache_simulator.Cache`.

    A cache without room holds nothing.
    """

    def __init__(self, cache: Any) -> None:
        self._cache = cache

    def read(self, key: int) -> bool:
        """Return whether `key` is held; put it in where not."""
        cache = self._cache
        try:
            cache[key]  # counts as a use
        except KeyError:
            if cache.maxsize >= 1:
                cache[key] = None
            return False
        return True

    def evict(self, key: int) -> None:
        """Drop a key; nothing happens if the cache does not hold `key`."""
        self._cache.pop(key, None)


class ArcCache:
    """Adaptive replacement: recency and frequency, balanced by what was evicted too early.

    Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003, Figure 4
    (Matri et al. cite their "One up on LRU", ;login: 28 (4), 2003). T1 holds what was read once
    lately, T2 what was read again; B1 and B2 remember what they evicted; p is the size T1 should
    have.

    Parameters
    ----------
    room
        c, objects held at most; as many more keys are remembered.
    """

    def __init__(self, room: int) -> None:
        self._room = room
        self._target = 0.0
        self._once: OrderedDict[int, None] = OrderedDict()
        self._again: OrderedDict[int, None] = OrderedDict()
        self._lost_once: OrderedDict[int, None] = OrderedDict()
        self._lost_again: OrderedDict[int, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._once) + len(self._again)

    def __contains__(self, key: int) -> bool:
        return key in self._once or key in self._again

    def read(self, key: int) -> bool:
        """Return whether `key` is held; put it in where not. O(1)."""
        if self._room < 1:
            return False
        if key in self:  # case I
            self._once.pop(key, None)
            self._again[key] = None
            self._again.move_to_end(key)
            return True
        if key in self._lost_once:  # case II: T1 was too small
            step = max(len(self._lost_again) / len(self._lost_once), 1.0)
            self._target = min(self._target + step, self._room)
            self._make_room(key)
            del self._lost_once[key]
            self._again[key] = None
        elif key in self._lost_again:  # case III: T2 was too small
            step = max(len(self._lost_once) / len(self._lost_again), 1.0)
            self._target = max(self._target - step, 0.0)
            self._make_room(key)
            del self._lost_again[key]
            self._again[key] = None
        else:  # case IV: never seen, or forgotten
            if len(self._once) + len(self._lost_once) == self._room:
                if len(self._once) < self._room:
                    self._lost_once.popitem(last=False)
                    self._make_room(key)
                else:
                    self._once.popitem(last=False)
            else:
                known = len(self) + len(self._lost_once) + len(self._lost_again)
                if known >= self._room:
                    if known == 2 * self._room:
                        self._lost_again.popitem(last=False)
                    self._make_room(key)
            self._once[key] = None
        return False

    def _make_room(self, key: int) -> None:
        """REPLACE: evict from T1 when it is larger than its target, else from T2."""
        if len(self) < self._room:
            return  # room was left by an eviction from outside, which the paper does not have
        larger = len(self._once) > self._target
        on_target = key in self._lost_again and len(self._once) == self._target
        if self._once and (larger or on_target or not self._again):
            victim, _ = self._once.popitem(last=False)
            self._lost_once[victim] = None
        else:
            victim, _ = self._again.popitem(last=False)
            self._lost_again[victim] = None

    def evict(self, key: int) -> None:
        """Drop a key, and its history."""
        for part in (self._once, self._again, self._lost_once, self._lost_again):
            part.pop(key, None)


NAMES = ("LRU", "MRU", "RR", "ARC")


def cache_maker(name: str, rng: np.random.Generator) -> Callable[[int], Cache]:
    """Return the function that makes a cache of a kind for a given capacity.

    Parameters
    ----------
    name
        LRU, MRU (least, most recently used), RR (random replacement) or ARC (adaptive).
    rng
        What RR draws from; the others draw nothing.
    """
    makers: dict[str, Callable[[int], Cache]] = {
        "LRU": lambda room: HeldCache(LRUCache(room)),
        "MRU": lambda room: HeldCache(MruCache(room)),
        "RR": lambda room: HeldCache(
            RRCache(room, choice=lambda keys: keys[int(rng.integers(len(keys)))])
        ),
        "ARC": ArcCache,
    }
    if name not in makers:
        raise InputError("unknown cache", field="name", value=name, expected=f"one of {NAMES}")
    return makers[name]
