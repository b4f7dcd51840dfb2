"""The optimal read strategy as a problem: quorums, loads, strategies, evaluator, plan and bound.

The leaseholder alone is no part of a quorum system; :class:`placement.online.reads.ReadProblem`
adds it. Every system answers the *pricing* question exactly: given a price per node and a price per
millisecond, which of its quorums is cheapest for a gateway? Lower bounds use that answer, so that
it is written once, here.

A linear program gives probabilities p_v that node v is asked. Any p in [0, 1]^n with Σ p_v = k is a
mixture of subsets of exactly k nodes (the hypersimplex has integral corners). Systematic sampling
finds one with at most n + 1 subsets. Lay the nodes along a line, each p_v long; draw u from U[0, 1)
and take the nodes that contain u, u + 1, …, u + k − 1. Source: W. G. Madow, "On the theory of
systematic sampling, II", Annals of Mathematical Statistics 20 (1949).

Prices on nodes give a lower bound on every read strategy; no solver is believed. Let t_k be the
load of the busiest node in scenario k. Pricing the rows ρ_kv <= t_k with π_kv >= 0 and the latency
budget with μ >= 0 relaxes the problem to independent parts, each solved exactly:

    L(π, μ) =  Σ_i min_A [ (latency_weight + μ)·(g_i/Σ g)·wait_i(A) + g_i·Σ_{v ∈ A} p_v ]
             + Σ_kv π_kv·base_kv + Σ_k min_{0 <= t <= limit} (load_weight·w_k − Σ_v π_kv)·t
             − μ·latency_budget,          p_v = Σ_k π_kv·volume_k/capacity_v

and with a queueing term of weight c_k = queue_weight·w_k per node, a second price θ_kv >= 0 on the
load inside the convex function, whose part is

    min_{0 <= ρ < 1} [ c·ρ/(1 − ρ) − θ·ρ ] = −(√θ − √c)²  where θ > c, else 0.

By weak duality L is a lower bound for *any* prices; good ones come from the duals of a linear
program. Prices whose t would have to be infinite are scaled down until it need not be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from itertools import combinations
from math import comb
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from placement.errors import InputError, SolverError
from placement.support.checks import (
    FloatArray,
    elements,
    flag,
    frozen,
    instance_of,
    nonnegative,
    number,
    numbers_of,
    whole,
)
from placement.support.status import (
    OPTIMALITY_TOLERANCE,
    Status,
    least_bound,
    relative_gap,
    status_of,
)

__all__ = [
    "TOLERANCE",
    "ListedQuorums",
    "NodePrices",
    "Quorum",
    "QuorumSystem",
    "ReadFigures",
    "ReadGoal",
    "ReadPlan",
    "ReadProblem",
    "ReadStrategy",
    "ThresholdQuorums",
    "answers_needed",
    "cheapest_choice",
    "evaluate",
    "infeasible_by",
    "lower_bound",
    "node_prices",
    "subsets_of",
    "table_of",
]

Quorum = tuple[int, ...]
"""Nodes asked, in increasing order."""


def answers_needed(quorum: Quorum, spare: int) -> int:
    """Return how many answers a read of `quorum` waits for: a node asked alone, or all but spare.

    Examples
    --------
    >>> answers_needed((2,), 1), answers_needed((0, 1, 2, 3), 1)
    (1, 3)
    """
    return len(quorum) if len(quorum) == 1 else len(quorum) - spare


@runtime_checkable
class QuorumSystem(Protocol):
    """Protocol of a quorum system."""

    @property
    def nodes(self) -> int:
        """Return the number of nodes; quorums are sets of 0 … nodes − 1."""

    @property
    def spare(self) -> int:
        """Answers of a quorum that a read does not wait for; the slowest ones."""

    def quorums(self, gateway: int) -> Iterator[Quorum]:
        """All quorums that `gateway` may ask."""

    def count(self, gateway: int) -> int:
        """Return the number of quorums."""

    def legal(self, gateway: int, quorum: Quorum) -> bool:
        """Return whether `gateway` may ask `quorum`."""

    def latency(self, rtt: FloatArray, quorum: Quorum) -> float:
        """Time in ms until a gateway with RTTs `rtt` has the answers it waits for."""

    def cheapest(
        self, gateway: int, rtt: FloatArray, prices: FloatArray, per_ms: float
    ) -> tuple[float, Quorum] | None:
        """Least Σ_{v ∈ A} prices[v] + per_ms·latency(A) and an A of that value; None without any.

        Prices are >= 0.
        """


@dataclass(frozen=True)
class ThresholdQuorums:
    """Any `size` of the eligible nodes, perhaps asking `spare` more and waiting for the fastest.

    With `spare` = f a read still completes when any f of the nodes it asks fail.

    Parameters
    ----------
    nodes
        n.
    size
        Answers waited for.
    spare
        Nodes asked beyond `size`.
    without
        A node in no quorum (the leaseholder, in the paper); None: all are eligible.
    include_self
        Whether a gateway is always in its own quorum. A gateway that is `without` then has no
        quorum at all: it reads its own copy.
    """

    nodes: int
    size: int
    spare: int = 0
    without: int | None = None
    include_self: bool = True

    def __post_init__(self) -> None:
        for name, least in (("nodes", 1), ("size", 1), ("spare", 0)):
            object.__setattr__(self, name, whole(getattr(self, name), name, minimum=least))
        if self.without is not None:
            node = whole(self.without, "without", maximum=self.nodes - 1)
            object.__setattr__(self, "without", node)
        flag(self.include_self, "include_self")

    @property
    def asked(self) -> int:
        """Nodes asked: size + spare."""
        return self.size + self.spare

    def eligible(self, gateway: int) -> tuple[int, ...]:
        """Nodes that may be in a quorum of `gateway`; empty when it can have none."""
        nodes = tuple(node for node in range(self.nodes) if node != self.without)
        if len(nodes) < self.asked or (self.include_self and gateway == self.without):
            return ()
        return nodes

    def count(self, gateway: int) -> int:
        """Return the number of quorums of `gateway`."""
        nodes = self.eligible(gateway)
        own = int(self.include_self)
        return comb(len(nodes) - own, self.asked - own) if nodes else 0

    def quorums(self, gateway: int) -> Iterator[Quorum]:
        """Return all quorums; their number is :meth:`count`."""
        nodes = self.eligible(gateway)
        if not nodes:
            return
        for quorum in combinations(nodes, self.asked):
            if not self.include_self or gateway in quorum:
                yield quorum

    def legal(self, gateway: int, quorum: Quorum) -> bool:
        """Return whether `gateway` may ask `quorum`."""
        return (
            len(set(quorum)) == len(quorum) == self.asked
            and set(quorum) <= set(self.eligible(gateway))
            and (gateway in quorum or not self.include_self)
        )

    def latency(self, rtt: FloatArray, quorum: Quorum) -> float:
        """The `size`-th smallest RTT to the nodes asked."""
        return float(sorted(float(rtt[node]) for node in quorum)[self.size - 1])

    def order(self, gateway: int, rtt: FloatArray) -> tuple[int, ...]:
        """Eligible nodes of `gateway`, nearest first, ties to the lower index."""
        return tuple(sorted(self.eligible(gateway), key=lambda node: (rtt[node], node)))

    def cheapest(
        self, gateway: int, rtt: FloatArray, prices: FloatArray, per_ms: float
    ) -> tuple[float, Quorum] | None:
        """For each possible `size`-th fastest node l, the cheapest nodes before and after it.

        Given l, the other members are chosen freely: size − 1 nearer than l and `spare` farther,
        the gateway itself at any place. O(n² log n).
        """
        order = self.order(gateway, rtt)
        best: tuple[float, Quorum] | None = None
        for place, last in enumerate(order):
            near = self._pick(order[:place], self.size - 1, gateway, last, prices)
            far = self._pick(order[place + 1 :], self.spare, gateway, last, prices)
            if near is None or far is None:
                continue
            members = (*near, last, *far)
            if self.include_self and gateway not in members:
                continue
            value = float(sum(prices[node] for node in members)) + per_ms * float(rtt[last])
            if best is None or value < best[0]:
                best = (value, tuple(sorted(members)))
        return best

    def _pick(
        self, nodes: Sequence[int], count: int, gateway: int, last: int, prices: FloatArray
    ) -> list[int] | None:
        """The `count` cheapest of `nodes`, the gateway first if it must be there; or None."""
        must = [gateway] if self.include_self and gateway != last and gateway in nodes else []
        if len(nodes) < count or len(must) > count:
            return None
        rest = sorted(set(nodes) - set(must), key=lambda node: (prices[node], node))
        return must + rest[: count - len(must)]


@dataclass(frozen=True)
class ListedQuorums:
    """Quorums given one by one, the same for every gateway.

    Parameters
    ----------
    nodes
        n.
    sets
        Nodes of each quorum; stored in increasing order, without repetitions.

    Raises
    ------
    InputError
        When there is no quorum, one is empty, or one names a node that does not exist.
    """

    nodes: int
    sets: tuple[Quorum, ...]
    spare: ClassVar[int] = 0

    def __post_init__(self) -> None:
        nodes = whole(self.nodes, "nodes", minimum=1)
        object.__setattr__(self, "nodes", nodes)
        found: dict[Quorum, None] = {}
        for given in elements(self.sets, "sets", "a list of quorums"):
            members = elements(given, "sets", "a list of nodes")
            quorum = {whole(node, "sets", maximum=nodes - 1) for node in members}
            if not quorum:
                raise InputError(
                    "an empty quorum",
                    field="sets",
                    value=given,
                    expected=f"nodes 0 to {nodes - 1}",
                )
            found[tuple(sorted(quorum))] = None
        if not found:
            raise InputError("no quorums", field="sets", value=(), expected="at least one")
        object.__setattr__(self, "sets", tuple(found))

    @classmethod
    def of(cls, nodes: int, sets: Iterable[Iterable[int]]) -> ListedQuorums:
        """Return the system of any lists of nodes."""
        found = elements(sets, "sets", "a list of quorums")
        quorums = (elements(quorum, "sets", "a list of nodes") for quorum in found)
        return cls(nodes, tuple(quorums))  # type: ignore[arg-type]  # nodes are checked there

    def quorums(self, gateway: int) -> Iterator[Quorum]:
        """Return all quorums."""
        return iter(self.sets)

    def count(self, gateway: int) -> int:
        """Return the number of quorums."""
        return len(self.sets)

    def legal(self, gateway: int, quorum: Quorum) -> bool:
        """Return whether a quorum is on the list."""
        return quorum in self.sets

    def latency(self, rtt: FloatArray, quorum: Quorum) -> float:
        """The largest RTT to its members."""
        return float(max(rtt[node] for node in quorum))

    def cheapest(
        self, gateway: int, rtt: FloatArray, prices: FloatArray, per_ms: float
    ) -> tuple[float, Quorum] | None:
        """Return the best of all sets; O(members of all sets)."""
        return min(
            (
                (float(prices[list(quorum)].sum()) + per_ms * self.latency(rtt, quorum), quorum)
                for quorum in self.sets
            ),
            default=None,
        )


def table_of(values: object, field: str) -> FloatArray:
    """Check that NumPy can turn `values` into a table of floats with two axes and return it."""
    table = numbers_of(values, field)
    if table.ndim != 2:
        raise InputError("wrong shape", field=field, value=table.shape, expected="two axes")
    return table


@dataclass(frozen=True, slots=True)
class ReadGoal:
    """Objective of a read strategy, and its limits.

        load_weight·Σ_k w_k·max_v ρ_kv + latency_weight·mean latency
            + queue_weight·Σ_k w_k Σ_v ρ_kv/(1 − ρ_kv)

    subject to ρ_kv <= load_limit and mean latency <= latency_budget. The last term is the number of
    requests at the nodes if each were an M/M/1 queue; divided by the rate of requests it is the
    mean time there (Little), which is how to choose queue_weight in ms.

    Parameters
    ----------
    load_weight, latency_weight, queue_weight
        >= 0, not all zero.
    load_limit
        Largest utilisation of any node in any scenario; infinite: none.
    latency_budget
        Largest mean latency in ms; infinite: none.
    """

    load_weight: float = 0.0
    latency_weight: float = 0.0
    queue_weight: float = 0.0
    load_limit: float = math.inf
    latency_budget: float = math.inf

    def __post_init__(self) -> None:
        for name in ("load_weight", "latency_weight", "queue_weight"):
            number(getattr(self, name), name)
        if self.load_weight + self.latency_weight + self.queue_weight == 0.0:
            raise InputError(
                "nothing to minimise", field="load_weight", value=0.0, expected="a positive weight"
            )
        for name in ("load_limit", "latency_budget"):
            number(getattr(self, name), name, infinite=True)

    @classmethod
    def least_load(cls, latency_budget: float = math.inf) -> ReadGoal:
        """Smallest load of the busiest node."""
        return cls(load_weight=1.0, latency_budget=latency_budget)

    @classmethod
    def least_latency(cls, load_limit: float = math.inf) -> ReadGoal:
        """Smallest mean latency while no node carries more than the limit."""
        return cls(latency_weight=1.0, load_limit=load_limit)


@dataclass(frozen=True, eq=False)
class ReadProblem:
    """Choice of the share of reads that every gateway sends to the leaseholder and to each quorum.

    Gateway i gets a share of the reads and may send each to the leaseholder L alone or to a quorum
    of the system. With p_iA the probability that i asks the set A,

        ρ_kv = base_kv + volume_k/capacity_v·Σ_i g_i·Σ_{A ∋ v} p_iA     utilisation of v
        latency = Σ_i g_i Σ_A p_iA·(time until A has answered)/Σ_i g_i

    Nodes and gateways are the same n machines. One strategy serves all scenarios k.

    Parameters
    ----------
    rtt
        rtt[i, v] in ms from gateway i to node v, shape (n, n), finite, >= 0.
    reads
        g: reads per unit of time that enter at each gateway, shape (n,), not all zero.
    leader
        L; None: there is no leaseholder and every read goes to a quorum.
    system
        The quorums; default: any majority of the others that includes the gateway, L left out, as
        in the paper. L as a gateway then always reads its own copy.
    capacity
        Reads per unit of time that a node can serve, shape (n,), > 0; default 1.
    base
        Utilisation by everything that is no read (writes), shape (n,) or (scenarios, n), >= 0;
        default 0.
    volume
        Factor on the reads per scenario, shape (scenarios,), >= 0; default 1.
    weights
        w, weight of each scenario in the objective, shape (scenarios,), >= 0; default 1/scenarios.

    Raises
    ------
    InputError
        Naming field, element, value and what was expected; also for a gateway that has neither a
        leaseholder nor a quorum to read from.

    Examples
    --------
    >>> problem = ReadProblem.uniform(5)
    >>> problem.system.asked, problem.choices(1)[0]
    (3, (0,))
    """

    rtt: FloatArray
    reads: FloatArray
    leader: int | None
    _: KW_ONLY
    system: QuorumSystem | None = None
    capacity: FloatArray | None = None
    base: FloatArray | None = None
    volume: FloatArray | None = None
    weights: FloatArray | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        count = len(table_of(self.rtt, "rtt"))
        if not count:
            raise InputError("no nodes", field="rtt", expected="a square table of RTTs")
        nodes = tuple(str(node) for node in range(count))
        gateways, sites = ("gateway", nodes), ("node", nodes)
        put(self, "rtt", nonnegative(self.rtt, "rtt", [gateways, sites]))
        put(self, "reads", nonnegative(self.reads, "reads", [gateways]))
        if not self.reads.any():
            raise InputError("no reads", field="reads", value=0.0, expected="a positive rate")
        if self.leader is not None:
            put(self, "leader", whole(self.leader, "leader", maximum=count - 1))
        if self.system is None:
            size = count // 2 + 1
            put(self, "system", ThresholdQuorums(count, size, without=self.leader))
        if not isinstance(self.system, QuorumSystem):
            raise InputError(
                "not a quorum system",
                field="system",
                value=self.system,
                expected="ThresholdQuorums, ListedQuorums or another quorum system",
            )
        if self.quorums.nodes != count:
            raise InputError(
                "the quorum system is for another number of nodes",
                field="system",
                value=self.quorums.nodes,
                expected=str(count),
            )
        ones = np.ones(count)
        capacity = ones if self.capacity is None else self.capacity
        put(self, "capacity", nonnegative(capacity, "capacity", [sites]))
        if not (self.capacities > 0).all():
            node = int(np.argmin(self.capacities))
            raise InputError(
                f"node {node} can serve nothing", field="capacity", value=0.0, expected="> 0"
            )
        self._check_scenarios(sites)
        for gateway in range(count):
            if self.leader is None and not self.quorums.count(gateway):
                raise InputError(
                    f"gateway {gateway} has neither a leaseholder nor a quorum to read from",
                    field="system",
                    value=self.system,
                    expected="a leaseholder or a quorum for every gateway",
                )

    def _check_scenarios(self, sites: tuple[str, tuple[str, ...]]) -> None:
        put = object.__setattr__
        base = np.zeros(self.nodes) if self.base is None else numbers_of(self.base, "base")
        rows = base.shape[0] if base.ndim == 2 else 1
        scenarios = ("scenario", tuple(str(row) for row in range(rows)))
        given = base if base.ndim == 2 else base[np.newaxis]
        put(self, "base", nonnegative(given, "base", [scenarios, sites]))
        volume = np.ones(rows) if self.volume is None else self.volume
        put(self, "volume", nonnegative(volume, "volume", [scenarios]))
        weights = np.full(rows, 1.0 / rows) if self.weights is None else self.weights
        put(self, "weights", nonnegative(weights, "weights", [scenarios]))
        if not rows or not self.scenario_weights.any():
            raise InputError(
                "no scenario counts", field="weights", value=0.0, expected="a positive weight"
            )

    @classmethod
    def uniform(
        cls,
        nodes: int,
        *,
        rtt: float = 1.0,
        include_self: bool = True,
        leader_cost: float = 0.0,
        follower_cost: float = 0.0,
    ) -> ReadProblem:
        """Return the paper's setting: n equal nodes, equal gateways, node 0 holds the lease.

        Loads come out per read of the whole cluster. `leader_cost` and `follower_cost` are what
        writes cost L and each other node, per read of the cluster: W·c_L and W·c_F.
        """
        nodes = whole(nodes, "nodes", minimum=1)
        distance = frozen(number(rtt, "rtt") * (1.0 - np.eye(nodes)))
        base = np.full(nodes, number(follower_cost, "follower_cost"))
        base[0] = number(leader_cost, "leader_cost")
        system = ThresholdQuorums(nodes, nodes // 2 + 1, without=0, include_self=include_self)
        return cls(distance, np.full(nodes, 1.0 / nodes), 0, system=system, base=base)

    @property
    def nodes(self) -> int:
        """N."""
        return len(self.rtt)

    @property
    def quorums(self) -> QuorumSystem:
        """The quorum system."""
        assert self.system is not None
        return self.system

    @property
    def capacities(self) -> FloatArray:
        """Shape (n,)."""
        assert self.capacity is not None
        return self.capacity

    @property
    def base_load(self) -> FloatArray:
        """Shape (scenarios, n)."""
        assert self.base is not None
        return self.base

    @property
    def volumes(self) -> FloatArray:
        """Shape (scenarios,)."""
        assert self.volume is not None
        return self.volume

    @property
    def scenario_weights(self) -> FloatArray:
        """Shape (scenarios,)."""
        assert self.weights is not None
        return self.weights

    @property
    def shares(self) -> FloatArray:
        """g_i/Σ g, shape (n,)."""
        shares: FloatArray = self.reads / self.reads.sum()
        return shares

    def choices(self, gateway: int) -> tuple[Quorum, ...]:
        """Return the choices of `gateway`: the leaseholder alone first, then all quorums."""
        alone: tuple[Quorum, ...] = () if self.leader is None else ((self.leader,),)
        return alone + tuple(q for q in self.quorums.quorums(gateway) if q not in alone)

    def legal(self, gateway: int, quorum: Quorum) -> bool:
        """Return whether `gateway` may ask `quorum`."""
        return quorum == (self.leader,) or self.quorums.legal(gateway, quorum)

    def latency(self, gateway: int, quorum: Quorum) -> float:
        """Time in ms until `quorum` has answered `gateway`."""
        if quorum == (self.leader,):
            return float(self.rtt[gateway, self.leader])
        return self.quorums.latency(self.rtt[gateway], quorum)


_ROUNDING = 1e-7
"""Probabilities may miss their sums by this much; solvers work to about as much."""

_SLIVER = 1e-12
"""Intervals this short come from rounding, not from the probabilities."""


@dataclass(frozen=True)
class ReadStrategy:
    """Probabilities of the quorums that each gateway asks.

    Build one with :meth:`of`.

    Attributes
    ----------
    mixtures
        Per gateway a tuple of (quorum, probability), the probabilities positive with sum 1, in
        order of the quorums.
    spare
        Answers of a quorum of several nodes that a read does not wait for; of the quorum system.
    """

    mixtures: tuple[tuple[tuple[Quorum, float], ...], ...]
    spare: int = 0

    @classmethod
    def of(cls, problem: ReadProblem, mixtures: Sequence[Mapping[Quorum, float]]) -> ReadStrategy:
        """Check that every set is legal and normalise the probabilities.

        Raises
        ------
        InputError
            For a gateway without a mixture, a set it may not ask, a probability that is none, or a
            sum away from 1 by more than 1e-7.
        """
        instance_of(problem, ReadProblem, "problem", "a ReadProblem")
        listed = elements(mixtures, "mixtures", "one mapping of quorums for each gateway")
        if len(listed) != problem.nodes:
            raise InputError(
                "not one mixture per gateway",
                field="mixtures",
                value=len(listed),
                expected=str(problem.nodes),
            )
        kept = []
        for gateway, mixture in enumerate(listed):
            if not isinstance(mixture, Mapping):
                raise InputError(
                    f"the mixture of gateway {gateway} is no mapping",
                    field="mixtures",
                    value=mixture,
                    expected="quorums with their probabilities",
                )
            total = 0.0
            for quorum, probability in mixture.items():
                if not _is_quorum(quorum) or not problem.legal(gateway, quorum):
                    raise InputError(
                        f"gateway {gateway} may not read from {quorum}",
                        field="mixtures",
                        value=quorum,
                        expected="the leaseholder alone or a quorum of the system",
                    )
                field = f"mixtures[{gateway}][{quorum}]"
                number(probability, field, minimum=-_ROUNDING, maximum=1 + _ROUNDING)
                total += max(0.0, probability)
            if not abs(total - 1.0) <= _ROUNDING * max(1, len(mixture)):
                raise InputError(
                    f"the probabilities of gateway {gateway} do not add up to 1",
                    field="mixtures",
                    value=total,
                    expected="1",
                )
            kept.append(tuple((q, p / total) for q, p in sorted(mixture.items()) if p > 0.0))
        return cls(tuple(kept), problem.quorums.spare)

    @classmethod
    def coin(cls, problem: ReadProblem, share: float) -> ReadStrategy:
        """The paper's strategy: L with probability x, otherwise a uniform quorum.

        A gateway without a quorum goes to L always, and so does L itself.
        """
        mixtures: list[dict[Quorum, float]] = []
        for gateway in range(problem.nodes):
            quorums = list(problem.quorums.quorums(gateway))
            lease: Quorum | None = None if problem.leader is None else (problem.leader,)
            if lease is not None and (gateway == problem.leader or not quorums):
                mixtures.append({lease: 1.0})
                continue
            rest = 1.0 if lease is None else 1.0 - share
            mixture = {quorum: rest / len(quorums) for quorum in quorums}
            if lease is not None:
                mixture[lease] = mixture.get(lease, 0.0) + share
            mixtures.append(mixture)
        return cls.of(problem, mixtures)

    @cached_property
    def _steps(self) -> tuple[FloatArray, ...]:
        return tuple(np.cumsum([p for _, p in mixture]) for mixture in self.mixtures)

    def draw(self, gateway: int, uniform: float) -> Quorum:
        """Return the quorum of `gateway` for a number drawn from U[0, 1); O(log of the quorums)."""
        mixture = self.mixtures[gateway]
        place = int(np.searchsorted(self._steps[gateway], uniform, side="right"))
        return mixture[min(place, len(mixture) - 1)][0]


def _is_quorum(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(node, int | np.integer) for node in value)


def subsets_of(
    members: Sequence[int], probabilities: Sequence[float], size: int
) -> list[tuple[Quorum, float]]:
    """Mix subsets of exactly `size` members so that each is included as often as asked.

    Parameters
    ----------
    members
        Distinct nodes, along the line. Where a prefix of them has a whole sum j, every subset has
        exactly j nodes of the prefix.
    probabilities
        p, each in [0, 1], with sum `size`, both to a tolerance of 1e-7.
    size
        k.

    Returns
    -------
    Subsets in increasing order of nodes with positive probabilities of sum 1; at most one more than
    members.

    Raises
    ------
    InputError
        When the sum is not `size` or a probability is none.

    Examples
    --------
    >>> subsets_of([3, 5, 7], [0.5, 0.5, 1.0], 2)
    [((3, 7), 0.5), ((5, 7), 0.5)]
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.shape != (len(members),) or not ((p > -_ROUNDING) & (p < 1 + _ROUNDING)).all():
        raise InputError(
            "not probabilities", field="probabilities", value=list(p), expected="each 0 to 1"
        )
    if abs(p.sum() - size) > _ROUNDING * max(1, len(members)):
        raise InputError(
            "the probabilities do not add up to the size",
            field="probabilities",
            value=float(p.sum()),
            expected=str(size),
        )
    # Positions that should be whole become whole: then nodes with p = 1 are in every subset.
    ends = np.cumsum(np.clip(p, 0.0, 1.0))
    near = np.rint(ends)
    ends = np.where(np.abs(ends - near) <= _ROUNDING * len(members), near, ends)
    ends = np.minimum(np.maximum.accumulate(ends), size) if len(ends) else ends
    cuts = np.unique(np.concatenate([[0.0, 1.0], ends % 1.0]))
    found: dict[Quorum, float] = {}
    for low, high in itertools.pairwise(cuts):
        if high - low < _SLIVER:
            continue
        points = (low + high) / 2.0 + np.arange(size)
        places = np.searchsorted(ends, points, side="right")
        subset = tuple(sorted(members[place] for place in places))
        found[subset] = found.get(subset, 0.0) + float(high - low)
    total = sum(found.values())
    return [(subset, weight / total) for subset, weight in sorted(found.items())]


TOLERANCE = 1e-9
"""Limits on load and latency may be exceeded by this part of them: a strategy of a linear programme
sits on its limits, and summing it up again rounds."""


@dataclass(frozen=True, eq=False)
class ReadFigures:
    """Figures of a strategy.

    Attributes
    ----------
    load
        ρ, utilisation per scenario and node, shape (scenarios, n).
    peak
        Σ_k w_k max_v ρ_kv.
    latency
        Mean over the reads of the time until the quorum has answered, ms, without queueing.
    gateway_latency
        The same per gateway, shape (n,).
    queued
        Σ_k w_k Σ_v ρ_kv/(1 − ρ_kv); infinite when a node is saturated.
    leader_served
        Part of all reads that L serves, alone or in a quorum; 0 without a leaseholder.
    """

    load: FloatArray
    peak: float
    latency: float
    gateway_latency: FloatArray
    queued: float
    leader_served: float

    def objective(self, goal: ReadGoal) -> float:
        """Value of the goal, without its limits."""
        value = goal.load_weight * self.peak + goal.latency_weight * self.latency
        return value + goal.queue_weight * self.queued if goal.queue_weight else value

    def broken(self, goal: ReadGoal) -> tuple[str, ...]:
        """Return the limits of the goal that do not hold, beyond :data:`TOLERANCE`."""
        found = []
        largest = float(self.load.max())
        if largest > _relaxed(goal.load_limit):
            found.append(f"a node is used {largest:.9g}, the limit is {goal.load_limit:g}")
        if self.latency > _relaxed(goal.latency_budget):
            found.append(
                f"the mean latency is {self.latency:.9g} ms, the budget {goal.latency_budget:g} ms"
            )
        return tuple(found)


def _relaxed(limit: float) -> float:
    return limit * (1.0 + TOLERANCE)


def evaluate(problem: ReadProblem, strategy: ReadStrategy) -> ReadFigures:
    """Compute the figures of a strategy; O(members of all its quorums)."""
    visits = np.zeros(problem.nodes)
    waits = np.zeros(problem.nodes)
    for gateway, mixture in enumerate(strategy.mixtures):
        for quorum, probability in mixture:
            visits[list(quorum)] += problem.reads[gateway] * probability
            waits[gateway] += probability * problem.latency(gateway, quorum)
    load = problem.base_load + np.outer(problem.volumes, visits / problem.capacities)
    with np.errstate(divide="ignore"):
        queue = np.where(load < 1.0, load / np.maximum(1.0 - load, 0.0), np.inf)
    counted = problem.scenario_weights > 0
    queued = float(problem.scenario_weights[counted] @ queue.sum(axis=1)[counted])
    leader = 0.0 if problem.leader is None else visits[problem.leader] / problem.reads.sum()
    return ReadFigures(
        load,
        float(problem.scenario_weights @ load.max(axis=1)),
        float(problem.shares @ waits),
        waits,
        queued,
        float(leader),
    )


@dataclass(frozen=True, eq=False)
class ReadPlan:
    """A read strategy with its figures and a proven bound.

    Build one with :meth:`of`: every figure is then the evaluator's, and the status follows from
    value and bound.

    Attributes
    ----------
    problem, goal
        The question.
    strategy, figures
        None when no strategy obeys the limits, or none was found.
    value, bound
        Of the goal; both +∞ when infeasible.
    status, method, notes
        Proof state, method, and remarks for the reader.
    """

    problem: ReadProblem
    goal: ReadGoal
    strategy: ReadStrategy | None
    figures: ReadFigures | None
    value: float
    bound: float
    status: Status
    method: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        problem: ReadProblem,
        goal: ReadGoal,
        strategy: ReadStrategy | None,
        *,
        method: str,
        bound: float = -math.inf,
        notes: Sequence[str] = (),
    ) -> ReadPlan:
        """Return the plan of an evaluated `strategy`, with its status.

        Raises
        ------
        SolverError
            When the strategy breaks the limits of the goal, or its value lies below `bound`: then
            the method that produced them is wrong.
        """
        figures, value, bound = None, math.inf, least_bound(bound)
        if strategy is not None:
            figures = evaluate(problem, strategy)
            value = figures.objective(goal)
            broken = figures.broken(goal)
            if broken:
                raise SolverError(f"{method} returned a strategy that breaks limits: {broken[0]}")
            # A strategy may exceed limits by the tolerance of the evaluator, and gain by it.
            if bound - value > 10 * OPTIMALITY_TOLERANCE * abs(value):
                raise SolverError(f"{method} claims the bound {bound} above the value {value}")
        return cls(
            problem,
            goal,
            strategy,
            figures,
            value,
            bound,
            status_of(strategy is not None, value, bound),
            method,
            tuple(notes),
        )

    @property
    def gap(self) -> float:
        """(value − bound)/value."""
        return relative_gap(self.value, self.bound)


@dataclass(frozen=True, eq=False)
class NodePrices:
    """Prices of the rows that couple the gateways.

    Attributes
    ----------
    peak
        π of the load of the busiest node, shape (scenarios, n).
    queue
        θ of the loads in the queueing term, shape (scenarios, n).
    latency
        μ of the latency budget.
    """

    peak: FloatArray
    queue: FloatArray
    latency: float = 0.0


def node_prices(problem: ReadProblem, prices: NodePrices) -> FloatArray:
    """Price p_v of one read per unit of time at node v, shape (n,)."""
    both = np.maximum(prices.peak, 0.0) + np.maximum(prices.queue, 0.0)
    found: FloatArray = problem.volumes @ both / problem.capacities
    return found


def cheapest_choice(
    problem: ReadProblem, gateway: int, prices: FloatArray, per_ms: float
) -> tuple[float, Quorum]:
    """Cheapest set that `gateway` may ask, per read: Σ prices of its nodes + per_ms·wait."""
    best = problem.quorums.cheapest(gateway, problem.rtt[gateway], prices, per_ms)
    if problem.leader is not None:
        leader = problem.leader
        alone = float(prices[leader]) + per_ms * float(problem.rtt[gateway, leader])
        if best is None or alone <= best[0]:
            best = (alone, (leader,))
    assert best is not None  # the problem has checked that every gateway can read
    return best


def lower_bound(problem: ReadProblem, goal: ReadGoal, prices: NodePrices) -> float:
    """L(π, μ, θ): no strategy within the limits of the goal has a smaller objective.

    With a goal whose weights are scaled to zero, a positive L would be a proof that no strategy
    obeys the limits; :func:`infeasible_by` uses that.
    """
    weights = (goal.load_weight, goal.latency_weight, goal.queue_weight)
    return _lagrangian(problem, goal, prices, weights)


def infeasible_by(problem: ReadProblem, goal: ReadGoal, prices: NodePrices) -> float:
    """Return the amount by which the prices refute the limits; positive: no strategy obeys them."""
    return _lagrangian(problem, goal, prices, (0.0, 0.0, 0.0))


def _lagrangian(
    problem: ReadProblem, goal: ReadGoal, prices: NodePrices, weights: tuple[float, float, float]
) -> float:
    load_weight, latency_weight, queue_weight = weights
    peak = np.maximum(prices.peak, 0.0)
    queue = np.maximum(prices.queue, 0.0)
    budget = max(0.0, prices.latency) if math.isfinite(goal.latency_budget) else 0.0
    earned = load_weight * problem.scenario_weights
    if not math.isfinite(goal.load_limit):
        # t may grow without end, so a scenario may not be priced above what t costs.
        total = peak.sum(axis=1)
        scale = np.minimum(1.0, np.divide(earned, total, out=np.ones_like(total), where=total > 0))
        peak = peak * scale[:, np.newaxis]
    value = float(((peak + queue) * problem.base_load).sum())
    if math.isfinite(goal.load_limit):
        value += float(np.minimum(0.0, earned - peak.sum(axis=1)).sum()) * goal.load_limit
    share = queue_weight * problem.scenario_weights[:, np.newaxis]
    excess = np.sqrt(queue) - np.sqrt(share)
    value -= float((np.where(queue > share, excess, 0.0) ** 2).sum())
    per_node = node_prices(problem, NodePrices(peak, queue))
    shares = problem.shares
    for gateway in range(problem.nodes):
        rate = float(problem.reads[gateway])
        per_ms = (latency_weight + budget) * float(shares[gateway])
        if rate > 0.0:
            value += rate * cheapest_choice(problem, gateway, per_node, per_ms / rate)[0]
    return value - (budget * goal.latency_budget if budget else 0.0)
