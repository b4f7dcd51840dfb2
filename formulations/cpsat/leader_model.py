"""The model of one leader, wired together."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formulations.cpsat import constraints, variables
from formulations.cpsat import leader_objective as objective
from formulations.cpsat.integer_costs import Integers, LeaderCosts, to_integers
from placement.model.configuration import Configuration
from placement.problem import Problem

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["LeaderModel", "build"]


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
    variables: variables.LeaderVariables
    objective: objective.LeaderObjective
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
    decisions = variables.create(model, problem, costs)
    constraints.add_all(model, decisions, problem, costs, check_time)
    goal = objective.create(decisions, costs, integers)
    model.minimize(goal.expression())
    if hint is not None:
        decisions.hint(model, hint)
    return LeaderModel(model, decisions, goal, costs, integers)
