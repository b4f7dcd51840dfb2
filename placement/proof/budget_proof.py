"""Check of a certificate about a budget (format ``replica-placement/budget/1``).

=============  ====================================================================================
"clients"      indices of the clients that count, in the order of the multipliers
"proofs"       [{"leader": ℓ, "events": […]}, …]: at most one for each leader
=============  ====================================================================================

A leader without a proof is closed by the checker: every client at its best site and the closest
quorum are no better than the bound, or the cheapest replicas exceed the budget. Under a leader
there are at most as many replicas as the budget pays where they are the cheapest. Events and
multipliers are those of :mod:`placement.proof.loss_check`; scenario 0 is the cost, 1 the objective.
A bound of +∞ says that no configuration keeps the budget.

Scenario 0 is the cost per month, with the threshold above which the evaluator refuses a
configuration; scenario 1 is the objective, with the threshold that is claimed of it, or none
(:mod:`placement.proof.threshold_proof`). With the weights λ_0 and λ_1 of a bound, μ = λ_0 / λ_1 is
the multiplier of the budget:

    λ_0 (cost − B) + λ_1 (objective − T) >= 0

for every configuration of a state says that none is better than T within B. Prices are doubles;
they are rounded down to a grid, and the budget is rounded up.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from placement.checks import FloatArray
from placement.errors import CertificateError
from placement.evaluation.cost_model import CostModel, cost_model
from placement.model.constraints import Rules
from placement.problem import Problem
from placement.proof.claim import Claim, Scale
from placement.proof.event_tree import CELLS_PER_STEP, State, Work
from placement.proof.exact_costs import ExactCosts
from placement.proof.led_costs import LedCosts
from placement.proof.rounded_costs import TableCosts
from placement.proof.site_choice import SiteChoice
from placement.proof.threshold_proof import ThresholdProof, check_clients, prove_leaders

__all__ = ["FORMAT", "BudgetClaim", "BudgetProof", "check_budget"]

FORMAT = "replica-placement/budget/1"

_COST, _OBJECTIVE = 0, 1
_ALLOWED = 1e-9
"""Relative and absolute: what the evaluator takes above a budget."""

_ROUNDING = 1e-12
"""Relative: more than the sums of the evaluator can be wrong by."""

_BITS = 60
_MOST_SHIFT = 500


class BudgetClaim:
    """A question with a budget, and the bound that is claimed of it.

    Parameters
    ----------
    problem
        With a budget.
    bound
        None: it is claimed that no configuration is within the budget.

    Raises
    ------
    ValueError
        Where clients without reads nearby have prices of them, or the numbers are too large.

    Attributes
    ----------
    allowed
        A cost from which on the evaluator refuses a configuration.
    """

    def __init__(self, problem: Problem, bound: float | None) -> None:
        model = cost_model(problem.instance)
        assert model is not None
        assert problem.budget is not None
        self.problem, self.rules, self.bound = problem, problem.rules, bound
        self.model: CostModel = model
        self.claim = Claim(problem, bound or 0.0, 0.0)
        self.allowed = problem.budget + _ALLOWED * (1 + abs(problem.budget))
        self.allowed *= 1 + _ROUNDING
        near = model.nearest
        if near is not None and np.delete(near, self.claim.clients, axis=0).any():
            raise ValueError("near reads of a client have prices, but no round trips")


class _CostTable:
    """The cost under a leader on a grid, rounded down."""

    def __init__(self, question: BudgetClaim, leader: int) -> None:
        linear, rules = question.model.linear(leader), question.rules
        clients, sites = question.claim.clients, len(rules.may_hold)
        near = np.zeros((len(clients), sites))
        if linear.nearest is not None:
            near = linear.nearest[clients]
        votes = np.zeros(sites) if linear.voter is None else linear.voter
        total = question.allowed + linear.constant + float(linear.replica.sum() + votes.sum())
        total += float(near.max(axis=1).sum()) if len(near) else 0.0
        if not 0 < total < math.inf:
            raise ValueError("the costs are too large to be proved")
        self.bits = _BITS - math.frexp(2 * (rules.replicas_max + 4) * total)[1]
        if abs(self.bits) > _MOST_SHIFT:
            raise ValueError("the costs are too large or too small to be proved")
        scale = Scale(self.bits, math.ldexp(total, self.bits))
        self.costs = TableCosts(question.claim.rank, scale, self._whole(near))
        self.costs.constant = int(self._whole(np.array(linear.constant + votes[leader])))
        self.costs.price = self._whole(linear.replica)
        self.votes: list[int] = self._whole(votes).tolist()
        self.threshold = math.ceil(math.ldexp(question.allowed, self.bits)) + 1

    def affordable(self, rules: Rules, leader: int) -> int:
        """Return how many replicas the budget pays at most, where they are the cheapest."""
        fixed = {int(s) for s in np.nonzero(rules.must_hold)[0]} | {leader}
        others = [s for s in np.nonzero(rules.may_hold)[0].tolist() if s not in fixed]
        prices: list[int] = self.costs.price.tolist()
        spent, count = self.costs.constant + sum(prices[s] for s in fixed), len(fixed)
        for price in sorted(prices[s] for s in others):
            spent += price
            if spent >= self.threshold:
                break
            count += 1
        return max(rules.replicas_min, min(rules.replicas_max, count))

    def _whole(self, values: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        below = np.floor(np.ldexp(values, self.bits) * (1 - 2.0**-51))
        return np.asarray(below.astype(np.int64))


class BudgetProof(ThresholdProof[LedCosts]):
    """The proof of one leader.

    Parameters
    ----------
    question
        What is to be proved.
    leader
        ℓ.
    work
        Steps that may still be taken.
    """

    def __init__(self, question: BudgetClaim, leader: int, work: Work) -> None:
        self.question, self.leader = question, leader
        claim, rules = question.claim, question.rules
        self.table = _CostTable(question, leader)
        exact = claim.rounded is None
        grids = [(LedCosts(claim, exact=exact), CELLS_PER_STEP)]
        if question.bound is not None and not exact:
            grids.append((LedCosts(claim, exact=True), 1))
        rules = dataclasses.replace(rules, replicas_max=self.table.affordable(rules, leader))
        choice = SiteChoice(rules, leader, None)
        whom, clients = f"leader {leader}", len(claim.clients)
        super().__init__(choice, whom, work, clients, 2, grids)
        self._voting = [s for s in np.nonzero(rules.may_vote)[0].tolist() if s != leader]
        self._voting.sort(key=self.table.votes.__getitem__)

    # --- bounds -----------------------------------------------------------------------------

    def _in_force(self, state: State) -> set[int]:
        return {_COST, _OBJECTIVE}

    def _costs(self, form: LedCosts, scenario: int) -> TableCosts | ExactCosts:
        return self.table.costs if scenario == _COST else form.single(self.leader)

    def _threshold(self, form: LedCosts, scenario: int) -> int | None:
        if scenario == _COST:
            return self.table.threshold
        return None if self.question.bound is None else form.threshold(self.question.claim.needed)

    def _bits(self, form: LedCosts, scenario: int) -> int:
        if scenario == _COST:
            return self.table.bits
        claim = self.question.claim
        return claim.bits if form.exact or claim.rounded is None else claim.rounded.shift

    def _rest(self, form: LedCosts, scenario: int, state: State) -> int | None:
        if scenario == _OBJECTIVE:
            most = self.choice.rules.replicas_max
            return form.led((self.leader,), frozenset(), state, most)
        votes = self._votes(state)
        if votes is None:
            return None
        rest = self.table.costs.constant + votes
        prices: list[int] = self.table.costs.price.tolist()
        held = sum(prices[s] for s in state.inside)
        missing = max(0, self.question.rules.replicas_min - len(state.inside))
        cheapest = sorted(prices[s] for s in self._free(state))[:missing]
        return None if rest + held + sum(cheapest) >= self.table.threshold else rest

    def _votes(self, state: State) -> int | None:
        """Least sum of the votes beside the leader's; None: there are too few sites."""
        rules = self.choice.rules
        room, found = rules.replicas_max - len(state.inside), []
        for site in self._voting:
            if site in state.inside or (site not in state.outside and room > 0):
                room -= site not in state.inside
                found.append(self.table.votes[site])
        others = rules.voters - 1
        return None if len(found) < others else sum(found[:others])

    # --- sets of replicas -------------------------------------------------------------------

    def _no_better(self, form: LedCosts, replicas: list[int]) -> bool:
        rules, table = self.question.rules, self.table
        if not all(group.satisfied(replicas) for group in rules.of("replicas")):
            return True
        spent, costs = table.costs.reads(replicas), form.single(self.leader)
        goal = self._threshold(form, _OBJECTIVE)
        reads = costs.reads(replicas)
        if spent >= table.threshold or (goal is not None and reads >= goal):
            return True
        able = [r for r in replicas if rules.may_vote[r]]
        pinned = {int(s) for s in np.nonzero(rules.must_vote)[0]} | {self.leader}
        spare = rules.voters - len(pinned)
        if len(able) < rules.voters or not pinned <= set(able) or spare < 0:
            return True
        others = [r for r in able if r not in pinned]
        self.work.take(math.comb(len(others), spare) * rules.voters)
        return all(
            self._reached([*pinned, *more], spent, reads, costs.radius_costs, goal)
            for more in itertools.combinations(others, spare)
        )

    def _reached(
        self, voters: Sequence[int], spent: int, reads: int, waits: Sequence[int], goal: int | None
    ) -> bool:
        """Return whether voters break a rule, the budget or the claim."""
        rules, votes = self.question.rules, self.table.votes
        if not all(group.satisfied(voters) for group in rules.of("voters")):
            return True
        if spent + sum(votes[v] for v in voters if v != self.leader) >= self.table.threshold:
            return True
        wait = sorted(waits[v] for v in voters)[rules.quorum - 1]
        return goal is not None and reads + wait >= goal


def check_budget(
    problem: Problem, bound: float, certificate: Mapping[str, Any], work: Work
) -> tuple[int, int, int]:
    """Prove that no configuration within the budget is below a bound, or refuse.

    Parameters
    ----------
    problem
        Minimises the mean, with a budget and caps on nested levels for replicas.
    bound
        What is to be proved; +∞: nothing is within the budget.
    certificate
        See the module.
    work
        Steps that may be taken.

    Returns
    -------
    tuple of int
        How many leaders, events and bounds there were.

    Raises
    ------
    CertificateError
        When a step of the proof does not hold, or something is not covered.
    """
    try:
        question = BudgetClaim(problem, None if bound == math.inf else bound)
    except ValueError as flaw:
        raise CertificateError(str(flaw)) from None
    check_clients(certificate, question.claim.clients.tolist())
    leaders: list[int] = np.nonzero(question.rules.may_lead)[0].tolist()
    return prove_leaders(
        certificate, leaders, lambda leader, _: BudgetProof(question, leader, work)
    )
