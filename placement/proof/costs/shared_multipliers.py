"""Multipliers of one leader that are moved along to others.

A certificate may hold multipliers u of a leader k once, with a site s_c for each client c. Under
another leader ℓ they stand for

    u_c(ℓ) = max(0, min(u_c + B_c·(d(s_c, ℓ) − d(s_c, k)), A_c·d(c, ℓ))),

computed in doubles: what client c pays if s_c serves it, up to what it pays at ℓ. Any multipliers
give valid bounds (:mod:`placement.proof.leader_proof`), so nothing about u, s and k need be proved.

>>> import numpy as np
>>> moved = SharedMultipliers(0, np.array([5.0, 5.0]), np.array([0, 1]))
>>> rtt = np.array([[0.0, 2.0], [2.0, 0.0]])
>>> moved.under(1, np.array([1.0, 1.0]), np.array([9.0, 1.0]), rtt).tolist()
[7.0, 1.0]
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from placement.support.checks import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class SharedMultipliers:
    """Multipliers of a leader, and the site that serves each client under it.

    Attributes
    ----------
    leader
        k.
    u
        Multipliers, ms times operations, shape (active clients,).
    serving
        Sites, shape (active clients,).
    """

    leader: int
    u: FloatArray
    serving: IntArray

    @classmethod
    def read(cls, entry: Sequence[Any], sites: int, clients: int) -> SharedMultipliers:
        """Read an entry of a certificate.

        Raises
        ------
        ValueError
            For another number of clients, a site that does not exist, or no finite number.
        """
        leader, given, serving = entry
        u, of = np.array(array("d", given)), np.array([index(s) for s in serving], dtype=np.intp)
        if len(u) != clients or len(of) != clients or not np.isfinite(u).all():
            raise ValueError("shared multipliers have the wrong length or are not finite")
        if not 0 <= index(leader) < sites or not ((of >= 0) & (of < sites)).all():
            raise ValueError("shared multipliers name a site that does not exist")
        return cls(index(leader), u, of)

    def under(
        self, leader: int, relay: FloatArray, fixed: FloatArray, site_rtt: FloatArray
    ) -> FloatArray:
        """Return the multipliers of another leader.

        Parameters
        ----------
        leader
            ℓ.
        relay, fixed
            B_c and A_c·d(c, ℓ), shape (active clients,).
        site_rtt
            RTTs between sites, ms, shape (sites, sites).
        """
        moved = site_rtt[self.serving, leader] - site_rtt[self.serving, self.leader]
        return np.asarray(np.maximum(np.minimum(self.u + relay * moved, fixed), 0.0))
