"""Leader by leader: the search that every solver of rows shares.

Exactly one site leads, so the optimum is the least of the optima over the leaders, and over the
heirs of each where one loss takes it (:class:`formulations.linear.leader_program.LeaderCase`).

1. A first plan: that of a heuristic. Its value U is the threshold.
2. Every case has a floor: each term of each row at its least. A case is closed where the floor of
   what is minimised reaches U, or that of a limit exceeds the limit.
3. The other cases, that of the first plan and then the least floor first, go to the solver as
   programs with the threshold U. A plan that it returns is evaluated. A better one lowers U. A
   row outside the program that the plan breaks most enters the programs of this leader, and the
   case is solved again. The first program has few rows; where they are also those of heir and
   leader, its bound counts for both cases.
4. Of the plans that tie, the least mean: once more with the first optimum as a limit, under the
   leaders whose bound does not exceed it.

The value is the evaluator's and the bound the least over the cases. A solver returns a bound on the
plans of its program that were not evaluated.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import numpy as np

from formulations.exact.reduced_problem import leader_groups
from formulations.linear.leader_program import LeaderCase, LeaderProgram, least, led_by_others
from formulations.milp.find_start import find_start, with_best_voters
from placement.evaluation.objective import score_of
from placement.evaluation.score import TIE
from placement.feasibility.feasible_plans import violations
from placement.measures.measure import After, Measure
from placement.measures.question import MeasureQuestion
from placement.measures.rows import row_values
from placement.measures.scenarios import Function, functions
from placement.methods.options import Options, Progress
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.status import (
    OPTIMALITY_TOLERANCE,
    Termination,
    end_early,
    least_bound,
    relative_gap,
)

_ABOVE = 1e-10
"""Relative: limits of programs are above those of the evaluator, so that rounding is safe."""

_ROUNDS = 500
"""Programs of one case after which the search gives up."""

_ENTER = 3
"""Rows that enter at once."""

_LIGHT = 9
"""Linear programs for the first program of a case, whose rows are few."""

Solver = Callable[["LeaderSearch", LeaderProgram, int | None], float]
"""Returns a lower bound on X of what is minimised, of the plans that it did not evaluate.

The number: linear programs after which it may give up; None: never.
"""


@dataclass
class LeaderSearch:
    """The search of one question for which `beyond_rows` gives no reason.

    It ends at `end`, a time.perf_counter(). With `ties` given, of the plans whose minimised value
    is at most this the mean is minimised.
    """

    problem: Problem
    options: Options
    solver: Solver
    end: float
    ties: float = math.inf
    #: `best`, `value`: the best configuration, and its value; None and +∞: none is known
    best: Configuration | None = None
    value: float = math.inf
    #: lower bound by case; None before every case has one
    bounds: dict[LeaderCase, float] | None = None
    #: numbers of the rows of losses and clients that are in the programs, by leader
    entered: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    #: configurations that programs leave out: rounding makes them look better than they are
    evaluated: list[Configuration] = field(default_factory=list)
    termination: Termination = Termination.FINISHED
    stats: dict[str, float] = field(default_factory=dict)
    began: float = field(default_factory=time.perf_counter)
    _mean: float = math.inf
    _functions: dict[int, tuple[Function, ...]] = field(default_factory=dict)
    _left: dict[tuple[Measure, int, float], float] = field(default_factory=dict)
    _bounded: set[LeaderCase] = field(default_factory=set)

    @property
    def bound(self) -> float:
        """Least value that any plan may still have."""
        return -math.inf if self.bounds is None else least_bound(*self.bounds.values())

    @property
    def target(self) -> float:
        """Bound at which a case is closed."""
        return self.value * (1 - max(OPTIMALITY_TOLERANCE / 2, self.options.gap_limit))

    def functions(self, leader: int) -> tuple[Function, ...]:
        """Return the limits under a leader, and last what is minimised."""
        if leader not in self._functions:
            self._functions[leader] = functions(self.problem, leader, ties=self.ties)
        return self._functions[leader]

    def check_time(self) -> None:
        """Raise TimeoutError when the time is up."""
        if time.perf_counter() >= self.end:
            raise TimeoutError

    def report(self, case: LeaderCase | None = None, bound: float = -math.inf) -> None:
        """Pass progress on; `bound`: of a case, so far."""
        seconds, each = time.perf_counter() - self.began, dict(self.bounds or {})
        if case in each:
            each[case] = max(each[case], bound)
        bound = least_bound(*each.values()) if self.bounds is not None else -math.inf
        self.options.report(Progress(seconds, self.value, min(self.value, bound)))

    def run(self, cases: Iterable[LeaderCase] | None = None) -> None:
        """Search some cases, or all, until the best plan is proven or time is up."""
        with end_early(self):
            floors: dict[LeaderCase, float] = {}
            for case in self.cases() if cases is None else cases:
                self.check_time()
                floors[case] = self._floor(case)
            self.bounds = bounds = {case: b for case, b in floors.items() if b < math.inf}
            self.report()
            for case in bounds:
                bounds[case] = max(bounds[case], self._floor_after_loss(case))
            self.stats["open"] = sum(bound < self.target for bound in bounds.values())
            self.report()
            first = None if self.best is None else self.best.leader
            for case in sorted(bounds, key=lambda one: (first not in one.leaders, bounds[one])):
                self._close(case, bounds)
                self.report()
            gap = relative_gap(self.value, self.bound)
            given_up = self.termination is not Termination.FINISHED
            if self.best is not None and gap > OPTIMALITY_TOLERANCE and not given_up:
                self.termination = Termination.GAP_LIMIT

    def cases(self) -> list[LeaderCase]:
        """Return the leaders, each with every heir where one loss takes it."""
        found = []
        if not isinstance(self.problem.objective, MeasureQuestion):
            groups = leader_groups(self.problem)
            return [LeaderCase(group[0], others=group[1:]) for group in groups]
        for leader in np.nonzero(self.problem.rules.may_lead)[0].tolist():
            self.check_time()
            led = led_by_others(self.functions(leader))
            if len(led) == 1 and led[0].lost is not None and led[0].lost[leader]:
                found += [LeaderCase(leader, one.leader) for one in led[0].successors]
            else:
                found.append(LeaderCase(leader))
        return found

    def _floor(self, case: LeaderCase) -> float:
        """Return the least value in a case; +∞ where a limit cannot be kept."""
        *limits, aim = self.functions(case.leader)
        for one in limits:
            if self._least(case, one) > _above(one.allowed):
                return math.inf
        return self._least(case, aim) / aim.scale * (1 - 1e-12)

    def _floor_after_loss(self, case: LeaderCase) -> float:
        """Return the least value after some loss; +∞ where a limit cannot be kept then."""
        each, floor = self.functions(case.leader), -math.inf
        for one, site in itertools.product(each, (case.leader, case.heir)):
            if site is None or floor >= self.target:
                continue
            aim = one is each[-1]
            left = self._after_some_loss(one, site, self.value if aim else None)
            if aim:
                floor = max(floor, left)
            elif left > _above(one.allowed) / one.scale:
                return math.inf
        return floor

    def _least(self, case: LeaderCase, one: Function) -> float:
        if one.weights is not None:
            return float(one.weights @ np.array([least(self.problem, case, r) for r in one.rows]))
        return max(least(self.problem, case, one.rows[n]) for n in _certain(one, case))

    def _after_some_loss(self, one: Function, site: int, most: float | None) -> float:
        """Return a floor of a mean under a leader after any loss that takes a replica.

        Whatever single site is lost, at most r − 1 replicas are left, and the leader waits for the
        m-th nearest voter that is left. So the least mean with as many replicas as may be left,
        anywhere, m of them voting and all m awaited, is a floor of the largest mean under whoever
        leads after the loss of the leader, and under a leader when another replica is lost.
        """
        measure, problem = one.measure, self.problem
        after = None if measure is None else measure.after
        if measure is None or after is None or not _any_single_site(problem, after):
            return -math.inf
        most = one.allowed / one.scale if most is None else most
        key = measure, site, most
        if key not in self._left:
            self._left[key] = self._least_after(measure, site, most)
        return self._left[key]

    def _least_after(self, measure: Measure, site: int, most: float) -> float:
        rules, names = self.problem.rules, self.problem.instance.sites
        fewest = max(rules.quorum, rules.replicas_min - 1)
        held = min(rules.replicas_max - 1, int(rules.may_hold.sum()))
        if held < fewest or math.isinf(most):
            return -math.inf
        question = MeasureQuestion(aim=dataclasses.replace(measure, after=None))
        left = self.problem.replace(
            replicas=(fewest, held),
            voters=rules.quorum,
            quorum=rules.quorum,
            leader=names[site],
            leaders=None,
            pinned=(),
            pinned_voters=(),
            forbidden=tuple(n for n, held in zip(names, rules.may_hold, strict=True) if not held),
            non_voters=tuple(
                n
                for n, held, votes in zip(names, rules.may_hold, rules.may_vote, strict=True)
                if held and not votes
            ),
            diversity=(),
            survive=None,
            budget=None,
            moves=None,
            objective=question,
        )
        quiet = dataclasses.replace(self.options, progress=None, start=None)
        search = LeaderSearch(left, quiet, self.solver, self.end, value=most)
        case = LeaderCase(site)
        bounds = {case: search._floor(case)}
        search._bound_once(case, bounds, search._certain_rows(case), 1)
        return bounds[case]

    # --- one case ---------------------------------------------------------------------------

    def _close(self, case: LeaderCase, bounds: dict[LeaderCase, float]) -> None:
        """Raise the bound of a case to the target."""
        certain, entered = self._certain_rows(case), self.entered[case.leader]
        reverse = None if case.heir is None else LeaderCase(case.heir, case.leader)
        if reverse not in bounds or not self._same_reversed(case):
            self._bound_once(case, bounds, certain, _LIGHT)
        elif reverse not in self._bounded and bounds[case] < self.target:
            both = {case: -math.inf}
            self._bound_once(case, both, certain - {0}, _LIGHT)
            self._bounded.add(case)
            bounds |= {one: max(bounds[one], both[case]) for one in (case, reverse)}
        for _ in range(_ROUNDS):
            before = self.value, len(entered), len(self.evaluated)
            self._bound_once(case, bounds, certain | entered)
            if before == (self.value, len(entered), len(self.evaluated)):
                break
        if bounds[case] < self.target:
            self.termination = Termination.WORK_LIMIT

    def _bound_once(
        self,
        case: LeaderCase,
        bounds: dict[LeaderCase, float],
        entered: set[int],
        nodes: int | None = None,
    ) -> None:
        """Raise the bound of a case by one program."""
        if bounds[case] >= self.target:
            return
        self.check_time()
        self.stats["programs"] = self.stats.get("programs", 0) + 1
        raised = [_raised(one) for one in self.functions(case.leader)]
        # without row 0 the program is of other leaders too
        left_out = self.evaluated if 0 in entered else []
        most = self.most(case.leader)
        program = LeaderProgram(self.problem, case, raised, entered, most, left_out)
        bound = self.solver(self, program, nodes) / raised[-1].scale
        # what a program holds is at most a little above the best value
        bound = min(bound, self.value * (1 + OPTIMALITY_TOLERANCE))
        bounds[case] = max(bounds[case], bound)
        self.check_time()

    def _certain_rows(self, case: LeaderCase) -> set[int]:
        found, number = set[int](), 0
        for one in self.functions(case.leader):
            found |= {number + n for n in _certain(one, case)}
            number += len(one.rows)
        return found

    def _same_reversed(self, case: LeaderCase) -> bool:
        """Return whether losses of leader and heir are the same rows, whoever of them leads."""
        *limits, aim = self.functions(case.leader)
        after = None if limits or aim.measure is None else aim.measure.after
        return after is not None and _any_single_site(self.problem, after)

    def most(self, leader: int) -> float:
        """Return X up to which plans are of interest: a little more than that of the best one."""
        return self.value * self.functions(leader)[-1].scale * (1 + 2 * OPTIMALITY_TOLERANCE)

    def asked(self, leader: int) -> float:
        """Return X at which the case is closed."""
        return self.target * self.functions(leader)[-1].scale

    # --- plans --------------------------------------------------------------------------------

    def offer(self, configuration: Configuration) -> bool:
        """Keep a configuration if it is the best so far; return whether it lowers the value."""
        if violations(self.problem, configuration):
            return False
        value = objective_value(self.problem, configuration)
        mean = score_of(self.problem, configuration)
        if math.isfinite(self.ties):
            value = mean if value <= self.ties * (1 + TIE) else math.inf
        lower = value < self.value * (1 - TIE) if math.isfinite(self.value) else value < math.inf
        if lower or (value <= self.value * (1 + TIE) and mean < self._mean):
            self.value, self.best, self._mean = value, configuration, mean
        return lower

    def judge(self, configuration: Configuration) -> bool:
        """Evaluate a plan of a program; whether the program holds all that it says of the plan."""
        return not (self.offer(configuration) or self.enter(configuration))

    def enter(self, configuration: Configuration) -> bool:
        """Let the rows that a plan breaks most enter; return whether there is one outside."""
        outside: list[tuple[float, int]] = []
        number, each = 0, self.functions(configuration.leader)
        entered = self.entered[configuration.leader]
        known = entered | self._certain_rows(LeaderCase(configuration.leader))
        for one in each:
            most = self.asked(configuration.leader) if one is each[-1] else one.allowed
            if one.weights is None and len(one.rows) > 1:
                outside += [
                    (x / most if most > 0 else x, number + n)
                    for n, x in enumerate(row_values(self.problem, one.rows, configuration))
                    if x > most and number + n not in known
                ]
            number += len(one.rows)
        outside.sort(reverse=True)
        entered.update(place for _, place in outside[:_ENTER])
        return bool(outside)


def _certain(one: Function, case: LeaderCase) -> list[int]:
    """Return the numbers of rows in every program: the first, losses of the leader or the heir."""
    sites = [case.leader] if case.heir is None else [case.leader, case.heir]
    lost = [] if one.lazy else [row.lost for row in one.rows[1:]]
    return [0, *(n for n, each in enumerate(lost, 1) if each is not None and each[sites].any())]


def _any_single_site(problem: Problem, after: After) -> bool:
    """Return whether any site may be lost alone, and leader and clients that are left stay."""
    if not after.level or after.together > 1 or after.leader_moves or after.clients_move:
        return False
    labels = problem.instance.labels(after.level)
    return all(
        labels[site] is not None and labels.count(labels[site]) == 1
        for site in np.nonzero(problem.rules.may_hold)[0].tolist()
    )


def _above(allowed: float) -> float:
    return allowed + _ABOVE * abs(allowed) if allowed else 1e-300


def _raised(one: Function) -> Function:
    """Return a limit a little above the evaluator's."""
    if math.isinf(one.allowed):
        return one
    return dataclasses.replace(one, build=lambda: one.built, allowed=_above(one.allowed))


def solve(problem: Problem, options: Options, method: str, solver: Solver) -> Plan:
    """Answer a question of rows by a solver of programs; `method` is the name in the plan.

    The setting ``start`` names the heuristic that gives the first plan.
    """
    began = time.perf_counter()
    end = math.inf if options.time_limit is None else began + options.time_limit
    search = LeaderSearch(problem, options, solver, end, began=began)
    name = str(options.settings["start"])
    start = find_start(problem, options, "auto" if name == "best-of" else name)
    if start.configuration is not None:
        search.offer(start.configuration)
    if start.interrupted:
        search.termination = Termination.INTERRUPTED
    else:
        search.run()
    notes, stats = list(start.notes), search.stats
    found, measured = search.best, isinstance(problem.objective, MeasureQuestion)
    proven = relative_gap(search.value, search.bound) <= OPTIMALITY_TOLERANCE
    if found is not None and not measured:
        found = with_best_voters(problem, found)
    elif found is not None and proven and search.termination is Termination.FINISHED:
        second = LeaderSearch(problem, options, solver, end, search.value, began=began)
        second.entered = search.entered
        second.offer(found)
        tied = [
            one for one, b in (search.bounds or {}).items() if b <= search.value * (1 + 2 * TIE)
        ]
        second.run(tied)
        found = second.best
        if relative_gap(second.value, second.bound) > OPTIMALITY_TOLERANCE:
            notes.append("whether another plan of this value has a lower mean was not decided")
        if second.termination is Termination.INTERRUPTED:
            search.termination = second.termination
    closed = search.termination is Termination.FINISHED or search.bound == math.inf
    leaders = len({case.leader for case in search.bounds or {}})
    stats |= {"leaders": leaders, "rows": sum(map(len, search.entered.values()))}
    bound, reasons = -math.inf, list[str]()
    if found is not None:
        bound = min(search.bound, search.value)
    elif closed or start.impossible:
        bound, search.termination = math.inf, Termination.FINISHED
        reasons = [f"no configuration keeps every rule and limit, under any leader ({method!r})"]
        if not closed:
            reasons = ["a complete search found no configuration that obeys all rules"]
        elif not (measured or start.impossible):
            notes.append(f"infeasible by the word of {method!r} alone: the complete search gave up")
    return Plan.of(
        problem,
        found,
        method=method,
        bound=bound,
        termination=search.termination,
        reasons=reasons,
        notes=notes,
        stats=stats,
    )
