"""An ensemble of ZooKeeper that runbooks change, as the tests of the export start it."""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

from benchmarks.live.programs import Processes, awaited, built, output
from placement.databases import Deployment, Localities, load_system
from placement.databases.system import Request, read_deployment, write_deployment

SYSTEM = load_system("zookeeper")
_SETTINGS = (
    "tickTime=500\ninitLimit=20\nsyncLimit=10\nadmin.enableServer=false\nreconfigEnabled=true\n"
    "standaloneEnabled=false\nskipACL=yes\n4lw.commands.whitelist=srvr\nforceSync=no\n"
)


def zookeeper_classpath() -> str:
    """Return the class path of server and shell."""
    return str(built(Path(__file__).parent))


class ZooKeeperEnsemble(Processes):
    """Servers of ZooKeeper, and the shell of each of them.

    A server has a row with its address, its site, and the facts ``id`` and ``client_port``.
    """

    def __init__(self, classpath: str, folder: Path, localities: Localities) -> None:
        super().__init__()
        self.folder, self.running = folder, dict[str, subprocess.Popen[bytes]]()
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
            self.begin(one.site, servers + more)
        self.runs(goal)

    def begin(self, site: str, servers: str) -> None:
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
        self.running[site] = self.start([*self.java, main, folder / "zoo.cfg"], folder / "log")

    def kill(self, site: str) -> None:
        """End a server at once."""
        self.stop(self.running.pop(site))

    def mode(self, site: str) -> str:
        """Return leader, follower or observer; empty while the server does not answer."""
        row, found = self._rows[site], None
        with contextlib.suppress(OSError):
            place = (row.name, int(row.facts["client_port"]))
            with socket.create_connection(place, 2) as wire:
                wire.sendall(b"srvr")
                found = re.search(r"^Mode: (\w+)", wire.makefile().read(), re.MULTILINE)
        return found[1] if found else ""

    def shell(self, site: str, *words: str) -> str | None:
        """Return the output of a command in ZooKeeper's shell at a site; None when it fails."""
        row = self._rows[site]
        main = ("org.apache.zookeeper.ZooKeeperMain", "-server")
        server = f"{row.name}:{row.facts['client_port']}"
        return output(*self.java, *main, server, *words)

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
        voters, others = ("leader", "follower"), ("observer",)
        every = [(site, voters) for site in goal.voters_at]
        for site, modes in [*every, *((site, others) for site in goal.non_voters_at)]:
            awaited(functools.partial(self.mode, site), modes.__contains__, 60)
        found = [self.mode(site) for site in goal.voters_at]
        assert found.count("leader") == 1, found

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
                self.begin(sites[started[1]], servers + spec + "\n")
            if "reconfig" in line:
                words = line[line.index("reconfig") :].split()
                awaited(functools.partial(self.shell, contact, *words), lambda out: out is not None)
            else:
                waited = re.search(r"wait until (\S+)", line)
                assert waited is not None, line
                mode = functools.partial(self.mode, sites[waited[1]])
                awaited(mode, lambda mode: mode == "observer")
