"""The compiled kernel of the engine (``csrc``): bounds of leaders, their trees, the incumbent.

A kernel holds one problem, the incumbent, and the open parts of the trees of all leaders. It
computes the bounds of :mod:`formulations.exact.certificate_events` and records their events.

A multiplier is about what its client costs. When the leader changes, the relay from the client's
replica does: the multipliers of a *reference* leader k, with the site s(c) that serves each client
under it, make multipliers of every leader ℓ, u_c + B_c (d(s(c), ℓ) − d(s(c), k)).
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from formulations.exact.reduced_problem import ReducedProblem
from placement.errors import InputError
from placement.model.site_families import SiteFamily
from placement.support.checks import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from placement.evaluation.waits.wait_cases import SingleWaits


@dataclass(frozen=True, eq=False)
class ReferenceLeader:
    """Multipliers of a leader that others share, and the site that serves each active client.

    `u` is in ms times operations; both arrays have the shape (active clients,).
    """

    leader: int
    u: FloatArray
    serving: npt.NDArray[np.int32]

    @classmethod
    def of(cls, core: ReducedProblem, leader: int, u: FloatArray) -> ReferenceLeader:
        """Return those of a leader; the kernel finds the sites, and until then it serves all."""
        return cls(leader, u.copy(), np.full(len(core.active), leader, dtype=np.int32))

    def to_json(self) -> list[object]:
        """Return leader, multipliers and sites as JSON-like data."""
        return [self.leader, self.u.tolist(), self.serving.tolist()]

    def under(self, core: ReducedProblem, leader: int) -> FloatArray:
        """Return the multipliers of another leader, shape (active clients,).

        None is below 0, where it bounds no more than 0 does, or above the cost at the leader.
        """
        serving = self.serving.astype(np.intp)
        moved = core.relays(serving, leader) - core.relays(serving, self.leader)
        u = np.maximum(self.u + core.relay[core.active] * moved, 0.0)
        return np.minimum(u, (core.near * core.client_rtt[:, leader])[core.active])


class Multipliers(Mapping[int, FloatArray]):
    """Multipliers by leader: own ones, and shared ones that are worked out when they are read."""

    def __init__(self, core: ReducedProblem, given: Mapping[int, FloatArray] | None = None) -> None:
        self.core = core
        self.own: dict[int, FloatArray] = {}
        self.shared: dict[int, ReferenceLeader] = {}
        if isinstance(given, Multipliers):
            self.own, self.shared = dict(given.own), dict(given.shared)
        elif given is not None:
            self.own = dict(given)

    def __getitem__(self, leader: int) -> FloatArray:
        """Return the multipliers of a leader."""
        if leader in self.shared:
            return self.shared[leader].under(self.core, leader)
        return self.own[leader]

    def __setitem__(self, leader: int, u: FloatArray) -> None:
        """Give a leader multipliers of its own."""
        self.own[leader] = u
        self.shared.pop(leader, None)

    def give(self, leaders: Sequence[int], u: Sequence[FloatArray] | FloatArray) -> None:
        """Give some leaders multipliers of their own, a row for each."""
        for leader, row in zip(leaders, u, strict=True):
            self[leader] = row

    def share(self, leader: int, reference: ReferenceLeader) -> None:
        """Give a leader the multipliers of another one."""
        self.shared[leader] = reference

    def __iter__(self) -> Iterator[int]:
        """Yield the leaders."""
        yield from self.own
        yield from self.shared.keys() - self.own.keys()

    def __len__(self) -> int:
        """Return the number of leaders."""
        return len(self.own.keys() | self.shared.keys())


FamilyArrays = tuple[int, int, npt.NDArray[np.int32]]
"""Number of blocks, least number of distinct ones, and the numbers by site and by block."""


@lru_cache(maxsize=16)
def family_arrays(families: tuple[SiteFamily, ...]) -> tuple[FamilyArrays, ...]:
    """Return families of rules as the compiled kernels take them (``python/read_families.h``)."""
    return tuple(
        (
            len(one.parent),
            one.distinct,
            np.array(
                [*one.innermost, *one.parent, *one.least, *one.most, *one.spread], dtype=np.int32
            ),
        )
        for one in families
    )


@dataclass(frozen=True, slots=True)
class Incumbent:
    """A leader (−1: any) with replicas, and what the kernel computed as its score."""

    score: float
    leader: int
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Counters:
    """The work of a kernel so far: nodes and leaves of its trees, evaluations of the bound.

    A bound that reaches `cutoff` closes; +∞ without an incumbent. `work` is the effort of all that,
    in a unit of about a nanosecond: the same on every run.
    """

    nodes: int
    leaves: int
    evaluations: int
    cutoff: float
    work: float = 0.0

    def plus(self, other: Counters) -> Counters:
        """Return the sums of two counters; the cutoff is this one's."""
        return Counters(
            self.nodes + other.nodes,
            self.leaves + other.leaves,
            self.evaluations + other.evaluations,
            self.cutoff,
            self.work + other.work,
        )


@dataclass(frozen=True, eq=False)
class QuickBounds:
    """Leaders with multipliers, and the bound of each at these: one evaluation.

    `leaders` are site indices, shape (n,), int32, none −1. `u` >= 0, shape (n, active clients), is
    cut to what the leader itself would cost; `bounds`, NaN before, shape (n,), are replaced.
    """

    leaders: npt.NDArray[np.int32]
    u: FloatArray
    bounds: FloatArray


@dataclass(frozen=True, eq=False)
class RootBounds:
    """The bounds of some leaders at their roots, without branching.

    `leaders` are site indices, or −1 alone, shape (n,), int32. `u`, shape (n, active clients), is
    read where `warm`, and replaced by the best found. `steps` and `swaps` are as in
    :meth:`Kernel.bound_root`; all but the first `full` leaders only adapt the incumbent. Replaced
    are `bounds`, NaN before, and `ends`, the length of the record after each leader.
    """

    leaders: npt.NDArray[np.int32]
    u: FloatArray
    warm: BoolArray
    steps: int
    swaps: int
    full: int
    bounds: FloatArray
    ends: npt.NDArray[np.int64]


CaseArrays = tuple[int, bool, tuple[tuple[object, ...], ...]]


def _bits(flags: BoolArray) -> int:
    """Return flags as the bits of a number, the first one lowest."""
    return sum(1 << place for place, flag in enumerate(flags.tolist()) if flag)


def case_arrays(cases: SingleWaits, leaders: IntArray) -> CaseArrays:
    """Return the cases of each wait of some leaders, as `read_cases` of csrc takes them."""
    waits = tuple(
        (
            one.rounds,
            len(one.near),
            len(one.least),
            _bits(one.of_voters),
            _bits(one.near),
            len(one.radius),
            np.ascontiguousarray(one.start, dtype=np.int32),
            np.ascontiguousarray(one.radius),
            np.ascontiguousarray(one.scope),
            np.ascontiguousarray(one.least, dtype=np.int32),
        )
        for one in (wait.of_sites(leaders) for wait in cases.waits)
    )
    return cases.shorter, cases.nested, waits


TOLERANCE = 5e-10
"""A node is closed when its bound is within this, relatively, of the incumbent: half of what a plan
may still call optimal."""

_BIG = 1e299


class Kernel:
    """The compiled kernel; InputError where it was not built. Leader −1: no leader matters."""

    def __init__(self, core: ReducedProblem) -> None:
        if not compiled_available():
            raise InputError(
                "the compiled kernel was not built",
                field="method",
                value="exact",
                expected="an installation that was built with a C compiler, or method 'milp'",
            )
        import formulations.exact._kernel as compiled

        self.compiled = compiled
        rules = core.rules
        active = core.active
        whole = len(active) == core.clients  # then nothing need be copied here
        rtt = core.client_rtt if whole else core.client_rtt[active]
        clients, sites = rtt.shape
        flags = (rules.may_hold, rules.must_hold, rules.may_vote, rules.must_vote, rules.may_lead)
        self.context = compiled.create(
            np.ascontiguousarray(rtt),
            core.closest_sites,
            core.near[active],
            core.relay[active],
            np.ascontiguousarray(core.site_rtt),
            np.ascontiguousarray(core.direct),
            core.quorum_weight,
            None if core.price is None else np.ascontiguousarray(core.price),
            (
                clients,
                sites,
                rules.replicas_min,
                rules.replicas_max,
                rules.voters,
                rules.quorum,
            ),
            np.ascontiguousarray(np.stack(flags)),
            family_arrays(core.families["replicas"]),
            family_arrays(core.families["voters"]),
            core.granularity,
            TOLERANCE,
            _scenarios(core),
            None if core.cases is None else case_arrays(core.cases, core.able_leaders),
        )

    def bound_root(
        self, leader: int, u: FloatArray, iterations: int, swaps: int, warm: bool, seconds: float
    ) -> float:
        """Bound one leader without branching, at most `seconds` long.

        `u` are multipliers of the active clients: read when `warm`, replaced by the best found, in
        so many evaluations at most. `swaps`: 0, no primal search; 1, only adapt the incumbent;
        more, that many swaps at most.
        """
        asked = RootBounds(
            leaders=np.array([leader], dtype=np.int32),
            u=u[np.newaxis],
            warm=np.array([warm]),
            steps=iterations,
            swaps=swaps,
            full=1,
            bounds=np.full(1, math.nan),
            ends=np.zeros(1, dtype=np.int64),
        )
        self.bound_roots(asked, 0, math.inf, seconds)
        return float(asked.bounds[0])

    def bound_roots(self, asked: RootBounds, at: int, work: float, seconds: float) -> int:
        """Bound leaders from place `at` on, as `bound_root` does, and return how many.

        The end is after the leader with which so much `work` is done, in the unit of
        :class:`Counters`, or after so many seconds, also within a leader; one is always bounded.
        """
        bounds = asked.bounds[at:]
        try:
            return self.compiled.bound_roots(
                self.context,
                asked.leaders[at:],
                asked.u[at:],
                asked.warm[at:],
                bounds,
                asked.ends[at:],
                asked.steps,
                asked.swaps,
                max(0, asked.full - at),
                work,
                seconds,
            )
        finally:
            bounds[bounds >= _BIG] = math.inf

    def quick_bounds(self, asked: QuickBounds, at: int, work: float, seconds: float) -> int:
        """Bound leaders as `bound_roots` does, each by one evaluation; no tree is open then."""
        bounds = asked.bounds[at:]
        try:
            return self.compiled.quick_bounds(
                self.context, asked.leaders[at:], asked.u[at:], bounds, work, seconds
            )
        finally:
            bounds[bounds >= _BIG] = math.inf

    def shared_bounds(
        self,
        reference: ReferenceLeader,
        leaders: npt.NDArray[np.int32],
        seconds: float,
    ) -> FloatArray:
        """Bound leaders, none −1, by the multipliers of another one; no tree is open afterwards.

        Its u is cut to what counts under it, and its `serving` is replaced. Returned are lower
        bounds, shape (n,), NaN where there was no time. O(sites · (clients · log(clients) + n ·
        replicas)).
        """
        bounds = np.full(len(leaders), math.nan)
        one = np.array([reference.leader], dtype=np.int32)
        self.compiled.shared_bounds(
            self.context, leaders, bounds, one, reference.u, reference.serving, seconds
        )
        bounds[bounds >= _BIG] = math.inf
        return bounds

    def set_gap(self, gap: float) -> None:
        """Close nodes whose bound is within `gap`, relatively, of the incumbent; 0: prove."""
        self.compiled.set_gap(self.context, max(gap, TOLERANCE))

    def treat_as_large(self, *, sparse: bool) -> None:
        """Treat every problem as a large one, with nodes `sparse` or never: only for tests."""
        cells = 0.0 if sparse else math.inf
        self.compiled.set_size_limits(self.context, cells, 1.0, 4, 2, 0.0, 4)

    def bounds_from_memory(self, leaders: Sequence[int], swaps: int, seconds: float) -> FloatArray:
        """Improve the incumbent, then bound leaders at the multipliers that they were left at.

        These are the `u` that `bound_root`, `bound_roots` or `quick_bounds` returned last, be it
        for another number of replicas. Returned are lower bounds, shape (leaders,), NaN for those
        that were never bounded. `seconds` are for the swaps; the bounds take O(sites) each. No tree
        is open afterwards.
        """
        asked = np.array(leaders, dtype=np.int32)
        bounds = np.full(len(asked), math.nan)
        self.compiled.bounds_from_memory(self.context, asked, bounds, swaps, seconds)
        bounds[bounds >= _BIG] = math.inf
        return bounds

    def resize(self, core: ReducedProblem, seconds: float) -> None:
        """Take a problem that differs in |R| alone; the incumbent adapts, or goes if time is up."""
        rules = core.rules
        self.compiled.resize(self.context, rules.replicas_min, rules.replicas_max, seconds)

    def open_trees(self, leaders: Sequence[int], u: FloatArray, bounds: FloatArray) -> None:
        """Open the trees of leaders, −1 alone, in place of others; `u` proves `bounds` at least."""
        asked = np.array(leaders, dtype=np.int32)
        self.compiled.open_trees(self.context, asked, np.ascontiguousarray(u), bounds)

    def run(self, work: float, seconds: float) -> bool:
        """Work on the open trees: True when they are finished."""
        return self.compiled.run(self.context, work, seconds)

    def tree_bounds(self, leaders: Sequence[int]) -> FloatArray:
        """Return the bounds of opened trees, finished parts included; +∞: all evaluated."""
        asked = np.array(leaders, dtype=np.int32)
        bounds = np.empty(len(asked))
        self.compiled.tree_bounds(self.context, asked, bounds)
        bounds[bounds >= _BIG] = math.inf
        return bounds

    def propose(self, proposal: Incumbent) -> None:
        """Offer an incumbent from outside; only its score is compared."""
        self.compiled.propose(self.context, proposal.score, proposal.leader, proposal.replicas)

    def incumbent(self) -> Incumbent | None:
        """Return the best so far."""
        score, leader, replicas = self.compiled.incumbent(self.context)
        return Incumbent(score, leader, replicas) if score < _BIG else None

    def counters(self) -> Counters:
        """Return the counters of the work so far."""
        nodes, leaves, evaluations, work, cutoff = self.compiled.counters(self.context)
        return Counters(nodes, leaves, evaluations, cutoff if cutoff < _BIG else math.inf, work)

    def record(self, on: bool) -> FloatArray:
        """Return the events recorded since the last call, and switch recording."""
        return np.frombuffer(self.compiled.record(self.context, on), dtype=np.float64)


def seconds_until(end: float) -> float:
    """Return the seconds until `end`, a time.perf_counter(), as a kernel takes them."""
    return min(max(end - time.perf_counter(), 0.0), 1e9)


def compiled_available() -> bool:
    """Return whether the compiled kernels were built, from these sources, and can be imported."""
    try:
        # their newest names: a checkout may hold kernels that were built before
        from formulations.exact._kernel import MOST_BLOCKS  # noqa: F401 - only whether it imports matters
        from formulations.exact._scenarios import search_thresholds  # noqa: F401 - likewise
    except ImportError:
        return False
    return True


def _scenarios(core: ReducedProblem) -> tuple[int, IntArray, FloatArray, FloatArray] | None:
    """Return number, scenario of each active client, RTTs and D of several scenarios; or None."""
    if not core.varies:
        return None
    demand = core.demand
    return (
        demand.scenarios,
        np.ascontiguousarray(core.scenario, dtype=np.int32),
        np.ascontiguousarray(demand.site_rtt),
        np.ascontiguousarray(demand.quorum),
    )


def open_kernel(core: ReducedProblem, which: str = "compiled") -> Kernel:
    """Return a kernel for a problem; InputError for another name, or when it was not built.

    `which` is "compiled"; for tests also "tight" and "sparse": every problem is treated as if it
    were large, with dense or sparse nodes.
    """
    names = ("compiled", "tight", "sparse")
    if which not in names:
        raise InputError("unknown kernel", field="kernel", value=which, expected=" or ".join(names))
    opened = Kernel(core)
    if which != "compiled":
        opened.treat_as_large(sparse=which == "sparse")
    return opened
