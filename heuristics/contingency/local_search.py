"""Local search for plans that stay good when sites are lost (``local-search``, contingency).

Starts: the proven optimum of normal times, and the optima under one more rule, at most one replica
(or one voter) per domain of each level: spread-out plans lose little at a time. From each of them
steepest descent over

* swaps of a replica with a site outside (the added site takes the role of the removed one),
* additions and removals where |R| may vary,
* exchanges of a voter with a replica that does not vote,
* another voter as leader,

with the exact evaluator; then seeded restarts from the best plan with a few random moves, until
`patience` of them in a row bring nothing. A move whose normal score alone is no better than the
best value is not evaluated under losses, for the goals whose value is never below it.

The bound is that of normal times, which no contingency value undercuts: valid, and loose by what
the losses cost. One step costs O(|R|·S) evaluations of O(losses that hit R · C · |R|).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from heuristics.completion import infeasible_plan
from placement.contingency.objective import Contingency
from placement.errors import InputError, PlacementError
from placement.evaluation.objective import MEAN_LATENCY, score_of
from placement.evaluation.score import TIE
from placement.feasibility.feasible_plans import find_feasible, violations
from placement.feasibility.neighbours import neighbours
from placement.methods import Options, Progress, available, load_method
from placement.methods import run as run_method
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity
from placement.plan import Plan
from placement.problem import Problem
from placement.status import Status, Termination, end_early

__all__ = ["solve"]

_SHAKES = 3
_NORMAL = "exact"
_SHARE = 0.3  # of a time limit that the plan for normal times may use


@dataclass
class _LossSearch:
    """State: the best configuration under (what is too much, value, normal score)."""

    problem: Problem
    options: Options
    patience: int
    started: float = field(default_factory=time.perf_counter)
    key: tuple[float, float, float] = (math.inf, math.inf, math.inf)
    best: Configuration | None = None
    bound: float = -math.inf
    evaluations: int = 0
    restarts: int = 0
    termination: Termination = Termination.FINISHED
    goal: Contingency = field(init=False)
    seen: dict[Configuration, tuple[float, float, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        assert isinstance(self.problem.objective, Contingency)
        self.goal = self.problem.objective
        # The rules without what the losses ask for, which `value` measures instead.
        self.relaxed = self.problem.replace(objective=MEAN_LATENCY)

    def run(self) -> None:
        """Descend from every start, then restart until nothing improves."""
        with end_early(self):
            for start in self._starts():
                self._descend(start)
            rng = np.random.default_rng(self.options.seed)
            idle = 0
            while idle < self.patience and self.best is not None:
                before = self.key
                self.restarts += 1
                self._descend(self._shaken(self.best, rng))
                idle = 0 if self.key < before else idle + 1

    def value(self, configuration: Configuration, limit: float) -> tuple[float, float, float]:
        """(excess over the limit of "bounded", value, normal score); infinite where it stops.

        `limit`: a normal score from which the value is not needed.
        """
        known = self.seen.get(configuration)
        if known is not None:
            return known
        problem, goal = self.problem, self.goal
        normal = score_of(problem, configuration)
        if goal.goal == "worst" and normal > limit:
            return (0.0, normal, normal)  # the value is no less
        self.evaluations += 1
        after = [score for _, score in goal.scores_after(problem, configuration)]
        worst = max([normal, *after])
        excess, value = 0.0, worst
        if math.isinf(worst):
            # Count the losses that stop it, so that the search can reach a plan without such
            # losses.
            stops = sum(math.isinf(score) for score in after)
            return self._know(configuration, (1e300 * stops, math.inf, normal))
        if goal.goal == "bounded":
            excess = max(0.0, worst - goal.ceiling(problem))
            value = normal
        elif goal.goal == "weighted":
            weights = goal.probabilities(problem)
            value = (1 - sum(weights)) * normal
            value += sum(p * score for p, score in zip(weights, after, strict=True))
        return self._know(configuration, (excess, value, normal))

    def _know(
        self, configuration: Configuration, key: tuple[float, float, float]
    ) -> tuple[float, float, float]:
        self.seen[configuration] = key
        return key

    def _starts(self) -> Iterator[Configuration]:
        if self.options.start is not None:
            yield self.options.start
        problem = self.problem
        normal = self._normal(self.relaxed)
        if normal is not None:
            share = 1.0
            if self.goal.goal == "weighted":
                share = max(0.0, 1 - sum(self.goal.probabilities(problem)))
            if math.isfinite(normal.bound):
                self.bound = share * normal.bound
            if normal.configuration is not None:
                yield normal.configuration
        roles: tuple[Literal["voters", "replicas"], ...] = ("voters", "replicas")
        for level in problem.instance.domains:
            for role in roles:
                rule = Diversity(level, role, cap=1)
                try:
                    spread = self.relaxed.replace(diversity=(*problem.diversity, rule))
                except InputError:
                    continue  # sites without a label on this level
                plan = self._normal(spread)
                if plan is not None and plan.configuration is not None:
                    yield plan.configuration
        if self.best is None:
            found = find_feasible(problem)
            if found is not None:
                yield found

    def _normal(self, problem: Problem) -> Plan | None:
        """Plan for normal times, by the exact method where it is installed."""
        if _NORMAL not in available():
            return None
        limit = self.options.time_limit
        if limit is not None:
            limit = _SHARE * max(0.0, limit - (time.perf_counter() - self.started))
        try:
            plan = run_method(load_method(_NORMAL), problem, Options(time_limit=limit))
        except PlacementError:
            return None
        if plan.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        return plan

    def _descend(self, configuration: Configuration) -> None:
        """Take the best move until none improves."""
        here, key = configuration, self.value(configuration, math.inf)
        self._offer(here, key)
        while True:
            found, least = None, key
            for move in neighbours(self.problem, here):
                if self._late():
                    raise TimeoutError
                if move not in self.seen and violations(self.relaxed, move):
                    continue
                other = self.value(move, least[1])
                if _less(other, least):
                    found, least = move, other
            if found is None:
                return
            here, key = found, least
            self._offer(here, key)

    def _offer(self, configuration: Configuration, key: tuple[float, float, float]) -> None:
        if key < self.key:
            if violations(self.problem, configuration):
                return
            self.key, self.best = key, configuration
            seconds = time.perf_counter() - self.started
            self.options.report(Progress(seconds, key[1], self.bound))

    def _shaken(self, configuration: Configuration, rng: np.random.Generator) -> Configuration:
        for _ in range(_SHAKES):
            moves = [
                move
                for move in neighbours(self.problem, configuration)
                if not violations(self.relaxed, move)
            ]
            if moves:
                configuration = moves[int(rng.integers(len(moves)))]
        return configuration

    def _late(self) -> bool:
        limit = self.options.time_limit
        return limit is not None and time.perf_counter() - self.started > limit


def _less(one: tuple[float, float, float], other: tuple[float, float, float]) -> bool:
    """Lexicographic, with the ties of the score."""
    for a, b in zip(one, other, strict=True):
        if math.isinf(a) and math.isinf(b):
            continue
        if a < b - TIE * abs(b):
            return True
        if a > b + TIE * abs(b):
            return False
    return False


def solve(problem: Problem, options: Options) -> Plan:
    """Search, and return the best plan with the bound of normal times."""
    search = _LossSearch(problem, options, int(str(options.settings["patience"])))
    search.run()
    if search.best is None and search.termination is Termination.FINISHED:
        return _nothing(problem)
    value = search.key[1] if search.best is not None else math.inf
    return Plan.of(
        problem,
        search.best,
        method="local-search",
        bound=min(search.bound, value) if search.best is not None else -math.inf,
        termination=search.termination,
        stats={"evaluations": search.evaluations, "restarts": search.restarts},
    )


def _nothing(problem: Problem) -> Plan:
    """Say that nothing was found, and "infeasible" only when the rules alone forbid every plan."""
    relaxed = infeasible_plan(problem.replace(objective=MEAN_LATENCY), "local-search")
    if relaxed.status is Status.INFEASIBLE:
        return Plan.infeasible(problem, method="local-search", reasons=relaxed.reasons)
    return Plan.of(
        problem,
        None,
        method="local-search",
        termination=Termination.WORK_LIMIT,
        notes=("no plan that obeys the rules after every loss was found; nothing is proven",),
    )
