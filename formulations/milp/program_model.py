"""The program put together, and the way back from a solution to a configuration."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from formulations.milp.program_data import ProgramData
from formulations.milp.program_rows import (
    ProgramVariables,
    budget_rows,
    count_rows,
    declare,
    diversity_rows,
    forwarding_rows,
    leader_price_rows,
    leader_wait_rows,
    nearest_rows,
    objective,
    quorum_rows,
    role_rows,
    values_at,
)
from formulations.milp.recipes import Nearest, Rows
from formulations.solvers.linear_program import Affine, LinearProgram, LinearRow, compile_program
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
    """A built program.

    Attributes
    ----------
    variables
        Its columns by name.
    rows
        Its rows; open to more.
    cost
        What is to be least.
    scale
        Objective of the program over objective of the problem.
    mass
        See :func:`mass_of`.
    """

    variables: ProgramVariables
    rows: list[LinearRow]
    cost: Affine
    scale: float
    mass: float

    def program(self, step: Step = no_step) -> LinearProgram:
        """Return the arrays of the rows as they are now; `step` is called now and then."""
        return compile_program(self.variables.columns, self.rows, self.cost, step)

    def values(self, configuration: Configuration) -> FloatArray:
        """Return the columns' values at a configuration."""
        return values_at(self.variables, configuration)

    def configuration(self, values: FloatArray) -> Configuration:
        """Read the configuration off a solution: binaries rounded, the leader by its largest y."""
        y = self.variables.y
        replicas, voters = (
            [site for site, column in columns.items() if values[column] > 0.5]
            for columns in (self.variables.x, self.variables.v)
        )
        return Configuration.of(max(y, key=lambda site: values[y[site]]), voters, replicas)

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
        self.rows.append(row.at_most(len(members) - 1))


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


def build(
    terms: ProgramData, rows: Rows, scale: float = 1.0, step: Step = no_step
) -> PlacementProgram:
    """Put the program of a recipe together.

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
    variables = declare(terms, rows)
    listed: list[LinearRow] = []
    for family in (
        role_rows,
        count_rows,
        diversity_rows,
        leader_price_rows,
        budget_rows,
        nearest_rows,
        forwarding_rows,
        quorum_rows,
        leader_wait_rows,
    ):
        step()
        listed.extend(family(variables))
    step()
    return PlacementProgram(
        variables, listed, objective(variables, scale), scale, mass_of(terms, rows)
    )
