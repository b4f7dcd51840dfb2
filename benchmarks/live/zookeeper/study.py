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

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.live.harness import Latencies, Layout, LiveSystem, client_node, live_study
from benchmarks.live.programs import python_with
from benchmarks.live.zookeeper.ensemble import ZooKeeperEnsemble, zookeeper_classpath
from placement import Operation
from placement.databases import Deployment, Localities, Locality

__all__ = ["STUDY", "ZooKeeper"]

_PORT = 2181


class ZooKeeper(LiveSystem):
    """An ensemble; each client asks its closest server."""

    title, results, write, fails_over = "zookeeper", "live_zookeeper.json", "write", True
    operations = (
        Operation("write", near=1, relay=1, quorum=1, kind="write"),
        Operation("sync", near=1, relay=1, kind="read"),
        Operation("read", near=1, kind="read"),
    )
    words: ClassVar[Mapping[str, str]] = {"write": "write", "sync": "sync", "read": "read"}
    _ensemble: ZooKeeperEnsemble | None = None
    _voters: tuple[str, ...] = ()

    @classmethod
    def version(cls) -> str:
        """Return the versions of the server and of the Java that runs it."""
        jar = next(Path(zookeeper_classpath()[:-1]).glob("zookeeper-[0-9]*.jar"))
        java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)
        return f"ZooKeeper {jar.stem.removeprefix('zookeeper-')}, {java.stderr.splitlines()[0]}"

    def start(self, layout: Layout, leader: str) -> None:
        """Start an ensemble without data: the voter with the largest number is elected."""
        if self._ensemble is not None:
            self._ensemble.stop()
        self._voters = layout.voters
        voters = [site for site in layout.voters if site != leader]
        rows = tuple(
            Locality(self.wan.address(site), site, {"id": str(n), "client_port": str(_PORT)})
            for n, site in enumerate((*layout.learners, *voters, leader), 1)
        )
        self._ensemble = ZooKeeperEnsemble(
            zookeeper_classpath(),
            Path(tempfile.mkdtemp(dir=self.folder)),
            Localities(self.instance.sites, rows),
            self.processes,
            self.wan.inside,
        )
        self._ensemble.form(
            Deployment.of(
                "live", dict.fromkeys(layout.voters, 1), dict.fromkeys(layout.learners, 1)
            )
        )
        assert self._ensemble.leader(layout.voters) == leader

    def measure(self, sites: Sequence[str], leader: str, count: int) -> Latencies:
        """All clients do the same at a time: a sync waits for writes that are under way."""
        del leader  # the servers know it
        python = python_with("kazoo", "kazoo==2.10.0")
        running = {}
        for key, client in enumerate(self.instance.clients):
            address = self.wan.address(self.closest(client, sites))
            program = Path(__file__).with_name("client.py")
            running[client] = subprocess.Popen(
                [*self.wan.inside(client_node(client)), python, program, address, str(_PORT),
                 str(key), "60"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
            )  # fmt: skip
            self.processes.adopt(running[client])
        for process in running.values():
            assert _line(process) == "\n"  # it is connected
        found: Latencies = {}
        for operation in self.instance.operations:
            for process in running.values():
                assert process.stdin is not None
                process.stdin.write(f"{operation.name} {count}\n")
                process.stdin.flush()
            found |= {(c, operation.name): json.loads(_line(p)) for c, p in running.items()}
        for process in running.values():
            process.communicate(timeout=60)
        return found

    def kill(self, site: str) -> str:
        """Kill the leader; the others elect the one with the largest number."""
        assert self._ensemble is not None
        self._ensemble.kill(site)
        return self._ensemble.leader([one for one in self._voters if one != site])


def _line(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, "a client ended before it answered"
    return line


STUDY = live_study(__doc__, ZooKeeper)
