"""Way from the configuration that runs today to a plan: steps, gain, and when it pays."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from placement.evaluation.move_costs import MoveCosts
from placement.evaluation.moves import Moves, RoleChanges, changes
from placement.evaluation.objective import score_of
from placement.evaluation.score import score
from placement.evaluation.value_tables import ValueColumn, ValueTable
from placement.overtime.moves.move_steps import MoveStep, step_document, step_text, steps_between
from placement.plan import Plan
from placement.problem import Problem

__all__ = ["PlanMoves", "move_tables", "moves_document", "moves_sentence", "plan_moves"]


@dataclass(frozen=True, eq=False)
class PlanMoves:
    """The way from the present configuration to a plan.

    Attributes
    ----------
    problem
        The question of the plan.
    changes
        What changes.
    before, after
        Mean latency of the present configuration and of the plan, ms.
    price
        Price of all changes, not spread over the horizon, ms added to one period.
    steps
        Safe steps in their order, each with the mean latency that the database has after it, ms.
    """

    problem: Problem
    changes: RoleChanges
    before: float
    after: float
    price: float
    steps: tuple[tuple[MoveStep, float], ...]

    @property
    def gain(self) -> float:
        """Mean latency that the move saves, ms; negative where it costs some."""
        return self.before - self.after

    @property
    def pays_after(self) -> float:
        """Periods of the demand after which the gain has paid the price; infinite: never."""
        if not self.price:
            return 0.0
        return self.price / self.gain if self.gain > 0 else math.inf


def plan_moves(plan: Plan) -> PlanMoves | None:
    """Return how a plan is reached from `Problem.current`; None without one, or without a plan.

    Notes
    -----
    O(steps) evaluations, and the search for a safe order of the steps.
    """
    problem, found, present = plan.problem, plan.configuration, plan.problem.present
    if found is None or present is None:
        return None
    steps = tuple(
        (step, _mean_after(problem, step)) for step in steps_between(problem, present, found)
    )
    before = score_of(problem, present) / problem.demand.operations
    after = score_of(problem, found) / problem.demand.operations
    price = MoveCosts(problem.instance, present, _whole(problem.moves)).price.value(found)
    return PlanMoves(problem, changes(present, found), before, after, price, steps)


def _mean_after(problem: Problem, step: MoveStep) -> float:
    """Return the mean latency after a step, ms."""
    state = step.after
    serving = [r for r in state.replicas if r not in state.behind]
    leader = state.configuration.leader
    value = score(problem.demand, leader, state.voters, serving, state.quorums.commit)
    return value / problem.demand.operations


def _whole(moves: Moves | None) -> Moves:
    """Return the prices alone, not spread."""
    if moves is None:
        return Moves()
    return Moves(moves.add, moves.remove, moves.promote, moves.demote, moves.leader)


def moves_sentence(moves: PlanMoves) -> str:
    """Return the gain of the move, and when the move pays, as one sentence."""
    if not moves.changes:
        return f"Nothing changes: the present configuration is the answer, {moves.before:.3f} ms."
    count = moves.changes.size
    words = f"{count} change{'' if count == 1 else 's'}: {moves.before:.3f} ms becomes "
    words += f"{moves.after:.3f} ms, a gain of {moves.gain:.3f} ms"
    if moves.before > 0:
        words += f" ({100 * moves.gain / moves.before:.1f} %)"
    if not moves.price:
        return words + "."
    if math.isinf(moves.pays_after):
        return words + f". The price is {moves.price:.3f} ms; no gain pays it back."
    return words + (
        f". The price is {moves.price:.3f} ms: it is paid back after "
        f"{moves.pays_after:.1f} periods of the demand."
    )


def move_tables(moves: PlanMoves) -> tuple[ValueTable, ...]:
    """Return the steps as a table; no rows if nothing changes."""
    sites, last, rows = moves.problem.instance.sites, moves.before, []
    for number, (step, mean) in enumerate(moves.steps, 1):
        rows.append((str(number), step_text(step, sites), mean, last - mean))
        last = mean
    columns = (
        ValueColumn("step"),
        ValueColumn("what to do"),
        ValueColumn("mean after it, ms", 3),
        ValueColumn("gain, ms", 3),
    )
    return (ValueTable("Moves from today's configuration", columns, tuple(rows)),) if rows else ()


def moves_document(moves: PlanMoves) -> Mapping[str, object]:
    """Return the way to the plan as JSON values, with names."""
    sites, now = moves.problem.instance.sites, moves.changes

    def names(chosen: tuple[int, ...]) -> list[str]:
        return [sites[site] for site in chosen]

    pays = moves.pays_after
    return {
        "changes": now.size,
        "leader": now.leader,
        "added": names(now.added),
        "removed": names(now.removed),
        "promoted": names(now.promoted),
        "demoted": names(now.demoted),
        "before_ms": moves.before,
        "after_ms": moves.after,
        "gain_ms": moves.gain,
        "price_ms": moves.price,
        "pays_after_periods": None if math.isinf(pays) else pays,
        "steps": [
            {**step_document(step, sites), "mean_ms": None if math.isinf(mean) else mean}
            for step, mean in moves.steps
        ],
    }
