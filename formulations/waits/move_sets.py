"""Moves from the present configuration, for operations with waits: part of the method ``exact``.

The value of a plan is its score and the price of the move there, and the search over sets bounds
both (:mod:`placement.evaluation.replica_prices`): under every leader it lists each replica set
whose bound is within the best value so far, and only these are evaluated, with every choice of
their voters and all limits. A limit on changes or on copied GB also caps the new sites of a set.

The question without moves comes first: its bound holds for this one, and where its plan keeps the
limits and costs nothing, its proof is a proof of this one. Then the present configuration and its
neighbours give a good first value. Where every replica votes, a plan has the certificate of the
search over sets (:mod:`placement.proof.sets.set_check`).
"""

from __future__ import annotations

import dataclasses
import math
import time
from functools import partial

import numpy as np

from formulations.enumeration.waits import in_order, with_order
from formulations.exact.limits import answers, without_limits
from formulations.exact.method import METHOD
from formulations.waits.set_lists import ROUNDING, SetLists
from formulations.waits.set_tables import WaitTables
from placement.evaluation.breakdown import objective_values
from placement.evaluation.replica_prices import most_new_sites, new_sites
from placement.evaluation.score import TIE, cutoff
from placement.feasibility.feasible_plans import violations
from placement.feasibility.neighbours import neighbours
from placement.methods.options import Options, Progress
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.status import Termination, relative_gap

__all__ = ["MoveSets", "solve"]

_PROVED = "evaluation of every set whose least value is within the objective"
_DESCENT_STEPS = 50


def solve(problem: Problem, options: Options) -> Plan:
    """Answer a question about moves with a proof; at a limit, the best so far with its bound.

    Parameters
    ----------
    problem
        Minimises the mean, with moves and waits that the compiled search over sets supports.
    options
        Of the method ``exact``.
    """
    search = MoveSets(problem, options, time.perf_counter())
    free = dataclasses.replace(options, start=None, gap_limit=0.0, progress=None, warm_start=None)
    plan = run(load_method("exact"), without_limits(problem), free)
    if answers(problem, plan):
        return plan.replace(problem=problem)
    search.bound = plan.bound
    termination = plan.termination
    try:
        search.propose(plan.configuration)
        if termination is Termination.FINISHED:
            termination = search.go_on()
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
    return search.certified(search.plan(termination), _PROVED)


class MoveSets(SetLists):
    """The best configuration and the bound of one question."""

    def __init__(self, problem: Problem, options: Options, began: float) -> None:
        super().__init__(problem, options, began)
        self.best: Configuration | None = None
        self.value = math.inf
        self.bound = -math.inf
        self.evaluated = 0

    def go_on(self) -> Termination:
        """List and evaluate the sets of every leader, least bound first."""
        least, rules = self.bound, self.problem.rules
        parts = []
        for size in range(max(rules.replicas_min, rules.voters), rules.replicas_max + 1):
            if not self._fits(size):
                continue
            tables = WaitTables.of(self.problem, size)
            self.tables.append(tables)
            for place in range(len(tables.leaders)):
                prefix = tables.beginning(place)
                if len(prefix) <= size <= len(tables.order):
                    tables.lead(place)
                    bound = max(least, tables.kernel_bound(prefix, 0))
                    parts.append((bound, len(self.tables) - 1, place))
        parts.sort()
        for at, (bound, which, place) in enumerate(parts):
            self.bound = max(least, bound)
            if bound > cutoff(self.value) * (1 + ROUNDING):
                break
            if relative_gap(self.value, self.bound) <= self.options.gap_limit > 0:
                return Termination.GAP_LIMIT
            if not self.list_sets(self.tables[which], place, self._cutoff, self._evaluate):
                return Termination.TIME_LIMIT
            self.bound = max(least, parts[at + 1][0] if at + 1 < len(parts) else self.value)
            self.report()
        return Termination.FINISHED

    def _fits(self, size: int) -> bool:
        """Return whether there are enough sites for a set within the limits on new ones."""
        rules, most = self.problem.rules, most_new_sites(self.problem, size)
        able = rules.may_hold & rules.may_vote if rules.voters == size else rules.may_hold
        old = int((able & ~new_sites(self.problem)).sum())
        return most >= 0 and min(int(able.sum()), old + most) >= size

    def propose(self, free: Configuration | None) -> None:
        """Begin with what runs, what is best without moves, and single changes of the better.

        Parameters
        ----------
        free
            The best configuration where moves do not count, if that is known.
        """
        for one in (self.options.start, self.problem.present, free):
            if one is not None and not violations(self.problem, one):
                self.take([one])
        for _ in range(_DESCENT_STEPS):
            before = self.value
            if self.best is None or self.seconds_left == 0:
                return
            around = list(neighbours(self.problem, self.best))
            values = objective_values(self.problem, around) if around else np.zeros(0)
            for place in np.argsort(values, kind="stable").tolist():
                if not values[place] < self.value * (1 - TIE):
                    return
                if not violations(self.problem, around[place]):
                    self.take([around[place]])
                    break
            if not self.value < before:
                return

    def _cutoff(self) -> float:
        return cutoff(self.value)

    def _evaluate(self, some: list[Configuration]) -> None:
        self.take(some)
        self.report()

    def take(self, some: list[Configuration]) -> None:
        """Keep the best of some configurations that obey the rules, if it is the best so far."""
        if not some:
            return
        self.evaluated += len(some)
        values = objective_values(self.problem, some)
        least = float(values.min())
        if math.isinf(least) or least > cutoff(self.value):
            return
        self.value = min(self.value, least)
        tied = [some[row] for row in np.nonzero(values <= cutoff(self.value))[0].tolist()]
        if self.best is not None and objective_value(self.problem, self.best) <= cutoff(self.value):
            tied.append(self.best)
        self.best = min(tied, key=partial(in_order, self.problem))

    def report(self) -> None:
        """Tell how far the search is."""
        seconds = time.perf_counter() - self.began
        self.options.report(Progress(seconds, self.value, min(self.bound, self.value)))

    def plan(self, termination: Termination) -> Plan:
        """Return the present state of the search as a plan."""
        finished = termination is Termination.FINISHED
        if self.best is None and finished:
            limits = " and ".join(f"{limit.name} {limit.most:g}" for limit in self.problem.limits)
            reasons = (f"no configuration keeps the limits ({limits}): all sets were evaluated",)
            return Plan.infeasible(self.problem, method=METHOD.name, reasons=reasons)
        nodes, leaves = self.counts
        return Plan.of(
            self.problem,
            None if self.best is None else with_order(self.problem, self.best),
            method=METHOD.name,
            bound=self.value if finished else min(self.bound, self.value),
            termination=termination,
            stats={"nodes": nodes, "leaves": leaves, "evaluated": self.evaluated},
        )
