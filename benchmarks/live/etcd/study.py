"""Real etcd servers under an emulated wide-area network, held against the model.

    python -m benchmarks run live.etcd                    latencies and losses of leaders
    python -m benchmarks run live.etcd --quick            a short form; writes nothing
    python -m benchmarks run live.etcd --only latency     a part; the others keep what they had

Needs Linux with the right to make network namespaces, and Go. Writes
``benchmarks/results/live_etcd.json``; with ``--write-docs``, its tables of the page.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from benchmarks.live.harness import ElectingSystem, Latencies, Layout, client_node, live_study
from benchmarks.live.programs import (
    ETCD,
    Processes,
    Servers,
    awaited,
    go_program,
    server_name,
)
from placement import Operation
from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import Request, Script, read_deployment, write_deployment

__all__ = ["STUDY", "Address", "Etcd", "EtcdCluster"]


# --- the cluster, changed by the commands of a runbook ------------------------------------------

_SYSTEM = load_system("etcd")


@dataclass(frozen=True, slots=True)
class Address:
    """URLs of a server: for its peers, and for clients.

    Attributes
    ----------
    peer, client
        Where others reach it.
    peer_listener, client_listener
        Where it listens, if that is elsewhere.
    """

    peer: str
    client: str
    peer_listener: str = ""
    client_listener: str = ""


class EtcdCluster(Servers):
    """Servers of etcd.

    Parameters
    ----------
    program
        etcd and etcdctl in one, see :data:`benchmarks.live.programs.ETCD`.
    addresses
        Site -> URLs of its server.
    options
        Of every server, beside the options of the runbook.
    learners
        As many at once as the servers take.
    folder, processes, inside
        As :class:`benchmarks.live.programs.Servers` takes them.
    """

    def __init__(
        self,
        program: Path,
        folder: Path,
        addresses: Mapping[str, Address],
        processes: Processes,
        inside: Callable[[str], Sequence[str]] = lambda site: (),
        options: Sequence[str] = (),
        learners: int = 1,
    ) -> None:
        super().__init__(folder, processes, inside)
        self.program = program
        self.options = [*options, "--unsafe-no-fsync", f"--max-learners={learners}"]
        self._most_learners = learners
        self._arguments: dict[str, list[str]] = {}
        self._forgotten: list[subprocess.Popen[bytes]] = []
        self._learners: set[str] = set()
        self._starts = 0
        self._site = {self.name(site): site for site in addresses}
        self._address = {self.name(site): address for site, address in addresses.items()}
        self.localities = Localities(
            tuple(addresses),
            tuple(
                Locality(self.name(site), site, {"peer_url": one.peer, "client_url": one.client})
                for site, one in addresses.items()
            ),
        )

    name = staticmethod(server_name)

    def url(self, site: str) -> str:
        """Return the URL for clients of the server at a site."""
        return self._address[self.name(site)].client

    @property
    def urls(self) -> list[str]:
        """URLs for clients of all servers that run."""
        return [self._address[name].client for name in self.alive()]

    def request(self) -> Request:
        """Return the request of an export for the servers of the cluster."""
        return _SYSTEM.request(self.localities, settings={"max_learners": self._most_learners})

    def alive(self) -> list[str]:
        """Return the names of the servers that run."""
        return [name for name, process in self.running.items() if process.poll() is None]

    def kill(self, site: str) -> None:
        """End a server at once."""
        super().kill(self.name(site))

    def forget(self, site: str) -> None:
        """Ask a server no more: it runs on, but is cut off."""
        self._forgotten.append(self.running.pop(self.name(site)))

    def restart(self, site: str) -> None:
        """Start a server again with the data it had."""
        self._launch(self.name(site))

    def stop(self) -> None:
        """End all servers."""
        super().stop()
        while self._forgotten:
            self.processes.stop(self._forgotten.pop())

    def ask(self, site: str, *arguments: str) -> str | None:
        """Return the output of etcdctl at a site, or None when the command fails."""
        return self.output(site, self.program, "etcdctl", "--command-timeout=5s", *arguments)

    def deployment(self) -> Deployment:
        """Return who votes, who learns and who leads, as the servers say."""
        texts = (("members.json", self._members()), ("status.json", self._status()))
        return read_deployment(_SYSTEM, texts, self.request()).deployment

    def becomes(self, goal: Deployment) -> Deployment:
        """Return a deployment once it is up; a member has no name before its start."""
        said = _SYSTEM.keeps(goal)
        return awaited(self.deployment, lambda found: not found.differences(said))

    def carry_out(self, script: Script) -> None:
        """Carry out the steps of a runbook, each until it succeeds."""
        document = json.loads(script.text)
        for step in document["steps"]:
            program, *arguments = step["argv"]
            if program == "etcd":
                self._start(arguments)
                continue
            words = [
                self._identity(word[7:-1]) if word.startswith("<ID of ") else word
                for word in arguments
            ]
            # as the text of the step says: again while members connect or catch up
            awaited(
                lambda words=words: self.ask(self._contact(), *words),  # type: ignore[misc]
                lambda text: text is not None,
                60,
            )
        self._learners = {one["name"] for one in document["members"] if one["isLearner"]}
        kept = {one["name"] for one in document["members"]}
        for name in self.running.keys() - kept:  # one that is removed may not hear of it
            self.processes.stop(self.running.pop(name))

    def _start(self, arguments: Sequence[str]) -> None:
        name = next(word.split("=", 1)[1] for word in arguments if word.startswith("--name="))
        self._starts += 1
        old = self.running.pop(name, None)  # a member that was removed stops by itself
        if old is not None:
            old.wait(20)
        address = self._address[name]
        self._arguments[name] = [
            *arguments,
            f"--data-dir={self.folder}/data{self._starts}",
            f"--listen-peer-urls={address.peer_listener or address.peer}",
            f"--listen-client-urls={address.client_listener or address.client}",
            *self.options,
        ]
        self._launch(name)
        if "--initial-cluster-state=existing" in arguments:
            # A member that asks a peer which has not heard of it yet ends at once: start it again.
            awaited(lambda: self._answers(name), bool, 60)

    def _answers(self, name: str) -> bool:
        """Return whether a server answers; one that has ended is started again."""
        if self.running[name].poll() is not None:
            self._launch(name)
        site = self._site[name]
        return self.ask(site, "--endpoints=" + self.url(site), "endpoint", "status") is not None

    def _launch(self, name: str) -> None:
        self.running[name] = self.processes.start(
            [self.program, *self._arguments[name]],
            self.folder / f"{name}.log",
            inside=self.inside(self._site[name]),
        )

    def _identity(self, name: str) -> str:
        """Return the number of a member; one that has just started has no name yet."""

        def ask() -> str | None:
            members = json.loads(self._members())["members"]
            return next((f"{m['ID']:x}" for m in members if m.get("name") == name), None)

        found = awaited(ask, lambda found: found is not None)
        assert found is not None
        return found

    def _contact(self) -> str:
        """Return a site whose server votes and runs."""
        voters = [name for name in self.alive() if name not in self._learners]
        assert voters, f"no server runs; their logs: {self.folder}"
        return self._site[voters[0]]

    def _members(self) -> str:
        site = self._contact()
        return self._answered(site, [self.url(site)], "member", "list")

    def _status(self) -> str:
        return self._answered(self._contact(), self.urls, "endpoint", "status")

    def _answered(self, site: str, urls: Sequence[str], *words: str) -> str:
        """Return an answer in JSON in which every member that is asked knows its leader."""

        def good(text: str | None) -> bool:
            if text is None:
                return False
            found = json.loads(text)
            return not isinstance(found, list) or all(one["Status"].get("leader") for one in found)

        contact = "--endpoints=" + ",".join(urls)
        found = awaited(lambda: self.ask(site, contact, *words, "-w", "json"), good)
        assert found is not None
        return found


_PORTS = (2380, 2379)
"""Of a server, for its peers and for clients."""
_TIMES = ("--heartbeat-interval=300", "--election-timeout=3000")
"""ms; etcd's tuning guide asks for about the largest RTT, and ten times that."""


class Etcd(ElectingSystem):
    """Servers that a runbook of the export starts; clients follow the leader."""

    title, results, write = "", "live_etcd.json", "put"
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
            running[client] = self.processes.talk([
                *self.wan.inside(client_node(client)),
                *("setpriv", "--pdeathsig", "KILL", "--", go_program(ETCD), "load"),
                *("-endpoints", ",".join(self._cluster.urls), "-ops", ",".join(operations)),
                *("-name", f"c{number}", "-seed", str(number + 1)),
                f"-count={count * len(mine)}",
            ])  # fmt: skip
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
