"""Real ZooKeeper ensembles under an emulated wide-area network, held against the model.

    python -m benchmarks run live.zookeeper                    some minutes
    python -m benchmarks run live.zookeeper --quick            a short form; writes nothing
    python -m benchmarks run live.zookeeper --only latency     a part; the others keep what they had

A client has a session with its closest server. The server answers reads from what it has, sends
writes to the leader, which waits for a quorum of votes, and sends a ``sync`` to the leader and
waits for its answer alone: one round trip.

Needs Linux with the right to make network namespaces, Java and Maven. Writes
``benchmarks/results/live_zookeeper.json``; with ``--write-docs``, its tables of the page.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.result_files import Row
from benchmarks.live.emulated_wan import EmulatedWan
from benchmarks.live.latency_tables import (
    configurations_table,
    latency_row,
    software_share,
    summary_table,
)
from benchmarks.live.layouts import Layout, azure_part, drawn, planned
from benchmarks.live.live_world import client_node, network, predicted, predicted_after_loss
from benchmarks.live.load_rows import load_row, load_table
from benchmarks.live.programs import python_with
from benchmarks.live.server_bench import ServerBench
from benchmarks.live.study_parts import Parts, live_study, runs_text
from benchmarks.live.zookeeper.ensemble import ZooKeeperEnsemble, zookeeper_classpath
from placement import Instance, Operation
from placement.databases import Deployment, Localities, Locality

NAMES = {"write": "write", "sync": "sync", "read": "read"}
OPERATIONS = (
    Operation("write", near=1, relay=1, quorum=1, kind="write"),
    Operation("sync", near=1, relay=1, kind="read"),
    Operation("read", near=1, kind="read"),
)
_PORT = 2181


class ZooKeeperBench(ServerBench):
    """The network of an instance with an ensemble on it, as a context; one ensemble at a time."""

    def __init__(self, instance: Instance) -> None:
        super().__init__(instance, network(instance), "zookeeper")
        self.ensemble: ZooKeeperEnsemble | None = None
        self._classpath = zookeeper_classpath()
        self._python = python_with("kazoo", "kazoo==2.10.0")
        self._keys = 0

    def start(self, layout: Layout, leader: str) -> ZooKeeperEnsemble:
        """Stop the ensemble that runs, and start one under a leader.

        With no data yet, the voter with the largest number is elected: the leader gets it.
        """
        if self.ensemble is not None:
            self.ensemble.stop()
        voters = [site for site in layout.voters if site != leader]
        numbered = enumerate((*layout.learners, *voters, leader), 1)
        rows = tuple(
            Locality(self.wan.address(site), site, {"id": str(n), "client_port": str(_PORT)})
            for n, site in numbered
        )
        self.ensemble = ZooKeeperEnsemble(
            self._classpath,
            Path(tempfile.mkdtemp(dir=self._folder)),
            Localities(self.instance.sites, rows),
            self._processes,
            self.wan.inside,
        )
        self.ensemble.form(
            Deployment.of(
                "live", dict.fromkeys(layout.voters, 1), dict.fromkeys(layout.learners, 1)
            )
        )
        return self.ensemble

    def closest(self, client: str, sites: Sequence[str]) -> str:
        """Return the site that is closest to a client."""
        row = self.instance.client_rtt[self.instance.client_index(client)]
        return min(sites, key=lambda site: row[self.instance.sites.index(site)])

    def measure(self, sites: Sequence[str], count: int) -> dict[tuple[str, str], list[float]]:
        """Return latencies in ms by client and operation; each client asks its closest site.

        All clients do the same at a time: a sync waits for writes that are under way.
        """
        with self._clients(sites) as running:
            return {
                (client, operation.name): values
                for operation in self.instance.operations
                for client, values in self._ask(running, f"{operation.name} {count}").items()
            }

    def load(
        self, sites: Sequence[str], writes: int, seconds: float
    ) -> dict[str, list[tuple[float, float]]]:
        """Return by client the end (s since 1970) and the latency (ms) of its writes.

        Each client keeps `writes` of them in flight, at its closest site.
        """
        with self._clients(sites) as running:
            found = self._ask(running, f"load {writes} {seconds}")
        return {client: [(end, ms) for end, ms in values] for client, values in found.items()}

    def first_success(self, client: str, site: str) -> float:
        """Return when a write first succeeds at a site, in seconds since the epoch."""
        said, _ = self._client(client, site, 90, "until-written").communicate(timeout=120)
        return float(said)

    @contextlib.contextmanager
    def _clients(self, sites: Sequence[str]) -> Iterator[dict[str, subprocess.Popen[str]]]:
        """Connect every client to its closest site; they end with the context."""
        running = {
            client: self._client(client, self.closest(client, sites), 60)
            for client in self.instance.clients
        }
        for process in running.values():
            self._answer(process)
        yield running
        for process in running.values():
            process.communicate(timeout=60)

    def _ask(self, running: Mapping[str, subprocess.Popen[str]], line: str) -> dict[str, Any]:
        """Send a line to all clients at once, and return their answers."""
        for process in running.values():
            assert process.stdin is not None
            process.stdin.write(line + "\n")
            process.stdin.flush()
        return {client: json.loads(self._answer(process)) for client, process in running.items()}

    @staticmethod
    def _answer(process: subprocess.Popen[str]) -> str:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert line, "a client ended before it answered"
        return line

    def _client(self, client: str, site: str, seconds: float, *words: str) -> subprocess.Popen[str]:
        key = self.instance.client_index(client)
        program = Path(__file__).with_name("client.py")
        address = self.wan.address(site)
        process = subprocess.Popen(
            [
                *self.wan.inside(client_node(client)),
                *(str(self._python), str(program), address, str(_PORT), str(key), str(seconds)),
                *words,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._processes.adopt(process)
        return process


def measure(quick: bool) -> Iterator[Row]:
    """Yield a row per configuration, client and operation, with mean latencies."""
    instance = azure_part(operations=OPERATIONS)
    fitted = drawn(instance, 4, 3, seed=3)
    tried = [planned(instance, 5, 3), planned(instance, 7, 5), drawn(instance, 6, 5, seed=2)]
    cases = [("fit", fitted, fitted.leaders[:1]), ("test", tried[0], tried[0].leaders[:1])]
    if not quick:
        cases = [("fit", fitted, fitted.leaders)]
        cases += [("test", layout, layout.leaders) for layout in tried]
    with ZooKeeperBench(instance) as bench:
        for part, layout, leaders in cases:
            for leader in leaders:
                ensemble = bench.start(layout, leader)
                assert ensemble.leader(layout.voters) == leader
                model = predicted(instance, leader, layout.voters, layout.replicas)
                for asked, values in bench.measure(layout.replicas, 8 if quick else 20).items():
                    yield latency_row(part, layout, leader, asked, model[asked], values)


def losses(quick: bool) -> Iterator[Row]:
    """Yield a row per leader that is killed: who leads then, and the latency of writes.

    Columns: layout, site, expected (the leader by the numbers of servers), after, gap (seconds
    without a write at a client that asks a server that lives), predicted and measured (ms).
    """
    instance = azure_part(operations=OPERATIONS)
    tried = [planned(instance, 5, 3)] if quick else [planned(instance, 5, 3),
             planned(instance, 7, 5), drawn(instance, 6, 5, seed=2)]  # fmt: skip
    with ZooKeeperBench(instance) as bench:
        for layout in tried:
            for site in layout.leaders[:1] if quick else layout.leaders[:2]:
                ensemble = bench.start(layout, site)
                bench.measure(layout.replicas, 2)
                rest = [one for one in layout.replicas if one != site]
                voters = [one for one in layout.voters if one != site]
                client = instance.clients[0]
                ensemble.kill(site)
                happened = time.time()
                again = bench.first_success(client, bench.closest(client, rest))
                after = ensemble.leader(voters)
                expected = predicted_after_loss(
                    instance, site, after, layout.voters, layout.replicas
                )
                found = bench.measure(rest, 8 if quick else 20)
                yield {
                    "layout": layout.name,
                    "site": site,
                    "expected": voters[-1],
                    "after": after,
                    "gap": round(again - happened, 2),
                    "predicted": round(float(np.mean(list(expected.values()))), 2),
                    "measured": round(
                        float(np.mean([np.mean(found[c, "write"]) for c in instance.clients])), 2
                    ),
                    "clients": {
                        c: [round(expected[c], 2), round(float(np.mean(found[c, "write"])), 2)]
                        for c in instance.clients
                    },
                }


def load(quick: bool) -> Iterator[Row]:
    """Yield a row per number of writes in flight; see :func:`load_row`."""
    instance = azure_part(operations=OPERATIONS[:1])
    layout = planned(instance, 5, 3)
    leader = layout.leaders[0]
    expected = {
        client: ms
        for (client, _), ms in predicted(instance, leader, layout.voters, layout.replicas).items()
    }
    with ZooKeeperBench(instance) as bench:
        ensemble = bench.start(layout, leader)
        assert ensemble.leader(layout.voters) == leader
        bench.measure(layout.replicas, 2)
        for writes in (1, 16) if quick else (1, 4, 16, 64, 256, 1024):
            assert isinstance(bench.wan, EmulatedWan)
            bench.wan.statistics()
            found = bench.load(layout.replicas, writes, 5 if quick else 12)
            late = bench.wan.statistics()["mean"]
            yield load_row(layout, writes * len(instance.clients), expected, found, late)


PARTS: Parts = {"latency": measure, "losses": losses, "load": load}


def _version() -> str:
    """Return the versions of the server and of the Java that runs it."""
    jar = next(Path(zookeeper_classpath()[:-1]).glob("zookeeper-[0-9]*.jar"))
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    return f"ZooKeeper {jar.stem.removeprefix('zookeeper-')}, {java.splitlines()[0]}"


def _losses_table(rows: Sequence[Row], share: float) -> str:
    """Return a line per loss; `share` are the software's ms of a write."""
    lines = []
    for row in rows:
        model, real = row["predicted"] + share, row["measured"]
        worst = max(
            (real / (asked + share) - 1 for asked, real in row["clients"].values()), key=abs
        )
        lines.append((
            row["layout"], f"{row['site']} → {row['after']}",
            "yes" if row["after"] == row["expected"] else f"no: {row['expected']}",
            f"{row['gap']:.1f}", f"{model:.1f}", f"{real:.1f}",
            f"{100 * (real / model - 1):+.1f} %", f"{100 * worst:+.1f} %",
        ))  # fmt: skip
    heads = ("layout", "leader killed → elected", "largest number elected", "without service, s",
             "predicted after, ms", "measured after, ms", "error", "worst client")  # fmt: skip
    return markdown_table(heads, lines)


def _report(document: Mapping[str, Any]) -> Mapping[str, str]:
    rows = document["latency"]["rows"]
    return {
        "zookeeper summary": summary_table(rows, NAMES),
        "zookeeper configurations": configurations_table(rows, "write"),
        "zookeeper losses": _losses_table(
            document["losses"]["rows"], software_share(rows, ["write"])["write"]
        ),
        "zookeeper load": load_table(document["load"]["rows"], "writes in flight"),
        "zookeeper runs": runs_text(document),
    }


STUDY = live_study(__doc__, "live_zookeeper.json", PARTS, _version, _report)
