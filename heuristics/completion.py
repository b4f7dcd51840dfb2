"""Feasible plans for baseline rules: the complete search behind every heuristic of tier 3.

A heuristic proposes; when its proposal breaks a rule,
:func:`placement.feasibility.feasible_plans.complete_configuration` looks for the feasible
configuration that keeps as many of the proposed sites as come first. That search is complete, so
that "infeasible" is said only when it is proven for every leader and every |R|.

A replica set under construction must stay completable: it must leave room for its remaining needs:
voters under their caps, domains, a leader, money. `AdmissibleSites` states the necessary conditions
that follow from counts, for all candidate sites of many sets at once. A candidate is admissible if,
after it, every single shortfall fits into the remaining slots. The conditions are exact for one
rule at a time. If several rules cross, a set that passes may still fail, and the caller then uses
the complete search :func:`placement.feasibility.feasible_plans.complete_configuration`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.errors import LimitError
from placement.evaluation.score import closest_first, nearest
from placement.feasibility.feasible_plans import complete_configuration
from placement.model.configuration import Configuration
from placement.model.constraints import GroupRule, Rules
from placement.plan import Plan, cheapest
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.status import SearchEnd, Termination, end_early, in_time


def replica_counts(problem: Problem) -> range:
    """|R| from the least to the most that the problem asks for."""
    return range(problem.rules.replicas_min, problem.rules.replicas_max + 1)


def sites_by_distance(problem: Problem, leader: int) -> tuple[int, ...]:
    """All sites by RTT from `leader` (mean over scenarios weighted by D), ties by site order."""
    demand = problem.demand
    weight = demand.quorum if demand.quorum.any() else np.ones(demand.scenarios)
    return tuple(closest_first(weight @ demand.site_rtt[:, leader, :]).tolist())


def mean_rtt(problem: Problem) -> tuple[FloatArray, FloatArray]:
    """Mean RTTs in ms over the scenarios: shapes (clients, sites) and (sites, sites)."""
    return problem.demand.client_rtt.mean(axis=0), problem.demand.site_rtt.mean(axis=0)


def writing(problem: Problem) -> FloatArray:
    """1 for every operation that changes state, 0 for the others: shape (operations,)."""
    return np.array([float(kind.is_transaction) for kind in problem.operations])


def site_traffic(problem: Problem, *, transactions: bool = False) -> FloatArray:
    """Operations that arrive at each site when every client turns to the closest: shape (sites,).

    Sites that may hold no replica receive nothing. With `transactions`, only transactions
    count: the operations that change state.
    """
    demand, rules = problem.demand, problem.rules
    counted = writing(problem) if transactions else np.ones(len(demand.coefficients))
    issued = demand.counts @ counted  # (scenarios, clients)
    near = nearest(demand.client_rtt, np.nonzero(rules.may_hold)[0])
    weights = np.asarray(issued, dtype=np.float64).reshape(-1)
    arriving: FloatArray = np.zeros(len(rules.may_hold))
    np.add.at(arriving, near.reshape(-1), weights)
    return arriving


def closest_feasible(problem: Problem, proposed: Iterable[int], size: int) -> Configuration | None:
    """Cheapest completion of `proposed` to `size` replicas over all leaders; None: there is none.

    The proposed sites are kept as far as the rules allow; each leader prefers those close to it.
    LimitError when the search gave up on some leader and no other leader has a plan.
    """
    wanted = frozenset(proposed)
    found = []
    gave_up: LimitError | None = None
    for leader in np.nonzero(problem.rules.may_lead)[0].tolist():
        prefer = sorted(sites_by_distance(problem, leader), key=lambda site: site not in wanted)
        try:
            configuration = complete_configuration(problem, leader, prefer, size)
        except LimitError as error:
            gave_up = error
            continue
        if configuration is not None:
            found.append(configuration)
    if not found and gave_up is not None:
        raise gave_up
    return cheapest(problem, found)


def complete_proposal(
    problem: Problem,
    method: str,
    leaders: Callable[[int], Sequence[int]],
    build: Callable[[int, int], Configuration | None],
) -> Plan:
    """Plan of a rule that ranks leaders and then chooses replicas for the one it likes best.

    `leaders` gives for |R| the site indices, the most wanted first. The first that has a
    configuration leads; candidates that are left out are tried last, in site order. `build` gives
    for (leader, |R|) a feasible configuration, or None when there is provably none. For a range of
    |R| the best size; infeasible when no leader has a configuration of any size; LimitError when a
    search gave up and nothing was found.
    """
    may_lead = problem.rules.may_lead
    found, search = list[Configuration](), SearchEnd()
    gave_up: LimitError | None = None
    with end_early(search):
        for size in replica_counts(problem):
            if found:
                in_time()
            ranked = dict.fromkeys([*leaders(size), *range(len(may_lead))])
            for leader in ranked:
                if not may_lead[leader]:
                    continue
                try:
                    configuration = build(leader, size)
                except LimitError as error:
                    gave_up = error
                    continue
                if configuration is not None:
                    found.append(configuration)
                    break
    if not found and search.termination is Termination.FINISHED:
        if gave_up is not None:
            raise gave_up
        return infeasible_plan(problem, method)
    return Plan.of(problem, cheapest(problem, found), method=method, termination=search.termination)


def infeasible_plan(problem: Problem, method: str) -> Plan:
    """Return the plan that says: a complete search found no configuration."""
    rules = problem.rules
    return Plan.infeasible(
        problem,
        method=method,
        reasons=(
            f"a complete search over {int(rules.may_lead.sum())} leaders and {rules.replicas_min} "
            f"to {rules.replicas_max} replicas found no configuration that obeys all rules",
        ),
    )


@dataclass(frozen=True, eq=False)
class AdmissibleSites:
    """The rules of a problem as seen by sets that grow to `size` replicas."""

    problem: Problem  #: the question
    size: int  #: |R| to reach
    #: ℓ when it is known, one for all sets or one for each; it is then taken to be in the set
    leader: int | IntArray | None = None

    @property
    def rules(self) -> Rules:
        """Constraints on site indices."""
        return self.problem.rules

    @cached_property
    def free_of_rules(self) -> bool:
        """Return whether any set of the right size inside `may_hold` is as good as any other."""
        rules = self.rules
        return bool(
            not rules.groups
            and rules.budget is None
            and (rules.may_vote == rules.may_hold).all()
            and (self.leader is not None or (rules.may_lead == rules.may_hold).all())
        )

    @cached_property
    def _costs(self) -> FloatArray | None:
        """Price of each site under each leader, or the least over all while it is open.

        Shape (sites,) or (leaders, sites).
        """
        if self.rules.budget is None:
            return None
        candidates = np.nonzero(self.rules.may_lead)[0] if self.leader is None else self.leader
        costs = [self.problem.site_costs(int(ell)) for ell in np.atleast_1d(candidates)]
        known = np.array([cost for cost in costs if cost is not None])
        if not len(known):
            return None
        if self.leader is None:
            return np.asarray(known.min(axis=0))
        return np.asarray(known if np.ndim(self.leader) else known[0])

    @cached_property
    def _groups(self) -> tuple[tuple[GroupRule, FloatArray], ...]:
        """Every diversity rule with the domain of each site as a matrix, shape (sites, domains).

        Sites that the rule does not count are in no domain.
        """
        found = []
        for group in self.rules.groups:
            able = self.rules.may_vote if group.role == "voters" else self.rules.may_hold
            member = group.labels[:, np.newaxis] == np.arange(len(group.names))
            found.append((group, (member & able[:, np.newaxis]).astype(np.float64)))
        return tuple(found)

    def addable(self, members: BoolArray, some: IntArray | None = None) -> BoolArray:
        """Sites that may join sets, boolean, shape (..., sites); O(S·domains) for each set.

        `some` are the indices of the leaders, if each set has its own; None: all in order.
        """
        rules = self.rules
        good: BoolArray = rules.may_hold & ~members
        left = self.size - members.sum(axis=-1, keepdims=True) - 1
        good &= left >= 0
        if self.free_of_rules:
            return good
        voting = (rules.may_vote & members).sum(axis=-1, keepdims=True)
        good &= rules.voters - voting - rules.may_vote <= left
        if self.leader is None:
            led = (rules.may_lead & members).any(axis=-1, keepdims=True)
            good &= (left != 0) | led | rules.may_lead
        for group, belongs in self._groups:
            held = members @ belongs
            able = np.asarray(belongs.any(axis=1))
            if group.cap is not None:
                gain = (held < group.cap)[..., group.labels]
                if group.role == "replicas":
                    good &= gain
                else:
                    fit = np.minimum(held, group.cap).sum(axis=-1, keepdims=True)
                    good &= rules.voters - fit - (able & gain) <= left
            if group.has_minimum:
                good &= group.missing_after(held.astype(np.intp), able) <= left
        if self._costs is not None and rules.budget is not None:
            costs = self._costs if some is None or self._costs.ndim == 1 else self._costs[some]
            good &= self._affordable(members, left, costs, rules.budget)
        return good

    def _affordable(
        self, members: BoolArray, left: IntArray, costs: FloatArray, budget: float
    ) -> BoolArray:
        """Return the sites that leave enough budget for the cheapest remaining sites."""
        others = np.sort(np.where(self.rules.may_hold & ~members, costs, np.inf), axis=-1)
        others = np.where(np.isfinite(others), others, 0.0)  # too few of them: all
        upto = np.concatenate([np.zeros_like(others[..., :1]), np.cumsum(others, axis=-1)], axis=-1)
        rest = np.take_along_axis(upto, np.maximum(left, 0), axis=-1)
        total = np.where(members, costs, 0.0).sum(axis=-1, keepdims=True) + costs + rest
        return np.asarray(total <= budget * (1 + 1e-9) + 1e-9)

    def replaceable(
        self, members: BoolArray, site: int | IntArray, some: IntArray | None = None
    ) -> BoolArray:
        """Sites that may stand in for a member of each set, maybe itself; as :meth:`addable`."""
        without = members.copy()
        np.put_along_axis(without, np.asarray(site)[..., np.newaxis], False, axis=-1)
        return self.addable(without, some)
