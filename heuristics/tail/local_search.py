"""Local search for a percentile of latency (``local-search``, percentile): ours.

A percentile is on a grid and flat almost everywhere, so that a descent on it alone stands still at
once. Instead the search sets a deadline just below the best percentile so far and minimises the
share of operations that miss it (:mod:`placement.tail.late_operations`), which every move changes:

1. **Start** from the plan of least mean latency (:mod:`heuristics.local_search.method`) and from
   the sets that QK (Algorithm 5) finds for every leader.
2. **Descend**: each leader's set takes the swap, drop or addition after which the fewest
   operations are late, the voters being the closest that the rules allow. Once no more than 1 − p
   are late, the evaluator says what the percentile is now, and the deadline falls below that.
3. **Restart**: when no set meets the deadline, the best few leaders get copies of their sets with
   three or eight random moves. After `patience` such rounds in vain the search ends.
4. **Polish**: voter sets that are not closest first, where that may be better, and then moves that
   keep the percentile and lower the mean, since percentiles tie often.

Leaders under which too many operations are late whatever the replicas are
(:mod:`placement.tail.percentile_bound`) are dropped on the way, and the same bound is the plan's.
Deterministic by seed unless a time limit cuts it short; Ctrl-C gives the best plan so far. Never
worse than the plan of least mean latency that it starts from.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from heuristics import qk, tuning
from heuristics.local_search.swap_neighbourhood import Pairs, SwapNeighbourhood
from heuristics.objective_terms import objective_terms
from placement.errors import LimitError, UnsupportedError
from placement.evaluation.objective import MEAN_LATENCY, score_of
from placement.evaluation.score import TIE
from placement.evaluation.voter_choice import best_voters
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Options, Progress
from placement.methods.registry import run
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.checks import FloatArray, IntArray
from placement.support.status import Status, Termination, end_early
from placement.tail.late_operations import LateOperations
from placement.tail.objective import Percentile
from placement.tail.percentile_bound import SLACK, least_late, percentile_bound
from placement.tail.role_choice import best_roles, describe_voter_search

__all__ = ["solve"]

_LESS = 1e-12  # of all operations: less is rounding


@dataclass
class _PercentileSearch:
    """State of one search: the best set of every leader, and the best plan."""

    problem: Problem
    options: Options
    patience: int
    goal: Percentile = field(init=False)
    plain: Problem = field(init=False)
    late: LateOperations = field(init=False)
    moves: SwapNeighbourhood = field(init=False)
    started: float = field(default_factory=time.perf_counter)
    value: float = math.inf
    mean: float = math.inf
    best: Configuration | None = None
    bound: float = 0.0
    sets: dict[int, IntArray] = field(default_factory=dict)
    dropped: set[int] = field(default_factory=set)
    infeasible: Plan | None = None
    enumerated: tuple[int, int] = (0, 0)
    steps: int = 0
    rounds: int = 0
    termination: Termination = Termination.FINISHED
    table: tuple[tuple[int, int], FloatArray] | None = None  # summands of (leader, deadline)

    def __post_init__(self) -> None:
        assert isinstance(self.problem.objective, Percentile)
        self.goal = self.problem.objective
        self.plain = self.problem.replace(objective=MEAN_LATENCY)
        self.late = LateOperations(self.problem, self.goal.distributions)
        terms = objective_terms(self.plain, everyone=True)
        nothing = np.zeros_like(terms.direct)
        self.moves = SwapNeighbourhood(
            self.plain, dataclasses.replace(terms, direct=nothing), self.plain.rules
        )

    @property
    def allowed(self) -> float:
        """Share of operations that may be late."""
        return 1 - self.goal.percent / 100 + _LESS

    @property
    def deadline(self) -> int:
        """Bins within which an operation must end for the plan to be better than the best."""
        if math.isinf(self.value):
            return self.goal.distributions.bins - 1
        return round(self.value / self.goal.distributions.width) - 1

    def run(self) -> None:
        """Search until nothing improves, time is up, or Ctrl-C."""
        with end_early(self):
            if self.options.start is not None:
                self.accept(self.options.start)
            self._start()
            if self.infeasible is None:
                self.bound = percentile_bound(self.late, self.goal.percent / 100)
                self._meet_deadlines()
                self._polish()

    # --- 1: starts -----------------------------------------------------------------------

    def _start(self) -> None:
        from heuristics.local_search.method import METHOD  # which imports this module in turn

        mean = run(METHOD, self.plain, Options(time_limit=self._share(), seed=self.options.seed))
        if mean.status is Status.INFEASIBLE:
            self.infeasible = mean
            return
        found = [] if mean.configuration is None else [mean.configuration]
        if mean.termination is Termination.INTERRUPTED:
            if found:
                self.accept(found[0])
            raise KeyboardInterrupt
        try:
            result = qk.search(self.plain, Options(time_limit=self._share()))
            found += result.found
        except LimitError:
            if not found:
                raise
            result = qk.QkResult()
        if self.best is not None:
            found.insert(0, self.best)
        for configuration in found:
            self.accept(configuration)
        if result.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        by_leader: dict[int, list[Configuration]] = {}
        for configuration in found:
            by_leader.setdefault(configuration.leader, []).append(configuration)
        width = self.problem.rules.replicas_max + 1
        for leader, candidates in by_leader.items():
            best = min(candidates, key=lambda c: self._late_of(c, max(0, self.deadline)))
            row = np.full(width, self.moves.terms.sites, dtype=np.intp)
            row[: len(best.replicas)] = best.replicas
            self.sets[leader] = row
        self._in_time()

    def _share(self) -> float | None:
        limit = self.options.time_limit
        if limit is None:
            return None
        return max(0.0, tuning.LATE_START_SHARE * (limit - (time.perf_counter() - self.started)))

    # --- 2 and 3: one deadline after the other ------------------------------------------------

    def _meet_deadlines(self) -> None:
        rng = np.random.default_rng(self.options.seed)
        idle = 0
        while self.deadline >= 0:
            tables = self._tables(self.deadline)
            self._report()
            if not tables:
                return
            order = sorted(tables, key=lambda ell: (self._now(ell, tables), ell))
            if any(self._descend(ell, self.sets[ell], tables[ell], keep=True) for ell in order):
                idle = 0
                continue
            if idle >= self.patience:
                return
            idle += 1
            best = sorted(tables, key=lambda ell: (self._now(ell, tables), ell))[
                : tuning.LATE_LEADERS
            ]
            if any(
                self._descend(ell, self._shaken(ell, rng), tables[ell], keep=False)
                for ell in np.repeat(best, tuning.LATE_COPIES).tolist()
            ):
                idle = 0
            self.rounds += 1

    def _tables(self, deadline: int) -> dict[int, FloatArray]:
        """Summands of the leaders that may still meet the deadline; drop all other leaders."""
        alive = np.array(sorted(set(self.sets) - self.dropped), dtype=np.intp)
        if not alive.size:
            return {}
        summands = self.late.summands(alive, deadline)
        least = least_late(self.late, alive, summands, deadline)
        self.dropped.update(alive[least > self.allowed + SLACK].tolist())
        return {
            int(ell): summands[i] for i, ell in enumerate(alive) if int(ell) not in self.dropped
        }

    def _now(self, leader: int, tables: dict[int, FloatArray]) -> float:
        """Share that is late with the set of a leader."""
        pair = Pairs(np.array([leader]), self.sets[leader][np.newaxis])
        now, _ = self.moves.moves(pair, self.moves.tabled(tables[leader][np.newaxis]))
        return float(now[0]) + self._led(leader, self._members(self.sets[leader]))

    def _led(self, leader: int, replicas: tuple[int, ...]) -> float:
        """Share that asks the leader and is late, with its closest voters; infinite without any."""
        voters = self._voters(leader, replicas)
        if voters is None:
            return math.inf
        return self.late.led_late(leader, voters, self.deadline, self.problem.rules.quorum)

    def _voters(self, leader: int, replicas: tuple[int, ...]) -> tuple[int, ...] | None:
        return best_voters(self.problem.demand, self.problem.rules, leader, replicas)

    def _members(self, row: IntArray) -> tuple[int, ...]:
        return tuple(sorted(row[row < self.moves.terms.sites].tolist()))

    def _descend(self, leader: int, row: IntArray, summands: FloatArray, *, keep: bool) -> bool:
        """Take the best moves until the deadline is met by a better plan, or none is left."""
        row = row.copy()
        pair = Pairs(np.array([leader]), row[np.newaxis])
        everyone = tuple(np.nonzero(self.problem.rules.may_vote)[0].tolist())
        quorum = self.problem.rules.quorum
        least = self.late.led_late(leader, everyone, self.deadline, quorum)
        insertions = self.moves.tabled(summands[np.newaxis])
        while True:
            self._in_time()
            now, table = self.moves.moves(pair, insertions)
            here = float(now[0]) + self._led(leader, self._members(pair.replicas[0]))
            if keep:
                self.sets[leader] = pair.replicas[0].copy()
            if here <= self.allowed and self._offer(leader, pair.replicas[0]):
                self.sets[leader] = pair.replicas[0].copy()
                return True
            move, lowest = None, here - _LESS
            base = table[0].reshape(-1)
            for flat in np.argsort(base, kind="stable").tolist():
                if base[flat] + least >= lowest:
                    break
                after = pair.replicas[0].copy()
                place, site = divmod(flat, table.shape[2])
                after[place] = site
                total = float(base[flat]) + self._led(leader, self._members(after))
                if total < lowest:
                    move, lowest = after, total
            if move is None:
                return False
            pair.replicas[0] = move
            self.steps += 1

    def _shaken(self, leader: int, rng: np.random.Generator) -> IntArray:
        """Copy of a leader's set after random moves that obey the rules for replicas."""
        pair = Pairs(np.array([leader]), self.sets[leader][np.newaxis].copy())
        for _ in range(tuning.LATE_SHAKES[self.rounds % len(tuning.LATE_SHAKES)]):
            allowed = np.nonzero(self.moves.allowed(pair)[0].reshape(-1))[0]
            if not allowed.size:
                break
            before = pair.replicas[0].copy()
            place, site = divmod(int(rng.choice(allowed)), self.moves.terms.sites + 1)
            pair.replicas[0, place] = site
            if self._voters(leader, self._members(pair.replicas[0])) is None:
                pair.replicas[0] = before
        return np.asarray(pair.replicas[0])

    def _offer(self, leader: int, row: IntArray) -> bool:
        replicas = self._members(row)
        voters = self._voters(leader, replicas)
        before = self.value
        if voters is not None:
            self.accept(Configuration.of(leader, voters, replicas))
        return self.value < before

    def accept(self, configuration: Configuration) -> bool:
        """Keep a feasible configuration if the evaluator says that it is the best so far."""
        if violations(self.plain, configuration):
            return False
        value, mean = (
            objective_value(self.problem, configuration),
            score_of(self.plain, configuration),
        )
        better = value < self.value * (1 - TIE) or (
            value <= self.value * (1 + TIE) and mean < self.mean * (1 - TIE)
        )
        if better and math.isfinite(value):
            self.value, self.mean, self.best = value, mean, configuration
        return better and math.isfinite(value)

    # --- 4: ties -------------------------------------------------------------------------------

    def _polish(self) -> None:
        """Better roles among the replicas, then a lower mean at the same percentile."""
        while self.best is not None:
            replicas = list(self.best.replicas)
            sets = math.comb(len(replicas), self.problem.rules.voters) * len(replicas)
            if sets <= tuning.LATE_ROLES:
                roles = best_roles(self.problem, replicas)
                self.enumerated = (roles.leaders, roles.enumerated)
                if roles.best is not None:
                    self.accept(roles.best)
            if not any(self.accept(move) for move in self._neighbours(self.best)):
                return

    def _neighbours(self, here: Configuration) -> Iterator[Configuration]:
        """Moves that may be better: all, or with exact late operations the moves of lower mean."""
        rules = self.problem.rules
        width = rules.replicas_max + 1
        row = np.full(width, self.moves.terms.sites, dtype=np.intp)
        row[: len(here.replicas)] = here.replicas
        for leader in here.replicas:
            if not rules.may_lead[leader]:
                continue
            pair = Pairs(np.array([leader]), row[np.newaxis])
            moves = np.argwhere(self.moves.allowed(pair)[0])
            for place, site in ((0, int(row[0])), *moves.tolist()):
                self._in_time()
                after = row.copy()
                after[place] = site
                replicas = self._members(after)
                voters = self._voters(leader, replicas)
                if voters is None:
                    continue
                other = Configuration.of(leader, voters, replicas)
                if not self.late.exact or (
                    score_of(self.plain, other) < self.mean * (1 - TIE)
                    and self._late_of(other, self.deadline + 1) <= self.allowed
                ):
                    yield other

    def _late_of(self, configuration: Configuration, deadline: int) -> float:
        """Share of operations of a configuration that are late."""
        near = self.moves.terms.rank[:, list(configuration.replicas)].argmin(axis=1)
        sites = np.array(configuration.replicas)[near]
        table = self._table(configuration.leader, deadline)
        return float(table[sites, np.arange(len(sites))].sum()) + self.late.led_late(
            configuration.leader, configuration.voters, deadline, self.problem.rules.quorum
        )

    def _table(self, leader: int, deadline: int) -> FloatArray:
        if self.table is None or self.table[0] != (leader, deadline):
            summands = self.late.summands(np.array([leader]), deadline)[0]
            self.table = ((leader, deadline), summands)
        return self.table[1]

    # --- around --------------------------------------------------------------------------------

    def _report(self) -> None:
        seconds = time.perf_counter() - self.started
        self.options.report(Progress(seconds, self.value, self.bound, self.rounds))

    def _in_time(self) -> None:
        limit = self.options.time_limit
        if limit is not None and time.perf_counter() - self.started > limit:
            raise TimeoutError


def solve(problem: Problem, options: Options) -> Plan:
    """Search, and return the best plan with the bound over all leaders."""
    assert isinstance(problem.objective, Percentile)
    if problem.objective.by_interval:
        raise UnsupportedError(
            "the local search does not support a percentile of RTTs that vary by interval; use "
            "'exact', or 'leader' or 'tier2' with given replicas"
        )
    search = _PercentileSearch(problem, options, int(str(options.settings["patience"])))
    search.run()
    if search.infeasible is not None:
        return Plan.infeasible(problem, method="local-search", reasons=search.infeasible.reasons)
    if search.best is None:
        return _nothing(problem, search)
    leaders, enumerated = search.enumerated
    notes = ["voters: closest first (Algorithm 2) in every move"]
    if leaders:
        notes[0] += "; for the replicas of the plan " + describe_voter_search(leaders, enumerated)
    return Plan.of(
        problem,
        search.best,
        method="local-search",
        bound=min(search.bound, search.value),
        termination=search.termination,
        notes=notes,
        stats={"rounds": search.rounds, "steps": search.steps},
    )


def _nothing(problem: Problem, search: _PercentileSearch) -> Plan:
    """Say that nothing was found, with the horizon as the likely reason where it is one."""
    finished = search.termination is Termination.FINISHED
    return Plan.of(
        problem,
        None,
        method="local-search",
        termination=Termination.WORK_LIMIT if finished else search.termination,
        notes=problem.objective.caveats(problem) if finished else (),
    )
