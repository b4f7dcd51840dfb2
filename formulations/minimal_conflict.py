"""Explanation of infeasible problems: a smallest set of constraints without a plan, in words.

Every constraint that a user wrote (each pinned or forbidden site, each diversity rule, the survival
goal, the least and the most replicas, the budget, …) is guarded by a separate literal in a CP-SAT
model of feasibility. The solver assumes all literals and names a sufficient set of assumptions for
infeasibility. A deletion filter (Chinneck and Dravnieks, ORSA J. Computing 3(2), 1991, for linear
programs) then drops all that are not needed. The result is confirmed by
:func:`placement.feasibility.feasible_plans.find_feasible`, a complete search that shares nothing
with CP-SAT: the set has no plan, and without any one of its members there is one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from formulations.enumeration.enumerate_sets import count_sets
from formulations.solvers.cpsat import new_solver
from placement.errors import LimitError, SolverError
from placement.evaluation.objective import MEAN_LATENCY
from placement.evaluation.waits.wait_checks import every_replica_votes, least_replicas
from placement.feasibility.feasible_plans import find_feasible
from placement.model.configuration import Configuration
from placement.model.constraints import NO_DOMAIN, GroupRule, by_name
from placement.problem import Problem

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


class Kind(Enum):
    """Kind of a constraint, in the words that introduce it."""

    FORBIDDEN = "forbidden"
    NON_VOTER = "without a vote"
    REPLICAS = "the replicas are exactly"
    LEAST = "at least {} replicas"
    MOST = "at most {} replicas"
    VOTERS = "the voters are exactly"
    PINNED = "pinned"
    PINNED_VOTER = "pinned voter"
    LEADER = "leader"
    LEADERS = "led from one of"
    RULE = "diversity"
    SURVIVE = "survive"
    OBJECTIVE = "the objective:"
    BUDGET = "a budget of"


_MOST = 2.0**53
"""Largest sum of whole prices: far from wrapping (2^63)."""

_MOST_SETS = 2_000
"""Sets of replicas that a search goes through whose cost is known when a set is whole."""

_PER_SITE = (Kind.FORBIDDEN, Kind.NON_VOTER, Kind.PINNED, Kind.PINNED_VOTER)


@dataclass(frozen=True)
class Constraint:
    """Request of the user that could be given up."""

    kind: Kind  #: what it is
    words: str  #: what people are told; of a constraint on one site, its name
    index: int = -1  #: position among the problem's diversity rules; -1 for everything else


def explain_infeasible(problem: Problem, *, seconds: float = math.inf) -> tuple[str, ...]:
    """Return why an infeasible problem has no plan, in one sentence.

    Parameters
    ----------
    problem, seconds
        As of :func:`minimal_conflict`.

    Returns
    -------
    tuple of str
        Empty when the constraints have a plan and only the objective (one with conditions of its
        own, such as surviving losses), a limit on moves or a wait without enough members rejects
        it.

    Raises
    ------
    SolverError
        When there is a plan, so that "infeasible" was wrong.
    """
    if _beyond_search(problem):
        free = problem.replace(budget=None)
        if _has_no_plan(free):
            return explain_infeasible(free, seconds=seconds)
        priced = " and ".join(part for part in problem.cost_parts if part != "moves")
        return (
            f"no plan keeps the budget of {problem.budget:g} and the other rules together; the "
            f"prices of {priced} are part of the cost",
        )
    found, confirmed, plan = minimal_conflict(problem, seconds)
    if plan is not None:
        moves = problem.move_costs is not None and problem.move_costs.limits
        if not problem.objective.minimises_mean or problem.demand.waits or moves:
            return ()
        raise SolverError(f"no plan is said to exist, but here is one: {plan}")
    voters = problem.rules.voters
    whom = f"{voters} voter{'' if voters == 1 else 's'}"
    if witnesses := problem.rules.witnesses:
        whom += f" ({witnesses} witness{'' if witnesses == 1 else 'es'})"
    if not found:
        return (f"no choice of {whom} among the sites that may be chosen makes a plan",)
    parts = _words(found)
    if len(parts) == 1:
        sentence = f"with {whom}, this alone has no plan: {parts[0]}"
    else:
        sentence = (
            f"with {whom}, these {len(parts)} together have no plan, but without any one of them "
            f"there is one: {'; '.join(parts)}"
        )
    if not confirmed:
        sentence += " (by CP-SAT alone: the complete search that should confirm it gave up)"
    return (sentence,)


def _has_no_plan(problem: Problem) -> bool:
    try:
        return find_feasible(problem) is None
    except LimitError:
        return False


def _beyond_search(problem: Problem) -> bool:
    """Return whether the budget has parts that no price of a site holds, over too many sets."""
    parts = set(problem.cost_parts) - {"moves"}
    return problem.budget is not None and bool(parts) and count_sets(problem) > _MOST_SETS


def minimal_conflict(
    problem: Problem, seconds: float = math.inf
) -> tuple[tuple[Constraint, ...], bool, Configuration | None]:
    """Return constraints that together have no plan, none of which can be left out.

    Parameters
    ----------
    problem
        The question.
    seconds
        Time for each search of CP-SAT; the complete search drops what a short one leaves.

    Returns
    -------
    constraints
        A minimal set; empty when what can't be given up is infeasible by itself.
    confirmed
        Whether the complete search confirmed it; False when that search gave up.
    plan
        A configuration that obeys all constraints, if there is one after all.

    Notes
    -----
    At most two feasibility searches per constraint. Which minimal set is found, of several, depends
    on their order: the first in :func:`constraints_of` is given up first.
    """
    with suppress(LimitError):
        if (plan := find_feasible(problem)) is not None:
            return (), True, plan
    everything = constraints_of(problem)
    guarded = _Guarded(problem, everything, seconds)
    core = _without_needless(guarded.core(), lambda kept: guarded.core(kept) is None)
    try:
        plan = find_feasible(keeping(problem, core))
        if plan is not None:
            return (), True, plan
        # CP-SAT rounds prices, so that the last word on what is needed is the complete search's.
        core = _without_needless(
            core, lambda kept: find_feasible(keeping(problem, kept)) is not None
        )
    except LimitError:
        return core, False, None
    return core, True, None


def _without_needless(
    core: Sequence[Constraint] | None, has_plan: Callable[[Sequence[Constraint]], bool]
) -> tuple[Constraint, ...]:
    """Drop, one after another, every constraint without which there is still no plan."""
    kept = list(core or ())
    for constraint in tuple(kept):
        fewer = [other for other in kept if other != constraint]
        if not has_plan(fewer):
            kept = fewer
    return tuple(kept)


def constraints_of(problem: Problem) -> tuple[Constraint, ...]:
    """Return the constraints that a user could give up; the number of voters stands.

    A site that lacks a label which a rule needs can't be set free: it stays forbidden (or without a
    vote) whatever is given up.
    """
    rules, instance = problem.rules, problem.instance
    hold_stays, vote_stays = _unlabelled(problem)
    found = [Constraint(Kind.FORBIDDEN, s) for s in problem.forbidden if s not in hold_stays]
    found += [Constraint(Kind.NON_VOTER, s) for s in problem.non_voters if s not in vote_stays]
    if by_name(problem.replicas):
        found.append(_listed(Kind.REPLICAS, problem.replicas))
    else:
        pins = {*problem.pinned, *problem.pinned_voters, problem.leader} - {None}
        # else implied by those, or by waits for which every replica votes
        all_vote = every_replica_votes(problem)
        if rules.replicas_min > max(rules.data_voters, len(pins)) and not all_vote:
            found.append(Constraint(Kind.LEAST, Kind.LEAST.value.format(rules.replicas_min)))
        if rules.replicas_max < len(instance.sites) and not all_vote:
            found.append(Constraint(Kind.MOST, Kind.MOST.value.format(rules.replicas_max)))
    if by_name(problem.voters):
        found.append(_listed(Kind.VOTERS, problem.voters))
    found += [Constraint(Kind.PINNED, site) for site in problem.pinned]
    found += [Constraint(Kind.PINNED_VOTER, site) for site in problem.pinned_voters]
    if problem.leader is not None:
        found.append(_listed(Kind.LEADER, [problem.leader]))
    if problem.leaders is not None:
        found.append(_listed(Kind.LEADERS, problem.leaders))
    found += [Constraint(Kind.RULE, rule.words(), i) for i, rule in enumerate(problem.diversity)]
    if _groups_of(problem, Kind.OBJECTIVE):
        words = f"{Kind.OBJECTIVE.value} {problem.objective.describe()}"
        found.append(Constraint(Kind.OBJECTIVE, words))
    if problem.survive is not None:
        found.append(Constraint(Kind.SURVIVE, _groups_of(problem, Kind.SURVIVE)[0].why))
    if problem.budget is not None:
        currency = instance.prices.currency if instance.prices else ""
        words = f"{Kind.BUDGET.value} {problem.budget:g} {currency}".strip()
        found.append(Constraint(Kind.BUDGET, words))
    return tuple(found)


def keeping(problem: Problem, kept: Iterable[Constraint]) -> Problem:
    """Return the problem with only some of its constraints."""
    kept = tuple(kept)
    kinds = {constraint.kind for constraint in kept}
    positions = {constraint.index for constraint in kept}
    rules = problem.rules
    hold_stays, vote_stays = _unlabelled(problem)

    def sites(kind: Kind) -> set[str]:
        return {constraint.words for constraint in kept if constraint.kind is kind}

    counts = (
        rules.replicas_min if Kind.LEAST in kinds else least_replicas(problem),
        rules.replicas_max if Kind.MOST in kinds else len(problem.instance.sites),
    )
    if every_replica_votes(problem):
        counts = rules.voters, rules.voters
    return problem.replace(
        replicas=problem.replicas if Kind.REPLICAS in kinds else counts,
        voters=problem.voters if Kind.VOTERS in kinds else rules.voters,
        quorum=rules.quorum,
        forbidden=sorted(sites(Kind.FORBIDDEN) | hold_stays),
        non_voters=sorted(sites(Kind.NON_VOTER) | vote_stays),
        pinned=sorted(sites(Kind.PINNED)),
        pinned_voters=sorted(sites(Kind.PINNED_VOTER)),
        leader=problem.leader if Kind.LEADER in kinds else None,
        leaders=problem.leaders if Kind.LEADERS in kinds else None,
        diversity=[rule for i, rule in enumerate(problem.diversity) if i in positions],
        survive=problem.survive if Kind.SURVIVE in kinds else None,
        objective=problem.objective if Kind.OBJECTIVE in kinds else MEAN_LATENCY,
        budget=problem.budget if Kind.BUDGET in kinds else None,
    )


def _listed(kind: Kind, names: object) -> Constraint:
    assert isinstance(names, (tuple, list))
    return Constraint(kind, f"{kind.value} {', '.join(map(str, names))}")


def _unlabelled(problem: Problem) -> tuple[set[str], set[str]]:
    """Sites that may not hold a replica (not vote) and lack a label that a rule would need."""
    rules, instance = problem.rules, problem.instance
    stays: dict[str, set[str]] = {"replicas": set(), "voters": set()}
    for group in rules.groups:
        free = rules.able_voters if group.role == "voters" else rules.may_hold
        for site, label in enumerate(group.labels):
            if group.names[label].startswith(NO_DOMAIN) and not free[site]:
                stays[group.role].add(instance.sites[site])
    return stays["replicas"], stays["voters"]


def _words(found: Iterable[Constraint]) -> list[str]:
    """Return one phrase per constraint; constraints of one kind on single sites share one."""
    parts: list[str] = []
    names: dict[Kind, list[str]] = {}
    for constraint in found:
        if constraint.kind in _PER_SITE:
            names.setdefault(constraint.kind, []).append(constraint.words)
        else:
            parts.append(constraint.words)
    for kind, sites in names.items():
        plural = "s" if kind is Kind.PINNED_VOTER and len(sites) > 1 else ""
        parts.append(f"{kind.value}{plural} {', '.join(sites)}")
    return parts


class _Guarded:
    """Model of the feasible plans, with a literal in front of every removable constraint."""

    def __init__(
        self, problem: Problem, constraints: Sequence[Constraint], seconds: float = math.inf
    ) -> None:
        from ortools.sat.python import cp_model

        self.problem = problem
        self.seconds = seconds if math.isfinite(seconds) else None
        self.model = cp_model.CpModel()
        count = len(problem.instance.sites)
        self.replica = [self.model.new_bool_var(f"replica{s}") for s in range(count)]
        self.voter = [self.model.new_bool_var(f"voter{s}") for s in range(count)]
        self.leader = [self.model.new_bool_var(f"leader{s}") for s in range(count)]
        self.witness = [self.model.new_bool_var(f"witness{s}") for s in range(count)]
        self._structure()
        self.guards: dict[Constraint, cp_model.IntVar] = {}
        for number, constraint in enumerate(constraints):
            guard = self.model.new_bool_var(f"guard{number}")
            self.guards[constraint] = guard
            self._add(constraint, guard)

    def core(self, kept: Sequence[Constraint] | None = None) -> tuple[Constraint, ...] | None:
        """Assume some constraints (None: all) and return enough of them for infeasibility.

        None when they have a plan; when all are assumed and have one, all of them, for the complete
        search to decide.
        """
        from ortools.sat.python import cp_model

        assumed = list(self.guards) if kept is None else list(kept)
        self.model.clear_assumptions()
        self.model.add_assumptions([self.guards[constraint] for constraint in assumed])
        solver = new_solver(seconds=self.seconds, seed=0, threads=1)
        if solver.solve(self.model) != cp_model.INFEASIBLE:
            return tuple(assumed) if kept is None else None
        named = set(solver.sufficient_assumptions_for_infeasibility())
        return tuple(c for c in assumed if self.guards[c].index in named)

    def _structure(self) -> None:
        """Add the constraints that are never given up, and sites that cannot be set free.

        ℓ ∈ V ∩ R, |V| = v, and voters outside R are the witnesses.
        """
        from ortools.sat.python import cp_model

        self.model.add_exactly_one(self.leader)
        for site, leader in enumerate(self.leader):
            replica, voter, witness = self.replica[site], self.voter[site], self.witness[site]
            self.model.add_bool_and([voter, replica]).only_enforce_if(leader)
            self.model.add_bool_or([~voter, replica, witness])
            self.model.add_bool_and([voter, ~replica]).only_enforce_if(witness)
        rules = self.problem.rules
        witnesses = cp_model.LinearExpr.sum(self.witness)
        self.model.add(witnesses == rules.witnesses)
        if rules.must_witness is not None:
            named = np.nonzero(rules.must_witness)[0].tolist()
            self.model.add_bool_and([self.witness[s] for s in named])
        votes = cp_model.LinearExpr.sum(self.voter)
        self.model.add(votes == self.problem.rules.voters)
        for names, literals in zip(
            _unlabelled(self.problem), (self.replica, self.voter), strict=True
        ):
            for site in self._indices(names):
                self.model.add_bool_and([~literals[site]])

    def _indices(self, names: Iterable[str]) -> list[int]:
        return [int(s) for s in self.problem.instance.site_indices(sorted(names))]

    def _add(self, constraint: Constraint, guard: cp_model.IntVar) -> None:
        from ortools.sat.python import cp_model

        problem, rules, model = self.problem, self.problem.rules, self.model
        held = cp_model.LinearExpr.sum(self.replica)
        literals: list[cp_model.IntVar] = []
        match constraint.kind:
            case Kind.FORBIDDEN:
                sites = self._indices([constraint.words])
                literals = [~one[s] for s in sites for one in (self.replica, self.witness)]
            case Kind.NON_VOTER:
                literals = [~self.voter[s] for s in self._indices([constraint.words])]
            case Kind.PINNED:
                literals = [self.replica[s] for s in self._indices([constraint.words])]
            case Kind.PINNED_VOTER:
                sites = self._indices([constraint.words])
                literals = [one[s] for s in sites for one in (self.voter, self.replica)]
            case Kind.REPLICAS:
                literals = _exactly(self.replica, self._indices(map(str, problem.replicas)))  # type: ignore[arg-type]  # by name: a tuple of str
            case Kind.VOTERS:
                literals = _exactly(self.voter, self._indices(map(str, problem.voters)))  # type: ignore[arg-type]  # by name: a tuple of str
            case Kind.LEADER:
                literals = [self.leader[s] for s in self._indices([str(problem.leader)])]
            case Kind.LEADERS:
                candidates = set(self._indices(problem.leaders or ()))
                literals = [~one for s, one in enumerate(self.leader) if s not in candidates]
            case Kind.LEAST:
                model.add(held >= rules.replicas_min).only_enforce_if(guard)
            case Kind.MOST:
                model.add(held <= rules.replicas_max).only_enforce_if(guard)
            case Kind.RULE | Kind.SURVIVE | Kind.OBJECTIVE:
                for group in _groups_of(problem, constraint.kind, constraint.index):
                    chosen = self.voter if group.role == "voters" else self.replica
                    _diversity(model, chosen, group, guard)
            case Kind.BUDGET:
                for site, leader in enumerate(self.leader):
                    prices, budget = _budget_terms(problem, site)
                    cost = cp_model.LinearExpr.weighted_sum(self.replica, prices)
                    model.add(cost <= budget).only_enforce_if([guard, leader])
        for literal in literals:
            model.add_implication(guard, literal)


def _diversity(
    model: cp_model.CpModel,
    chosen: Sequence[cp_model.IntVar],
    group: GroupRule,
    guard: cp_model.IntVar,
) -> None:
    """Add a diversity rule to the literals of a role, which binds where `guard` is true."""
    from ortools.sat.python import cp_model

    members: dict[int, list[cp_model.IntVar]] = {}
    for site, literal in enumerate(chosen):
        members.setdefault(int(group.labels[site]), []).append(literal)
    sums = {domain: cp_model.LinearExpr.sum(literals) for domain, literals in members.items()}
    if group.cap is not None:
        for total in sums.values():
            model.add(total <= group.cap).only_enforce_if(guard)
    if group.least:
        model.add(sums.get(group.domain, 0) >= group.least).only_enforce_if(guard)
    if group.min_domains is not None:
        used: list[cp_model.IntVar] = []
        for literals in members.values():
            used.append(model.new_bool_var(f"held{len(used)}"))
            model.add_bool_or([*literals, ~used[-1]])  # a domain counts only if it is held
        model.add(cp_model.LinearExpr.sum(used) >= group.min_domains).only_enforce_if(guard)


def _budget_terms(problem: Problem, leader: int) -> tuple[list[int], int]:
    """Return prices by site and the budget as integers, relaxed by less than the rounding."""
    budget, prices = problem.rules.budget, problem.site_costs(leader)
    assert budget is not None  # the constraint is a budget
    assert prices is not None
    tolerance = 1e-9 * (1 + abs(budget))  # the same as in placement.feasibility.feasible_plans
    largest = float(prices.sum()) + budget + tolerance
    scale = 2.0 ** math.floor(math.log2(_MOST / largest)) if largest > 0 else 1.0
    whole = [math.floor(price * scale) for price in prices.tolist()]
    return whole, math.ceil((budget + tolerance) * scale)


def _groups_of(problem: Problem, kind: Kind, index: int = -1) -> list[GroupRule]:
    """Rules on site indices of a constraint: a rule of the user, the objective, or survival."""
    groups, own = problem.rules.groups, problem.diversity
    if kind is Kind.RULE:
        return [group for group in groups if group.rule is own[index]]
    if kind is Kind.SURVIVE:
        return [group for group in groups if group.rule is None]
    known = (None, *own)
    return [group for group in groups if all(group.rule is not rule for rule in known)]


def _exactly(literals: Sequence[cp_model.IntVar], sites: Iterable[int]) -> list[cp_model.IntVar]:
    chosen = np.isin(np.arange(len(literals)), list(sites))
    return [one if inside else ~one for one, inside in zip(literals, chosen, strict=True)]
