"""Constraints of the model: one function per family, and one that adds them all."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from formulations.cpsat.integer_costs import LIMIT, LeaderCosts
from formulations.cpsat.variables import LeaderVariables
from placement.evaluation.waits.wait_rows import RoleRow
from placement.model.configuration import Configuration
from placement.model.constraints import GroupRule
from placement.problem import Problem

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["add_all", "budget_terms", "chains", "diversity", "forbid", "waits"]


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
    _roles(model, variables, problem, costs.leader)
    for group in problem.rules.groups:
        diversity(model, variables.voter if group.role == "voters" else variables.replica, group)
    _budget(model, variables, problem, costs.leader)
    chains(model, variables, costs, check_time)
    waits(model, variables, costs)


def _counts(model: cp_model.CpModel, variables: LeaderVariables, problem: Problem) -> None:
    rules = problem.rules
    held = _sum(list(variables.replica.values()))
    model.add_linear_constraint(held, rules.replicas_min, rules.replicas_max)
    model.add(_sum(list(variables.voter.values())) == rules.voters)


def _roles(
    model: cp_model.CpModel, variables: LeaderVariables, problem: Problem, leader: int
) -> None:
    """ℓ ∈ V ⊆ R, and the pins."""
    rules = problem.rules
    for site, voter in variables.voter.items():
        model.add_bool_or([~voter, variables.replica[site]])
    model.add_bool_and([variables.voter[leader], variables.replica[leader]])
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
