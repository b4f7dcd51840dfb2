"""The search for the least percentile, with its proof, and for the least mean among its plans.

Of the percentile with nothing lost, or of the worst after any loss (:mod:`.late_losses`).

The p-th percentile of a plan is at most t when no more than a share 1 − p of all operations takes
longer, and under one leader that share is a sum over clients and a term of the voters
(:mod:`placement.tail.late_operations`). So "can t be reached under this leader?" is a question of
one threshold, which a tree with Lagrangean bounds answers
(:mod:`formulations.exact.threshold_search`).
When t is out of reach under a leader, so is every smaller one. The search keeps for every leader
the least bin that is not ruled out:

1. **Start**: the plan of least mean latency, which the engine proves in milliseconds.
2. **Deadlines** t between the bins that are not ruled out and the best plan. Leaders are asked in
   order of their static bound: every client at its best site up to the leader, the best voters. The
   first plan that keeps t, by the evaluator, is the new best, and swaps improve it
   (:mod:`.late_descent`). Once t is the last bin before the best plan, that is the proof. So this
   one is asked for first; when it takes long, then a bin half-way to what is ruled out in between.
3. **Ties**: among the plans of the least percentile the one of least mean latency, by a tree with
   two thresholds, one on late operations and one on the mean.

Sums that differ from the budget of late operations by rounding alone do not decide: a part of the
search is closed only when it is late by more than the slack, and a plan counts only when the
evaluator says so. Ours; spreads, percentiles and the model are in docs/tail.md.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from formulations.exact import tuning
from formulations.exact.late_voters import LateIntervals, VotersByInterval, voter_sets
from formulations.exact.method import METHOD
from formulations.exact.threshold_search import (
    Leaf,
    Scenario,
    SearchCounters,
    search_leader,
)
from formulations.tail.late_certificate import LateRecords, TreeRecord
from formulations.tail.late_descent import fewer_late
from formulations.tail.late_losses import LateLosses
from formulations.tail.leader_mean import LeaderMean
from formulations.tail.percentile_claims import MEAN_SLACK
from placement.contingency.objective import Contingency
from placement.evaluation.objective import MEAN_LATENCY, score_of
from placement.evaluation.score import TIE, closest_first
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Options, Progress
from placement.methods.registry import run
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.proof.late.late_claim import rounding_of_shares
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.status import Status, Termination, end_early
from placement.tail.objective import Percentile
from placement.tail.percentile_bound import SLACK

__all__ = ["PercentileProof"]


@dataclass(eq=False)
class PercentileProof:
    """State of one search: what is ruled out under each leader, and the best plan."""

    problem: Problem
    options: Options
    goal: Percentile = field(init=False)
    losses: LateLosses | None = field(init=False, default=None)
    plain: Problem = field(init=False)
    late: LateIntervals = field(init=False)
    orders: IntArray = field(init=False)
    rank: IntArray = field(init=False)
    started: float = field(default_factory=time.perf_counter)
    end: float = math.inf
    least: dict[int, int] = field(init=False)
    value: float = math.inf
    mean: float = math.inf
    best: Configuration | None = None
    infeasible: Plan | None = None
    tie_proven: bool = False
    deadlines: int = 0
    _descended: float = math.inf
    _until: float = math.inf
    counters: SearchCounters = field(default_factory=SearchCounters)
    records: LateRecords = field(default_factory=LateRecords)
    tie_records: LateRecords = field(default_factory=LateRecords)
    best_mean: Plan | None = None
    termination: Termination = Termination.FINISHED

    def __post_init__(self) -> None:
        objective, rules = self.problem.objective, self.problem.rules
        goal = objective.percentile if isinstance(objective, Contingency) else objective
        assert isinstance(goal, Percentile)
        self.goal = goal
        # of losses, the rules that every plan that survives them obeys
        more = objective.diversity(rules.voters, rules.quorum)
        self.plain = self.problem.replace(
            objective=MEAN_LATENCY, diversity=(*self.problem.diversity, *more)
        )
        self.late = LateIntervals.of(self.problem, self.goal)
        rtt = self.problem.demand.client_rtt  # where it varies, a row for each interval
        self.orders = closest_first(rtt.reshape(-1, rtt.shape[2])).astype(np.int32)
        self.rank = np.ascontiguousarray(np.argsort(self.orders, axis=1, kind="stable").T)
        if isinstance(objective, Contingency):
            self.losses = LateLosses(objective, self.late, self.rank, self.allowed, self._in_time)
        self.least = dict.fromkeys(np.nonzero(self.problem.rules.may_lead)[0].tolist(), 0)
        if self.options.time_limit is not None:
            self.end = self.started + self.options.time_limit
        if not self.options.settings.get("certificate"):
            self.records.fail()
            self.tie_records.fail()

    @property
    def rounding(self) -> float:
        """Share of late operations by which the tables of a checker may be off; grows with bins."""
        last = self.late.hops * (self.goal.distributions.bins - 1)
        return rounding_of_shares(last, len(self.orders))

    @property
    def slack(self) -> float:
        """Share of late operations within which rounding lies, a checker's included."""
        return max(SLACK, 2 * self.rounding)

    @property
    def late_slack(self) -> float:
        """Share by which the search asks for more late operations than a checker."""
        return self.slack - self.rounding

    @property
    def allowed(self) -> float:
        """Share of operations that may be late, rounding included."""
        return 1 - self.goal.percent / 100 + self.slack

    @property
    def bins(self) -> int:
        """Deadline that the best plan keeps; with none, the first that says nothing any more."""
        if math.isfinite(self.value):
            return round(self.value / self.goal.distributions.width)
        end = self.late.last
        return 1 + (end if self.losses is None else int(min(end, self.losses.ceiling)))

    @property
    def bound(self) -> float:
        """Proven lower bound in ms; infinite when no deadline at all can be kept."""
        least = min(self.least.values(), default=self.bins)
        if math.isinf(self.value) and least >= self.bins:
            return math.inf
        return min(least * self.goal.distributions.width, self.value)

    def run(self) -> None:
        """Search until proven, time is up, or Ctrl-C."""
        with end_early(self):
            self._start()
            if self.infeasible is None:
                self._bisect()
                if self.best is not None and self.termination is Termination.FINISHED:
                    self._least_mean()

    def _start(self) -> None:
        if self.options.start is not None:
            self.accept(self.options.start)
        left = None if math.isinf(self.end) else max(0.0, self.end - time.perf_counter())
        options = Options(
            time_limit=left,
            start=self.options.start,
            settings={"certificate": self.records.complete},
        )
        mean = run(METHOD, self.plain, options)
        if mean.status is Status.INFEASIBLE:
            self.infeasible = mean
            return
        if mean.configuration is not None and self.accept(mean.configuration):
            # No plan has a lower mean, whatever its percentile.
            self.tie_proven = mean.status is Status.OPTIMAL
            self.best_mean = mean if self.tie_proven else None
        if mean.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        self._in_time()

    # --- the percentile ------------------------------------------------------------------

    def _bisect(self) -> None:
        first: int | None = None
        # The first deadline half-way is cheap, and a bound for a user who stops the search.
        patience, cut_short = tuning.LATE_PATIENCE, True
        while (low := min(self.least.values(), default=self.bins)) < self.bins:
            self._report()
            if self.best is not None and 1 - self.bound / self.value <= self.options.gap_limit:
                self.termination = Termination.GAP_LIMIT
                return
            self._descend()
            # Half-way, but not beyond what a percentile can be told of when none is known yet.
            deadline, self._until = (low + self.bins) // 2, self.end
            if math.isinf(self.value):
                deadline = min(deadline, max(low, self.goal.distributions.bins - 1))
            elif not cut_short:
                wanted = math.ceil(self.bins * (1 - self.options.gap_limit)) - 1
                deadline = max(deadline, min(wanted, self.bins - 1))
                self._until = min(self.end, time.perf_counter() + patience)
            try:
                found, cut_short = self._keep(deadline, first), False
            except TimeoutError:
                if not self._until <= time.perf_counter() < self.end:
                    raise
                found, cut_short, patience = None, True, 2 * patience
            if found is not None:
                first = found.leader

    def _descend(self) -> None:
        """Swap sites of the best plan until no swap keeps an earlier deadline."""
        if self.losses is not None:
            return
        rules = self.problem.rules
        while self.best is not None and self._descended > self.value:
            self._descended, deadline = self.value, self.bins - 1
            leader, replicas = self.best.leader, list(self.best.replicas)
            if self.least[leader] > deadline:
                return
            self._in_time()
            voters = self.late.voters(leader, deadline)
            table = self.late.summands(np.array([leader]), deadline)[0]
            movable = rules.may_hold & ~rules.must_hold
            movable[leader] = False
            found = fewer_late(replicas, table[:-1], self.rank, voters, movable, self.allowed)
            kept = [] if found is None else self._kept(voters, table, found)
            chosen, _ = min(kept, key=lambda plan: plan[1], default=(None, 0.0))
            if chosen is not None:
                self.accept(chosen)

    def _keep(self, deadline: int, first: int | None) -> Configuration | None:
        """Return a plan that keeps a deadline; None when it is ruled out under every leader."""
        self.deadlines += 1
        waiting = [ell for ell, least in self.least.items() if least <= deadline]
        # Leaders whose direct operations and votes alone are late need no tables.
        voters, led = {}, {}
        for ell in waiting:
            self._in_time()
            voters[ell] = self.late.voters(ell, deadline)
            led[ell] = self._least_led(voters[ell])
        waiting.sort(key=lambda ell: (ell != first, led[ell]))
        size = tuning.LATE_LEADERS
        while waiting:
            block, waiting = waiting[:size], waiting[size:]
            size *= 2
            open_ones = []
            for ell in block:
                if led[ell] > self.allowed:
                    self.least[ell] = deadline + 1
                    self.records.close(ell, None)
                else:
                    open_ones.append(ell)
            if not open_ones:
                continue
            self._in_time()
            tables = self.late.summands(np.array(open_ones), deadline)
            static = {
                ell: self._static(ell, table) + led[ell]
                for ell, table in zip(open_ones, tables, strict=True)
            }
            found = None
            for i in np.argsort([static[ell] for ell in open_ones], kind="stable").tolist():
                ell = open_ones[i]
                if static[ell] <= self.allowed:
                    found = self._tree(voters[ell], tables[i])
                else:
                    self.records.close(ell, None)
                if found is not None:
                    return found
                self.least[ell] = deadline + 1
        return None

    def _least_led(self, voters: VotersByInterval) -> float:
        return voters.least(*self._root(voters.leader))

    def _root(self, leader: int) -> tuple[BoolArray, BoolArray, int]:
        rules = self.problem.rules
        inside = rules.must_hold.copy()
        inside[leader] = True
        return inside, rules.may_hold & ~inside, rules.replicas_max - int(inside.sum())

    def _usable(self, leader: int) -> BoolArray:
        """Return whether a site may serve a client: no further away than the leader."""
        may_hold = self.problem.rules.may_hold[:, np.newaxis]
        return np.asarray(may_hold & (self.rank <= self.rank[leader]))

    def _static(self, leader: int, table: FloatArray) -> float:
        """Return the least late operations with every client at its best site."""
        return float(np.where(self._usable(leader), table[:-1], math.inf).min(axis=0).sum())

    def _tree(self, voters: VotersByInterval, table: FloatArray) -> Configuration | None:
        scale = max(self.allowed, 1e-6)
        scenarios = [Scenario(table[:-1], 0.0, voters, self.allowed, scale)]
        if self.losses is not None:
            scenarios += self.losses.scenarios(voters, scenarios[0])

        def leaf(replicas: list[int]) -> Configuration | None:
            for chosen, late in self._kept(voters, table, replicas):
                if objective_value(self.problem, chosen) <= self._ms(voters.deadline):
                    self.accept(chosen)
                    return chosen
                self._note_undecided(late)
            return None

        return self._search_tree(voters, scenarios, leaf, self.records, self._until)

    def _search_tree(
        self,
        voters: VotersByInterval,
        scenarios: list[Scenario],
        leaf: Leaf,
        records: LateRecords,
        end: float,
    ) -> Configuration | None:
        """Search the tree of a leader, and keep its record."""
        return search_leader(
            self.problem.rules,
            self.orders,
            voters.leader,
            scenarios,
            leaf,
            steps=tuning.LATE_STEPS,
            end=end,
            counters=self.counters,
            record=records.left,
            keep=self._keeper(records, voters, scenarios),
        )

    def _keeper(
        self, records: LateRecords, voters: VotersByInterval, scenarios: list[Scenario]
    ) -> Callable[[FloatArray | None], None] | None:
        """Return the function that keeps the record of a tree; None: nothing is recorded."""
        if not records.complete:
            return None
        scales = tuple(scenario.scale for scenario in scenarios)
        numbers = (0, *(() if self.losses is None else self.losses.numbers))
        numbers = numbers if len(numbers) == len(scenarios) else (*numbers, 1)  # the mean

        def keep(events: FloatArray | None) -> None:
            if events is None:
                records.fail()
            else:
                records.close(voters.leader, TreeRecord(voters.deadline, events, scales, numbers))

        return keep

    def _note_undecided(self, late: float) -> None:
        """Note that rounding keeps a checker from a conclusion of the evaluator."""
        if late <= self.allowed - self.late_slack:
            self.records.fail()
            self.tie_records.fail()

    def _ms(self, bins: int) -> float:
        return (bins + 0.5) * self.goal.distributions.width

    def _kept(
        self, voters: VotersByInterval, table: FloatArray, replicas: list[int]
    ) -> Iterator[tuple[Configuration, float]]:
        """Yield the configurations of a set in which few enough operations are late, and how many.

        The number is a share of all operations.
        """
        near = np.array(replicas)[self.rank[replicas].argmin(axis=0)]
        nearby = float(table[near, np.arange(len(near))].sum())
        losses = None
        if self.losses is not None:
            losses = self.losses.of_set(voters.leader, replicas, voters.deadline)
        for chosen in voter_sets(self.problem, voters, replicas, lost=losses is not None):
            self._in_time()
            late = nearby + voters.of(chosen)
            if late > self.allowed:
                continue
            if losses is None or losses.keeps(chosen):
                yield Configuration.of(voters.leader, chosen, replicas), late

    # --- the mean ------------------------------------------------------------------------

    def _least_mean(self) -> None:
        """Lower the mean at the percentile that was found."""
        if self.tie_proven:
            return
        deadline = self.bins
        for leader, least in self.least.items():
            if least > deadline:
                continue
            self._in_time()
            voters = self.late.voters(leader, deadline)
            if self._least_led(voters) > self.allowed:
                continue
            mean = LeaderMean.of(self.problem, leader)
            bound = mean.bound(self._usable(leader), self._root(leader))
            if bound >= self.mean * (1 - MEAN_SLACK):
                continue
            table = self.late.summands(np.array([leader]), deadline)[0]
            if self._static(leader, table) + self._least_led(voters) > self.allowed:
                continue
            self._tie_tree(voters, table, mean)
        self.tie_proven = True

    def _tie_tree(self, voters: VotersByInterval, table: FloatArray, terms: LeaderMean) -> None:
        deadline = voters.deadline
        # Unscaled, the right weight of the late operations would lie at the edge of its range.
        late = Scenario(
            table[:-1], 0.0, voters, self.allowed, tuning.LATE_SCALE * max(self.allowed, 1e-6)
        )
        mean = terms.scenario(self.mean * (1 - MEAN_SLACK))
        scenarios = [late, mean]
        if self.losses is not None:
            scenarios[1:1] = self.losses.scenarios(voters, late)

        def leaf(replicas: list[int]) -> None:
            for chosen, share in self._kept(voters, table, replicas):
                if score_of(self.plain, chosen) >= mean.threshold:
                    continue
                if objective_value(self.problem, chosen) <= self._ms(deadline):
                    self.accept(chosen)
                    mean.threshold = min(mean.threshold, self.mean * (1 - MEAN_SLACK))
                else:
                    self._note_undecided(share)

        self._search_tree(voters, scenarios, leaf, self.tie_records, self.end)

    # --- around --------------------------------------------------------------------------

    def accept(self, configuration: Configuration) -> bool:
        """Keep a feasible configuration if the evaluator says that it is the best so far."""
        if violations(self.plain, configuration):
            return False
        value = objective_value(self.problem, configuration)
        mean = score_of(self.plain, configuration)
        better = value < self.value * (1 - TIE) or (
            value <= self.value * (1 + TIE) and mean < self.mean * (1 - TIE)
        )
        if not (better and math.isfinite(value)):
            return False
        self.tie_proven = False
        self.value, self.mean, self.best = value, mean, configuration
        return True

    def _report(self) -> None:
        seconds = time.perf_counter() - self.started
        self.options.report(Progress(seconds, self.value, self.bound))

    def _in_time(self) -> None:
        if time.perf_counter() > self.end:
            raise TimeoutError
