"""Progress line on stderr: incumbent and bound of the search."""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TextIO

if TYPE_CHECKING:
    from placement.methods.options import Progress
    from placement.problem import Problem

__all__ = ["ProgressLine", "progress_of"]


class ProgressLine:
    """Shows reports, rewriting one line on a terminal and writing a line each elsewhere.

    Parameters
    ----------
    stream
        Where to.
    in_ms
        Turns objective and bound into ms.
    unit
        Shown in place of ms, for measures of something else.
    every
        Least seconds between two updates.
    clock
        Seconds; for tests.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        in_ms: Callable[[float], float],
        unit: str = "ms",
        every: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._terminal = stream.isatty()
        self._in_ms = in_ms
        self._unit = unit
        self._every = every if every is not None else (0.1 if self._terminal else 1.0)
        self._clock = clock
        self._last = -math.inf
        self._width = 0

    def __call__(self, progress: Progress) -> None:
        """Show a report, unless the last one was a moment ago."""
        now = self._clock()
        if now - self._last < self._every:
            return
        self._last = now
        self.show(self.text(progress))

    def show(self, text: str) -> None:
        """Show a text in place of the last one."""
        if self._terminal:
            blank = " " * max(0, self._width - len(text))
            self._stream.write(f"\r{text}{blank}")
            self._width = len(text)
        else:
            self._stream.write(text + "\n")
        self._stream.flush()

    def text(self, progress: Progress) -> str:
        """Return the line: incumbent, bound, gap, seconds, work done."""
        from placement.support.status import relative_gap

        gap = relative_gap(progress.incumbent, progress.bound)
        parts = [
            f"best {self._value(progress.incumbent)}",
            f"bound {self._value(progress.bound)}",
            "gap –" if math.isinf(gap) else f"gap {100 * gap:.2f} %",
            f"{progress.seconds:.1f} s",
        ]
        if progress.done is not None:
            total = f"/{progress.total:,}" if progress.total is not None else ""
            parts.append(f"{progress.done:,}{total} done")
        return "  ".join(parts)

    def _value(self, value: float) -> str:
        return f"{self._in_ms(value):,.3f} {self._unit}" if math.isfinite(value) else "–"

    def close(self) -> None:
        """Wipe the line, so that the results begin on an empty line."""
        if self._terminal and self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()
            self._width = 0


@contextmanager
def progress_of(args: argparse.Namespace, problem: Problem) -> Iterator[ProgressLine | None]:
    """Give the progress line that the options ask for, and wipe it at the end."""
    wanted: bool = sys.stderr.isatty() if args.progress is None else args.progress
    if not wanted:
        yield None
        return
    goal = problem.objective
    line = ProgressLine(
        sys.stderr, in_ms=lambda value: goal.in_ms(problem, value), unit=goal.unit(problem)
    )
    try:
        yield line
    finally:
        line.close()
