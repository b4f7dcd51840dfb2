"""Real Cassandra clusters under an emulated wide-area network, held against the model.

    python -m benchmarks run live.cassandra                    some minutes
    python -m benchmarks run live.cassandra --quick            a short form; writes nothing

Five replicas, each in a separate datacentre. A client asks its closest node, which coordinates. A
write goes to all replicas, and waits for as many as its consistency level says, the coordinator
counted. A read goes to that many alone: those of the coordinator's datacentre first, then others in
the order of the ring, which is one at random for each key. So a read at QUORUM waits for the slower
of two of the four others, drawn at random, and not for the third closest replica.

Needs Linux with the right to make network namespaces, Java and Maven. Writes
``benchmarks/results/live_cassandra.json``; with ``--write-docs``, its tables of the page.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

import numpy as np

import placement
from benchmarks.live.cassandra.cluster import (
    CassandraClient,
    CassandraCluster,
    CassandraNode,
    cassandra_programs,
)
from benchmarks.live.harness import (
    Latencies,
    Layout,
    LiveSystem,
    client_node,
    drawn,
    live_study,
)
from placement import Operation, Problem
from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import write_deployment

__all__ = ["STUDY", "Cassandra"]

_REPLICAS, _QUORUM = 5, 3
_STATEMENTS = {
    "write": "INSERT INTO live.t (k, v) VALUES ({key}, 2)",
    "read": "SELECT v FROM live.t WHERE k = %(turn)d",
}
_SYSTEM = load_system("cassandra")


class Cassandra(LiveSystem):
    """A cluster without a leader; each client asks its closest node, at several levels."""

    title, results, write = "cassandra", "live_cassandra.json", "write-quorum"
    operations = (
        Operation("write-one", near=1, kind="write"),
        Operation("write-quorum", near=1, kind="write", waits=[f"near: {_QUORUM} of voters"]),
        Operation("write-all", near=1, kind="write", waits=["near: all of voters"]),
        Operation("read-one", near=1, kind="read"),
        # the slower of two of four is the 2nd, 3rd or 4th closest in 1, 2 or 3 of six cases
        Operation(
            "read-quorum",
            near=1,
            kind="read",
            waits=[
                f"{1 / 6!r} × near: {_QUORUM} of voters",
                f"{1 / 3!r} × near: {_QUORUM + 1} of voters",
                "0.5 × near: all of voters",
            ],
        ),
    )
    words: ClassVar[Mapping[str, str]] = {
        "write-one": "write, ONE",
        "write-quorum": "write, QUORUM",
        "write-all": "write, ALL",
        "read-one": "read, ONE",
        "read-quorum": "read, QUORUM",
    }
    _cluster: CassandraCluster | None = None

    @classmethod
    def version(cls) -> str:
        """Return the version of the server."""
        jar = next(Path(cassandra_programs()[0][:-1]).glob("cassandra-all-*.jar"))
        return f"Cassandra {jar.stem.removeprefix('cassandra-all-')}"

    def layouts(self, quick: bool) -> list[tuple[str, Layout]]:
        """Return the proven optimum of writes at QUORUM, and layouts that were drawn."""
        asked = np.zeros_like(self.instance.counts)
        asked[..., [one.name for one in self.instance.operations].index(self.write)] = 1
        instance = self.instance.replace(counts=asked)
        plan = placement.solve(Problem(instance, replicas=_REPLICAS, voters=_REPLICAS), "exact")
        best = Layout(f"planned {_REPLICAS}", tuple(plan.voters), (), ("",))
        others = [drawn(self.instance, _REPLICAS, _REPLICAS, seed) for seed in (3, 2)]
        first, second = (Layout(one.name, one.voters, (), ("",)) for one in others)
        return [("test", best)] if quick else [("fit", first), ("test", best), ("test", second)]

    def start(self, layout: Layout, leader: str) -> None:
        """Start a cluster, and make its keyspace as the export says."""
        del leader
        if self._cluster is not None:
            self._cluster.stop_all()
        nodes = [
            CassandraNode(site, site.replace(" ", "-"), self.wan.address(site), site)
            for site in layout.replicas
        ]
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        programs = cassandra_programs()
        self._cluster = cluster = CassandraCluster(
            programs, folder, nodes, self.processes, self.wan.inside
        )
        cluster.form()
        rows = tuple(Locality(node.datacentre, node.site) for node in nodes)
        wanted = Deployment.of(
            "live", dict.fromkeys(layout.replicas, 1), read=_QUORUM, commit=_QUORUM
        )
        request = _SYSTEM.request(Localities(self.instance.sites, rows), "live")
        for line in write_deployment(_SYSTEM, wanted, request).text.splitlines():
            if line and not line.startswith("--"):
                cluster.run(line)
        cluster.run("CREATE TABLE live.t (k int PRIMARY KEY, v int)")

    def measure(self, sites: Sequence[str], leader: str, count: int) -> Latencies:
        """Each operation after the other; reads at QUORUM of many keys, which are a draw each."""
        del leader
        assert self._cluster is not None
        clients = {
            client: CassandraClient(
                self._cluster.python, self.processes, self.wan.inside(client_node(client))
            )
            for client in self.instance.clients
        }
        found: Latencies = {}
        for operation in self.words:
            verb, _, level = operation.partition("-")
            times = 5 * count if operation == "read-quorum" else count
            for key, (client, program) in enumerate(clients.items()):
                program.send(
                    self.wan.address(self.closest(client, sites)),
                    cql=_STATEMENTS[verb].format(key=key),
                    level=level.upper(),
                    count=times,
                )
            for client, program in clients.items():
                answer = program.answer()
                assert "error" not in answer, answer
                found[client, operation] = answer["ms"]
        for program in clients.values():
            program.stop()
        return found


STUDY = live_study(__doc__, Cassandra)
