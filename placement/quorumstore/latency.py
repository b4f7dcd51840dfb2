"""Latency of configurations in normal operation and under every loss: the one evaluator.

Everything is vectorised over k replica sets of one size N. Let v_1 <= … <= v_N be the sorted RTTs
of client i to the set (ties by site index). The R-th smallest after losing the replica at f is

    v_{R+1} if f is among the R nearest, else v_R                      ("P6", no sorting again)

and for larger losses the R-th survivor in the same order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
import numpy.typing as npt

from placement.quorumstore.problem import (
    CountArray,
    Goal,
    LossScope,
    Metrics,
    QuorumProblem,
    Redirect,
)
from placement.support.checks import FloatArray, IntArray

_CELLS = 1_000_000
"""Latencies of scenarios looked at together."""


@dataclass(frozen=True, slots=True, eq=False)
class SortedSets:
    """RTTs of every client to k replica sets, nearest first.

    Parameters
    ----------
    rtt
        Sorted RTTs, shape (clients, k, N).
    site
        Which replica that is, same shape.
    """

    rtt: FloatArray
    site: IntArray

    @classmethod
    def of(cls, problem: QuorumProblem, sets: IntArray) -> SortedSets:
        """Sort `sets` (rows of increasing site indices, shape (k, N)) for every client.

        O(n·k·N log N).
        """
        raw = problem.rtt[:, sets]
        order = np.argsort(raw, axis=2, kind="stable")
        shape = raw.shape
        return cls(
            np.take_along_axis(raw, order, axis=2),
            np.take_along_axis(np.broadcast_to(sets, shape), order, axis=2),
        )

    def normal(self, quorum: int) -> FloatArray:
        """L_i for each client and set: the `quorum`-th smallest RTT, shape (clients, k)."""
        if quorum > self.rtt.shape[2]:
            return np.full(self.rtt.shape[:2], np.inf)
        return self.rtt[:, :, quorum - 1]


def threshold(latency: FloatArray, counts: CountArray, needed: int) -> FloatArray:
    """Weighted percentile: smallest T that at least `needed` requests lie within.

    Parameters
    ----------
    latency
        Shape (clients, k).
    counts
        Requests per client, shape (clients,).
    needed
        Requests that must be within T; 0 makes T = 0.

    Returns
    -------
    Shape (k,); always an element of `latency`, or 0.

    Notes
    -----
    O(k · n log n). All requests of a client have the same latency, so a client is within T or not
    as a whole.
    """
    if needed == 0:
        return np.zeros(latency.shape[1])
    active = np.flatnonzero(counts)
    rows = latency[active]
    order = np.argsort(rows, axis=0, kind="stable")
    covered = np.cumsum(counts[active][order], axis=0)
    place = np.argmax(covered >= needed, axis=0)
    picked = np.take_along_axis(order, place[np.newaxis], axis=0)
    values: FloatArray = np.take_along_axis(rows, picked, axis=0)[0]
    return values


def _of_survivors(ordered: SortedSets, quorum: int, lost: IntArray) -> FloatArray:
    """Latency where clients stay, of the replicas that are left, shape (clients, losses, k).

    `lost` has the shape (sites of a loss, losses, k or 1). Infinite where too few survive.
    """
    alive = np.ones((len(ordered.site), lost.shape[1], *ordered.site.shape[1:]), dtype=bool)
    for site in lost:
        alive &= ordered.site[:, np.newaxis] != site[..., np.newaxis]
    survivors = np.cumsum(alive, axis=3)
    place = np.argmax(survivors >= quorum, axis=3)[..., np.newaxis]
    latency = np.take_along_axis(ordered.rtt[:, np.newaxis], place, axis=3)[..., 0]
    return np.where(survivors[..., -1] >= quorum, latency, np.inf)


def _latency_after(
    problem: QuorumProblem, ordered: SortedSets, quorum: int, lost: IntArray
) -> FloatArray:
    """Latency of every client after each loss, with redirection; shape (clients, losses, k).

    Infinite where too few replicas survive. O(clients·losses·k·N) memory: for some losses at a
    time.
    """
    latency = _of_survivors(ordered, quorum, lost.T[..., np.newaxis])
    if not problem.redirects:
        return latency
    stayed = latency.copy()
    every = np.arange(len(lost))
    order = np.argsort(problem.rtt, axis=1, kind="stable")[:, : lost.shape[1] + 1]
    for column in lost.T:
        some = every[column >= 0]
        site = column[some]
        # The closest survivor is the first of the site's order that is not lost itself.
        gone = (order[site][:, :, np.newaxis] == lost[some][:, np.newaxis]).any(axis=2)
        survivor = order[site, np.argmin(gone, axis=1)]
        hop = np.zeros(len(some))
        if problem.rules.redirect is Redirect.HOP:
            hop = problem.rtt[site, survivor]
        latency[site, some] = hop[:, np.newaxis] + stayed[survivor, some]
    return latency


def loss_thresholds(
    problem: QuorumProblem, sets: IntArray, read: int, write: int
) -> tuple[FloatArray, FloatArray]:
    """T_r and T_w of each set in normal operation (row 0) and under each loss (rows 1, 2, …).

    Parameters
    ----------
    sets
        Rows of increasing site indices, shape (k, N).
    read, write
        R and W.

    Returns
    -------
    Two arrays of shape (1 + len(problem.losses), k), infinite where no quorum survives for enough
    requests.
    """
    ordered = SortedSets.of(problem, sets)
    width = max((len(lost) for lost in problem.losses), default=0)
    padded = [lost + (-1,) * (width - len(lost)) for lost in problem.losses]
    lost = np.array(padded, dtype=np.intp).reshape(len(padded), width)
    step = max(1, _CELLS // max(1, ordered.site.size))
    every = []
    for quorum, counts, needed in (
        (read, problem.reads, problem.needed_reads),
        (write, problem.writes, problem.needed_writes),
    ):
        values = [threshold(ordered.normal(quorum), counts, needed)[np.newaxis]]
        for low in range(0, len(lost), step):
            latency = _latency_after(problem, ordered, quorum, lost[low : low + step])
            # All scenarios side by side: one percentile for each column.
            columns = threshold(latency.reshape(len(latency), -1), counts, needed)
            values.append(columns.reshape(latency.shape[1:]))
        every.append(np.concatenate(values))
    return every[0], every[1]


def worst_thresholds(
    problem: QuorumProblem, sets: IntArray, ordered: SortedSets, read: int, write: int
) -> tuple[FloatArray, FloatArray]:
    """Largest T_r and T_w of each set over normal operation and all losses, shape (k,) each.

    The same as the maxima of :func:`loss_thresholds`, at a fraction of the work in two cases. If
    single sites are lost, only the N losses of a replica change more than one client's latency. The
    loss of another site matters only if moving its own clients breaks the percentile reached so
    far. If several sites are lost and clients stay, losing another replica as well never helps: the
    C(N, F) ways to lose F replicas include the worst.
    """
    rules, single = problem.rules, problem.rules.loss is LossScope.SITE
    few = single and 1 < rules.failures < sets.shape[1] and not problem.redirects
    if not few and (not single or rules.failures != 1):
        every_read, every_write = loss_thresholds(problem, sets, read, write)
        return every_read.max(axis=0), every_write.max(axis=0)
    worst = _worst_of_replicas if few else _worst_side
    return (
        worst(problem, sets, ordered, read, problem.reads, problem.needed_reads),
        worst(problem, sets, ordered, write, problem.writes, problem.needed_writes),
    )


def _worst_of_replicas(
    problem: QuorumProblem,
    sets: IntArray,
    ordered: SortedSets,
    quorum: int,
    counts: CountArray,
    needed: int,
) -> FloatArray:
    """Largest threshold over the loss of any F replicas, clients staying where they are."""
    if needed == 0:
        return np.zeros(len(sets))
    lost = np.array(list(combinations(sets.T, problem.rules.failures))).transpose(1, 0, 2)
    latency = _of_survivors(ordered, quorum, lost)
    values = threshold(latency.reshape(len(counts), -1), counts, needed)
    worst: FloatArray = values.reshape(lost.shape[1:]).max(axis=0)
    return worst


def _worst_side(
    problem: QuorumProblem,
    sets: IntArray,
    ordered: SortedSets,
    quorum: int,
    counts: CountArray,
    needed: int,
) -> FloatArray:
    width, size = sets.shape
    if needed == 0 or not problem.losses:
        return threshold(ordered.normal(quorum), counts, needed)
    active = np.flatnonzero(counts)
    requests = counts[active]
    base = ordered.normal(quorum)
    spare = ordered.normal(quorum + 1)
    nearest = ordered.site[:, :, :quorum]
    row_of = np.full(len(counts), -1, dtype=np.intp)
    row_of[active] = np.arange(len(active))
    others = problem.rtt.copy()
    np.fill_diagonal(others, np.inf)
    survivor = np.argmin(others, axis=1)
    hop = np.zeros(len(counts))
    if problem.rules.redirect is Redirect.HOP:
        hop = others.min(axis=1)

    # Normal operation, then the loss of each member; clients of the others stay as they are.
    latency = np.empty((len(active), 1 + size, width))
    latency[:, 0] = base[active]
    hit = (nearest[active][:, np.newaxis] == sets.T[np.newaxis, :, :, np.newaxis]).any(axis=3)
    latency[:, 1:] = np.where(hit, spare[active][:, np.newaxis], base[active][:, np.newaxis])
    if problem.redirects:
        number, which = np.nonzero(row_of[sets.T] >= 0)
        site = sets[which, number]
        target = survivor[site]
        lost_there = (nearest[target, which] == site[:, np.newaxis]).any(axis=1)
        after = np.where(lost_there, spare[target, which], base[target, which])
        latency[row_of[site], 1 + number, which] = hop[site] + after
    values = threshold(latency.reshape(len(active), -1), requests, needed)
    worst: FloatArray = values.reshape(size + 1, width).max(axis=0)
    if not problem.redirects:
        return worst

    moved = hop[active, np.newaxis] + base[survivor[active]]
    inside = base[active] <= worst
    change = ((moved <= worst).astype(np.int64) - inside) * requests[:, np.newaxis]
    broken = requests @ inside + change < needed
    broken &= ~(active[:, np.newaxis, np.newaxis] == sets[np.newaxis]).any(axis=2)
    for row in np.flatnonzero(broken.any(axis=1)):
        some = np.flatnonzero(broken[row])
        scenario = base[np.ix_(active, some)]
        scenario[row] = moved[row, some]
        worst[some] = np.maximum(worst[some], threshold(scenario, requests, needed))
    return worst


def metrics(
    problem: QuorumProblem,
    sets: npt.ArrayLike,
    read: int,
    write: int,
    *,
    losses: bool | None = None,
) -> Metrics:
    """Figures of k replica sets of one size under one (R, W).

    Parameters
    ----------
    sets
        Rows of increasing site indices, shape (k, N).
    read, write
        R and W.
    losses
        Whether the worst scenario is computed; None: only where the rules ask for contingency.

    Notes
    -----
    O(k·n·N log N) without losses, N times the percentiles with the loss of single sites. Sums run
    over clients in index order, so the bits do not depend on k.
    """
    rows = np.asarray(sets, dtype=np.intp)
    ordered = SortedSets.of(problem, rows)
    read_latency, write_latency = ordered.normal(read), ordered.normal(write)
    normal_read = threshold(read_latency, problem.reads, problem.needed_reads)
    normal_write = threshold(write_latency, problem.writes, problem.needed_writes)
    worst_read, worst_write = normal_read, normal_write
    if problem.rules.contingency if losses is None else losses:
        worst_read, worst_write = worst_thresholds(problem, rows, ordered, read, write)
    # Reads and writes of a client one after the other; a running sum keeps to that order.
    counts = np.stack([problem.reads, problem.writes], axis=1).ravel()
    some = np.flatnonzero(counts)
    latency = np.stack([read_latency, write_latency], axis=1).reshape(len(counts), -1)[some]
    total: FloatArray = np.add.accumulate(counts[some, np.newaxis] * latency, axis=0)[-1]
    mean = total / (problem.total_reads + problem.total_writes)
    return Metrics(normal_read, normal_write, worst_read, worst_write, mean)


def full_replication_bound(
    problem: QuorumProblem, goal: Goal | None = None, pair: tuple[int, int, int] | None = None
) -> float:
    """Value of the goal if every site held a replica, bounds left aside.

    For fixed (R, W) another replica never raises an order statistic, and under contingency the set
    after a loss only grows: so no set of N replicas has a smaller value ("P3").

    Parameters
    ----------
    problem
        The key.
    goal
        Another goal than the problem's.
    pair
        (N, R, W); None: the least over all pairs of the problem.

    Returns
    -------
    The bound; ∞ where there is no pair.
    """
    goal = goal or problem.goal
    free = replace(goal, read_bound=math.inf, write_bound=math.inf)
    everywhere = np.arange(len(problem.sites))[np.newaxis]
    values = (
        free.values(metrics(problem, everywhere, read, write), problem.rules.contingency)[0]
        for _, read, write in (problem.pairs if pair is None else (pair,))
    )
    return min(map(float, values), default=math.inf)
