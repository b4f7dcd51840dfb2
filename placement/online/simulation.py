"""Shared parts of simulators: random streams, the event loop, checked fields, latencies summed up.

Common random numbers: random events of a system (speeds, arrivals, work) are drawn from streams
that no policy touches. Two policies compared under one seed therefore differ only by their
decisions. Without this, ratios between policies are not comparable: the same policy under
another seed moves by up to a third of its value.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, require
from placement.support.checks import FloatArray, flag, number, whole

CAUSES = ("speeds", "arrivals", "work", "shadow", "policy")
"""Server speeds; arrivals with their client and key; work per request; extra reads; what a policy
draws for itself."""


def checked_seed(seed: object) -> int:
    """Check a seed, a whole number >= 0 of any size, and return it as an int."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or not seed >= 0:
        raise InputError("no seed", field="seed", value=seed, expected="a whole number >= 0")
    return int(seed)


def check_fields(
    record: object,
    *,
    counts: Mapping[str, int] | None = None,
    least: Mapping[str, float] | None = None,
    positive: Sequence[str] = (),
    shares: Sequence[str] = (),
    flags: Sequence[str] = (),
) -> None:
    """Check fields of a frozen dataclass in its ``__post_init__``, kind by kind.

    `counts` are whole numbers with their least value (stored as int), `least` finite numbers with
    theirs, `positive` finite numbers above 0, `shares` numbers from 0 to 1, `flags` truth values.
    InputError names the field, its value and what was expected.
    """
    for name, minimum in (counts or {}).items():
        object.__setattr__(record, name, whole(getattr(record, name), name, minimum=minimum))
    for name, low in (least or {}).items():
        number(getattr(record, name), name, minimum=low)
    for name in positive:
        number(getattr(record, name), name, above=True)
    for name in shares:
        number(getattr(record, name), name, maximum=1.0)
    for name in flags:
        flag(getattr(record, name), name)


def spawn_streams(seed: int, causes: Sequence[str] = CAUSES) -> dict[str, np.random.Generator]:
    """Return one independent generator per cause.

    The k-th cause gets the k-th child of ``numpy.random.SeedSequence(seed)``: appending a cause
    leaves the streams of the others as they were.

    Parameters
    ----------
    seed
        A whole number >= 0.
    causes
        Distinct names.

    Raises
    ------
    InputError
        For a negative seed, one that is no whole number, or causes that are not distinct.

    Examples
    --------
    >>> streams = spawn_streams(7)
    >>> list(streams)
    ['speeds', 'arrivals', 'work', 'shadow', 'policy']
    >>> float(streams["work"].random()) == float(spawn_streams(7)["work"].random())
    True
    """
    root = np.random.SeedSequence(checked_seed(seed))
    words = "a cause is named twice"
    require(len(set(causes)) == len(causes), "causes", words, tuple(causes), "unique names")
    children = root.spawn(len(causes))
    return {
        cause: np.random.default_rng(child) for cause, child in zip(causes, children, strict=True)
    }


def zipf(keys: int, exponent: float = 0.99) -> FloatArray:
    """Probabilities of ranks 1 to `keys`, proportional to rank^(−exponent), shape (keys,)."""
    keys = whole(keys, "keys", minimum=1)
    exponent = number(exponent, "exponent")
    weights: FloatArray = np.arange(1, keys + 1, dtype=np.float64) ** -exponent
    weights /= weights.sum()
    return weights


class EventLoop:
    """Events in the order of their times; at one time in the order in which they were put."""

    def __init__(self) -> None:
        self.now = 0.0
        self._heap: list[tuple[float, int, Callable[..., None], tuple[object, ...]]] = []
        self._number = count()

    def at(self, time: float, handler: Callable[..., None], *arguments: object) -> None:
        """Call a handler at a time, which is not before `now`."""
        heapq.heappush(self._heap, (time, next(self._number), handler, arguments))

    def run_events(self, until: float = math.inf) -> None:
        """Work off all events up to a time, those too that handlers put."""
        heap = self._heap
        while heap and heap[0][0] <= until:
            self.now, _, handler, arguments = heapq.heappop(heap)
            handler(*arguments)


@dataclass(frozen=True, slots=True)
class Latencies:
    """Summary of end-to-end latencies, in ms.

    Attributes
    ----------
    n
        How many requests count.
    mean, p50, p95, p99, p999
        Mean and percentiles, by linear interpolation between order statistics
        (``numpy.percentile(..., method="linear")``); NaN when n = 0.
    """

    n: int
    mean: float
    p50: float
    p95: float
    p99: float
    p999: float


def summarise(latency_ms: npt.ArrayLike) -> Latencies:
    """Summarise latencies in ms; an empty array gives n = 0 and NaN.

    Raises
    ------
    InputError
        When a latency is NaN, infinite or negative, which no simulator may return.

    Examples
    --------
    >>> summarise([1.0, 2.0, 3.0, 4.0]).p50
    2.5
    """
    values = np.asarray(latency_ms, dtype=np.float64).ravel()
    if not values.size:
        return Latencies(0, *[math.nan] * 5)
    wrong = ~np.isfinite(values) | (values < 0)
    if wrong.any():
        worst = float(values[wrong][0])
        expected = "finite milliseconds >= 0"
        raise InputError("not a latency", field="latency_ms", value=worst, expected=expected)
    percentiles = np.percentile(values, [50.0, 95.0, 99.0, 99.9], method="linear").tolist()
    return Latencies(int(values.size), float(values.mean()), *percentiles)
