"""Pricing: the best configuration of each database at given prices of the shared limits.

In this process, by processes of this machine, or by the workers of a Dask cluster, with the same
answers: databases do not depend on each other. Batches go out a few at a time, and their answers
come back in order. When a worker dies, the batches that were out are sent again.

A checkpoint keeps the answers, batch by batch. A search depends only on its question and settings:
the master, the smoothing and the rounding give the same in every run. Pricing takes the time, so a
restarted search reads its answers instead, and ends with the same plan to the last bit.

==============================  ====================================================================
``search.json``                 the question and settings, as a digest, and versions
``pass-0007-00250.json``        answers from database 250 on, of the pass at the prices of a digest
``pass-0007.json``              the prices of a pass, written when all of its answers are there
==============================  ====================================================================

Every file is written whole or not at all: a search that is killed leaves its complete files.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import math
import multiprocessing
import os
import re
import signal
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any, Self

import numpy as np

from formulations.exact.branch_and_bound import search
from formulations.exact.reduced_problem import ReducedProblem
from formulations.fleet import tuning
from formulations.fleet.configuration_table import FleetTables
from placement.errors import InputError, MissingDependencyError, SolverError
from placement.fleet.fleet_plan import PricedQuestion, SharedRows
from placement.fleet.fleet_problem import SITE_LIMITS, FleetMember, FleetProblem
from placement.io.formats.files import check_folder, write_file
from placement.io.problem_document import problem_document
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray
from placement.support.status import Termination


@dataclass(frozen=True, slots=True)
class PricedMember:
    """The answer of pricing one database."""

    #: the best at these prices; None when the database has none that fits its sites alone
    configuration: Configuration | None
    #: proven lower bound on objective plus price of any configuration; +∞ when there is none
    least: float


def price_member(
    rows: SharedRows, member: FleetMember, prices: FloatArray, room: FloatArray | None = None
) -> PricedMember:
    """Return the best configuration of one database at prices of the shared limits.

    Sites that cannot hold or lead the database alone are left out: no plan of the fleet uses them.
    With a `room` (remaining capacity of each limit), sites where it no longer fits are left out
    too.
    """
    asked = PricedQuestion.of(rows, member, prices, room)
    if asked is None:
        return PricedMember(None, math.inf)
    found = search(ReducedProblem(asked.demand, asked.rules, asked.price), certify=False)
    if found.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    if found.termination is not Termination.FINISHED:
        raise SolverError(f"{member.name}: pricing ended with {found.termination.value!r}")
    return PricedMember(found.configuration, found.proven)


def price_members(
    tables: FleetTables, numbers: Sequence[int], prices: FloatArray
) -> Iterator[PricedMember]:
    """Yield the answers of some databases: those with a table many at once, others one by one."""
    for number, row in tables.each(numbers, prices):
        if row is None:
            yield price_member(tables.rows, tables.rows.fleet.members[number], prices)
        else:
            yield PricedMember(row.best(), row.least)


def certify_priced(question: PricedQuestion) -> Mapping[str, object]:
    """Return a certificate of the least objective plus price of one database.

    The certifier ``exact`` of :data:`placement.proof.fleet_proof.CERTIFIERS`.
    """
    found = search(ReducedProblem(question.demand, question.rules, question.price))
    if found.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    if found.none is not None:
        return found.none.to_json()
    if found.certified is None:
        raise SolverError(f"pricing ended with {found.termination.value!r} and no certificate")
    return found.certified().to_json()


# Checkpoints of a search for a plan of a fleet: the answers of pricing, batch by batch

_FORMAT = "fleet-search/1"
_HEAD = "search.json"


class Checkpoint:
    """Folder with the answers of pricing of one search, made when it is not there.

    `settings` is what else the answers depend on, as JSON values. InputError when the folder holds
    another search, or something else.
    """

    def __init__(
        self, folder: str | os.PathLike[str], fleet: FleetProblem, settings: dict[str, object]
    ) -> None:
        self._folder = Path(folder)
        head = {
            "format": _FORMAT,
            "fleet": fleet_digest(fleet),
            **settings,
            "replica-placement": version("replica-placement"),
            "highspy": version("highspy"),
        }
        if self._folder.is_dir():
            for unfinished in self._folder.glob(".*.tmp"):  # of a search that was killed
                unfinished.unlink(missing_ok=True)
        if (self._folder / _HEAD).exists():
            self._compare(head)
            return
        check_folder(self._folder)
        self._folder.mkdir(exist_ok=True)
        self._write(_HEAD, head)

    def _compare(self, head: dict[str, object]) -> None:
        path = self._folder / _HEAD
        found = self._read(path)
        for field, value in head.items():
            if found.get(field) != value:
                what = "another fleet" if field == "fleet" else "another search"
                raise InputError(
                    f"the checkpoint is of {what}",
                    source=os.fspath(path),
                    field=field,
                    value=found.get(field),
                    expected=f"{value}, or a new folder",
                )

    def load(self, number: int, first: int, last: int, prices: FloatArray) -> list[PricedMember]:
        """Return the answers for the databases from `first` to before `last` of a pass.

        None where they are not there, or at other prices.
        """
        path = self._folder / _batch_name(number, first)
        if not path.exists():
            return []
        found = self._read(path)
        if found.get("prices") != _digest(prices):
            return []
        try:
            answers = [_answer(*each) for each in found["priced"]]
        except (KeyError, TypeError, ValueError) as error:
            raise _broken(path, error) from None
        return answers if len(answers) == last - first else []

    def save(
        self, number: int, first: int, prices: FloatArray, priced: Sequence[PricedMember]
    ) -> None:
        """Keep the answers for databases from `first` on."""
        answers = [_written(each) for each in priced]
        self._write(_batch_name(number, first), {"prices": _digest(prices), "priced": answers})

    def finish(self, number: int, prices: FloatArray) -> None:
        """Keep the prices of a pass all of whose answers are kept."""
        name = f"pass-{number:04}.json"
        if not (self._folder / name).exists():
            self._write(name, {"prices": [each.hex() for each in prices.tolist()]})

    def _write(self, name: str, document: dict[str, object]) -> None:
        write_file(self._folder / name, json.dumps(document).encode(), force=True)

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            found = json.loads(path.read_bytes())
        except ValueError as error:
            raise _broken(path, error) from None
        if not isinstance(found, dict):
            raise _broken(path, TypeError("no object"))
        return found


def _broken(path: Path, error: Exception) -> InputError:
    return InputError(
        f"not a file of a checkpoint ({error})",
        source=os.fspath(path),
        expected="a file that placement fleet wrote, or a new folder",
    )


def _batch_name(number: int, first: int) -> str:
    return f"pass-{number:04}-{first:07}.json"


def _written(each: PricedMember) -> list[object]:
    found = each.configuration
    return [None if found is None else _sites(found), each.least.hex()]


def _answer(chosen: Sequence[object] | None, least: str) -> PricedMember:
    found = None if chosen is None else Configuration.of(*chosen)  # type: ignore[arg-type]  # JSON
    return PricedMember(found, float.fromhex(least))


def _digest(prices: FloatArray) -> str:
    return hashlib.sha256(np.ascontiguousarray(prices, dtype="<f8").tobytes()).hexdigest()


def fleet_digest(fleet: FleetProblem) -> str:
    """Return the SHA-256 (hex) of a question: databases, what they ask, and shared limits."""
    digest = hashlib.sha256()

    def add(*values: object) -> None:
        digest.update(json.dumps(values, sort_keys=True).encode())

    limits = fleet.limits
    for field in SITE_LIMITS:
        given = getattr(limits, field)
        add(field, None if given is None else [each.hex() for each in given.tolist()])
    add(limits.most_moves, limits.most_moved_gb, limits.apart, limits.headroom)
    for member in fleet.members:
        own = (member.storage_gb, member.written_gb, member.leader_load)
        add(member.name, member.copies, [float(each).hex() for each in own])
        add(None if member.present is None else _sites(member.present))
        add(member.problem.instance.fingerprint, problem_document(member.problem))
    return digest.hexdigest()


def _sites(chosen: Configuration) -> list[object]:
    return [chosen.leader, chosen.voters, chosen.replicas]


# Workers that price batches of databases: processes of this machine, or of a Dask cluster

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

        SolverError when a worker is lost each time that a batch is sent.
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
                asked = waiting[0][1]
                assert asked is not None
                answer: list[PricedMember] = asked.result()
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


def _is_there(asked: _Answer | None) -> bool:
    """Return whether a future has its answer already."""
    return (
        asked is not None and asked.done() and not asked.cancelled() and asked.exception() is None
    )


# --- processes of this machine ----------------------------------------------------------------

_worker: list[tuple[FleetTables, Event]] = []
"""The fleet of a worker process and the sign to stop, set once when the process starts."""


_stopped: deque[Event] = deque(maxlen=8)
"""Signs to stop of the last searches: a process that is still starting looks for its own."""


def _start_worker(fleet: FleetProblem, stop: Event) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that searches
    _worker[:] = [(FleetTables(SharedRows(fleet)), stop)]


def _price_batch(first: int, last: int, prices: FloatArray) -> list[PricedMember]:
    """Price some members; stop early once the search does not wait for them any more."""
    tables, stop = _worker[0]
    answers = price_members(tables, range(first, last), prices)
    return list(itertools.takewhile(lambda _: not stop.is_set(), answers))


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
    """Processes of this machine; each gets the databases once."""

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
        _stopped.append(self._stop)
        done = all(each.done() for each in self._asked)
        self._pool.shutdown(wait=done, cancel_futures=True)


# --- a Dask cluster ---------------------------------------------------------------------------

_on_cluster: list[tuple[FleetProblem, FleetTables]] = []
"""The fleet that a worker of a cluster has priced last."""


def _price_on_cluster(
    fleet: FleetProblem, first: int, last: int, prices: FloatArray
) -> list[PricedMember]:
    known = _on_cluster[0] if _on_cluster else None
    if known is None or known[0] is not fleet:
        known = fleet, FleetTables(SharedRows(fleet))
        _on_cluster[:] = [known]
    return list(price_members(known[1], range(first, last), prices))


class DaskWorkers(BatchWorkers):
    """Workers of a Dask cluster, which need the same version of this package.

    Every worker holds the fleet. The scheduler, at an address such as ``"tcp://10.0.0.5:8786"``,
    sends what a dead worker had to another one; only when all that held the fleet are gone it is
    sent to the cluster again. InputError when no scheduler answers there, or it has no worker.
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


# Pricing: the best configuration of each database at given prices of the shared limits


class Pricer:
    """Prices all databases of a fleet, here or by workers; a context manager.

    The workers of the cluster at the address `dask` take the place of processes. A checkpoint keeps
    the answers; an answer that stands there is not computed again.
    """

    def __init__(
        self,
        rows: SharedRows,
        processes: int = 1,
        *,
        dask: str | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._rows, self._checkpoint = rows, checkpoint
        self._passes = 0
        self._workers: BatchWorkers | None = None
        if dask is not None:
            self._workers = DaskWorkers(rows.fleet, dask)
        elif processes > 1 and len(rows.fleet.members) > BATCH:
            self._workers = ProcessWorkers(rows.fleet, processes)

    @cached_property
    def tables(self) -> FleetTables:
        """Tables of all configurations, for this process."""
        return FleetTables(self._rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._workers is not None:
            self._workers.close()

    def price(self, prices: FloatArray) -> Iterator[PricedMember]:
        """Yield the answer of each member in order; O(members) calls of the exact search.

        Batches are kept in order, so that those of a search that was killed are the first ones.
        """
        number, kept = self._passes, self._checkpoint
        self._passes += 1
        todo = [(*batch, prices) for batch in batches_of(len(self._rows.fleet.members))]
        while kept and todo and (known := kept.load(number, *todo[0])):
            yield from known
            del todo[0]
        if self._workers is None:
            yield from self._price_here(number, todo)
        else:
            for (first, _, own), priced in zip(todo, self._workers.run(todo), strict=True):
                if kept:
                    kept.save(number, first, own, priced)
                yield from priced
        if kept:
            kept.finish(number, prices)

    def _price_here(self, number: int, batches: Sequence[PricedBatch]) -> Iterator[PricedMember]:
        for first, last, prices in batches:
            priced = []
            for each in price_members(self.tables, range(first, last), prices):
                priced.append(each)
                yield each
            if self._checkpoint:
                self._checkpoint.save(number, first, prices, priced)


def lagrangean_bound(
    rows: SharedRows,
    prices: FloatArray,
    priced: Sequence[PricedMember],
) -> float:
    """Return Σ_d copies · least_d − Σ_rows price · capacity, rounded down: a proven bound.

    For any prices π >= 0 no plan of the fleet is below it: a plan within the capacities pays at
    most π · capacity, and each database at least its least objective plus price.
    """
    pairs = zip(rows.fleet.members, priced, strict=True)
    terms = [member.copies * each.least for member, each in pairs]
    if math.inf in terms:
        return math.inf
    terms += (-prices * rows.capacity).tolist()
    # products, prices of replicas and ways with prices have a few roundings, the sum has one
    error = 64 * np.finfo(np.float64).eps * math.fsum(map(abs, terms))
    return math.fsum(terms) - float(error)
