"""Wall times of repeated calls: the least for comparisons, the median for what to expect."""

from __future__ import annotations

import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = ["Timing", "command", "repeat"]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of several runs of the same thing.

    Attributes
    ----------
    least, median
        In seconds.
    runs
        How many there were.
    """

    least: float
    median: float
    runs: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> Timing:
        """Summarise one or more wall times."""
        return cls(min(seconds), statistics.median(seconds), len(seconds))


def repeat(call: Callable[[], object], runs: int, *, warm_up: int = 1) -> Timing:
    """Time a call `runs` times after `warm_up` calls that do not count (imports, caches)."""
    for _ in range(warm_up):
        call()
    seconds = []
    for _ in range(runs):
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return Timing.of(seconds)


def command(arguments: Sequence[str], runs: int) -> Timing:
    """Time a process from its start to its end; CalledProcessError when it fails."""

    def call() -> None:
        subprocess.run(arguments, check=True, capture_output=True)

    return repeat(call, runs)
