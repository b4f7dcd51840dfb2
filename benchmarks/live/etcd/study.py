"""Real etcd servers under an emulated wide-area network, held against the model.

    python -m benchmarks run live.etcd                    latencies and losses of leaders
    python -m benchmarks run live.etcd --quick            a short form; writes nothing
    python -m benchmarks run live.etcd --only latency     a part; the others keep what they had

Needs Linux with the right to make network namespaces, and Go. Writes
``benchmarks/results/live_etcd.json``; with ``--write-docs``, its tables of the page.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.live.etcd.cluster import Address, EtcdCluster
from benchmarks.live.harness import Latencies, Layout, LiveSystem, client_node, live_study
from benchmarks.live.programs import ETCD, awaited, go_program
from placement import Operation
from placement.databases import load_system
from placement.databases.system import write_deployment

__all__ = ["STUDY", "Etcd"]

_PORTS = (2380, 2379)
"""Of a server, for its peers and for clients."""
_TIMES = ("--heartbeat-interval=300", "--election-timeout=3000")
"""ms; etcd's tuning guide asks for about the largest RTT, and ten times that."""


class Etcd(LiveSystem):
    """Servers that a runbook of the export starts; clients follow the leader."""

    title, results, write, fails_over = "", "live_etcd.json", "put", True
    operations = (
        Operation("put", direct=1, quorum=1, kind="write"),
        # linearizable: the leader asks a quorum whether it still leads
        Operation("read", direct=1, quorum=1, kind="read"),
        # serializable: the closest replica answers from what it has
        Operation("local", near=1, kind="read"),
    )
    words: ClassVar[Mapping[str, str]] = {
        "put": "write",
        "read": "linearizable read, alone",
        "busy read": "linearizable read among others",
        "local": "serializable read",
    }
    _cluster: EtcdCluster | None = None

    @classmethod
    def version(cls) -> str:
        """Return the version of the server, and of the Go that built it."""
        done = subprocess.run(
            [go_program(ETCD), "--version"], capture_output=True, text=True, check=True
        )
        words = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
        return f"etcd {words['etcd Version']}, {words['Go Version']}"

    def start(self, layout: Layout, leader: str) -> None:
        """Start a cluster, or move the leadership of the one that runs, as a runbook says."""
        goal, system = layout.deployment(leader), load_system("etcd")
        cluster = self._cluster
        if cluster is None or set(cluster.alive()) != {cluster.name(s) for s in layout.replicas}:
            if cluster is not None:
                cluster.stop()
            addresses = {
                site: Address(*(f"http://{self.wan.address(site)}:{port}" for port in _PORTS))
                for site in self.instance.sites
            }
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            self._cluster = cluster = EtcdCluster(
                go_program(ETCD), folder, addresses, self.processes, self.wan.inside, _TIMES, 8
            )
        present = cluster.deployment() if cluster.alive() else None
        if present is None or present.differences(system.keeps(goal)):
            cluster.carry_out(write_deployment(system, goal, cluster.request(), present))
        cluster.becomes(goal)

    def measure(self, sites: Sequence[str], leader: str, count: int) -> Latencies:
        """Linearizable reads are measured alone: a leader has one round of votes at a time."""
        del leader  # the clients follow it
        found = self._clients(dict.fromkeys(self.instance.clients, ("put", "local")), sites, count)
        for client in self.instance.clients:
            found |= self._clients({client: ("read",)}, sites, count)
        return found

    def kill(self, site: str) -> str:
        """Kill the leader; the others elect one of them."""
        assert self._cluster is not None
        cluster = self._cluster
        cluster.kill(site)
        leaders = awaited(
            lambda: cluster.deployment().leaders, lambda found: found not in ((), (site,)), 60
        )
        time.sleep(2)  # until clients have learned of it
        return leaders[0]

    def _clients(
        self, kinds: Mapping[str, Sequence[str]], sites: Sequence[str], count: int
    ) -> Latencies:
        """Return the latencies of the kinds that each client issues, `count` of each."""
        assert self._cluster is not None
        running = {}
        for number, (client, mine) in enumerate(kinds.items()):
            near = self._cluster.url(self.closest(client, sites))
            operations = [f"{kind}:1:{near if kind == 'local' else 'leader'}" for kind in mine]
            running[client] = subprocess.Popen(
                [
                    *self.wan.inside(client_node(client)),
                    *("setpriv", "--pdeathsig", "KILL", "--", str(go_program(ETCD)), "load"),
                    *("-endpoints", ",".join(self._cluster.urls), "-ops", ",".join(operations)),
                    *("-name", f"c{number}", "-seed", str(number + 1)),
                    f"-count={count * len(mine)}",
                ],
                stdout=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
            self.processes.adopt(running[client])
        found: Latencies = {}
        for client, process in running.items():
            output, _ = process.communicate(timeout=120)
            assert process.returncode == 0, f"clients at {client} ended with {process.returncode}"
            values: dict[str, list[float]] = {kind: [] for kind in kinds[client]}
            for line in output.splitlines():
                start, *rest = line.split()
                if start == "CHECK":  # acknowledged writes that cannot be read
                    assert rest[1] == "0", line
                    continue
                assert rest[3] == "1", line  # it succeeded
                values[rest[0]].append(int(rest[1]) / 1e3)
            found |= {(client, kind): ms for kind, ms in values.items()}
        return found


STUDY = live_study(__doc__, Etcd)
