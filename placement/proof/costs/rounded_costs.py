r"""The costs of one leader in int64, rounded down: the quick form of the bound.

Why a rounded bound is a bound
------------------------------
L(I, O, u, β) of :mod:`placement.proof.leader_proof` does not fall when a cost w_cj, a price, K or
D·r rises, and u and β may have any values (β >= 0). So take a grid 2^-g and

    w'_cj = ⌊ fl(fl(fl(A_c·d(c,j)) + n_cj) + fl(B_c·d(j,ℓ))) · (1 − 2^-51) · 2^g ⌋   <=   w_cj · 2^g

(four roundings of at most 1 + 2^-53 each, of numbers that are not negative, for
(1 + 2^-53)^4 (1 − 2^-51) < 1; n_cj: a price of j as the nearest replica of c), K and D·r likewise,
prices, u and β rounded down. On whole numbers int64 is exact, so L' <= L · 2^g with no analysis of
errors: where L' reaches the claim, rounded *up* to the grid, L does. A rounded bound is some
(n + 1) · |C| units of the grid too low; where it does not reach the claim, exact integers decide.

Why nothing wraps around
------------------------
With n replicas at most and T the sum of the largest costs of all clients, K, the largest D·r and
all prices, g is chosen so that 2 (n + 4) T 2^g < 2^60. The multipliers come from a file: they have
a rounded form only where Σ |u| + Σ β <= 2 T, which is checked in doubles, before anything becomes
an integer. Then |ρ_j| <= 4 T 2^g, and all sums over clients stay below 2^62. Transfers of cost have
one where they sum to T at most; they change the costs of all clients together by 2 T at most. Sums
over sites are made of Python's integers.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np
import numpy.typing as npt

from placement.proof.claim import Claim, Integers, Scale, wait_columns
from placement.proof.costs.cheap_pairs import (
    CompiledPairs,
    SortedBetas,
    compiled_sums,
    limits_above,
)
from placement.proof.costs.detours import Detours
from placement.proof.costs.multipliers import Betas, CostTransfers
from placement.support.checks import BoolArray, FloatArray, IntArray

if TYPE_CHECKING:
    from placement.proof._pair_sums import _Pairs

Whole = npt.NDArray[np.int64]

BELOW = 1 - 2.0**-51


@dataclass
class _Made:
    """Lists and detours of costs of pairs, made when they are first asked for."""

    pairs: CompiledPairs | None = None  # all that any state needs
    detours: Detours | None = None


class TableCosts:
    """A table of costs of pairs of a client and a site in int64, and bounds with them.

    `rank` is the place of each site in the order of each client; costs have its shape (clients,
    sites), on the grid of the multipliers. Without a table a kind of costs works them out.
    `constant` is what a bound and a set of replicas cost beside the clients, and `price` what a
    replica costs at each site.
    """

    dtype: type = np.int64

    def __init__(self, rank: IntArray, grid: Scale, table: Integers | None) -> None:
        self.rank, self.grid = rank, grid
        self.constant = 0
        self.price: Integers = np.zeros(rank.shape[1], dtype=self.dtype)
        self._last: tuple[Betas, SortedBetas] | None = None
        self._kept: Integers | None
        self.use_table(table)

    def fits(self, u: FloatArray, beta: Betas) -> bool:
        """Return whether multipliers have a rounded form: Σ |u| + Σ β is at most 2 T."""
        return self.grid.holds(2, u, beta.values)

    def after(self, transfers: CostTransfers) -> Self | None:
        """Return the costs after transfers, for bounds alone; None: without a rounded form."""
        if not self.grid.holds(1, transfers.amounts):
            return None
        changed = copy.copy(self)
        costs = np.array(self._whole_costs(slice(None)))
        transfers.apply(costs, self.grid.whole(transfers.amounts), self.rank)
        changed.use_table(costs)
        return changed

    def use_table(self, costs: Integers | None, made: _Made | None = None) -> None:
        """Take other costs of pairs of a client and a site, shape (clients, sites).

        `made`: what was made of these costs before.
        """
        self._kept = costs
        self._made = _Made() if made is None else made
        self._lists: list[CompiledPairs] = []
        nowhere = np.full(len(self.rank), self.rank.shape[1], dtype=self.rank.dtype)
        self._nearest: list[tuple[frozenset[int], IntArray, Integers]] = [
            (frozenset(), nowhere, np.zeros(len(self.rank), dtype=self.dtype))
        ]

    def for_row(self, grid: Scale) -> Self:
        """Return the same costs of clients for another row: lists of pairs are made once."""
        other = copy.copy(self)
        other.grid = grid
        other.use_table(self._kept, self._made)
        return other

    def evaluation(
        self,
        inside: Collection[int],
        free: Sequence[int],
        u: FloatArray,
        beta: Betas,
        less: int | None = None,
    ) -> tuple[int, list[int]]:
        """Constant part of L, and ρ of every site; only ρ of free sites have a meaning.

        Multipliers :meth:`fits`. Before f(c), u_c is lowered by β_c of the site `less`, to 0 at the
        least.
        """
        clients, sites = self.rank.shape
        held = sorted(inside)
        first, alone = self._served(inside)
        is_free = np.zeros(sites, dtype=bool)
        is_free[list(free)] = True
        whole_u = self.grid.whole(u)
        closing: Integers = np.zeros(clients, dtype=self.dtype)  # T_c
        betas = closing[:0]
        of_beta = self._rounded(beta) if len(beta.clients) else None
        if of_beta is not None:
            if less is not None:
                self._lower(whole_u, less, of_beta, first)
            betas = of_beta.counted(is_free, first)
            np.add.at(closing, of_beta.clients, betas)
        rho = self.price + self._savings(whole_u, first, inside, is_free, of_beta, betas)
        if of_beta is not None:
            np.add.at(rho, of_beta.sites, betas)
        served = whole_u
        if held:
            served = np.minimum(whole_u, alone + closing)
        constant = self.constant + int((served - closing).sum())
        return constant + int(self.price[held].sum()), rho.tolist()

    def detours(self, inside: Collection[int], free: Sequence[int]) -> list[int]:
        """Detour of every site; only those of free sites have a meaning."""
        if self._made.detours is None:
            self._made.detours = Detours(self.rank, self._whole_costs(slice(None)))
        return self._made.detours.of(*self._served(inside), free)

    def reads(self, replicas: Sequence[int]) -> int:
        """Objective of a set of replicas without the wait for the quorum, rounded down."""
        home = np.array(replicas)[self.rank[:, replicas].argmin(axis=1)]
        reads = int(self._costs(np.arange(len(home)), home).sum())
        return self.constant + reads + int(self.price[list(replicas)].sum())

    def least(self, inside: Collection[int], free: Sequence[int]) -> int:
        """Bound of a state with every client at its best site, up to its first one of I."""
        usable = self.rank <= self._served(inside)[0][:, np.newaxis]
        closed = np.ones(len(self.price), dtype=bool)
        closed[[*inside, *free]] = False
        usable[:, closed] = False
        most = np.iinfo(np.int64).max
        costs = np.where(usable, self._whole_costs(slice(None)), most).min(axis=1)
        return self.constant + int(costs.sum())

    # --- passes over the clients ---------------------------------------------------------------

    def _served(self, inside: Collection[int]) -> tuple[IntArray, Integers]:
        """Rank of the first site of I in each client's order, and the cost of the client there.

        Both are kept for the states that go on from one: a site more is one column of the ranks.
        """
        while not self._nearest[-1][0].issubset(inside):
            self._nearest.pop()
        held, first, alone = self._nearest[-1]
        for site in sorted({*inside} - held):
            place = self.rank[:, site]
            nearer = np.flatnonzero(place < first)
            first, alone = first.copy(), alone.copy()
            first[nearer] = place[nearer]
            alone[nearer] = self._costs(nearer, np.full(len(nearer), site))
            held = held | {site}
            self._nearest.append((held, first, alone))
        return first, alone

    def _costs(self, clients: IntArray, sites: IntArray) -> Integers:
        """Costs of pairs of a client and a site."""
        assert self._kept is not None
        return self._kept[clients, sites]

    def _whole_costs(self, part: slice) -> Integers:
        """Costs of some clients, shape (k, sites)."""
        assert self._kept is not None
        return self._kept[part]

    def _savings(
        self,
        u: Whole,
        first: IntArray,
        inside: Collection[int],
        is_free: BoolArray,
        beta: SortedBetas | None,
        betas: Whole,
    ) -> Whole:
        """Return Σ_c min(0, w'_cj + P_cj − u_c) of every site; lists are kept while they serve.

        The first list serves all states, each further one those that go on from a state in which
        few of the pairs before count: like the states of a tree that is searched depth first.
        """
        if self.dtype is object or compiled_sums() is None:
            return self._table_savings(u, first, is_free, beta, betas)
        while self._lists and not self._lists[-1].covers(u, inside, is_free):
            self._lists.pop()
        if not self._lists:
            base = self._made.pairs
            if base is None or not base.covers(u, inside, is_free):
                above = limits_above(u)
                limits = above if base is None else np.maximum(base.limits, above)
                every = np.ones(self.rank.shape[1], dtype=bool)
                pairs = self._compiled_list(limits)
                base = CompiledPairs(pairs, limits, frozenset(), every)
                self._made.pairs = base
            self._lists.append(base)
        totals, fewer = self._lists[-1].sums(u, first, inside, is_free, beta, betas)
        if fewer is not None:
            self._lists.append(fewer)
        return totals

    def _table_savings(
        self,
        u: Whole,
        first: IntArray,
        is_free: BoolArray,
        beta: SortedBetas | None,
        betas: Whole,
    ) -> Whole:
        """Return the same sums from the whole table, where no compiled loops take them."""
        saved = self._whole_costs(slice(None)) - u[:, np.newaxis]
        if beta is not None:
            some = np.flatnonzero(np.diff(beta.starts))
            keys = some[:, np.newaxis] * (self.rank.shape[1] + 1) + self.rank[some]
            sums = np.append(0, np.cumsum(betas))
            before = sums[beta.starts[some], np.newaxis]
            saved[some] += sums[beta.keys.searchsorted(keys)] - before  # P_cj
        saved[~(is_free & (self.rank < first[:, np.newaxis]))] = 0
        return np.asarray(np.minimum(saved, 0).sum(axis=0))

    def _compiled_list(self, limits: Whole) -> _Pairs:
        """Return the list of the cheap pairs, made by the compiled loops."""
        from placement.proof import _pair_sums

        sizes = (*self.rank.shape, self.rank.itemsize)
        table = np.ascontiguousarray(self._whole_costs(slice(None)))
        return _pair_sums.list_table(sizes, self.rank, limits, table)

    @staticmethod
    def _lower(u: Whole, site: int, beta: SortedBetas, first: IntArray) -> None:
        """Lower u_c by β_c of a site, to 0 at the least, where the site comes before f(c)."""
        here = (beta.sites == site) & (beta.places < first[beta.clients])
        at = beta.clients[here]
        u[at] = np.maximum(0, u[at] - beta.values[here])

    def _rounded(self, beta: Betas) -> SortedBetas:
        """Multipliers β rounded down; kept as long as they are the same."""
        if self._last is None or self._last[0] is not beta:
            values = self.grid.whole(beta.values)
            owners = beta.clients[beta.rows]
            self._last = (beta, SortedBetas.sort(owners, beta.sites, values, self.rank))
        return self._last[1]


class RoundedCosts(TableCosts):
    """L(I, O, u, β) without Z(ρ), and the cost of a set of replicas, on a grid in int64.

    `radii` are waits for the quorum, shape (radii,), or of each case, shape (cases, waits). The
    value `needed`, rounded up to the grid, proves the claim. `radius_costs` are D·r, rounded down;
    two radii may have the same. `waits` are D_k·d_k(ℓ, ·) rounded down, shape (scenarios, sites),
    where RTTs vary by interval; else None.
    """

    def __init__(self, claim: Claim, leader: int | None, radii: FloatArray) -> None:
        grid = claim.rounded
        assert grid is not None
        super().__init__(claim.rank, grid, None)
        self.needed = grid.up(claim.needed, claim.bits)
        self.near_costs = grid.near_costs
        self.relay = grid.relay
        self.scenario = claim.scenario
        self.to_leader = np.zeros((len(claim.scenario_rtt), claim.rank.shape[1]))
        self.radius_costs: list[int] = [0]
        self.waits: Whole | None = None
        if leader is not None:
            self.to_leader = claim.to_leader(leader)
            self.constant = int(rounded_constant(claim, leader))
            if claim.varies and len(radii) > 1:
                self.waits = whole(grid.quorum[:, np.newaxis] * claim.scenario_rtt[:, leader])
                self.radius_costs = claim.floor_costs(self.waits, leader)
            else:
                columns = wait_columns(radii)
                self.radius_costs = whole(grid.quorum * columns).sum(axis=1).tolist()
        self.price = grid.whole(claim.price(leader))

    def _costs(self, clients: IntArray, sites: IntArray) -> Integers:
        if self._kept is not None:
            return super()._costs(clients, sites)
        to_leader = self.to_leader[self.scenario[clients], sites]
        return whole(self.near_costs[clients, sites] + self.relay[clients] * to_leader)

    def _compiled_list(self, limits: Whole) -> _Pairs:
        """List the pairs by the compiled loops, without a table of all costs."""
        if self._kept is not None:
            return super()._compiled_list(limits)
        from placement.proof import _pair_sums

        sizes = (*self.rank.shape, self.rank.itemsize, len(self.to_leader))
        near, relay = np.ascontiguousarray(self.near_costs), np.ascontiguousarray(self.relay)
        to_leader = np.ascontiguousarray(self.to_leader)
        scenario = self.scenario.astype(np.int32)
        return _pair_sums.list_sums(
            sizes, BELOW, self.rank, limits, near, relay, to_leader, scenario
        )

    def _whole_costs(self, part: slice) -> Integers:
        """Costs w' of some clients."""
        if self._kept is not None:
            return super()._whole_costs(part)
        cost = self.relay[part, np.newaxis] * self.to_leader[self.scenario[part]]
        cost += self.near_costs[part]
        cost *= BELOW
        return cost.astype(np.int64)  # towards 0, which is down


def rounded_constant(claim: Claim, leader: int | IntArray) -> Whole:
    """Return K of a leader or of several, rounded down."""
    grid = claim.rounded
    assert grid is not None
    direct = whole(grid.direct * claim.client_rtt.T[leader]).sum(axis=-1)
    return np.asarray(direct + whole(grid.scaled(np.array(claim.constant))))


def whole(costs: FloatArray) -> Whole:
    """Sums of at most two products of doubles, none negative, rounded down for certain."""
    return (np.asarray(costs) * BELOW).astype(np.int64)
