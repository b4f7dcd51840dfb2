"""Best configuration of one database at given prices of the shared limits.

One call of the exact search, with the prices of the limits added to what a replica costs under each
leader (:mod:`placement.fleet.shared_rows`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.exact.branch_and_bound import search
from formulations.exact.reduced_problem import ReducedProblem
from formulations.fleet import tuning
from placement.errors import SolverError
from placement.feasibility.feasible_plans import violations
from placement.feasibility.neighbours import neighbours
from placement.fleet.fleet_problem import FleetMember
from placement.fleet.shared_rows import PricedQuestion, SharedRows
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray
from placement.support.status import Termination

__all__ = ["PricedMember", "certify_priced", "price_member"]


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
    With a `room` (remaining capacity of each limit), sites where it no longer fits are left out
    too.

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
    for _ in range(tuning.PRICE_STEPS):
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
