"""Sites, clients and configurations on which etcd is tried, and a cluster on the network."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import placement
from benchmarks.live.delay_proxy import DelayProxy
from benchmarks.live.emulated_wan import EmulatedWan, Jitter
from benchmarks.live.etcd_clients import Clients, Measured
from benchmarks.live.etcd_cluster import Address, EtcdCluster
from benchmarks.live.live_world import live_instance, network
from benchmarks.live.processes import Processes
from benchmarks.live.programs import ETCD, awaited, go_program
from placement import Instance, Problem
from placement.databases import Deployment, load_system
from placement.databases.system import write_deployment

__all__ = ["CLIENTS", "PORTS", "SITES", "EtcdBench", "Layout", "azure_part", "drawn", "planned"]

SITES = (
    "East US", "West US 2", "North Europe", "Germany West Central", "Brazil South",
    "Southeast Asia", "Japan East", "Australia East", "Central India", "UK South",
)  # fmt: skip
CLIENTS = ("Central US", "West Europe", "Brazil South", "Southeast Asia", "Australia East")
PORTS = (2380, 2379)
"""Of a server, for its peers and for clients."""

TIMES = ("--heartbeat-interval=300", "--election-timeout=3000")
"""ms; etcd's tuning guide asks for about the largest RTT, and ten times that."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Who votes and who learns; the leader changes.

    Attributes
    ----------
    name
        What tables call it.
    voters, learners
        Names of sites.
    leaders
        Voters that are tried as leaders, best first by the model where it was planned.
    """

    name: str
    voters: tuple[str, ...]
    learners: tuple[str, ...]
    leaders: tuple[str, ...]

    @property
    def replicas(self) -> tuple[str, ...]:
        """Voters and learners."""
        return self.voters + self.learners

    def deployment(self, leader: str) -> Deployment:
        """Return the layout as what a runbook should reach."""
        return Deployment.of(
            "live",
            dict.fromkeys(self.voters, 1),
            dict.fromkeys(self.learners, 1),
            leaders=(leader,),
        )


def azure_part(sites: Sequence[str] = SITES, clients: Sequence[str] = CLIENTS) -> Instance:
    """Return measured RTTs of Azure regions, one operation of each kind per client."""
    return live_instance(placement.load("azure"), sites, clients)


def planned(instance: Instance, replicas: int, voters: int) -> Layout:
    """Return the proven optimum, with every voter as a leader, the plan's first."""
    plan = placement.solve(Problem(instance, replicas=replicas, voters=voters), "exact")
    assert plan.leader is not None
    others = sorted(set(plan.voters) - {plan.leader})
    return Layout(
        f"planned {voters}/{replicas}",
        tuple(plan.voters),
        tuple(name for name in plan.replicas if name not in plan.voters),
        (plan.leader, *others),
    )


def drawn(instance: Instance, replicas: int, voters: int, seed: int) -> Layout:
    """Return a layout without any thought, with every voter as a leader."""
    names = random.Random(seed).sample(instance.sites, replicas)
    return Layout(
        f"drawn {voters}/{replicas}", tuple(names[:voters]), tuple(names[voters:]),
        tuple(names[:voters]),
    )  # fmt: skip


class EtcdBench:
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
        self.instance, self.times = instance, times
        self.wan = network(instance, jitter) if wan is None else wan
        self.program = go_program(ETCD)
        self.cluster: EtcdCluster | None = None
        self._processes = Processes()
        self._folder = Path()

    def __enter__(self) -> Self:
        self.wan.__enter__()
        self._folder = Path(tempfile.mkdtemp(prefix="live-etcd-"))
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._processes.stop_all()
        self.wan.close()
        shutil.rmtree(self._folder, ignore_errors=True)

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
        """Bring the cluster to a deployment by a runbook from what it is."""
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

    def clients(self, mix: Mapping[str, Sequence[str]], **options: float | str) -> Clients:
        """Start clients that know every server that runs; see :class:`Clients`."""
        assert self.cluster is not None
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        return Clients(self.program, self.wan, self.cluster.urls, mix, folder, **options)

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
