"""Configurations of many keys as rows: the pure function over a batch, and their CSV form."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields, replace

import numpy as np

from formulations.quorumstore.enumeration.enumeration import Enumeration
from formulations.quorumstore.enumeration.nearest_sites import SetTables
from placement.quorumstore import QuorumProblem, structural_reasons
from placement.quorumstore.problem import CountArray
from placement.support.status import Status, Termination

__all__ = ["NO_REQUESTS", "KeyRow", "canonical", "row_names", "solve_batch", "to_csv"]

NO_REQUESTS = "no requests"
"""Status of a key without requests."""


@dataclass(frozen=True, slots=True)
class KeyRow:
    """Configuration of one key.

    Attributes
    ----------
    key, status
        Name; ``optimal``, ``infeasible`` or ``no requests``.
    value
        Value of the goal.
    replicas
        Names of the sites, joined by ";", in site order.
    n, r, w
        N, R, W.
    normal_read_ms, normal_write_ms, worst_read_ms, worst_write_ms
        Thresholds in normal operation, and their largest values over all losses.
    mean_ms
        Mean latency in normal operation.
    cost
        Price of traffic and storage; 0 without prices.
    """

    key: str
    status: str
    value: float | None = None
    replicas: str = ""
    n: int | None = None
    r: int | None = None
    w: int | None = None
    normal_read_ms: float | None = None
    normal_write_ms: float | None = None
    worst_read_ms: float | None = None
    worst_write_ms: float | None = None
    mean_ms: float | None = None
    cost: float | None = None

    def named(self, key: str) -> KeyRow:
        """Return this row for another key."""
        return replace(self, key=key)


def row_names() -> tuple[str, ...]:
    """Column names, in order."""
    return tuple(entry.name for entry in fields(KeyRow))


def canonical(
    problem: QuorumProblem, reads: CountArray, writes: CountArray
) -> tuple[CountArray, CountArray]:
    """Reduce each key's demand so that keys with proportional demand become equal.

    Percentiles and means do not change when all counts of a key are divided by their greatest
    common divisor. With prices the scale matters, and the demand stays as it is.

    Parameters
    ----------
    reads, writes
        Shape (k, sites).
    """
    if problem.prices is not None:
        return reads, writes
    both = np.concatenate([reads, writes], axis=1)
    divisor = np.maximum(np.gcd.reduce(both, axis=1), 1)[:, np.newaxis]
    return reads // divisor, writes // divisor


def solve_batch(
    problem: QuorumProblem, reads: CountArray, writes: CountArray
) -> tuple[KeyRow, ...]:
    """Return the optimal configuration of every key of a batch: a pure function.

    Parameters
    ----------
    problem
        The store: RTTs, rules, goal. Its own demand is not used.
    reads, writes
        Requests per key, shape (k, sites).

    Returns
    -------
    One row per key, in order, without a name.
    """
    possible = not structural_reasons(problem)
    solver = Enumeration(SetTables.of(problem) if possible else SetTables.empty(problem))
    rows = []
    for key_reads, key_writes in zip(reads, writes, strict=True):
        if not (key_reads.any() or key_writes.any()):
            rows.append(KeyRow("", NO_REQUESTS))
            continue
        key = problem.with_demand(key_reads, key_writes)
        plan = solver.solve(key)
        if plan.termination is Termination.INTERRUPTED:
            # The best so far of one key is no answer for a table; its batch is solved again.
            raise KeyboardInterrupt
        found = plan.configuration
        if found is None:
            rows.append(KeyRow("", str(Status.INFEASIBLE)))
            continue
        figures = plan.figures
        rows.append(
            KeyRow(
                "",
                str(plan.status),
                plan.value,
                ";".join(plan.replicas),
                found.size,
                found.read,
                found.write,
                float(figures.normal_read[0]),
                float(figures.normal_write[0]),
                float(figures.worst_read[0]),
                float(figures.worst_write[0]),
                float(figures.mean[0]),
                float(figures.cost[0]),
            )
        )
    return tuple(rows)


def to_csv(rows: Iterable[KeyRow], *, header: Sequence[str] = ()) -> bytes:
    """Rows as UTF-8 CSV; floats in their shortest exact form, missing values empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if header:
        writer.writerow(header)
    for row in rows:
        writer.writerow("" if value is None else value for value in astuple(row))
    return text.getvalue().encode()
