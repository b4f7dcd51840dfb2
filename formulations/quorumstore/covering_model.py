"""The fixed-threshold covering model: whether N replicas within given thresholds exist.

With x_j = 1 for a replica at j, B^f_i(T) = { j ≠ lost : E^f[i, j] <= T } and y_if = 1 for "client i
is within its threshold in scenario f",

    Σ_j x_j = N
    Σ_{j ∈ B^f_i(T_r)} x_j >= R · y_if          for every client i with reads, every scenario f
    Σ_i reads_i · y_if     >= needed reads      for every scenario f            (writes likewise)

is feasible iff some replica set obeys the thresholds under (R, W): y_if can be 1 iff at least R
surviving replicas are within T_r of i. x_f does not appear in scenario f, so nothing needs to be
conditioned on f holding a replica, and there is no big-M: R is the natural coefficient.

Where one site is lost at a time, clients need no copy for each scenario. A replica at f takes one
from every ball that holds f, so with y_i and z_i for "at least R" and "at least R + 1 replicas
within T_r of i in normal operation"

    Σ_{i: f ∉ B_i} reads_i · y_i + Σ_{i: f ∈ B_i} reads_i · z_i >= needed reads     if x_f = 1

is scenario f: 2n binaries in place of n². Clients that are moved when f is lost
have a separate ball and y in that row, and as they notice the loss of f even if it holds no
replica, there is one more row, with all the other y_i, whatever x_f is.

Rows with the same ball and quorum share their y; rows of percentiles that become equal are merged.

The model is only described here. A reduction fixes the sites and steps that follow from the
constraints; :mod:`formulations.quorumstore.covering_solvers` hands the rest to a solver.

The reduction has five rules, applied until nothing changes. With O the sites still open and F those
that must hold a replica, every set in question has between max(|F ∩ B|, N − |O ∖ B|) and
min(|O ∩ B|, N − |F ∖ B|) replicas in a ball B.

1. A cover whose quorum is within the lower number always holds, one above the upper never does:
   either leaves the demands.
2. A demand that cannot be met refutes the question; if it is for the loss of a replica at f, then f
   holds none.
3. A cover whose requests are more than a demand can miss is *required*; a required cover decides
   others (|S ∩ B'| >= |S ∩ B| − |B ∖ B'|), and fixes its sites when it needs all of them.
4. Site j is *replaceable* by k if every ball with j holds k, and losses allow it (see `swaps` of
   the model): then k for j in any answer gives an answer. With N open sites to replace it, one of
   them is not in the answer, and j is closed.
5. What remains of that relation, along one fixed order of the sites, may be asked of the answer:
   x_j <= x_k. Each replacement moves a replica forward in the order, so they end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from placement.quorumstore import LossScope, QuorumProblem, Redirect, ThresholdLimits
from placement.support.checks import FloatArray

__all__ = [
    "Cover",
    "CoverDemand",
    "CoveringModel",
    "CoveringRow",
    "Reduced",
    "ReductionStep",
    "covering_model",
    "reduce_model",
    "relaxed_model",
    "scenario_rtt",
]


@dataclass(frozen=True, slots=True)
class Cover:
    """y = 1 needs at least `quorum` replicas among the sites of `ball`."""

    ball: tuple[int, ...]
    quorum: int


@dataclass(frozen=True, slots=True)
class CoverDemand:
    """Σ count · y over `terms` (index of a cover, count) is at least `needed`.

    With `lost` only for replica sets that hold this site.
    """

    terms: tuple[tuple[int, int], ...]
    needed: int
    lost: int | None = None


@dataclass(frozen=True, slots=True)
class CoveringModel:
    """A yes-no question about replica sets, free of any solver.

    Attributes
    ----------
    sites
        Number of candidate sites.
    replicas
        N.
    covers, demands
        The rows.
    caps
        (sites, at most so many replicas among them).
    swaps
        For each site j, the sites that may take over its replica without harm to any demand,
        provided that they are in every ball that j is in. Empty: none.
    """

    sites: int
    replicas: int
    covers: tuple[Cover, ...]
    demands: tuple[CoverDemand, ...]
    caps: tuple[tuple[tuple[int, ...], int], ...]
    swaps: tuple[tuple[int, ...], ...] = ()

    def holds(self, replicas: tuple[int, ...]) -> bool:
        """Check a replica set in exact arithmetic."""
        chosen = set(replicas)
        if len(chosen) != self.replicas:
            return False
        if any(len(chosen.intersection(members)) > cap for members, cap in self.caps):
            return False
        within = [len(chosen.intersection(cover.ball)) >= cover.quorum for cover in self.covers]
        return all(
            sum(count for index, count in demand.terms if within[index]) >= demand.needed
            for demand in self.demands
            if demand.lost is None or demand.lost in chosen
        )


def scenario_rtt(problem: QuorumProblem, lost: tuple[int, ...]) -> FloatArray:
    """E^f[i, j]: latency of client i to a replica at j once `lost` is down; ∞ for j lost."""
    matrix: FloatArray = problem.rtt.copy()
    for site in lost:
        if problem.redirects:
            survivor = problem.closest_survivor(site, lost)
            hop = problem.rtt[site, survivor] if problem.rules.redirect is Redirect.HOP else 0.0
            matrix[site] = hop + problem.rtt[survivor]
    matrix[:, list(lost)] = np.inf
    return matrix


def covering_model(
    problem: QuorumProblem,
    replicas: int,
    read: int,
    write: int,
    limits: ThresholdLimits,
) -> CoveringModel:
    """Describe "some set of `replicas` sites obeys `limits` under (R, W)".

    O(n²) where single sites are lost, O(n²) per scenario otherwise; the losses are those of the
    problem where its rules ask for contingency.
    """
    rules = problem.rules
    rows = _CoverRows()
    contingency = rules.contingency and bool(problem.losses)
    single = contingency and _single_sites(problem)
    for side in _sides(problem, read, write, limits):
        rows.add(_wanted(side, _balls(problem.rtt, side.clients, side.normal)), side.needed)
        if single:
            _add_single_losses(
                rows,
                problem,
                side,
                _balls(problem.rtt, side.clients, side.worst),
                _moved_balls(problem, side) if problem.redirects else {},
            )
        elif contingency:
            for lost in problem.losses:
                after = scenario_rtt(problem, lost)
                rows.add(_wanted(side, _balls(after, side.clients, side.worst)), side.needed)
    caps = _caps(problem, replicas, read, write)
    swaps: tuple[tuple[int, ...], ...] = ()
    if not caps and (single or not contingency):
        swaps = _swaps(problem, _sides(problem, read, write, limits) if single else [])
    return CoveringModel(
        len(problem.sites),
        replicas,
        tuple(rows.covers),
        tuple(rows.demands),
        caps,
        swaps,
    )


def relaxed_model(
    problem: QuorumProblem, replicas: int, read: int, write: int, limits: ThresholdLimits
) -> CoveringModel | None:
    """Describe a question that is answered by every answer of :func:`covering_model`, but simpler.

    Where clients of a lost site are moved, they are given the ball of before and that of
    afterwards together, in every scenario: then no client needs to be moved, any site may take over
    from any other, and much more can be left out. None where no client is moved, and where regional
    rules or larger losses are in the way.
    """
    if not (
        problem.rules.contingency
        and problem.losses
        and problem.redirects
        and _single_sites(problem)
        and not _caps(problem, replicas, read, write)
    ):
        return None
    rows = _CoverRows()
    for side in _sides(problem, read, write, limits):
        rows.add(_wanted(side, _balls(problem.rtt, side.clients, side.normal)), side.needed)
        stays, moves = _balls(problem.rtt, side.clients, side.worst), _moved_balls(problem, side)
        either = {i: tuple(sorted({*stays[i], *moves[i]})) for i in side.clients}
        _add_single_losses(rows, problem, side, either, {})
    return CoveringModel(
        len(problem.sites),
        replicas,
        tuple(rows.covers),
        tuple(rows.demands),
        (),
        _swaps(problem, []),
    )


def _single_sites(problem: QuorumProblem) -> bool:
    return problem.rules.loss is LossScope.SITE and problem.rules.failures == 1


@dataclass(frozen=True, slots=True)
class _Side:
    """Reads or writes: who makes them, how many have to be in time, and within what."""

    quorum: int
    counts: dict[int, int]
    needed: int
    normal: float
    worst: float

    @property
    def clients(self) -> list[int]:
        return list(self.counts)


def _sides(problem: QuorumProblem, read: int, write: int, limits: ThresholdLimits) -> list[_Side]:
    """Return the sides that need anything to be in time."""
    found = []
    for quorum, requests, needed, normal, worst in (
        (read, problem.reads, problem.needed_reads, limits.normal_read, limits.worst_read),
        (write, problem.writes, problem.needed_writes, limits.normal_write, limits.worst_write),
    ):
        counts = {int(i): int(requests[i]) for i in np.flatnonzero(requests)}
        if needed:
            found.append(_Side(quorum, counts, needed, min(normal, worst), worst))
    return found


_Wanted = tuple[tuple[int, ...], int, int]
"""Ball, quorum and requests of a client."""


def _wanted(side: _Side, balls: dict[int, tuple[int, ...]]) -> list[_Wanted]:
    return [(balls[i], side.quorum, count) for i, count in side.counts.items()]


@dataclass(slots=True)
class _CoverRows:
    """Covers and demands, each once."""

    covers: dict[Cover, int] = field(default_factory=dict)
    demands: dict[CoverDemand, None] = field(default_factory=dict)

    def add(self, wanted: Iterable[_Wanted], needed: int, lost: int | None = None) -> None:
        """Add "at least `needed` requests of these are in time"."""
        terms: dict[int, int] = {}
        for ball, quorum, count in wanted:
            if len(ball) < quorum:
                continue  # y = 0
            index = self.covers.setdefault(Cover(ball, quorum), len(self.covers))
            terms[index] = terms.get(index, 0) + count
        self.demands[CoverDemand(tuple(sorted(terms.items())), needed, lost)] = None


def _balls(rtt: FloatArray, clients: list[int], limit: float) -> dict[int, tuple[int, ...]]:
    """Sites within `limit` of each client, by client."""
    inside = (rtt <= limit) & np.isfinite(rtt)
    return {i: tuple(np.flatnonzero(inside[i]).tolist()) for i in clients}


def _moved_balls(problem: QuorumProblem, side: _Side) -> dict[int, tuple[int, ...]]:
    """Sites within the limit of each client once its own site is lost, which is never in it."""
    return {
        i: _balls(scenario_rtt(problem, (i,)), [i], side.worst)[i]
        for i in side.clients
        if (i,) in problem.losses
    }


def _add_single_losses(
    rows: _CoverRows,
    problem: QuorumProblem,
    side: _Side,
    balls: dict[int, tuple[int, ...]],
    moved: dict[int, tuple[int, ...]],
) -> None:
    """Add the constraints for the loss of any one site f.

    A replica at f takes one from every ball that holds f: those clients need quorum + 1 of them.
    Where f holds none, only its own clients notice, and only if they are `moved`.
    """
    for (lost,) in problem.losses:
        own = [(moved[lost], side.quorum, side.counts[lost])] if lost in moved else []
        others = {i: count for i, count in side.counts.items() if not (own and i == lost)}
        after = [(balls[i], side.quorum + (lost in balls[i]), count) for i, count in others.items()]
        rows.add(own + after, side.needed, lost)
        if own:
            stay = [(balls[i], side.quorum, count) for i, count in others.items()]
            rows.add(own + stay, side.needed)


def _swaps(problem: QuorumProblem, sides: list[_Side]) -> tuple[tuple[int, ...], ...]:
    """Return for each site j the sites k that can replace j under every loss.

    "Takes over" supposes that every ball with j holds k as well, which the reduction checks. Then
    the loss of k is survived by what survived that of j: the same replicas are left, and a ball
    with k and without j has gained one. Only the clients of j and k differ if they are moved, on
    one of `sides`: those of k are moved and were not, those of j are not and were. So no ball of k
    may shrink by moving, and none of j by not moving.
    """
    n = len(problem.sites)
    allowed = np.ones((n, n), dtype=bool)
    for side in sides if problem.redirects else []:
        stays = _balls(problem.rtt, side.clients, side.worst)
        for i, ball in _moved_balls(problem, side).items():
            stay, move = set(stays[i]), set(ball)
            for other in range(n):
                pair = {i, other}
                allowed[other, i] &= stay - pair <= move  # i takes over from the other one
                allowed[i, other] &= move - pair <= stay  # the other one takes over from i
    np.fill_diagonal(allowed, False)
    return tuple(tuple(np.flatnonzero(row).tolist()) for row in allowed)


def _caps(
    problem: QuorumProblem, replicas: int, read: int, write: int
) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Regional rules: replicas apart, or enough of them left after a region is lost."""
    cap = problem.region_cap(replicas, max(read, write))
    if cap >= replicas:
        return ()
    groups = []
    for label in range(int(problem.region_index.max()) + 1):
        members = tuple(np.flatnonzero(problem.region_index == label).tolist())
        if len(members) > cap:
            groups.append((members, cap))
    return tuple(groups)


# --- reduction ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ReductionStep:
    """y of this index = 1 needs at least `quorum` replicas in the ball."""

    quorum: int
    index: int


@dataclass(frozen=True, slots=True)
class CoveringRow:
    """Σ count · y over `terms` (index of a step, count) is at least `needed`, if `lost` is held."""

    terms: tuple[tuple[int, int], ...]
    needed: int
    lost: int | None


@dataclass(frozen=True, slots=True)
class Reduced:
    """A covering question that asks for less.

    Attributes
    ----------
    possible
        False: there is no answer.
    open
        Sites that may hold a replica.
    held
        Those that must.
    required
        (ball, least number of replicas in it).
    ladders
        For each ball, the steps y of increasing quorums; a step takes the one before.
    rows
        The demands.
    ahead
        (j, k): a replica at j takes one at k.
    """

    possible: bool
    open: tuple[int, ...] = ()
    held: tuple[int, ...] = ()
    required: tuple[tuple[tuple[int, ...], int], ...] = ()
    ladders: tuple[tuple[tuple[int, ...], tuple[ReductionStep, ...]], ...] = ()
    rows: tuple[CoveringRow, ...] = ()
    ahead: tuple[tuple[int, int], ...] = ()

    @property
    def steps(self) -> int:
        """Number of variables y."""
        return sum(len(steps) for _, steps in self.ladders)


def reduce_model(model: CoveringModel) -> Reduced:
    """Return the question without its decided variables. Sites are bits of whole numbers.

    An answer of the reduced question is one of `model`; if `model` has an answer, so has the
    reduced question. O(n² · covers) per round, with at most a round for each site and cover.
    """
    try:
        return _Reduction(model).run()
    except _RefutedError:
        return Reduced(False)


class _RefutedError(Exception):
    """Raised by a reduction that finds no solution."""


@dataclass(slots=True)
class _ReducedDemand:
    terms: dict[int, int]
    needed: int
    lost: int | None


@dataclass(slots=True)
class _Reduction:
    model: CoveringModel
    open: int = field(init=False)
    held: int = 0
    balls: list[int] = field(init=False)
    quorums: list[int] = field(init=False)
    demands: list[_ReducedDemand] = field(init=False)
    required: dict[int, int] = field(default_factory=dict)
    changed: bool = True

    def __post_init__(self) -> None:
        model = self.model
        self.open = (1 << model.sites) - 1
        self.balls = [sum(1 << site for site in cover.ball) for cover in model.covers]
        self.quorums = [cover.quorum for cover in model.covers]
        self.demands = [
            _ReducedDemand(dict(one.terms), one.needed, one.lost) for one in model.demands
        ]

    def run(self) -> Reduced:
        while self.changed:
            self.changed = False
            self._decide()
            self._tighten()
            if not self.changed and self.model.swaps:
                self._close()
        return self._result()

    def _bounds(self, ball: int) -> tuple[int, int]:
        """Least and largest number of replicas in a ball."""
        total, kept = self.model.replicas, self.open & ball
        low = max((self.held & ball).bit_count(), total - (self.open & ~ball).bit_count())
        for other, least in self.required.items():
            low = max(low, least - (other & self.open & ~ball).bit_count())
        high = min(kept.bit_count(), total - (self.held & ~ball).bit_count())
        return low, high

    def _shut(self, sites: int) -> None:
        sites &= self.open
        if sites:
            if sites & self.held:
                raise _RefutedError
            self.open &= ~sites
            self.changed = True

    def _hold(self, sites: int) -> None:
        sites &= ~self.held
        if sites:
            self.held |= sites
            self.changed = True

    def _decide(self) -> None:
        """Rules 1 and 2."""
        bounds: dict[int, tuple[int, int]] = {}
        for ball in self.balls:
            if ball not in bounds:
                bounds[ball] = self._bounds(ball)
        left = []
        for demand in self.demands:
            if demand.lost is not None and not self.open >> demand.lost & 1:
                continue  # that replica is not there to be lost
            if demand.lost is not None and self.held >> demand.lost & 1:
                demand.lost = None
                self.changed = True
            for index, count in list(demand.terms.items()):
                low, high = bounds[self.balls[index]]
                if low >= self.quorums[index]:
                    demand.needed -= count
                elif high >= self.quorums[index]:
                    continue
                del demand.terms[index]
                self.changed = True
            if demand.needed <= 0:
                continue
            if sum(demand.terms.values()) < demand.needed:
                if demand.lost is None:
                    raise _RefutedError
                self._shut(1 << demand.lost)
                continue
            left.append(demand)
        self.demands = left

    def _tighten(self) -> None:
        """Rule 3."""
        for demand in self.demands:
            if demand.lost is not None:
                continue
            spare = sum(demand.terms.values()) - demand.needed
            for index, count in demand.terms.items():
                ball, quorum = self.balls[index], self.quorums[index]
                if count > spare and self.required.get(ball, 0) < quorum:
                    self.required[ball] = quorum
                    self.changed = True
        for ball, least in self.required.items():
            inside = ball & self.open
            if inside.bit_count() < least:
                raise _RefutedError
            if inside.bit_count() == least:
                self._hold(inside)
            if (self.held & ~ball).bit_count() + least >= self.model.replicas:
                if (self.held & ~ball).bit_count() + least > self.model.replicas:
                    raise _RefutedError
                self._shut(~ball & self.open & ~self.held)
        if self.open.bit_count() < self.model.replicas or (
            self.held.bit_count() > self.model.replicas
        ):
            raise _RefutedError

    def _live(self) -> set[int]:
        """Balls that still matter."""
        live = {self.balls[index] for demand in self.demands for index in demand.terms}
        return live | set(self.required)

    def _replacements(self) -> dict[int, int]:
        """Rule 4: for each open site, the open sites that replace it."""
        sites = [site for site in range(self.model.sites) if self.open >> site & 1]
        found = {}
        for site in sites:
            found[site] = sum(1 << k for k in self.model.swaps[site]) & self.open
        for ball in self._live():
            for site in sites:
                if ball >> site & 1:
                    found[site] &= ball
        return found

    def _close(self) -> None:
        for site, others in self._replacements().items():
            if (others & self.open).bit_count() >= self.model.replicas:
                self._shut(1 << site)

    def _result(self) -> Reduced:
        ladders: dict[int, list[ReductionStep]] = {}
        place: dict[int, int] = {}
        used = sorted({index for demand in self.demands for index in demand.terms})
        merged: dict[tuple[int, int], int] = {}
        for index in used:
            # Balls that agree on the open sites have become one.
            key = (self.balls[index] & self.open, self.quorums[index])
            if key not in merged:
                merged[key] = len(merged)
                ladders.setdefault(key[0], []).append(ReductionStep(key[1], merged[key]))
            place[index] = merged[key]
        rows: dict[CoveringRow, None] = {}
        for demand in self.demands:
            terms: dict[int, int] = {}
            for index, count in demand.terms.items():
                terms[place[index]] = terms.get(place[index], 0) + count
            rows[CoveringRow(tuple(sorted(terms.items())), demand.needed, demand.lost)] = None
        required: dict[int, int] = {}
        for ball, least in self.required.items():
            ball &= self.open
            required[ball] = max(least, required.get(ball, 0))
        return Reduced(
            True,
            _sites(self.open),
            _sites(self.held),
            tuple(
                (_sites(ball), least)
                for ball, least in required.items()
                if (ball & self.held).bit_count() < least
            ),
            tuple(
                (_sites(ball), tuple(sorted(steps, key=lambda step: step.quorum)))
                for ball, steps in ladders.items()
            ),
            tuple(rows),
            self._ahead(),
        )

    def _ahead(self) -> tuple[tuple[int, int], ...]:
        """Return the pairs of rule 5, without pairs that follow from other pairs."""
        if not self.model.swaps:
            return ()
        found = self._replacements()
        live = self._live()
        order = sorted(found, key=lambda site: (-sum(ball >> site & 1 for ball in live), site))
        before, arcs = 0, []
        direct: dict[int, int] = {}
        for site in order:
            direct[site] = found[site] & before
            before |= 1 << site
        for site in order:
            for other in _sites(direct[site]):
                rest = direct[site] & ~(1 << other)
                if not any(direct[k] >> other & 1 for k in _sites(rest)):
                    arcs.append((site, other))
        return tuple(arcs)


def _sites(bits: int) -> tuple[int, ...]:
    return tuple(site for site in range(bits.bit_length()) if bits >> site & 1)
