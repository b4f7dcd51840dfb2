"""The problem under one leader, and a node of its search tree."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from formulations.exact.numpy_kernel.inner_minimum import InnerProblem
from formulations.exact.reduced_problem import ReducedProblem
from placement.support.checks import FloatArray, IntArray

__all__ = ["LeaderView", "TreeNode"]


@dataclass(frozen=True)
class LeaderView:
    """The problem under one leader: what is the same in all nodes of its tree.

    Attributes
    ----------
    index
        The leader; −1 for none.
    costs
        Score that a client adds when a site serves it, shape (active clients, sites).
    rank
        Position of each site in the client's order of preference, shape (active clients, sites).
    constant
        Score that does not depend on the replicas.
    price
        Price of each site in units of the score, shape (sites,).
    inner
        The inner problem of the bound.
    """

    index: int
    costs: FloatArray
    rank: IntArray
    constant: float
    price: FloatArray
    inner: InnerProblem

    @classmethod
    def of(cls, core: ReducedProblem, rank: IntArray, leader: int) -> Self:
        """Return the view of a leader."""
        rtt = core.client_rtt[core.active]
        near, relay = core.near[core.active], core.relay[core.active]
        relayed = np.zeros((1, core.sites))
        if leader >= 0:
            relayed = core.demand.site_rtt[core.scenario, :, leader]
        return cls(
            leader,
            near[:, np.newaxis] * rtt + relay[:, np.newaxis] * relayed,
            rank,
            float(core.direct[leader]) if leader >= 0 else 0.0,
            np.zeros(core.sites) if core.price is None else core.price[max(leader, 0)],
            InnerProblem(core, leader),
        )


@dataclass
class TreeNode:
    """A state with its multipliers; the sites not yet tried as replicas shrink in place."""

    held: list[int]
    free: IntArray
    fixed_cost: FloatArray
    fixed_rank: IntArray
    u: FloatArray
    frequency: FloatArray
    bound: float
    root: bool = False

    @classmethod
    def root_of(cls, core: ReducedProblem, view: LeaderView, u: FloatArray) -> Self:
        """Return the root of the tree of a leader, with pinned sites and the leader held."""
        pinned = core.rules.must_hold.copy()
        if view.index >= 0:
            pinned[view.index] = True
        clients = len(u)
        node = cls(
            held=[],
            free=np.nonzero(core.rules.may_hold & ~pinned)[0],
            fixed_cost=np.full(clients, math.inf),
            fixed_rank=np.full(clients, core.sites, dtype=np.intp),
            u=np.zeros(clients),
            frequency=np.full(core.sites, 0.5),
            bound=0.0,
            root=True,
        )
        for site in np.nonzero(pinned)[0].tolist():
            node.hold(view, site)
        node.u = np.minimum(u, node.fixed_cost)
        return node

    def hold(self, view: LeaderView, site: int) -> None:
        """Add a certain replica: no client uses a site that it ranks after this one."""
        self.held.append(site)
        self.free = self.free[self.free != site]
        nearer = view.rank[:, site] < self.fixed_rank
        self.fixed_rank = np.where(nearer, view.rank[:, site], self.fixed_rank)
        self.fixed_cost = np.where(nearer, view.costs[:, site], self.fixed_cost)
        self.u = np.minimum(self.u, self.fixed_cost)

    def split(self, view: LeaderView, site: int) -> Self:
        """Take a site out of this node, and return the node in which the site is held."""
        self.free = self.free[self.free != site]
        self.root = False
        child = replace(self, held=list(self.held), frequency=self.frequency.copy())
        child.hold(view, site)
        return child
