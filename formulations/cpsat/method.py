"""Tier 3 in CP-SAT (method ``cp-sat``): leader after leader, the most promising first.

Each leader has a floor (every client at its cheapest site, the shortest wait). Leaders whose floor
is not below the incumbent are never modelled; the other leaders are solved by
:mod:`formulations.cpsat.leader_model` in the order of their floors, with everything not better than
the incumbent cut off. The proven bound is the least bound over all leaders,
less the rounding error of its integers (:mod:`formulations.cpsat.integer_costs`). Where no cost
depends on the leader, one model has them all.

The leader of the first incumbent comes first and its cut-off keeps the incumbent: a model (or a
solver) that does not admit a plan known to be feasible is caught there and then.
"""

from __future__ import annotations

import dataclasses
import math
import time
from dataclasses import dataclass, field

from formulations.cpsat.integer_costs import LeaderCosts, leader_costs
from formulations.cpsat.leader_model import LeaderModel, build, forbid
from formulations.exact.reduced_problem import leader_groups
from formulations.linear.leader_program import beyond_rows
from formulations.milp.find_start import find_start, with_best_voters
from formulations.solvers.cpsat import CpSatResult, new_solver, run_solver
from formulations.solvers.statuses import Verdict
from placement.errors import LimitError, SolverError
from placement.evaluation.waits.wait_rows import no_rows
from placement.feasibility.feasible_plans import find_feasible, violations
from placement.methods.options import Options, Progress, Setting
from placement.methods.registry import Method, available
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


@dataclass
class _LeaderByLeader:
    """State of the search: incumbent and bounds so far, and the work done.

    Attributes
    ----------
    bounds
        Proven lower bound of each group of leaders with equal costs, by its first leader.
    """

    problem: Problem
    options: Options
    started: float
    bounds: dict[int, float] = field(default_factory=dict)
    best: Configuration | None = None
    value: float = math.inf
    termination: Termination = Termination.FINISHED
    notes: list[str] = field(default_factory=list)
    models: int = 0
    conflicts: int = 0
    branches: int = 0
    literals: int = 0
    scale: float = 0.0
    error: float = 0.0
    building: float = 0.0

    @property
    def bound(self) -> float:
        """Least bound over all leaders; +∞ when none can lead."""
        return least_bound(*self.bounds.values())

    @property
    def target(self) -> float:
        """Least bound at which a leader needs no further search."""
        return self.value * (1 - self.options.gap_limit)

    @property
    def seconds_left(self) -> float | None:
        """Wall time left; None without a limit."""
        if self.options.time_limit is None:
            return None
        return self.options.time_limit - (time.perf_counter() - self.started)

    def check_time(self) -> None:
        """Raise TimeoutError when the time is up."""
        left = self.seconds_left
        if left is not None and left <= 0:
            raise TimeoutError

    def offer(self, configuration: Configuration) -> None:
        """Take a feasible configuration if it is the best so far."""
        value = objective_value(self.problem, configuration)
        if value < self.value:
            self.value, self.best = value, configuration

    def report(self, bound: float | None = None) -> None:
        """Report the incumbent and the bound; `bound` is the bound of the present leader."""
        self.options.report(
            Progress(
                time.perf_counter() - self.started,
                self.value,
                min(self.bound if bound is None else bound, self.value),
            )
        )


def solve(problem: Problem, options: Options) -> Plan:
    """Prove the best configuration, one leader at a time.

    Returns
    -------
    Plan
        At a limit or after Ctrl-C: the best configuration so far with the proven bound.

    Raises
    ------
    SolverError
        When the solver contradicts the evaluator or the complete search for a feasible plan.
    """
    search = _LeaderByLeader(problem, options, time.perf_counter())
    with end_early(search):
        groups = leader_groups(problem)
        search.bounds = {group[0]: 0.0 for group in groups}  # nothing costs less than nothing
        _start(search)
        costs = dict[int, LeaderCosts]()
        for group in groups:
            search.check_time()
            costs[group[0]] = leader_costs(problem, *group)
            search.bounds[group[0]] = costs[group[0]].floor
        search.report()
        for leader in _order(search):
            if search.bounds[leader] < search.target:
                _solve_leader(search, costs[leader])
                search.report()
    return _plan(search)


def _order(search: _LeaderByLeader) -> list[int]:
    """Leaders by floor, but the incumbent's first."""
    first = -1 if search.best is None else search.best.leader
    return sorted(search.bounds, key=lambda leader: (leader != first, search.bounds[leader]))


_START_SHARE = 0.2  # of the time left, at most, for a first plan; chosen by hand


def _start(search: _LeaderByLeader) -> None:
    """Find a configuration to start from: the caller's, a heuristic's, or any feasible one."""
    options, name = search.options, str(search.options.settings["start"])
    if options.start is None:
        if name == "none":
            return
        search.check_time()
    if (left := search.seconds_left) is not None:
        options = dataclasses.replace(options, time_limit=max(left, 0.0))
    heuristic = name if name in available() else "none"
    start = find_start(search.problem, options, heuristic, lambda _: None, _START_SHARE)
    search.notes += start.notes
    if start.configuration is not None:
        search.offer(start.configuration)
    if start.interrupted:
        raise KeyboardInterrupt


def _solve_leader(search: _LeaderByLeader, costs: LeaderCosts) -> None:
    """Raise the bound of one leader to the target, or to the time limit."""
    began = time.perf_counter()
    model = build(
        search.problem,
        costs,
        incumbent=search.value,
        hint=search.best,
        check_time=search.check_time,
    )
    own = search.best is not None and search.best.leader in costs.leaders and not search.models
    most = search.value if own else search.target
    if math.isfinite(search.value) and not model.cut_off(most, keep=own):
        search.bounds[costs.leaders[0]] = search.target - model.integers.error
        return
    search.building += time.perf_counter() - began
    search.models += 1
    search.literals = max(search.literals, len(model.model.proto.variables))
    search.scale = max(search.scale, model.integers.scale)
    search.error = max(search.error, model.integers.error)
    known = search.best if own else None
    while True:
        answer = _run(search, model)
        configuration = _read(model, answer.values)
        if configuration is None or not _breaks_budget(search.problem, configuration):
            break
        # Within the rounding of the prices, but not within the budget.
        forbid(model.model, model.variables, configuration)
    if configuration is not None:
        _accept(search, model, answer, configuration)
    _raise_bound(search, model, answer, known)
    if answer.interrupted:
        raise KeyboardInterrupt
    short = search.bounds[costs.leaders[0]] < search.target - model.integers.error
    if answer.verdict is Verdict.STOPPED and short and search.options.time_limit is not None:
        raise TimeoutError


def _run(search: _LeaderByLeader, model: LeaderModel) -> CpSatResult:
    search.check_time()
    left = search.seconds_left
    options = search.options
    solver = new_solver(
        seconds=left,
        seed=options.seed,
        threads=options.threads,
        gap=options.gap_limit * model.costs.floor * model.integers.scale,
    )
    mine = model.costs.leaders[0]
    others = least_bound(*(bound for leader, bound in search.bounds.items() if leader != mine))

    def listen(values: list[int] | None, bound: int | None) -> None:
        configuration = _read(model, values)
        if configuration is not None and not violations(search.problem, configuration):
            search.offer(configuration)
        own = search.bounds[mine]
        if bound is not None:
            own = max(own, model.in_ms(bound) - model.integers.error)
        search.report(min(others, own))

    answer = run_solver(solver, model.model, seconds=left, listen=listen)
    search.conflicts += answer.conflicts
    search.branches += answer.branches
    return answer


def _read(model: LeaderModel, values: list[int] | None) -> Configuration | None:
    if values is None:
        return None
    return model.variables.configuration(
        model.costs.leaders, lambda literal: bool(values[literal.index])
    )


def _breaks_budget(problem: Problem, configuration: Configuration) -> bool:
    """Return whether a configuration breaks the budget; another violation is an error."""
    broken = violations(problem, configuration)
    if not broken:
        return False
    if problem.rules.budget is None or len(broken) > 1 or "budget" not in broken[0]:
        raise SolverError("CP-SAT returned a configuration that breaks: " + "; ".join(broken))
    return True


def _accept(
    search: _LeaderByLeader, model: LeaderModel, answer: CpSatResult, configuration: Configuration
) -> None:
    """Re-score the solver's configuration, and accept it with the voters of the tie rule."""
    problem = search.problem
    value = objective_value(problem, configuration)
    assert answer.objective is not None
    claimed = model.in_ms(answer.objective)
    slack = model.integers.error + 1e-9 * abs(value)
    # Before the end the solver may still wait for more votes than it needs to; at the end not.
    too_high = answer.verdict is Verdict.OPTIMAL and claimed > value + slack
    if claimed < value - slack or too_high:
        raise SolverError(
            f"CP-SAT says the objective is {claimed!r}, the evaluator {value!r}, and rounding "
            f"explains only {slack:g}"
        )
    named = with_best_voters(problem, configuration)
    if objective_value(problem, named) <= search.value:
        search.value, search.best = objective_value(problem, named), named


def _raise_bound(
    search: _LeaderByLeader, model: LeaderModel, answer: CpSatResult, known: Configuration | None
) -> None:
    leader, error = model.costs.leaders[0], model.integers.error
    if answer.verdict is Verdict.INFEASIBLE:
        if known is not None:
            sites = search.problem.instance.sites
            raise SolverError(
                f"CP-SAT finds no configuration led by {sites[known.leader]!r} that is as good as "
                f"the one known, with replicas {[sites[r] for r in known.replicas]}"
            )
        # With an incumbent, only what is better than the target was left to search.
        search.bounds[leader] = search.target - error if search.best is not None else math.inf
    elif answer.bound is not None:
        proven = model.in_ms(answer.bound) - error
        search.bounds[leader] = max(search.bounds[leader], proven)


def _plan(search: _LeaderByLeader) -> Plan:
    problem = search.problem
    termination = search.termination
    bound = search.bound
    reasons: list[str] = []
    if search.best is None and math.isinf(bound):
        _confirm_infeasible(search)
        reasons.append(
            f"under none of the {problem.rules.may_lead.sum()} candidate leaders is there a "
            "configuration that obeys all rules"
        )
    if (
        search.best is not None
        and termination is Termination.FINISHED
        and search.options.gap_limit > OPTIMALITY_TOLERANCE
        and relative_gap(search.value, bound) > OPTIMALITY_TOLERANCE
    ):
        termination = Termination.GAP_LIMIT
    return Plan.of(
        problem,
        search.best,
        method=METHOD.name,
        bound=min(bound, search.value),
        termination=termination,
        reasons=reasons,
        notes=search.notes,
        stats={
            "leaders": len(search.bounds),
            "models": search.models,
            "literals": search.literals,
            "conflicts": search.conflicts,
            "branches": search.branches,
            "scale": search.scale,
            "rounding_error": search.error,
            "build_seconds": search.building,
        },
    )


def _confirm_infeasible(search: _LeaderByLeader) -> None:
    """Let the complete search confirm infeasibility: a single solver's word ends nothing."""
    try:
        found = find_feasible(search.problem)
    except LimitError as error:
        search.notes.append(
            f"infeasible by CP-SAT's word alone: the complete search gave up ({error})"
        )
        return
    if found is not None and math.isfinite(objective_value(search.problem, found)):
        raise SolverError(f"CP-SAT finds no plan, but here is one: {found}")


def _refuses(problem: Problem) -> str | None:
    return beyond_rows(problem) or no_rows(problem)


METHOD = Method(
    name="cp-sat",
    call=solve,
    summary="one constraint-programming model per leader (OR-Tools CP-SAT), whole numbers only",
    exact=True,
    refuses=_refuses,
    objectives=(
        "mean",
        "measures",
        "waits",
    ),
    settings={
        "start": Setting(
            "best-of",
            "method whose plan the search starts from ('none': from nothing)",
        ),
    },
    complexity="exponential; O(C·|S|) literals per leader",
    reference="Sharov et al. 2015, section 5; Elloumi 2010 for the distance chains",
)
