"""Losses of operations with waits by the search over sets: part of the method ``exact``.

A value under losses is at least a share of the normal score: all of it for the goals "worst" and
"bounded", less for "weighted" (:class:`.UnderLosses`). The compiled search over sets
(:mod:`formulations.waits.set_search`) lists every replica set, under every leader, whose normal
score is within a ceiling. Only these are evaluated under losses, with every choice of their voters.
The ceiling rises from the normal optimum, until it reaches the best value over the share: no set
beyond it is better. At a limit the last ceiling is the proven bound. Where every replica votes, a
plan has the certificate of the search over sets (:mod:`placement.proof.sets.set_check`).

Enumeration (:mod:`formulations.contingency.loss_waits`) answers what the search over sets does not
support: witnesses, chosen lease holders, RTTs that vary, and packages without a compiled kernel.

Three sites by hand: clients at 0, 1 and 3 ms on a line read 3, 2 and 4 times from the nearest of
two replicas. The normal scores are 8 (a, b), 2 (a, c) and 3 (b, c). A loss leaves one replica: a
costs 14, b 11 and c 13. Sites a and c are best in normal operation, and have the value 14. The
ceiling rises from 2, and the sets with scores up to it are evaluated under losses. At a ceiling of
13 no other set can be below b and c, whose value is 13:

>>> from placement import Instance, Operation
>>> read = Operation("read", waits=["client: 1 of voters"])
>>> rtt = [[0, 1, 3], [1, 0, 2], [3, 2, 0]]
>>> line = Instance(["a", "b", "c"], ["d", "e", "f"], rtt, rtt, [[3], [2], [4]], operations=[read])
>>> asked = Problem(line, replicas=2, voters=2, quorum=1, objective=Contingency())
>>> plan = run(load_method("exact"), asked, Options())
>>> plan.replicas, plan.score, plan.objective, plan.status.value
(('b', 'c'), 3.0, 13.0, 'optimal')
"""

from __future__ import annotations

import math
import time

from formulations.contingency.loss_waits import UnderLosses
from formulations.enumeration.enumerate_sets import Found
from formulations.exact import method
from formulations.waits.set_lists import SetLists
from formulations.waits.set_search import compiled_available
from formulations.waits.set_tables import WaitTables, why_not
from placement.contingency.objective import Contingency
from placement.evaluation.objective import MEAN_LATENCY, score_of
from placement.evaluation.score import cutoff
from placement.methods.options import Options, Progress
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.status import Status, Termination, relative_gap

__all__ = ["refuses", "solve"]

_PROVED = "evaluation of every set whose normal score is within the objective"
_FIRST_STEP = 0.02
"""Share of the normal optimum that the first ceiling adds; each next step is twice as large."""

_LEAST_SHARE = 1e-3
"""Weight of the normal score below which all sets are listed at once."""

_STEPS = 8
"""Steps without any plan, after which all sets are listed: the last is 6 times the optimum."""


def refuses(problem: Problem) -> str | None:
    """Return why the search over sets does not support a question about losses, or None."""
    if problem.rules.witnesses:
        return "there are witnesses"
    if problem.rules.lease_holders:
        return "lease holders are chosen"
    if not compiled_available():
        return "the compiled search over sets is missing"
    return why_not(problem)


def solve(problem: Problem, options: Options) -> Plan:
    """Answer a question about losses with a proof; at a limit, the best so far with its bound."""
    if refuses(problem) is not None:
        return method.solve(problem, options)
    search = _ListedSets(problem, options)
    try:
        termination = search.go_on()
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
    return search.certified(search.plan(termination), _PROVED)


class _ListedSets(SetLists):
    """The best configuration and bound of one question."""

    def __init__(self, problem: Problem, options: Options) -> None:
        assert isinstance(problem.objective, Contingency)
        super().__init__(problem, options, time.perf_counter())
        self.under = UnderLosses(problem, problem.objective)
        self.best: Found | None = None
        self.bound = -math.inf
        self.ceiling = self.done = -math.inf
        self.reasons: tuple[str, ...] = ()

    @property
    def enough(self) -> float:
        """Normal score above which no configuration is better or ties."""
        if math.isinf(self.under.value) or self.under.share == 0:
            return math.inf
        return cutoff(self.under.value / self.under.share)

    def go_on(self) -> Termination:
        """List and evaluate sets below one ceiling after another."""
        problem, rules = self.problem, self.problem.rules
        if self.options.start is not None:
            start = self.options.start
            self.take((objective_value(problem, start), score_of(problem, start), start))
        limit = None if self.options.time_limit is None else self.seconds_left
        normal = run(
            load_method("exact"),
            problem.replace(objective=MEAN_LATENCY),
            Options(time_limit=limit, settings={"certificate": False}),
        )
        if normal.configuration is not None:
            one = normal.configuration
            self.take((objective_value(problem, one), normal.objective, one))
        if normal.status is Status.INFEASIBLE:
            self.bound, self.reasons = math.inf, normal.reasons
            return Termination.FINISHED
        self.bound = max(0.0, self.under.share * normal.bound)
        if normal.termination is not Termination.FINISHED:
            return normal.termination
        for size in range(max(rules.replicas_min, rules.voters), rules.replicas_max + 1):
            self.tables.append(WaitTables.of(problem, size))
        step, steps = _FIRST_STEP * normal.objective, 0
        self.ceiling = normal.objective
        while self.done < self.enough:
            if relative_gap(self.under.value, self.bound) <= self.options.gap_limit > 0:
                return Termination.GAP_LIMIT
            steps += 1
            # Normal scores give no step, or losses have nearly all of the weight.
            unbounded = step == 0 or self.under.share < _LEAST_SHARE
            many = unbounded or (steps > _STEPS and self.best is None)
            self.ceiling = min(self.enough, math.inf if many else self.ceiling + step)
            step *= 2
            if not all(self._listed(tables, place) for tables in self.tables
                       for place in range(len(tables.leaders))):  # fmt: skip
                return Termination.TIME_LIMIT
            self.done = self.ceiling
            self.bound = max(self.bound, self.under.share * self.done)
            self.report()
        return Termination.FINISHED

    def _listed(self, tables: WaitTables, place: int) -> bool:
        """Evaluate every set of one size under one leader that is within the ceiling."""
        if not len(tables.beginning(place)) <= tables.size <= len(tables.order):
            return True
        return self.list_sets(tables, place, lambda: min(self.ceiling, self.enough), self._evaluate)

    def _evaluate(self, some: list[Configuration]) -> None:
        best = self.under.best_among(some, above=self.done)
        if best is not None:
            self.take(best)
            self.report()

    def take(self, found: Found) -> None:
        """Keep a configuration where it is better than the best so far, or ties and comes first."""
        if math.isinf(found[0]):
            return
        if self.best is None or self.under.comes_before(found, self.best):
            self.best = found
        self.under.value = min(self.under.value, found[0])

    def report(self) -> None:
        """Tell how far the search is."""
        seconds = time.perf_counter() - self.began
        self.options.report(Progress(seconds, self.under.value, min(self.bound, self.under.value)))

    def plan(self, termination: Termination) -> Plan:
        """Return the present state of the search as a plan."""
        finished = termination is Termination.FINISHED
        nodes, leaves = self.counts
        stats: dict[str, float | int | str] = {
            "nodes": nodes, "leaves": leaves, "under losses": self.under.evaluated
        }  # fmt: skip
        if self.best is None and finished:
            goal = self.problem.objective.describe()
            reasons = self.reasons or (f"no plan has {goal}: all sets were evaluated",)
            return Plan.infeasible(self.problem, method=method.METHOD.name, reasons=reasons)
        value = math.inf if self.best is None else self.best[0]
        return Plan.of(
            self.problem,
            None if self.best is None else self.best[2],
            method=method.METHOD.name,
            bound=value if finished else min(self.bound, value),
            termination=termination,
            stats=stats,
        )
