"""Progress of a run on standard error: cells done and under way, and the expected end."""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from benchmarks.harness.cells import Cell
from placement.text import clip, escape

__all__ = ["RunProgress", "duration_text"]


class RunProgress:
    """Counts cells and estimates the rest from the cells of the same method.

    Parameters
    ----------
    stream
        Where to; on a terminal one line is rewritten, elsewhere a line comes every few seconds.
    cells
        What will be run.
    jobs
        Processes at once.
    clock
        Seconds; for tests.
    """

    def __init__(
        self,
        stream: TextIO,
        cells: Sequence[Cell],
        jobs: int = 1,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._left = Counter(cell.method for cell in cells)
        self._walls: defaultdict[str, list[float]] = defaultdict(list)
        self._total = len(cells)
        self._jobs = jobs
        self._clock = clock
        self._started = clock()
        self._last = -math.inf
        self._outcomes: Counter[str] = Counter()

    def __call__(self, cell: Cell, row: Mapping[str, object], done: int) -> None:
        """Take note of a cell that has ended, and show how the run stands."""
        self._left[cell.method] -= 1
        wall = row.get("wall_seconds")
        self._walls[cell.method].append(float(wall) if isinstance(wall, (int, float)) else 0.0)
        self._outcomes[str(row["outcome"])] += 1
        now = self._clock()
        if now - self._last < (0.1 if self._terminal else 5.0) and done < self._total:
            return
        self._last = now
        text = self.text(cell, done)
        self._stream.write(f"\r\x1b[K{clip(text, 110)}" if self._terminal else f"{text}\n")
        self._stream.flush()

    def text(self, cell: Cell, done: int) -> str:
        """Return the line."""
        spent = self._clock() - self._started
        rest = self.rest()
        parts = [
            f"{done}/{self._total}",
            f"{duration_text(spent)} so far",
            "" if done == self._total else f"about {duration_text(rest)} left",
            *(f"{n} {kind}" for kind, n in sorted(self._outcomes.items()) if kind != "ok"),
            escape(cell.label),
        ]
        return " · ".join(part for part in parts if part)

    def rest(self) -> float:
        """Estimate the seconds left: the mean of the method's cells so far, else of all."""
        walls = [wall for seen in self._walls.values() for wall in seen]
        overall = sum(walls) / len(walls) if walls else 0.0
        total = 0.0
        for method, left in self._left.items():
            seen = self._walls.get(method)
            total += left * (sum(seen) / len(seen) if seen else overall)
        return total / self._jobs

    def close(self) -> None:
        """End the line on a terminal."""
        if self._terminal and self._last > -math.inf:
            self._stream.write("\n")
            self._stream.flush()


def duration_text(seconds: float) -> str:
    """Return a duration in the two units that matter.

    Examples
    --------
    >>> duration_text(4.2), duration_text(75), duration_text(7260)
    ('4 s', '1 min 15 s', '2 h 1 min')
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
