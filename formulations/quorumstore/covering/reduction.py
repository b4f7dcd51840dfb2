"""Reduction of a covering problem: sites and steps that follow from the constraints are fixed.

Five rules, applied until nothing changes. With O the sites still open and F those that must hold a
replica, every set in question has between max(|F ∩ B|, N − |O ∖ B|) and min(|O ∩ B|, N − |F ∖ B|)
replicas in a ball B.

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

from dataclasses import dataclass, field

from formulations.quorumstore.covering.model import CoveringModel

__all__ = ["CoveringRow", "Reduced", "ReductionStep", "reduce_model"]


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
            if not self.changed and self.model.swaps and not self.model.excluded:
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
        if not self.model.swaps or self.model.excluded:
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
