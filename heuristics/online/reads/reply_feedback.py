"""Knowledge of gateways from replies: the base of adaptive rules.

A gateway knows what it has sent and not got back, and what each node told it last. Gateways do not
talk to each other. Averages move by `new = 0.9·sample + 0.1·old`, as in C3 (Suresh et al., NSDI
2015); the first sample replaces the initial zero.
"""

from __future__ import annotations

from collections.abc import Iterator

from heuristics.online.reads.paper_paths import others_of
from placement.online.reads import Answered, Quorum

__all__ = ["ALPHA", "Knowledge", "Learner"]

ALPHA = 0.9
"""Weight of the newest sample."""


class Knowledge:
    """Knowledge of one gateway about every node.

    Attributes
    ----------
    outstanding
        Reads sent and unanswered.
    queue
        Average of the queue lengths that its reads found.
    service_ms, other_ms
        Averages of service times, and of response less service times.
    heard
        Whether anything was heard at all.
    """

    __slots__ = ("heard", "other_ms", "outstanding", "queue", "service_ms")

    def __init__(self, nodes: int) -> None:
        self.outstanding = [0] * nodes
        self.queue = [0.0] * nodes
        self.service_ms = [0.0] * nodes
        self.other_ms = [0.0] * nodes
        self.heard = [False] * nodes

    def note(self, reply: Answered) -> None:
        """Take note of a reply."""
        node = reply.node
        self.outstanding[node] -= 1
        keep = 1.0 - ALPHA if self.heard[node] else 0.0
        take = 1.0 - keep
        self.queue[node] = take * reply.queue + keep * self.queue[node]
        self.service_ms[node] = take * reply.service_ms + keep * self.service_ms[node]
        other = max(0.0, reply.response_ms - reply.service_ms)
        self.other_ms[node] = take * other + keep * self.other_ms[node]
        self.heard[node] = True


class Learner:
    """Common part of the adaptive rules at work: the coin, the gateway itself, keeping count.

    Parameters
    ----------
    share
        x of the coin.
    nodes, leader
        Of the cluster.
    draws
        Numbers from U[0, 1).
    """

    def __init__(self, share: float, nodes: int, leader: int, draws: Iterator[float]) -> None:
        self.share, self.nodes, self.leader = share, nodes, leader
        self.draws = draws
        self.needed = nodes // 2
        self.known = [Knowledge(nodes) for _ in range(nodes)]
        self.others = [others_of(gateway, nodes, leader) for gateway in range(nodes)]

    def pick(self, gateway: int, now: float) -> list[int]:
        """Choose the m other nodes of a quorum."""
        raise NotImplementedError

    def choose(self, gateway: int, now: float) -> Quorum:
        """Toss the coin, else add the gateway itself to the nodes of :meth:`pick`."""
        alone = gateway == self.leader or (self.share > 0 and next(self.draws) < self.share)
        quorum = (self.leader,) if alone else (gateway, *self.pick(gateway, now))
        outstanding = self.known[gateway].outstanding
        for node in quorum:
            outstanding[node] += 1
        return quorum

    def answered(self, reply: Answered) -> None:
        """Take note of a reply."""
        self.known[reply.gateway].note(reply)

    def least(self, gateway: int, keys: list[float], candidates: list[int]) -> list[int]:
        """The m candidates of least key; ties are broken at random."""
        order = sorted((keys[node], next(self.draws), node) for node in candidates)
        return [node for _, _, node in order[: self.needed]]
