"""Plan of one key: replica set, quorums, thresholds, proof.

Every search over sets descends by swaps of single replicas. The threshold is flat: thousands of
sets share it. So sets are compared by the excess over limits, then by the goal, then by the tie
rule, which gives a descent somewhere to go.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from placement.errors import InputError, SolverError
from placement.quorumstore.latency import SortedSets, loss_thresholds, metrics, worst_thresholds
from placement.quorumstore.problem import (
    Goal,
    Metrics,
    QuorumProblem,
    ThresholdLimits,
    second_key,
    structural_reasons,
)
from placement.quorumstore.refutation_tree import RefutationTree
from placement.support.checks import (
    LARGEST_WHOLE,
    FloatArray,
    IntArray,
    elements,
    instance_of,
    unique_names,
    whole,
)
from placement.support.status import (
    OPTIMALITY_TOLERANCE,
    Status,
    Termination,
    least_bound,
    relative_gap,
    status_of,
)


@dataclass(frozen=True, slots=True, order=True)
class QuorumConfiguration:
    """Replica sites (increasing indices) with their read and write quorum sizes."""

    replicas: tuple[int, ...]
    read: int
    write: int

    def __post_init__(self) -> None:
        quick = type(self.replicas) is tuple and type(self.read) is type(self.write) is int
        if quick and max(self.read, self.write) <= LARGEST_WHOLE:
            return
        sites = elements(self.replicas, "replicas", "site indices")
        object.__setattr__(self, "replicas", tuple(whole(site, "replicas") for site in sites))
        object.__setattr__(self, "read", whole(self.read, "read"))
        object.__setattr__(self, "write", whole(self.write, "write"))

    @property
    def size(self) -> int:
        """N."""
        return len(self.replicas)


@dataclass(frozen=True, slots=True)
class SiteLatency:
    """Requests of one site and their latency (ms) in normal operation."""

    site: str
    reads: int
    writes: int
    read_latency: float
    write_latency: float


@dataclass(frozen=True, slots=True)
class LossEffect:
    """Thresholds (ms) once some sites are down; no sites: normal operation."""

    lost: tuple[str, ...]
    read_threshold: float
    write_threshold: float

    @property
    def threshold(self) -> float:
        """max(T_r, T_w)."""
        return max(self.read_threshold, self.write_threshold)


@dataclass(frozen=True, eq=False)
class QuorumPlan:
    """The answer to a :class:`QuorumProblem`.

    Build one with :meth:`QuorumPlan.of`: every figure is then the evaluator's, and the status
    follows from value and bound.

    Attributes
    ----------
    problem
        The question.
    configuration
        None when nothing was found.
    value, bound
        Value of the goal and its proven lower bound; +∞ for both when infeasible.
    status, termination, method, seconds
        Proof state, reason of the end, method and wall time.
    reasons
        Why there is no configuration, with the numbers that make it so.
    notes
        Remarks for the reader about the origin of the plan.
    certificate
        Data that re-prove the bound; None without them.
    """

    problem: QuorumProblem
    configuration: QuorumConfiguration | None
    value: float
    bound: float
    status: Status
    termination: Termination
    method: str
    seconds: float = 0.0
    reasons: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    certificate: RefutationTree | None = None

    @classmethod
    def of(
        cls,
        problem: QuorumProblem,
        configuration: QuorumConfiguration | None,
        *,
        method: str,
        bound: float = -math.inf,
        termination: Termination = Termination.FINISHED,
        seconds: float = 0.0,
        reasons: Sequence[str] = (),
        notes: Sequence[str] = (),
        certificate: RefutationTree | None = None,
    ) -> QuorumPlan:
        """Return the plan of an evaluated `configuration`, with its status.

        Raises
        ------
        SolverError
            When the configuration breaks the rules or bounds of the problem, or has a value below
            `bound`: then the method that produced it is wrong.
        """
        value, figures, bound = math.inf, None, least_bound(bound)
        if configuration is not None:
            value, figures = _evaluated(problem, configuration)
            if not math.isfinite(value):
                raise SolverError(f"{method} returned {configuration}, which breaks the bounds")
            if bound > value + OPTIMALITY_TOLERANCE * abs(value):
                raise SolverError(f"{method} claims the bound {bound} above the value {value}")
        proof = (bound, status_of(configuration is not None, value, bound), termination)
        words = (tuple(reasons), tuple(notes))
        plan = cls(problem, configuration, value, *proof, method, seconds, *words, certificate)
        if figures is not None:
            plan.__dict__["_asked"] = figures  # they were just worked out
        return plan

    @property
    def certified(self) -> bool:
        """Return whether the plan carries the data to prove its bound again."""
        return self.certificate is not None

    @property
    def gap(self) -> float:
        """(value − bound)/value."""
        return relative_gap(self.value, self.bound)

    @property
    def replicas(self) -> tuple[str, ...]:
        """Names of the replica sites, in site order."""
        return tuple(self.problem.sites[site] for site in self._found.replicas)

    @property
    def read_quorum(self) -> int:
        """R."""
        return self._found.read

    @property
    def write_quorum(self) -> int:
        """W."""
        return self._found.write

    @cached_property
    def losses(self) -> tuple[LossEffect, ...]:
        """Normal operation first, then every loss, under the problem's redirection."""
        found = self._found
        sets = np.array([found.replicas], dtype=np.intp)
        reads, writes = loss_thresholds(self.problem, sets, found.read, found.write)
        names = [
            tuple(self.problem.sites[site] for site in lost) for lost in ((), *self.problem.losses)
        ]
        return tuple(
            LossEffect(lost, float(read), float(write))
            for lost, read, write in zip(names, reads[:, 0], writes[:, 0], strict=True)
        )

    @property
    def normal(self) -> LossEffect:
        """Thresholds in normal operation."""
        return self.losses[0]

    @property
    def worst(self) -> LossEffect:
        """The scenario with the largest max(T_r, T_w); the first one where several tie."""
        return max(self.losses, key=lambda effect: effect.threshold)

    def most_critical_replica(self, *, reads: bool = True) -> LossEffect:
        """Loss of one replica site that hurts reads (or writes) most; first of equals.

        Only losses that take a replica count, and only the side asked for: the maximum for a plot
        of reads is over read thresholds, not over max(T_r, T_w).
        """
        holding = set(self.replicas)
        hit = [effect for effect in self.losses[1:] if holding & set(effect.lost)]
        if not hit:
            raise InputError("no loss is considered", field="failures", value=0, expected=">= 1")
        if reads:
            return max(hit, key=lambda effect: effect.read_threshold)
        return max(hit, key=lambda effect: effect.write_threshold)

    @cached_property
    def per_site(self) -> tuple[SiteLatency, ...]:
        """Latency of every site that has requests, in normal operation."""
        found, problem = self._found, self.problem
        ordered = SortedSets.of(problem, np.array([found.replicas], dtype=np.intp))
        read, write = ordered.normal(found.read)[:, 0], ordered.normal(found.write)[:, 0]
        return tuple(
            SiteLatency(name, int(reads), int(writes), float(read[index]), float(write[index]))
            for index, (name, reads, writes) in enumerate(
                zip(problem.sites, problem.reads, problem.writes, strict=True)
            )
            if reads or writes
        )

    @property
    def mean_latency(self) -> float:
        """Mean over all reads and writes in normal operation, ms."""
        return float(self._asked.mean[0])

    @cached_property
    def figures(self) -> Metrics:
        """All figures of the configuration, the worst over all losses included; arrays of one."""
        problem, found = self.problem, self._found
        if problem.rules.contingency:
            return self._asked
        rows = np.array([found.replicas], dtype=np.intp)
        ordered = SortedSets.of(problem, rows)
        read, write = worst_thresholds(problem, rows, ordered, found.read, found.write)
        return self._asked._replace(worst_read=read, worst_write=write)

    @cached_property
    def _asked(self) -> Metrics:
        """The figures that the goal is about: no losses where the rules do not ask for them."""
        return _evaluated(self.problem, self._found)[1]

    @property
    def _found(self) -> QuorumConfiguration:
        if self.configuration is None:
            raise InputError(
                f"the plan is {self.status}: it has no configuration",
                field="plan",
                expected="a plan with a configuration",
            )
        return self.configuration


def evaluate(problem: QuorumProblem, replicas: Sequence[str], read: int, write: int) -> QuorumPlan:
    """Score a configuration that was chosen elsewhere.

    Its bound is unknown; the status is ``violating`` with the reasons where it breaks the rules
    of the problem, else ``feasible``.

    Raises
    ------
    InputError
        For unknown or repeated sites, or quorums outside 1..N.
    """
    instance_of(problem, QuorumProblem, "problem", "a QuorumProblem")
    replicas = unique_names(replicas, "replicas")
    read, write = whole(read, "read_quorum"), whole(write, "write_quorum")
    known = {name: index for index, name in enumerate(problem.sites)}
    for name in replicas:
        if name not in known:
            raise InputError(
                "unknown site", field="replicas", value=name, expected=f"one of {problem.sites}"
            )
    sites = tuple(sorted({known[name] for name in replicas}))
    if len(sites) != len(replicas) or not sites:
        raise InputError("replicas must be distinct sites", field="replicas", value=tuple(replicas))
    for field, quorum in (("read_quorum", read), ("write_quorum", write)):
        if not 1 <= quorum <= len(sites):
            raise InputError(
                "quorum out of range", field=field, value=quorum, expected=f"1..{len(sites)}"
            )
    configuration = QuorumConfiguration(sites, read, write)
    value, _ = _evaluated(problem, configuration)
    reasons = structural_reasons(problem, configuration.size, read, write)
    rows = np.array([sites], dtype=np.intp)
    if not problem.admissible(rows, max(read, write))[0]:
        reasons += ("the replicas break the regional rules",)
    if not math.isfinite(value):
        reasons += ("a threshold exceeds its bound, or no quorum survives some loss",)
    status = Status.VIOLATING if reasons else Status.FEASIBLE
    proof = (-math.inf, status, Termination.FINISHED)
    return QuorumPlan(problem, configuration, value, *proof, "evaluate", reasons=reasons)


def _evaluated(problem: QuorumProblem, found: QuorumConfiguration) -> tuple[float, Metrics]:
    """Value of the goal, and the figures it comes from."""
    rows = np.array([found.replicas], dtype=np.intp)
    figures = metrics(problem, rows, found.read, found.write)
    return float(problem.goal.values(figures, problem.rules.contingency)[0]), figures


# Swaps of single replicas, judged by the evaluator: the descent of every search over sets

_BATCH = 2_000
"""Sets times scenarios that are evaluated at once."""


def swap_neighbours(replicas: tuple[int, ...], sites: int) -> IntArray:
    """All sets that differ from `replicas` in one member; shape (N·(sites − N), N), rows sorted."""
    outside = [site for site in range(sites) if site not in replicas]
    places = range(len(replicas))
    rows = [
        sorted((*replicas[:place], site, *replicas[place + 1 :]))
        for place in places
        for site in outside
    ]
    return np.array(rows, dtype=np.intp).reshape(-1, len(replicas))


def spread_sets(size: int, sites: int) -> IntArray:
    """Sets that are spread out by index, one from each site on; shape (sites, N), rows sorted."""
    steps = np.arange(size) * (sites // size)
    return np.sort((np.arange(sites)[:, np.newaxis] + steps) % sites, axis=1)


@dataclass(slots=True)
class BestSet:
    """The best configuration seen, with its rank."""

    problem: QuorumProblem  #: the key. Its own goal is not used.
    #: `goal`, `caps`: what is minimised, and limits besides those of the goal
    goal: Goal
    caps: ThresholdLimits = dataclasses.field(default_factory=ThresholdLimits)
    deadline: float = math.inf  #: `time.perf_counter()` from which on offer raises `TimeoutError`
    #: `configuration`, `rank`: none before the first set; the first number of the rank is the
    #: excess over limits
    configuration: QuorumConfiguration | None = None
    rank: tuple[float, ...] = (math.inf,)

    @property
    def within(self) -> bool:
        """Return whether the best set keeps all limits."""
        return self.configuration is not None and self.rank[0] == 0

    def offer(self, sets: IntArray, read: int, write: int) -> tuple[float, ...] | None:
        """Remember the best of some sets, if it is better; return its rank.

        Sets that break a regional rule are ignored; None when all do.
        """
        problem, found = self.problem, None
        sets = sets[problem.admissible(sets, max(read, write))]
        step = _BATCH
        if problem.rules.contingency and problem.rules.failures > 1:
            step = max(16, _BATCH // (1 + problem.loss_count))
        for low in range(0, len(sets), step):
            if time.perf_counter() > self.deadline:
                raise TimeoutError
            rows = sets[low : low + step]
            keys = self._keys(metrics(problem, rows, read, write))
            first = int(np.lexsort(tuple(reversed(keys)))[0])
            rank = tuple(float(key[first]) for key in keys)
            found = rank if found is None else min(found, rank)
            if self.configuration is None or rank < self.rank:
                replicas = tuple(rows[first].tolist())
                self.configuration = QuorumConfiguration(replicas, read, write)
                self.rank = rank
        return found

    def descend(self) -> None:
        """Take the best single swap as long as one is better. A round evaluates N·(n − N) sets."""
        before = None
        while self.configuration is not None and self.configuration != before:
            before = self.configuration
            around = swap_neighbours(before.replicas, len(self.problem.sites))
            self.offer(around, before.read, before.write)

    def take(self, other: BestSet) -> None:
        """Remember the set of another search, if it is better."""
        if other.configuration is not None and other.rank < self.rank:
            self.configuration, self.rank = other.configuration, other.rank

    def _keys(self, figures: Metrics) -> list[FloatArray]:
        """Numbers to be minimised one after the other: excess, value, keys 2 to 5 of the rule."""
        contingency = self.problem.rules.contingency
        free = replace(self.goal, read_bound=math.inf, write_bound=math.inf)
        limits = self.goal.limits(math.inf, contingency).tightened(self.caps)
        keys = [limits.excess(figures), free.values(figures, contingency)]
        second = second_key(self.goal, figures, contingency)
        if second is not None:
            keys.append(second)
        normal = np.maximum(figures.normal_read, figures.normal_write)
        return [*keys, normal, figures.normal_read + figures.normal_write, figures.mean]
