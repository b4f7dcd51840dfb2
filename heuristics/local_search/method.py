"""Swap search over leader and replicas together (method ``local-search``): ours, beyond the paper.

Every candidate leader has its own replica set, and all sets descend side by side:

1. **Start** from `best-of`: the sets that QK (Algorithm 5) finds for every leader and the one of
   KQ (Algorithm 4), beside sets grown greedily for every leader, with and without its closest
   quorum.
2. **Descend**: each set takes its best swap, or drop or addition where |R| may vary, until none
   helps. Moves are valued from nearest and second nearest replicas (Resende and Werneck 2003),
   all leaders and all moves in one pass of NumPy:
   :mod:`heuristics.local_search.swap_neighbourhood`.
3. **Restart**: the best few leaders get new sets, in turn grown at random
   (:func:`heuristics.local_search.swap_neighbourhood.grow_sets`) and shaken, that is, copied from
   their best set with three or eight random moves that obey the rules. New sets without feasible
   voters are dropped. The others descend; what is better replaces its leader's set. After
   `patience` such rounds that improve nothing the search ends. Under diversity rules for replicas
   or a budget, which growth does not know, all rounds shake.

Leaders whose lower bound reaches the best plan are dropped on the way, and the smallest bound is
the plan's: the gap shown is valid, and usually far larger than the real one.

One pass over all moves costs O(S·C·S) per leader's worth of sets. Deterministic by seed unless a
time limit cuts it short; Ctrl-C gives the best plan so far. Never worse than `best-of`, which it
starts from, unless it is stopped before that has ended.

**Lower bounds.** For leader ℓ and at most n replicas, with s_ℓ of
:mod:`heuristics.objective_terms`, two relaxations bound the part of Eq. 1 that R decides, and the
larger holds:

    Σ_c min { s_ℓ(c, r) : r ⪯_c ℓ }
    Σ_c s_ℓ(c, ℓ) − the n − 1 largest of { Σ_c max(0, s_ℓ(c, ℓ) − s_ℓ(c, r)) : r ≠ ℓ }, r ⪯_c ℓ

A client is served by ℓ or by something it prefers to ℓ, since ℓ ∈ R: hence the first. A set saves
no more than its members do one by one: hence the second (the Lagrangean bound of the p-median
problem at the multipliers s_ℓ(c, ℓ); Cornuéjols, Fisher and Nemhauser, Management Science 23(8),
1977). To it come Σ_c G[c]·d(c, ℓ), the wait for the m closest sites that may vote, and the price
of ℓ itself.

O(S·C·S) for all leaders.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from heuristics import tuning
from heuristics.completion import AdmissibleSites, infeasible_plan
from heuristics.local_search.steepest_descent import SteepestDescent
from heuristics.local_search.swap_neighbourhood import Pairs, SwapNeighbourhood, grow_sets
from heuristics.objective_terms import ObjectiveTerms, objective_terms
from heuristics.rules import kq, qk
from placement.errors import LimitError
from placement.evaluation.voter_choice import best_voters
from placement.methods.options import Options, Progress, Setting
from placement.methods.registry import Method
from placement.model.configuration import Configuration
from placement.plan import Plan, cheapest, objective_value, objective_values
from placement.problem import Problem
from placement.support.checks import FloatArray, IntArray
from placement.support.status import Termination, end_early


def leader_bounds(
    problem: Problem, terms: ObjectiveTerms, stop: Callable[[], bool] = lambda: False
) -> FloatArray:
    """Lower bound on the objective under each leader, infinite for sites that may not lead.

    Shape (sites,), ms·operations (plus cost_weight times the leader's price). Leaders that are left
    when `stop` is true keep the weaker bound of the quorum wait and the price alone.
    """
    rules = problem.rules
    bounds = np.full(terms.sites, math.inf)
    if np.count_nonzero(rules.may_vote) < rules.voters:
        return bounds  # no leader has a plan
    leaders = np.nonzero(rules.may_lead)[0]
    step = max(1, tuning.BOUNDS_BLOCK // max(1, terms.rank.size))
    bounds[leaders] = 0.0
    for first in range(0, len(leaders), step):
        if stop():
            break
        some = leaders[first : first + step]
        bounds[some] = _served(problem, terms, some)
    waits = np.sort(terms.site_rtt[:, leaders][:, :, rules.may_vote], axis=2)
    bounds[leaders] += (
        terms.direct[leaders]
        + terms.votes @ waits[:, :, rules.quorum - 1]
        + terms.money[leaders, leaders]
    )
    return bounds


def _served(problem: Problem, terms: ObjectiveTerms, leaders: IntArray) -> FloatArray:
    """The larger of the two relaxations for some leaders, shape of `leaders`."""
    rules = problem.rules
    summands = np.array([terms.summand(leader) for leader in leaders.tolist()])
    own = np.take_along_axis(summands, leaders[:, np.newaxis, np.newaxis], axis=2)
    before = terms.rank <= terms.rank[:, leaders].T[:, :, np.newaxis]
    saving = np.where(rules.may_hold & before, np.maximum(0.0, own - summands), 0.0)
    total = own.sum(axis=(1, 2))
    each = total - saving.max(axis=2, initial=0.0).sum(axis=1)
    # the leader itself saves nothing, so that it may stay among the sites
    savings = np.sort(saving.sum(axis=1), axis=1)[:, ::-1]
    most = savings[:, : rules.replicas_max - 1].sum(axis=1)
    return np.asarray(np.maximum(each, total - most))


@dataclass
class _SwapSearch:
    """State of one search: the best set of every leader, and the best plan."""

    problem: Problem
    options: Options
    patience: int
    started: float = field(default_factory=time.perf_counter)
    value: float = math.inf
    best: Configuration | None = None
    bounds: FloatArray = field(init=False)
    descent: SteepestDescent = field(init=False)
    values: FloatArray = field(init=False)
    sets: IntArray = field(init=False)
    rounds: int = 0
    prepared: bool = False
    termination: Termination = Termination.FINISHED

    def run(self) -> None:
        """Search until nothing improves, time is up, or Ctrl-C."""
        with end_early(self):
            if self.options.start is not None:
                self.accept(self.options.start)
            self._prepare()
            self._descend_from_starts()
            self._restart()

    def _prepare(self) -> None:
        terms = objective_terms(self.problem)
        self.bounds = leader_bounds(self.problem, terms, self._late)
        self.descent = SteepestDescent(
            SwapNeighbourhood(self.problem, terms, self.problem.rules), self._late
        )
        self.values = np.full(terms.sites, math.inf)
        width = self.problem.rules.replicas_max + 1
        self.sets = np.full((terms.sites, width), terms.sites, dtype=np.intp)
        self.prepared = True

    def _descend_from_starts(self) -> None:
        """Steps 1 and 2: from the sets of KQ, QK and greedy growth, the most promising first."""
        problem = self.problem
        found = [] if self.best is None else [self.best]
        by_kmeans = list[Configuration]()
        try:
            by_kmeans.extend(kq.of_each_size(problem))
        finally:
            if (one := cheapest(problem, by_kmeans)) is not None:
                self.accept(one)
                found.append(one)
        found.extend(self._by_quorum(found_before=bool(found)))
        if not found:
            return
        values = objective_values(problem, found)
        self.accept(found[int(np.argmin(values))])
        batches = [self._pairs([found[i] for i in np.argsort(values, kind="stable")])]
        if AdmissibleSites(problem, problem.rules.replicas_min).free_of_rules:
            batches.extend(self._greedy())
        pairs = Pairs.join(batches)
        step = self.descent.block
        for first in range(0, len(pairs), step):
            some = pairs.take(np.arange(first, min(first + step, len(pairs))))
            self._descend(some.take(self.bounds[some.leaders] < self.value))

    def _by_quorum(self, found_before: bool) -> list[Configuration]:
        """Return the proposals of QK for every leader, within the time left."""
        try:
            result = qk.search(self.problem, dataclasses.replace(self.options, progress=None))
        except LimitError:
            if not found_before:
                raise
            return []
        if result.termination is Termination.FINISHED:
            return result.found
        best = cheapest(self.problem, result.found)
        if best is not None:
            self.accept(best)
        if result.termination is Termination.INTERRUPTED:
            raise KeyboardInterrupt
        raise TimeoutError

    def _greedy(self) -> list[Pairs]:
        rules, moves = self.problem.rules, self.descent.neighbourhood
        leaders = np.nonzero(rules.may_lead & (self.bounds < self.value))[0]
        width = self.sets.shape[1]
        return [
            grow_sets(moves, leaders, rules.replicas_min, width, quorum=quorum, stop=self._late)
            for quorum in ((False, True) if rules.quorum > 1 else (False,))
        ]

    def _restart(self) -> None:
        """Step 3: new sets for the best leaders until they have brought nothing for a while."""
        rng = np.random.default_rng(self.options.seed)
        idle = 0
        while idle < self.patience:
            if self._late():
                raise TimeoutError
            alive = np.nonzero((self.values < math.inf) & (self.bounds < self.value))[0]
            alive = alive[np.argsort(self.values[alive], kind="stable")][: tuning.GROWN_LEADERS]
            if not alive.size:
                return
            pairs = self._fresh(np.repeat(alive, tuning.GROWN_COPIES), rng)
            self.rounds += 1
            idle = 0 if len(pairs) and self._descend(pairs) else idle + 1

    def _fresh(self, leaders: IntArray, rng: np.random.Generator) -> Pairs:
        """Draw new sets: grown at random and shaken in turn, shaken only under rules."""
        moves, rules = self.descent.neighbourhood, self.problem.rules
        sets = self.sets[leaders]
        pairs = Pairs(leaders, sets)
        if self.rounds % 2 == 0 and not rules.of("replicas") and rules.budget is None:
            size = (sets < len(self.bounds)).sum(axis=1)
            width = sets.shape[1]
            new = grow_sets(
                moves, leaders, size, width, quorum=False, among=tuning.GROWN_AMONG, rng=rng
            )
            complete = (new.replicas < len(self.bounds)).sum(axis=1) == size
            new = self._feasible(new.take(complete))
            if len(new):
                return new
        for _ in range(tuning.SHAKES[self.rounds // 2 % len(tuning.SHAKES)]):
            _shake(moves, pairs, rng)
        return self._feasible(pairs)

    def _feasible(self, pairs: Pairs) -> Pairs:
        """Return the pairs that have voters; only rules about voters can be broken here."""
        if AdmissibleSites(self.problem, self.problem.rules.replicas_max).free_of_rules:
            return pairs
        return pairs.take(np.isfinite(self.descent.exact_waits(pairs)))

    def _descend(self, pairs: Pairs) -> bool:
        """Bring pairs down and keep what is better than before; whether any leader gained."""
        try:
            values = self.descent.run(pairs)
        except KeyboardInterrupt:
            self._repair(pairs)
            raise
        gained = False
        for row in np.argsort(values, kind="stable").tolist():
            leader, value = int(pairs.leaders[row]), float(values[row])
            if value < self.values[leader] - 1e-11 * abs(value):
                gained |= value < self.value
                self.values[leader], self.sets[leader] = value, pairs.replicas[row]
                if value < self.value:
                    self._offer(leader, pairs.replicas[row])
        seconds = time.perf_counter() - self.started
        self.options.report(Progress(seconds, self.value, float(self.bounds.min()), self.rounds))
        if self._late():
            raise TimeoutError
        return gained

    def _repair(self, pairs: Pairs) -> None:
        """Value every set of a descent that was broken off: each step leaves feasible sets."""
        for leader, sites in zip(pairs.leaders.tolist(), pairs.replicas, strict=True):
            self._offer(leader, sites)

    def _offer(self, leader: int, sites: IntArray) -> None:
        replicas = sites[sites < len(self.bounds)].tolist()
        voters = best_voters(self.problem.demand, self.problem.rules, leader, replicas)
        if voters is not None:
            self.accept(Configuration.of(leader, voters, replicas))

    def accept(self, configuration: Configuration) -> None:
        """Keep a feasible configuration if the evaluator says that it is the best so far."""
        value = objective_value(self.problem, configuration)
        if value < self.value:
            self.value, self.best = value, configuration

    def _pairs(self, configurations: list[Configuration]) -> Pairs:
        width = self.sets.shape[1]
        replicas = np.full((len(configurations), width), len(self.bounds), dtype=np.intp)
        for row, configuration in enumerate(configurations):
            replicas[row, : len(configuration.replicas)] = configuration.replicas
        return Pairs(np.array([c.leader for c in configurations], dtype=np.intp), replicas)

    def _late(self) -> bool:
        limit = self.options.time_limit
        return limit is not None and time.perf_counter() - self.started > limit


def _shake(neighbourhood: SwapNeighbourhood, pairs: Pairs, rng: np.random.Generator) -> None:
    """Make one random move in every pair, drawn evenly from those that obey the rules."""
    allowed = neighbourhood.allowed(pairs)
    flat = allowed.reshape(len(pairs), -1)
    # each row's largest of independent uniform draws is an even draw among its allowed moves
    move = np.where(flat, rng.random(flat.shape), -1.0).argmax(axis=1)
    rows = np.nonzero(flat.any(axis=1))[0]
    place, site = np.divmod(move[rows], allowed.shape[2])
    pairs.replicas[rows, place] = site


def _refuses(problem: Problem) -> str | None:
    """Return why a budget on near reads is not kept: a swap uses the prices of sites alone."""
    if problem.budget is None or not problem.cost_parts:
        return None
    return "reads from the nearest replica count in the budget; use 'exact', 'milp' or 'exhaustive'"


def solve(problem: Problem, options: Options) -> Plan:
    """Search, and return the best plan with the bound over all leaders."""
    search = _SwapSearch(problem, options, int(str(options.settings["patience"])))
    search.run()
    if search.best is None and search.termination is Termination.FINISHED:
        return infeasible_plan(problem, METHOD.name)
    known = search.prepared and search.best is not None
    bound = float(search.bounds.min()) if known else -math.inf
    return Plan.of(
        problem,
        search.best,
        method=METHOD.name,
        bound=min(bound, search.value),
        termination=search.termination,
        stats={"rounds": search.rounds, "steps": search.descent.steps if search.prepared else 0},
    )


METHOD = Method(
    name="local-search",
    call=solve,
    summary="swap search over leader and replicas from 'best-of', with seeded restarts",
    objectives=("mean", "measures"),
    cost_parts=("near reads",),
    refuses=_refuses,
    settings={
        "patience": Setting(3, "rounds of restarts without improvement before it stops", minimum=0)
    },
    complexity="O(S·C·S) for each step of all leaders",
    reference="Resende and Werneck 2003, generalised to leader, quorum and relays",
)
