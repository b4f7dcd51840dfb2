"""The covering model in CP-SAT: integer data throughout, so no tolerance is involved."""

from __future__ import annotations

import math
from typing import Any

from formulations.quorumstore.covering.model import Bill, CoveringModel
from formulations.quorumstore.covering.reduction import Reduced, reduce_model
from formulations.solvers.cpsat import solve_in_place
from formulations.solvers.statuses import Verdict, cpsat_verdict

__all__ = ["CpSatCovering"]


class CpSatCovering:
    """Answers covering questions with CP-SAT.

    Parameters
    ----------
    workers
        Threads; 1 is deterministic.
    seed
        Seed of the solver.
    """

    method = "cp-sat bisection"

    def __init__(self, workers: int = 1, seed: int = 0) -> None:
        self.workers = workers
        self.seed = seed
        self.notes: list[str] = []

    def __call__(self, model: CoveringModel, seconds: float = math.inf) -> tuple[int, ...] | None:
        """Return a replica set that answers `model`, or None: there is none.

        Raises
        ------
        TimeoutError
            When `seconds` pass without an answer.
        SolverError
            When CP-SAT fails.
        """
        reduced = reduce_model(model)
        if not reduced.possible:
            return None
        cp, x = self._build(model, reduced)
        if model.bill is not None and math.isfinite(model.budget):
            scale = _scale(model.bill)
            # Every whole price is rounded down, so what is within the budget is kept.
            cp.add(_bill(cp, model.bill, x, scale) <= math.floor(model.budget * scale) + 1)
        return self._solve(cp, x, seconds)[0]

    def cheapest(
        self, model: CoveringModel, seconds: float = math.inf
    ) -> tuple[tuple[int, ...] | None, float]:
        """Return the cheapest replica set that answers `model`, and a lower bound of its cost.

        The model needs a bill; its budget is left aside. (None, ∞) when nothing answers it.

        Raises
        ------
        TimeoutError, SolverError
            As above.
        """
        reduced = reduce_model(model)
        if not reduced.possible or model.bill is None:
            return None, math.inf
        cp, x = self._build(model, reduced)
        scale = _scale(model.bill)
        cp.minimize(_bill(cp, model.bill, x, scale))
        found, bound = self._solve(cp, x, seconds)
        return found, bound / scale if found is not None else math.inf

    def _build(self, model: CoveringModel, reduced: Reduced) -> tuple[Any, list[Any]]:
        from ortools.sat.python import cp_model

        cp = cp_model.CpModel()
        x = [cp.new_bool_var(f"x{site}") for site in range(model.sites)]
        for site in set(range(model.sites)).difference(reduced.open):
            cp.add(x[site] == 0)
        for site in reduced.held:
            cp.add(x[site] == 1)
        cp.add(sum(x[site] for site in reduced.open) == model.replicas)
        for members, cap in model.caps:
            cp.add(sum(x[site] for site in members) <= cap)
        for sites in model.excluded:
            cp.add(sum(x[site] for site in sites) <= len(sites) - 1)
        for site, other in reduced.ahead:
            cp.add_implication(x[site], x[other])
        for ball, least in reduced.required:
            cp.add(sum(x[site] for site in ball) >= least)
        y = [cp.new_bool_var(f"y{index}") for index in range(reduced.steps)]
        for ball, steps in reduced.ladders:
            inside = sum(x[site] for site in ball)
            last = None
            for step in steps:
                cp.add(inside >= step.quorum).only_enforce_if(y[step.index])
                if last is not None:
                    cp.add_implication(y[step.index], y[last])
                last = step.index
        for row in reduced.rows:
            met = cp.add(sum(count * y[index] for index, count in row.terms) >= row.needed)
            if row.lost is not None:
                met.only_enforce_if(x[row.lost])
        return cp, x

    def _solve(self, cp: Any, x: list[Any], seconds: float) -> tuple[tuple[int, ...] | None, float]:
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = self.workers
        solver.parameters.random_seed = self.seed
        if math.isfinite(seconds):
            solver.parameters.max_time_in_seconds = max(0.0, seconds)
        status = solve_in_place(solver, cp)
        verdict = cpsat_verdict(solver, status)
        if verdict is Verdict.INFEASIBLE:
            return None, math.inf
        answered = status == cp_model.FEASIBLE and not cp.has_objective()
        if verdict is Verdict.STOPPED and not answered:
            raise TimeoutError("CP-SAT ran out of time")
        chosen = tuple(site for site in range(len(x)) if solver.boolean_value(x[site]))
        return chosen, float(solver.best_objective_bound)


def _scale(bill: Bill) -> float:
    """Power of two that makes the largest price about 2^46: sums stay below 2^63."""
    largest = max(map(abs, (*bill.fixed, *(p for one in bill.routed for p in one.prices))))
    return math.ldexp(1.0, 46 - math.frexp(largest)[1]) if largest > 0 else 1.0


def _bill(cp: Any, bill: Bill, x: list[Any], scale: float) -> Any:
    """Return the bill in whole units, each price rounded down."""
    terms = [math.floor(price * scale) * x[site] for site, price in enumerate(bill.fixed)]
    for one in bill.routed:
        answers, still = [], None
        for site, price in zip(one.order, one.prices, strict=True):
            looked = cp.new_bool_var("")
            answer = cp.new_bool_var("")
            if still is not None:
                cp.add_implication(looked, still)
            cp.add_implication(answer, looked)
            cp.add_implication(answer, x[site])
            cp.add_bool_or([answer, looked.negated(), x[site].negated()])
            answers.append(answer)
            terms.append(math.floor(price * scale) * answer)
            still = looked
        cp.add(sum(answers) == one.quorum)
    return sum(terms)
