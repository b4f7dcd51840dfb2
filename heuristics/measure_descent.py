"""Local search for questions of measures (``local-search``): limits, losses, and what is minimised.

Starts: the proven plan of least mean, and those under one more rule, at most one replica (or one
voter) per domain of each level: spread-out plans lose little at a time. From each of them steepest
descent over one change (:func:`placement.feasibility.feasible_plans.neighbours`) with the exact
evaluator, then seeded restarts from the best plan with a few random moves, until `patience` of them
in a row bring nothing. A plan that breaks limits is worth what it breaks them by, relative to each.

The bound is that of the mean where no value is below it: the mean, and the mean after losses.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Literal

import numpy as np

from heuristics import tuning
from heuristics.completion import infeasible_plan
from placement.contingency.loss_question import LossQuestion
from placement.errors import InputError, LimitError, PlacementError
from placement.evaluation.objective import MEAN_LATENCY, score_of
from placement.evaluation.score import TIE
from placement.feasibility.feasible_plans import find_feasible, neighbours, violations
from placement.measures.measure import Measure, MeasureKind
from placement.measures.question import MeasureQuestion
from placement.measures.values import value
from placement.methods.options import Options, Progress
from placement.methods.registry import available, load_method
from placement.methods.registry import run as run_method
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity
from placement.plan import Plan
from placement.problem import Problem
from placement.support.status import Termination, end_early, in_time

Key = tuple[float, ...]
"""Value of a configuration: the least is best, and the second number is shown."""

_WORST: Key = (math.inf, math.inf, math.inf)

_NORMAL = "exact"


_MEAN = Measure(MeasureKind.MEAN)


class _MeasureDescent:
    """State of a search: the best configuration and its key, (broken limits, value, mean)."""

    def __init__(self, problem: Problem, options: Options) -> None:
        assert isinstance(problem.objective, MeasureQuestion)
        self.problem, self.options, self.goal = problem, options, problem.objective
        self.patience = int(str(options.settings["patience"]))
        self.started = time.perf_counter()
        self.key: Key = _WORST
        self.best: Configuration | None = None
        # Where restarts begin as long as every configuration breaks a rule of the objective.
        self._broken: Configuration | None = None
        self._broken_key = _WORST
        self.bound = 0.0
        self.evaluations = 0
        self.restarts = 0
        self.termination = Termination.FINISHED
        self.seen: dict[Configuration, Key] = {}
        # The rules without what the objective asks for, which `value` measures instead.
        rules = problem.rules
        implied = self.goal.diversity(problem.instance, rules.voters, rules.quorum)
        diversity = (*problem.diversity, *implied)
        self.relaxed = problem.replace(objective=MEAN_LATENCY, diversity=diversity)
        self._losses = LossQuestion.of(problem)

    def take_bound(self, bound: float) -> None:
        """Take the bound on the mean, as far as it counts."""
        share = 1.0 if self.goal.aim == _MEAN else 0.0
        if self._losses is not None:
            share = self._losses.normal_share
        self.bound = max(0.0, share * bound / self.problem.demand.operations)

    def value(self, configuration: Configuration, limit: Key) -> Key:
        """Return the key of a configuration; any worse one where it is no better than `limit`."""
        known = self.seen.get(configuration)
        if known is not None:
            return known
        problem, goal, broken = self.problem, self.goal, 0.0
        mean = score_of(problem, configuration)
        usual = mean / problem.demand.operations
        if self._losses is not None and self._losses.goal == "worst" and usual > limit[1]:
            return (0.0, usual, mean)  # the value is no less
        self.evaluations += 1
        for one in goal.keep:
            found = value(problem, one.measure, configuration)
            if not one.kept(found):
                broken += min(-one.slack(found) / max(abs(one.bound), 1e-9), 1e300)
        aim = value(problem, goal.aim, configuration)
        key = self.seen[configuration] = (broken, 1 - aim if goal.aim.share else aim, mean)
        return key

    def run(self) -> None:
        """Descend from every start, then restart until nothing improves."""
        with end_early(self):
            for start in self._starts():
                if self.best is not None:
                    in_time()
                self._descend(start)
            rng = np.random.default_rng(self.options.seed)
            idle = 0
            while idle < self.patience:
                begin = self._broken if self.best is None else self.best
                if begin is None:
                    break
                before = self.key, self._broken_key
                self.restarts += 1
                self._descend(self._shaken(begin, rng))
                idle = 0 if (self.key, self._broken_key) < before else idle + 1

    def _starts(self) -> Iterator[Configuration]:
        if self.options.start is not None:
            yield self.options.start
        problem = self.problem
        normal = self._normal(self.relaxed)
        if normal is not None:
            if math.isfinite(normal.bound):
                self.take_bound(normal.bound)
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
            limit = tuning.NORMAL_SHARE * max(0.0, limit - (time.perf_counter() - self.started))
        try:
            plan = run_method(load_method(_NORMAL), problem, Options(time_limit=limit))
        except PlacementError:
            return None
        if plan.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        return plan

    def _descend(self, configuration: Configuration) -> None:
        """Take the best move until none improves."""
        here, key = configuration, self.value(configuration, _WORST)
        self._offer(here, key)
        while True:
            found, least = None, key
            for move in neighbours(self.problem, here):
                in_time()
                if move not in self.seen and violations(self.relaxed, move):
                    continue
                other = self.value(move, least)
                if _less(other, least):
                    found, least = move, other
            if found is None:
                return
            here, key = found, least
            self._offer(here, key)

    def _offer(self, configuration: Configuration, key: Key) -> None:
        if key < self.key:
            if violations(self.problem, configuration):
                if self._broken is None or key < self._broken_key:
                    self._broken, self._broken_key = configuration, key
                return
            self.key, self.best = key, configuration
            seconds = time.perf_counter() - self.started
            self.options.report(Progress(seconds, key[1], self.bound))

    def _shaken(self, configuration: Configuration, rng: np.random.Generator) -> Configuration:
        for _ in range(tuning.NEIGHBOUR_SHAKES):
            moves = [
                move
                for move in neighbours(self.problem, configuration)
                if not violations(self.relaxed, move)
            ]
            if moves:
                configuration = moves[int(rng.integers(len(moves)))]
        return configuration


def _less(one: Key, other: Key) -> bool:
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
    """Search, and return the best plan with the bound on the mean where that is one."""
    search = _MeasureDescent(problem, options)
    search.run()
    if search.best is None and search.termination is Termination.FINISHED:
        return _nothing(problem)
    found = search.best is not None
    return Plan.of(
        problem,
        search.best,
        method="local-search",
        bound=min(search.bound, search.key[1]) if found else -math.inf,
        termination=search.termination,
        stats={"evaluations": search.evaluations, "restarts": search.restarts},
    )


def _nothing(problem: Problem) -> Plan:
    """Say that nothing was found, and "infeasible" only when the rules alone forbid every plan."""
    try:
        if find_feasible(problem.replace(objective=MEAN_LATENCY)) is None:
            return infeasible_plan(problem, "local-search")
    except LimitError:
        pass  # too long a search: nothing is known
    return Plan.of(
        problem,
        None,
        method="local-search",
        termination=Termination.WORK_LIMIT,
        notes=("no plan that keeps the limits was found; nothing is proven",),
    )
