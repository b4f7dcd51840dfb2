"""C3: rank replicas by expected delay with a cubed queue estimate, hold back by rate control.

Source: L. Suresh, M. Canini, S. Schmid, A. Feldmann, "C3: Cutting tail latency in cloud data stores
via adaptive replica selection", NSDI 2015; the score as the authors' simulator computes it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field

from heuristics.online.selection.tie_orders import Tied, in_tie_order
from placement.online.selection import LimiterRules, Servers, ServerSamplePath
from placement.support.checks import flag, number

__all__ = ["C3", "C3Selector", "c3_score"]


def c3_score(
    outstanding: float,
    queue: float,
    service_ms: float,
    network_ms: float,
    *,
    weight: float,
    exponent: float = 3.0,
) -> float:
    """Return Ψ = (R̄ − S̄) + q̂^b·S̄ with q̂ = 1 + os·w + q̄; lower is better.

    Parameters
    ----------
    outstanding
        os: requests of this client sent to the server and unanswered.
    queue
        q̄: smoothed queue length reported by the server.
    service_ms
        S̄: smoothed service time.
    network_ms
        Smoothed (response time − service time), kept as one average.
    weight
        w, by default the number of clients.
    exponent
        b.
    """
    estimate = 1.0 + outstanding * weight + queue
    return network_ms + math.pow(estimate, exponent) * service_ms


@dataclass(frozen=True)
class C3(Tied):
    """The policy.

    Parameters
    ----------
    exponent
        b >= 0.
    weight
        w >= 0: how many requests one outstanding request stands for; None: the number of clients.
    smoothing
        Weight of the newest sample in the averages; the first sample replaces the initial state.
    outstanding
        Whether outstanding requests count at all.
    tie
        "random" or, as the authors' simulator does, "ring".
    limiter
        Rate control; None: none.

    Notes
    -----
    O(replication·log replication) per read. A server never heard from has score 0, so it is tried
    first.
    """

    _: KW_ONLY
    exponent: float = 3.0
    weight: float | None = None
    smoothing: float = 0.9
    outstanding: bool = True
    limiter: LimiterRules | None = field(default_factory=LimiterRules)
    name: str = "C3"

    def __post_init__(self) -> None:
        super().__post_init__()
        number(self.exponent, "exponent")
        if self.weight is not None:
            number(self.weight, "weight")
        number(self.smoothing, "smoothing", above=True, maximum=1.0)
        flag(self.outstanding, "outstanding")

    def effective_weight(self, clients: int) -> float:
        """Return w for a number of clients."""
        if not self.outstanding:
            return 0.0
        return float(clients) if self.weight is None else float(self.weight)

    def start(self, sample: ServerSamplePath, servers: Servers) -> C3Selector:
        """Return a selector that has heard nothing yet."""
        return C3Selector(self, sample)


class C3Selector:
    """C3 at work: averages and outstanding requests of every pair of client and server."""

    def __init__(self, policy: C3, sample: ServerSamplePath) -> None:
        cluster = sample.cluster
        self._sample, self._tie = sample, policy.tie
        self._weight = policy.effective_weight(cluster.clients)
        self._exponent, self._alpha = policy.exponent, policy.smoothing
        self._count = cluster.servers
        pairs = cluster.clients * cluster.servers
        self._heard = [False] * pairs
        self._outstanding = [0] * pairs
        self._queue = [0.0] * pairs
        self._service = [0.0] * pairs
        self._network = [0.0] * pairs

    def score(self, client: int, server: int) -> float:
        """Ψ of a server as this client sees it; 0 when nothing was heard."""
        pair = client * self._count + server
        if not self._heard[pair]:
            return 0.0
        return c3_score(
            self._outstanding[pair],
            self._queue[pair],
            self._service[pair],
            self._network[pair],
            weight=self._weight,
            exponent=self._exponent,
        )

    def rank(self, read: int, client: int, replicas: Sequence[int], now: float) -> Sequence[int]:
        """Sort by score, stably."""
        order = in_tie_order(self._sample, self._tie, read, replicas)
        return sorted(order, key=lambda server: self.score(client, server))

    def sent(self, number: int, read: int, client: int, server: int, now: float) -> None:
        """Count the read as outstanding, copies too."""
        self._outstanding[client * self._count + server] += 1

    def answered(
        self,
        client: int,
        server: int,
        response_ms: float,
        service_ms: float,
        queue: int,
        now: float,
    ) -> None:
        """Blend the feedback in; one request fewer is outstanding."""
        pair = client * self._count + server
        self._outstanding[pair] -= 1
        network = response_ms - service_ms
        if not self._heard[pair]:
            self._heard[pair] = True
            self._queue[pair] = float(queue)
            self._service[pair] = service_ms
            self._network[pair] = network
            return
        new, old = self._alpha, 1.0 - self._alpha
        self._queue[pair] = new * queue + old * self._queue[pair]
        self._service[pair] = new * service_ms + old * self._service[pair]
        self._network[pair] = new * network + old * self._network[pair]
