"""The costs of one leader in exact integers: the form of the bound that decides last.

Every double is a whole multiple of a power of two. All data are put on one grid that is fine enough
for their products, so that nothing is rounded but multipliers, of which any value is valid.
"""

from __future__ import annotations

import copy
from collections.abc import Collection, Sequence
from typing import Self

import numpy as np

from placement.proof.claim import Claim, Integers, integers, wait_columns
from placement.proof.costs.detours import Detours
from placement.proof.costs.multipliers import Betas, CostTransfers
from placement.support.checks import FloatArray


class ExactCosts:
    """L(I, O, u, β) without Z(ρ), and the cost of a set of replicas, in exact integers."""

    def __init__(
        self, claim: Claim, leaders: int | Sequence[int] | None, radii: FloatArray
    ) -> None:
        exact = claim.exact
        self.bits, self.rank, self.needed = claim.bits, claim.rank, claim.needed
        self.w = exact.near[:, np.newaxis] * exact.client_rtt[claim.clients]
        if exact.nearest_price is not None:
            self.w = self.w + exact.nearest_price
        self.constant = 0
        self.radius_costs: list[int] = [0]
        self.waits: Integers | None = None
        if leaders is not None:
            to_leader = claim.exact_rtt(claim.to_leader(leaders))
            self.w = self.w + exact.relay[:, np.newaxis] * to_leader[claim.scenario]
        if isinstance(leaders, int):
            self.constant = int((exact.direct * exact.client_rtt[:, leaders]).sum())
            self.constant += int(integers(claim.constant, claim.bits))
            if claim.varies and len(radii) > 1:
                self.waits = exact.quorum[:, np.newaxis] * exact.site_rtt[:, leaders]
                self.radius_costs = claim.floor_costs(self.waits, leaders)
            else:
                columns = claim.exact_rtt(wait_columns(radii))
                self.radius_costs = (exact.quorum * columns).sum(axis=1).tolist()
        self.price: Integers = integers(claim.price(leaders), claim.bits)
        self._longer: tuple[Integers, Detours] | None = None

    def fits(self, u: FloatArray, beta: Betas) -> bool:
        """Return True: any multipliers have an exact form."""
        del u, beta
        return True

    def after(self, transfers: CostTransfers) -> Self:
        """Return the costs after transfers, for bounds alone."""
        changed = copy.copy(self)
        changed.w = self.w.copy()
        transfers.apply(changed.w, integers(transfers.amounts, self.bits), self.rank)
        return changed

    def evaluation(
        self,
        inside: Collection[int],
        free: Sequence[int],
        u: FloatArray,
        beta: Betas,
        less: int | None = None,
    ) -> tuple[int, list[int]]:
        """As :meth:`placement.proof.costs.rounded_costs.TableCosts.evaluation`, exactly."""
        clients, sites = self.rank.shape
        held = sorted(inside)
        first = self.rank[:, held].min(axis=1) if held else np.full(clients, sites)
        multipliers = integers(u, self.bits)
        cost = self.w
        closing = np.zeros(clients, dtype=object)  # T_c
        rho: Integers = self.price.copy()
        if len(beta.clients):
            cost = self.w.copy()
            entries: list[dict[int, int]] = [{} for _ in beta.clients]
            values = integers(beta.values, self.bits)
            sites_of = beta.sites.tolist()
            for row, site, value in zip(beta.rows.tolist(), sites_of, values, strict=True):
                entries[row][site] = value
            for c, listed in zip(beta.clients.tolist(), entries, strict=True):
                if less in listed and self.rank[c, less] < first[c]:
                    multipliers[c] = max(0, multipliers[c] - listed[less])
                before = 0
                for j in sorted(free, key=self.rank[c].tolist().__getitem__):
                    if self.rank[c, j] >= first[c]:
                        break
                    cost[c, j] += before
                    before += listed.get(j, 0)
                    rho[j] += listed.get(j, 0)
                closing[c] = before
        rows, columns = np.nonzero(self.rank[:, free] < first[:, np.newaxis])
        if len(rows):
            at = np.array(free)[columns]
            saved = np.minimum(cost[rows, at] - multipliers[rows], 0)
            np.add.at(rho, at, saved)
        served = multipliers.copy()
        if held:
            home = np.array(held)[self.rank[:, held].argmin(axis=1)]
            alone = self.w[np.arange(clients), home] + closing
            served = np.minimum(multipliers, alone)
        prices = sum(int(self.price[s]) for s in held)
        return self.constant + prices + int((served - closing).sum()), rho.tolist()

    def detours(self, inside: Collection[int], free: Sequence[int]) -> list[int]:
        """Detour of every site; only those of free sites have a meaning."""
        if self._longer is None or self._longer[0] is not self.w:
            self._longer = (self.w, Detours(self.rank, self.w))
        clients, sites = self.rank.shape
        held = sorted(inside)
        if not held:
            return [0] * sites
        home = np.array(held)[self.rank[:, held].argmin(axis=1)]
        each = np.arange(clients)
        return self._longer[1].of(self.rank[each, home], self.w[each, home], free)

    def reads(self, replicas: Sequence[int]) -> int:
        """Objective of a set of replicas without the wait for the quorum."""
        home = np.array(replicas)[self.rank[:, replicas].argmin(axis=1)]
        reads = int(self.w[np.arange(len(home)), home].sum()) if len(home) else 0
        return self.constant + reads + sum(int(self.price[s]) for s in replicas)
