"""The search: rounds of HiGHS, each checked by the evaluator, until the bound proves the plan.

**What is claimed.** The score is the evaluator's. The bound is HiGHS's dual bound, lowered by what
its tolerances allow (`slack`), in a program scaled so that this is far below a relative 1e-9:

* an LP optimum is dual feasible to 1e-7 per column, which costs at most 1e-7 times the sum of all
  variables (`PlacementProgram.mass`);
* HiGHS prunes what is better than its incumbent by less than its feasibility tolerance, 1e-6;
* coefficients are rounded: a few units in the last place of the largest, times the mass.

With the objective scaled to a million or more this comes to some 1e-10 of the optimum. It is a
statement about tolerances: cuts, fixings and pruning inside HiGHS are floating point, and it keeps
no record of them. With the setting ``proof=safe`` its bound is not used at all: the optimum it
found is proven again by :mod:`formulations.solvers.safe_bounds`, whose bounds hold in exact
arithmetic.

**What is checked.** Binaries are rounded, the configuration rebuilt, its constraints tested and its
score evaluated; a difference of more than a relative 1e-6 from HiGHS's objective is a SolverError.
"Infeasible" is believed only when something else says so too, and "optimal" only with a bound that
meets the score; where HiGHS's own does not, :mod:`formulations.solvers.safe_bounds` decides.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np

from formulations.milp.find_start import with_best_voters
from formulations.milp.program_data import ProgramData, reduce_terms, static_bound
from formulations.milp.program_model import PlacementProgram, build
from formulations.milp.recipes import Recipe
from formulations.solvers.highs import Guard, HighsResult, run_highs
from formulations.solvers.linear_program import LinearProgram
from formulations.solvers.safe_bounds import prove_by_branching
from formulations.solvers.statuses import TERMINATIONS, StopReason, Verdict
from placement.errors import SolverError
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Options, Progress
from placement.model.configuration import Configuration
from placement.plan import objective_value
from placement.problem import Problem
from placement.support.checks import FloatArray
from placement.support.status import OPTIMALITY_TOLERANCE, Termination, relative_gap

AGREEMENT = 1e-6
"""Largest relative difference between HiGHS's objective and the evaluator's that is tolerated."""

_DUAL_TOLERANCE = 1e-7
_MIP_TOLERANCE = 1e-6
_MOST_FLOWS = 400_000
"""Most flow variables of `choose_recipe` before it aggregates: some 2 GB in Pyomo and HiGHS."""

_ROUNDS = 20
"""Rounds after which the best so far is returned: each cuts off a plan or tightens the scale."""


def choose_recipe(terms: ProgramData) -> Recipe:
    """Return the strong recipe with flows per client unless that would be too large a program.

    Flows per client close most of the gap, and after reductions there are few of them: leaders and
    servers that a good plan rules out have none. Without a good plan their number is |C||S|².
    Where nothing is forwarded or waited for, the textbook's program is that of p-median.
    """
    if not (terms.classes or terms.radii or any(row.guarded for row in terms.clients)):
        return Recipe.TEXTBOOK
    leaders = len(terms.leaders)
    flows = sum(len(row.serving) * leaders for row in terms.clients if row.relay > 0)
    return Recipe.PER_CLIENT if flows <= _MOST_FLOWS else Recipe.CHAIN


def slack(milp: PlacementProgram, program: LinearProgram) -> float:
    """Return the amount by which the tolerances of HiGHS may lift its bound, in program units."""
    largest = float(np.abs(program.cost).max(initial=0.0))
    rounding = 4 * float(np.finfo(float).eps) * largest
    return 2 * _MIP_TOLERANCE + (_DUAL_TOLERANCE + rounding) * milp.mass


@dataclass
class CuttingRounds:
    """State of one search for the optimum of a problem."""

    #: `problem`, `options`: the question, and how to go about it
    problem: Problem
    options: Options
    recipe: Recipe | None  #: the formulation; None: `choose_recipe` decides, program by program
    terms: ProgramData  #: data of the program, before reductions
    reduce: bool  #: whether to leave out what the best configuration makes too expensive
    #: whether the bound must come from formulations.solvers.safe_bounds instead of from HiGHS
    safe: bool
    began: float
    deadline: float  #: time.perf_counter() at which to stop
    #: `best`, `value`: best configuration so far and its objective
    best: Configuration | None = None
    value: float = math.inf
    bound: float = -math.inf  #: proven lower bound so far
    infeasible: bool = False  #: whether HiGHS found no configuration, with and without presolve
    termination: Termination = Termination.FINISHED  #: why the search ended
    notes: list[str] = field(default_factory=list)
    stats: dict[str, float | int | str] = field(default_factory=dict)

    def offer(self, configuration: Configuration) -> None:
        """Take a feasible configuration if it is the best so far, with its best voters."""
        configuration = with_best_voters(self.problem, configuration)
        value = objective_value(self.problem, configuration)
        if value < self.value:  # infinite where a wait never ends: no plan
            self.best, self.value = configuration, value

    def report(self, incumbent: float = math.inf, bound: float = -math.inf) -> None:
        """Pass progress on, in units of the problem."""
        self.options.report(
            Progress(
                time.perf_counter() - self.began,
                min(self.value, incumbent),
                max(self.bound, min(bound, self.value)),
            )
        )

    def use_static_bound(self) -> None:
        """Raise the bound to the least cost of every configuration."""
        self._raise_bound(static_bound(self.terms))

    def run_rounds(self) -> None:
        """Run rounds until the best configuration is proven or nothing is feasible.

        TimeoutError when time is up while a program is built.
        """
        for _ in range(_ROUNDS):
            if self._enough() or self._solve(*self._build()):
                return
        self.termination = Termination.WORK_LIMIT

    def _step(self) -> None:
        """Report, and look at the clock: between the parts of a program."""
        self.report()
        if time.perf_counter() >= self.deadline:
            raise TimeoutError

    def _raise_bound(self, bound: float) -> None:
        if not math.isnan(bound):
            self.bound = max(self.bound, bound)

    def _proven(self, gap: float = OPTIMALITY_TOLERANCE) -> bool:
        """Return whether the bound leaves at most a gap."""
        return self.best is not None and relative_gap(self.value, self.bound) <= gap

    def _enough(self) -> bool:
        """Return whether the bound suffices: a proof, or the gap that was asked for."""
        if not self._proven() and self._proven(self.options.gap_limit):
            self.termination = Termination.GAP_LIMIT
        return self._proven(max(OPTIMALITY_TOLERANCE, self.options.gap_limit))

    def _build(self) -> tuple[PlacementProgram, LinearProgram]:
        began = time.perf_counter()
        self._step()
        terms, typical = self.terms, max(self.bound, 1.0)
        if self.best is not None:
            # Without a configuration any scale will do; a later round takes the right one.
            typical = self.value
            terms = reduce_terms(terms, self.value) if self.reduce else terms
        recipe = choose_recipe(terms) if self.recipe is None else self.recipe
        milp = build(terms, recipe.rows, typical, self._step)
        program = milp.program(self._step)
        self._step()
        self._count(build_seconds=time.perf_counter() - began, programs=1)
        if len(program.value) >= int(self.stats.get("nonzeros", 0)):  # of several, the largest
            self.stats.update(recipe=recipe.value, **program.size())
        return milp, program

    def _solve(self, milp: PlacementProgram, program: LinearProgram) -> bool:
        """Run HiGHS on a program with cuts for refuted configurations; return if solved."""
        for _ in range(_ROUNDS):
            outcome = self._run(milp, program)
            if outcome.verdict is Verdict.INFEASIBLE:
                outcome = self._run(milp, program, presolve=False)
                if outcome.verdict is Verdict.INFEASIBLE:
                    return self._nothing_feasible()
                if outcome.values is not None:
                    self.notes.append("HiGHS's presolve called a feasible program infeasible")
            lowered = (outcome.bound - slack(milp, program)) / milp.scale
            if self.safe:
                lowered = -math.inf
            if outcome.stop is StopReason.ENOUGH:
                self._raise_bound(min(lowered, self.value))
                return self._prove() if self.safe else self._enough()
            if outcome.values is None:
                self._raise_bound(lowered)
                return self._stopped(outcome)
            if not self.safe:
                self.stats["slack"] = slack(milp, program) / max(abs(outcome.objective), 1e-300)
            configuration = milp.configuration(program, outcome.values)
            broken = violations(self.problem, configuration)
            if broken and not violations(self.problem.replace(budget=None), configuration):
                # Over budget by less than HiGHS's tolerance on a row.
                milp.forbid(configuration)
                program = milp.program()
                if outcome.verdict is Verdict.OPTIMAL:
                    self._raise_bound(lowered)
                    continue
                return self._stopped(outcome)
            if broken:
                raise SolverError("HiGHS's solution breaks the problem: " + "; ".join(broken))
            self._check(outcome, milp, configuration)
            self.offer(configuration)
            if lowered > self.value * (1 + AGREEMENT):
                raise SolverError(
                    f"HiGHS claims the bound {lowered!r}, but a configuration with the objective "
                    f"{self.value!r} is known"
                )
            self._raise_bound(min(lowered, self.value))
            if outcome.verdict is Verdict.STOPPED:
                return self._stopped(outcome)
            if self.safe:
                return self._prove()
            if self._proven():
                return True
            if self.value and milp.scale_for(self.value) > 1.5 * milp.scale:
                return False  # a new scale, from a much better plan, tightens the bound
            # HiGHS has been seen to say "optimal" with its own bound a per cent below its solution.
            self.notes.append(
                f"HiGHS said optimal with the bound {outcome.bound / milp.scale!r}, which proves a "
                f"gap of {relative_gap(self.value, self.bound):.1e} only; proven on safe LP bounds"
            )
            return self._prove()
        return False

    def _prove(self) -> bool:
        """Prove the best configuration on safe bounds, or find a better; whether that is the end.

        The evaluator judges what the tree ends in.
        """
        milp, program = self._build()
        began, better = time.perf_counter(), list[Configuration]()
        target = self.value * (1 - OPTIMALITY_TOLERANCE / 2)

        def judge(values: FloatArray) -> bool:
            found = milp.configuration(program, values)
            if violations(self.problem, found) or objective_value(self.problem, found) >= target:
                return True
            better.append(found)
            return False

        proof = prove_by_branching(
            program,
            target * milp.scale,
            judge,
            deadline=self.deadline,
            report=lambda bound: self.report(bound=bound / milp.scale),
        )
        self._count(proof_seconds=time.perf_counter() - began, proof_nodes=proof.nodes)
        self._raise_bound(proof.bound / milp.scale * (1 - 1e-15))
        for configuration in better:
            self.offer(configuration)
        if proof.interrupted:
            self.termination = Termination.INTERRUPTED
        elif proof.open and not better:
            late = time.perf_counter() >= self.deadline
            self.termination = Termination.TIME_LIMIT if late else Termination.WORK_LIMIT
        return not better

    def _run(
        self, milp: PlacementProgram, program: LinearProgram, *, presolve: bool = True
    ) -> HighsResult:
        scale, allowance = milp.scale, slack(milp, program)

        def pass_on(incumbent: float, bound: float) -> None:
            # Rounded up: what the evaluator says of it later must not be worse.
            self.report(incumbent / scale * (1 + AGREEMENT), (bound - allowance) / scale)

        outcome = run_highs(
            program,
            Guard(
                self.deadline,
                self.options.gap_limit,
                enough=self.value * (1 - self.options.gap_limit) * scale + allowance,
                report=pass_on,
            ),
            threads=self.options.threads,
            seed=self.options.seed,
            start=None if self.best is None else milp.start(program, self.best),
            presolve=presolve,
        )
        self._count(
            solve_seconds=outcome.seconds,
            nodes=outcome.nodes,
            simplex_iterations=outcome.iterations,
        )
        if outcome.abandoned:
            self.notes.append("HiGHS did not stop when it was told to and was left behind")
        return outcome

    def _count(self, **amounts: float) -> None:
        for name, amount in amounts.items():
            before = self.stats.get(name, 0)
            self.stats[name] = amount if isinstance(before, str) else before + amount

    def _stopped(self, outcome: HighsResult) -> bool:
        known = outcome.stop is StopReason.TIME and self._proven()  # HiGHS went on to a gap of 0
        if outcome.stop is not None and not known:
            self.termination = TERMINATIONS[outcome.stop]
        return True

    def _nothing_feasible(self) -> bool:
        if self.best is not None:
            raise SolverError(
                "HiGHS calls a program infeasible, with presolve and without, for which a feasible "
                "configuration is known"
            )
        self.infeasible = True
        return True

    def _check(
        self, outcome: HighsResult, milp: PlacementProgram, configuration: Configuration
    ) -> None:
        """Raise SolverError unless HiGHS and the evaluator agree on a configuration's objective."""
        value = objective_value(self.problem, configuration)
        claimed = outcome.objective / milp.scale
        if outcome.verdict is Verdict.OPTIMAL and not math.isclose(
            claimed, value, rel_tol=AGREEMENT, abs_tol=AGREEMENT / milp.scale
        ):
            raise SolverError(
                f"HiGHS claims the objective {claimed!r} for a configuration that the evaluator "
                f"puts at {value!r}"
            )
