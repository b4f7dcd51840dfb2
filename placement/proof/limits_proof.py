"""Check of a certificate about limits (format ``replica-placement/budget/1``).

=============  ====================================================================================
"clients"      indices of the clients that count, in the order of the multipliers
"proofs"       [{"leader": ℓ, "events": […]}, …]: at most one for each leader
=============  ====================================================================================

A leader without a proof is closed by the checker: every client at its best site and the closest
quorum are no better than the bound, or the cheapest replicas exceed a limit. Under a leader there
are at most as many replicas as the limits let in where they are the cheapest. Events and
multipliers are those of :mod:`placement.proof.losses`. A bound of +∞ says that no
configuration keeps the limits.

The first scenarios are the limits of the question (``Problem.limits``): the cost per
month, the number of changes to the present configuration, the GB copied; their thresholds are the
values above which the evaluator refuses a configuration. The last one is the objective, with the
threshold that is claimed of it, or none (:mod:`placement.proof.threshold_proof`). With the weights
λ_i of the limits and λ of the objective in a bound, μ_i = λ_i / λ is the multiplier of a limit:

    Σ_i λ_i (f_i − B_i) + λ (objective − T) >= 0

for every configuration of a state says that none is better than T within the limits. Prices of
replicas and votes may be of either sign. They are rounded down to a grid, and limits are rounded
up.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from placement.errors import CertificateError
from placement.evaluation.cost_model import LinearCost
from placement.evaluation.move_costs import LinearLimit
from placement.model.constraints import Rules
from placement.problem import Problem
from placement.proof.choice.site_choice import SiteChoice
from placement.proof.claim import Claim, Scale
from placement.proof.costs.exact_costs import ExactCosts
from placement.proof.costs.led_costs import LedCosts
from placement.proof.costs.rounded_costs import TableCosts
from placement.proof.event_tree import CELLS_PER_STEP, State
from placement.proof.threshold_proof import ThresholdProof, check_clients, prove_leaders
from placement.support.checks import FloatArray
from placement.support.work import Work

__all__ = ["FORMAT", "LimitsClaim", "LimitsProof", "check_limits"]

FORMAT = "replica-placement/budget/1"

_ROUNDING = 1e-12
"""Relative: more than the sums of the evaluator can be wrong by."""

_BITS = 60
_MOST_SHIFT = 500
_BELOW = 2.0**-51


class LimitsClaim:
    """A question with limits or prices of moves, and the bound that is claimed of it.

    Parameters
    ----------
    problem
        The question.
    bound
        None: it is claimed that no configuration keeps the limits.

    Raises
    ------
    ValueError
        Where clients without reads nearby have prices of them, or the numbers are too large.
    """

    def __init__(self, problem: Problem, bound: float | None) -> None:
        self.problem, self.rules, self.bound = problem, problem.rules, bound
        self.limits = problem.limits
        self.claim = Claim(problem, bound or 0.0, 0.0)
        for limit in self.limits:
            near = limit.linear(0).nearest
            if near is not None and np.delete(near, self.claim.clients, axis=0).any():
                raise ValueError("near reads of a client have prices, but no round trips")

    def linear(self, given: LinearCost) -> LinearCost:
        """Return a function with the votes in the prices of replicas where all of them vote."""
        alike = self.rules.replicas_max == self.rules.voters
        return given.with_votes_in_replicas() if alike else given


class _GridVotePrices:
    """Prices of votes beside the leader's on a grid, rounded down."""

    def __init__(self, rules: Rules, leader: int, prices: Sequence[int]) -> None:
        self.prices, self.rules = prices, rules
        self.order = [s for s in np.nonzero(rules.may_vote)[0].tolist() if s != leader]
        self.order.sort(key=prices.__getitem__)

    def least(self, state: State, most: int) -> int | None:
        """Least sum in a state with so many replicas at most; None: there are too few sites."""
        room, found = most - len(state.inside), []
        for site in self.order:
            if site in state.inside or (site not in state.outside and room > 0):
                room -= site not in state.inside
                found.append(self.prices[site])
        others = self.rules.voters - 1
        return None if len(found) < others else sum(found[:others])

    def of(self, voters: Sequence[int], leader: int) -> int:
        """Return the price of the votes of a set of voters, without the leader's vote."""
        return sum(self.prices[v] for v in voters if v != leader)


class _LimitTable:
    """A limited function under a leader on a grid, rounded down."""

    def __init__(self, question: LimitsClaim, limit: LinearLimit, leader: int) -> None:
        linear, rules = question.linear(limit.linear(leader)), question.rules
        clients, sites = question.claim.clients, len(rules.may_hold)
        near = np.zeros((len(clients), sites))
        if linear.nearest is not None:
            near = linear.nearest[clients]
        votes = np.zeros(sites) if linear.voter is None else linear.voter
        allowed = limit.allowed * (1 + _ROUNDING)
        total = allowed + linear.constant
        total += float(np.abs(linear.replica).sum() + np.abs(votes).sum())
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
        self.votes = _GridVotePrices(rules, leader, self._whole(votes).tolist())
        self.threshold = math.ceil(math.ldexp(allowed, self.bits)) + 1

    def admitted(self, rules: Rules, leader: int) -> int:
        """Return how many replicas the limit lets in at most, where they are the cheapest."""
        fixed = {int(s) for s in np.nonzero(rules.must_hold)[0]} | {leader}
        others = [s for s in np.nonzero(rules.may_hold)[0].tolist() if s not in fixed]
        prices: list[int] = self.costs.price.tolist()
        spent, count = self.costs.constant + sum(prices[s] for s in fixed), len(fixed)
        spent += sum(self.votes.prices[s] for s in self.votes.order[: rules.voters - 1])
        for more, price in enumerate(sorted(prices[s] for s in others), 1):
            spent += price
            if spent < self.threshold:
                count = len(fixed) + more
        return max(rules.replicas_min, min(rules.replicas_max, count))

    def _whole(self, values: FloatArray) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        scaled = np.ldexp(values, self.bits)
        below = np.floor(scaled - np.abs(scaled) * _BELOW)
        return np.asarray(below.astype(np.int64))


class LimitsProof(ThresholdProof[LedCosts]):
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

    def __init__(self, question: LimitsClaim, leader: int, work: Work) -> None:
        self.question, self.leader = question, leader
        claim, rules = question.claim, question.rules
        self.tables = [_LimitTable(question, limit, leader) for limit in question.limits]
        self.last = len(self.tables)
        exact = claim.rounded is None
        grids = [(LedCosts(claim, exact=exact), CELLS_PER_STEP)]
        if question.bound is not None and not exact:
            grids.append((LedCosts(claim, exact=True), 1))
        most = min([rules.replicas_max, *(t.admitted(rules, leader) for t in self.tables)])
        choice = SiteChoice(dataclasses.replace(rules, replicas_max=most), leader, None)
        whom, clients = f"leader {leader}", len(claim.clients)
        super().__init__(choice, whom, work, clients, self.last + 1, grids)
        added = question.problem.added_cost(leader)
        self._added = None if added is None else question.linear(added).voter
        self._weighed: dict[bool, _GridVotePrices] = {}

    def _votes(self, form: LedCosts) -> _GridVotePrices | None:
        """Prices of votes in the objective, on the grid of a form; None: votes are free there."""
        if self._added is None:
            return None
        if form.exact not in self._weighed:
            scale = Fraction(2) ** self._bits(form, self.last)
            prices = [math.floor(Fraction(float(price)) * scale) for price in self._added]
            self._weighed[form.exact] = _GridVotePrices(self.choice.rules, self.leader, prices)
        return self._weighed[form.exact]

    # --- bounds -----------------------------------------------------------------------------

    def _in_force(self, state: State) -> set[int]:
        return set(range(self.last + 1))

    def _costs(self, form: LedCosts, scenario: int) -> TableCosts | ExactCosts:
        return form.single(self.leader) if scenario == self.last else self.tables[scenario].costs

    def _threshold(self, form: LedCosts, scenario: int) -> int | None:
        if scenario < self.last:
            return self.tables[scenario].threshold
        return None if self.question.bound is None else form.threshold(self.question.claim.needed)

    def _bits(self, form: LedCosts, scenario: int) -> int:
        return self.tables[scenario].bits if scenario < self.last else form.bits

    def _rest(self, form: LedCosts, scenario: int, state: State) -> int | None:
        most = self.choice.rules.replicas_max
        if scenario == self.last:
            rest = form.led((self.leader,), frozenset(), state, most)
            priced = self._votes(form)
            votes = 0 if priced is None else priced.least(state, most)
            return None if rest is None or votes is None else rest + votes
        table = self.tables[scenario]
        votes = table.votes.least(state, most)
        if votes is None:
            return None
        rest = table.costs.constant + votes
        reached = rest + self._least_prices(table.costs, state) >= table.threshold
        return None if reached else rest

    def _least_prices(self, costs: TableCosts | ExactCosts, state: State) -> int:
        """Least sum of prices of replicas: those fixed, and the cheapest that complete them."""
        rules = self.choice.rules
        held = sum(int(costs.price[s]) for s in state.inside)
        missing = rules.replicas_min - len(state.inside)
        room = max(0, rules.replicas_max - len(state.inside))
        free = sorted(int(costs.price[s]) for s in self._free(state))[:room]
        return held + sum(price for at, price in enumerate(free) if at < missing or price < 0)

    # --- sets of replicas -------------------------------------------------------------------

    def _no_better(self, form: LedCosts, replicas: list[int]) -> bool:
        rules = self.question.rules
        if not all(group.satisfied(replicas) for group in rules.of("replicas")):
            return True
        costs = form.single(self.leader)
        spent = [table.costs.reads(replicas) for table in self.tables]
        reads = costs.reads(replicas)
        able = [r for r in replicas if rules.may_vote[r]]
        pinned = {int(s) for s in np.nonzero(rules.must_vote)[0]} | {self.leader}
        spare = rules.voters - len(pinned)
        if len(able) < rules.voters or not pinned <= set(able) or spare < 0:
            return True
        others = [r for r in able if r not in pinned]
        self.work.take(math.comb(len(others), spare) * rules.voters)
        return all(
            self._reached(form, [*pinned, *more], spent, reads, costs.radius_costs)
            for more in itertools.combinations(others, spare)
        )

    def _reached(
        self,
        form: LedCosts,
        voters: Sequence[int],
        spent: Sequence[int],
        reads: int,
        waits: Sequence[int],
    ) -> bool:
        """Return whether voters break a rule, a limit or the claim."""
        rules = self.question.rules
        if not all(group.satisfied(voters) for group in rules.of("voters")):
            return True
        for table, of_replicas in zip(self.tables, spent, strict=True):
            if of_replicas + table.votes.of(voters, self.leader) >= table.threshold:
                return True
        goal, priced = self._threshold(form, self.last), self._votes(form)
        value = reads + sorted(waits[v] for v in voters)[rules.quorum - 1]
        value += 0 if priced is None else priced.of(voters, self.leader)
        return goal is not None and value >= goal


def check_limits(
    problem: Problem, bound: float, certificate: Mapping[str, Any], work: Work
) -> tuple[int, int, int]:
    """Prove that no configuration within the limits is below a bound, or refuse.

    Parameters
    ----------
    problem
        Minimises the mean and the prices of moves, with limits and caps on nested levels for
        replicas.
    bound
        What is to be proved; +∞: nothing is within the limits.
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
        question = LimitsClaim(problem, None if bound == math.inf else bound)
    except ValueError as flaw:
        raise CertificateError(str(flaw)) from None
    check_clients(certificate, question.claim.clients.tolist())
    leaders: list[int] = np.nonzero(question.rules.may_lead)[0].tolist()
    return prove_leaders(
        certificate, leaders, lambda leader, _: LimitsProof(question, leader, work)
    )
