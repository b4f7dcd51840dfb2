"""Real PostgreSQL with synchronous standbys under an emulated wide-area network, against the model.

    python -m benchmarks run live.postgresql                    some minutes
    python -m benchmarks run live.postgresql --quick            a short form; writes nothing
    python -m benchmarks run live.postgresql --only latency     a part; the other keeps what it had

Needs Linux with the right to make network namespaces, and an installed PostgreSQL. Writes
``benchmarks/results/live_postgresql.json``; with ``--write-docs``, its tables of the page.
"""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness.result_files import Row
from benchmarks.live.latency_tables import configurations_table, latency_row, summary_table
from benchmarks.live.layouts import Layout, azure_part, drawn, planned
from benchmarks.live.live_world import PUT, network, predicted
from benchmarks.live.load_rows import load_row, load_table
from benchmarks.live.postgresql.cluster import PostgresCluster, server_programs
from benchmarks.live.processes import Processes
from benchmarks.live.study_parts import Parts, live_study, runs_text
from placement import Instance, Operation

NAMES = {"put": "write", "read": "read at the primary", "local": "read at the closest server"}
OPERATIONS = (PUT, Operation("read", direct=1, kind="read"), Operation("local", near=1))


@contextlib.contextmanager
def _cluster(instance: Instance) -> Iterator[PostgresCluster]:
    """Start the network of an instance; the servers stop, and their data goes, at the end."""
    folder = Path(tempfile.mkdtemp(prefix="live-postgresql-"))
    try:
        folder.chmod(0o755)
        with network(instance) as wan, Processes() as processes:
            yield PostgresCluster(wan, folder, processes)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def measure(quick: bool) -> Iterator[Row]:
    """Yield a row per configuration, client and operation, with mean latencies."""
    instance = azure_part(operations=OPERATIONS)
    fitted = drawn(instance, 4, 3, seed=3)
    tried = [planned(instance, 5, 3), planned(instance, 7, 5), drawn(instance, 6, 5, seed=2)]
    cases = [("fit", fitted, fitted.leaders[:1]), ("test", tried[0], tried[0].leaders[:2])]
    if not quick:
        cases = [("fit", fitted, fitted.leaders)]
        cases += [("test", layout, layout.leaders) for layout in tried]
    with _cluster(instance) as cluster:
        for part, layout, leaders in cases:
            for leader in leaders:
                cluster.start(layout.deployment(leader))
                yield from _configuration(
                    instance, cluster, layout, leader, part, 8 if quick else 20
                )


def load(quick: bool) -> Iterator[Row]:
    """Yield a row per number of connections that write without a pause; see :func:`load_row`."""
    instance = azure_part(operations=[PUT])
    layout = planned(instance, 5, 3)
    leader = layout.leaders[0]
    expected = {
        client: ms
        for (client, _), ms in predicted(instance, leader, layout.voters, layout.replicas).items()
    }
    with _cluster(instance) as cluster:
        cluster.start(layout.deployment(leader))
        for connections in (1, 16) if quick else (1, 4, 16, 64, 128, 256, 384):
            cluster.wan.statistics()
            running = [
                cluster.load(client, leader, c + 1, connections, 5 if quick else 12)
                for c, client in enumerate(instance.clients)
            ]
            for process in running:
                assert process.wait(180) == 0, "a client failed"
            found = {client: cluster.written(c + 1) for c, client in enumerate(instance.clients)}
            late = cluster.wan.statistics()["mean"]
            yield load_row(layout, connections * len(running), expected, found, late)


PARTS: Parts = {"latency": measure, "load": load}


def _configuration(
    instance: Instance, cluster: PostgresCluster, layout: Layout, leader: str, part: str, count: int
) -> Iterator[Row]:
    """Measure one configuration; all clients at once, each operation after the other."""
    model = predicted(instance, leader, layout.voters, layout.replicas)
    for operation in instance.operations:
        running = []
        for c, client in enumerate(instance.clients):
            near = min(
                layout.replicas,
                key=lambda site, c=c: instance.client_rtt[c, instance.sites.index(site)],  # type: ignore[misc]
            )
            kind, server = ("read", near) if operation.name == "local" else (operation.name, leader)
            running.append(cluster.latencies(client, server, kind, c + 1, count + 2))
        for process in running:
            assert process.wait(120) == 0, "a client failed"
        for c, client in enumerate(instance.clients):
            kind = "read" if operation.name == "local" else operation.name
            values = cluster.measured(kind, c + 1)
            ms = model[client, operation.name]
            yield latency_row(part, layout, leader, (client, operation.name), ms, values)


def _version() -> str:
    """Return the version of the server."""
    command = [str(server_programs() / "postgres"), "--version"]
    shown = subprocess.run(command, capture_output=True, text=True, check=True)
    return shown.stdout.strip()


def _report(document: Mapping[str, Any]) -> Mapping[str, str]:
    rows = document["latency"]["rows"]
    return {
        "postgresql summary": summary_table(rows, NAMES),
        "postgresql configurations": configurations_table(rows, "put"),
        "postgresql load": load_table(document["load"]["rows"]),
        "postgresql runs": runs_text(document),
    }


STUDY = live_study(__doc__, "live_postgresql.json", PARTS, _version, _report)
