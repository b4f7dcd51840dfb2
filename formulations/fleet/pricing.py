"""Pricing: the best configuration of each database at given prices of the shared limits.

One call of the exact search for each database, with the prices of the limits added to what a
replica costs under each leader (:mod:`placement.fleet.shared_rows`). Databases do not depend on
each other: they are priced by as many processes as asked for, with the same answers.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import signal
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing.synchronize import Event
from typing import Self

import numpy as np

from formulations.exact.branch_and_bound import search
from formulations.exact.reduced_problem import ReducedProblem
from placement.checks import FloatArray
from placement.errors import SolverError
from placement.feasibility.feasible_plans import violations
from placement.feasibility.neighbours import neighbours
from placement.fleet.fleet_problem import FleetMember, FleetProblem
from placement.fleet.priced_question import PricedQuestion
from placement.fleet.shared_rows import SharedRows
from placement.model.configuration import Configuration
from placement.status import Termination

__all__ = ["PricedMember", "Pricer", "certify_priced", "lagrangean_bound", "price_member"]

_BATCH = 250
"""Databases that a process prices at a time: some tenths of a second."""


_STEPS = 4
"""Steps of a descent by the true price, where the search has a lower bound of it."""

_EXACT = 1e-9
"""Part of a cost below which a difference is rounding."""


@dataclass(frozen=True, slots=True)
class PricedMember:
    """The answer of pricing one database.

    Attributes
    ----------
    configuration
        The best at these prices, or a good one where reads or losses have prices; None when the
        database has none that fits its sites alone.
    least
        Proven lower bound on objective plus price of any configuration; +∞ when there is none.
    """

    configuration: Configuration | None
    least: float


def price_member(
    rows: SharedRows, member: FleetMember, prices: FloatArray, room: FloatArray | None = None
) -> PricedMember:
    """Return the best configuration of one database at prices of the shared limits.

    Sites that cannot hold or lead the database alone are left out: no plan of the fleet uses them.
    With a `room`, what is left of each limit, so are those where it does not fit any more.

    Raises
    ------
    SolverError
        When the search ends without a proof, which it does not without limits.
    """
    asked = PricedQuestion.of(rows, member, prices, room)
    if asked is None:
        return PricedMember(None, math.inf)
    found = search(ReducedProblem(asked.demand, asked.rules, asked.price), certify=False)
    if found.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    if found.termination is not Termination.FINISHED:
        raise SolverError(f"{member.name}: pricing ended with {found.termination.value!r}")
    chosen = found.configuration
    if chosen is not None and room is None and rows.has_services:
        chosen = _descend(rows, member, prices, chosen, found.proven)
    return PricedMember(chosen, found.proven)


def _descend(
    rows: SharedRows,
    member: FleetMember,
    prices: FloatArray,
    start: Configuration,
    least: float,
) -> Configuration:
    """Return a configuration of less true price near one whose price is a lower bound alone."""
    hold, lead = rows.fitting_sites(member)

    def paid(choices: Sequence[Configuration]) -> FloatArray:
        values = member.problem.objective.values(member.problem, choices)
        return np.asarray(values + [prices @ rows.use(member, one) for one in choices])

    best, cost = start, float(paid([start])[0])
    for _ in range(_STEPS):
        if cost <= least + _EXACT * abs(least):
            break
        around = [
            one
            for one in neighbours(member.problem, best)
            if lead[one.leader]
            and hold[list(one.replicas)].all()
            and not violations(member.problem, one)
        ]
        if not around:
            break
        costs = paid(around)
        if not costs.min() < cost - _EXACT * abs(cost):
            break
        best, cost = around[int(costs.argmin())], float(costs.min())
    return best


_worker: list[tuple[SharedRows, Event]] = []
"""The fleet of a worker process and the sign to stop, set once when the process starts."""


def _start_worker(fleet: FleetProblem, stop: Event) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that searches
    _worker[:] = [(SharedRows(fleet), stop)]


def _price_batch(first: int, last: int, prices: FloatArray) -> list[PricedMember]:
    """Price some members; fewer than asked for once nobody waits for them any more."""
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


class Pricer:
    """Prices all databases of a fleet, in this process or in several; a context manager.

    Parameters
    ----------
    rows
        The shared limits of the fleet.
    processes
        How many; 1: no other process is started.
    """

    def __init__(self, rows: SharedRows, processes: int = 1) -> None:
        self._rows = rows
        self._processes = processes
        self._pool: Executor | None = None
        self._asked: list[Future[list[PricedMember]]] = []
        if processes > 1 and len(rows.fleet.members) > _BATCH:
            context = multiprocessing.get_context("spawn")
            self._stop = context.Event()
            self._pool = ProcessPoolExecutor(
                processes,
                mp_context=context,
                initializer=_start_worker,
                initargs=(rows.fleet, self._stop),
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool is not None:
            self._stop.set()
            # after Ctrl-C a worker may still be starting: the answer does not wait for that
            done = all(each.done() for each in self._asked)
            self._pool.shutdown(wait=done, cancel_futures=True)

    def for_rows(self, rows: SharedRows) -> Pricer:
        """Return a pricer of the same kind for another fleet; the caller closes it."""
        return Pricer(rows, self._processes)

    def price(self, prices: FloatArray) -> Iterator[PricedMember]:
        """Yield the answer of each member in order; O(members) calls of the exact search."""
        members: Sequence[FleetMember] = self._rows.fleet.members
        if self._pool is None:
            for member in members:
                yield price_member(self._rows, member, prices)
            return
        with _without_interrupts():
            self._asked = [
                self._pool.submit(_price_batch, first, min(first + _BATCH, len(members)), prices)
                for first in range(0, len(members), _BATCH)
            ]
        for each in self._asked:
            yield from each.result()


def lagrangean_bound(rows: SharedRows, prices: FloatArray, priced: Sequence[PricedMember]) -> float:
    """Return Σ_d copies · least_d − Σ_rows price · capacity, rounded down: a proven bound.

    For any prices π >= 0 no plan of the fleet is below it: a plan within the capacities pays at
    most π · capacity, and each database at least its least objective plus price.
    """
    members = rows.fleet.members
    terms = [m.copies * each.least for m, each in zip(members, priced, strict=True)]
    if math.inf in terms:
        return math.inf
    terms += (-prices * rows.capacity).tolist()
    # products, prices of replicas and ways with prices have a few roundings, the sum has one
    error = 64 * np.finfo(np.float64).eps * math.fsum(map(abs, terms))
    return math.fsum(terms) - float(error)


def certify_priced(question: PricedQuestion) -> Mapping[str, object]:
    """Return a certificate of the least objective plus price of one database.

    The certifier ``exact`` of :data:`placement.proof.fleet_proof.CERTIFIERS`.

    Raises
    ------
    SolverError
        When the search ends without a certificate, which it does not without limits.
    """
    found = search(ReducedProblem(question.demand, question.rules, question.price))
    if found.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    if found.none is not None:
        return found.none.to_json()
    if found.certified is None:
        raise SolverError(f"pricing ended with {found.termination.value!r} and no certificate")
    return found.certified().to_json()
