"""The sample path: everything random that no rule may influence, drawn beforehand.

Operation number o has the same kind, key, gateway and work under every rule; clients take the
numbers in the order in which they become free, which does depend on the rule (a closed loop).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.errors import InputError
from placement.online.random_streams import spawn_streams
from placement.online.reads.cluster import RaftCluster, ReadWorkload
from placement.support.checks import BoolArray, FloatArray, instance_of, whole

__all__ = ["ReadSamplePath", "draw_path", "uniforms"]

CAUSES = ("arrivals", "work", "lags", "waits", "rule")
"""Kind, key, gateway; work; lags of followers; back-off; what a rule draws for itself."""


@dataclass(frozen=True, eq=False)
class ReadSamplePath:
    """Draws for a number of operations.

    Attributes
    ----------
    reads
        Whether an operation reads, shape (operations,).
    key, gateway
        Shape (operations,).
    work
        Unit-mean exponentials, shape (operations, 1 + n + 3): column 0 for the gateway, 1 + v for
        the visit to node v, the last three for L's further visits of a write.
    lag
        Unit-mean exponentials of the two messages to each follower and of the life of the intent,
        shape (operations, 2n + 1); only writes use them.
    more_keys, more_work
        Further keys of a read transaction, shape (operations, span − 1), and the work of reading
        them at each node, shape (operations, span − 1, n).
    rule, wait
        Generators for the rule and for the jitter of back-offs.
    """

    reads: BoolArray
    key: npt.NDArray[np.int64]
    gateway: npt.NDArray[np.int64]
    work: FloatArray
    lag: FloatArray
    more_keys: npt.NDArray[np.int64]
    more_work: FloatArray
    rule: np.random.Generator
    wait: np.random.Generator

    @property
    def operations(self) -> int:
        """Return the number of sampled operations."""
        return len(self.reads)


def draw_path(
    cluster: RaftCluster, workload: ReadWorkload, operations: int, seed: int
) -> ReadSamplePath:
    """Draw a sample path from independent streams of `seed`, one per cause."""
    instance_of(cluster, RaftCluster, "cluster", "a RaftCluster of placement.online.reads")
    instance_of(workload, ReadWorkload, "workload", "a ReadWorkload of placement.online.reads")
    operations = whole(operations, "operations", minimum=1)
    streams = spawn_streams(seed, CAUSES)
    arrivals = streams["arrivals"]
    reads = arrivals.random(operations) < workload.read_share
    hot = arrivals.random(operations) < workload.hot_share
    place = arrivals.random(operations)
    warm, cold = workload.hot_keys, workload.keys - workload.hot_keys
    key = np.where(
        hot | (cold == 0),
        np.floor(place * max(warm, 1)),
        warm + np.floor(place * max(cold, 1)),
    ).astype(np.int64)
    shares = workload.gateway_shares(cluster.nodes)
    gateway = np.searchsorted(np.cumsum(shares)[:-1], arrivals.random(operations), side="right")
    work = streams["work"].exponential(size=(operations, cluster.nodes + 4))
    span = workload.span
    if workload.keys < span:
        raise InputError(
            "fewer keys than a transaction reads", field="span", value=span,
            expected=f"at most keys = {workload.keys}",
        )  # fmt: skip
    # The next keys in order are in other groups; steps of whole rounds of groups keep that.
    rounds = max(1, workload.keys // (cluster.groups * span))
    step = 1 + cluster.groups * arrivals.integers(rounds, size=(operations, span - 1))
    return ReadSamplePath(
        reads,
        key,
        gateway.astype(np.int64),
        work,
        streams["lags"].exponential(size=(operations, 2 * cluster.nodes + 1)),
        (key[:, np.newaxis] + np.cumsum(step, axis=1)) % workload.keys,
        streams["work"].exponential(size=(operations, span - 1, cluster.nodes)),
        streams["rule"],
        streams["waits"],
    )


def uniforms(rng: np.random.Generator, block: int = 4096) -> Iterator[float]:
    """Numbers from U[0, 1) without end, drawn in blocks: far cheaper than one by one."""
    while True:
        yield from rng.random(block).tolist()
