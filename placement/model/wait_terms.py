"""Waits of all operations of an instance, weighted with the demand: what Eq. 1 adds for them.

    score += Σ_j Σ_c weight_j[c] · wait_j(origin of c)  +  Σ n · constant

Waits that differ only in their times are one term: their weights add up.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError
from placement.model.operations import Operation
from placement.model.waits import Clause, Origin, Wait
from placement.support.checks import FloatArray, IntArray

if TYPE_CHECKING:
    from placement.model.instance import Instance

__all__ = ["WaitTerm", "wait_terms", "wait_times"]


@dataclass(frozen=True, eq=False)
class WaitTerm:
    """A distinct wait of an instance, with the rounds that the demand asks for.

    Attributes
    ----------
    wait
        Origin and clauses; its times are 1.
    labels
        For each clause the domain number of every site at its level, shape (sites,); None where
        the clause is about all members.
    weight
        Rounds per scenario and client, weighted with the decay, shape (scenarios, clients).
    """

    wait: Wait
    labels: tuple[IntArray | None, ...]
    weight: FloatArray

    @property
    def origin(self) -> Origin:
        """Return who waits."""
        return self.wait.origin

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """Return the clauses that end the wait."""
        return self.wait.clauses


def wait_times(operations: Sequence[Operation]) -> tuple[tuple[Wait, ...], FloatArray]:
    """Return the distinct waits, and how often each operation waits them, (operations, waits).

    The waits are in the order in which the operations name them.
    """
    found: dict[str, Wait] = {}
    for operation in operations:
        for wait in operation.waits:
            assert isinstance(wait, Wait)  # text was read when the operation was made
            found.setdefault(wait.asked, Wait(wait.origin, wait.clauses))
    place = {asked: j for j, asked in enumerate(found)}
    times = np.zeros((len(operations), len(found)))
    for row, operation in enumerate(operations):
        for wait in operation.waits:
            assert isinstance(wait, Wait)
            times[row, place[wait.asked]] += wait.times
    return tuple(found.values()), times


def wait_terms(
    instance: Instance, operations: Sequence[Operation], counts: FloatArray
) -> tuple[WaitTerm, ...]:
    """Return the distinct waits of some operations with their weights.

    Parameters
    ----------
    instance
        Its failure domains are read.
    operations
        What is counted.
    counts
        Weighted counts, shape (scenarios, clients, operations).

    Raises
    ------
    InputError
        For a level that the instance does not know, or where a site has no domain.
    """
    waits, times = wait_times(operations)
    return tuple(
        WaitTerm(
            wait,
            tuple(_labels(instance, clause) if clause.scope else None for clause in wait.clauses),
            counts @ times[:, j],
        )
        for j, wait in enumerate(waits)
    )


def _labels(instance: Instance, clause: Clause) -> IntArray:
    """Return the domain number of every site at the level of a clause."""
    labels = instance.labels(clause.level)
    for site, label in zip(instance.sites, labels, strict=True):
        if label is None:
            raise InputError(
                f"site {site!r} has no {clause.level}, which the clause '{clause}' needs",
                field=f"domains[{clause.level!r}]",
                expected=f"a {clause.level} for every site",
            )
    return np.unique(np.array(labels, dtype=str), return_inverse=True)[1].astype(np.intp)
