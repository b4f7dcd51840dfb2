"""Systems, each as the servers that a study measures (``systems.toml``), and the layouts for them.

A system starts its servers at nodes of an emulated network, voters first, and knows who leads. Of
the layouts, RTTs and disks, the probes tell the terms of a commit apart. The others have RTTs of an
Azure measurement between sites that were drawn at random.
"""

from __future__ import annotations

import random
import re
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

import placement
from benchmarks.live.cassandra.cluster import CassandraCluster, cassandra_programs
from benchmarks.live.programs import as_account, built, installed, postgresql_account

if TYPE_CHECKING:
    from benchmarks.commit_paths.study import Bench

SITES = (
    "East US", "West US 2", "North Europe", "Germany West Central", "Brazil South",
    "Southeast Asia", "Japan East", "Australia East", "Central India", "UK South",
)  # fmt: skip
VOTERS = 3
CLIENTS = ("Central US", "West Europe", "Southeast Asia")


@dataclass(frozen=True, slots=True)
class Layout:
    """RTTs and disks of a "probe", a "fit" or a "test", under which operations are measured.

    RTTs in ms of servers, the leader first, have the shape (n, n), those of clients to them (c, n).
    A disk adds so many ms to a flush. With a `pause`, in ms between two operations of a client,
    flushes that follow a write do not meet the next one.
    """

    part: str
    name: str
    between: Any
    clients: Any
    disks: tuple[float, ...]
    pause: int = 0


def layouts(servers: int) -> list[Layout]:
    """Return the probes, the fitted layout and five others, for three voters and learners.

    A learner of a probe is at 10 ms from the leader: nearer than any voter.
    """
    far = np.array([[0, 40, 80, 10], [40, 0, 60, 50], [80, 60, 0, 90], [10, 50, 90, 0.0]])
    near = np.array([far[0] + 1, far[1] + 1, [30, 50, 90, 35]])
    probe = [("no slow disk", (0, 0, 0)), ("leader's disk 60", (60, 0, 0)),
             ("nearest voter's disk 60", (0, 60, 0)), ("other voter's disk 60", (0, 0, 60)),
             ("all disks 60", (60, 60, 60)),
             ("all disks 60, no pause", (60, 60, 60))]  # fmt: skip
    found = [
        Layout("probe", name, far[:servers, :servers], near[:, :servers], (*disks, 0)[:servers],
               pause=0 if "no" in name.split() else 200)
        for name, disks in probe
    ]  # fmt: skip
    world = placement.load("azure")
    columns = np.array([world.client_index(name) for name in CLIENTS])
    for turn in range(6):
        sites = tuple(random.Random(100 + turn).sample(SITES, 4)[:servers])
        rows = np.array(world.site_indices(sites))
        between = world.site_rtt[np.ix_(rows, rows)]
        clients = world.client_rtt[np.ix_(columns, rows)]
        part = "test" if turn else "fit"
        name = f"cloud {turn}" if turn else "fitted"
        whole = Layout(part, name, (between + between.T) / 2, clients, (0,) * servers)
        found.append(whole)
        if turn == 1:
            slow = (25,) * servers
            name += ", disks 25"
            found.append(Layout(part, name, whole.between, clients, slow, 200))
    return found


# --- systems ------------------------------------------------------------------------------------


HERE = Path(__file__).parent


@dataclass(frozen=True)
class System:
    """Servers of a system at nodes ``0``, ``1``, …; ``systems.toml`` says what the attributes mean.

    Three of them vote, `learners` follow.
    """

    name: str
    package: str
    version_in: str
    made: str = ""
    installed: Sequence[str] = ()
    version_words: Sequence[str] = ()
    requirements: Sequence[str] = ()
    client: str = ""
    learners: int = 0
    elects: bool = True
    pause: int = 0
    files: Mapping[str, str] = field(default_factory=dict)
    prepare: Sequence[str] = ()
    command: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)
    follower: Mapping[str, str] = field(default_factory=dict)
    learner: Mapping[str, str] = field(default_factory=dict)
    joined: Mapping[str, Sequence[str]] = field(default_factory=dict)
    port: int = 0
    account: bool = False
    ready: str = ""
    leader_log: str = ""

    @property
    def servers(self) -> int:
        """Number of servers."""
        return VOTERS + self.learners

    def program(self) -> Path:
        """Return what is run; UnsupportedError, with the package, where it is not installed."""
        if self.made:
            return built((HERE / self.made).parent)
        return installed(self.package, *self.installed)

    def version(self) -> str:
        """Return the version; UnsupportedError as `program`."""
        text = str(self.program())
        if self.made:
            text = (HERE / self.made).read_text()
        elif self.version_words:
            asked = [text, *self.version_words]
            text = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
        found = re.search(self.version_in, text)
        return found[1] if found else "unknown"

    def start(self, bench: Bench) -> None:
        """Write the files of all servers, and start them."""
        account = postgresql_account() if self.account else ""
        every = self._values(bench)
        for values in every:
            folder = Path(values["data"])
            folder.mkdir()
            for name, text in self.files.items():
                (folder / name).touch(0o600)
                (folder / name).write_text(_filled(text, values))
        if account:
            subprocess.run(["chown", "-R", account, bench.folder], check=True)
        for values in every if self.prepare else ():
            words = [_filled(word, values) for word in self.prepare]
            subprocess.run([*as_account(account), "--", *words], capture_output=True, check=True,
                           cwd=bench.folder)  # fmt: skip
        for i, values in enumerate(every):
            bench.start(
                [_filled(word, values) for word in self.command],
                bench.folder / f"log{i}",
                inside=bench.wan.inside(str(i)),
                account=account,
                environment={k: _filled(text, values) for k, text in self.environment.items()},
            )
            if self.port:
                bench.awaited(lambda host=values["host"]: bench.ask(0, port=self.port, at=host))  # type: ignore[misc]  # a lambda with a default

    def _values(self, bench: Bench) -> list[dict[str, str]]:
        """Return the values of each server."""
        program, data = self.program(), [bench.folder / f"data{i}" for i in range(self.servers)]
        same = {"hosts": ",".join(bench.hosts), "first": bench.hosts[0], "start": data[0],
                "voters": VOTERS, "program": program, "folder": program.parent}  # fmt: skip
        every = []
        for i, host in enumerate(bench.hosts):
            own = {"i": i, "number": i + 1, "rank": 9 - i, "host": host, "data": data[i]}
            values = {name: str(value) for name, value in {**same, **own}.items()}
            more = [self.values, self.follower if i else {}, self.learner if i >= VOTERS else {}]
            for name, text in ((name, text) for some in more for name, text in some.items()):
                values[name] = _filled(text, values)
            every.append(values)
        for name, (text, between) in self.joined.items():
            whole = between.join([_filled(text, values) for values in every])
            every = [{**values, name: whole} for values in every]
        return every

    def leader(self, bench: Bench) -> int:
        """Return the number of the server that leads; any exception while there is none."""
        said = bench.ask(0, op=self.ready or "leader", at=bench.hosts[0], once=1)
        if self.leader_log:
            logs = [(bench.folder / f"log{i}").read_text(errors="replace") for i in range(VOTERS)]
            (said,) = (i for i, text in enumerate(logs) if re.search(self.leader_log, text))
            return int(said)
        return 0 if self.ready else int(said)


def _filled(text: str, values: Mapping[str, str]) -> str:
    return Template(text).substitute(values)


class _Cassandra(System):
    def start(self, bench: Bench) -> None:
        nodes = {str(i): (f"dc{i}", host) for i, host in enumerate(bench.hosts)}
        cluster = _Flushing(cassandra_programs(), bench.folder, nodes, bench, bench.wan.inside)
        cluster.form()
        copies = ", ".join(f"'{datacentre}': 1" for datacentre, _ in nodes.values())
        cluster.run(f"CREATE KEYSPACE live WITH replication = {{'class': "
                    f"'NetworkTopologyStrategy', {copies}}}")  # fmt: skip
        cluster.run("CREATE TABLE live.t (k int PRIMARY KEY, v bigint)")
        for key in range(27):
            cluster.run(f"INSERT INTO live.t (k, v) VALUES ({key}, 0)", "ALL")


class _Flushing(CassandraCluster):
    commitlog = "commitlog_sync: batch"


def _read() -> dict[str, System]:
    with (HERE / "systems.toml").open("rb") as file:
        found = tomllib.load(file)
    kinds = {"cassandra": _Cassandra}
    return {name: kinds.get(name, System)(name, **about) for name, about in found.items()}


SYSTEMS: Mapping[str, System] = _read()
"""Systems by name."""
