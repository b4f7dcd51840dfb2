"""Real PostgreSQL with synchronous standbys under an emulated wide-area network, against the model.

    python -m benchmarks run live.postgresql              some minutes
    python -m benchmarks run live.postgresql --quick      a short form; writes nothing

Needs Linux with the right to make network namespaces, and an installed PostgreSQL. Writes
``benchmarks/results/live_postgresql.json``; with ``--write-docs``, its tables of the page.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from typing import ClassVar

from benchmarks.live.harness import Latencies, Layout, LiveSystem, live_study
from benchmarks.live.postgresql.cluster import PostgresCluster, server_programs
from placement import Operation

__all__ = ["STUDY", "Postgresql"]


class Postgresql(LiveSystem):
    """A primary and standbys; nothing fails over by itself."""

    title, results, write = "postgresql", "live_postgresql.json", "put"
    operations = (
        Operation("put", direct=1, quorum=1, kind="write"),
        Operation("read", direct=1, kind="read"),
        Operation("local", near=1, kind="read"),
    )
    words: ClassVar[Mapping[str, str]] = {
        "put": "write",
        "read": "read at the primary",
        "local": "read at the closest server",
    }
    _cluster: PostgresCluster | None = None

    @classmethod
    def version(cls) -> str:
        """Return the version of the server."""
        command = [str(server_programs() / "postgres"), "--version"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    def start(self, layout: Layout, leader: str) -> None:
        """Start a primary and its standbys, set as the export says."""
        if self._cluster is None:
            self._cluster = PostgresCluster(self.wan, self.folder, self.processes)
        self._cluster.start(layout.deployment(leader))

    def measure(self, sites: Sequence[str], leader: str, count: int) -> Latencies:
        """Each operation after the other."""
        assert self._cluster is not None
        found: Latencies = {}
        for operation in self.instance.operations:
            local = operation.name == "local"
            jobs = {
                client: ("read", self.closest(client, sites)) if local else (operation.name, leader)
                for client in self.instance.clients
            }
            for client, values in self._cluster.latencies(jobs, count).items():
                found[client, operation.name] = values
        return found


STUDY = live_study(__doc__, Postgresql)
