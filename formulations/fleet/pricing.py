"""Pricing: the best configuration of each database at given prices of the shared limits.

In this process, or by workers (:mod:`formulations.fleet.pricing_workers`), with the same answers,
which a checkpoint keeps (:mod:`formulations.fleet.checkpoints`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Self

import numpy as np

from formulations.fleet.checkpoints import Checkpoint
from formulations.fleet.price_member import PricedMember, price_member
from formulations.fleet.pricing_workers import (
    BATCH,
    BatchWorkers,
    DaskWorkers,
    PricedBatch,
    ProcessWorkers,
    batches_of,
)
from placement.fleet.shared_rows import SharedRows
from placement.support.checks import FloatArray

__all__ = ["Pricer", "lagrangean_bound"]


class Pricer:
    """Prices all databases of a fleet, here or by workers; a context manager.

    Parameters
    ----------
    rows
        The shared limits of the fleet.
    processes
        How many; 1: no other process is started.
    dask
        Address of the scheduler of a Dask cluster, whose workers take the place of processes.
    checkpoint
        Where answers are kept, and read where they are there.

    Raises
    ------
    InputError, MissingDependencyError
        As :class:`~formulations.fleet.pricing_workers.DaskWorkers`.
    """

    def __init__(
        self,
        rows: SharedRows,
        processes: int = 1,
        *,
        dask: str | None = None,
        checkpoint: Checkpoint | None = None,
    ) -> None:
        self._rows = rows
        self._processes, self._dask, self._checkpoint = processes, dask, checkpoint
        self._passes = 0
        self._workers: BatchWorkers | None = None
        if dask is not None:
            self._workers = DaskWorkers(rows.fleet, dask)
        elif processes > 1 and len(rows.fleet.members) > BATCH:
            self._workers = ProcessWorkers(rows.fleet, processes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._workers is not None:
            self._workers.close()

    def for_rows(self, rows: SharedRows) -> Pricer:
        """Return a pricer of the same kind for a sample of the fleet; the caller closes it."""
        kept = self._checkpoint
        return Pricer(
            rows,
            self._processes,
            dask=self._dask,
            checkpoint=None if kept is None else kept.of_sample(rows.fleet),
        )

    def price(self, prices: FloatArray) -> Iterator[PricedMember]:
        """Yield the answer of each member in order; O(members) calls of the exact search.

        `prices` has shape (rows,), or (batches, rows) if prices differ between batches.
        Batches are kept in order, so that those of a search that was killed are the first ones.

        Raises
        ------
        SolverError
            When workers are lost again and again.
        """
        number, kept = self._passes, self._checkpoint
        self._passes += 1
        batches = batches_of(len(self._rows.fleet.members))
        of_batch = np.broadcast_to(prices, (len(batches), len(self._rows.capacity)))
        todo = [(*batch, own) for batch, own in zip(batches, of_batch, strict=True)]
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
            for member in self._rows.fleet.members[first:last]:
                priced.append(price_member(self._rows, member, prices))
                yield priced[-1]
            if self._checkpoint:
                self._checkpoint.save(number, first, prices, priced)


def lagrangean_bound(
    rows: SharedRows,
    prices: FloatArray,
    priced: Sequence[PricedMember],
    *,
    copies: FloatArray | None = None,
    room: FloatArray | None = None,
) -> float:
    """Return Σ_d copies · least_d − Σ_rows price · capacity, rounded down: a proven bound.

    A sample of a fleet has `copies` that each database stands for, and a `room` in place of the
    capacities; its number proves nothing of the fleet.

    For any prices π >= 0 no plan of the fleet is below it: a plan within the capacities pays at
    most π · capacity, and each database at least its least objective plus price.
    """
    many = [m.copies for m in rows.fleet.members] if copies is None else copies.tolist()
    terms = [number * each.least for number, each in zip(many, priced, strict=True)]
    if math.inf in terms:
        return math.inf
    terms += (-prices * (rows.capacity if room is None else room)).tolist()
    # products, prices of replicas and ways with prices have a few roundings, the sum has one
    error = 64 * np.finfo(np.float64).eps * math.fsum(map(abs, terms))
    return math.fsum(terms) - float(error)
