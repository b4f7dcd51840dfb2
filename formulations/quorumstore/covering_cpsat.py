"""The covering model in CP-SAT: integer data throughout, so no tolerance is involved."""

from __future__ import annotations

import math

from formulations.quorumstore.covering import CoveringModel
from placement.errors import SolverError

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
        from ortools.sat.python import cp_model

        if model.hopeless:
            return None
        cp = cp_model.CpModel()
        x = [cp.new_bool_var(f"x{site}") for site in range(model.sites)]
        cp.add(sum(x) == model.replicas)
        for members, cap in model.caps:
            cp.add(sum(x[site] for site in members) <= cap)
        y = []
        for index, cover in enumerate(model.covers):
            within = cp.new_bool_var(f"y{index}")
            cp.add(sum(x[site] for site in cover.ball) >= cover.quorum).only_enforce_if(within)
            y.append(within)
        for demand in model.demands:
            cp.add(sum(count * y[index] for index, count in demand.terms) >= demand.needed)
        solver = cp_model.CpSolver()
        solver.parameters.num_workers = self.workers
        solver.parameters.random_seed = self.seed
        if math.isfinite(seconds):
            solver.parameters.max_time_in_seconds = max(0.0, seconds)
        status = solver.solve(cp)
        if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
            return tuple(site for site in range(model.sites) if solver.boolean_value(x[site]))
        if status == cp_model.INFEASIBLE:
            return None
        if status == cp_model.UNKNOWN:
            raise TimeoutError("CP-SAT ran out of time")
        raise SolverError(f"CP-SAT ended with status {solver.status_name(status)}")
