"""Runs of solvers in a thread of their own, so that limits hold and Ctrl-C works.

The caller's thread keeps the clock, listens for Ctrl-C and passes on progress. A solver looks at
its own time limit only now and then, and may not hear a request to stop. After a grace period it is
left behind, and what its callbacks have delivered so far is the result.
"""

from __future__ import annotations

import atexit
import math
import threading
import time
from collections.abc import Callable

from formulations.solvers.statuses import StopReason
from placement.errors import SolverError

_LEFT_BEHIND: list[tuple[threading.Thread, Callable[[], None]]] = []
"""Runs that did not stop when told to, and how they are told."""

_EXIT_GRACE = 5.0
"""Seconds that the end of the process waits for them."""


def await_left_behind() -> None:
    """Tell runs to stop, and wait.

    A thread that comes back from a solver while the interpreter ends is unwound through C++ frames
    that do not allow it, and the process aborts: "terminate called without an active exception".
    """
    end = time.monotonic() + _EXIT_GRACE
    for thread, halt in _LEFT_BEHIND:
        halt()
        thread.join(max(0.0, end - time.monotonic()))


atexit.register(await_left_behind)


def run_apart(
    name: str,
    work: Callable[[], object],
    halt: Callable[[], None],
    look: Callable[[], StopReason | None],
    finished: threading.Event,
    *,
    tick: float,
    grace: float,
) -> StopReason | None:
    """Do the work of a solver, and return why it was told to stop, if it was.

    `look` is called from the caller's thread every `tick` seconds: it passes on progress, and says
    when to stop. `halt` tells the solver so, again and again: some hear it only once the search has
    begun. `finished` is not set when the run is left behind, `grace` seconds later. SolverError
    when the work fails.
    """
    failure: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:  # handed to the caller's thread
            failure.append(error)
        finally:
            finished.set()

    thread = threading.Thread(target=guarded, name=name, daemon=True)
    thread.start()
    stop: StopReason | None = None
    give_up = math.inf
    while time.perf_counter() <= give_up:
        try:
            if finished.wait(tick):
                break
            reason = look()
            stop = reason if stop is None else stop
        except KeyboardInterrupt:
            stop = StopReason.INTERRUPTED
        except BaseException:
            halt()
            raise
        if stop is not None:
            halt()
            give_up = min(give_up, time.perf_counter() + grace)
    if finished.is_set():
        thread.join()  # its own threads end with it
    else:
        _LEFT_BEHIND.append((thread, halt))
    if failure:
        own = isinstance(failure[0], SolverError)
        said = failure[0] if own else f"{type(failure[0]).__name__}: {failure[0]}"
        raise SolverError(f"{name} failed: {said}") from failure[0]
    return stop
