"""Cost of dynamic copies: the only place where the objective is written."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.errors import InputError
from placement.online.dynamic.problem import ReplicationProblem
from placement.support.checks import BoolArray, FloatArray

__all__ = ["Evaluation", "base_cost", "checked_copies", "evaluate", "read_rtt"]


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Cost of a set of dynamic copies.

    Attributes
    ----------
    cost
        The objective of :class:`ReplicationProblem`.
    read_cost
        Its first part, Σ reads · RTT.
    mean_read_rtt
        `read_cost` per read, in ms; 0 when nothing is read.
    mean_latency
        RTT in ms per read, which is `mean_read_rtt` unless copies are chosen by another metric.
    write_cost
        Its second part.
    replicas
        Dynamic copies at each site, shape (sites,).
    overfull
        Sites that hold more than their capacity, increasing.
    """

    cost: float
    read_cost: float
    mean_read_rtt: float
    mean_latency: float
    write_cost: float
    replicas: npt.NDArray[np.int64]
    overfull: tuple[int, ...]


def base_cost(problem: ReplicationProblem) -> float:
    """Cost without dynamic copies, the reference of every saving."""
    return evaluate(problem, np.zeros(problem.static.shape, dtype=bool)).cost


def read_rtt(problem: ReplicationProblem, copies: BoolArray) -> FloatArray:
    """RTT in ms that a read of o at site i takes, shape (sites, objects).

    O(Σ_i |preferred_i| · objects).
    """
    result: FloatArray = problem.static_rtt.copy()
    for site, row in enumerate(problem.geography.preferred):
        for j in row:
            distance = problem.geography.rtt[site, j]
            np.minimum(result[site], np.where(copies[j], distance, np.inf), out=result[site])
    return result


def evaluate(problem: ReplicationProblem, copies: npt.ArrayLike) -> Evaluation:
    """Evaluate dynamic copies, shape (sites, objects); a site may be overfull.

    Raises
    ------
    InputError
        For another shape, or a dynamic copy where there is a static one.
    """
    dynamic = checked_copies(problem, copies)
    read_cost = float((problem.reads * read_rtt(problem, dynamic)).sum())
    write_cost = float(problem.forward_cost[dynamic].sum())
    if problem.wait is not None:
        waits = np.where(dynamic | problem.static, problem.wait, 0.0).max(axis=0)
        write_cost += float(problem.write_rates @ waits)
    replicas = dynamic.sum(axis=1, dtype=np.int64)
    over = np.flatnonzero(replicas > problem.capacity)
    return Evaluation(
        read_cost + write_cost,
        read_cost,
        read_cost / problem.total_reads if problem.total_reads else 0.0,
        _mean_latency(problem, dynamic, read_cost),
        write_cost,
        replicas,
        tuple(int(site) for site in over),
    )


def _mean_latency(problem: ReplicationProblem, copies: BoolArray, read_cost: float) -> float:
    """Return the RTT per read; of copies that are as good by the metric the closest serves."""
    geography, reads = problem.geography, problem.total_reads
    if not reads:
        return 0.0
    if geography.latency is None:
        return read_cost / reads
    best, total = read_rtt(problem, copies), 0.0
    for site, row in enumerate(geography.preferred):
        delay = np.full(problem.objects, np.inf)
        for j in range(geography.count):
            held = problem.static[j] | copies[j] if j in row else problem.static[j]
            serves = held & (geography.rtt[site, j] == best[site])
            np.minimum(delay, np.where(serves, geography.latency[site, j], np.inf), out=delay)
        total += float(problem.reads[site] @ delay)
    return total / reads


def checked_copies(problem: ReplicationProblem, copies: npt.ArrayLike) -> BoolArray:
    """Return `copies` as booleans, checked for shape and against the static copies."""
    dynamic = np.asarray(copies, dtype=bool)
    if dynamic.shape != problem.static.shape:
        raise InputError(
            "wrong shape",
            field="copies",
            value=dynamic.shape,
            expected=f"{problem.static.shape}",
        )
    both = dynamic & problem.static
    if both.any():
        site, thing = (int(axis[0]) for axis in np.nonzero(both))
        raise InputError(
            f"a dynamic copy of object {thing} where there is a static one",
            field="copies",
            value=problem.geography.sites[site],
            expected="a site without a static copy",
        )
    return dynamic
