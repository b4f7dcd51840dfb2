"""Process that runs one job at a time and can be interrupted in the middle of a search.

The searches answer to KeyboardInterrupt, which a signal raises in the main thread of a process:
so they run in a separate process. A job that does not end soon after the signal ends with its
process, and the next job gets a new one.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import FrameType

from placement.errors import LimitError, PlacementError
from placement.explore.jobs import Explorer, run_job
from placement.methods.options import Progress
from placement.report.charts.html_tables import milliseconds

Event = tuple[str, dict[str, object]]
"""Name and content: "progress", then "answer", "error" or "cancelled"."""

_GRACE = 2.0
"""Seconds that an interrupted job has to end."""

_OVERTIME = 20.0
"""Seconds beyond the limit of a search after which a job is interrupted."""

_EVERY = 0.1
"""Seconds between two reports."""

_CANCEL = getattr(signal, "SIGUSR1", None)


class Worker:
    """Process for jobs, which threads ask.

    It gets a copy of the explorer, which the jobs are about; at `most` so many jobs wait.
    """

    def __init__(self, explorer: Explorer, most: int = 32) -> None:
        self.explorer = explorer
        self._most = most
        self._context = multiprocessing.get_context("spawn")
        self._cancelled = self._context.Value("q", 0, lock=False)  # number of the last such job
        self._turn = threading.Condition()  # for what is below; told when a turn may have come
        self._number = self._running = 0
        self._lanes: dict[str, tuple[int, int]] = {}  # lane -> order and number of its last job
        self._waiting: set[int] = set()
        self._asked = 0.0  # when the running job was cancelled
        self._start()

    def _start(self) -> None:
        here, there = self._context.Pipe()
        self._pipe: Connection = here
        self._process = self._context.Process(
            target=_serve, args=(there, self.explorer, self._cancelled), daemon=True
        )
        self._process.start()
        there.close()

    @property
    def pid(self) -> int | None:
        """Number of the process."""
        return self._process.pid

    def run(
        self, lane: str, kind: str, value: object, tell: Callable[[Event], None],
        left: Callable[[], bool], order: int = 0,
    ) -> None:  # fmt: skip
        """Run a job and `tell` its events, the last of them "answer", "error" or "cancelled".

        The `lane` names a tab: a job cancels the one before it of the same lane, unless its `order`
        is lower, since requests may overtake each other. `kind` and `value` are as of
        :func:`placement.explore.jobs.run_job`. When `left` returns that nobody waits for the answer
        any more, the job is cancelled. LimitError when too many jobs wait.
        """
        with self._turn:
            if len(self._waiting) >= self._most:
                raise LimitError("too many questions wait; ask again later")
            self._number = number = self._number + 1
            newest, before = self._lanes.get(lane, (order, -1))
            if order >= newest:
                self._lanes[lane] = order, number
                self._waiting.add(number)
        if order >= newest:
            self.cancel(before)
        with self._turn:
            while number in self._waiting and (self._running or number != min(self._waiting)):
                self._turn.wait(0.25)
                if left():
                    self._waiting.discard(number)
            runs = number in self._waiting
            self._waiting.discard(number)
            if runs:
                self._running, self._asked = number, 0.0
        try:
            if runs:
                self._run(number, kind, value, tell, left)
            else:
                tell(("cancelled", {}))
        finally:
            with self._turn:
                if runs:
                    self._running = 0
                if self._lanes.get(lane) == (order, number):
                    del self._lanes[lane]
                self._turn.notify_all()

    def _run(
        self, number: int, kind: str, value: object, tell: Callable[[Event], None],
        left: Callable[[], bool],
    ) -> None:  # fmt: skip
        """Run a job whose turn it is."""
        end = time.monotonic() + self.explorer.time_limit + _OVERTIME
        ended = False
        try:
            if self._pipe.closed or not self._process.is_alive():
                self._start()
            self._pipe.send((number, kind, value))
            while True:
                if self._pipe.poll(0.25):
                    name, content = self._pipe.recv()
                    ended = name != "progress"
                    tell((name, content))
                    if ended:
                        return
                now = time.monotonic()
                if not self._asked and (now > end or left()):
                    self.cancel(number)
                if self._asked and now > self._asked + _GRACE:
                    break
        except (EOFError, OSError):
            tell(("error", {"message": "the process of the search ended; ask again"}))
        else:
            tell(("cancelled", {}))
        finally:
            if not ended:  # what it still sends is no answer to the next question
                self.close()

    def cancel(self, number: int) -> None:
        """Interrupt a job that waits or runs."""
        with self._turn:
            self._waiting.discard(number)
            self._turn.notify_all()
            if number != self._running or self._asked:
                return
            self._cancelled.value = number
            self._asked = time.monotonic()
            if _CANCEL is not None and self._process.is_alive() and self._process.pid is not None:
                with contextlib.suppress(ProcessLookupError):  # it ended a moment ago
                    os.kill(self._process.pid, _CANCEL)

    def close(self) -> None:
        """End the process."""
        with self._turn:  # a process that another thread waits for seems to be alive
            with contextlib.suppress(OSError):
                self._pipe.close()
            self._process.kill()
            self._process.join()


def _serve(pipe: Connection, explorer: Explorer, cancelled: object) -> None:
    """Run jobs until the pipe closes."""
    running = 0  # number of the job that may be interrupted

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal running
        if running and running == cancelled.value:  # type: ignore[attr-defined]  # a ctypes object
            running = 0  # once
            raise KeyboardInterrupt

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, which closes the pipe
    if _CANCEL is not None:
        signal.signal(_CANCEL, interrupt)
    _ = explorer.ground
    told = 0.0

    def listen(report: Progress) -> None:
        nonlocal told
        now = time.monotonic()
        if now - told >= _EVERY:
            told = now
            pipe.send(("progress", _finite(report)))

    while True:
        try:
            job, kind, value = pipe.recv()
        except (EOFError, OSError):
            return
        told = time.monotonic()
        try:
            running = job
            if cancelled.value == job:  # type: ignore[attr-defined]  # a ctypes object
                raise KeyboardInterrupt
            event = ("answer", run_job(explorer, kind, value, listen))
            running = 0
        except KeyboardInterrupt:
            event = ("cancelled", {})
        except PlacementError as error:
            running = 0
            event = ("error", {"message": str(error)})
        if cancelled.value == job:  # type: ignore[attr-defined]  # a search returns what it had
            event = ("cancelled", {})
        try:
            pipe.send(event)
        except (BrokenPipeError, OSError):
            return


def _finite(report: Progress) -> dict[str, object]:
    """Return a report as JSON, with null for unknown values, and in words; values are in ms."""
    best, bound = (v if math.isfinite(v) else None for v in (report.incumbent, report.bound))
    words = f"best {milliseconds(best)}, bound {milliseconds(bound)}"
    if best and bound is not None:
        words += f", gap {100 * (best - bound) / best:.2f} %"
    said = f"{words}, {report.seconds:.1f} s"
    return {"seconds": report.seconds, "incumbent": best, "bound": bound, "words": said}
