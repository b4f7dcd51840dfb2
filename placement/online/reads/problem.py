"""The question of an optimal read strategy: gateways, nodes, loads, and what is to be small."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

import numpy as np

from placement.errors import InputError
from placement.online.reads.quorum_systems import Quorum, QuorumSystem, ThresholdQuorums
from placement.support.checks import FloatArray, frozen, nonnegative, number, numbers_of, whole

__all__ = ["ReadGoal", "ReadProblem", "table_of"]


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
                expected="ThresholdQuorums, ListedQuorums, GridQuorums or another quorum system",
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
