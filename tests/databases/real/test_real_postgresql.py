"""PostgreSQL on loopback: the exported setting gives the planned synchronous standbys."""

import contextlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from benchmarks.live.programs import installed, postgresql_account
from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import read_deployment, write_deployment
from tests.databases.real.tools import awaited, free_port, or_skip

pytestmark = pytest.mark.databases

SYSTEM = load_system("postgresql")
NAMES = ("p", "s-1", 's"2', "s3")
SITES = ("a", "b", "c", "d")
LOCALITIES = Localities(SITES, tuple(map(Locality, NAMES, SITES)))
USER = "postgres"


class Servers:
    """A primary and its standbys in a temporary folder, stopped whatever happens."""

    def __init__(self, folder):
        pattern = "usr/lib/postgresql/*/bin/initdb"
        self.bin = or_skip(installed)("postgresql", "initdb", pattern).resolve().parent
        self.folder = folder
        self.user = or_skip(postgresql_account)() or None
        self.ports = {name: free_port() for name in NAMES}
        self.started = []
        if self.user is not None:
            shutil.chown(folder, self.user)

    def run(self, program, *arguments):
        environment = {**os.environ, "LC_ALL": "C", "PGHOST": "127.0.0.1", "PGUSER": USER}
        done = subprocess.run(
            [self.bin / program, *arguments], user=self.user, cwd=self.folder, env=environment,
            capture_output=True, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert done.returncode == 0, f"{program}: {done.stderr}"
        return done.stdout

    def data(self, name):
        return self.folder / f"data{NAMES.index(name)}"

    def start(self, name):
        options = f"-p {self.ports[name]} -c listen_addresses=127.0.0.1"
        options += f" -c unix_socket_directories={self.folder} -c fsync=off -c max_wal_senders=8"
        log = self.folder / f"log{NAMES.index(name)}"
        self.run("pg_ctl", "-D", self.data(name), "-o", options, "-l", log, "-w", "start")
        self.started.append(name)

    def stop(self, name):
        self.run("pg_ctl", "-D", self.data(name), "-m", "immediate", "-w", "stop")
        self.started.remove(name)

    def sql(self, name, text, *options):
        return self.run(
            "psql", "-X", "-v", "ON_ERROR_STOP=1", "-p", str(self.ports[name]), "-d", "postgres",
            *options, "-c", text,
        )  # fmt: skip

    def file(self, name, text):
        path = self.folder / "script.sql"
        path.write_text(text, encoding="utf-8")
        path.chmod(0o644)
        return self.run(
            "psql", "-X", "-v", "ON_ERROR_STOP=1", "-p", str(self.ports[name]), "-d", "postgres",
            "-f", path,
        )  # fmt: skip

    def primary(self, name):
        self.run("initdb", "-D", self.data(name), "-U", USER, "-A", "trust", "-N")
        self.start(name)

    def standby(self, name, primary):
        self.run(
            "pg_basebackup", "-D", self.data(name), "-p", str(self.ports[primary]), "-c", "fast",
            "-X", "stream",
        )  # fmt: skip
        (self.data(name) / "standby.signal").touch()
        quoted = name.replace("\\", "\\\\").replace("'", "\\'")
        where = f"host=127.0.0.1 port={self.ports[primary]} user={USER} application_name='{quoted}'"
        line = "primary_conninfo = '" + where.replace("'", "''") + "'\n"
        with (self.data(name) / "postgresql.auto.conf").open("a") as file:
            file.write(line)
        self.start(name)

    def states(self, primary):
        query = "SELECT application_name, sync_state FROM pg_stat_replication ORDER BY 1"
        return self.sql(primary, query, "--csv")

    def stop_all(self):
        for name in reversed(list(self.started)):
            with contextlib.suppress(subprocess.SubprocessError, AssertionError):
                self.stop(name)


@pytest.fixture(scope="module")
def servers():
    # not below pytest's own folder: each start of pytest closes that to other accounts
    with tempfile.TemporaryDirectory(prefix="placement-pg-") as folder:
        found = Servers(Path(folder))
        try:
            found.primary("p")
            for name in NAMES[1:]:
                found.standby(name, "p")
            awaited(lambda: found.states("p"), lambda text: text.count("\n") == 4)
            yield found
        finally:
            found.stop_all()


def applied(servers, deployment):
    """Apply the exported text, and read the setting and the states back."""
    request = SYSTEM.request(LOCALITIES)
    script = write_deployment(SYSTEM, deployment, request)
    servers.file("p", script.text)
    shown = awaited(
        lambda: servers.sql("p", "SHOW synchronous_standby_names"),
        lambda text: "ANY" in text or deployment.voters == 1,
    )
    states = awaited(
        lambda: servers.states("p"), lambda text: text.count("quorum") == deployment.voters - 1
    )
    again = SYSTEM.request(LOCALITIES, settings={"primary": "p"})
    found = read_deployment(SYSTEM, (("shown", shown), ("states", states)), again)
    assert found.deployment.differences(SYSTEM.keeps(deployment)) == ()
    return states


def test_states_are_as_planned(servers):
    deployment = Deployment.of("x", {"a": 1, "b": 1, "c": 1}, {"d": 1}, leaders=("a",))
    states = applied(servers, deployment)
    assert "s-1,quorum" in states
    assert "s3,async" in states


def test_other_numbers_of_votes(servers):
    for commit in (2, 3, 4):
        four = Deployment.of("x", dict.fromkeys(SITES, 1), leaders=("a",), commit=commit)
        applied(servers, four)
    alone = Deployment.of("x", {"a": 1}, {"b": 1, "c": 1, "d": 1}, leaders=("a",))
    applied(servers, alone)


def test_a_commit_waits_for_as_many_standbys_as_planned(servers):
    """With two of four votes missing, three votes never come and two do."""
    four = Deployment.of("x", dict.fromkeys(SITES, 1), leaders=("a",), commit=3)
    applied(servers, four)
    servers.sql("p", "CREATE TABLE IF NOT EXISTS t (x int)")
    servers.stop("s3")
    servers.sql("p", "INSERT INTO t VALUES (1)")  # the primary and two standbys
    servers.stop("s-1")
    process = subprocess.Popen(
        [servers.bin / "psql", "-X", "-h", "127.0.0.1", "-p", str(servers.ports["p"]), "-U", USER,
         "-d", "postgres", "-c", "INSERT INTO t VALUES (2)"],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(3)
        servers.start("s3")
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.wait()
    servers.start("s-1")
