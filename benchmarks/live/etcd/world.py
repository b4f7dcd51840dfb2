"""A cluster of etcd on the network of an instance."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.live.delay_proxy import DelayProxy
from benchmarks.live.emulated_wan import EmulatedWan, Jitter
from benchmarks.live.etcd.clients import EtcdClients, Measured
from benchmarks.live.etcd.cluster import Address, EtcdCluster
from benchmarks.live.layouts import Layout
from benchmarks.live.live_world import network
from benchmarks.live.programs import ETCD, awaited, go_program
from benchmarks.live.server_bench import ServerBench
from placement import Instance
from placement.databases import Deployment, load_system
from placement.databases.system import write_deployment

__all__ = ["PORTS", "EtcdBench"]

PORTS = (2380, 2379)
"""Of a server, for its peers and for clients."""

TIMES = ("--heartbeat-interval=300", "--election-timeout=3000")
"""ms; etcd's tuning guide asks for about the largest RTT, and ten times that."""


class EtcdBench(ServerBench):
    """The network of an instance with etcd on it, as a context; one cluster at a time.

    Parameters
    ----------
    instance
        Sites, clients and RTTs.
    jitter
        How delays vary; by default they do not.
    times
        Options of every server, about heartbeats and elections.
    wan
        The network; by default namespaces.
    """

    def __init__(
        self,
        instance: Instance,
        jitter: Jitter | None = None,
        times: Sequence[str] = TIMES,
        wan: EmulatedWan | DelayProxy | None = None,
    ) -> None:
        super().__init__(instance, network(instance, jitter) if wan is None else wan, "etcd")
        self.times = times
        self.program = go_program(ETCD)
        self.cluster: EtcdCluster | None = None

    def start(self, layout: Layout, leader: str) -> EtcdCluster:
        """Stop the cluster that runs, and start one as its runbook says."""
        if self.cluster is not None:
            self.cluster.stop()
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        addresses = {
            site: Address(
                *(
                    f"http://{where(site)}:{port}"
                    for where in (self.wan.address, self.wan.listener)
                    for port in PORTS
                )
            )
            for site in self.instance.sites
        }
        self.cluster = EtcdCluster(
            self.program, folder, addresses, self._processes, self.wan.inside, self.times, 8
        )
        self.reach(layout.deployment(leader))
        return self.cluster

    def reach(self, goal: Deployment) -> None:
        """Bring the cluster from its present deployment to another one by a runbook."""
        assert self.cluster is not None
        system = load_system("etcd")
        present = self.cluster.deployment() if self.cluster.alive() else None
        if present is None or present.differences(system.said(goal)):
            self.cluster.carry_out(write_deployment(system, goal, self.cluster.request(), present))
        self.cluster.becomes(goal)

    def leader(self) -> str:
        """Return the site that leads now."""
        assert self.cluster is not None
        cluster = self.cluster
        return awaited(lambda: cluster.deployment().leaders, lambda found: len(found) == 1)[0]

    def clients(self, mix: Mapping[str, Sequence[str]], **options: float | str) -> EtcdClients:
        """Start clients that know every server that runs; see :class:`EtcdClients`."""
        assert self.cluster is not None
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        return EtcdClients(self.program, self.wan, self.cluster.urls, mix, folder, **options)

    def measure(
        self, mix: Mapping[str, Sequence[str]], limit: float, **options: float | str
    ) -> list[Measured]:
        """Run clients to their end, within a limit; every operation must succeed."""
        found, missing = self.clients(mix, **options).finish(limit)
        assert missing == 0, f"{missing} acknowledged writes cannot be read"
        failed = [one for one in found if not one.done]
        assert not failed, failed[:3]
        return found

    def mix(self, layout: Layout, *kinds: str) -> dict[str, list[str]]:
        """Return operations for every client: "local" goes to its closest replica."""
        return {client: self.operations(client, layout, kinds) for client in self.instance.clients}

    def operations(self, client: str, layout: Layout, kinds: Sequence[str]) -> list[str]:
        """Return operations of one client in equal shares, as the clients' program takes them."""
        assert self.cluster is not None
        row = self.instance.client_rtt[self.instance.client_index(client)]
        near = min(layout.replicas, key=lambda site: row[self.instance.sites.index(site)])
        return [
            f"{kind}:1:{self.cluster.url(near) if kind == 'local' else 'leader'}" for kind in kinds
        ]
