"""Certificates of the search over sets: what rules out each beginning of a replica set.

The search itself runs in C and stores nothing. Once its best value is known, the tree is walked
again with the bounds of the checker, which is short with that value from the beginning on.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from formulations.waits.set_tables import WaitTables
from placement.evaluation.replica_prices import ReplicaPrices
from placement.evaluation.score import TIE, closest_first
from placement.plan import Plan
from placement.problem import Problem
from placement.proof.sets.prefix_bounds import Beginning, PrefixBounds
from placement.proof.sets.set_check import DIGITS, FORMAT, PRICE_STEPS, prices_of
from placement.proof.sets.set_walk import SetWalk, least_normal, walk_refusal
from placement.support.checks import FloatArray

__all__ = ["MOST_NODES", "may_certify", "write_certificate"]

MOST_NODES = 120_000
"""Nodes of a search above which its plans have no certificate: to write and to check it takes a few
milliseconds each, nine minutes for the largest of the instance library."""

_MOST_LEAVES = 2_000_000


def may_certify(problem: Problem, nodes: int, leaves: int) -> bool:
    """Return whether a certificate of a search of this size is of use."""
    return nodes <= MOST_NODES and leaves <= _MOST_LEAVES and walk_refusal(problem) is None


def write_certificate(plan: Plan) -> dict[str, object]:
    """Return the certificate of a proven plan, as :mod:`placement.proof.sets.set_check` reads it.

    Parameters
    ----------
    plan
        Proven by the search over sets, with a configuration; its objective may be about losses.
    """
    problem, best = plan.problem, plan.configuration
    rules, demand = problem.rules, problem.demand
    assert best is not None
    able = np.nonzero(rules.may_hold & rules.may_vote)[0]
    mass = demand.counts[0].sum(axis=1)
    order = able[closest_first(mass @ demand.client_rtt[0][:, able])].tolist()
    leaders = [None] if demand.leaderless else np.nonzero(rules.may_lead)[0].tolist()
    least = least_normal(problem, plan.bound - abs(plan.bound) * TIE)
    tables = WaitTables.of(problem, rules.voters)
    return {
        "format": FORMAT,
        "bound": plan.bound,
        "score": plan.objective,
        "leader": best.leader,
        "voters": list(best.voters),
        "replicas": list(best.replicas),
        "order": order,
        "proofs": [_proof(problem, order, leader, least, tables) for leader in leaders],
    }


def _proof(
    problem: Problem, order: Sequence[int], leader: int | None, least: float, search: WaitTables
) -> dict[str, object]:
    rules = problem.rules
    pairs = search.pairs(leader)
    moves = ReplicaPrices.of(problem, rules.voters)
    tables = PrefixBounds(problem.demand, rules.voters, rules.quorum, leader, pairs, moves)
    steps: list[str] = []
    prices: list[str] = []

    def ask(chosen: tuple[int, ...], coming: Sequence[int]) -> bool:
        start = tables.beginning(chosen, coming, least)
        if start.independent >= least:
            steps.append("i")
            return False
        found = _prices(start, least)
        steps.append("o" if found is None else "l")
        if found is not None:
            prices.append(found)
        return found is None

    SetWalk(problem, order, leader).run(ask, lambda chosen, coming: None)
    return {"leader": leader, "steps": "".join(steps), "prices": prices, "pairs": pairs}


def _prices(start: Beginning, wanted: float) -> str | None:
    """Return prices whose Lagrangean bound is as much as is wanted; None: no steps lead there.

    Subgradient steps from h, each client's cost at its nearest chosen site: 12, 4 or 1, as in the
    search.
    """
    home = start.home
    if not (len(home) and np.isfinite(home).all() and np.isfinite(wanted)):
        return None
    steps = 12 if start.free >= 4 else 4 if start.free == 3 else 1
    prices, length = home.copy(), 1.0
    for step in range(steps + 1):
        value = start.lagrangean(prices)
        if value >= wanted:
            written = _digits(prices, home)
            if start.lagrangean(prices_of(written, home)) >= wanted:
                return written
        if step == steps:
            return None
        taken = start.cheapest(prices)
        slope = 1.0 - (start.cost[taken] < prices).sum(axis=0)
        slope = np.where((prices >= home) & (slope > 0), 0.0, slope)
        norm = float((slope * slope).sum())
        if norm == 0.0:
            return None
        goal = max(wanted * (1 + 1e-4), value)  # a little beyond, for the digits that are stored
        prices = np.clip(prices + length * (goal - value) / norm * slope, 0.0, home)
        length *= 0.8
    return None


def _digits(prices: FloatArray, home: FloatArray) -> str:
    share = np.divide(prices, home, out=np.zeros_like(home), where=home > 0)
    parts = np.rint(share * PRICE_STEPS).astype(int).tolist()
    return "".join(f"{part:0{DIGITS}x}" for part in parts)
