"""The method ``sets``: enumeration of sets of replicas that all vote, for operations with waits.

A radius formulation is weak here: its linear relaxation averages the k nearest chosen sites where
an operation waits for the k-th. So the sets themselves are enumerated, depth first, each once, in
C. Under each possible leader, or once where no operation needs one, a bound on all sets that begin
alike is

    constant + leader's waits + Σ_c clients' waits + Σ_c least near costs of c

where every wait is asked of the chosen sites and of the best of those that may still come
(csrc/sets.c). It is lowered by more than its rounding, and only what is beyond a tie is dropped.
The beginnings of one site more than the given ones are searched best bound first, so that the least
of their bounds is proven at any time.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
import time
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from formulations.enumeration.enumerate_sets import count_sets
from placement.evaluation.objective import score_of
from placement.evaluation.score import TIE, closest_first, cutoff
from placement.evaluation.voter_choice import by_answer_time
from placement.feasibility.feasible_plans import find_feasible
from placement.methods.options import Options, Progress
from placement.methods.registry import Method, load_method, run
from placement.model.configuration import Configuration
from placement.model.constraints import majority
from placement.model.operations import Clause
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray, IntArray
from placement.support.status import Termination, relative_gap

if TYPE_CHECKING:
    from formulations.waits._kernel import _Sets

MOST_MEMBERS = 12
"""Most replicas of a set; as in csrc/sets.c."""

_MOST_CLAUSES = 8
_MOST_DOMAINS = 256
_ORIGINS = {"leader": 0, "near": 1, "client": 2}
_SCOPES = {"": 0, "inside": 1, "outside": 2}
_NO_CAP = 2**31 - 1


def compiled_available() -> bool:
    """Return whether the compiled kernel was built and can be imported."""
    try:
        import formulations.waits._kernel  # noqa: F401 - only whether it imports matters
    except ImportError:
        return False
    return True


def _kernel() -> ModuleType:
    """Return the compiled enumeration, which is imported when it is first used."""
    from formulations.waits import _kernel as compiled

    return compiled


def why_not(problem: Problem) -> str | None:
    """Return why the enumeration of sets does not support a question, or None."""
    rules, demand = problem.rules, problem.demand
    if rules.budget is not None or rules.cost_weight:
        return "it does not support money; use 'exact' or 'milp'"
    if demand.scenarios > 1:
        return "it knows one table of RTTs, and these vary by interval; use 'exhaustive'"
    if not rules.replicas_min == rules.replicas_max == rules.voters:
        return "it takes sets of which every replica votes; use 'exact' or 'exhaustive'"
    if rules.replicas_max > MOST_MEMBERS:
        return (
            f"it takes at most {MOST_MEMBERS} replicas, and {rules.replicas_max} are asked for; "
            "ask for fewer, or use 'exact' without waits"
        )
    if any(len(term.clauses) > _MOST_CLAUSES for term in demand.waits):
        return f"it takes at most {_MOST_CLAUSES} clauses in a wait"
    labels = [group.labels for group in rules.groups]
    labels += [one for term in demand.waits for one in term.labels if one is not None]
    if any(int(one.max()) >= _MOST_DOMAINS for one in labels):
        return f"it takes at most {_MOST_DOMAINS} domains in a level; use 'exhaustive'"
    return None


def _need(clause: Clause, size: int, quorum: int) -> int:
    """Return the answers of a clause for the kernel: 0 for all, -1 for a majority inside."""
    if isinstance(clause.need, int):
        return min(clause.need, size + 1)
    if clause.need == "majority":
        return -1 if clause.scope == "inside" else majority(size)
    return quorum if clause.need == "quorum" else 0


class _WaitRows:
    """Waits and rules as rows of whole numbers, with the labels that they name."""

    def __init__(self, problem: Problem, order: IntArray, active: IntArray) -> None:
        demand, rules = problem.demand, problem.rules
        self.order = order
        self.labels: list[IntArray] = [np.zeros(len(order), dtype=np.intp)]
        self.weights: list[FloatArray] = []
        self.terms: list[list[int]] = []
        waits = [(t.origin, t.clauses, t.labels, t.weight[0][active]) for t in demand.waits]
        if demand.quorum[0] > 0:  # the rounds of votes of the four coefficients
            rounds = np.full(len(active), float(demand.quorum[0]) / len(active))
            waits.insert(0, ("leader", (Clause("quorum"),), (None,), rounds))
        for origin, clauses, of, weight in waits:
            if not weight.any():
                continue
            row = [_ORIGINS[origin], len(clauses)]
            for clause, labels in zip(clauses, of, strict=True):
                need = _need(clause, rules.voters, rules.quorum)
                row += [need, _SCOPES[clause.scope], self._label(labels)]
            self.terms.append(row + [0] * (2 + 3 * _MOST_CLAUSES - len(row)))
            self.weights.append(weight)
        self.rules = [
            [
                _NO_CAP if group.cap is None else group.cap,
                group.min_domains or 0,
                max(group.domain, 0),
                group.least,
                self._label(group.labels),
            ]
            for group in rules.groups
        ]

    def _label(self, labels: IntArray | None) -> int:
        """Return the row of some labels; row 0 puts all sites in one domain."""
        if labels is None:
            return 0
        self.labels.append(labels[self.order])
        return len(self.labels) - 1


class _OpenSets(NamedTuple):
    """Sets that begin alike, under one leader: a position, or -1."""

    bound: float
    turn: int
    leader: int
    constant: float
    prefix: tuple[int, ...]
    first: int


class _Search:
    """The parts that are open, best bound first, and the best configuration so far."""

    def __init__(self, problem: Problem, options: Options) -> None:
        self.problem, self.options = problem, options
        self.started = time.perf_counter()
        self.value = math.inf
        self.best: Configuration | None = None
        self.parts: list[_OpenSets] = []
        self.turn = itertools.count()
        self.bounded = False
        if options.start is not None:
            self.best, self.value = options.start, score_of(problem, options.start)
        demand, rules = problem.demand, problem.rules
        self.size = rules.voters
        active = np.nonzero(demand.counts[0].any(axis=1))[0]
        client_rtt, site_rtt = demand.client_rtt[0][active], demand.site_rtt[0]
        sites = np.nonzero(rules.may_hold & rules.may_vote)[0]
        mass = demand.counts[0][active].sum(axis=1)
        self.order: IntArray = sites[closest_first(mass @ client_rtt[:, sites])]
        self.by_site = np.ascontiguousarray(client_rtt[:, self.order].T)
        must = rules.must_hold | rules.must_vote
        self.forced = tuple(np.nonzero(must[self.order])[0].tolist())
        self.possible = self.size <= len(sites) and len(self.forced) == must.sum()
        self.kernel: _Sets | None = self._tables(active, site_rtt) if self.possible else None

    def _tables(self, active: IntArray, site_rtt: FloatArray) -> _Sets:
        demand, order = self.problem.demand, self.order
        rows = _WaitRows(self.problem, order, active)
        between = np.ascontiguousarray(site_rtt[np.ix_(order, order)])
        labels = np.array(rows.labels, dtype=np.int32)
        kernel: _Sets = _kernel().create(
            (len(order), len(active), self.size, len(rows.terms), len(rows.rules), len(labels)),
            order.astype(np.int32),
            self.by_site,
            between,
            closest_first(between).astype(np.int32),
            np.ascontiguousarray(demand.near[0][active]),
            np.ascontiguousarray(demand.relay[0][active]),
            np.array(rows.weights, dtype=np.float64).reshape(-1),
            labels,
            np.array(rows.terms, dtype=np.int32).reshape(-1),
            np.array(rows.rules, dtype=np.int32).reshape(-1),
        )
        return kernel

    @property
    def bound(self) -> float:
        """Return the least value that any configuration can have."""
        if not self.bounded:
            return -math.inf
        return min(self.value, self.parts[0].bound) if self.parts else self.value

    def open(self) -> None:
        """Bound the beginnings with one site more than the given ones, under every leader."""
        demand = self.problem.demand
        active = np.nonzero(demand.counts[0].any(axis=1))[0]
        direct = self.by_site @ demand.direct[0][active] + demand.constant
        leaders = np.nonzero(self.problem.rules.may_lead[self.order])[0].tolist()
        for leader in [-1] if demand.leaderless else leaders:
            constant = demand.constant if leader < 0 else float(direct[leader])
            led = () if leader < 0 else (leader,)
            given = tuple(dict.fromkeys((*self.forced, *led)))
            if len(given) > self.size:
                continue
            if len(given) == self.size:
                self._add(leader, constant, given, 0)
                continue
            for site in range(len(self.order)):
                if site not in given:
                    self._add(leader, constant, (*given, site), site + 1)
        self.bounded = True

    def _add(self, leader: int, constant: float, prefix: tuple[int, ...], first: int) -> None:
        sites = np.array(prefix, dtype=np.int32)
        bound = _kernel().bound(self.kernel, leader, constant, sites, first)
        if bound <= cutoff(self.value) and not math.isinf(bound):
            part = _OpenSets(bound, next(self.turn), leader, constant, prefix, first)
            heapq.heappush(self.parts, part)

    def go_on(self) -> Termination:
        """Search the parts until none is open, or a limit is met."""
        limit = self.options.time_limit
        end = math.inf if limit is None else self.started + limit
        while self.parts and self.parts[0].bound <= cutoff(self.value):
            if relative_gap(self.value, self.bound) <= self.options.gap_limit > 0:
                return Termination.GAP_LIMIT
            left = end - time.perf_counter()
            if left <= 0:
                return Termination.TIME_LIMIT
            part = self.parts[0]
            sites = np.array(part.prefix, dtype=np.int32)
            where = (part.leader, part.constant, sites, part.first)
            try:
                done = _kernel().run(self.kernel, *where, self.value, min(left, 1e9))
            finally:
                self._take()
            if not done:
                return Termination.TIME_LIMIT
            heapq.heappop(self.parts)
            seconds = time.perf_counter() - self.started
            self.options.report(Progress(seconds, self.value, self.bound))
        self.parts.clear()
        return Termination.FINISHED

    def _take(self) -> None:
        """Take the best of the kernel where it is better, or ties and comes first."""
        value, leader, chosen = _kernel().best(self.kernel)[:3]
        if leader < 0:
            return
        sites = np.frombuffer(chosen, dtype=np.int32).tolist()
        if self.best is None or value < self.value * (1 - TIE) or (
            value <= cutoff(self.value)
            and (leader, tuple(sites)) < (self.best.leader, self.best.replicas)
        ):  # fmt: skip
            self.best = Configuration.of(leader, sites, sites)
        self.value = min(self.value, value)


def solve(problem: Problem, options: Options) -> Plan:
    """Enumerate all sets; at a limit or after Ctrl-C, the best so far with its proven bound."""
    if not compiled_available():
        settings: dict[str, object] = {"limit": 2**62}
        plan = run(
            load_method("exhaustive"), problem, dataclasses.replace(options, settings=settings)
        )
        return plan.replace(method=METHOD.name)
    search = _Search(problem, options)
    termination = Termination.FINISHED
    nodes = leaves = 0
    if search.kernel is not None:
        try:
            search.open()
            termination = search.go_on()
        except KeyboardInterrupt:
            termination = Termination.INTERRUPTED
        nodes, leaves = _kernel().best(search.kernel)[3:]
    best, sets = search.best, count_sets(problem)
    if termination is not Termination.FINISHED and best is None:
        best = find_feasible(problem)
        if best is not None and math.isinf(score_of(problem, best)):
            best = None
    if termination is Termination.FINISHED and best is None:
        reason = (
            f"none of the {sets:,} replica sets has a plan that obeys all rules and meets all waits"
        )
        return Plan.infeasible(problem, method=METHOD.name, reasons=(reason,))
    if best is not None and not problem.demand.leaderless:
        voters = by_answer_time(problem.demand, best.leader, best.voters)
        best = dataclasses.replace(best, voters=voters)
    return Plan.of(
        problem,
        best,
        method=METHOD.name,
        bound=search.bound,
        termination=termination,
        stats={"nodes": nodes, "leaves": leaves, "sets": sets},
    )


METHOD = Method(
    name="sets",
    call=solve,
    summary="enumeration of replica sets in C, for waits of nearest replica and client",
    exact=True,
    refuses=why_not,
    objectives=("mean", "waits"),
    complexity="exponential at worst; O(|C|·|S|) for each bound, O(|C|) for each set",
    reference="this package",
)
