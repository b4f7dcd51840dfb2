"""The program put together, and the way back from a solution to a configuration."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.milp.program_data import ProgramData
from formulations.milp.program_rows import (
    Affine,
    ProgramVariables,
    add_budget,
    add_counts,
    add_diversity,
    add_forwarding,
    add_leader_prices,
    add_leader_waits,
    add_nearest,
    add_quorum,
    add_roles,
    declare,
    objective,
)
from formulations.milp.recipes import Nearest, Rows
from formulations.solvers.linear_program import LinearProgram, compile_program
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray

Step = Callable[[], None]
"""Called between the parts of a program; may raise :class:`OutOfTimeError`."""


class OutOfTimeError(Exception):
    """The time limit passed while a program was built; never leaves the method."""


def no_step() -> None:
    """Do nothing: for programs that are built without a search."""


def stepping(report: Callable[[], None], deadline: float) -> Step:
    """Return a step that reports, then raises OutOfTimeError from the deadline on.

    Parameters
    ----------
    report
        Passes on what the search knows so far.
    deadline
        ``time.perf_counter()`` at which to stop; may be infinite.
    """

    def step() -> None:
        report()
        if time.perf_counter() >= deadline:
            raise OutOfTimeError

    return step


@dataclass(frozen=True, eq=False)
class PlacementProgram:
    """A built program."""

    model: Any  #: the Pyomo ConcreteModel: readable, printable, open to further rows
    variables: ProgramVariables  #: its decision variables by name
    scale: float  #: objective of the program over objective of the problem
    mass: float  #: see mass_of

    def program(self, step: Step = no_step) -> LinearProgram:
        """Return the arrays of the model as it is now; `step` is called now and then."""
        return compile_program(self.model, step)

    def start(self, program: LinearProgram, configuration: Configuration) -> FloatArray:
        """Return the columns' values at a configuration: those of the roles, NaN for the others."""
        leader, voters, replicas = (
            configuration.leader,
            configuration.voters,
            configuration.replicas,
        )
        each = self.variables
        value = {
            id(var): float(site in chosen)
            for container, chosen in ((each.x, replicas), (each.v, voters), (each.y, (leader,)))
            for site, var in container.items()
        }
        return np.array([value.get(id(var), np.nan) for var in program.columns])

    def configuration(self, program: LinearProgram, x: FloatArray) -> Configuration:
        """Read the configuration off a solution: binaries rounded, the leader by its largest y."""
        value = {id(var): float(x[j]) for j, var in enumerate(program.columns)}
        chosen = [
            [site for site, var in container.items() if value[id(var)] > 0.5]
            for container in (self.variables.x, self.variables.v)
        ]
        y = {site: value[id(var)] for site, var in self.variables.y.items()}
        leader = max(y, key=lambda site: y[site])
        return Configuration.of(leader, chosen[1], chosen[0])

    def forbid(self, configuration: Configuration) -> None:
        """Cut off the leader with any superset of the replicas: y_ℓ + Σ_{r ∈ R} x_r ≤ |R|.

        For configurations over budget: prices are non-negative, so that more replicas under the
        same leader are over budget as well. Not so where near reads are paid for, which another
        replica may make cheaper, and where votes are, of which others may be cheaper: then only
        this configuration is cut off. O(|S|).
        """
        variables, parts = self.variables, self.variables.terms.problem.cost_parts
        members = [variables.x[r] for r in configuration.replicas]
        members.append(variables.y[configuration.leader])
        if "votes" in parts:
            members.extend(variables.v[r] for r in configuration.voters)
        row = Affine.of(members)
        if parts:
            others = (x for r, x in variables.x.items() if r not in configuration.replicas)
            row = row.minus(Affine.of(others))
        self.model.forbidden.add(row.expression() <= len(members) - 1)


def mass_of(terms: ProgramData, rows: Rows) -> float:
    """Upper bound on the sum of all variables of a recipe: the factor of dual tolerances.

    If no reduced cost is below −ε, the optimum of the exact LP is at least the computed one less ε
    times this sum.
    """
    rules, scenarios = terms.problem.rules, terms.demand.scenarios
    chain = rows.nearest is Nearest.CHAIN
    served = sum(len(row.serving) if chain else 1 for row in terms.clients)
    radii = sum(len(waits) for waits in terms.radii.values())
    radii += sum(len(wait.radii) for wait in terms.led.values())
    domains = sum(len(group.names) for group in rules.groups)
    flows = len(terms.clients) + len(terms.classes)
    roles = 2 * rules.replicas_max + 2 * rules.voters + 1 + (rules.quorum + 1) * scenarios
    return float(served + flows + radii + domains + roles)


def add_rows(model: Any, variables: ProgramVariables, step: Step = no_step) -> None:
    """Add every family of constraints to a model, with a step before each."""
    for add in (
        add_roles,
        add_counts,
        add_diversity,
        add_leader_prices,
        add_budget,
        add_nearest,
        add_forwarding,
        add_quorum,
        add_leader_waits,
    ):
        step()
        add(model, variables)


def build(
    terms: ProgramData, rows: Rows, scale: float = 1.0, step: Step = no_step
) -> PlacementProgram:
    """Build the Pyomo model of a recipe.

    Parameters
    ----------
    terms
        The data, possibly reduced.
    rows
        The recipe.
    scale
        Factor on the objective.
    step
        Called between the families of rows.

    Notes
    -----
    |S| = |C| = 60 gives some ten thousand columns and rows; see docs/formulations.md for sizes.
    """
    import pyomo.environ as pyo

    model = pyo.ConcreteModel("replica placement")
    variables = declare(model, terms, rows)
    add_rows(model, variables, step)
    step()
    model.forbidden = pyo.ConstraintList()
    model.objective = pyo.Objective(
        expr=objective(variables, scale).expression(), sense=pyo.minimize
    )
    return PlacementProgram(model, variables, scale, mass_of(terms, rows))
