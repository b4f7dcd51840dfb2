"""Aggregation over time: from counts per interval to the coefficients of Eq. 1.

Sharov et al., section 3, Eq. 2: with a decay τ >= 1,

    agg_score(T) = agg_score(T−1)/τ + score(T)    ⇒   weights w_k = τ^(k−T),  k = 1..T

τ = 1 is the plain sum, τ = ∞ the last interval alone. With one RTT matrix for all intervals the
aggregate is again an Eq. 1 score with A, B, G, D replaced by their weighted sums, so that no
algorithm loops over intervals. With RTTs that vary by interval, the aggregate is a sum of Eq. 1
scores over *scenarios*, each with its own matrices, that one configuration must serve.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from placement.errors import InputError
from placement.model.instance import Instance
from placement.model.operations import Clause, Operation, Origin, Wait
from placement.support.checks import BoolArray, FloatArray, IntArray, number

# Waits of all operations of an instance, weighted with the demand: what Eq. 1 adds for them


@dataclass(frozen=True, eq=False)
class WaitTerm:
    """A distinct wait of an instance, with the rounds that the demand asks for."""

    wait: Wait  #: origin and clauses; its times are 1
    #: for each clause the domain number of every site at its level, shape (sites,); None where the
    #: clause is about all members
    labels: tuple[IntArray | None, ...]
    #: rounds per scenario and client, weighted with the decay, shape (scenarios, clients)
    weight: FloatArray

    @property
    def origin(self) -> Origin:
        """Return who waits."""
        return self.wait.origin

    @property
    def clauses(self) -> tuple[Clause, ...]:
        """Return the clauses that end the wait."""
        return self.wait.clauses


def wait_times(operations: Sequence[Operation]) -> tuple[tuple[Wait, ...], FloatArray]:
    """Return the distinct waits, and how often each operation waits them, (operations, waits).

    The waits are in the order in which the operations name them.
    """
    found: dict[str, Wait] = {}
    for operation in operations:
        for wait in operation.waits:
            assert isinstance(wait, Wait)  # text was read when the operation was made
            found.setdefault(wait.asked, Wait(wait.origin, wait.clauses))
    place = {asked: j for j, asked in enumerate(found)}
    times = np.zeros((len(operations), len(found)))
    for row, operation in enumerate(operations):
        for wait in operation.waits:
            assert isinstance(wait, Wait)
            times[row, place[wait.asked]] += wait.times
    return tuple(found.values()), times


def wait_terms(
    instance: Instance, operations: Sequence[Operation], counts: FloatArray
) -> tuple[WaitTerm, ...]:
    """Return the distinct waits of some operations with their weights.

    `counts` are weighted, shape (scenarios, clients, operations). InputError for an unknown level,
    or where a site has no domain.
    """
    waits, times = wait_times(operations)
    return tuple(
        WaitTerm(
            wait,
            tuple(_labels(instance, clause) if clause.scope else None for clause in wait.clauses),
            counts @ times[:, j],
        )
        for j, wait in enumerate(waits)
    )


def _labels(instance: Instance, clause: Clause) -> IntArray:
    """Return the domain number of every site at the level of a clause."""
    labels = instance.labels(clause.level)
    for site, label in zip(instance.sites, labels, strict=True):
        if label is None:
            words = f"site {site!r} has no {clause.level}, which the clause '{clause}' needs"
            expected = f"a {clause.level} for every site"
            raise InputError(words, field=f"domains[{clause.level!r}]", expected=expected)
    return np.unique(np.array(labels, dtype=str), return_inverse=True)[1].astype(np.intp)


_MOST_KEPT = 8
"""Demands that an instance keeps beside those of its own operations."""


@dataclass(frozen=True, eq=False)
class Demand:
    """Data that Eq. 1 needs, per scenario k (one, unless RTTs vary by interval)."""

    client_rtt: FloatArray  #: d(c, r) in ms, shape (scenarios, clients, sites)
    site_rtt: FloatArray  #: d(r, s) in ms, shape (scenarios, sites, sites)
    counts: FloatArray  #: weighted operation counts, shape (scenarios, clients, operations)
    coefficients: FloatArray  #: (α, β, γ, δ) of each operation, shape (operations, 4)
    #: `near`, `relay`, `direct`: A, B, G of Eq. 1: weighted round trips client to nearest replica,
    #: nearest replica to leader, client to leader; each of shape (scenarios, clients).
    near: FloatArray
    relay: FloatArray
    direct: FloatArray
    quorum: FloatArray  #: D of Eq. 1: weighted rounds of votes, shape (scenarios,).
    #: weighted number of operations in all, Σ n: score / operations is the mean latency in ms
    operations: float
    #: the distinct waits beside the rounds of votes, with their weights; most often none
    waits: tuple[WaitTerm, ...] = ()
    #: how often each operation waits each of them, shape (operations, waits)
    times: FloatArray = dataclasses.field(default_factory=lambda: np.zeros((0, 0)))
    #: constant ms of each operation, shape (operations,)
    constants: FloatArray = dataclasses.field(default_factory=lambda: np.zeros(0))

    @property
    def scenarios(self) -> int:
        """Number of scenarios."""
        return int(self.client_rtt.shape[0])

    @property
    def has_waits(self) -> bool:
        """Return whether A, B, G and D leave out a part of the score: waits or constants."""
        # asked for every score, so most calls must not read an array
        return bool(self.waits) or (self.constants.size > 0 and bool(self.constants.any()))

    @property
    def constant(self) -> float:
        """Return the part of the score that no configuration changes, ms·operations."""
        return float((self.counts @ self.constants).sum()) if self.constants.any() else 0.0

    def part(self, clients: BoolArray, operations: BoolArray) -> Demand:
        """Return the demand of the operations and clients that two masks name."""
        counts = self.counts * clients[:, np.newaxis] * operations
        alpha, beta, gamma, delta = self.coefficients.T
        return dataclasses.replace(
            self,
            counts=counts,
            near=counts @ alpha,
            relay=counts @ beta,
            direct=counts @ gamma,
            quorum=(counts @ delta).sum(axis=-1),
            operations=float(counts.sum()),
            waits=tuple(
                dataclasses.replace(term, weight=counts @ self.times[:, j])
                for j, term in enumerate(self.waits)
            ),
        )

    @property
    def leaderless(self) -> bool:
        """Return whether there are waits, and no operation needs a leader."""
        return (
            bool(self.waits)
            and not self.coefficients[:, 1:].any()
            and all(term.origin != "leader" for term in self.waits)
        )


def decay_weights(intervals: int, decay: float) -> FloatArray:
    """Weights τ^(k−T) of the intervals k = 1..T, oldest first, for τ >= 1 (infinity allowed)."""
    rate = number(decay, "decay", minimum=1.0, infinite=True)
    age = np.arange(intervals - 1, -1, -1, dtype=np.float64)
    if math.isinf(rate):
        last: FloatArray = np.equal(age, 0).astype(np.float64)
        return last
    weights: FloatArray = 1.0 / np.power(rate, age)
    return weights


def aggregate(
    instance: Instance,
    decay: float = 1.0,
    operations: tuple[Operation, ...] | None = None,
) -> Demand:
    """Aggregate the intervals of an instance into the coefficients of Eq. 1.

    `decay` is τ >= 1 of Eq. 2; `operations` are those under a protocol, None: those of the
    instance. One scenario, or, when RTTs vary, one per interval of any weight. InputError where all
    counts are zero. O(T·C·O), once per instance, decay and operations: all problems on an instance
    share what comes out, of the last few protocols.
    """
    own = operations is None or operations == instance.operations
    asked = instance.operations if operations is None or own else operations
    kept, key = instance.aggregated, None if own else asked
    known = kept.get((decay, key)) if isinstance(decay, (int, float)) else None
    if known is not None:
        return known
    weights = decay_weights(len(instance.intervals), decay)
    demand = _aggregate(instance, weights, asked)
    others = [one for one in kept if one[1] is not None]
    if len(others) >= _MOST_KEPT:
        del kept[others[0]]  # the oldest one
    kept[float(decay), key] = demand
    return demand


def _aggregate(
    instance: Instance,
    weights: FloatArray,
    operations: tuple[Operation, ...],
) -> Demand:
    weighted = instance.counts * weights[:, np.newaxis, np.newaxis]
    if not weighted.any():
        raise InputError(
            "all counts are zero: there is nothing to optimise"
            if not instance.counts.any()
            else "all counts are zero in the intervals that the decay leaves",
            field="counts",
            expected="at least one operation issued",
        )
    if instance.varying_rtt:
        keep = np.nonzero(weighted.any(axis=(1, 2)))[0]
        periods = len(instance.intervals)
        client_rtt = _per_interval(instance.client_rtt, periods)[keep]
        site_rtt = _per_interval(instance.site_rtt, periods)[keep]
        counts = weighted[keep]
    else:
        client_rtt = instance.client_rtt[np.newaxis]
        site_rtt = instance.site_rtt[np.newaxis]
        counts = weighted.sum(axis=0, keepdims=True)
    coefficients = np.array([operation.coefficients for operation in operations])
    alpha, beta, gamma, delta = coefficients.T
    arrays = {
        "client_rtt": client_rtt,
        "site_rtt": site_rtt,
        "counts": counts,
        "coefficients": coefficients,
        "near": counts @ alpha,
        "relay": counts @ beta,
        "direct": counts @ gamma,
        "quorum": (counts @ delta).sum(axis=-1),
    }
    for name, array in arrays.items():
        array = np.ascontiguousarray(array)
        array.flags.writeable = False
        arrays[name] = array
    more: dict[str, Any] = {}
    if any(operation.has_waits for operation in operations):
        more = {
            "waits": wait_terms(instance, operations, arrays["counts"]),
            "times": wait_times(operations)[1],
            "constants": np.array([operation.constant for operation in operations]),
        }
    return Demand(operations=float(counts.sum()), **arrays, **more)


def _per_interval(rtt: FloatArray, periods: int) -> FloatArray:
    return rtt if rtt.ndim == 3 else np.broadcast_to(rtt, (periods, *rtt.shape))


# Reads and writes of the clients of an instance, for problems that know no other operations


def reads_and_writes(instance: Instance) -> tuple[FloatArray, FloatArray]:
    """Return reads and writes of each client, shape (clients,); InputError when no client reads."""
    issued = instance.counts.sum(axis=0)
    writes = np.array([operation.is_transaction for operation in instance.operations])
    reads: FloatArray = issued[:, ~writes].sum(axis=1)
    if not reads.any():
        raise InputError(
            "no client reads", field="operations",
            value=[operation.name for operation in instance.operations],
            expected="an operation of the kind 'read' with a count > 0",
        )  # fmt: skip
    return reads, np.asarray(issued[:, writes].sum(axis=1))
