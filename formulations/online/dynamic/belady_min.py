"""The most hits any cache can have, knowing all requests: Belady's MIN, with writes.

Keeping an object from one read to its next, without a write to it in between, earns one hit and
takes one place for that interval. A cache of c places is a choice of intervals of which at most c
overlap. Evicting the object that is read furthest in the future takes the intervals that end first.
This maximises their number when all objects have one size (Belady 1966; as interval scheduling,
Carlisle and Lloyd 1995). A write removes the object and makes the next read a miss for every cache.
So an object that is written before it is read again counts as never read again.

An object need not be put in: what is read furthest in the future may be the one just read.
"""

from __future__ import annotations

import heapq

import numpy as np

from placement.errors import InputError
from placement.support.checks import IntArray


def most_hits(events: IntArray, room: int) -> int:
    """Return the most hits of a cache with `room` places, in O(n log n) for n events.

    `events` are keys in the order of requests, and −key − 1 for a write to `key`.
    """
    if room < 0:
        raise InputError("out of range", field="room", value=room, expected="at least 0")
    # position of the next read of the same key; −1 where a write or nothing comes first
    following = np.full(len(events), -1, dtype=np.intp)
    coming: dict[int, int] = {}
    for place in range(len(events) - 1, -1, -1):
        event = int(events[place])
        if event < 0:
            coming.pop(-event - 1, None)
        else:
            following[place] = coming.get(event, -1)
            coming[event] = place
    held: set[int] = set()
    # Places by the read they are kept for, furthest first. A read object moves on to its next read,
    # so an entry is stale when its read is past; furthest-first entries never are.
    waiting: list[tuple[int, int]] = []
    hits = 0
    for now, (event, then) in enumerate(zip(events.tolist(), following.tolist(), strict=True)):
        if event < 0:
            continue  # no site keeps an object for a read after this write
        if event in held:
            hits += 1
            held.discard(event)
        if then < 0:
            continue  # not worth a place
        held.add(event)
        heapq.heappush(waiting, (-then, event))
        if len(held) > room:
            while True:
                furthest, key = heapq.heappop(waiting)
                if -furthest > now and key in held:
                    held.discard(key)
                    break
    return hits
