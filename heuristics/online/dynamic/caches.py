"""The caches that the paper compares with: least and most recently used, random, adaptive."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

import numpy as np

from placement.errors import InputError
from placement.online.dynamic.cache_simulator import Cache


class _HeldKeys:
    """Cache that evicts the key that a rule picks from all, least recently used first."""

    def __init__(self, room: int, victim: Callable[[OrderedDict[int, None]], int]) -> None:
        self._room, self._victim = room, victim
        self._held: OrderedDict[int, None] = OrderedDict()

    def read(self, key: int) -> bool:
        """Return whether `key` is held; put it in where not, if there is room for any."""
        if key in self._held:
            self._held.move_to_end(key)
            return True
        if len(self._held) >= self._room > 0:
            del self._held[self._victim(self._held)]
        if self._room > 0:
            self._held[key] = None
        return False

    def evict(self, key: int) -> None:
        """Drop a key; nothing happens if the cache does not hold `key`."""
        self._held.pop(key, None)


class ArcCache:
    """Adaptive replacement: recency and frequency, balanced by what was evicted too early.

    Megiddo and Modha, "ARC: a self-tuning, low overhead replacement cache", FAST 2003, Figure 4
    (Matri et al. cite their "One up on LRU", ;login: 28 (4), 2003). T1 holds what was read once
    lately, T2 what was read again; B1 and B2 remember what they evicted, as many keys as there is
    room for; p is the size T1 should have.
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

    LRU, MRU (least, most recently used), RR (random replacement, drawn from `rng`) or ARC
    (adaptive).
    """
    victims: dict[str, Callable[[OrderedDict[int, None]], int]] = {
        "LRU": lambda held: next(iter(held)),
        "MRU": lambda held: next(reversed(held)),
        "RR": lambda held: list(held)[int(rng.integers(len(held)))],
    }
    if name not in NAMES:
        raise InputError("unknown cache", field="name", value=name, expected=f"one of {NAMES}")
    if name == "ARC":
        return ArcCache
    return lambda room: _HeldKeys(room, victims[name])
