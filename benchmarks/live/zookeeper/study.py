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

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.live.harness import ElectingSystem, Latencies, Layout, client_node, live_study
from benchmarks.live.programs import (
    Processes,
    Servers,
    answer,
    asked,
    awaited,
    java_classpath,
    python_with,
)
from placement import Operation
from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import Request, read_deployment, write_deployment

__all__ = ["STUDY", "SYSTEM", "ZooKeeper", "ZooKeeperEnsemble", "zookeeper_classpath"]


# --- the ensemble, changed as the export says ---------------------------------------------------

SYSTEM = load_system("zookeeper")
_SETTINGS = (
    "tickTime=500\ninitLimit=20\nsyncLimit=10\nadmin.enableServer=false\nreconfigEnabled=true\n"
    "standaloneEnabled=false\nskipACL=yes\n4lw.commands.whitelist=srvr\nforceSync=no\n"
)
_ASK = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2])), 2) as wire:
    wire.settimeout(2)
    wire.sendall(b"srvr")
    sys.stdout.write(b"".join(iter(lambda: wire.recv(4096), b"")).decode())
"""


def zookeeper_classpath() -> str:
    """Return the class path of the server and of its shell.

    Raises
    ------
    UnsupportedError
        Without Java or Maven, or when the packages cannot be downloaded.
    """
    return java_classpath(Path(__file__).parent)


class ZooKeeperEnsemble(Servers):
    """Servers of ZooKeeper, and the shell of each of them.

    Parameters
    ----------
    classpath
        Of :func:`zookeeper_classpath`.
    localities
        A row for each server: its address, its site, and the facts ``id`` and ``client_port``.
    folder, processes, inside
        As :class:`benchmarks.live.programs.Servers` takes them.
    """

    def __init__(
        self,
        classpath: str,
        folder: Path,
        localities: Localities,
        processes: Processes,
        inside: Callable[[str], Sequence[str]] = lambda _site: (),
    ) -> None:
        super().__init__(folder, processes, inside)
        self.java: list[str] = [shutil.which("java") or "java", "-Xmx96m", "-cp", classpath]
        self.localities = localities
        self._rows = {row.site: row for row in localities.rows}

    def request(self) -> Request:
        """Return the request of an export for the ensemble."""
        return SYSTEM.request(self.localities)

    def form(self, goal: Deployment, more: str = "") -> None:
        """Start the servers of a deployment together, and wait until each has its role.

        `more` is added to the list of servers of each, groups and weights for example.
        """
        text = write_deployment(SYSTEM, goal, self.request()).text
        servers = "".join(f"{line}\n" for line in text.splitlines() if line.startswith("server."))
        for one in goal.held:
            self.start(one.site, servers + more)
        self.runs(goal)

    def start(self, site: str, servers: str) -> None:
        """Start a server with the list of all servers."""
        row = self._rows[site]
        folder = self.folder / row.facts["id"]
        folder.mkdir()
        (folder / "myid").write_text(row.facts["id"])
        (folder / "zoo.dynamic").write_text(servers)
        (folder / "zoo.cfg").write_text(
            f"{_SETTINGS}dataDir={folder}\ndynamicConfigFile={folder}/zoo.dynamic\n"
        )
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        self.running[site] = self.processes.start(
            [*self.java, main, folder / "zoo.cfg"], folder / "log", inside=self.inside(site)
        )

    def mode(self, site: str) -> str:
        """Return leader, follower or observer; empty while the server does not answer."""
        row = self._rows[site]
        text = self.output(site, sys.executable, "-c", _ASK, row.name, row.facts["client_port"])
        found = re.search(r"^Mode: (\w+)", text or "", re.MULTILINE)
        return found[1] if found else ""

    def shell(self, site: str, *words: str) -> str | None:
        """Return the output of a command in ZooKeeper's shell at a site; None when it fails."""
        row = self._rows[site]
        main = ("org.apache.zookeeper.ZooKeeperMain", "-server")
        server = f"{row.name}:{row.facts['client_port']}"
        return self.output(site, *self.java, *main, server, *words)

    def deployment(self, site: str) -> Deployment:
        """Return the deployment that a server reports."""
        text = awaited(lambda: self.shell(site, "config"), lambda found: found is not None)
        assert text is not None
        return read_deployment(SYSTEM, (("config", text),), self.request()).deployment

    def leader(self, sites: Sequence[str]) -> str:
        """Return the leader among some sites, once there is one."""
        found = awaited(
            lambda: [site for site in sites if self.mode(site) == "leader"],
            lambda leading: len(leading) == 1,
            60,
        )
        return found[0]

    def runs(self, goal: Deployment) -> None:
        """Wait until every server of a deployment has its role."""
        for site in goal.voters_at:
            awaited(
                lambda site=site: self.mode(site),  # type: ignore[misc]
                lambda mode: mode in ("leader", "follower"),
                60,
            )
        for site in goal.non_voters_at:
            awaited(
                lambda site=site: self.mode(site),  # type: ignore[misc]
                lambda mode: mode == "observer",
                60,
            )
        modes = [self.mode(site) for site in goal.voters_at]
        assert modes.count("leader") == 1, modes

    def carry_out(self, text: str, contact: str) -> None:
        """Carry out the steps of an export as a person reads them, by the shell of one site."""
        known = self.shell(contact, "config")
        assert known is not None
        servers = "".join(f"{line}\n" for line in known.splitlines() if line.startswith("server."))
        sites = {row.name: row.site for row in self.localities.rows}
        for line in re.findall(r"^# step \d+: (.*)$", text, re.MULTILINE):
            assert "[" not in line, line  # no step breaks a quorum
            started = re.search(r"start (\S+), then", line)
            if started:
                spec = line.rpartition("reconfig -add ")[2]
                self.start(sites[started[1]], servers + spec + "\n")
            if "reconfig" in line:
                words = line[line.index("reconfig") :].split()
                awaited(
                    lambda words=words: self.shell(contact, *words),  # type: ignore[misc]
                    lambda out: out is not None,
                )
            else:
                waited = re.search(r"wait until (\S+)", line)
                assert waited is not None, line
                awaited(
                    lambda site=sites[waited[1]]: self.mode(site),  # type: ignore[misc]
                    lambda mode: mode == "observer",
                )


_PORT = 2181


class ZooKeeper(ElectingSystem):
    """An ensemble; each client asks its closest server."""

    title, results, write = "zookeeper", "live_zookeeper.json", "write"
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
        program = Path(__file__).with_name("client.py")
        running = {
            client: self.processes.talk([
                *self.wan.inside(client_node(client)), python, program,
                self.wan.address(self.closest(client, sites)), str(_PORT), str(key), "60",
            ])
            for key, client in enumerate(self.instance.clients)
        }  # fmt: skip
        for process in running.values():
            assert answer(process) == []  # it is connected
        found: Latencies = {}
        for operation in self.instance.operations:
            for process in running.values():
                asked(process, [operation.name, count])
            found |= {(client, operation.name): answer(p) for client, p in running.items()}
        for process in running.values():
            process.communicate(timeout=60)
        return found

    def kill(self, site: str) -> str:
        """Kill the leader; the others elect the one with the largest number."""
        assert self._ensemble is not None
        self._ensemble.kill(site)
        return self._ensemble.leader([one for one in self._voters if one != site])


STUDY = live_study(__doc__, ZooKeeper)
