"""The cases of each wait of the leaders alone, from which the engine makes those that it needs.

Two waits have a case for each pair of radii, see :mod:`placement.evaluation.waits.wait_cases`; a
search needs few of them. So the engine gets the cases of one wait at a time, S for each leader,
and ``formulations/exact/csrc/waits/wait_cases.c`` combines two when it first asks for the pair.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.evaluation.waits.wait_latency import needed
from placement.model.constraints import Rules
from placement.model.demand import Demand
from placement.model.waits import Clause
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = [
    "FORBIDDEN",
    "MOST_BLOCKS",
    "ClausesOfWait",
    "SingleWait",
    "SingleWaits",
    "waits_of",
]

MOST_BLOCKS = 7
"""Blocks of a case; more are not taken. Each is a bit of a byte, as in csrc/waits/wait_cases.c."""

FORBIDDEN = 1 << MOST_BLOCKS
"""Bit of a site that may hold no replica in a case."""

ClausesOfWait = tuple[tuple[Clause, IntArray | None], ...]
"""Clauses of a wait with the domain of every site at their level."""


@dataclass(frozen=True, eq=False)
class SingleWait:
    """The cases of one wait of some leaders: for each radius as many as `least` has rows.

    Attributes
    ----------
    rounds
        D of the wait.
    start
        First radius of each leader, shape (leaders + 1,).
    radius
        Ascending for each leader, ms, shape (radii,).
    scope
        Bits of the blocks that may hold a site under a leader, and FORBIDDEN where no replica may
        lie beyond the radius, shape (leaders, sites).
    near
        Whether a block holds only sites within the radius, shape (blocks,).
    least
        Sites that a replica set, the leader among them, must hold in a block: one row, or one for
        each number of voters inside a domain, shape (sizes, blocks).
    of_voters
        Whether a block is one of voters, shape (blocks,).
    """

    rounds: float
    start: IntArray
    radius: FloatArray
    scope: npt.NDArray[np.uint8]
    near: BoolArray
    least: IntArray
    of_voters: BoolArray

    @classmethod
    def of(
        cls,
        rules: Rules,
        leaders: IntArray,
        distance: FloatArray,
        ordered: FloatArray,
        wait: ClausesOfWait,
        rounds: float,
        implied: set[Clause],
    ) -> SingleWait:
        """Work out the cases of one wait; the blocks of implied clauses are left out.

        `ordered` are the distances of each leader, ascending. O(sites · log sites) for each leader.
        """
        everyone = rules.replicas_min == rules.replicas_max == rules.voters
        counted = any(c.need == "majority" and c.scope == "inside" for c, _ in wait)
        voting = np.arange(1, rules.voters + 1) if counted else np.zeros(1, dtype=np.intp)
        everywhere = np.ones((1, distance.shape[1]), dtype=bool)
        asked = np.zeros(distance.shape, dtype=bool)
        scope = np.zeros(distance.shape, dtype=np.uint8)
        near: list[bool] = []
        least: list[IntArray] = []
        of_voters: list[bool] = []
        for clause, labels in wait:
            votes = clause.role == "voters"
            able = rules.may_vote if votes else np.ones_like(rules.may_vote)
            inside = everywhere
            if labels is not None:
                inside = labels[leaders][:, np.newaxis] == labels
            domain = inside if clause.scope != "outside" else ~inside
            part = domain & able
            asked |= part & rules.may_hold
            if clause.need == "all" and (everyone or not votes):
                scope |= part.astype(np.uint8) << MOST_BLOCKS
                continue
            found: list[tuple[BoolArray, bool, IntArray]] = []
            if clause.need == "majority" and clause.scope == "inside":
                found.append((part, True, voting // 2 + 1))
                found.append((part, False, voting))
                found.append((~inside & able, False, rules.voters - voting))
            elif clause not in implied:
                size = np.full_like(voting, rules.voters)
                role = rules.voters if votes else rules.replicas_max
                count = size if clause.need == "all" else needed(clause, role, rules.quorum, size)
                found.append((part, True, count))
            for sites, ball, count in found:
                scope |= (sites & rules.may_hold).astype(np.uint8) << len(near)
                near.append(ball)
                least.append(count)
                of_voters.append(votes)
        asked[np.arange(len(leaders)), leaders] = True  # a radius of 0
        ascending = ordered
        if not asked.all():
            ascending = np.sort(np.where(asked, distance, np.inf), axis=1)
        new = np.isfinite(ascending)
        new[:, 1:] &= ascending[:, 1:] > ascending[:, :-1]
        start = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(new.sum(axis=1))])
        rows = np.stack(least, axis=1) if least else np.zeros((len(voting), 0), dtype=np.intp)
        return cls(
            rounds, start, ascending[new], scope, np.array(near, dtype=bool), rows,
            np.array(of_voters, dtype=bool),
        )  # fmt: skip

    def of_sites(self, leaders: IntArray) -> SingleWait:
        """Return the same cases with a row for every site; the sites that do not lead have none.

        Parameters
        ----------
        leaders
            Sites of the present rows, ascending.
        """
        sites = self.scope.shape[1]
        if len(leaders) == sites:
            return self
        radii = np.zeros(sites, dtype=np.intp)
        radii[leaders] = np.diff(self.start)
        scope = np.zeros((sites, sites), dtype=np.uint8)
        scope[leaders] = self.scope
        start = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(radii)])
        return dataclasses.replace(self, start=start, scope=scope)

    def shortest(self, rules: Rules, distance: FloatArray, ordered: FloatArray) -> FloatArray:
        """Return the least radius of each leader whose blocks have enough sites, or infinity.

        `distance` and `ordered` as in :meth:`of`.
        """
        leaders, sites = distance.shape
        found = np.zeros((leaders, len(self.least)))
        if rules.must_hold.any():
            fixed = (self.scope & FORBIDDEN > 0) & rules.must_hold
            found += np.where(fixed, distance, 0.0).max(axis=1)[:, np.newaxis]
        found[:, (self.least > min(sites, rules.replicas_max)).any(axis=1)] = np.inf
        for block, near in enumerate(self.near.tolist()):
            member = self.scope >> block & 1
            need = np.minimum(self.least[:, block], sites)
            if not near:
                held = member.sum(axis=1)
                if need.max() > held.min():
                    found[held[:, np.newaxis] < need] = np.inf
                continue
            radius = np.zeros((leaders, need.max() + 1))  # at which so many sites are within it
            held = ordered
            if not member.all():
                held = np.sort(np.where(member, distance, np.inf), axis=1)
            radius[:, 1:] = held[:, : need.max()]
            np.maximum(found, radius.take(need, axis=1), out=found)
        return np.asarray(found.min(axis=1))


@dataclass(frozen=True, eq=False)
class SingleWaits:
    """The cases of each wait of some leaders alone.

    Attributes
    ----------
    distance
        RTTs from the leaders to all sites, 0 to themselves, shape (leaders, sites).
    ordered
        The same, ascending for each leader.
    waits
        One or two.
    shorter
        Wait whose clauses the other one has too, −1: none. The other one is never shorter, and its
        blocks come from its own clauses: a pair of cases counts where its radius is as long.
    nested
        Whether no two blocks of a case can cross.
    """

    rules: Rules
    distance: FloatArray
    ordered: FloatArray
    waits: tuple[SingleWait, ...]
    shorter: int
    nested: bool

    @classmethod
    def of(cls, demand: Demand, rules: Rules, leaders: IntArray) -> SingleWaits:
        """Work out the cases of some leaders, site indices."""
        waits, rounds = waits_of(demand, rules)
        distance = demand.site_rtt[0, leaders]
        distance[np.arange(len(leaders)), leaders] = 0.0
        ordered = np.sort(distance, axis=1)
        clauses = [{clause for clause, _ in wait} for wait in waits]
        # a wait of some clauses of another is never the longer one, and met wherever that one is
        pair = (0, 1) if len(waits) > 1 else ()
        short = next((at for at in pair if clauses[at] <= clauses[1 - at]), -1)
        parts = tuple(
            SingleWait.of(
                rules, leaders, distance, ordered, wait, times,
                clauses[short] if short == 1 - at else set(),
            )
            for at, (wait, times) in enumerate(zip(waits, rounds.tolist(), strict=True))
        )  # fmt: skip
        return cls(rules, distance, ordered, parts, short, not _blocks_may_cross(rules, waits))

    def floors(self) -> FloatArray:
        """Return a lower bound of Σ_j D_j · wait_j of each leader; infinite: a wait never ends."""
        least = [one.shortest(self.rules, self.distance, self.ordered) for one in self.waits]
        if self.shorter >= 0:
            longer = 1 - self.shorter
            least[longer] = np.maximum(least[longer], least[self.shorter])
        total = np.zeros(len(self.distance))
        for one, radius in zip(self.waits, least, strict=True):
            total += one.rounds * radius
        return total


def waits_of(demand: Demand, rules: Rules) -> tuple[list[ClausesOfWait], FloatArray]:
    """Return the distinct waits of the leaders that count, and the rounds of each."""
    waits: list[ClausesOfWait] = []
    rounds: list[float] = []
    if demand.quorum.any() and rules.quorum > 1:
        waits.append(((Clause("quorum"), None),))
        rounds.append(float(demand.quorum[0]))
    for term in demand.waits:
        if term.origin == "leader" and term.weight.any():
            waits.append(tuple(zip(term.clauses, term.labels, strict=True)))
            rounds.append(float(term.weight[0].sum()))
    return waits, np.array(rounds)


def _blocks_may_cross(rules: Rules, waits: Sequence[ClausesOfWait]) -> bool:
    """Return whether two blocks of a case may cross, for all that the clauses tell.

    Balls around the leader are nested. So are, at one radius, those inside or outside its domains
    of one level; a number of voters in the domain at any distance crosses other blocks.
    """
    everyone = rules.replicas_min == rules.replicas_max == rules.voters
    clauses = [clause for wait in waits for clause, _ in wait]
    clauses = [c for c in clauses if c.need != "all" or not (everyone or c.role == "replicas")]
    scoped = [clause for clause in clauses if clause.scope]
    counted = any(clause.need == "majority" for clause in scoped)
    return (
        len({clause.role for clause in clauses}) > 1
        or len({clause.level for clause in scoped}) > 1
        or (bool(scoped) and len(waits) > 1)
        or (counted and len(clauses) > 1)
    )
