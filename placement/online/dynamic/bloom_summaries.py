"""Knowledge of a client about the dynamic copies: one Bloom filter per preferred site.

Matri et al. 2018, section 8. Filters are rbloom's (extra ``online``), with a hash of our own:
Python's default hash differs between processes for strings, and a filter travels.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from placement.errors import InputError, MissingDependencyError
from placement.support.checks import BoolArray, IntArray, number

__all__ = ["BloomSummary", "ErrorCounter", "spread"]

_MASK = (1 << 64) - 1


def spread(key: int) -> int:
    """Return a 127-bit hash of a whole number >= 0, the same everywhere: SplitMix64, twice."""
    first = _mix(key + 0x9E3779B97F4A7C15)
    second = _mix(first ^ 0xD1B54A32D192ED03)
    return (first >> 1) << 64 | second


def _mix(value: int) -> int:
    value &= _MASK
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 & _MASK
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB & _MASK
    return value ^ (value >> 31)


class BloomSummary:
    """The dynamic copies of one site, approximately.

    Parameters
    ----------
    keys
        Objects with a dynamic copy there.
    room
        Number of keys the filter is sized for; more than that raise its error. Size it for the
        copies there may be, R = k·(1 + λ·g), not for k.
    error
        False-positive rate when `room` keys are in.
    """

    def __init__(self, keys: Iterable[int], room: int, error: float = 0.001) -> None:
        try:
            from rbloom import Bloom
        except ImportError:
            raise MissingDependencyError.of("Bloom filters need rbloom", "online") from None
        if room < 1 or not 0 < error < 1:
            raise InputError(
                "out of range",
                field="room, error",
                value=(room, error),
                expected="room for one key, and an error between 0 and 1",
            )
        self._bloom: Any = Bloom(room, error, spread)
        self._bloom.update(keys)

    def __contains__(self, key: int) -> bool:
        return key in self._bloom

    def among(self, keys: IntArray) -> BoolArray:
        """Return whether each key seems to be in, shape (keys,)."""
        inside = self._bloom
        return np.array([key in inside for key in keys.tolist()], dtype=bool)

    @property
    def bits(self) -> int:
        """Size in bits."""
        return int(self._bloom.size_in_bits)


class ErrorCounter:
    """Decides when a client fetches new summaries: when too many of its requests went astray.

    Errors and requests count from the last refresh; a refresh is due when their ratio reaches the
    threshold.

    Parameters
    ----------
    threshold
        Ratio of errors to requests; 5 % in the paper.
    least
        Requests below which nothing is decided: one error in one request is no ratio.
    memory
        Requests that count: when there are more, both counts are scaled down to it. None: all since
        the last refresh, as in the paper, which makes a client that has long been right slow to
        notice that it no longer is.

    Examples
    --------
    >>> counter = ErrorCounter(threshold=0.05, least=100)
    >>> counter.note(requests=99, errors=5), counter.note(requests=1, errors=0)
    (False, True)
    """

    def __init__(
        self, threshold: float = 0.05, least: int = 100, memory: float | None = None
    ) -> None:
        number(threshold, "threshold", above=True, maximum=1.0)
        number(least, "least", minimum=1.0)
        if memory is not None:
            number(memory, "memory", minimum=least)
        self.threshold, self.least, self.memory = threshold, least, memory
        self.requests = self.errors = 0.0

    def note(self, requests: int, errors: int) -> bool:
        """Count some requests with their errors; whether a refresh is due."""
        self.requests += requests
        self.errors += errors
        if self.memory is not None and self.requests > self.memory:
            self.errors *= self.memory / self.requests
            self.requests = self.memory
        return self.requests >= self.least and self.errors >= self.threshold * self.requests

    def reset(self) -> None:
        """Start over, after a refresh."""
        self.requests = self.errors = 0.0
