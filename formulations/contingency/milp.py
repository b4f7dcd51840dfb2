"""Contingency placement by a mixed-integer program with losses added as they are needed.

1. Build the program with copies for some losses (:mod:`formulations.contingency.loss_program`).
2. Solve it. Its bound holds for the whole question, because copies left out only relax it.
3. Evaluate the solution under every loss. The most underestimated loss is added, and 2. repeats;
   when no loss is underestimated the solution is optimal: exact at convergence.

The bound is HiGHS's less its tolerances, as in :mod:`formulations.milp.cutting_rounds`; where that
does not reach the value of the plan, :mod:`formulations.solvers.safe_bounds` closes the tree again
on safe LP bounds.
"""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass, field

from formulations.contingency.break_ties import break_ties
from formulations.contingency.loss_data import LossTerms, largest_score, terms_after
from formulations.contingency.loss_program import LossProgram, build
from formulations.milp.build_steps import OutOfTimeError, Step, stepping
from formulations.milp.close_on_safe_bounds import close_tree
from formulations.milp.cutting_rounds import slack
from formulations.milp.find_start import find_start
from formulations.milp.program_data import ProgramData, program_data
from formulations.milp.reduce_program import reduce_terms, static_bound
from formulations.solvers.highs import Guard, HighsResult, run_highs
from formulations.solvers.linear_program import LinearProgram
from formulations.solvers.statuses import TERMINATIONS, StopReason, Verdict
from placement.contingency.objective import Contingency
from placement.errors import LimitError, SolverError, UnsupportedError
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Options, Progress
from placement.methods.registry import available, load_method
from placement.methods.registry import run as run_method
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.status import OPTIMALITY_TOLERANCE, Status, Termination, relative_gap

__all__ = ["solve"]

_AGREEMENT = 1e-6
_REFEREES = ("exhaustive", "cp-sat")


def solve(problem: Problem, options: Options) -> Plan:
    """Answer a contingency problem.

    Settings as of method ``milp``; ``recipe`` has no effect here. At a limit or after Ctrl-C the
    best configuration so far comes with its bound.

    Raises
    ------
    SolverError
        When HiGHS fails, or claims what the evaluator refutes.
    """
    search = _MilpLossSearch(problem, options)
    try:
        search.use_static_bound()
        start = find_start(problem, options, str(options.settings["start"]), search.report)
        search.notes.extend(start.notes)
        search.stats["start"] = start.origin
        if start.configuration is not None:
            search.offer(start.configuration)
        if start.interrupted:
            raise KeyboardInterrupt
        search.run_rounds()
    except OutOfTimeError:
        search.termination = Termination.TIME_LIMIT
    except KeyboardInterrupt:
        search.termination = Termination.INTERRUPTED
    plan = _plan(search)
    return break_ties(plan, options, solve)


@dataclass
class _MilpLossSearch:
    """Losses added so far, the best configuration and the bound."""

    problem: Problem
    options: Options
    began: float = field(default_factory=time.perf_counter)
    best: Configuration | None = None
    value: float = math.inf
    bound: float = -math.inf
    infeasible: bool = False
    termination: Termination = Termination.FINISHED
    notes: list[str] = field(default_factory=list)
    stats: dict[str, float | int | str] = field(default_factory=dict)
    added: dict[str, LossTerms] = field(default_factory=dict)
    forbidden: list[Configuration] = field(default_factory=list)
    contingency: Contingency = field(init=False)
    normal: ProgramData = field(init=False)
    deadline: float = field(init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.problem.objective, Contingency)
        self.contingency = self.problem.objective
        self.normal = program_data(self.problem)
        limit = self.options.time_limit
        self.deadline = math.inf if limit is None else self.began + limit

    def offer(self, configuration: Configuration) -> None:
        """Accept a configuration that obeys all rules and is the best so far."""
        if violations(self.problem, configuration):
            return
        value = objective_value(self.problem, configuration)
        if value < self.value:
            self.value, self.best = value, configuration

    @property
    def proven(self) -> bool:
        """Return whether the bound proves the best configuration optimal."""
        return (
            self.best is not None and relative_gap(self.value, self.bound) <= OPTIMALITY_TOLERANCE
        )

    def report(self, incumbent: float = math.inf, bound: float = -math.inf) -> None:
        """Pass progress on."""
        seconds = time.perf_counter() - self.began
        least = max(self.bound, min(bound, self.value))
        self.options.report(Progress(seconds, min(self.value, incumbent), least))

    @property
    def step(self) -> Step:
        """Check the limits between the parts of the work; raises OutOfTimeError."""
        return stepping(self.report, self.deadline)

    def use_static_bound(self) -> None:
        """Raise the bound to the least cost of every configuration."""
        least = static_bound(self.normal)
        if self.contingency.goal == "weighted":  # a loss may cost less than normal times do
            least *= max(0.0, 1 - sum(self.contingency.probabilities(self.problem)))
        self.bound = max(self.bound, least)

    def run_rounds(self) -> None:
        """Add losses until the best configuration is proven or time is up.

        Raises
        ------
        OutOfTimeError
            When the time limit passes while a program is built.
        """
        if self.best is not None:
            self._add_missing(self.best, -math.inf)
        rounds = 0
        while True:
            rounds += 1
            self.stats["rounds"], self.stats["losses"] = rounds, len(self.added)
            self.report()
            if self.proven:
                return
            if self.best is not None and relative_gap(self.value, self.bound) <= (
                self.options.gap_limit
            ):
                self.termination = Termination.GAP_LIMIT
                return
            if time.perf_counter() >= self.deadline:
                self.termination = Termination.TIME_LIMIT
                return
            if self._round():
                return

    def _round(self) -> bool:
        """Solve once with the rows added so far; whether the search is over."""
        built = self._build()
        program = built.program(self.step)
        self.step()
        self.stats.update(variables=len(program.columns), rows=len(program.row_lower))
        outcome = self._run(built, program)
        if outcome.verdict is Verdict.INFEASIBLE:
            outcome = self._run(built, program, presolve=False)
            if outcome.verdict is Verdict.INFEASIBLE:
                if self.best is not None:
                    raise SolverError(
                        "HiGHS calls a program infeasible for which a configuration is known"
                    )
                self.infeasible = True
                return True
        safe = self.options.settings["proof"] == "safe"
        if not safe:
            lowered = (outcome.bound - slack(built.base, program)) / built.base.scale
            if lowered > self.value * (1 + _AGREEMENT):
                raise SolverError(f"HiGHS claims the bound {lowered!r} above {self.value!r}")
            if not math.isnan(lowered):
                self.bound = max(self.bound, min(lowered, self.value))
        if outcome.values is None:
            self.termination = TERMINATIONS.get(
                outcome.stop or StopReason.TIME, Termination.TIME_LIMIT
            )
            return True
        found = built.base.configuration(program, outcome.values)
        self.offer(found)
        if outcome.verdict is Verdict.STOPPED:
            self.termination = TERMINATIONS.get(
                outcome.stop or StopReason.TIME, Termination.TIME_LIMIT
            )
            return True
        if self.proven:
            return True
        if self._add_missing(found, outcome.objective / built.base.scale):
            return False
        if violations(self.problem, found):  # broken by less than the rows can tell
            self.forbidden.append(found)
            return False
        return self._prove(built, program)

    def _build(self) -> LossProgram:
        """Build the program again, reduced by the best value so far."""
        self.step()
        problem, contingency = self.problem, self.contingency
        weights = dict(
            zip(
                (loss.name for loss in contingency.losses(problem)),
                contingency.probabilities(problem),
                strict=True,
            )
        )
        crude = largest_score(problem, contingency)
        reduce = bool(self.options.settings["reduce"])
        value = self.value if reduce else math.inf
        share = 1 - sum(weights.values())

        def most(name: str) -> float:
            """Return the largest score after a loss that is still of interest."""
            if contingency.goal == "weighted":
                return value / weights[name] if weights[name] else math.inf
            return value if contingency.goal == "worst" else contingency.ceiling(problem)

        cutoff = value
        if contingency.goal == "bounded":
            cutoff = min(value, contingency.ceiling(problem))
        elif contingency.goal == "weighted":
            cutoff = value / share if share > 1e-6 else math.inf
        normal = reduce_terms(self.normal, cutoff) if math.isfinite(cutoff) else self.normal
        losses = tuple(
            reduce_terms(terms, most(name)) if math.isfinite(most(name)) else terms
            for name, terms in self.added.items()
        )
        assert all(isinstance(terms, LossTerms) for terms in losses)
        top = crude
        if contingency.goal == "worst" and math.isfinite(self.value):
            top = min(crude, self.value * (1 + 1e-6))
        typical = self.value if self.best is not None else max(self.bound, 1.0)
        built = build(contingency, normal, losses, top=top, typical=typical, step=self.step)  # type: ignore[arg-type]  # reduce_terms keeps the class
        for configuration in self.forbidden:
            if configuration.leader in built.base.variables.y:
                built.forbid(configuration)
        return built

    def _add_missing(self, configuration: Configuration, claimed: float) -> bool:
        """Add the most underestimated loss of a configuration; return whether there was one."""
        self.report()
        contingency, problem = self.contingency, self.problem
        after = contingency.scores_after(problem, configuration)
        weights = contingency.probabilities(problem)
        gaps: list[tuple[float, int]] = []
        for i, (loss, worth) in enumerate(after):
            if loss.name in self.added or math.isinf(worth):
                continue
            if contingency.goal == "weighted":
                if weights[i]:
                    gaps.append((weights[i] * worth, i))
            elif contingency.goal == "bounded":
                if worth > contingency.ceiling(problem):
                    gaps.append((worth, i))
            elif worth > claimed * (1 + OPTIMALITY_TOLERANCE / 4):
                gaps.append((worth, i))
        if not gaps:
            return False
        _, i = max(gaps)
        loss = after[i][0]
        self.added[loss.name] = terms_after(problem, contingency, loss)
        return True

    def _run(
        self, built: LossProgram, program: LinearProgram, *, presolve: bool = True
    ) -> HighsResult:
        start = None if self.best is None else built.values(program, self.best)
        scale, allowance = built.base.scale, slack(built.base, program)

        def pass_on(incumbent: float, bound: float) -> None:
            del incumbent  # of a relaxation: losses may be missing
            self.report(bound=(bound - allowance) / scale)

        outcome = run_highs(
            program,
            Guard(self.deadline, report=pass_on),
            threads=self.options.threads,
            seed=self.options.seed,
            start=start,
            presolve=presolve,
        )
        for name, amount in (("nodes", outcome.nodes), ("solve_seconds", outcome.seconds)):
            before = self.stats.get(name, 0)
            self.stats[name] = amount if isinstance(before, str) else before + amount
        return outcome

    def _prove(self, built: LossProgram, program: LinearProgram) -> bool:
        """Close the tree on safe bounds; whether that ends the search."""
        closing = close_tree(
            self.problem,
            built.base,
            program,
            self.value,
            deadline=self.deadline,
            report=lambda bound: self.report(bound=bound),
        )
        self.stats["proof_nodes"] = closing.nodes
        self.bound = max(self.bound, closing.bound)
        for configuration in closing.better:
            self.offer(configuration)
        if closing.termination is not None:
            self.termination = closing.termination
        return not closing.better


def _plan(search: _MilpLossSearch) -> Plan:
    search.stats["seconds_first"] = time.perf_counter() - search.began

    def plan(bound: float, reasons: tuple[str, ...] = ()) -> Plan:
        return Plan.of(
            search.problem,
            search.best,
            method="milp",
            bound=min(bound, search.value),
            termination=search.termination,
            reasons=reasons,
            notes=search.notes,
            stats=search.stats,
        )

    if search.best is not None or not search.infeasible:
        return plan(search.bound)
    for name in _REFEREES:  # a single solver's word ends nothing
        if name not in available():
            continue
        left = None if math.isinf(search.deadline) else search.deadline - time.perf_counter()
        try:
            other = run_method(
                load_method(name),
                search.problem,
                dataclasses.replace(
                    search.options,
                    settings={},
                    progress=lambda _: search.report(),
                    time_limit=None if left is None else max(0.0, left),
                ),
            )
        except (UnsupportedError, LimitError):
            continue
        if other.configuration is not None:
            raise SolverError(f"HiGHS finds no plan, but method {name!r} does")
        if other.status is Status.INFEASIBLE:
            return plan(
                math.inf,
                (f"HiGHS and method {name!r} found no configuration that obeys all rules",),
            )
    search.notes.append("HiGHS found no feasible configuration, and nothing else could confirm it")
    search.termination = Termination.WORK_LIMIT
    return plan(-math.inf)
