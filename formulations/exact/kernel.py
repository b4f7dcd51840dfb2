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
    """Multipliers of a leader that others share.

    Attributes
    ----------
    leader
        Site index.
    u
        Multipliers, in ms times operations, shape (active clients,).
    serving
        Site that serves each active client, shape (active clients,).
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
    """The work of a kernel so far.

    Attributes
    ----------
    nodes, leaves
        Of the trees.
    evaluations
        Of the bound.
    cutoff
        A bound that reaches it closes; +∞ without an incumbent.
    work
        Effort of all that, in a unit of about a nanosecond: the same on every run.
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

    Attributes
    ----------
    leaders
        Site indices, none of them −1; shape (n,), int32.
    u
        Multipliers >= 0, shape (n, active clients): cut to what the leader itself would cost.
    bounds
        Replaced by the bound of each leader at its multipliers; NaN before, shape (n,).
    """

    leaders: npt.NDArray[np.int32]
    u: FloatArray
    bounds: FloatArray


@dataclass(frozen=True, eq=False)
class RootBounds:
    """The bounds of some leaders at their roots, without branching.

    Attributes
    ----------
    leaders
        Site indices, or −1 alone; shape (n,), int32.
    u
        Multipliers, shape (n, active clients): read where `warm`, replaced by the best found.
    warm
        Whether to start from `u`, shape (n,).
    steps, swaps, full
        As in :meth:`Kernel.bound_root`; all but the first `full` leaders only adapt the incumbent.
    bounds
        Replaced by the bound of each leader; NaN before, shape (n,).
    ends
        Replaced by the length of the record after each leader, shape (n,), int64.
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
    """The compiled kernel. Leader −1 stands for "no leader matters".

    Parameters
    ----------
    core
        The problem.

    Raises
    ------
    InputError
        When the kernel was not built.
    """

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

        Parameters
        ----------
        leader
            Site index, or −1.
        u
            Multipliers of the active clients: read when `warm`, replaced by the best found.
        iterations
            Most evaluations of the bound.
        swaps
            0: no primal search; 1: only adapt the incumbent; more: that many swaps at most.
        warm
            Whether to start from `u`.
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
        """Bound leaders one after another, as `bound_root` does, and return how many.

        Parameters
        ----------
        asked
            The leaders, and what comes out.
        at
            Where to start.
        work
            Stop after the leader with which so much is done, in the unit of :class:`Counters`.
        seconds
            Stop, also within a leader, after so long; one is always bounded.
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
        """Bound leaders, one evaluation each, and return how many; no tree is open afterwards.

        Parameters
        ----------
        asked
            The leaders, their multipliers, and what comes out.
        at, work, seconds
            As in `bound_roots`.
        """
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
        """Bound leaders together, by the multipliers of another one; no tree is open afterwards.

        Parameters
        ----------
        reference
            The other one; u is cut to what counts under it, and `serving` is replaced.
        leaders
            Site indices, none of them −1, shape (n,), int32.
        seconds
            Stop after so long.

        Returns
        -------
        FloatArray
            Lower bounds, shape (n,); NaN where there was no time.

        Notes
        -----
        O(sites · (clients · log(clients) + n · replicas)) time.
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
        """Treat every problem as a large one: only for tests.

        Trees restart after four nodes, with β, and again after four, with transfers of cost;
        leaders get two nodes at a time; parts are put off from the start; steps are on the heaviest
        clients first; nodes are `sparse`, or never.
        """
        cells = 0.0 if sparse else math.inf
        self.compiled.set_size_limits(self.context, cells, 1.0, 4, 2, 0.0, 4)

    def bounds_from_memory(self, leaders: Sequence[int], swaps: int, seconds: float) -> FloatArray:
        """Improve the incumbent, then bound leaders at the multipliers that they were left at.

        The multipliers are the `u` that `bound_root`, `bound_roots` or `quick_bounds` returned the
        last time, be it for another number of replicas; no tree is open afterwards.

        Parameters
        ----------
        leaders
            Site indices, or −1.
        swaps
            Most swaps.
        seconds
            For the swaps; the bounds take O(sites) each, without a pass over the clients.

        Returns
        -------
        FloatArray
            Lower bounds, shape (leaders,); NaN for those that were never bounded.
        """
        asked = np.array(leaders, dtype=np.int32)
        bounds = np.full(len(asked), math.nan)
        self.compiled.bounds_from_memory(self.context, asked, bounds, swaps, seconds)
        bounds[bounds >= _BIG] = math.inf
        return bounds

    def resize(self, core: ReducedProblem, seconds: float) -> None:
        """Take another problem, which differs in the number of replicas alone.

        The incumbent grows or shrinks to the new number, unless that takes longer than `seconds`:
        then there is none.
        """
        rules = core.rules
        self.compiled.resize(self.context, rules.replicas_min, rules.replicas_max, seconds)

    def open_trees(self, leaders: Sequence[int], u: FloatArray, bounds: FloatArray) -> None:
        """Open the trees of leaders, in place of all others.

        Parameters
        ----------
        leaders
            Site indices, or −1 alone.
        u
            Multipliers to start from, shape (leaders, active clients).
        bounds
            Lower bounds that these multipliers prove, or less; shape (leaders,).
        """
        asked = np.array(leaders, dtype=np.int32)
        self.compiled.open_trees(self.context, asked, np.ascontiguousarray(u), bounds)

    def run(self, work: float, seconds: float) -> bool:
        """Work on the open trees: True when they are finished."""
        return self.compiled.run(self.context, work, seconds)

    def tree_bounds(self, leaders: Sequence[int]) -> FloatArray:
        """Return the bounds of the trees for leaders, finished parts included; +∞: all evaluated.

        Parameters
        ----------
        leaders
            Some of those that were opened.
        """
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
    """Return a kernel for a problem.

    Parameters
    ----------
    core
        The problem.
    which
        "compiled"; for tests also "tight" and "sparse": every problem treated as if it were large,
        with dense or sparse nodes.

    Raises
    ------
    InputError
        For another name, or when the kernel was not built.
    """
    names = ("compiled", "tight", "sparse")
    if which not in names:
        raise InputError("unknown kernel", field="kernel", value=which, expected=" or ".join(names))
    opened = Kernel(core)
    if which != "compiled":
        opened.treat_as_large(sparse=which == "sparse")
    return opened
