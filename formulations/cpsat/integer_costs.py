"""Integer costs of every decision under a leader, and the loss by rounding milliseconds.

CP-SAT supports integers only. The natural unit is the microsecond·operation (scale 1000 per
ms·operation): RTTs in whole microseconds and whole counts are exact there. Other data take a finer
unit, by powers of ten, until the worst rounding error of any configuration is below a relative
1e-11. They take a coarser unit until the sum of all coefficients is below `LIMIT`. The remaining
error is computed, not assumed, and is taken off every bound.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from placement.evaluation.score import closest_first
from placement.evaluation.waits.wait_rows import LeaderWait, RoleRow, leader_waits
from placement.problem import Problem
from placement.support.checks import FloatArray, IntArray

LIMIT = 2.0**53
"""Largest sum of coefficients: far from wrapping (2^63), and every bound is exact as a double."""

_START = 1000.0  # microsecond·operations
_FINEST = 1e30  # the limit on the sum ends the refinement long before, unless all costs are zero
_TARGET = 1e-11  # relative rounding error to reach: a hundredth of what "optimal" tolerates
_NOISE = 2.0**-50  # of the evaluator and of these sums: a few units in the last place


@dataclass(frozen=True, eq=False)
class Chain:
    """The sites that can serve a client, nearest first; the last one is sure to serve it at least.

    Attributes
    ----------
    sites
        Site indices, shape (n,), n >= 1.
    cost
        A_c·d(c, r) + B_c·d(r, ℓ) of each, ms·operations, shape (n,).
    """

    sites: IntArray
    cost: FloatArray


@dataclass(frozen=True, eq=False)
class Waits:
    """Cost of a wait in one scenario, by the radius within which the answers lie.

    Attributes
    ----------
    rows
        For every radius but the last, what the roles must hold so that it is long enough.
    cost
        D_k·ρ of each radius, ms·operations, shape (len(rows) + 1,).
    always
        What they must hold so that the last radius is; nothing for a quorum, which always is.
    """

    rows: tuple[tuple[RoleRow, ...], ...]
    cost: FloatArray
    always: tuple[RoleRow, ...] = ()


@dataclass(frozen=True, eq=False)
class LeaderCosts:
    """Every term of the objective under one leader, in ms·operations.

    Attributes
    ----------
    leaders
        Site index; several where the objective is the same whoever of them leads.
    direct
        Σ_kc G·d(c, ℓ) and the constants of operations, paid whatever else is decided.
    chains
        One per client (and scenario) with A or B above zero, one with reads from lease holders.
    waits
        One per scenario with D above zero, and one per scenario and further wait of the leader.
    money
        cost_weight · price of a replica at each site, shape (sites,).
    floor
        A lower bound on the objective of any configuration with this leader: every client at the
        cheapest site of its chain, the shortest wait, the pinned sites paid.
    """

    leaders: tuple[int, ...]
    direct: float
    chains: tuple[Chain, ...]
    waits: tuple[Waits, ...]
    money: FloatArray
    floor: float


@dataclass(frozen=True, eq=False)
class Integers:
    """Return the terms as whole multiples of 1/scale.

    Attributes
    ----------
    scale
        Units per ms·operation.
    direct, chains, waits, money
        As in `LeaderCosts`, int64.
    error
        Most by which objective · scale and the integer objective of one configuration can differ,
        divided by scale: ms·operations.
    """

    scale: float
    direct: int
    chains: tuple[IntArray, ...]
    waits: tuple[IntArray, ...]
    money: IntArray
    error: float


def leader_costs(problem: Problem, *leaders: int) -> LeaderCosts:
    """Return the cost of every decision when a site leads, or one of several of the same cost.

    Where too few sites may hold a replica, vote or answer a wait, the floor is infinite and there
    is no term.

    Notes
    -----
    O(K·C·S log S) for K scenarios.
    """
    demand, rules, leader = problem.demand, problem.rules, leaders[0]
    led = list(leader_waits(demand, rules, leader).values())
    able = rules.may_vote
    too_few = rules.may_hold.sum() < rules.replicas_min or able.sum() < rules.voters
    if too_few or not all(wait.radii for wait in led):
        return LeaderCosts(leaders, 0.0, (), (), np.zeros(len(rules.may_hold)), math.inf)
    certain = rules.must_hold.copy()
    certain[leader] |= len(leaders) == 1
    # Fewer sites than this many lie outside a chain that is still empty: it can't stay so.
    longest = int(rules.may_hold.sum()) - rules.replicas_min + 1
    voters = np.nonzero(able)[0]
    chains, waits = [], [of_leader_wait(wait) for wait in led]
    direct = demand.constant
    for k in range(demand.scenarios):
        rtt, to_leader = demand.client_rtt[k], demand.site_rtt[k][:, leader]
        direct += float(demand.direct[k] @ rtt[:, leader])
        near, relay = demand.near[k], demand.relay[k]
        order = closest_first(rtt)
        order_allowed = rules.may_hold[order]
        for c in np.nonzero((near > 0) | (relay > 0))[0]:
            sites = order[c][order_allowed[c]]
            sure = np.flatnonzero(certain[sites])
            sites = sites[: min([longest, *(sure[:1] + 1)])]
            chains.append(Chain(sites, near[c] * rtt[c, sites] + relay[c] * to_leader[sites]))
        if demand.quorum[k] > 0:
            led_rtt, weight = demand.site_rtt[k][leader], float(demand.quorum[k])
            spare = rules.voters - rules.quorum
            waits.append(quorum_waits(led_rtt, voters, rules.quorum, weight, spare))
    prices = problem.site_costs(leader) if rules.cost_weight else None
    money = np.zeros(len(certain)) if prices is None else rules.cost_weight * prices
    floor = (
        direct
        + sum(float(chain.cost.min()) for chain in chains)
        + sum(float(wait.cost[0]) for wait in waits)
        + float(money[certain].sum())
    )
    return LeaderCosts(leaders, direct, tuple(chains), tuple(waits), money, floor * (1 - _NOISE))


def quorum_waits(
    rtt: FloatArray, voters: IntArray, quorum: int, weight: float, spare: int = 0
) -> Waits:
    """Radii that the m-th answer can have, and the rows that decide which it is.

    Parameters
    ----------
    rtt
        From the leader to each site, ms, shape (sites,).
    voters
        Sites that may vote.
    quorum
        m, the answers waited for.
    weight
        D_k, operations.
    spare
        Voters that a commit does not wait for, |V| - m: with no more sites than that outside, a
        radius holds m voters. 0 after a loss, where it is not known how many voters are left.
    """
    rows: list[tuple[RoleRow, ...]] = []
    radii = []
    for radius in np.unique(rtt[voters]):
        ball = voters[rtt[voters] <= radius]
        if len(ball) < quorum:
            continue
        radii.append(radius)
        if len(voters) - len(ball) <= spare:
            break  # for any other voters, m of the voters lie within
        rows.append((RoleRow(dict.fromkeys(ball.tolist(), 1), {}, quorum),))
    return Waits(tuple(rows[: len(radii) - 1]), weight * np.array(radii))


def of_leader_wait(wait: LeaderWait) -> Waits:
    """Return the cost of a wait beside the rounds of votes; one that lasts at most so long."""
    return Waits(wait.rows[:-1], wait.rounds * np.array(wait.radii), wait.rows[-1])


def to_integers(costs: LeaderCosts, incumbent: float = math.inf) -> Integers:
    """Round all terms to whole multiples of the best unit.

    Parameters
    ----------
    costs
        Of one leader.
    incumbent
        Objective of a known configuration. A term above it alone rules out whatever pays it, so it
        may be cut to just above: that keeps one absurd RTT from making all others coarse.

    Notes
    -----
    All terms are non-negative, so cutting at more than the incumbent changes no configuration that
    is better than it.
    """
    scale = _START
    result = _at_scale(costs, scale, incumbent)
    while result is None:
        scale /= 10
        result = _at_scale(costs, scale, incumbent)
    reference = costs.floor if costs.floor > 0 else incumbent
    enough = max(_TARGET, 2 * _NOISE) * reference if math.isfinite(reference) else 0.0
    finer: Integers | None = result
    while finer is not None and finer.error > enough and scale < _FINEST:
        scale *= 10
        finer = _at_scale(costs, scale, incumbent)
        # One more digit may bring nothing where the next one does.
        if finer is not None and finer.error < result.error:
            result = finer
    return result


def _at_scale(costs: LeaderCosts, scale: float, incumbent: float) -> Integers | None:
    """Round at one scale; None when the coefficients add up to more than `LIMIT`."""
    top = math.floor(incumbent * scale) + 2.0 if incumbent * scale < LIMIT else math.inf
    error = total = 0.0

    def whole(values: FloatArray) -> FloatArray:
        return np.asarray(np.minimum(np.rint(values * scale), top))

    def lost(values: FloatArray, rounded: FloatArray) -> FloatArray:
        kept = rounded < top
        return np.where(kept, np.abs(values - rounded / scale), 0.0)

    chains: list[FloatArray] = []
    waits: list[FloatArray] = []
    for rows, terms in ((chains, costs.chains), (waits, costs.waits)):
        for term in terms:
            rounded = whole(term.cost)
            error += float(lost(term.cost, rounded).max())
            total += float(rounded[0] + np.abs(np.diff(rounded)).sum())
            rows.append(rounded)
    money = whole(costs.money)
    error += float(lost(costs.money, money).sum())
    direct = float(np.rint(costs.direct * scale))
    error += abs(costs.direct - direct / scale)
    total += float(money.sum()) + direct
    if not total < LIMIT:
        return None
    noise = _NOISE * (incumbent if math.isfinite(incumbent) else total / scale)
    return Integers(
        scale,
        int(direct),
        tuple(row.astype(np.int64) for row in chains),
        tuple(row.astype(np.int64) for row in waits),
        money.astype(np.int64),
        error + noise,
    )
