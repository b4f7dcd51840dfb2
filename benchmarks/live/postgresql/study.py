"""Real PostgreSQL with synchronous standbys under an emulated wide-area network, against the model.

    python -m benchmarks run live.postgresql              some minutes
    python -m benchmarks run live.postgresql --quick      a short form; writes nothing

Needs Linux with the right to make network namespaces, and an installed PostgreSQL. Writes
``benchmarks/results/live_postgresql.json``; with ``--write-docs``, its tables of the page.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.live.emulated_wan import EmulatedWan
from benchmarks.live.harness import Latencies, Layout, LiveSystem, client_node, live_study
from benchmarks.live.programs import Processes, Servers, as_account, awaited, server_name
from placement import Operation
from placement.databases import Deployment, Localities, Locality, load_system
from placement.databases.system import write_deployment
from placement.errors import UnsupportedError

__all__ = ["STUDY", "PostgresCluster", "Postgresql", "server_account", "server_programs"]


# --- the servers, set as the export says --------------------------------------------------------

USER = "postgres"
_SYSTEM = load_system("postgresql")
_SETTINGS = (
    "listen_addresses = '*'\nmax_connections = 2000\nfsync = off\n"
    "max_wal_senders = 16\nwal_keep_size = '64MB'\nhot_standby = on\nwal_sender_timeout = '60s'\n"
)
_SCRIPTS = {
    "put": "UPDATE t SET x = x + 1 WHERE key = {key};\n",
    "read": "SELECT x FROM t WHERE key = {key};\n",
}
"""Operation -> script of pgbench; one statement, so one round trip of the client."""


def server_programs() -> Path:
    """Return the folder of the newest server.

    Raises
    ------
    UnsupportedError
        When no server is installed.
    """
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda p: p.parts[4])
    if found:
        return found[-1].parent
    if (initdb := shutil.which("initdb")) is not None:
        return Path(initdb).resolve().parent
    raise UnsupportedError("no PostgreSQL server (initdb) is installed")


def server_account() -> str:
    """Return the account of the server, empty for the present account: the server refuses root.

    Raises
    ------
    UnsupportedError
        Where this is root, and there is no other account.
    """
    if os.geteuid() != 0:
        return ""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise UnsupportedError("the server does not run as root, and there is no other account")


class PostgresCluster(Servers):
    """A primary and its standbys, at a site each.

    Parameters
    ----------
    wan
        The network.
    folder
        For data and logs; other accounts must be able to reach it.
    processes
        What stops the servers.

    Attributes
    ----------
    wan
        The network.
    """

    def __init__(self, wan: EmulatedWan, folder: Path, processes: Processes) -> None:
        self.bin, self.account = server_programs(), server_account()
        super().__init__(folder, processes, wan.inside)
        self.wan = wan
        self._template = folder / "template"
        self._starts = 0
        if self.account:
            shutil.chown(folder, self.account)
        self._run("initdb", "-D", str(self._template), "-U", USER, "-A", "trust", "-N")
        with (self._template / "postgresql.conf").open("a") as file:
            file.write(_SETTINGS)
        with (self._template / "pg_hba.conf").open("a") as file:
            file.write("host all all 10.77.0.0/24 trust\nhost replication all 10.77.0.0/24 trust\n")

    def start(self, deployment: Deployment) -> None:
        """Start the servers of a deployment, and wait until every standby follows as planned."""
        self.stop()
        self._starts += 1
        leader = deployment.leaders[0]
        sites = [one.site for one in deployment.held]
        self._launch(leader, leader)
        awaited(lambda: self.sql(leader, "SELECT 1"), lambda text: text is not None)
        for site in sites:
            if site != leader:
                self._launch(site, leader)
        rows = awaited(
            lambda: self.sql(leader, "SELECT application_name FROM pg_stat_replication"),
            lambda text: text is not None and text.count("\n") == len(sites) - 1,
            60,
        )
        assert rows is not None
        script = write_deployment(_SYSTEM, deployment, _SYSTEM.request(self._localities(sites)))
        assert self.sql(leader, "CREATE TABLE t (key int PRIMARY KEY, x int)") is not None
        assert (
            self.sql(leader, "INSERT INTO t SELECT k, 0 FROM generate_series(1, 9999) k")
            is not None
        )
        (self.folder / "script.sql").write_text(script.text, encoding="utf-8")
        assert self._psql(leader, "-f", str(self.folder / "script.sql")) is not None
        query = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'quorum'"
        wanted = str(deployment.voters - 1)
        awaited(lambda: self.sql(leader, query), lambda text: (text or "").strip() == wanted, 60)
        for site in sites:  # a standby has the table once it has replayed what was sent
            awaited(lambda site=site: self.sql(site, "SELECT x FROM t WHERE key = 1"),  # type: ignore[misc]
                    lambda text: text is not None and text.strip() != "")  # fmt: skip

    def sql(self, site: str, text: str) -> str | None:
        """Return the result of a statement at a site, or None when the statement fails."""
        return self._psql(site, "-c", text)

    def latencies(self, jobs: Mapping[str, tuple[str, str]], count: int) -> dict[str, list[float]]:
        """Return latencies in ms by client, of clients that all measure at once.

        Parameters
        ----------
        jobs
            Client -> ("put" or "read", site that it asks).
        count
            Statements of each client, one after the other, after two that do not count.
        """
        running = {}
        for key, (client, (kind, server)) in enumerate(jobs.items(), 1):
            folder = Path(tempfile.mkdtemp(dir=self.folder))
            script = folder / "script.sql"
            script.write_text(_SCRIPTS[kind].format(key=key), encoding="ascii")
            command: list[str | Path] = [
                self.bin / "pgbench", "-h", self.wan.address(server), "-p", "5432", "-U", USER,
                "-n", "-c", "1", "-t", str(count + 2), "-f", script,
                "-l", "--log-prefix", folder / "log", "postgres",
            ]  # fmt: skip
            inside = self.wan.inside(client_node(client))
            process = self.processes.start(command, folder / "output", inside=inside)
            running[client] = process, folder
        found = {}
        for client, (process, folder) in running.items():
            assert process.wait(120) == 0, f"pgbench at {client} failed"
            (log,) = folder.glob("log*")
            rows = [line.split() for line in log.read_text().splitlines()]
            found[client] = [int(words[2]) / 1000 for words in rows][2:]
        return found

    def _launch(self, site: str, leader: str) -> None:
        data = self.folder / f"data-{self._starts}-{self.name(site)}"
        shutil.copytree(self._template, data)
        if site != leader:
            (data / "standby.signal").touch()
            with (data / "postgresql.auto.conf").open("a") as file:
                file.write(
                    f"primary_conninfo = 'host={self.wan.address(leader)} port=5432 user={USER} "
                    f"application_name=''{self.name(site)}'''\n"
                )
        if self.account:
            for path in (data, *data.rglob("*")):
                shutil.chown(path, self.account)
        data.chmod(0o700)
        self.running[site] = self.processes.start(
            [self.bin / "postgres", "-D", data, "-k", ""],
            self.folder / f"{self.name(site)}.log",
            inside=self.inside(site),
            account=self.account,
        )

    name = staticmethod(server_name)

    def _localities(self, sites: Sequence[str]) -> Localities:
        return Localities(tuple(sites), tuple(Locality(self.name(site), site) for site in sites))

    def _psql(self, site: str, *words: str) -> str | None:
        options = ("-X", "-A", "-t", "-v", "ON_ERROR_STOP=1")
        server = ("-h", self.wan.address(site), "-U", USER, "-d", "postgres")
        return self.output(site, self.bin / "psql", *options, *server, *words)

    def _run(self, program: str, *words: str) -> None:
        done = subprocess.run(
            [*as_account(self.account), "--", self.bin / program, *words],
            cwd=self.folder,
            env={**os.environ, "LC_ALL": "C"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr


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
