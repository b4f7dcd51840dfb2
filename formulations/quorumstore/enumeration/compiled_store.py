"""Data that all keys of a store share under the same rules, for the compiled search."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from formulations.quorumstore.enumeration.screening import miss_steps
from placement.quorumstore import LossScope, QuorumProblem, Redirect, ThresholdLimits
from placement.support.checks import FloatArray

if TYPE_CHECKING:
    from formulations.quorumstore._kernel import _Store

__all__ = ["Allowed", "CompiledStore"]

Allowed = tuple[int, int, int, int]
"""Limits (normal reads, normal writes, worst reads, worst writes) as numbers of grid values."""


@dataclass(frozen=True, eq=False)
class CompiledStore:
    """Data that all keys of one store under the same rules share, for the kernel.

    Attributes
    ----------
    grid
        All distinct RTTs and latencies after redirection: every threshold is one of them ("P1").
    handle
        The kernel's own tables.
    pairs
        The (N, R, W) worth looking at.
    shapes
        The same with the most replicas that may share a region, shape (pairs, 4).
    ways
        C(N, F) of each pair; 0 without losses, or without a given number of lost sites.
    steps
        m(k) − m(k−1) of conditions 1 and 3 at k = 0, 1, …: reads normally, reads after losses,
        writes likewise; shape (pairs, 4, largest N + 1).
    """

    grid: FloatArray
    handle: _Store
    pairs: tuple[tuple[int, int, int], ...]
    shapes: npt.NDArray[np.int32]
    ways: FloatArray
    steps: FloatArray

    @classmethod
    def of(cls, problem: QuorumProblem) -> CompiledStore:
        """Tabulate the store of `problem`, whose own demand does not matter.

        O(n² log n), and O(n) for each site of each loss where clients are redirected.
        """
        from formulations.quorumstore import _kernel

        rules = problem.rules
        losses = problem.losses if rules.contingency else ()
        moves = _ServedAfterLosses(problem, losses)
        count = len(problem.sites)
        stacked = np.concatenate([problem.rtt, moves.latency])
        grid, ranks = np.unique(stacked, return_inverse=True)
        ranks = ranks.reshape(stacked.shape).astype(np.int32)
        single = rules.loss is LossScope.SITE
        failures = rules.failures if single and losses else 0
        sizes = (
            count,
            len(grid),
            len(moves.latency),
            moves.variant_of.shape[1],
            len(losses),
            len(moves.sites),
            failures,
            # Where clients stay, losing another replica as well never helps.
            max(1, failures) if not problem.redirects else 1,
        )
        store = _kernel.create(
            sizes,
            grid,
            ranks[:count],
            ranks[count:],
            moves.variant_of,
            moves.begin,
            moves.sites,
            moves.variants,
            problem.region_index.astype(np.int32),
        )
        escapes = failures > 0 and problem.redirects
        width = max(total for total, _, _ in problem.pairs) + 1
        shapes, ways = [], []
        steps = np.zeros((len(problem.pairs), 4, width))
        for row, (total, read, write) in zip(steps, problem.pairs, strict=True):
            shapes.append((total, read, write, problem.region_cap(total, max(read, write))))
            ways.append(float(comb(total, failures)) if failures else 0.0)
            row[0, : total + 1] = miss_steps(total, read, 0, escapes=False)
            row[2, : total + 1] = miss_steps(total, write, 0, escapes=False)
            if failures:
                row[1, : total + 1] = miss_steps(total, read, failures, escapes=escapes)
                row[3, : total + 1] = miss_steps(total, write, failures, escapes=escapes)
        return cls(
            grid, store, problem.pairs, np.array(shapes, dtype=np.int32), np.array(ways), steps
        )

    @cached_property
    def values(self) -> list[float]:
        """The grid as a list, for look-ups of single values."""
        return [float(value) for value in self.grid]

    def allowed(self, limits: ThresholdLimits) -> Allowed:
        """Limits as numbers of allowed grid values."""
        return (
            bisect_right(self.values, limits.normal_read),
            bisect_right(self.values, limits.normal_write),
            bisect_right(self.values, limits.worst_read),
            bisect_right(self.values, limits.worst_write),
        )


class _ServedAfterLosses:
    """Sites that serve the clients of every site after every loss, and the latencies then.

    Attributes
    ----------
    latency
        One row for each pair of a lost site and its survivor: latency of the clients of the site to
        every replica; shape (variants, n).
    variant_of
        Rows of `latency` of each site, -1 where it has fewer than others; shape (n, most).
    begin, sites, variants
        Sites of loss l are ``sites[begin[l]:begin[l + 1]]``, with their rows, -1 for clients that
        stay.
    """

    latency: FloatArray
    variant_of: npt.NDArray[np.int32]
    begin: npt.NDArray[np.int32]
    sites: npt.NDArray[np.int32]
    variants: npt.NDArray[np.int32]

    def __init__(self, problem: QuorumProblem, losses: tuple[tuple[int, ...], ...]) -> None:
        count = len(problem.sites)
        hops = problem.rules.redirect is Redirect.HOP
        known: dict[tuple[int, int], int] = {}
        rows: list[FloatArray] = []
        own: list[list[int]] = [[] for _ in range(count)]
        sites: list[int] = []
        variants: list[int] = []
        begin = [0]
        for lost in losses:
            for site in lost:
                variant = -1
                if problem.redirects:
                    survivor = problem.closest_survivor(site, lost)
                    variant = known.setdefault((site, survivor), len(known))
                    if variant == len(rows):
                        hop = problem.rtt[site, survivor] if hops else 0.0
                        rows.append(hop + problem.rtt[survivor])
                        own[site].append(variant)
                sites.append(site)
                variants.append(variant)
            begin.append(len(sites))
        most = max(len(mine) for mine in own)
        padded = [mine + [-1] * (most - len(mine)) for mine in own]
        self.latency = np.array(rows, dtype=np.float64).reshape(len(rows), count)
        self.variant_of = np.array(padded, dtype=np.int32).reshape(count, most)
        self.begin = np.array(begin, dtype=np.int32)
        self.sites = np.array(sites, dtype=np.int32)
        self.variants = np.array(variants, dtype=np.int32)
