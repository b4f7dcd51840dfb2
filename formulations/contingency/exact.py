"""The method ``exact`` for objectives about losses: branch and bound with a threshold per scenario.

The normal case and every loss are separate assignment problems over the same replicas. The compiled
search (``csrc/scenarios`` of the exact engine, :mod:`.loss_kernel`) asks whether some configuration
is below a threshold in all of them. It closes a part of the search if a weighted sum of the
Lagrangean bounds of the scenarios says that none is. The order of the questions is:

1. A start: the optimum of normal times, and a swap descent from it on the goal.
2. A bound of the normal score for every leader. If it reaches the threshold, the leader is
   eliminated, as leader and as successor.
3. For every other leader, a tree for all that may take over when its site is lost, and where that
   becomes large a tree for each of them.
4. For the goal "worst": of the plans of that worst case, the one that is best normally.

What the search does not take goes to the method that proved such questions before, and the plan
says why.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from formulations.contingency.loss_certificate import FORMAT, LossCertificate, LossClaimRecord
from formulations.contingency.loss_kernel import MOST_HITS, MOST_REPLICAS
from formulations.contingency.threshold_stage import TIE, ThresholdStage
from formulations.exact import method
from formulations.exact.enumeration_claim import certified_or_named
from formulations.exact.reduced_problem import ReducedProblem
from formulations.exact.threshold_search import missing
from placement.contingency.objective import Contingency
from placement.evaluation.objective import MEAN_LATENCY
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Options, Progress
from placement.methods.registry import run
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.status import Status, Termination, relative_gap

__all__ = ["LossSearch", "refuses", "solve"]

_MOST_VOTER_SETS = 20_000
_PROVED = "branch and bound over the normal case and every loss"
_NORMAL_SHARE = 0.3  # of a time limit that the optimum of normal times may use


def refuses(problem: Problem) -> str | None:
    """Return why the search over losses does not support a problem, or None."""
    goal, rules = problem.objective, problem.rules
    assert isinstance(goal, Contingency)
    if goal.together > 1:
        return "several domains are lost at once"
    if goal.clients_move:
        moving = sum(goal.moves_clients(problem, loss) for loss in goal.losses(problem))
        if moving + rules.replicas_max > MOST_HITS:
            return f"clients of more than {MOST_HITS - rules.replicas_max} lost sites move"
    if goal.goal == "weighted" and goal.leader_may_move:
        return "a leader that survives may move, and losses are weighted"
    if rules.replicas_max > MOST_REPLICAS:
        return f"there are more than {MOST_REPLICAS} replicas"
    if math.comb(rules.replicas_max, rules.voters) > _MOST_VOTER_SETS:
        return "there are too many sets of voters"
    if rules.budget is not None:
        return "there is a budget"
    return ReducedProblem.refuses(problem.demand, rules)


def solve(problem: Problem, options: Options) -> Plan:
    """Answer a question about losses with a proof; at a limit, the best so far with its bound."""
    reason = refuses(problem) or missing()
    if reason is not None:
        plan = _by_another(problem, options)
        note = f"the search over losses was not used: {reason}"
        return plan.replace(notes=(note, *plan.notes))
    search = LossSearch(problem, options)
    try:
        return search.answer()
    except KeyboardInterrupt:
        return search.plan(Termination.INTERRUPTED)
    except _Stopped as stopped:
        return search.plan(stopped.termination)


def _by_another(problem: Problem, options: Options) -> Plan:
    """Answer by the method that proves the question otherwise.

    Under a time limit, a share of it goes to the optimum of normal times first. The value of no
    plan is below its normal score, times the least share of that in a weighted mean: a bound here.
    """
    goal, usual = problem.objective, problem.replace(objective=MEAN_LATENCY)
    assert isinstance(goal, Contingency)
    takes = ReducedProblem.refuses(usual.demand, usual.rules) is None and not usual.limits
    if options.time_limit is None or not takes or problem.cost_parts:
        return method.solve(problem, options)
    began = time.perf_counter()
    share = _NORMAL_SHARE * options.time_limit
    normal = method.solve(usual, replace(options, time_limit=share, start=None, progress=None))
    bound = normal.bound
    if math.isfinite(bound):
        bound *= goal.normal_share(problem)
    if normal.termination is Termination.INTERRUPTED:
        found = normal.configuration
        best = found if found is not None and not violations(problem, found) else None
        return Plan.of(
            problem,
            best,
            method=method.METHOD.name,
            bound=bound if best is None else min(bound, objective_value(problem, best)),
            termination=Termination.INTERRUPTED,
        )
    left = max(options.time_limit - (time.perf_counter() - began), 0.0)
    plan = method.solve(problem, replace(options, time_limit=left))
    if normal.configuration is None or plan.bound >= bound:
        return plan
    return Plan.of(
        problem,
        plan.configuration,
        method=plan.method,
        bound=min(bound, plan.objective),
        termination=plan.termination,
        notes=(*plan.notes, "the bound is the optimum of normal times, or a bound on it"),
        stats=plan.stats,
    )


class _Stopped(Exception):  # noqa: N818 - no error
    """The time or the gap that was asked for is reached."""

    def __init__(self, termination: Termination) -> None:
        super().__init__(termination)
        self.termination = termination


class LossSearch:
    """The best configuration and bound of one question, and how they came about."""

    def __init__(self, problem: Problem, options: Options) -> None:
        assert isinstance(problem.objective, Contingency)
        self.problem, self.options, self.goal = problem, options, problem.objective
        self.began = time.perf_counter()
        self.core = ReducedProblem.of(problem)
        self.best: Configuration | None = None
        self.value = math.inf
        self.bound = -math.inf
        self.share = 1.0  # of the normal score in the value, at least
        self.certify = bool(options.settings.get("certificate"))
        self.claim: LossClaimRecord | None = None
        self.ties: Callable[[], Mapping[str, object]] | None = None
        self.notes: list[str] = []
        self.stats: dict[str, float | int | str] = {"nodes": 0, "bounds": 0, "leaves": 0}

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit."""
        limit = self.options.time_limit
        return 1e9 if limit is None else max(0.0, limit - (time.perf_counter() - self.began))

    def answer(self) -> Plan:
        """Run the stages."""
        normal = self._normal_plan()
        if normal.status is Status.INFEASIBLE:
            return Plan.of(
                self.problem,
                None,
                method=method.METHOD.name,
                bound=math.inf,
                reasons=normal.reasons,
                certificate=lambda: normal.certificate,  # type: ignore[arg-type, return-value]
            )
        ceiling = self.goal.ceiling(self.problem)
        stage = ThresholdStage(self, self.goal.goal, ceiling, self.share, certify=self.certify)
        if self.options.start is not None:
            stage.start_from(self.options.start)
        if normal.configuration is not None:
            if self.goal.goal == "bounded":
                stage.start_from_worst(normal.configuration)
            stage.start_from(normal.configuration)
        proven = stage.prove()
        self.bound = max(self.bound, proven)
        self.claim = stage.claim()
        if self.best is None:
            if proven < math.inf:
                raise AssertionError("a closed search without a configuration proves that none is")
            none = Plan.of(
                self.problem,
                None,
                method=method.METHOD.name,
                bound=math.inf,
                reasons=(
                    f"no plan has {self.goal.describe()} (proved by branch and bound over the "
                    "leaders, their successors and the replicas)",
                ),
                certificate=self._certificate(),
            )
            return self._named(none)
        if self.goal.goal == "worst":
            self._break_ties(normal)
        return self.plan(Termination.FINISHED)

    def _certificate(self) -> Callable[[], Mapping[str, object]] | None:
        """Return the function that writes the certificate; None: the proof was not recorded."""
        if self.claim is None:
            return None
        score = math.inf if self.best is None else objective_value(self.problem, self.best)
        return LossCertificate(self.best, score, self.claim, self.ties).to_json

    def plan(self, termination: Termination) -> Plan:
        """Return the present state of the search as a plan."""
        bound, certificate = self.bound, self._certificate()
        if self.best is not None:
            bound = min(bound, self.value)
        if self.claim is not None:
            bound = min(bound, self.claim.bound)
        plan = Plan.of(
            self.problem,
            self.best,
            method=method.METHOD.name,
            bound=bound,
            termination=termination,
            notes=self.notes,
            stats=self.stats,
            certificate=certificate,
        )
        return self._named(plan)

    def _named(self, plan: Plan) -> Plan:
        """Return a plan that says so where its proof has no certificate."""
        why = ": it would hold too many numbers" if self.certify else ""
        wanted = bool(self.options.settings.get("certificate"))
        return certified_or_named(plan, _PROVED, why, wanted=wanted)

    def offer(self, configuration: Configuration, value: float) -> None:
        """Keep a configuration of the search and report it."""
        self.best, self.value = configuration, value
        self.report()

    def report(self, bound: float = -math.inf) -> None:
        """Pass progress on, and stop at a limit."""
        known = max(self.bound, min(bound, self.value))
        self.bound = known if math.isfinite(known) else self.bound
        seconds = time.perf_counter() - self.began
        self.options.report(Progress(seconds, self.value, self.bound))
        if self.seconds_left <= 0:
            raise _Stopped(Termination.TIME_LIMIT)
        gap = self.options.gap_limit
        if gap > 0 and relative_gap(self.value, self.bound) <= gap:
            raise _Stopped(Termination.GAP_LIMIT)

    def _normal_plan(self) -> Plan:
        """Return the optimum of normal times under the rules that the losses bring."""
        rules, problem = self.problem.rules, self.problem
        relaxed = problem.replace(
            objective=MEAN_LATENCY,
            diversity=(*problem.diversity, *self.goal.diversity(rules.voters, rules.quorum)),
        )
        limit = self.options.time_limit
        plan = run(
            method.METHOD,
            relaxed,
            Options(
                time_limit=None if limit is None else _NORMAL_SHARE * limit,
                start=self.options.start,
                settings=self.options.settings,
            ),
        )
        if self.goal.goal == "weighted":
            self.share = max(0.0, 1 - sum(self.goal.probabilities(problem)))
        if math.isfinite(plan.bound):
            self.bound = max(0.0, self.share * plan.bound)
        if plan.termination is Termination.INTERRUPTED:
            found = plan.configuration
            if found is not None and not violations(problem, found):
                self.best, self.value = found, objective_value(problem, found)
            raise KeyboardInterrupt
        return plan

    def _break_ties(self, best: Plan) -> None:
        """Find the plan with the least normal score among the plans of the proven worst case."""
        assert self.best is not None
        first, bound = self.best, self.bound
        normal = objective_value(self.problem.replace(objective=MEAN_LATENCY), first)
        if normal <= best.bound * (1 + TIE):
            self.ties = None if best.certificate is None else lambda: best.certificate or {}
            return
        ceiling = self.value * (1 + TIE)
        stage = ThresholdStage(self, "bounded", ceiling, 1.0, ties=True, certify=self.certify)
        stage.start_from(first)
        try:
            stage.prove()
            tie = stage.claim()
            self.ties = None if tie is None else lambda: {"format": FORMAT, **tie.to_json()}
        except (_Stopped, KeyboardInterrupt):
            self.notes.append("whether another plan of this worst case is better normally is open")
            raise
        finally:
            self.bound = bound
            found = stage.kernel.best()[2]
            if found is not None and found != first:
                value = objective_value(self.problem, found)
                if value <= self.value * (1 + 4 * TIE):
                    self.best, self.value = found, min(value, self.value)
