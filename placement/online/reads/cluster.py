"""The simulated database: machines, work, network, and what a follower's read can see."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np

from placement.errors import InputError
from placement.online.reads.retry_model import Backoff
from placement.support.checks import (
    FloatArray,
    elements,
    frozen,
    instance_of,
    nonnegative,
    number,
    numbers_of,
    text,
    whole,
)

__all__ = ["RaftCluster", "ReadWorkload", "Visibility"]


class Visibility(StrEnum):
    """State of the log from which a follower answers a read."""

    APPLIED = "applied"
    """The state machine: entries whose commit the follower has heard of. So the authors' code."""
    LOG = "log"
    """The log too: an entry counts from the moment the follower has appended it."""


@dataclass(frozen=True, eq=False)
class RaftCluster:
    """n machines with all data on each; one of them, L, holds the lease.

    All work is exponential with the means given, in ms; every machine serves requests first come,
    first served on `cores` cores. The defaults are those of the reference shape and are not
    calibrated to any database.

    Parameters
    ----------
    nodes
        n >= 3.
    leader
        L.
    cores
        Per machine.
    gateway_ms
        Work of the gateway on every operation.
    read_ms
        Work of a read at each node it asks.
    write_ms
        Work of each of the four visits a write pays to L, one after the other: propose, commit,
        apply, resolve. It is acknowledged after the fourth.
    append_ms
        Work of a write at each follower.
    rtt
        Round trips in ms, half each way: one number for all pairs of machines, or a matrix of shape
        (n, n). A machine reaches itself in no time.
    visibility
        See :class:`Visibility`.
    apply_lag_ms
        Mean (exponential) of how long a follower takes to apply what L tells it was committed or
        resolved, after the message has arrived. Takes no core.
    intent_ms
        Mean (exponential) of how long followers wait for L's word that an intent is resolved,
        beyond the write's acknowledgement; 0: it is sent at once. Long ones stand for asynchronous
        resolution under load.
    backoff
        Waits between the attempts of a strongly consistent read.
    speed
        Speed of each machine, shape (n,), > 0: work of w ms takes w/speed there; empty: 1.
    groups
        Raft groups on the same machines: key k is in group k mod `groups`, and group g is led by
        machine (leader + g) mod n.
    """

    nodes: int = 5
    leader: int = 0
    cores: int = 8
    gateway_ms: float = 0.9
    read_ms: float = 0.4
    write_ms: float = 0.5
    append_ms: float = 0.4
    rtt: FloatArray | float = 0.3
    visibility: Visibility = Visibility.APPLIED
    apply_lag_ms: float = 1.0
    intent_ms: float = 0.0
    backoff: Backoff = field(default_factory=Backoff)
    speed: tuple[float, ...] = ()
    groups: int = 1

    def __post_init__(self) -> None:
        for name, least in (("nodes", 3), ("cores", 1), ("leader", 0), ("groups", 1)):
            value = whole(getattr(self, name), name, minimum=least)
            object.__setattr__(self, name, value)
        if self.leader >= self.nodes:
            raise InputError(
                "no such node", field="leader", value=self.leader, expected=f"below {self.nodes}"
            )
        for name in ("gateway_ms", "read_ms", "write_ms", "append_ms", "apply_lag_ms", "intent_ms"):
            number(getattr(self, name), name)
        names = tuple(str(node) for node in range(self.nodes))
        matrix = numbers_of(self.rtt, "rtt")
        if matrix.ndim == 0:
            matrix = np.full((self.nodes, self.nodes), number(float(matrix), "rtt"))
        if matrix.shape == (self.nodes, self.nodes):
            np.fill_diagonal(matrix, 0.0)
        axis = ("node", names)
        object.__setattr__(self, "rtt", nonnegative(matrix, "rtt", [axis, axis]))
        speeds = elements(self.speed, "speed", "a speed for each machine")
        if speeds:
            speeds = tuple(nonnegative(speeds, "speed", [axis]).tolist())
            for node, speed in enumerate(speeds):
                number(speed, f"speed[{node}]", above=True)
        object.__setattr__(self, "speed", speeds)
        known = text(self.visibility, "visibility", choices=[each.value for each in Visibility])
        object.__setattr__(self, "visibility", Visibility(known))
        instance_of(self.backoff, Backoff, "backoff", "a Backoff of placement.online.reads")

    @property
    def rtts(self) -> FloatArray:
        """RTTs in ms, shape (n, n), zero on the diagonal."""
        assert isinstance(self.rtt, np.ndarray)
        return self.rtt

    @property
    def speeds(self) -> FloatArray:
        """Speed of each machine, shape (n,)."""
        return np.array(self.speed) if self.speed else np.ones(self.nodes)

    @property
    def leaders(self) -> tuple[int, ...]:
        """Leader of each group."""
        return tuple((self.leader + group) % self.nodes for group in range(self.groups))

    @property
    def followers_needed(self) -> int:
        """M = ⌊n/2⌋: with L they are a majority."""
        return self.nodes // 2


@dataclass(frozen=True, eq=False)
class ReadWorkload:
    """Clients that each issue one operation after the other, without a pause.

    Parameters
    ----------
    clients
        How many.
    read_share
        Part of the operations that read, 0 to 1.
    keys
        How many there are.
    hot_share, hot_fraction
        `hot_share` of the operations go to `hot_fraction` of the keys, the others to the rest; both
        0: all keys alike.
    gateways
        Weight of each node as the gateway of an operation; empty: all alike.
    span
        Keys that a read asks for at once; more than one: a read transaction over as many groups
        (as there are, if fewer).
    """

    clients: int = 70
    read_share: float = 0.95
    keys: int = 100_000
    hot_share: float = 0.0
    hot_fraction: float = 0.0
    gateways: tuple[float, ...] = ()
    span: int = 1

    def __post_init__(self) -> None:
        for name in ("clients", "keys", "span"):
            value = whole(getattr(self, name), name, minimum=1)
            object.__setattr__(self, name, value)
        for name in ("read_share", "hot_share", "hot_fraction"):
            number(getattr(self, name), name, maximum=1.0)
        weights = elements(self.gateways, "gateways", "a list of weights")
        weights = tuple(number(weight, f"gateways[{k}]") for k, weight in enumerate(weights))
        object.__setattr__(self, "gateways", weights)
        if (self.hot_share > 0) != (self.hot_fraction > 0):
            raise InputError(
                "hot requests need hot keys, and hot keys hot requests",
                field="hot_fraction",
                value=self.hot_fraction,
                expected="both > 0 or both 0",
            )

    @property
    def hot_keys(self) -> int:
        """Return the number of hot keys: hot_fraction·keys, at least one with hot requests."""
        return max(1, round(self.hot_fraction * self.keys)) if self.hot_fraction else 0

    def gateway_shares(self, nodes: int) -> FloatArray:
        """Part of the operations that enters at each of `nodes` nodes, shape (nodes,)."""
        if not self.gateways:
            return frozen(np.full(nodes, 1.0 / nodes))
        names = tuple(str(node) for node in range(nodes))
        weights = nonnegative(self.gateways, "gateways", [("node", names)])
        if not weights.any():
            raise InputError("no gateway", field="gateways", value=0.0, expected="a weight > 0")
        return frozen(weights / weights.sum())
