"""The model of one leader, wired together; its objective is a sum of whole terms."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from formulations.cpsat.integer_costs import LIMIT, Integers, LeaderCosts, to_integers
from placement.evaluation.waits.wait_rows import RoleRow
from placement.model.configuration import Configuration
from placement.model.constraints import GroupRule
from placement.problem import Problem

if TYPE_CHECKING:
    from ortools.sat.python import cp_model


@dataclass
class LeaderVariables:
    """Literals of one leader's model.

    Attributes
    ----------
    replica, voter
        By site index; sites that may not hold a replica, or vote, have none.
    empty
        By set of sites: true when none of them holds a replica.
    slow
        Per wait of the leader: element i is true when its answers do not all lie within the i-th
        radius.
    """

    replica: dict[int, cp_model.IntVar]
    voter: dict[int, cp_model.IntVar]
    empty: dict[frozenset[int], cp_model.IntVar] = field(default_factory=dict)
    slow: list[list[cp_model.IntVar]] = field(default_factory=list)

    def configuration(
        self, leaders: tuple[int, ...], value: Callable[[cp_model.IntVar], bool]
    ) -> Configuration:
        """Read a configuration out of a solution; the first voter of `leaders` leads."""
        return Configuration.of(
            next(site for site in leaders if value(self.voter[site])),
            [site for site, literal in self.voter.items() if value(literal)],
            [site for site, literal in self.replica.items() if value(literal)],
        )

    def hint(self, model: cp_model.CpModel, configuration: Configuration) -> None:
        """Tell the search where a good configuration lies; it need not be led by this leader."""
        replicas = frozenset(configuration.replicas)
        voters = frozenset(configuration.voters)
        for site, literal in self.replica.items():
            model.add_hint(literal, site in replicas)
        for site, literal in self.voter.items():
            model.add_hint(literal, site in voters)
        for sites, literal in self.empty.items():
            model.add_hint(literal, not sites & replicas)


def create(model: cp_model.CpModel, problem: Problem, costs: LeaderCosts) -> LeaderVariables:
    """Add the decisions on replicas, votes and waits; chains add theirs as they are walked.

    Solver variables are numbered, never named after sites: names can't clash.
    """
    rules = problem.rules
    return LeaderVariables(
        replica={
            site: model.new_bool_var(f"replica{site}")
            for site in range(len(rules.may_hold))
            if rules.may_hold[site]
        },
        voter={
            site: model.new_bool_var(f"voter{site}")
            for site in range(len(rules.may_vote))
            if rules.may_vote[site]
        },
        slow=[
            [model.new_bool_var(f"slow{k}_{i}") for i in range(len(wait.rows))]
            for k, wait in enumerate(costs.waits)
        ],
    )


def add_all(
    model: cp_model.CpModel,
    variables: LeaderVariables,
    problem: Problem,
    costs: LeaderCosts,
    check_time: Callable[[], None],
) -> None:
    """Add every constraint of the problem under one leader.

    `check_time` is called once per chain and may raise to stop the building.
    """
    _counts(model, variables, problem)
    _roles(model, variables, problem, costs)
    for group in problem.rules.groups:
        diversity(model, variables.voter if group.role == "voters" else variables.replica, group)
    _budget(model, variables, problem, costs.leaders[0])
    chains(model, variables, costs, check_time)
    waits(model, variables, costs)


def _counts(model: cp_model.CpModel, variables: LeaderVariables, problem: Problem) -> None:
    rules = problem.rules
    held = _sum(list(variables.replica.values()))
    model.add_linear_constraint(held, rules.replicas_min, rules.replicas_max)
    model.add(_sum(list(variables.voter.values())) == rules.voters)


def _roles(
    model: cp_model.CpModel, variables: LeaderVariables, problem: Problem, costs: LeaderCosts
) -> None:
    """ℓ ∈ V ⊆ R, and the pins."""
    rules = problem.rules
    for site, voter in variables.voter.items():
        model.add_bool_or([~voter, variables.replica[site]])
    model.add_bool_or([variables.voter[leader] for leader in costs.leaders])
    for site in np.nonzero(rules.must_hold)[0].tolist():
        model.add_bool_and([variables.replica[site]])
    for site in np.nonzero(rules.must_vote)[0].tolist():
        model.add_bool_and([variables.voter[site]])


def diversity(
    model: cp_model.CpModel,
    chosen: dict[int, cp_model.IntVar],
    group: GroupRule,
    guard: cp_model.IntVar | None = None,
) -> None:
    """Add a diversity rule: caps and named minimums as cardinalities, a literal for each domain.

    Parameters
    ----------
    model
        To add to.
    chosen
        Literals of the role that the rule binds, by site.
    group
        The rule.
    guard
        When given, the rule binds only where this literal is true.
    """
    members: dict[int, list[cp_model.IntVar]] = {}
    for site, literal in chosen.items():
        members.setdefault(int(group.labels[site]), []).append(literal)
    when = [] if guard is None else [guard]
    if group.cap is not None:
        for literals in members.values():
            if len(literals) <= group.cap:
                continue
            if group.cap == 1 and guard is None:
                model.add_at_most_one(literals)
            else:
                model.add(_sum(literals) <= group.cap).only_enforce_if(when)
    if group.least:
        model.add(_sum(members.get(group.domain, [])) >= group.least).only_enforce_if(when)
    if group.min_domains is not None:
        used: list[cp_model.IntVar] = []
        for literals in members.values():
            held = model.new_bool_var(f"held{len(used)}")
            model.add_bool_or([*literals, ~held])  # a domain counts only if it is held
            used.append(held)
        model.add(_sum(used) >= group.min_domains).only_enforce_if(when)


def budget_terms(problem: Problem, leader: int) -> tuple[list[int], int] | None:
    """Prices and budget under a leader as integers: a relaxation, by less than the rounding.

    Returns
    -------
    (prices by site, budget) or None
        None without a budget. No configuration within the budget is cut off; one that exceeds it by
        less than the rounding of its prices may pass, and is forbidden when it turns up.
    """
    rules = problem.rules
    prices = problem.site_costs(leader)
    if rules.budget is None or prices is None:
        return None
    tolerance = 1e-9 * (
        1 + abs(rules.budget)
    )  # the same as in placement.feasibility.feasible_plans.violations
    largest = float(prices.sum()) + rules.budget + tolerance
    scale = 2.0 ** math.floor(math.log2(LIMIT / largest)) if largest > 0 else 1.0
    whole = [math.floor(price * scale) for price in prices.tolist()]
    return whole, math.ceil((rules.budget + tolerance) * scale)


def _budget(
    model: cp_model.CpModel, variables: LeaderVariables, problem: Problem, leader: int
) -> None:
    terms = budget_terms(problem, leader)
    if terms is not None:
        prices, budget = terms
        model.add(_weighted(variables.replica, prices) <= budget)


def chains(
    model: cp_model.CpModel,
    variables: LeaderVariables,
    costs: LeaderCosts,
    check_time: Callable[[], None],
) -> None:
    """empty[P ∪ {r}] = empty[P] ∧ ¬replica[r] along every client's distance chain."""
    empty = variables.empty
    for chain in costs.chains:
        check_time()
        prefix: frozenset[int] = frozenset()
        before: cp_model.IntVar | None = None
        for site in chain.sites[:-1].tolist():
            prefix |= {site}
            literal = empty.get(prefix)
            if literal is None:
                literal = empty[prefix] = model.new_bool_var(f"empty{len(empty)}")
            # Another client may have come to the same set in another order: these clauses are then
            # implied, but they propagate along this chain.
            here = variables.replica[site]
            model.add_implication(literal, ~here)
            if before is None:
                model.add_bool_or([literal, here])
            else:
                model.add_implication(literal, before)
                model.add_bool_or([literal, here, ~before])
            before = literal


def waits(model: cp_model.CpModel, variables: LeaderVariables, costs: LeaderCosts) -> None:
    """Let the answers of a wait lie within the i-th radius, unless slow[i]; slow[i] is nested.

    Every wait ends within its last radius.
    """
    for wait, slow in zip(costs.waits, variables.slow, strict=True):
        for i, (rows, literal) in enumerate(zip(wait.rows, slow, strict=True)):
            for row in rows:
                model.add(_answers(variables, row) >= row.least).only_enforce_if(~literal)
            if i:
                model.add_implication(literal, slow[i - 1])
        for row in wait.always:
            model.add(_answers(variables, row) >= row.least)


def _answers(variables: LeaderVariables, row: RoleRow) -> cp_model.LinearExpr:
    """Return Σ a_r voter[r] + Σ b_r replica[r]."""
    from ortools.sat.python import cp_model

    given = [(variables.voter[site], factor) for site, factor in row.voters.items()]
    given += [(variables.replica[site], factor) for site, factor in row.replicas.items()]
    return cp_model.LinearExpr.weighted_sum([one for one, _ in given], [a for _, a in given])


def forbid(
    model: cp_model.CpModel, variables: LeaderVariables, configuration: Configuration
) -> None:
    """Cut off one set of replicas under this leader."""
    replicas = frozenset(configuration.replicas)
    model.add_bool_or(
        [~literal if site in replicas else literal for site, literal in variables.replica.items()]
    )


def _sum(literals: list[cp_model.IntVar]) -> cp_model.LinearExpr:
    from ortools.sat.python import cp_model

    return cp_model.LinearExpr.sum(literals)


def _weighted(literals: dict[int, cp_model.IntVar], weights: list[int]) -> cp_model.LinearExpr:
    from ortools.sat.python import cp_model

    return cp_model.LinearExpr.weighted_sum(
        list(literals.values()), [weights[site] for site in literals]
    )


@dataclass
class LeaderObjective:
    """Objective of the model, in units of 1/scale ms·operations.

    Attributes
    ----------
    constant
        Paid by every configuration with this leader; kept out of the solver.
    terms
        Coefficient of each literal, by the literal's index; clients that share one are added up.
    """

    constant: int
    terms: dict[int, tuple[cp_model.IntVar, int]]

    def expression(self) -> cp_model.LinearExpr:
        """Return the sum without the constant."""
        from ortools.sat.python import cp_model

        literals = [literal for literal, _ in self.terms.values()]
        return cp_model.LinearExpr.weighted_sum(literals, [c for _, c in self.terms.values()])

    def add(self, literal: cp_model.IntVar, coefficient: int) -> None:
        """Add a term; terms of one literal are put together."""
        if coefficient:
            old = self.terms.get(literal.index, (literal, 0))[1]
            self.terms[literal.index] = (literal, old + coefficient)


def create_objective(
    decisions: LeaderVariables, costs: LeaderCosts, integers: Integers
) -> LeaderObjective:
    """Add up serving, waiting and money.

    A client at its nearest replica pays cost(o₁) + Σ_j (cost(o_{j+1}) − cost(o_j))·empty[o₁ … o_j]:
    the sum telescopes to the cost of the first site of the chain that holds a replica. A wait is
    ρ_0 + Σ_i (ρ_{i+1} − ρ_i)·slow[i] in the same way.
    """
    objective = LeaderObjective(integers.direct, {})
    for chain, cost in zip(costs.chains, integers.chains, strict=True):
        objective.constant += int(cost[0])
        prefix: frozenset[int] = frozenset()
        for site, step in zip(chain.sites[:-1].tolist(), np.diff(cost).tolist(), strict=True):
            prefix |= {site}
            objective.add(decisions.empty[prefix], step)
    for slow, cost in zip(decisions.slow, integers.waits, strict=True):
        objective.constant += int(cost[0])
        for literal, step in zip(slow, np.diff(cost).tolist(), strict=True):
            objective.add(literal, step)
    for site, literal in decisions.replica.items():
        objective.add(literal, int(integers.money[site]))
    return objective


@dataclass
class LeaderModel:
    """A CP-SAT model of all configurations with one leader.

    Attributes
    ----------
    model
        The solver's; open to more constraints.
    variables, objective
        Its decisions, and what is minimised.
    costs, integers
        The data behind it, before and after rounding.
    """

    model: cp_model.CpModel
    variables: LeaderVariables
    objective: LeaderObjective
    costs: LeaderCosts
    integers: Integers

    def in_ms(self, whole: int) -> float:
        """Turn an integer objective without the constant into ms·operations."""
        return (whole + self.objective.constant) / self.integers.scale

    def cut_off(self, value: float, *, keep: bool) -> bool:
        """Ask for objectives below `value` (`keep`: or that round to the same) only.

        Returns
        -------
        bool
            False when even the constant is too much, so that nothing is left to search.
        """
        units = value * self.integers.scale
        most = math.floor(units + self.integers.error * self.integers.scale) + 1
        if not keep:
            most = math.ceil(units) - 1
        # Steps of a chain may be negative, so that the sum can lie below the constant.
        room = most - self.objective.constant
        least = sum(min(0, step) for _, step in self.objective.terms.values())
        if room < least:
            return False
        self.model.add(self.objective.expression() <= room)
        return True


def build(
    problem: Problem,
    costs: LeaderCosts,
    *,
    incumbent: float = math.inf,
    hint: Configuration | None = None,
    check_time: Callable[[], None] = lambda: None,
) -> LeaderModel:
    """Build the model of one leader.

    Parameters
    ----------
    problem
        The question.
    costs
        Of the leader, from :func:`formulations.cpsat.integer_costs.leader_costs`.
    incumbent
        Objective of a known configuration; terms above it are cut to just above it.
    hint
        A configuration to search around.
    check_time
        Called now and then; may raise to stop the building.

    Notes
    -----
    O(K·C·S) literals and clauses at most; clients with a common prefix of sites share literals.
    """
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    integers = to_integers(costs, incumbent)
    decisions = create(model, problem, costs)
    add_all(model, decisions, problem, costs, check_time)
    goal = create_objective(decisions, costs, integers)
    model.minimize(goal.expression())
    if hint is not None:
        decisions.hint(model, hint)
    return LeaderModel(model, decisions, goal, costs, integers)
