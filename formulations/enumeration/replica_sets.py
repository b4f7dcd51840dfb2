"""Many replica sets at a time: enumeration in lexicographic order, and Eq. 1 of their leaders.

Eq. 1 of one set R is the sum of three parts that are cheap to share:

    near_R          = Σ_c A[c]·d(c, near)                        the same for every leader
    F_R[r]          = Σ_{c: near(c, R) = r} B[c]                 what each replica passes on
    score(ℓ, R, q)  = near_R + Σ_{r ∈ R} F_R[r]·d(r, ℓ) + Σ_c G[c]·d(c, ℓ) + D·q

Sets that begin alike share the search for the nearest replica: the RTT to it is carried from a
prefix to its extensions, one minimum per client and set. Sites are added in ascending order, so
"closer than all before" is the tie rule of :func:`placement.evaluation.score.nearest`. One gather
of d(r, s) over all pairs of R gives both the relayed round trips and the quorum waits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from placement.evaluation.cost_model import cost_model
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray, IntArray

BLOCK = 100_000
"""Sets × clients evaluated at a time: enough to amortise NumPy, few enough for the cache."""


class ReplicaSets(NamedTuple):
    """Block of replica sets, or of prefixes, with the cost of each set to each client."""

    members: IntArray  #: site indices, ascending in each row, shape (n, r)
    #: RTT of every demanding client to its nearest member, ms, shape (n, clients)
    to_near: FloatArray
    #: position of that member in its row, shape (n, clients); empty when it does not matter
    near: npt.NDArray[np.unsignedinteger]


@dataclass(frozen=True, eq=False)
class SetEvaluator:
    """The numbers of a problem in the order in which replica sets need them.

    Clients here are the (scenario, client) pairs that send anything to their nearest replica.
    """

    rtt: FloatArray  #: d(c, r) with sites first: shape (sites, clients)
    weight: FloatArray  #: A, shape (clients,)
    #: per scenario, the slice of its clients and their B; none when nothing is relayed
    relay: tuple[tuple[slice, FloatArray], ...]
    site_rtt: FloatArray  #: d(r, s), shape (scenarios, sites, sites)
    #: Σ_c G[c]·d(c, ℓ) per leader, infinite if the site cannot lead; shape (sites,)
    alone: FloatArray
    quorum: FloatArray  #: D, shape (scenarios,)
    votes: int  #: m, the votes a commit waits for
    #: cost_weight·price of a replica under each leader, and the price itself, both of shape (sites,
    #: sites) and indexed [ℓ, r]; None when money does not matter
    money: tuple[FloatArray, FloatArray] | None
    budget: float  #: most that a set may cost, with room for rounding
    #: `weight_of_cost`, `paid`: weight of the cost, and the price of each site as each client's
    #: nearest replica, shape (clients, sites); None: reads from the nearest replica cost nothing
    weight_of_cost: float = 0.0
    paid: FloatArray | None = None

    @classmethod
    def of(cls, problem: Problem) -> SetEvaluator:
        """Gather the data of a problem for the evaluation of replica sets."""
        demand, rules = problem.demand, problem.rules
        sends = (demand.near > 0) | (demand.relay > 0)
        ends = np.cumsum(sends.sum(axis=1))
        starts = ends - sends.sum(axis=1)
        relays = bool(demand.relay.any())
        alone = (demand.direct[:, np.newaxis, :] @ demand.client_rtt).sum(axis=(0, 1))
        money, budget = None, np.inf
        if rules.budget is not None or rules.cost_weight:
            sites = range(len(rules.may_hold))
            price = np.array([problem.site_costs(ell) for ell in sites], dtype=float)
            money = (rules.cost_weight * price, price)
            if rules.budget is not None:
                budget = rules.budget + 1e-9 * (1 + abs(rules.budget))
        model = cost_model(problem.instance) if "near reads" in problem.cost_parts else None
        paid = None if model is None else model.nearest
        return cls(
            rtt=np.ascontiguousarray(demand.client_rtt[sends].T),
            weight=demand.near[sends],
            relay=tuple(
                (slice(first, last), demand.relay[k][sends[k]])
                for k, (first, last) in enumerate(zip(starts, ends, strict=True))
                if relays
            ),
            site_rtt=demand.site_rtt,
            alone=np.where(rules.may_lead, alone, np.inf),
            quorum=demand.quorum,
            votes=rules.quorum,
            money=money,
            budget=budget,
            weight_of_cost=rules.cost_weight,
            paid=None if paid is None else paid[sends[0]],
        )

    @property
    def needs_place(self) -> bool:
        """Return whether it matters which replica is the nearest, and not only how far it is."""
        return bool(self.relay) or self.paid is not None

    def scores(self, sets: ReplicaSets) -> tuple[FloatArray, FloatArray]:
        """Eq. 1 of every leader in every set, with the votes of whichever replicas answer first.

        Two arrays of shape (r, n), leader by position in the set. The first is Eq. 1 plus the
        weighted price, infinite where the site may not lead or the budget is passed; it is exact
        when every replica may vote and no rule binds the voters, and a lower bound otherwise. The
        second is its part Σ D·q. O(n·(C + r²·(1 + m))). Equal to the evaluator to rounding, not bit
        for bit.
        """
        members = np.ascontiguousarray(sets.members.T)
        size, count = members.shape
        score = self.alone[members]
        score += sets.to_near @ self.weight
        wait = np.zeros((size, count))
        pairs = members[:, np.newaxis] * len(self.alone) + members
        for k, between in enumerate(self.site_rtt):
            if not self.relay and not self.quorum[k]:
                continue
            rtt = np.take(between, pairs)  # (r, r, n): d(R[p], R[q])
            if self.relay:
                clients, weight = self.relay[k]
                passed = _passed_on(sets.near[:, clients], weight, size)
                score += np.einsum("np,pqn->qn", passed, rtt)
            if self.quorum[k]:
                for leader in range(size):
                    answers = [rtt[leader, voter] for voter in range(size) if voter != leader]
                    wait[leader] += self.quorum[k] * _kth_smallest(answers, self.votes - 1)
        if self.money is not None:
            weighted, price = (np.take(table, pairs).sum(axis=1) for table in self.money)
            if self.paid is not None:
                servers = np.take_along_axis(sets.members, sets.near.astype(np.intp), axis=1)
                reads = self.paid[np.arange(len(self.paid)), servers].sum(axis=1)
                weighted, price = weighted + self.weight_of_cost * reads, price + reads
            score += np.where(price <= self.budget, weighted, np.inf)
        return score + wait, wait


def replica_sets(
    evaluator: SetEvaluator, may_hold: BoolArray, must_hold: BoolArray, size: int
) -> Iterator[ReplicaSets]:
    """Yield every set of `size` sites from `must_hold` to `may_hold`, in lexicographic order."""
    sites = np.nonzero(may_hold)[0]
    clients = evaluator.rtt.shape[1]
    places = np.dtype(np.uint8 if size < 256 else np.uint16)
    nobody = ReplicaSets(
        np.zeros((1, 0), dtype=np.intp),
        np.full((1, clients), np.inf),
        np.zeros((1, clients if evaluator.needs_place else 0), dtype=places),
    )
    start = np.zeros(1, dtype=np.intp)
    yield from _extend(evaluator, sites, must_hold[sites], nobody, start, size)


def _extend(
    evaluator: SetEvaluator,
    sites: IntArray,
    pinned: BoolArray,
    prefixes: ReplicaSets,
    start: IntArray,
    size: int,
) -> Iterator[ReplicaSets]:
    """Add one site at a time, depth first; a prefix goes on at position `start` of `sites`."""
    length = prefixes.members.shape[1]
    if length == size:
        yield prefixes
        return
    # Pinned sites are not passed over, and leave as many places as there are of them.
    pins_after = np.append(np.cumsum(pinned[::-1])[::-1], 0)
    next_pin = np.append(np.where(pinned, np.arange(len(sites)), len(sites)), len(sites))
    next_pin = np.minimum.accumulate(next_pin[::-1])[::-1]
    free = size - length - pins_after[start]
    stop = np.minimum(len(sites) - (size - length) + 1, next_pin[start] + 1)
    first = np.where(free > 0, start, next_pin[start])
    widths = np.where(free >= 0, np.maximum(stop - first, 0), 0)
    parents = np.repeat(np.arange(len(start)), widths)
    offsets = np.arange(len(parents)) - np.repeat(np.cumsum(widths) - widths, widths)
    added = first[parents] + offsets
    block = max(1, BLOCK // max(1, evaluator.rtt.shape[1]))
    for begin in range(0, len(parents), block):
        part = slice(begin, begin + block)
        longer = _add(evaluator, prefixes, parents[part], sites[added[part]])
        yield from _extend(evaluator, sites, pinned, longer, added[part] + 1, size)


def _add(
    evaluator: SetEvaluator, prefixes: ReplicaSets, parents: IntArray, sites: IntArray
) -> ReplicaSets:
    """Return the sets with one site more for each of `parents` (rows of `prefixes`)."""
    before = prefixes.to_near[parents]
    new = evaluator.rtt[sites]
    near = prefixes.near[parents]
    if evaluator.needs_place:
        np.putmask(near, new < before, prefixes.members.shape[1])
    return ReplicaSets(
        np.column_stack([prefixes.members[parents], sites]), np.minimum(before, new), near
    )


def _passed_on(near: npt.NDArray[np.unsignedinteger], weight: FloatArray, size: int) -> FloatArray:
    """F_R[r]: weight that each position of each set passes on, shape (n, r)."""
    count = len(near)
    place = np.arange(count)[:, np.newaxis] * size + near
    weights = np.broadcast_to(weight, place.shape)
    total = np.bincount(place.ravel(), weights.ravel(), minlength=count * size)
    return np.asarray(total.reshape(count, size), dtype=np.float64)


def _kth_smallest(columns: list[FloatArray], k: int) -> FloatArray | float:
    """Elementwise k-th smallest of several arrays; 0 for k = 0: the leader's own vote is enough."""
    if k == 0:
        return 0.0
    smallest: list[FloatArray] = []
    for column in columns:
        value = column
        for i, other in enumerate(smallest):
            smallest[i], value = np.minimum(other, value), np.maximum(other, value)
        if len(smallest) < k:
            smallest.append(value)
    return smallest[k - 1]
