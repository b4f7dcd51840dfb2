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
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import itertools
import struct
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.commit_paths.report import fit, read_results, report
from benchmarks.commit_paths.systems import CLIENTS, SYSTEMS, VOTERS, Layout, System, layouts
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import RESULTS, Row, read_json, read_rows, save_rows
from benchmarks.harness.study import FOUND, Study
from benchmarks.live.emulated_wan import EmulatedWan
from benchmarks.live.programs import Processes, answer, awaited, c_program, python_with
from placement.errors import UnsupportedError
from placement.model.protocols import system_rows

_SLOW = ROOT / "benchmarks/live/csrc/slowdisk.c"


class Bench(Processes):
    """Servers of a system and one client of each place, in a network and a folder for them."""

    def __init__(self, system: System, wan: EmulatedWan, folder: Path) -> None:
        super().__init__()
        self.system, self.wan, self.folder = system, wan, folder
        self.rows = [row for row in system_rows() if row.system == system.name]
        self.leader = 0
        self.hosts = [wan.address(str(number)) for number in range(system.servers)]

    def begin(self) -> None:
        """Start clients and servers, and wait until one leads."""
        system = self.system
        self.slow(dict.fromkeys(range(system.servers), 0))
        python: str | Path = sys.executable
        if system.requirements:
            python = python_with(system.name, *system.requirements)
        client = (python, Path(__file__).with_name("client.py"), system.client or system.name)
        self.clients = [
            self.talk([*self.wan.inside(f"c{i}"), *client, str(i)]) for i in range(len(CLIENTS))
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

        return awaited(tried, lambda found: not isinstance(found, Exception), 120, 1)

    def words(self) -> Sequence[str | Path]:
        """Return what gives the next server its own disk."""
        return [c_program(_SLOW), self.folder / f"disk{len(self.started)}"]

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
        Bench(system, wan, Path(folder)) as bench,
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
    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the study."""
        super().add_options(parser)
        parser.add_argument("--fit", action="store_true", help="only write the constants")
        parser.add_argument("--again", dest="resume", action="store_false",
                            help="measure what was measured before too")  # fmt: skip
        parser.set_defaults(resume=True)

    def run(self, options: argparse.Namespace) -> int:
        """Measure the layouts that the files lack, or write the constants; return the exit code."""
        if not options.fit:
            return super().run(options)
        fit(read_results(options.results))
        return FOUND


STUDY = _CommitPaths(
    "commit_paths",
    {name: functools.partial(_measured, name) for name in SYSTEMS},
    {"count": 9, "layout": ""},
    ("system", "part", "layout", "operation", "client", "measured", "low", "high", "n"),
    apart=True,
    group="system",
    key=("system", "part", "layout", "operation", "client"),
    facts=_facts,
    description=__doc__,
    page="docs/benchmarks/commit-paths.md",
    report=lambda: report(read_results(RESULTS)),
)
