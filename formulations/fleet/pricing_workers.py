"""Workers that price batches of databases: processes of this machine, or of a Dask cluster.

Databases do not depend on each other, so the answers are the same wherever they are found. Batches
go out a few at a time, and their answers come back in order. When a worker dies, the batches that
were out are sent again.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import re
import signal
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing.synchronize import Event
from typing import Any

from formulations.fleet import tuning
from formulations.fleet.price_member import PricedMember, price_member
from placement.errors import InputError, MissingDependencyError, SolverError
from placement.fleet.fleet_problem import FleetProblem
from placement.fleet.shared_rows import SharedRows
from placement.support.checks import FloatArray

__all__ = ["BATCH", "BatchWorkers", "DaskWorkers", "PricedBatch", "ProcessWorkers", "batches_of"]

BATCH = 250
"""Databases that a worker prices at a time: some tenths of a second."""


PricedBatch = tuple[int, int, FloatArray]
"""Number of the first database, number behind the last, prices of the limits."""

_Answer = Any
"""A future of :mod:`concurrent.futures` or of Dask: they have the methods used here in common."""


def batches_of(members: int) -> list[tuple[int, int]]:
    """Return (number of the first database, number behind the last) of each batch."""
    return [(first, min(first + BATCH, members)) for first in range(0, members, BATCH)]


class BatchWorkers(ABC):
    """Workers that price batches of the databases of one fleet."""

    lost: tuple[type[BaseException], ...]
    """Errors that say that a worker is gone, and not that pricing failed."""

    count: int
    """Batches that are priced at the same time."""

    @abstractmethod
    def submit(self, first: int, last: int, prices: FloatArray) -> _Answer:
        """Ask for the answers of some databases; return their future."""

    @abstractmethod
    def restart(self) -> None:
        """Get ready again after a worker was lost."""

    @abstractmethod
    def close(self) -> None:
        """Drop pending batches, and end."""

    def run(self, batches: Sequence[PricedBatch]) -> Iterator[list[PricedMember]]:
        """Yield the answers of batches in their order, with a few batches out at a time.

        Raises
        ------
        SolverError
            When a worker is lost each time that a batch is sent.
        """
        waiting: deque[tuple[PricedBatch, _Answer | None]] = deque()
        left, failures = iter(batches), 0
        while True:
            while len(waiting) < 2 * self.count + 2 and (batch := next(left, None)) is not None:
                waiting.append((batch, None))
            if not waiting:
                return
            try:
                for place, (batch, asked) in enumerate(waiting):
                    if asked is None:
                        waiting[place] = batch, self.submit(*batch)
                answer: list[PricedMember] = self._answer_of(waiting[0][1])
            except self.lost as error:
                failures += 1
                if failures > tuning.MOST_RESTARTS:
                    raise SolverError(
                        f"a worker was lost {failures} times while databases {waiting[0][0][0] + 1}"
                        f" to {waiting[0][0][1]} were priced"
                    ) from error
                self.restart()
                waiting = deque((each, kept if _is_there(kept) else None) for each, kept in waiting)
                continue
            failures = 0
            waiting.popleft()
            yield answer

    def _answer_of(self, asked: _Answer) -> list[PricedMember]:
        answer: list[PricedMember] = asked.result()
        return answer


def _is_there(asked: _Answer | None) -> bool:
    """Return whether a future has its answer already."""
    return (
        asked is not None and asked.done() and not asked.cancelled() and asked.exception() is None
    )


# --- processes of this machine ----------------------------------------------------------------

_worker: list[tuple[SharedRows, Event]] = []
"""The fleet of a worker process and the sign to stop, set once when the process starts."""


def _start_worker(fleet: FleetProblem, stop: Event) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that searches
    _worker[:] = [(SharedRows(fleet), stop)]


def _price_batch(first: int, last: int, prices: FloatArray) -> list[PricedMember]:
    """Price some members; stop early once the search does not wait for them any more."""
    (rows, stop), priced = _worker[0], []
    for member in rows.fleet.members[first:last]:
        if stop.is_set():
            break
        priced.append(price_member(rows, member, prices))
    return priced


@contextlib.contextmanager
def _without_interrupts() -> Iterator[None]:
    """Hold Ctrl-C back for a moment; processes that start in it never see one."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class ProcessWorkers(BatchWorkers):
    """Processes of this machine.

    Parameters
    ----------
    fleet
        The databases; each process gets them once.
    processes
        How many.
    """

    lost = (BrokenProcessPool, CancelledError)

    def __init__(self, fleet: FleetProblem, processes: int) -> None:
        self.count = processes
        self._fleet = fleet
        self._asked: list[Future[list[PricedMember]]] = []
        self._begin()

    def _begin(self) -> None:
        context = multiprocessing.get_context("spawn")
        self._stop = context.Event()
        self._pool = ProcessPoolExecutor(
            self.count,
            mp_context=context,
            initializer=_start_worker,
            initargs=(self._fleet, self._stop),
        )

    def submit(self, first: int, last: int, prices: FloatArray) -> Future[list[PricedMember]]:
        """Ask for the answers of some databases; return their future."""
        with _without_interrupts():
            asked = self._pool.submit(_price_batch, first, last, prices)
        self._asked = [each for each in self._asked if not each.done()] + [asked]
        return asked

    def restart(self) -> None:
        """Replace all processes by new ones."""
        self._stop.set()
        self._pool.shutdown(wait=False, cancel_futures=True)
        self._begin()

    def close(self) -> None:
        """Tell the processes to stop; after Ctrl-C do not wait for one that is still starting."""
        self._stop.set()
        done = all(each.done() for each in self._asked)
        self._pool.shutdown(wait=done, cancel_futures=True)


# --- a Dask cluster ---------------------------------------------------------------------------

_on_cluster: list[tuple[FleetProblem, SharedRows]] = []
"""The fleet that a worker of a cluster has priced last."""


def _price_on_cluster(
    fleet: FleetProblem, first: int, last: int, prices: FloatArray
) -> list[PricedMember]:
    known = _on_cluster[0] if _on_cluster else None
    if known is None or known[0] is not fleet:
        known = fleet, SharedRows(fleet)
        _on_cluster[:] = [known]
    rows = known[1]
    return [price_member(rows, member, prices) for member in fleet.members[first:last]]


class DaskWorkers(BatchWorkers):
    """Workers of a Dask cluster, which need the same version of this package.

    Every worker holds the fleet. The scheduler sends what a dead worker had to another one; only
    when all that held the fleet are gone it is sent to the cluster again.

    Parameters
    ----------
    fleet
        The databases.
    address
        Of the scheduler, such as ``"tcp://10.0.0.5:8786"``.

    Raises
    ------
    MissingDependencyError
        Without the extra ``dask``.
    InputError
        When no scheduler answers there, or it has no worker.
    """

    def __init__(self, fleet: FleetProblem, address: str) -> None:
        try:
            from distributed import CancelledError as CancelledOnCluster
            from distributed import Client, KilledWorker
            from distributed.client import FutureCancelledError
        except ImportError as error:
            raise MissingDependencyError.of("a Dask cluster needs distributed", "dask") from error
        if not re.fullmatch(r"([a-z]+://)?[^/]+:[0-9]{1,5}", address):
            raise self._unreachable(address, "not an address")
        self.lost = (KilledWorker, CancelledOnCluster, FutureCancelledError, CancelledError)
        self._fleet = fleet
        try:
            connect: Any = Client
            self._client = connect(address, timeout=tuning.CONNECT_SECONDS, set_as_default=False)
        except (OSError, ValueError) as error:
            raise self._unreachable(address, "no scheduler answers") from error
        try:
            self._client.wait_for_workers(1, timeout=tuning.CONNECT_SECONDS)
        except TimeoutError as error:
            self._client.close()
            raise self._unreachable(address, "the scheduler has no worker") from error
        self._send_fleet()

    @staticmethod
    def _unreachable(address: str, why: str) -> InputError:
        return InputError(
            why,
            field="--dask",
            value=address,
            expected="the address of a Dask scheduler with workers, such as tcp://127.0.0.1:8786",
        )

    def _send_fleet(self) -> None:
        self._held = self._client.scatter(self._fleet, broadcast=True, hash=False)
        self.count = max(1, sum(self._client.nthreads().values()))

    def submit(self, first: int, last: int, prices: FloatArray) -> _Answer:
        """Ask for the answers of some databases; return their future."""
        return self._client.submit(_price_on_cluster, self._held, first, last, prices, pure=False)

    def restart(self) -> None:
        """Send the fleet again to the workers that there are."""
        self._client.wait_for_workers(1, timeout=tuning.CONNECT_SECONDS)
        self._send_fleet()

    def close(self) -> None:
        """Leave the cluster; it drops what is still asked for."""
        self._client.close()
