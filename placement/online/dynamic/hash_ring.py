"""The ring of nodes: where an object's static copies and its dynamic copy of each site live.

Matri et al. 2018, sections 4 and 7.1; Karger et al., STOC 1997.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placement.errors import InputError
from placement.support.checks import BoolArray, FloatArray, IntArray, numbers_of, whole

__all__ = ["Ring", "random_ring"]


@dataclass(frozen=True, eq=False)
class Ring:
    """Nodes at positions on [0, 1), each in a site.

    Attributes
    ----------
    position
        Position of each node, increasing, shape (nodes,).
    site
        Site of each node, shape (nodes,).
    sites
        Number of sites; each has a node.
    """

    position: FloatArray
    site: IntArray
    sites: int

    def __post_init__(self) -> None:
        sites = whole(self.sites, "sites", minimum=1)
        position, site = numbers_of(self.position, "position"), numbers_of(self.site, "site")
        if position.ndim != 1 or position.shape != site.shape:
            raise InputError(
                "wrong shape",
                field="site",
                value=site.shape,
                expected=f"that of position, {position.shape}, with one axis",
            )
        if not ((position >= 0) & (position < 1)).all() or (np.diff(position) < 0).any():
            raise InputError(
                "not positions on the ring", field="position", expected="increasing, 0 to < 1"
            )
        if set(site.tolist()) != set(range(sites)):
            raise InputError(
                "not the sites of nodes",
                field="site",
                value=sorted(set(site.tolist())),
                expected=f"each of 0 to {sites - 1}",
            )
        position.flags.writeable = False
        object.__setattr__(self, "position", position)
        object.__setattr__(self, "site", site.astype(np.intp))
        object.__setattr__(self, "sites", sites)

    def static_nodes(self, keys: FloatArray, copies: int = 3) -> IntArray:
        """Nodes with the static copies of keys at the given positions, shape (keys, copies).

        The primary is the first node at or after the key. The other copies are on the next nodes:
        two of them may share a site.
        """
        copies = whole(copies, "copies", minimum=1, maximum=len(self.position))
        first = np.searchsorted(self.position, keys)
        return ((first[:, None] + np.arange(copies)) % len(self.position)).astype(np.intp)

    def static_sites(self, keys: FloatArray, copies: int = 3) -> BoolArray:
        """Return whether each site has a static copy, shape (sites, keys)."""
        nodes = self.static_nodes(keys, copies)
        result = np.zeros((self.sites, len(keys)), dtype=bool)
        for column in nodes.T:
            result[self.site[column], np.arange(len(keys))] = True
        return result

    def holders(self, keys: FloatArray) -> IntArray:
        """Node that would hold the dynamic copy of each key at each site, shape (sites, keys).

        The first node of the site on a walk of the ring from the key on. O(sites · keys · log).
        """
        result = np.empty((self.sites, len(keys)), dtype=np.intp)
        for site in range(self.sites):
            mine = np.flatnonzero(self.site == site)
            result[site] = mine[np.searchsorted(self.position[mine], keys) % len(mine)]
        return result

    def contacts(self, keys: FloatArray, copies: int = 3) -> IntArray:
        """Node of each site that is asked for each key, shape (sites, keys).

        Where the site has a static copy, the first of its nodes that holds one; elsewhere the
        holder of the dynamic copy.
        """
        result = self.holders(keys)
        for column in self.static_nodes(keys, copies).T[::-1]:
            result[self.site[column], np.arange(len(keys))] = column
        return result


def random_ring(rng: np.random.Generator, sites: int, nodes_per_site: int = 16) -> Ring:
    """Put `nodes_per_site` nodes of each site at random positions."""
    sites = whole(sites, "sites", minimum=1)
    nodes_per_site = whole(nodes_per_site, "nodes_per_site", minimum=1)
    count = sites * nodes_per_site
    owner = rng.permutation(np.repeat(np.arange(sites), nodes_per_site))
    return Ring(np.sort(rng.random(count)), owner.astype(np.intp), sites)
