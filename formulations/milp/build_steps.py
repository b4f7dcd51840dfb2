"""Steps of building a program: each one reports progress and checks the clock.

Building takes seconds where there are many clients and sites. Ctrl-C needs no look: Python raises
it between any two instructions.
"""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["OutOfTimeError", "Step", "no_step", "stepping"]

Step = Callable[[], None]
"""Called between the parts of a program; may raise :class:`OutOfTimeError`."""


class OutOfTimeError(Exception):
    """The time limit passed while a program was built; never leaves the method."""


def no_step() -> None:
    """Do nothing: for programs that are built without a search."""


def stepping(report: Callable[[], None], deadline: float) -> Step:
    """Return a step that reports, then raises OutOfTimeError from the deadline on.

    Parameters
    ----------
    report
        Passes on what the search knows so far.
    deadline
        ``time.perf_counter()`` at which to stop; may be infinite.
    """

    def step() -> None:
        report()
        if time.perf_counter() >= deadline:
            raise OutOfTimeError

    return step
