"""Real PostgreSQL with synchronous standbys under an emulated wide-area network, against the model.

    python -m benchmarks run live.postgresql             some minutes
    python -m benchmarks run live.postgresql --quick     fewer configurations; writes nothing

Needs Linux with the right to make network namespaces, and an installed PostgreSQL. Writes
``benchmarks/results/live_postgresql.json``; with ``--write-docs``, its tables of the page.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from benchmarks.harness import machine
from benchmarks.harness.machine import ROOT, sentence
from benchmarks.harness.result_files import Row, read_json, save_json
from benchmarks.harness.study import Study
from benchmarks.live.latency_tables import configurations_table, latency_row, summary_table
from benchmarks.live.layouts import Layout, azure_part, drawn, planned
from benchmarks.live.live_world import PUT, network, predicted
from benchmarks.live.postgresql.cluster import PostgresCluster, server_programs
from benchmarks.live.processes import Processes
from placement import Instance, Operation

RESULTS = ROOT / "benchmarks/results/live_postgresql.json"
NAMES = {"put": "write", "read": "read at the primary", "local": "read at the closest server"}
OPERATIONS = (PUT, Operation("read", direct=1, kind="read"), Operation("local", near=1))


def measure(quick: bool) -> Iterator[Row]:
    """Yield a row per configuration, client and operation, with mean latencies."""
    instance = azure_part(operations=OPERATIONS)
    fitted = drawn(instance, 4, 3, seed=3)
    tried = [planned(instance, 5, 3), planned(instance, 7, 5), drawn(instance, 6, 5, seed=2)]
    cases = [("fit", fitted, fitted.leaders[:1]), ("test", tried[0], tried[0].leaders[:2])]
    if not quick:
        cases = [("fit", fitted, fitted.leaders)]
        cases += [("test", layout, layout.leaders) for layout in tried]
    folder = Path(tempfile.mkdtemp(prefix="live-postgresql-"))
    try:
        folder.chmod(0o755)
        with network(instance) as wan, Processes() as processes:
            cluster = PostgresCluster(wan, folder, processes)
            for part, layout, leaders in cases:
                for leader in leaders:
                    cluster.start(layout.deployment(leader))
                    yield from _configuration(
                        instance, cluster, layout, leader, part, 8 if quick else 20
                    )
    finally:
        shutil.rmtree(folder, ignore_errors=True)


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


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--quick", action="store_true", help="small, and writes nothing")


def _run_study(asked: argparse.Namespace) -> int:
    started = time.monotonic()
    rows = []
    for row in measure(asked.quick):
        rows.append(row)
        print(row)
    seconds = time.monotonic() - started
    print(f"{seconds:.0f} s", file=sys.stderr)
    if not asked.quick:
        said = subprocess.run(
            [server_programs() / "postgres", "--version"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        document = {
            "rows": rows,
            "seconds": round(seconds),
            "machine": machine.describe(["numpy"]),
            "server": said.strip(),
        }
        save_json(RESULTS, document)
    return 0


def _report() -> Mapping[str, str]:
    document = read_json(RESULTS)
    return {
        "postgresql summary": summary_table(document["rows"], NAMES),
        "postgresql configurations": configurations_table(document["rows"], "put"),
        "postgresql run": f"{document['server']}; {document['seconds']} s; "
        f"{sentence(document['machine'])}",
    }


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("live_postgresql.json",),
    page="docs/benchmarks/live.md",
    report=_report,
)
