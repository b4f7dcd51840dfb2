"""Costs of a leader after a loss, in ms·operations and in whole units."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from formulations.contingency.loss_data import largest_score
from formulations.cpsat.integer_costs import Chain, LeaderCosts, quorum_waits
from formulations.cpsat.variables import LeaderVariables
from placement.contingency.objective import Contingency
from placement.evaluation.score import closest_first
from placement.model.demand import Demand
from placement.problem import Problem

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["Rounding", "costs_after", "elections"]

_ROOM = 2.0**52
"""Largest sum of coefficients of a cost: exact as a double, far from wrapping as an integer."""


@dataclass(frozen=True, slots=True)
class Rounding:
    """Common unit for all costs of a model.

    Attributes
    ----------
    scale
        Units per ms·operation.
    top
        A cost that no configuration exceeds, in units.
    error
        Most by which a rounded sum of costs may differ from the exact one, in ms·operations.
    """

    scale: float
    top: int
    error: float

    @classmethod
    def of(cls, problem: Problem, costs: LeaderCosts) -> Rounding:
        """Choose the finest unit, a power of two, in which the largest cost has room."""
        demand = problem.demand
        goal = problem.objective
        assert isinstance(goal, Contingency)
        most = largest_score(problem, goal)
        # A chain's steps may go up and down, by at most its largest cost each time.
        longest = max((len(chain.sites) for chain in costs.chains), default=1)
        sites = max(longest, len(problem.rules.may_hold))
        scale = 2.0 ** math.floor(math.log2(_ROOM / (most * sites)))
        terms = demand.scenarios * (len(problem.instance.clients) + 1) + 1
        copies = 1 + (len(goal.losses(problem)) if goal.goal == "weighted" else 0)
        error = 0.5 * terms * copies / scale + 2.0**-48 * most
        return cls(scale, math.ceil(most * scale) + terms, error)

    def expression(self, variables: LeaderVariables, costs: LeaderCosts, factor: float) -> Any:
        """Return factor · (Eq. 1 under the leader) in units, linear in the literals.

        The sums telescope as in :func:`formulations.cpsat.leader_model.create_objective`.
        """
        from ortools.sat.python import cp_model

        scale = self.scale * factor
        constant = round(costs.direct * scale)
        terms: dict[int, tuple[cp_model.IntVar, int]] = {}

        def add(literal: cp_model.IntVar, step: int) -> None:
            if step:
                old = terms.get(literal.index, (literal, 0))[1]
                terms[literal.index] = (literal, old + step)

        for chain in costs.chains:
            whole = np.rint(chain.cost * scale).astype(np.int64)
            constant += int(whole[0])
            prefix: frozenset[int] = frozenset()
            for site, step in zip(chain.sites[:-1].tolist(), np.diff(whole).tolist(), strict=True):
                prefix |= {site}
                add(variables.empty[prefix], step)
        for slow, wait in zip(variables.slow, costs.waits, strict=True):
            whole = np.rint(wait.cost * scale).astype(np.int64)
            constant += int(whole[0])
            for literal, step in zip(slow, np.diff(whole).tolist(), strict=True):
                add(literal, step)
        literals = [literal for literal, _ in terms.values()]
        return (
            cp_model.LinearExpr.weighted_sum(literals, [step for _, step in terms.values()])
            + constant
        )


def costs_after(problem: Problem, demand: Demand, lost: Iterable[int], leader: int) -> LeaderCosts:
    """Return the terms of Eq. 1 under a leader on the sites that survive. O(K·C·S log S).

    Where too few voters survive, the floor is infinite and there is no term.
    """
    rules = problem.rules
    alive = np.ones(len(rules.may_hold), dtype=bool)
    alive[list(lost)] = False
    certain = rules.must_hold & alive
    certain[leader] = True
    allowed = rules.may_hold & alive
    zero = np.zeros(len(alive))
    voters = np.nonzero(rules.may_vote & alive)[0]
    if demand.quorum.any() and len(voters) < rules.quorum:
        return LeaderCosts(leader, 0.0, (), (), zero, math.inf)
    chains, waits, direct = [], [], 0.0
    for k in range(demand.scenarios):
        rtt, to_leader = demand.client_rtt[k], demand.site_rtt[k][:, leader]
        direct += float(demand.direct[k] @ rtt[:, leader])
        near, relay = demand.near[k], demand.relay[k]
        order = closest_first(rtt)
        for c in np.nonzero((near > 0) | (relay > 0))[0]:
            sites = order[c][allowed[order[c]]]
            sites = sites[: int(certain[sites].argmax()) + 1]
            chains.append(Chain(sites, near[c] * rtt[c, sites] + relay[c] * to_leader[sites]))
        if demand.quorum[k] > 0:
            led_rtt, weight = demand.site_rtt[k][leader], float(demand.quorum[k])
            waits.append(quorum_waits(led_rtt, voters, rules.quorum, weight))
    return LeaderCosts(leader, direct, tuple(chains), tuple(waits), zero, 0.0)


def elections(
    model: cp_model.CpModel,
    problem: Problem,
    alive: dict[int, cp_model.IntVar],
    lost: frozenset[int],
) -> dict[int, cp_model.IntVar]:
    """Add who may be elected after a loss: one surviving voter, a candidate if there is one."""
    may_lead = problem.rules.may_lead
    elected = {leader: model.new_bool_var(f"elect{leader}after{min(lost)}") for leader in alive}
    model.add_exactly_one(elected.values())
    for leader, literal in elected.items():
        model.add_implication(literal, alive[leader])
        if not may_lead[leader]:
            for candidate, voter in alive.items():
                if may_lead[candidate]:
                    model.add_implication(literal, ~voter)
    return elected
