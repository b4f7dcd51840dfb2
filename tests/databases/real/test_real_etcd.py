"""A real etcd cluster on loopback: the runbook makes it, changes it, and brings its leader back."""

import contextlib
import json
import subprocess

import pytest

from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import read_deployment, write_deployment
from tests.databases.real.tools import awaited, etcd_program, free_port

pytestmark = pytest.mark.databases

SYSTEM = load_system("etcd")
SITES = ("a", "b", "c", "d", "e", "f", "g")
FIRST = Deployment.of("x", dict.fromkeys("abcde", 1), {"f": 1}, leaders=("b", "a"))
THEN = Deployment.of("x", dict.fromkeys("bcdeg", 1), {"a": 1}, leaders=("g", "b", "c"))


class Cluster:
    """Servers that are started and stopped by the commands of a runbook."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.processes, self.options, self.starts = {}, {}, 0
        self.peers = {f"n-{site}": f"http://127.0.0.1:{free_port()}" for site in SITES}
        self.clients = {f"n-{site}": f"http://127.0.0.1:{free_port()}" for site in SITES}
        self.localities = Localities(
            SITES,
            tuple(
                Locality(
                    f"n-{site}",
                    site,
                    {"peer_url": self.peers[f"n-{site}"], "client_url": self.clients[f"n-{site}"]},
                )
                for site in SITES
            ),
        )

    def request(self):
        return SYSTEM.request(self.localities)

    def launch(self, name):
        log = (self.folder / f"{name}.log").open("ab")
        self.processes[name] = subprocess.Popen(
            [self.program, *self.options[name]], stdout=log, stderr=log, cwd=self.folder
        )
        log.close()

    def start(self, arguments):
        name = next(word.split("=", 1)[1] for word in arguments if word.startswith("--name="))
        self.starts += 1
        old = self.processes.pop(name, None)  # a member that was removed stops by itself
        if old is not None:
            old.wait(20)
        self.options[name] = [
            *arguments,
            f"--data-dir={self.folder}/data{self.starts}",
            f"--listen-peer-urls={self.peers[name]}",
            f"--listen-client-urls={self.clients[name]}",
            "--unsafe-no-fsync",
        ]
        self.launch(name)

    def kill(self, name):
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def alive(self):
        return [name for name, process in self.processes.items() if process.poll() is None]

    def ask(self, *arguments):
        """Return output of etcdctl, or None when it fails."""
        done = subprocess.run(
            [self.program, "etcdctl", "--command-timeout=3s", *arguments],
            capture_output=True, text=True, check=False, timeout=30,
        )  # fmt: skip
        self.error = done.stderr
        return done.stdout if done.returncode == 0 else None

    def identity(self, name):
        """Return the number of a member; one that has just started has no name yet."""

        def ask():
            members = json.loads(self.members())["members"]
            return next((f"{m['ID']:x}" for m in members if m.get("name") == name), None)

        return awaited(ask, lambda found: found is not None)

    def members(self):
        contact = "--endpoints=" + self.clients[self.contact()]
        return awaited(
            lambda: self.ask(contact, "member", "list", "-w", "json"),
            lambda text: text is not None,
        )

    def contact(self):
        learners = getattr(self, "learners", set())
        return next(name for name in self.alive() if name not in learners)

    def status(self):
        endpoints = "--endpoints=" + ",".join(self.clients[name] for name in self.alive())
        return awaited(
            lambda: self.ask(endpoints, "endpoint", "status", "-w", "json"),
            lambda text: (
                text is not None and all(one["Status"].get("leader") for one in json.loads(text))
            ),
        )

    def deployment(self):
        texts = (("members.json", self.members()), ("status.json", self.status()))
        return read_deployment(SYSTEM, texts, self.request()).deployment

    def becomes(self, goal):
        """Return the deployment once it is the goal; a member has no name before it started."""
        said = SYSTEM.said(goal)
        return awaited(self.deployment, lambda found: not found.differences(said))

    def carry_out(self, script):
        for step in json.loads(script.text)["steps"]:
            program, *arguments = step["argv"]
            if program == "etcd":
                self.start(arguments)
                continue
            words = [
                self.identity(word[7:-1]) if word.startswith("<ID of ") else word
                for word in arguments
            ]
            # as the text of the step says: again while members connect or catch up
            awaited(lambda words=words: self.ask(*words), lambda text: text is not None, 60)
        self.learners = {
            member["name"] for member in json.loads(script.text)["members"] if member["isLearner"]
        }

    def stop_all(self):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)


@pytest.fixture
def cluster(tmp_path):
    found = Cluster(etcd_program(), tmp_path)
    try:
        yield found
    finally:
        found.stop_all()


def test_the_runbook_makes_changes_and_restores_a_cluster(cluster):
    cluster.carry_out(write_deployment(SYSTEM, FIRST, cluster.request()))
    now = cluster.becomes(FIRST)
    contact = "--endpoints=" + cluster.clients["n-b"]
    assert cluster.ask(contact, "put", "key", "value") is not None

    cluster.carry_out(write_deployment(SYSTEM, THEN, cluster.request(), now))
    now = cluster.becomes(THEN)
    assert "value" in cluster.ask("--endpoints=" + cluster.clients["n-g"], "get", "key")
    assert "n-f" not in [member.name for member in now.members]

    cluster.kill("n-g")  # the leader is lost: another voter leads, and it comes back as a follower
    lost = awaited(cluster.deployment, lambda found: found.leaders not in ((), ("g",)))
    assert lost.leaders[0] in ("b", "c", "d", "e")
    cluster.launch("n-g")
    awaited(lambda: cluster.ask("--endpoints=" + cluster.clients["n-g"], "get", "key"),
            lambda text: text is not None)  # fmt: skip
    back = cluster.deployment()
    script = write_deployment(SYSTEM, THEN, cluster.request(), back)
    assert [step["argv"][2] for step in json.loads(script.text)["steps"]] == ["move-leader"]
    cluster.carry_out(script)
    cluster.becomes(THEN)
