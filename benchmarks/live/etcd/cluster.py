"""A cluster of etcd that runbooks change, as the tests of the export start it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from benchmarks.live.programs import Processes, awaited, output
from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import Request, Script, read_deployment

_SYSTEM = load_system("etcd")


class EtcdCluster(Processes):
    """Servers of etcd, each with the URLs of its site: for its peers, and for clients.

    The program is etcd and etcdctl in one, see :data:`benchmarks.live.programs.ETCD`.
    """

    def __init__(
        self, program: Path, folder: Path, addresses: Mapping[str, tuple[str, str]]
    ) -> None:
        super().__init__()
        self.program, self.folder = program, folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}
        self._arguments: dict[str, list[str]] = {}
        self._learners: set[str] = set()
        self._starts = 0
        rows = tuple(
            Locality(self.name(site), site, {"peer_url": peer, "client_url": client})
            for site, (peer, client) in addresses.items()
        )
        self.localities = Localities(tuple(addresses), rows)
        self._urls = {row.name: row.facts for row in rows}

    @staticmethod
    def name(site: str) -> str:
        """Return the name of the server at a site, without spaces."""
        return "n-" + site.replace(" ", "-")

    def request(self) -> Request:
        """Return the request of an export for the servers of the cluster."""
        return _SYSTEM.request(self.localities, settings={"max_learners": 1})

    def kill(self, site: str) -> None:
        """End a server at once."""
        self.stop(self.running.pop(self.name(site)))

    def restart(self, site: str) -> None:
        """Start a server again with the data it had."""
        self._launch(self.name(site))

    def ask(self, site: str, *words: str) -> str | None:
        """Return what etcdctl prints of the server at a site, or None when the command fails."""
        return self._ask([self.name(site)], *words)

    def _ask(self, names: Sequence[str], *words: str) -> str | None:
        contact = "--endpoints=" + ",".join(self._urls[name]["client_url"] for name in names)
        return output(self.program, "etcdctl", "--command-timeout=5s", contact, *words)

    def deployment(self) -> Deployment:
        """Return who votes, who learns and who leads, as the servers say."""
        texts = (
            ("members.json", self._members()),
            ("status.json", self._answered(self._alive(), "endpoint", "status")),
        )
        return read_deployment(_SYSTEM, texts, self.request()).deployment

    def becomes(self, goal: Deployment) -> Deployment:
        """Return a deployment once it is up; a member has no name before its start."""
        said = _SYSTEM.keeps(goal)
        return awaited(self.deployment, lambda found: not found.differences(said))

    def carry_out(self, script: Script) -> None:
        """Carry out the steps of a runbook, each until it succeeds."""
        document = json.loads(script.text)
        for program, *arguments in (step["argv"] for step in document["steps"]):
            if program == "etcd":
                self._start(arguments)
                continue
            words = [
                self._identity(word[7:-1]) if word.startswith("<ID of ") else word
                for word in arguments
            ]
            # as the text of the step says: again while members connect or catch up
            step = partial(output, self.program, "etcdctl", "--command-timeout=5s", *words)
            awaited(step, lambda text: text is not None, 60)
        self._learners = {one["name"] for one in document["members"] if one["isLearner"]}
        kept = {one["name"] for one in document["members"]}
        for name in self.running.keys() - kept:  # one that is removed may not hear of it
            self.stop(self.running.pop(name))

    def _start(self, arguments: Sequence[str]) -> None:
        name = next(word.split("=", 1)[1] for word in arguments if word.startswith("--name="))
        self._starts += 1
        old = self.running.pop(name, None)  # a member that was removed stops by itself
        if old is not None:
            old.wait(20)
        self._arguments[name] = [
            *arguments,
            f"--data-dir={self.folder}/data{self._starts}",
            f"--listen-peer-urls={self._urls[name]['peer_url']}",
            f"--listen-client-urls={self._urls[name]['client_url']}",
            "--unsafe-no-fsync",
            "--max-learners=1",
        ]
        self._launch(name)
        if "--initial-cluster-state=existing" in arguments:
            # A member that asks a peer which has not heard of it yet ends at once: start it again.
            awaited(lambda: self._answers(name), bool, 60)

    def _answers(self, name: str) -> bool:
        """Return whether a server answers; one that has ended is started again."""
        if self.running[name].poll() is not None:
            self._launch(name)
        return self._ask([name], "endpoint", "status") is not None

    def _launch(self, name: str) -> None:
        self.running[name] = self.start(
            [self.program, *self._arguments[name]], self.folder / f"{name}.log"
        )

    def _identity(self, name: str) -> str:
        """Return the number of a member; one that has just started has no name yet."""

        def ask() -> str | None:
            members = json.loads(self._members())["members"]
            return next((f"{m['ID']:x}" for m in members if m.get("name") == name), None)

        found = awaited(ask, lambda found: found is not None)
        assert found is not None
        return found

    def _alive(self) -> list[str]:
        """Return the names of the servers that run, voters first."""
        alive = [name for name, process in self.running.items() if process.poll() is None]
        return sorted(alive, key=self._learners.__contains__)

    def _members(self) -> str:
        return self._answered(self._alive()[:1], "member", "list")

    def _answered(self, names: Sequence[str], *words: str) -> str:
        """Return an answer in JSON in which every member that is asked knows its leader."""

        def good(text: str | None) -> bool:
            if text is None:
                return False
            found = json.loads(text)
            return not isinstance(found, list) or all(one["Status"].get("leader") for one in found)

        found = awaited(lambda: self._ask(names, *words, "-w", "json"), good)
        assert found is not None
        return found
