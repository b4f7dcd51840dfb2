"""A real ZooKeeper ensemble on loopback: roles as planned, changed by the steps of the export."""

import contextlib
import re
import shutil
import socket
import subprocess

import pytest

from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import read_deployment, write_deployment
from tests.databases.real.tools import awaited, free_port, java_classpath

pytestmark = pytest.mark.databases

SYSTEM = load_system("zookeeper")
SITES = ("a", "b", "c", "d", "e")
FIRST = Deployment.of("x", {"a": 1, "b": 1, "c": 1}, {"d": 1})
THEN = Deployment.of("x", {"b": 1, "c": 1, "e": 1}, {"a": 1})
SETTINGS = (
    "tickTime=500\ninitLimit=20\nsyncLimit=10\nadmin.enableServer=false\nreconfigEnabled=true\n"
    "standaloneEnabled=false\nskipACL=yes\n4lw.commands.whitelist=srvr\nforceSync=no\n"
)


class Ensemble:
    """Servers with an address of loopback each, and the shell of one of them."""

    def __init__(self, classpath, folder):
        self.java = [shutil.which("java"), "-Xmx96m", "-cp", classpath]
        self.folder, self.processes = folder, {}
        self.ports = {site: free_port() for site in SITES}
        self.localities = Localities(
            SITES,
            tuple(
                Locality(
                    f"127.0.44.{number}",
                    site,
                    {"id": str(number), "client_port": str(self.ports[site])},
                )
                for number, site in enumerate(SITES, 1)
            ),
        )

    def request(self):
        return SYSTEM.request(self.localities)

    def start(self, site, servers):
        number = SITES.index(site) + 1
        folder = self.folder / site
        folder.mkdir()
        (folder / "myid").write_text(str(number))
        (folder / "zoo.dynamic").write_text(servers)
        (folder / "zoo.cfg").write_text(
            f"{SETTINGS}dataDir={folder}\ndynamicConfigFile={folder}/zoo.dynamic\n"
        )
        log = (folder / "log").open("ab")
        self.processes[site] = subprocess.Popen(
            [*self.java, "org.apache.zookeeper.server.quorum.QuorumPeerMain", folder / "zoo.cfg"],
            stdout=log, stderr=log, cwd=folder,
        )  # fmt: skip
        log.close()

    def mode(self, site):
        """Return leader, follower or observer; empty while the server does not answer."""
        with contextlib.suppress(OSError):
            with socket.create_connection(("127.0.0.1", self.ports[site]), 2) as wire:
                wire.settimeout(2)
                wire.sendall(b"srvr")
                answer = b"".join(iter(lambda: wire.recv(4096), b"")).decode()
            found = re.search(r"^Mode: (\w+)", answer, re.MULTILINE)
            return found[1] if found else ""
        return ""

    def shell(self, site, *words):
        done = subprocess.run(
            [*self.java, "org.apache.zookeeper.ZooKeeperMain", "-server",
             f"127.0.0.1:{self.ports[site]}", *words],
            capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        return done.stdout if done.returncode == 0 else None

    def deployment(self, site):
        text = awaited(lambda: self.shell(site, "config"), lambda found: found is not None)
        return read_deployment(SYSTEM, (("config", text),), self.request()).deployment

    def runs(self, goal):
        """Wait until every server of a deployment has its role."""
        for site in goal.voters_at:
            awaited(lambda site=site: self.mode(site), lambda mode: mode in ("leader", "follower"))
        for site in goal.non_voters_at:
            awaited(lambda site=site: self.mode(site), lambda mode: mode == "observer")
        modes = [self.mode(site) for site in goal.voters_at]
        assert modes.count("leader") == 1, modes

    def carry_out(self, text, contact):
        """Carry out the steps of an export as a person reads them."""
        servers = "".join(f"{line}\n" for line in self.shell(contact, "config").splitlines()
                          if line.startswith("server."))  # fmt: skip
        for line in re.findall(r"^# step \d+: (.*)$", text, re.MULTILINE):
            assert "[" not in line, line  # no step breaks a quorum
            address = re.search(r"start (\S+), then", line)
            if address:
                site = SITES[int(address[1].rpartition(".")[2]) - 1]
                spec = line.rpartition("reconfig -add ")[2]
                self.start(site, servers + spec + "\n")
            if "reconfig" in line:
                words = line[line.index("reconfig") :].split()
                awaited(
                    lambda words=words: self.shell(contact, *words), lambda out: out is not None
                )
            else:
                site = SITES[int(re.search(r"wait until (\S+)", line)[1].rpartition(".")[2]) - 1]
                awaited(lambda site=site: self.mode(site), lambda mode: mode == "observer")

    def stop_all(self):
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)


@pytest.fixture
def ensemble(tmp_path):
    found = Ensemble(java_classpath("zookeeper"), tmp_path)
    try:
        yield found
    finally:
        found.stop_all()


def test_the_export_makes_and_changes_an_ensemble(ensemble):
    text = write_deployment(SYSTEM, FIRST, ensemble.request()).text
    servers = "".join(f"{line}\n" for line in text.splitlines() if line.startswith("server."))
    for site in ("a", "b", "c", "d"):
        ensemble.start(site, servers)
    ensemble.runs(FIRST)
    present = ensemble.deployment("b")
    assert not present.differences(FIRST)
    assert ensemble.shell("b", "create", "/key", "value") is not None

    ensemble.carry_out(write_deployment(SYSTEM, THEN, ensemble.request(), present).text, "b")
    ensemble.runs(THEN)
    assert not ensemble.deployment("e").differences(THEN)
    assert "value" in ensemble.shell("a", "get", "/key")

    lead = next(site for site in THEN.voters_at if ensemble.mode(site) == "leader")
    ensemble.processes.pop(lead).kill()
    rest = [site for site in THEN.voters_at if site != lead]
    modes = awaited(lambda: sorted(map(ensemble.mode, rest)), lambda m: m == ["follower", "leader"])
    assert modes
    assert ensemble.shell(rest[0], "set", "/key", "again") is not None


def test_a_server_of_weight_zero_counts_for_no_quorum(ensemble):
    all_vote = Deployment.of("x", dict.fromkeys("abcde", 1))
    text = write_deployment(SYSTEM, all_vote, ensemble.request()).text
    servers = "".join(f"{line}\n" for line in text.splitlines() if line.startswith("server."))
    weights = "group.1=1:2:3:4:5\n" + "".join(
        f"weight.{number}={int(number <= 3)}\n" for number in range(1, 6)
    )
    for site in SITES:
        ensemble.start(site, servers + weights)
    ensemble.runs(all_vote)
    text = awaited(lambda: ensemble.shell("a", "config"), lambda found: found is not None)
    found = read_deployment(SYSTEM, (("config", text),), ensemble.request())
    assert found.deployment.voters_at == {"a": 1, "b": 1, "c": 1}
    assert found.deployment.non_voters_at == {"d": 1, "e": 1}
    assert {f.rule for f in found.findings} == {"weight-zero"}
    # two of five servers are left, and two of three votes
    for site in ("c", "d", "e"):
        ensemble.processes.pop(site).kill()
    awaited(lambda: sorted(map(ensemble.mode, "ab")), lambda m: m == ["follower", "leader"])
    awaited(lambda: ensemble.shell("a", "create", "/key", "value"), lambda out: out is not None)
