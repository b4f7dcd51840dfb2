"""The one evaluator: the score of a configuration. Eq. 1 is written here and nowhere else.

    score(ℓ, V, R) = Σ_c ( A[c]·d(c, near) + B[c]·d(near, ℓ) + G[c]·d(c, ℓ) ) + D·q_ℓ(V)     (Eq. 1)

    near     = nearest(c, R): the replica of smallest d(c, ·), ties to the site first in `sites`
    q_ℓ(V)   = the m-th smallest of { d(ℓ, x) : x ∈ V }, the leader's own 0 included
    m        = majority(|V|) = ⌈(|V| + 1)/2⌉, unless a flexible quorum says otherwise

(Sharov et al., PVLDB 8(12), 2015, sections 3 and 4; with RTTs that vary by interval the sum runs
over the scenarios too. Operations with other waits than δ·q_ℓ, or with constants, add the sums of
:mod:`placement.evaluation.waits.wait_latency`.) Everything works on site indices; names are
crossed in the problem and the plan.

All terms are non-negative and the sums are pairwise, so two ways to the same score differ by a few
units in the last place. `TIE` is far above that, and far below a difference that matters to a user.
Scores within it of the best are ties. Ties go to the first configuration: by leader, then replicas,
then how close the voters are to the leader.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placement.evaluation.waits.wait_latency import wait_latency, waits_score
from placement.model.configuration import Configuration
from placement.model.demand import Demand
from placement.support.checks import FloatArray, IntArray

TIE = 1e-12
"""Scores this close, relatively, are the same score."""

_CHUNK = 4_000_000  # elements of the largest temporary of score_many: 32 MB


def cutoff(best: float) -> float:
    """Return the largest score that still ties with `best`."""
    return best * (1 + TIE) if best >= 0 else best * (1 - TIE)


def first_best(scores: npt.ArrayLike, axis: int = -1) -> IntArray:
    """Index of the first score that ties with the minimum along an axis."""
    array = np.asarray(scores, dtype=np.float64)
    best = array.min(axis=axis, keepdims=True)
    return np.asarray((array <= best * (1 + TIE)).argmax(axis=axis), dtype=np.intp)


def overhead(value: float, best: float) -> float:
    """Return the excess of `value` over `best`, in %; infinite beside a best of 0."""
    if value == best:
        return 0.0
    return (100 * value - 100 * best) / best if best else float("inf")


def closest_first(distances: FloatArray) -> IntArray:
    """Order of sites by (RTT, site order) along the last axis: the strict order ⪯ of the model."""
    return np.asarray(np.argsort(distances, axis=-1, kind="stable"), dtype=np.intp)


def nearest(client_rtt: FloatArray, replicas: npt.ArrayLike) -> IntArray:
    """Site index of every client's nearest replica; RTTs of shape (..., clients, sites)."""
    ordered = np.sort(np.asarray(replicas, dtype=np.intp))
    # argmin takes the first of equals, and the columns stand in site order: that is the tie rule.
    return np.asarray(ordered[client_rtt[..., ordered].argmin(axis=-1)], dtype=np.intp)


def quorum_latency(
    site_rtt: FloatArray, leader: npt.ArrayLike, voters: npt.ArrayLike, quorum: int
) -> FloatArray:
    """q_ℓ(V) in ms, the m-th smallest RTT from each leader to its voters; shapes (n,), (n, v)."""
    leaders = np.asarray(leader, dtype=np.intp)
    waits = site_rtt[leaders[..., np.newaxis], np.asarray(voters, dtype=np.intp)]
    return np.asarray(np.partition(waits, quorum - 1, axis=-1)[..., quorum - 1])


def score_terms(
    demand: Demand, one: Configuration, quorum: int
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return the RTTs that enter Eq. 1, in ms: (near, relay, direct, quorum).

    The first three have shape (scenarios, clients), the last (scenarios,).
    """
    asked = (one.leader, one.voters, one.replicas, quorum)
    parts = [_scenario_terms(demand, k, *asked) for k in range(demand.scenarios)]
    near, relay, direct, waits = (np.array(part) for part in zip(*parts, strict=True))
    return near, relay, direct, waits


def _scenario_terms(
    demand: Demand,
    scenario: int,
    leader: int,
    voters: npt.ArrayLike,
    replicas: npt.ArrayLike,
    quorum: int,
) -> tuple[FloatArray, FloatArray, FloatArray, np.float64]:
    """Return the RTT terms of Eq. 1 for one scenario, shapes (clients,) and ()."""
    rtt, between = demand.client_rtt[scenario], demand.site_rtt[scenario]
    ordered = np.array(replicas, dtype=np.intp)
    ordered.sort()
    columns = rtt.take(ordered, axis=1)
    nearest_at = columns.argmin(axis=1)  # the first of equals, in site order: see `nearest`
    waits = between[leader].take(np.array(voters, dtype=np.intp))
    waits.partition(quorum - 1)
    width = len(ordered)
    return (
        columns.ravel().take(nearest_at + np.arange(0, columns.size, width)),
        between[ordered, leader].take(nearest_at),
        rtt[:, leader],
        waits[quorum - 1],
    )


def score(
    demand: Demand,
    leader: int,
    voters: npt.ArrayLike,
    replicas: npt.ArrayLike,
    quorum: int,
) -> float:
    """Eq. 1 for one configuration, in ms·operations; O(C·|R|) per scenario.

    Bit for bit what :func:`score_many` gives for the same row.
    """
    total = 0.0
    for k in range(demand.scenarios):
        near, relay, direct, wait = _scenario_terms(demand, k, leader, voters, replicas, quorum)
        per_client = demand.near[k] * near + demand.relay[k] * relay + demand.direct[k] * direct
        total += float(np.add.reduce(per_client) + demand.quorum[k] * wait)
    if demand.has_waits:
        one, waited = _rows(leader, voters, replicas), 0.0
        for k in range(demand.scenarios if demand.waits else 0):
            closest = np.zeros((1, 0), dtype=np.intp)  # only those who wait there need it
            if any(term.origin == "near" for term in demand.waits):
                closest = nearest(demand.client_rtt[k], one[2][0])[np.newaxis]
            waited += float(waits_score(demand, k, *one, closest, quorum)[0])
        total = total + waited + demand.constant
    return total


def _rows(
    leader: int, voters: npt.ArrayLike, replicas: npt.ArrayLike
) -> tuple[IntArray, IntArray, IntArray]:
    """Return one configuration as arrays with one row."""
    return (
        np.array([leader], dtype=np.intp),
        np.array([voters], dtype=np.intp),
        np.sort(np.array([replicas], dtype=np.intp)),
    )


def score_many(
    demand: Demand,
    leaders: npt.ArrayLike,
    voters: npt.ArrayLike,
    replicas: npt.ArrayLike,
    quorum: int,
) -> FloatArray:
    """Eq. 1 for n configurations, shapes (n,), (n, v), (n, r); ms·operations, shape (n,).

    O(n·C·r) time; memory is bounded by working in blocks.
    """
    leader = np.asarray(leaders, dtype=np.intp)
    voter = np.asarray(voters, dtype=np.intp)
    replica = np.sort(np.asarray(replicas, dtype=np.intp), axis=-1)
    clients = demand.client_rtt.shape[1]
    block = max(1, _CHUNK // (clients * replica.shape[1]))
    total = np.zeros(len(leader))
    for first in range(0, len(leader), block):
        rows = slice(first, first + block)
        part = np.zeros(len(leader[rows]))
        waited = np.zeros(len(part))
        for k in range(demand.scenarios):
            by_site = np.ascontiguousarray(demand.client_rtt[k].T)
            distances = by_site[replica[rows]]  # (n, r, C)
            position = distances.argmin(axis=1)  # first of equals, in site order
            near = np.take_along_axis(replica[rows], position, axis=1)  # (n, C)
            to_near = np.take_along_axis(distances, position[:, np.newaxis], axis=1)[:, 0]
            chosen = leader[rows]
            per_client = (
                demand.near[k] * to_near
                + demand.relay[k] * demand.site_rtt[k][near, chosen[:, np.newaxis]]
                + demand.direct[k] * by_site[chosen]
            )
            waits = quorum_latency(demand.site_rtt[k], chosen, voter[rows], quorum)
            part += per_client.sum(axis=-1) + demand.quorum[k] * waits
            if demand.waits:
                world = (demand, k, chosen, voter[rows], replica[rows], near, quorum)
                waited += waits_score(*world)
        total[rows] = part + waited + demand.constant if demand.has_waits else part
    return total


def leader_scores(
    near: FloatArray,
    relay: FloatArray,
    direct: FloatArray,
    quorum: FloatArray,
    client_rtt: FloatArray,
    site_rtt: FloatArray,
    replicas: npt.ArrayLike,
    leaders: npt.ArrayLike,
    waits: npt.ArrayLike,
) -> FloatArray:
    """Eq. 1 for every candidate leader of many workloads that share replicas: one matrix product.

    A, B, G have shape (..., C) and D shape (...); RTTs are those of one scenario; `waits` are q_ℓ
    in ms of each of the L leaders. Returns shape (..., L). O(N·C·L) for N workloads, in BLAS; equal
    to :func:`score` to rounding, not bit for bit.
    """
    candidates = np.asarray(leaders, dtype=np.intp)
    sites = nearest(client_rtt, replicas)
    to_near = np.take_along_axis(client_rtt, sites[:, np.newaxis], axis=1)[:, 0]
    relayed = site_rtt[sites[:, np.newaxis], candidates]  # (C, L)
    return np.asarray(
        (near @ to_near)[..., np.newaxis]
        + relay @ relayed
        + direct @ client_rtt[:, candidates]
        + np.asarray(quorum)[..., np.newaxis] * np.asarray(waits)
    )


def latency_parts(
    demand: Demand, one: Configuration, quorum: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Trips to the nearest replica, trips to the leader, and waits of every operation, in ms.

    α·d(c, near), β·d(near, ℓ) + γ·d(c, ℓ), and δ·q_ℓ with the other waits; each of shape
    (scenarios, clients, operations).
    """
    near, relay, direct, votes = (
        term[..., np.newaxis] for term in score_terms(demand, one, quorum)
    )
    alpha, beta, gamma, delta = demand.coefficients.T
    waiting = np.broadcast_to(votes[:, np.newaxis] * delta, (*near.shape[:2], len(delta)))
    for times, each in zip(demand.times.T, wait_latencies(demand, one, quorum), strict=True):
        waiting = waiting + np.where(times > 0, times * each[..., np.newaxis], 0.0)
    return near * alpha, relay * beta + direct * gamma, waiting


def operation_latency(demand: Demand, one: Configuration, quorum: int) -> FloatArray:
    """t(c) of every operation in ms, shape (scenarios, clients, operations).

    The sum of :func:`latency_parts` and of the constants, the summand of Eq. 1 before counting:
    Σ counts · operation_latency is the score, to rounding.
    """
    near, led, waiting = latency_parts(demand, one, quorum)
    return near + led + waiting + (demand.constants if demand.has_waits else 0.0)


def wait_latencies(demand: Demand, one: Configuration, quorum: int) -> list[FloatArray]:
    """Return how long each wait of the demand lasts, ms: each of shape (scenarios, clients)."""
    rows = _rows(one.leader, one.voters, one.replicas)
    shape = demand.counts.shape[1:2]
    found = []
    for term in demand.waits:
        each = []
        for rtt, between in zip(demand.client_rtt, demand.site_rtt, strict=True):
            closest = nearest(rtt, one.replicas)[np.newaxis]
            latency = wait_latency(term, rtt, between, *rows, closest, quorum)[0]
            each.append(np.broadcast_to(latency, shape))
        found.append(np.array(each))
    return found
