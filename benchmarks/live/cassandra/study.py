"""Real Cassandra clusters under an emulated wide-area network, held against the model.

    python -m benchmarks run live.cassandra                    some minutes
    python -m benchmarks run live.cassandra --quick            a short form; writes nothing
    python -m benchmarks run live.cassandra --only latency     a part; the other keeps what it had

Five replicas, each in a separate datacentre. A client asks its closest node, which coordinates. A
write goes to all replicas, and waits for as many as its consistency level says, the coordinator
counted. A read goes to that many alone: those of the coordinator's datacentre first, then others in
the order of the ring, which is one at random for each key. So a read at QUORUM waits for the slower
of two of the four others, drawn at random, and not for the third closest replica.

Needs Linux with the right to make network namespaces, Java and Maven. Writes
``benchmarks/results/live_cassandra.json``; with ``--write-docs``, its tables of the page.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

import placement
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.result_files import Row
from benchmarks.live.cassandra.cluster import (
    CassandraClient,
    CassandraCluster,
    CassandraNode,
    cassandra_programs,
)
from benchmarks.live.emulated_wan import EmulatedWan
from benchmarks.live.latency_tables import latency_row, software_share, summary_table
from benchmarks.live.layouts import Layout, azure_part, drawn
from benchmarks.live.live_world import client_node, network, predicted
from benchmarks.live.load_rows import load_row, load_table
from benchmarks.live.server_bench import ServerBench
from benchmarks.live.study_parts import Parts, live_study, runs_text
from placement import Instance, Operation, Problem
from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import write_deployment

REPLICAS, QUORUM = 5, 3
NAMES = {
    "write-one": "write, ONE",
    "write-quorum": "write, QUORUM",
    "write-all": "write, ALL",
    "read-one": "read, ONE",
    "read-quorum": "read, QUORUM",
}
OPERATIONS = (
    Operation("write-one", near=1, kind="write"),
    Operation("write-quorum", near=1, kind="write", waits=[f"near: {QUORUM} of voters"]),
    Operation("write-all", near=1, kind="write", waits=["near: all of voters"]),
    Operation("read-one", near=1, kind="read"),
    Operation(
        "read-quorum",
        near=1,
        kind="read",
        waits=[
            f"{1 / 6!r} × near: {QUORUM} of voters",
            f"{1 / 3!r} × near: {QUORUM + 1} of voters",
            "0.5 × near: all of voters",
        ],
    ),
)
"""The slower of two of four is the second, third or fourth closest in 1, 2 or 3 of six cases."""

_STATEMENTS = {
    "write": "INSERT INTO live.t (k, v) VALUES ({key}, 2)",
    "read": "SELECT v FROM live.t WHERE k = %(turn)d",
}
_SYSTEM = load_system("cassandra")


class CassandraBench(ServerBench):
    """The network of an instance with a cluster on it, as a context."""

    def __init__(self, instance: Instance, layout: Layout, *, dynamic: bool) -> None:
        super().__init__(instance, network(instance), "cassandra")
        self.layout = layout
        self._programs = cassandra_programs()
        self._dynamic = dynamic
        self._nodes = {
            site: CassandraNode(site, site.replace(" ", "-"), self.wan.address(site), site)
            for site in layout.replicas
        }

    def __enter__(self) -> Self:
        super().__enter__()
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _start(self) -> None:
        self.cluster = CassandraCluster(
            self._programs,
            self._folder,
            list(self._nodes.values()),
            self._processes,
            self.wan.inside,
            dynamic=self._dynamic,
        )
        self.cluster.form()
        names = Localities(
            self.instance.sites,
            tuple(Locality(node.datacentre, site) for site, node in self._nodes.items()),
        )
        wanted = Deployment.of(
            "live", dict.fromkeys(self.layout.replicas, 1), read=QUORUM, commit=QUORUM
        )
        text = write_deployment(_SYSTEM, wanted, _SYSTEM.request(names, "live")).text
        for line in text.splitlines():
            if line and not line.startswith("--"):
                self.cluster.run(line)
        self.cluster.run("CREATE TABLE live.t (k int PRIMARY KEY, v int)")
        self._clients = {
            client: CassandraClient(
                self._programs[1], self._processes, self.wan.inside(client_node(client))
            )
            for client in self.instance.clients
        }

    def measure(
        self, operation: str, sites: Sequence[str], count: int
    ) -> dict[str, Sequence[float]]:
        """Return latencies in ms by client; each asks the closest of some sites."""
        found = self._ask(operation, sites, count=count)
        return {client: answer["ms"] for client, answer in found.items()}

    def load(self, writes: int, seconds: float) -> tuple[dict[str, list[tuple[float, float]]], int]:
        """Return the end (s since 1970) and the latency (ms) of writes at QUORUM by client.

        Each client keeps `writes` of them in flight, at its closest node. The number says how many
        writes failed.
        """
        found = self._ask("write-quorum", self.layout.voters, writes=writes, seconds=seconds)
        written = {
            client: [(end, ms) for end, ms in answer["written"]] for client, answer in found.items()
        }
        return written, sum(answer["failed"] for answer in found.values())

    def _ask(
        self, operation: str, sites: Sequence[str], **question: float
    ) -> dict[str, dict[str, Any]]:
        """Ask all clients at once, each about its closest site, and return their answers."""
        verb, _, level = operation.partition("-")
        for key, (client, program) in enumerate(self._clients.items()):
            row = self.instance.client_rtt[self.instance.client_index(client)]
            near = min(sites, key=lambda site: row[self.instance.sites.index(site)])
            program.send(
                self._nodes[near].address,
                cql=_STATEMENTS[verb].format(key=key),
                level=level.upper(),
                **question,
            )
        found = {client: program.answer() for client, program in self._clients.items()}
        for answer in found.values():
            assert "error" not in answer, answer
        return found


def leaderless(instance: Instance) -> Layout:
    """Return the proven optimum of writes at QUORUM: five sites that all vote, and no leader."""
    asked = np.zeros_like(instance.counts)
    asked[..., [one.name for one in instance.operations].index("write-quorum")] = 1
    problem = Problem(instance.replace(counts=asked), replicas=REPLICAS, voters=REPLICAS)
    plan = placement.solve(problem, "exact")
    assert str(plan.status) == "optimal"
    return Layout(f"planned {REPLICAS}", tuple(plan.voters), (), ())


def measure(quick: bool) -> Iterator[Row]:
    """Yield a row per configuration, client and operation, with mean latencies.

    Further columns: snitch ("static" or "dynamic"), lost (site of a node that was killed, or "").
    """
    instance = azure_part(operations=OPERATIONS)
    fitted = drawn(instance, REPLICAS, REPLICAS, seed=3)
    tried = [leaderless(instance), drawn(instance, REPLICAS, REPLICAS, seed=2)]
    cases = [("test", tried[0], False)]
    if not quick:
        cases = [("fit", fitted, False), *(("test", one, False) for one in tried)]
        cases += [("dynamic", tried[0], True)]
    for part, layout, dynamic in cases:
        with CassandraBench(instance, layout, dynamic=dynamic) as bench:
            yield from _configuration(bench, part, "", 8 if quick else 30)
            if part == "test" and not quick:
                killed = layout.voters[0]
                bench.cluster.stop(killed)
                time.sleep(30)  # until the others know that it is down
                yield from _configuration(bench, "after", killed, 8 if quick else 30)


def load(quick: bool) -> Iterator[Row]:
    """Yield a row per number of writes at QUORUM in flight; see :func:`load_row`.

    A further column: failed, the number of writes that timed out.
    """
    instance = azure_part(operations=OPERATIONS)
    layout = leaderless(instance)
    model = predicted(instance, layout.voters[0], layout.voters, layout.voters)
    expected = {client: model[client, "write-quorum"] for client in instance.clients}
    with CassandraBench(instance, layout, dynamic=False) as bench:
        bench.measure("write-quorum", layout.voters, 5)
        for writes in (1, 16) if quick else (1, 4, 16, 64, 256, 1024):
            assert isinstance(bench.wan, EmulatedWan)
            bench.wan.statistics()
            found, failed = bench.load(writes, 5 if quick else 12)
            late = bench.wan.statistics()["mean"]
            row = load_row(layout, writes * len(instance.clients), expected, found, late)
            yield {**row, "failed": failed}


def _configuration(bench: CassandraBench, part: str, lost: str, count: int) -> Iterator[Row]:
    """Measure one configuration; all clients at once, each operation after the other."""
    layout = bench.layout
    alive = [site for site in layout.voters if site != lost]
    model = predicted(bench.instance, alive[0], alive, alive)
    for operation in bench.instance.operations:
        if lost and operation.name != "write-quorum":
            continue
        times = 5 * count if operation.name == "read-quorum" else count  # a draw for each key
        for client, values in bench.measure(operation.name, alive, times).items():
            asked = (client, operation.name)
            yield {
                **latency_row(part, layout, "", asked, model[asked], values),
                "snitch": "dynamic" if part == "dynamic" else "static",
                "lost": lost,
            }


def _version() -> str:
    """Return the version of the server."""
    jar = next(Path(cassandra_programs()[0][:-1]).glob("cassandra-all-*.jar"))
    return f"Cassandra {jar.stem.removeprefix('cassandra-all-')}"


def _reads_table(rows: Sequence[Row]) -> str:
    """Return a line per client and layout: reads at QUORUM against both models."""
    share = software_share(rows, ["read-quorum", "read-one"])
    third = {
        (row["part"], row["layout"], row["client"]): row["predicted"] + share["read-one"]
        for row in rows
        if row["operation"] == "write-quorum"
    }
    lines = []
    for row in rows:
        if row["operation"] == "read-quorum" and row["part"] in ("test", "dynamic"):
            real = row["measured"]
            models = (
                third[row["part"], row["layout"], row["client"]],
                row["predicted"] + share["read-quorum"],
            )
            cells = [f"{ms:.0f} ({100 * (real / ms - 1):+.0f} %)" for ms in models]
            lines.append((row["layout"], row["snitch"], row["client"], f"{real:.0f}", *cells))
    heads = ("layout", "snitch", "client", "measured, ms", "third closest, ms (error)",
             "slower of two, ms (error)")  # fmt: skip
    return markdown_table(heads, lines)


def _losses_table(rows: Sequence[Row]) -> str:
    """Return a line per client and layout: writes at QUORUM after a node was killed."""
    share = software_share(rows, ["write-quorum"])["write-quorum"]
    lines = [
        (row["layout"], row["lost"], row["client"], f"{row['predicted'] + share:.0f}",
         f"{row['measured']:.0f}",
         f"{100 * (row['measured'] / (row['predicted'] + share) - 1):+.1f} %")
        for row in rows
        if row["part"] == "after"
    ]  # fmt: skip
    heads = ("layout", "killed", "client", "predicted after, ms", "measured after, ms", "error")
    return markdown_table(heads, lines)


def _report(document: Mapping[str, Any]) -> Mapping[str, str]:
    rows = document["latency"]["rows"]
    return {
        "cassandra summary": summary_table(rows, NAMES),
        "cassandra reads": _reads_table(rows),
        "cassandra losses": _losses_table(rows),
        "cassandra load": load_table(document["load"]["rows"], "writes in flight"),
        "cassandra runs": runs_text(document),
    }


PARTS: Parts = {"latency": measure, "load": load}
STUDY = live_study(__doc__, "live_cassandra.json", PARTS, _version, _report)
