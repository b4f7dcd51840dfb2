"""Trips and flushes of each operation of real systems, under emulated delays and slow disks.

    python -m benchmarks run commit_paths --system nats      some minutes each
    python -m benchmarks run commit_paths --system redis etcd --count 4 --layout slow --results DIR
    python -m benchmarks run commit_paths --fit              the constants of the table of systems
    python -m benchmarks run commit_paths --show             the tables of what was measured

Needs Linux with the right to make network namespaces, and the packages of the system; which, a
refusal says. Writes ``commit_paths.csv`` (and versions into ``commit_paths.json``) after every
row, and measures no layout that the file has already, unless ``--again`` is given.

The servers are started once, at 1 ms from each other. Then RTTs and disks change under them.
*Probes* have RTTs that tell the terms apart. One layout on measured RTTs fits the constants of
``placement/model/systems.csv``. The others are predicted from it.

What is predicted comes from ``placement/model/systems.csv`` by the evaluator of the package. Its
constants were fitted on one layout (`fitted_constants`), which no table of errors contains.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import random
import re
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

import placement
from benchmarks.harness.machine import ROOT
from benchmarks.harness.results import (
    RESULTS,
    Row,
    grouped,
    markdown_table,
    pick,
    read_json,
    read_rows,
    save_rows,
)
from benchmarks.harness.study import FOUND, Study
from benchmarks.live.emulated_wan import EmulatedWan
from benchmarks.live.programs import (
    Processes,
    answer,
    as_account,
    awaited,
    built,
    installed,
    postgresql_account,
    python_with,
)
from placement import Instance, Operation, Problem
from placement.errors import UnsupportedError
from placement.evaluation.score import operation_latency
from placement.model.configuration import Configuration
from placement.model.protocols import SystemRow, system_rows

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
    together: bool = False
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
                inside=bench.inside(str(i)),
                account=account,
                environment={k: _filled(text, values) for k, text in self.environment.items()},
            )
            if self.port and not (i and self.together):
                bench.awaited(lambda host=values["host"]: bench.ask(0, port=self.port, at=host))  # type: ignore[misc]  # a lambda with a default

    def _values(self, bench: Bench) -> list[dict[str, str]]:
        """Return the values of each server."""
        program, data = self.program(), [bench.folder / f"data{i}" for i in range(len(bench.hosts))]
        same = {"hosts": ",".join(bench.hosts), "first": bench.hosts[0], "start": data[0],
                "voters": VOTERS, "program": program, "folder": program.parent}  # fmt: skip
        every = []
        for i, host in enumerate(bench.hosts):
            drawn = random.Random(i + 1).sample(range(-(2**63), 2**63, 2**40), 16)
            own = {"i": i, "number": i + 1, "rank": 9 - i, "host": host, "data": data[i],
                   "tokens": ",".join(map(str, drawn))}  # fmt: skip
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
        asked = {"op": self.ready or "leader", "once": len(bench.hosts)}
        said = bench.ask(0, at=bench.hosts[0], **asked)
        if self.leader_log:
            logs = [(bench.folder / f"log{i}").read_text(errors="replace") for i in range(VOTERS)]
            (said,) = (i for i, text in enumerate(logs) if re.search(self.leader_log, text))
            return int(said)
        return 0 if self.ready else int(said)


def _filled(text: str, values: Mapping[str, str]) -> str:
    return Template(text).substitute(values)


def _read() -> dict[str, System]:
    with (HERE / "systems.toml").open("rb") as file:
        found = tomllib.load(file)
    return {name: System(name, **about) for name, about in found.items()}


SYSTEMS: Mapping[str, System] = _read()
"""Systems by name."""


# --- predicted against measured, from the rows that a run has written -----------------------------


GUESSES = Path(__file__).with_name("guesses.csv")
TABLE = ROOT / "placement/model/systems.csv"
_TRIPS = {"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ"}


def read_results(folder: Path) -> dict[str, Any]:
    """Return what was measured: system -> version, package, servers, and rows with ms."""
    found = {name: {**entry, "rows": []}
             for name, entry in read_json(folder / "commit_paths.json").items()}  # fmt: skip
    for row in read_rows(folder / "commit_paths.csv"):
        figures = {name: float(row[name]) for name in ("measured", "high")}
        if row["system"] in found:
            found[row["system"]]["rows"].append({**row, **figures, "client": int(row["client"])})
    return found


def predicted(rows: Sequence[SystemRow], layout: Layout) -> dict[tuple[int, str], float]:
    """Return ms by (client, operation) under a layout whose voters have disks that are alike."""
    (disk,) = set(layout.disks[:VOTERS])
    paths = [row.under(disk, 0.0, VOTERS) for row in rows]
    sites = tuple(f"s{i}" for i in range(len(layout.disks)))
    operations = [
        Operation(row.operation, near=a, relay=b, direct=c, kind="read" if "read" in row.kind else
                  "write", waits=path.waits, constant=path.constant)
        for row, path in zip(rows, paths, strict=True) for a, b, c in [path.trips]
    ]  # fmt: skip
    instance = Instance(
        sites=sites, clients=CLIENTS, client_rtt=layout.clients, site_rtt=layout.between,
        counts=np.ones((len(CLIENTS), len(rows))), operations=tuple(operations), name="layout",
    )  # fmt: skip
    problem = Problem(instance, replicas=len(sites), voters=VOTERS)
    placed = Configuration.of(0, range(VOTERS), range(len(sites)))
    found = operation_latency(problem.demand, placed, VOTERS // 2 + 1)
    return {
        (client, row.operation): float(found[0, client, o])
        for client in range(len(CLIENTS)) for o, row in enumerate(rows)
    }  # fmt: skip


def compared(document: Mapping[str, Any], part: str) -> list[Row]:
    """Return every case of a part with disks alike: the measured row, the model's, and its ms."""
    found = []
    for system, entry in document.items():
        rows = {row.operation: row for row in system_rows() if row.system == system}
        for layout in layouts(entry["servers"]):
            if layout.part == part and len(set(layout.disks)) == 1:
                model = predicted(list(rows.values()), layout)
                mine = pick(entry["rows"], part=part, layout=layout.name)
                for row in (row for row in mine if row["operation"] in rows):
                    ms = model[row["client"], row["operation"]]
                    good = abs(row["measured"] - ms) <= max(2.0, 0.05 * row["measured"])
                    more = {"model": rows[row["operation"]], "predicted": ms, "good": good}
                    found.append({**row, **more})
    return found


def fitted_constants(document: Mapping[str, Any]) -> dict[tuple[str, str], float]:
    """Return the ms of the software by (system, operation): medians of the fitted layout.

    Where all depends on whom servers draw, a mean of few draws fits none: the least of the system.
    """
    found, drawn = {}, []
    for rows in grouped(compared(document, "fit"), "system", "operation"):
        key, path = (rows[0]["system"], rows[0]["operation"]), rows[0]["model"].path
        rest = [row["measured"] - row["predicted"] + path.constant for row in rows]
        found[key] = max(0.0, float(np.median(rest)))
        if path.waits and all(wait.startswith("0.") for wait in path.waits):
            drawn.append(key)
    for key in drawn:
        found[key] = min(ms for (system, _), ms in found.items() if system == key[0])
    return found


def fit(document: Mapping[str, Any]) -> None:
    """Write versions and fitted constants into the table of systems."""
    constants = fitted_constants(document)
    rows = read_rows(TABLE)
    for row in rows:
        key = row["system"], row["operation"]
        if key in constants:
            row |= {"constant": f"{constants[key]:.1f}", "version": document[key[0]]["version"]}
    save_rows(TABLE, rows)


def _words(path: Path) -> dict[tuple[str, str], str]:
    """Return the path of each operation of a table in words: trips, waits, flushes."""
    found = {}
    for row in read_rows(path):
        if row["alpha"]:
            trips = [greek for name, greek in _TRIPS.items() if row[name] == "1"]
            waits = row["waits"].replace("{majority}", "majority")
            waits = waits.replace("majority", str(VOTERS // 2 + 1))
            trips += [wait.strip() for wait in waits.split(";") if wait]
            disk = [f"{flushes} {when}" for when in ("before", "beside")
                    if (flushes := row[f"disk_{when}"]) != "0"]  # fmt: skip
            words = f"{' + '.join(trips)} ({', '.join(disk) or 'none'})"
            found[row["system"], row["operation"]] = words
    return found


def report(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the tables of the page by name."""
    guessed, known = _words(GUESSES), _words(TABLE)
    rows = compared(document, "test")
    terms, errors, rest = [], [], []
    every = [one.name for one in layouts(VOTERS) if one.part == "probe"]
    probes = [every[0], *every[-2:]]
    for row in (row for name in document for row in system_rows() if row.system == name):
        key, entry = (row.system, row.operation), document[row.system]
        found = {m["layout"]: f"{m['measured']:.0f}" for m in
                 pick(entry["rows"], part="probe", operation=row.operation, client=1)}  # fmt: skip
        guess = guessed.get(key, "not guessed")
        path = "as guessed" if known[key] == guess else known[key]
        version = f"{row.system} {entry['version'].partition('-')[0]}"
        terms.append((version, row.operation, guess, path, *(found.get(p, "") for p in probes)))
        tests = pick(rows, system=row.system, operation=row.operation)
        if tests:
            off = np.array([m["measured"] - m["predicted"] for m in tests])
            errors.append((
                *key, f"{row.path.constant:.1f}", f"{np.mean(abs(off)):.1f}",
                f"{off[np.argmax(abs(off))]:+.1f}", f"{sum(m['good'] for m in tests)}",
            ))  # fmt: skip
    for name, entry in document.items():
        stale, lost = (pick(entry["rows"], part=part) for part in ("staleness", "loss"))
        rest.append((
            name,
            ", ".join(f"{m['measured']:.0f} (worst {m['high']:.0f})" for m in stale) or "–",
            ", ".join(f"{m['measured'] / 1000:.1f} s" for m in lost) or "–",
        ))  # fmt: skip
    good = sum(row["good"] for row in rows)
    errors.append(("all", "", "", "", "", f"{good} ({100 * good / max(1, len(rows)):.0f} %)"))
    return {
        "terms": markdown_table(
            ("system", "operation", "guess (flushes)", "measured", *probes), terms),
        "predictions": markdown_table(
            ("system", "operation", "software, ms", "mean error, ms", "worst, ms",
             "within 5 % or 2 ms"), errors),
        "others": markdown_table(
            ("system", "staleness at each other server, ms", "writes again after a lost leader"),
            rest),
    }  # fmt: skip


# --- measuring ------------------------------------------------------------------------------------


_SLOW = ROOT / "benchmarks/live/slowdisk.py"


class Bench(Processes):
    """Servers of a system and one client of each place, in a folder for them.

    They are in an emulated network and have slow disks, or are at hosts of loopback.
    """

    def __init__(
        self, system: System, folder: Path, hosts: Sequence[str], wan: EmulatedWan | None = None
    ) -> None:
        super().__init__()
        self.system, self.wan, self.folder, self.hosts = system, wan, folder, hosts
        self.rows = [row for row in system_rows() if row.system == system.name]
        self.leader = 0

    def begin(self) -> None:
        """Start clients and servers, and wait until one leads."""
        system = self.system
        self.slow(dict.fromkeys(range(len(self.hosts)), 0))
        python: str | Path = sys.executable
        if system.requirements:
            python = python_with(system.name, *system.requirements)
        client = (python, Path(__file__).with_name("client.py"), system.client or system.name)
        self.clients = [
            self.talk([*self.inside(f"c{i}"), *client, str(i)]) for i in range(len(CLIENTS))
        ]
        system.start(self)
        self.leader = self.awaited(lambda: system.leader(self))

    def awaited(self, ask: Callable[[], Any]) -> Any:
        """Return an answer, asked again for as long as there is none."""

        def tried() -> Any:
            try:
                return ask()
            except (AssertionError, ValueError, KeyError) as error:
                return error

        return awaited(tried, lambda found: not isinstance(found, Exception), 240, 1)

    def words(self) -> Sequence[str | Path]:
        """Return what gives the next server its own disk."""
        if self.wan is None:
            return ()
        return [sys.executable, "-S", _SLOW, self.folder / f"disk{len(self.started)}"]

    def inside(self, name: str) -> Sequence[str]:
        """Return the words before a command that run it at a node of the network."""
        return self.wan.inside(name) if self.wan else ()

    def slow(self, disks: Mapping[int, float]) -> None:
        """Let the flushes of servers take so many ms longer."""
        for number, ms in disks.items():
            with (self.folder / f"disk{number}").open("r+b" if self.started else "wb") as file:
                file.write(struct.pack("=i", round(ms * 1000)))

    def ask(self, client: int, **question: Any) -> Any:
        """Return a client's answer."""
        said = answer(self.clients[client], question)
        assert "ok" in said, (question, said)
        return said["ok"]

    def lay(self, layout: Layout) -> list[int]:
        """Give network and disks the values of a layout; return its servers, the leader first."""
        n = len(self.hosts)
        place = sorted(range(n), key=lambda i: i != self.leader)
        rtt = np.ones((n + len(CLIENTS),) * 2)
        rtt[np.ix_(place, place)] = layout.between
        rtt[n:, place] = layout.clients
        rtt[place, n:] = layout.clients.T
        np.fill_diagonal(rtt, 0)
        assert self.wan is not None
        self.wan.set_rtt(rtt)
        self.slow(dict(zip(place, layout.disks, strict=True)))
        time.sleep(1.5)
        return place

    def measured(self, layout: Layout, count: int) -> Iterator[Row]:
        """Yield a row per client and operation: the median of `count` operations, and quartiles.

        It is the mean of more where the servers draw whom they ask.
        """
        place = self.lay(layout)
        for client in range(len(CLIENTS)):  # connections learn of their new RTTs
            self.ask(client, op=self.rows[0].operation, at=self.hosts[self.leader], count=4)
        for row, client in itertools.product(self.rows, range(len(CLIENTS))):
            alpha, _, gamma = row.path.trips
            at = int(np.argmin(layout.clients[client])) if alpha and not gamma else 0
            drawn = any(wait.startswith("0.") for wait in row.path.waits)  # by the servers
            times, pause = (count * 3, 0) if drawn else (count, layout.pause)
            if row.kind == "write" and layout.part != "probe":
                pause = max(pause, self.system.pause)
            name = row.operation.removeprefix("follower-")
            values = self.ask(client, op=name, at=self.hosts[place[at]], count=times, pause=pause)
            middle = np.mean if drawn else np.median
            yield _row(layout, row.operation, client, values, middle, (0.25, 0.75))

    def others(self, layout: Layout) -> Iterator[Row]:
        """Yield staleness at the other servers, quiet and busy, and what a lost leader costs."""
        place = self.lay(layout)
        if "stale" in [row.operation for row in self.rows]:
            for turn, client in ((1, 1), (3, 0))[: 1 + self.system.learners]:
                write, near = self.hosts[self.leader], self.hosts[place[turn]]
                values = self.ask(client, fresh=12, write=write, near=near)
                late = np.array(values) + float(layout.clients[client][turn]) / 2
                yield {**_row(layout, "stale", turn, late), "part": "staleness"}
        if self.system.elects:
            self.stop(self.started[self.leader])
            rest = [self.hosts[i] for i in place[1:VOTERS]]
            yield {**_row(layout, "write", 2, [self.ask(2, until=120, hosts=rest)]), "part": "loss"}


def _row(
    layout: Layout,
    operation: str,
    client: int,
    values: Any,
    middle: Callable[[Any], Any] = np.median,
    ends: tuple[float, float] = (0, 1),
) -> Row:
    """Return a row of results: ms that were measured, and two quantiles of them."""
    low, high = np.quantile(values, ends)
    figures = {"measured": middle(values), "low": low, "high": high}
    known = {"part": layout.part, "layout": layout.name, "operation": operation, "client": client}
    return {**known, **{k: round(float(ms), 2) for k, ms in figures.items()}, "n": len(values)}


@contextlib.contextmanager
def running(system: System) -> Iterator[Bench]:
    """Run the servers of a system; UnsupportedError where it or a network cannot be had."""
    system.program()
    names = [*map(str, range(system.servers)), *(f"c{i}" for i in range(len(CLIENTS)))]
    with (
        EmulatedWan(names, np.ones((len(names),) * 2)) as wan,
        tempfile.TemporaryDirectory(prefix="commits-", ignore_cleanup_errors=True) as folder,
        Bench(system, Path(folder), [*map(wan.address, names[: system.servers])], wan) as bench,
    ):
        bench.folder.chmod(0o755)
        bench.begin()
        yield bench


def _measured(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of a system, of the layouts that the file lacks; those of other versions go.

    A layout whose rows are not all there was interrupted.
    """
    system, table = SYSTEMS[name], STUDY.file_in(options.results)
    about = read_json(table.with_suffix(".json")).get(name, {})
    stale = about.get("version") != system.version()
    kept = [row for row in options.kept.values() if row["system"] == name and not stale]
    there = Counter((row["part"], row["layout"]) for row in kept)
    every = [one for one in layouts(system.servers) if options.layout in one.name]
    whole = len(CLIENTS) * sum(row.system == name for row in system_rows())
    todo = [one for one in every if there[one.part, one.name] < whole]
    rest = not options.layout and not {"staleness", "loss"} & {row["part"] for row in kept}
    if todo or rest:
        with running(system) as bench:
            rows = read_rows(table)
            if stale and rows:  # once there is a bench to measure the new version
                save_rows(table, [row for row in rows if row["system"] != name])
            for layout in todo:
                yield from bench.measured(layout, options.count)
            if rest:
                yield from bench.others(every[0])


def _facts(name: str) -> Row:
    system = SYSTEMS[name]
    try:
        return {"version": system.version(), "package": system.package, "servers": system.servers}
    except UnsupportedError as error:
        raise UnsupportedError(f"{error} (package {system.package})") from error


class _CommitPaths(Study):
    def run(self, options: argparse.Namespace) -> int:
        """Measure the layouts that the files lack, or write the constants; return the exit code."""
        options.resume = not options.again
        if not options.fit:
            return super().run(options)
        fit(read_results(options.results))
        return FOUND


STUDY = _CommitPaths(
    "commit_paths",
    {name: functools.partial(_measured, name) for name in SYSTEMS},
    {"count": 9, "layout": "", "fit": False, "again": False},
    ("system", "part", "layout", "operation", "client", "measured", "low", "high", "n"),
    apart=True,
    group="system",
    key=("system", "part", "layout", "operation", "client"),
    facts=_facts,
    description=__doc__,
    page="docs/benchmarks/commit-paths.md",
    report=lambda: report(read_results(RESULTS)),
)
