"""Contingency placement in CP-SAT: a model per leader and failover leader.

Losses are added as they are needed. Under a leader ℓ the model is that of
:mod:`formulations.cpsat`; a loss F adds

    F without ℓ    cost_F(ℓ) ≤ θ_F, with the distance chains and the waits of the survivors; the
                   literals empty[P] are shared, so that most of a copy exists already
    F with ℓ       elect[ℓ'], exactly one;  elect[ℓ'] ⇒ voter[ℓ'];
                   elect[ℓ'] ⇒ cost_F(ℓ') ≤ θ_F;
                   elect[ℓ'] ⇒ ¬voter[c] for candidates c ∉ F when ℓ' is none

(and so for every F when the leader may move). θ_F is one θ for the goal "worst", the limit for
"bounded", and the share of p_F for "weighted". Every loss leaves a quorum of voters.

Where one loss decides who takes over, a leader is proven in parts, one for each failover leader ℓ'
(its successor): one row in place of an election. Leaders and failover leaders that are too slow
with one replica less than allowed need no model (:mod:`formulations.contingency.leader_floors`).

All costs are rounded to whole multiples of one unit; the bound gives up what rounding may have
added, which is counted term by term.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np

from formulations.contingency.break_ties import break_ties
from formulations.contingency.cpsat_costs import Rounding, costs_after, elections
from formulations.contingency.leader_floors import always_hit, survivor_floor
from formulations.cpsat import constraints, tuning, variables
from formulations.cpsat.integer_costs import LeaderCosts, leader_costs
from formulations.solvers.cpsat import CpSatResult, new_solver, run_solver
from formulations.solvers.statuses import Verdict
from placement.contingency.objective import Contingency
from placement.errors import LimitError, PlacementError, SolverError
from placement.evaluation.losses import Loss, demand_after
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Options, Progress
from placement.methods.registry import available, load_method, refusal, run
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.status import (
    OPTIMALITY_TOLERANCE,
    Status,
    Termination,
    end_early,
    least_bound,
    relative_gap,
)

__all__ = ["solve"]

_START = "local-search"


@dataclass
class _CpSatLossSearch:
    problem: Problem
    options: Options
    started: float = field(default_factory=time.perf_counter)
    bounds: dict[int, float] = field(default_factory=dict)
    best: Configuration | None = None
    value: float = math.inf
    termination: Termination = Termination.FINISHED
    notes: list[str] = field(default_factory=list)
    stats: dict[str, float | int | str] = field(default_factory=dict)
    useful: dict[str, Loss] = field(default_factory=dict)
    floors: dict[int, float] = field(default_factory=dict)
    contingency: Contingency = field(init=False)

    def __post_init__(self) -> None:
        assert isinstance(self.problem.objective, Contingency)
        self.contingency = self.problem.objective

    @property
    def bound(self) -> float:
        return least_bound(*self.bounds.values())

    @property
    def target(self) -> float:
        """Least bound at which a leader needs no further search."""
        return self.value * (1 - max(self.options.gap_limit, OPTIMALITY_TOLERANCE / 2))

    @property
    def seconds_left(self) -> float | None:
        limit = self.options.time_limit
        return None if limit is None else limit - (time.perf_counter() - self.started)

    @property
    def ceiling(self) -> float:
        """A score after a loss from which on a configuration is of no interest."""
        goal = self.contingency.goal
        if goal == "worst":
            return self.target
        if goal == "bounded":
            return self.contingency.ceiling(self.problem) * (1 + OPTIMALITY_TOLERANCE)
        return math.inf

    def floor(self, leader: int) -> float:
        """Return the least score under a leader after a loss, computed when first asked for."""
        if self.contingency.clients_move or math.isinf(self.ceiling):
            return 0.0
        if leader not in self.floors:
            left = self.seconds_left
            seconds = None if left is None else tuning.LOSS_FLOOR_SHARE * max(left, 0.0)
            self.floors[leader] = survivor_floor(
                self.problem, leader, seconds=seconds, seed=self.options.seed
            )
        return self.floors[leader]

    def check_time(self) -> None:
        left = self.seconds_left
        if left is not None and left <= 0:
            raise TimeoutError

    def offer(self, configuration: Configuration) -> bool:
        if violations(self.problem, configuration):
            return False
        value = objective_value(self.problem, configuration)
        if value < self.value:
            self.value, self.best = value, configuration
        return True

    def raise_to(self, leader: int, floor: float) -> None:
        """Raise the bound to the least cost of the leader after a loss."""
        if self.contingency.goal == "worst":
            self.bounds[leader] = max(self.bounds[leader], min(floor, self.value))
        elif floor > self.ceiling:
            self.bounds[leader] = math.inf

    def report(self) -> None:
        seconds = time.perf_counter() - self.started
        self.options.report(Progress(seconds, self.value, min(self.bound, self.value)))


def solve(problem: Problem, options: Options) -> Plan:
    """Prove the best configuration, one leader after the other.

    Raises
    ------
    SolverError
        When the solver contradicts the evaluator.
    """
    search = _CpSatLossSearch(problem, options)
    with end_early(search):
        for leader in np.nonzero(problem.rules.may_lead)[0].tolist():
            search.bounds[leader] = 0.0
        _start(search)
        share = 1.0
        if search.contingency.goal == "weighted":
            share = max(0.0, 1 - sum(search.contingency.probabilities(problem)))
        costs = dict[int, LeaderCosts]()
        for leader in search.bounds:
            search.check_time()
            costs[leader] = leader_costs(problem, leader)
            search.bounds[leader] = share * costs[leader].floor
        first = -1 if search.best is None else search.best.leader
        if always_hit(problem):
            for leader in search.bounds:
                search.check_time()
                if search.bounds[leader] < search.ceiling:
                    search.raise_to(leader, search.floor(leader))
        order = sorted(search.bounds, key=lambda ell: (ell != first, search.bounds[ell]))
        for leader in order:
            search.report()
            if search.bounds[leader] < search.target:
                _solve_leader(search, costs[leader])
    return break_ties(_plan(search), options, solve)


def _solve_leader(search: _CpSatLossSearch, costs: LeaderCosts) -> None:
    """Prove one leader, in parts by who takes over from it where a single loss decides that.

    A part has one cost row for the leader's loss in place of one for every voter that might be
    elected. The bound of the leader is the least of its parts.
    """
    leader = costs.leader
    successors = _successors(search, leader)
    if successors is None:
        _Leader(search, costs).solve()
        return
    before = search.bounds[leader]
    worst = search.contingency.goal == "worst"
    parts = {}
    for successor in successors:
        floor = search.floor(successor)
        parts[successor] = max(before, min(floor, search.value)) if worst else before
        if not worst and floor > search.ceiling:
            parts[successor] = math.inf
    for successor in sorted(successors, key=lambda site: (search.floor(site), site)):
        if parts[successor] < search.target:
            part = _Leader(search, costs, successor)
            part.bound = parts[successor]
            part.solve()
            parts[successor] = part.bound
        search.bounds[leader] = max(search.bounds[leader], least_bound(*parts.values()))
        search.report()
    if not parts:  # no failover leader is possible, so this leader has no feasible plan
        search.bounds[leader] = math.inf


def _successors(search: _CpSatLossSearch, leader: int) -> list[int] | None:
    """Return the failover leaders of `leader`; None: they depend on the loss, or are not split."""
    contingency = search.contingency
    losses = [loss for loss in contingency.losses(search.problem) if leader in loss.sites]
    if len(losses) != 1 or contingency.goal == "weighted" or contingency.clients_move:
        return None
    voters = np.nonzero(search.problem.rules.may_vote)[0].tolist()
    return [site for site in voters if site not in losses[0].sites]


def _start(search: _CpSatLossSearch) -> None:
    options, problem = search.options, search.problem
    if options.start is not None:
        search.offer(options.start)
        return
    name = str(options.settings["start"])
    name = _START if name == "best-of" else name  # which knows nothing of losses
    if name == "none" or name not in available():
        return
    method = load_method(name)
    if refusal(method, problem) is not None:
        return
    limit = search.seconds_left
    share = None if limit is None else tuning.LOSS_START_SHARE * max(limit, 0.0)
    try:
        plan = run(method, problem, Options(time_limit=share, seed=options.seed))
    except PlacementError as error:
        search.notes.append(f"{name!r} gave nothing to start from: {error}")
        return
    if plan.configuration is not None:
        search.offer(plan.configuration)
    if plan.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt


class _Leader:
    """The model of one leader (and who takes over), with the losses that have been added."""

    def __init__(
        self, search: _CpSatLossSearch, costs: LeaderCosts, successor: int | None = None
    ) -> None:
        from ortools.sat.python import cp_model

        self.search, self.costs, self.successor = search, costs, successor
        self.bound = search.bounds[costs.leader]
        problem, contingency = search.problem, search.contingency
        self.losses = contingency.losses(problem)
        self.weights = contingency.probabilities(problem)
        self.model = cp_model.CpModel()
        self.decisions = variables.create(self.model, problem, costs)
        constraints.add_all(self.model, self.decisions, problem, costs, search.check_time)
        for loss in self.losses:
            left = [var for r, var in self.decisions.voter.items() if r not in loss.sites]
            self.model.add(cp_model.LinearExpr.sum(left) >= problem.rules.quorum)
        self.share = 1 - sum(self.weights) if contingency.goal == "weighted" else 1.0
        self.rounding = Rounding.of(problem, costs)
        self.normal = self.rounding.expression(self.decisions, costs, self.share)
        self.top = self.rounding.top
        self.added: set[str] = set()
        self.theta: dict[str, cp_model.IntVar] = {}
        if contingency.goal == "worst":
            self.theta[""] = self.model.new_int_var(0, self.top, "theta")
            self.model.add(self.normal <= self.theta[""])
            self.target = self.theta[""]
        elif contingency.goal == "bounded":
            self.model.add(self.normal <= self._ceiling())
            self.target = self.normal
        else:
            self.target = self._weighted()
        self.model.minimize(self.target)
        if search.best is not None:
            self.decisions.hint(self.model, search.best)
        if successor is not None:
            self.model.add(self.decisions.voter[successor] == 1)
        for loss in search.useful.values():
            if contingency.goal != "weighted":
                self.add(loss)

    def _ceiling(self) -> int:
        """Return the limit in units, with room for rounding: later cuts remove false solutions."""
        ceiling = self.search.contingency.ceiling(self.search.problem)
        if math.isinf(ceiling):
            return self.top
        units = (ceiling + self.rounding.error) * self.rounding.scale
        return min(self.top, math.floor(units) + 1)

    def _weighted(self) -> object:
        """(1 − Σ p)·normal + Σ θ_F, all losses at once: none of them can be left out for long."""
        total = self.normal
        for i, (loss, p) in enumerate(zip(self.losses, self.weights, strict=True)):
            if not p:
                continue
            theta = self.model.new_int_var(0, self.top, f"theta{i}")
            self.theta[loss.name] = theta
            total = total + theta
            self.add(loss, p)
            if not self.search.contingency.moves_clients(self.search.problem, loss):
                untouched = [~var for r, var in self.decisions.replica.items() if r in loss.sites]
                cost = self.rounding.expression(self.decisions, self.costs, p)
                self.model.add(cost <= theta).only_enforce_if(untouched)
        return total

    def add(self, loss: Loss, factor: float = 1.0) -> None:
        """Add one loss."""
        search, model = self.search, self.model
        self.search.check_time()
        self.added.add(loss.name)
        problem, contingency = search.problem, search.contingency
        demand = problem.demand
        if contingency.clients_move:
            demand = demand_after(problem, loss.sites)
        bound: object
        if contingency.goal == "bounded":
            bound = self._ceiling()
        else:
            bound = self.theta[loss.name if contingency.goal == "weighted" else ""]
        alive = {r: var for r, var in self.decisions.voter.items() if r not in loss.sites}
        stays = self.costs.leader not in loss.sites and not contingency.leader_may_move
        leaders = [self.costs.leader] if stays else list(alive)
        elected = None if stays else elections(model, problem, alive, loss.sites)
        for leader in leaders:
            if elected is not None and self.costs.leader in loss.sites:
                # The lost leader took a replica with it.
                other = self.successor is not None and leader != self.successor
                if other or search.floor(leader) > search.ceiling:
                    model.add(elected[leader] == 0)
                    continue
            costs = costs_after(problem, demand, loss.sites, leader)
            if math.isinf(costs.floor):  # too few voters are left
                model.add_bool_or([] if elected is None else [~elected[leader]])
                continue
            view = variables.LeaderVariables(
                replica=self.decisions.replica,
                voter=self.decisions.voter,
                empty=self.decisions.empty,
                slow=[
                    [model.new_bool_var(f"s{loss.name}{leader}_{i}") for i in range(len(w.rows))]
                    for w in costs.waits
                ],
            )
            constraints.chains(model, view, costs, search.check_time)
            guard = None if elected is None else elected[leader]
            constraints.waits(model, view, costs, guard)
            row = model.add(self.rounding.expression(view, costs, factor) <= bound)
            if elected is not None:
                row.only_enforce_if(elected[leader])

    def solve(self) -> None:
        """Raise the bound to the target, adding losses that a solution underestimates."""
        search, rounding = self.search, self.rounding
        while True:
            search.check_time()
            if math.isfinite(search.value):
                most = math.floor((search.target + rounding.error) * rounding.scale)
                self.model.add(self.target <= max(-1, most))
            answer = self._run()
            found = self._read(answer)
            if found is not None and search.offer(found):
                search.report()
            if answer.verdict is Verdict.INFEASIBLE:
                self._raise(search.target)
                return
            if answer.bound is not None:
                proven = answer.bound / rounding.scale - rounding.error
                if math.isfinite(search.value):
                    proven = min(proven, max(search.target, search.value))
                self._raise(proven)
            if answer.interrupted:
                raise KeyboardInterrupt
            if answer.verdict is Verdict.STOPPED or found is None:
                raise TimeoutError
            missed = self._missed(found)
            if missed is not None:
                search.useful[missed.name] = missed
                self.add(missed)
                continue
            if violations(search.problem, found):  # passes by rounding only
                self._forbid(found)
                continue
            value = objective_value(search.problem, found)
            assert answer.objective is not None
            if value > answer.objective / rounding.scale + rounding.error + 1e-9 * value:
                raise SolverError(
                    f"CP-SAT says {answer.objective / rounding.scale!r}, the evaluator {value!r}"
                )
            return  # only rounding is left between bound and value, and the plan says so

    def _raise(self, bound: float) -> None:
        """Keep a better bound; without parts it is the leader's."""
        self.bound = max(self.bound, bound)
        if self.successor is None:
            self.search.bounds[self.costs.leader] = self.bound

    def _missed(self, found: Configuration) -> Loss | None:
        """Return the worst loss that is not in the model and should be."""
        search = self.search
        if search.contingency.goal == "weighted":
            return None
        after = search.contingency.scores_after(search.problem, found)
        worst = [
            (worth, loss)
            for loss, worth in after
            if loss.name not in self.added and math.isfinite(worth)
        ]
        if not worst:
            return None
        worth, loss = max(worst, key=lambda pair: pair[0])
        if search.contingency.goal == "bounded":
            return loss if worth > search.contingency.ceiling(search.problem) else None
        return loss if worth >= search.target else None

    def _forbid(self, found: Configuration) -> None:
        held, votes = set(found.replicas), set(found.voters)
        self.model.add_bool_or(
            [
                *(~v if r in held else v for r, v in self.decisions.replica.items()),
                *(~v if r in votes else v for r, v in self.decisions.voter.items()),
            ]
        )

    def _run(self) -> CpSatResult:
        search, options = self.search, self.search.options
        left = search.seconds_left
        solver = new_solver(seconds=left, seed=options.seed, threads=options.threads)
        answer = run_solver(solver, self.model, seconds=left)
        for name, amount in (("models", 1), ("conflicts", answer.conflicts)):
            before = search.stats.get(name, 0)
            search.stats[name] = amount if isinstance(before, str) else before + amount
        search.stats["literals"] = len(self.model.proto.variables)
        return answer

    def _read(self, answer: CpSatResult) -> Configuration | None:
        values = answer.values
        if values is None:
            return None
        return self.decisions.configuration(
            self.costs.leader, lambda literal: bool(values[literal.index])
        )


def _plan(search: _CpSatLossSearch) -> Plan:
    problem = search.problem
    bound, reasons = search.bound, []
    search.stats["seconds_first"] = time.perf_counter() - search.started
    search.stats["losses"] = len(search.useful)
    if search.best is None and math.isinf(bound) and search.termination is Termination.FINISHED:
        if _confirmed(search):
            reasons.append(
                "under no candidate leader is there a configuration that obeys all rules"
            )
        else:
            bound, search.termination = -math.inf, Termination.WORK_LIMIT
    if (
        search.best is not None
        and search.termination is Termination.FINISHED
        and search.options.gap_limit > OPTIMALITY_TOLERANCE
        and relative_gap(search.value, bound) > OPTIMALITY_TOLERANCE
    ):
        search.termination = Termination.GAP_LIMIT
    return Plan.of(
        problem,
        search.best,
        method="cp-sat",
        bound=min(bound, search.value),
        termination=search.termination,
        reasons=reasons,
        notes=search.notes,
        stats=search.stats,
    )


def _confirmed(search: _CpSatLossSearch) -> bool:
    """Return whether enumeration, where it can, agrees that nothing is feasible."""
    if "exhaustive" not in available():
        return False
    left = search.seconds_left
    try:
        plan = run(
            load_method("exhaustive"),
            search.problem,
            Options(time_limit=None if left is None else max(0.0, left)),
        )
    except LimitError as error:
        search.notes.append(f"infeasible by CP-SAT's word alone: {error}")
        return False
    if plan.found:
        raise SolverError(f"CP-SAT finds no plan, but here is one: {plan.configuration}")
    return plan.status is Status.INFEASIBLE
