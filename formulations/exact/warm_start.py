"""Bounds and multipliers to start a search from: of another |R|, or of another leader.

At given multipliers the reduced costs of a leader bound every |R| at once: only the inner problem
uses the number. A kernel keeps them whenever it bounds a leader
(:meth:`formulations.exact.kernel.Kernel.bounds_from_memory`), so that most leaders of the next
problem are eliminated before a loop over the clients.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.exact.kernel import Kernel
from formulations.exact.reduced_problem import ReducedProblem
from placement.model.constraints import GroupRule
from placement.support.checks import FloatArray, IntArray

_BITS = 16
"""Bits of the largest multiplier that are kept, as in C: certificates stay short, bounds good."""


_SHARED = (
    "active",
    "direct",
    "leaders",
    "families",
    "floors",
    "_wait_floors",
    "_least_wait",
    "leader_matters",
    "granularity",
)
"""Cached properties that do not depend on |R|."""


def _numbers(group: GroupRule) -> tuple[object, ...]:
    """Return the numbers of a rule, without its labels."""
    return group.role, group.cap, group.min_domains, group.domain, group.least


def differ_in_size_only(one: ReducedProblem, other: ReducedProblem) -> bool:
    """Return whether two problems differ in the number of replicas at most.

    Only problems with the very same demand are compared, as problems on one instance have it.
    """
    first, second = one.rules, other.rules
    if one.cases is not None:
        return False  # the cases depend on |R|
    if one.demand is not other.demand or len(first.groups) != len(second.groups):
        return False
    pairs = (
        (first.may_hold, second.may_hold),
        (first.must_hold, second.must_hold),
        (first.may_vote, second.may_vote),
        (first.must_vote, second.must_vote),
        (first.may_lead, second.may_lead),
        *((a.labels, b.labels) for a, b in zip(first.groups, second.groups, strict=True)),
    )
    if (first.voters, first.quorum) != (second.voters, second.quorum):
        return False
    if [_numbers(g) for g in first.groups] != [_numbers(g) for g in second.groups]:
        return False
    if one.price is None or other.price is None:
        same = one.price is other.price
    else:
        same = np.array_equal(one.price, other.price)
    return same and all(a is b or a.tobytes() == b.tobytes() for a, b in pairs)


def take_shared(core: ReducedProblem, other: ReducedProblem) -> None:
    """Give a problem the cached arrays, none of |R|, of another one that differs in |R| only."""
    for name in _SHARED:
        if name in other.__dict__:
            core.__dict__[name] = other.__dict__[name]


@dataclass(frozen=True, eq=False)
class WarmStart:
    """Multipliers of a search, for one of the same clients; any numbers give valid bounds."""

    clients: IntArray
    multipliers: Mapping[int, FloatArray]

    @staticmethod
    def known(given: object | None, clients: IntArray) -> Mapping[int, FloatArray] | None:
        """Return the multipliers of a warm start of these clients; None: it is none of them."""
        if not isinstance(given, WarmStart):
            return None
        same = given.clients is clients or np.array_equal(given.clients, clients)
        return given.multipliers if same else None


@dataclass(frozen=True, slots=True)
class WarmBounds:
    """Leaders with the bounds of a kernel's memory; `proven`: what their last multipliers prove.

    `left` are the others, the leader of the incumbent first: it gives them multipliers.
    """

    bounds: dict[int, float]
    proven: dict[int, float]
    left: list[int]


def warm_bounds(
    kernel: Kernel,
    leaders: Sequence[int],
    multipliers: Mapping[int, FloatArray],
    floors: FloatArray,
    limits: tuple[int, float],
) -> WarmBounds:
    """Bound leaders by the memory of a kernel that was resized, and improve its incumbent.

    A leader without `multipliers` of the search before is not out, whatever the kernel says: it may
    have been stopped between the bound and the note of it. `floors` are static bounds, shape
    (leaders,); `limits` swaps and seconds, as in
    :meth:`formulations.exact.kernel.Kernel.bounds_from_memory`. O(leaders · sites), and the
    descents.
    """
    bounds = kernel.bounds_from_memory(leaders, *limits)
    if not multipliers.keys() >= set(leaders):
        bounds[[leader not in multipliers for leader in leaders]] = math.nan
    still = ~(bounds >= kernel.counters().cutoff)  # NaN: never bounded
    proven = dict(zip(leaders, bounds.tolist(), strict=True))
    left = [leaders[i] for i in still.nonzero()[0].tolist()]
    for leader in left:
        del proven[leader]
    found = kernel.incumbent()
    if left and found is not None:
        left.sort(key=lambda leader: leader != found.leader)
    return WarmBounds(
        dict(zip(leaders, np.fmax(bounds, floors).tolist(), strict=True)), proven, left
    )


def adapt_multipliers(
    core: ReducedProblem, u: FloatArray, leader: int, replicas: Sequence[int], others: Sequence[int]
) -> FloatArray:
    """Guess multipliers >= 0 of other leaders, shape (others, active clients), from good ones.

    A multiplier is about what its client costs. When the leader changes, the relay from the
    client's replica does: u_c + B_c (d(r, ℓ') − d(r, ℓ)), r the nearest of `replicas`, which are
    good ones for `leader`. O(others · clients).
    """
    rtt = core.client_rtt[:, list(replicas)][core.active]
    nearest = np.asarray(replicas, dtype=np.intp)[rtt.argmin(axis=1)]
    relay = core.relay[core.active]
    base = u - relay * core.relays(nearest, leader)
    out = np.empty((len(others), len(u)))
    for row, other in zip(out, others, strict=True):
        np.maximum(base + relay * core.relays(nearest, other), 0.0, out=row)
    largest = float(out.max(initial=0.0))
    if largest > 0:
        grain = math.ldexp(1.0, math.frexp(largest)[1] - _BITS)
        out /= grain
        np.rint(out, out=out)
        out *= grain
    return out
