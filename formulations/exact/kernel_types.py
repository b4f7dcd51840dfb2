"""Data that the engine and its kernels exchange: arrays by leader, and incumbents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placement.model.site_families import SiteFamily
from placement.support.checks import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from placement.evaluation.waits.wait_cases import SingleWaits

FamilyArrays = tuple[int, int, npt.NDArray[np.int32]]
"""Number of blocks, least number of distinct ones, and the numbers by site and by block."""


def family_arrays(families: Sequence[SiteFamily]) -> tuple[FamilyArrays, ...]:
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
