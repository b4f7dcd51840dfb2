"""Order of the jobs: one at a time, and a later job of a lane cancels the one before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from placement.errors import LimitError
from placement.explore.worker import Event, Worker

__all__ = ["Desk"]

_LAST = ("answer", "error", "cancelled")


class Desk:
    """Hands jobs to a worker.

    Parameters
    ----------
    worker
        Runs one job at a time.
    most
        Most jobs that wait.
    """

    def __init__(self, worker: Worker, most: int = 32) -> None:
        self._worker = worker
        self._most = most
        self._turn = asyncio.Lock()
        self._number = 0
        self._lanes: dict[str, int] = {}
        self._waiting: set[int] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def events(self, lane: str, kind: str, value: object) -> AsyncIterator[Event]:
        """Yield the events of a job; one that is left early is cancelled.

        Parameters
        ----------
        lane
            Name of a tab: a job cancels the one before it of the same lane.
        kind, value
            As of :func:`placement.explore.jobs.run_job`.

        Raises
        ------
        LimitError
            When too many jobs wait.
        """
        if len(self._waiting) >= self._most:
            raise LimitError("too many questions wait; ask again later")
        self._number = number = self._number + 1
        before = self._lanes.get(lane)
        self._lanes[lane] = number
        self._waiting.add(number)
        if before is not None:
            self._cancel(before)
        queue: asyncio.Queue[Event] = asyncio.Queue()
        task = asyncio.create_task(self._run(number, lane, kind, value, queue))
        self._tasks.add(task)  # the loop alone would not keep it
        task.add_done_callback(self._tasks.discard)
        last = False
        try:
            while not last:
                event = await queue.get()
                last = event[0] in _LAST
                yield event
        finally:
            if not last:
                self._cancel(number)

    def _cancel(self, number: int) -> None:
        """Cancel a job that waits or runs."""
        if number in self._waiting:
            self._waiting.discard(number)
        elif number in self._lanes.values() or number == self._running:
            self._worker.cancel(number)

    _running = 0

    async def _run(
        self, number: int, lane: str, kind: str, value: object, queue: asyncio.Queue[Event]
    ) -> None:
        """Wait for the turn of a job, and run it to its end."""
        loop = asyncio.get_running_loop()

        def tell(event: Event) -> None:
            loop.call_soon_threadsafe(queue.put_nowait, event)

        async with self._turn:
            if number not in self._waiting:
                queue.put_nowait(("cancelled", {}))
            else:
                self._waiting.discard(number)
                self._running = number
                await asyncio.to_thread(self._worker.run, number, kind, value, tell)
                self._running = 0
        if self._lanes.get(lane) == number:
            del self._lanes[lane]
