"""The program of a contingency objective: a normal copy of Eq. 1, and one per loss that counts.

The decisions on replicas x and voters v are shared. Every loss F has a copy of the leader y, the
assignment z, the flows F and the radii T of :mod:`formulations.milp.variables`, on the survivors:

    Σ_{r ∉ F} v_r ≥ m                                    for every loss, generated or not
    y^F_ℓ ≤ v_ℓ,   Σ_ℓ y^F_ℓ = 1                         one of the surviving voters leads
    y^F_ℓ ≥ y_ℓ                  for ℓ ∉ F               a leader that survives stays
    y^F_ℓ ≤ y_ℓ + Σ_{f ∈ F} y_f                          … unless it was lost
    y^F_ℓ + v_c ≤ 1              for candidates c ∉ F and ℓ no candidate

The third and fourth are left out when the leader may
move; the fifth says that voters that may not lead are elected only when no candidate survives. With
cost_F the objective of a copy:

    worst      min θ,   θ ≥ cost,  θ ≥ cost_F
    bounded    min cost,   cost ≤ limit,  cost_F ≤ limit
    weighted   min (1 − Σ p_F)·cost + Σ p_F θ_F,   θ_F ≥ cost_F,
               θ_F ≥ cost − U·Σ_{f ∈ F} x_f       (no replica lost, no client moved: normal)
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

from formulations.contingency.loss_data import LossTerms
from formulations.milp.build_steps import Step, no_step
from formulations.milp.cutting_rounds import scale_for
from formulations.milp.latency_rows import (
    add_forwarding,
    add_nearest,
    add_quorum,
)
from formulations.milp.objective_rows import objective
from formulations.milp.program_data import ProgramData
from formulations.milp.program_model import PlacementProgram, add_rows, mass_of
from formulations.milp.recipes import Forwarding, Nearest, Quorum, Rows
from formulations.milp.variables import Affine, ProgramVariables, assign, declare
from formulations.solvers.linear_program import LinearProgram, values_of
from placement.contingency.objective import Contingency
from placement.evaluation.losses import Loss, score_after
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray

__all__ = ["LossProgram", "build"]

_MOST_FLOWS = 60_000
"""Flow variables of one copy beyond which they are aggregated."""


@dataclass(frozen=True, eq=False)
class LossProgram:
    """A built program.

    Attributes
    ----------
    base
        The normal copy, with the Pyomo model that holds everything.
    copies
        Variables of each generated loss.
    theta
        θ or θ_F by loss name ("" for the common one), in units of `unit`.
    unit
        ms·operations of one unit of θ.
    """

    base: PlacementProgram
    copies: tuple[ProgramVariables, ...]
    theta: dict[str, Any]
    unit: float
    contingency: Contingency

    def program(self, step: Step = no_step) -> LinearProgram:
        """Return the arrays of the model as it is now; `step` is called now and then."""
        return self.base.program(step)

    def values(self, program: LinearProgram, configuration: Configuration) -> FloatArray:
        """Return the columns' values at a configuration, for a warm start."""
        problem = self.base.variables.terms.problem
        assign(self.base.variables, configuration)
        for copy in self.copies:
            loss = _loss_of(copy)
            scores = score_after(
                problem,
                configuration,
                loss.sites,
                leader_may_move=self.contingency.leader_may_move,
                clients_move=self.contingency.clients_move,
            )
            leader = min(scores, key=scores.__getitem__)
            survivors = [r for r in configuration.replicas if r not in loss.sites]
            voters = [r for r in configuration.voters if r not in loss.sites]
            shared = dataclasses.replace(copy, x={}, v={})  # those are the normal copy's
            assign(shared, Configuration.of(leader, voters, survivors))
        after = {
            loss.name: worth
            for loss, worth in self.contingency.scores_after(problem, configuration)
        }
        for name, theta in self.theta.items():
            worth = after[name] if name else self.contingency.value(problem, configuration)
            theta.set_value(min(worth / self.unit, theta.ub))
        return values_of(program)

    def forbid(self, configuration: Configuration) -> None:
        """Cut off one configuration: it obeys the rows only within the solver's tolerance."""
        variables = self.base.variables
        held = [variables.x[r] for r in configuration.replicas]
        other = [var for r, var in variables.x.items() if r not in configuration.replicas]
        votes = [variables.v[r] for r in configuration.voters]
        chosen = [*held, *votes, variables.y[configuration.leader]]
        row = Affine.of(chosen).minus(Affine.of(other))
        self.base.model.forbidden.add(row.expression() <= len(chosen) - 1)


def _loss_of(copy: ProgramVariables) -> Loss:
    assert isinstance(copy.terms, LossTerms)
    return copy.terms.loss


def _rows_for(terms: ProgramData) -> Rows:
    """Flows per client if there are few clients; votes are not split, since their number varies."""
    flows = sum(len(row.serving) * len(terms.leaders) for row in terms.clients if row.relay > 0)
    if flows <= _MOST_FLOWS:
        return Rows(Nearest.CHAIN, Forwarding.PER_CLIENT, Quorum.NESTED)
    return Rows(Nearest.CHAIN, Forwarding.AGGREGATED, Quorum.NESTED, leader_rows=True)


def build(
    contingency: Contingency,
    normal: ProgramData,
    losses: tuple[LossTerms, ...],
    *,
    top: float,
    typical: float,
    step: Step = no_step,
) -> LossProgram:
    """Build the program with a copy for each of some losses.

    Parameters
    ----------
    contingency
        The objective.
    normal, losses
        Data, possibly reduced.
    top
        Upper bound on normal score, θ and every θ_F of the configurations of interest.
    typical
        An objective of the order of magnitude that is expected, for the scale.
    step
        Called between the families of rows and before each copy.

    Notes
    -----
    Every copy is about as large as the program of Eq. 1 on the survivors.
    """
    import pyomo.environ as pyo

    rows = _rows_for(normal)
    all_rows = [_rows_for(terms) for terms in losses]
    mass = mass_of(normal, rows) + 1
    mass += sum(mass_of(terms, r) + 1 for terms, r in zip(losses, all_rows, strict=True))
    scale = scale_for(typical, mass)
    model = pyo.ConcreteModel("contingency placement")
    variables = declare(model, normal, rows)
    add_rows(model, variables, step)
    step()
    model.forbidden = pyo.ConstraintList()
    _keep_quorums(model, variables, contingency)
    model.loss = pyo.Block(range(len(losses)))
    copies = []
    for i, (terms, copy_rows) in enumerate(zip(losses, all_rows, strict=True)):
        step()
        copies.append(_copy(model.loss[i], terms, copy_rows, variables, contingency))
    result = LossProgram(
        PlacementProgram(model, variables, scale, mass),
        tuple(copies),
        {},
        max(top, 1e-300),
        contingency,
    )
    _add_goal(model, result, top, scale)
    return result


def _keep_quorums(model: Any, variables: ProgramVariables, contingency: Contingency) -> None:
    """Σ_{r ∉ F} v_r ≥ m for every loss."""
    import pyomo.environ as pyo

    problem = variables.terms.problem
    model.quorum_left = pyo.ConstraintList()
    for loss in contingency.losses(problem):
        left = [var for r, var in variables.v.items() if r not in loss.sites]
        if not left:  # then nothing is feasible
            model.quorum_left.add(variables.v[variables.terms.voters[0]] >= 2)
            continue
        model.quorum_left.add(Affine.of(left).expression() >= problem.rules.quorum)


def _copy(
    block: Any, terms: LossTerms, rows: Rows, base: ProgramVariables, contingency: Contingency
) -> ProgramVariables:
    """Add one loss: new variables except x and v, rows on the survivors, and the election."""
    import pyomo.environ as pyo

    lost = terms.loss.sites
    declared = declare(block, terms, rows)
    for own in ("x", "v", "w", "e"):
        block.del_component(own)
    copy = dataclasses.replace(
        declared,
        x={r: base.x[r] for r in terms.holders},
        v={r: base.v[r] for r in terms.voters},
        w={},
        e={},
    )
    add_nearest(block, copy)
    add_forwarding(block, copy)
    add_quorum(block, copy)
    y, before = copy.y, base.y
    may_lead = terms.problem.rules.may_lead
    block.election = pyo.ConstraintList()
    block.election.add(Affine.of(y.values()).expression() == 1)
    for ell in y:
        block.election.add(y[ell] <= base.v[ell])
        if not may_lead[ell]:
            for c in terms.voters:
                if may_lead[c]:
                    block.election.add(y[ell] + base.v[c] <= 1)
    if not contingency.leader_may_move:
        gone = Affine.of(before[f] for f in lost if f in before)
        for ell in y:
            stayed = Affine.of([before[ell]] if ell in before else [])
            new = Affine.of([y[ell]]).minus(Affine.total((stayed, gone)))
            block.election.add(new.expression() <= 0)
        for ell in before:
            if ell not in lost:
                if ell in y:
                    block.election.add(y[ell] >= before[ell])
                else:  # under this loss it costs more than is of interest
                    block.election.add(before[ell] <= 0)
    return copy


def _add_goal(model: Any, built: LossProgram, top: float, scale: float) -> None:
    import pyomo.environ as pyo

    contingency, variables = built.contingency, built.base.variables
    problem = variables.terms.problem
    normal = objective(variables, scale)
    after = [objective(copy, scale) for copy in built.copies]
    model.goal = pyo.ConstraintList()
    unit = built.unit * scale
    if contingency.goal == "worst":
        model.theta = pyo.Var(bounds=(0.0, 1.0))
        built.theta[""] = model.theta
        target = Affine(((unit, model.theta),))
        for cost in (normal, *after):
            model.goal.add(target.minus(cost).expression() >= 0)
    elif contingency.goal == "bounded":
        target = normal
        ceiling = contingency.ceiling(problem) * scale
        for cost in (normal, *after):
            if math.isfinite(ceiling):
                model.goal.add(Affine.total((cost,)).expression() <= ceiling)
    else:
        weights = contingency.probabilities(problem)
        parts = [normal.times(1 - sum(weights))]
        copies = {_loss_of(c).name: cost for c, cost in zip(built.copies, after, strict=True)}
        losses = [
            (loss, p) for loss, p in zip(contingency.losses(problem), weights, strict=True) if p
        ]
        model.theta = pyo.Var(range(len(losses)), bounds=(0.0, 1.0))
        for i, (loss, p) in enumerate(losses):
            theta = model.theta[i]
            built.theta[loss.name] = theta
            worth = Affine(((unit, theta),))
            parts.append(worth.times(p))
            if loss.name in copies:
                model.goal.add(worth.minus(copies[loss.name]).expression() >= 0)
            if not contingency.moves_clients(problem, loss):
                touched = Affine.of(
                    (variables.x[f] for f in sorted(loss.sites) if f in variables.x), top * scale
                )
                row = Affine.total((worth, touched)).minus(normal)
                model.goal.add(row.expression() >= 0)
        target = Affine.total(parts)
    model.objective = pyo.Objective(expr=target.expression(), sense=pyo.minimize)
