"""The costs of one leader in exact integers: the form of the bound that decides last.

Every double is a whole multiple of a power of two. All data are put on one grid that is fine enough
for their products, so that nothing is rounded but multipliers, of which any value is valid.
"""

from __future__ import annotations

import numpy as np

from placement.proof.claim import Claim, ExactScale, Integers, integers, wait_columns
from placement.proof.costs.rounded_costs import TableCosts
from placement.support.checks import FloatArray


class ExactCosts(TableCosts):
    """L(I, O, u, β) without Z(ρ), and the cost of a set of replicas, in exact integers.

    Parameters and attributes are as of :class:`~placement.proof.costs.rounded_costs.RoundedCosts`.
    """

    dtype = object

    def __init__(self, claim: Claim, leader: int | None, radii: FloatArray) -> None:
        exact = claim.exact
        costs = exact.near[:, np.newaxis] * exact.client_rtt[claim.clients]
        if exact.nearest_price is not None:
            costs = costs + exact.nearest_price
        if leader is not None:
            to_leader = claim.exact_rtt(claim.to_leader(leader))
            costs = costs + exact.relay[:, np.newaxis] * to_leader[claim.scenario]
        super().__init__(claim.rank, ExactScale(claim.bits), costs)
        self.needed = claim.needed
        self.radius_costs: list[int] = [0]
        self.waits: Integers | None = None
        if leader is not None:
            self.constant = int((exact.direct * exact.client_rtt[:, leader]).sum())
            self.constant += int(integers(claim.constant, claim.bits))
            if claim.varies and len(radii) > 1:
                self.waits = exact.quorum[:, np.newaxis] * exact.site_rtt[:, leader]
                self.radius_costs = claim.floor_costs(self.waits, leader)
            else:
                columns = claim.exact_rtt(wait_columns(radii))
                self.radius_costs = (exact.quorum * columns).sum(axis=1).tolist()
        self.price = integers(claim.price(leader), claim.bits)
