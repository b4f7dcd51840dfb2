"""The cases of each wait of the leaders alone, from which the engine makes those that it needs.

Two waits have a case for each pair of radii, see :mod:`placement.evaluation.wait_cases`; a search
looks at few of them. So the engine gets the cases of one wait at a time, S for each leader, and
``formulations/exact/csrc/wait_cases.c`` combines two when it first asks for the pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.checks import BoolArray, FloatArray, IntArray
from placement.evaluation.wait_cases import FORBIDDEN, ClausesOfWait, drafts_of, waits_of
from placement.model.constraints import Rules
from placement.model.demand import Demand

__all__ = ["SingleWait", "SingleWaits"]


@dataclass(frozen=True, eq=False)
class SingleWait:
    """The cases of one wait of some leaders, `sizes` for each radius.

    Attributes
    ----------
    rounds
        D of the wait.
    start
        First radius of each leader, shape (leaders + 1,).
    radius
        Ascending for each leader, ms, shape (radii,).
    sizes
        Cases of a radius: one, or one for each number of voters inside a domain.
    member
        Bits of the blocks that hold a site, or FORBIDDEN, shape (radii · sizes, sites).
    least
        Sites that a replica set, the leader among them, must hold in a block, shape
        (radii · sizes, blocks).
    of_voters
        Whether a block is one of voters, shape (blocks,).
    """

    rounds: float
    start: IntArray
    radius: FloatArray
    sizes: int
    member: npt.NDArray[np.uint8]
    least: IntArray
    of_voters: BoolArray

    def shortest(self, rules: Rules, leaders: Sequence[int]) -> FloatArray:
        """Return the least radius of each leader whose blocks have enough sites, or infinity."""
        cases, blocks = self.least.shape
        which = np.repeat(np.arange(len(leaders)), np.diff(self.start) * self.sizes)
        rows, led = np.arange(cases), np.asarray(leaders, dtype=np.intp)[which]
        good = self.member[rows, led] != FORBIDDEN
        if rules.must_hold.any():
            good &= (self.member[:, rules.must_hold] != FORBIDDEN).all(axis=1)
        for block in range(blocks):
            held = self.member >> block & 1
            need = np.where(self.least[:, block] > held[rows, led], self.least[:, block], 0)
            good &= (held.sum(axis=1) >= need) & (need <= rules.replicas_max)
        found = np.full(len(leaders), np.inf)
        np.minimum.at(found, which[good], np.repeat(self.radius, self.sizes)[good])
        return found


@dataclass(frozen=True, eq=False)
class SingleWaits:
    """The cases of each wait of some leaders alone.

    Attributes
    ----------
    leaders
        Site indices.
    waits
        One or two.
    shorter
        Wait whose clauses the other one has too, −1: none. The other one is never shorter, and its
        blocks are those of its own clauses: a pair of cases counts where its radius is as long.
    nested
        Whether no two blocks of a case can cross.
    """

    rules: Rules
    leaders: Sequence[int]
    waits: tuple[SingleWait, ...]
    shorter: int
    nested: bool

    @classmethod
    def of(cls, demand: Demand, rules: Rules, leaders: Sequence[int]) -> SingleWaits:
        """Work out the cases, as :meth:`WaitCases.of` does: O(radii · sites) for each leader."""
        waits, rounds = waits_of(demand, rules)
        shorter, drafts = drafts_of(demand, rules, np.array(leaders, dtype=np.intp), waits)
        parts = []
        for draft, times in zip(drafts, rounds.tolist(), strict=True):
            blocks = draft.blocks & (rules.may_hold & ~draft.barred)[:, np.newaxis, :]
            bits = np.where(draft.barred, np.uint8(FORBIDDEN), np.uint8(0))
            for block in range(blocks.shape[1]):
                bits |= blocks[:, block].view(np.uint8) << np.uint8(block)
            radii = np.bincount(draft.which[:: draft.sizes], minlength=len(leaders))
            start = np.concatenate([np.zeros(1, dtype=np.intp), np.cumsum(radii)])
            radius = draft.radii[:: draft.sizes, 0]
            parts.append(
                SingleWait(times, start, radius, draft.sizes, bits, draft.need, draft.of_voters)
            )
        nested = not _blocks_may_cross(rules, waits)
        return cls(rules, leaders, tuple(parts), shorter, nested)

    def floors(self) -> FloatArray:
        """Return a lower bound of Σ_j D_j · wait_j of each leader; infinite: a wait never ends."""
        least = [one.shortest(self.rules, self.leaders) for one in self.waits]
        if self.shorter >= 0:
            longer = 1 - self.shorter
            least[longer] = np.maximum(least[longer], least[self.shorter])
        total = np.zeros(len(self.leaders))
        for one, radius in zip(self.waits, least, strict=True):
            total += one.rounds * radius
        return total


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
