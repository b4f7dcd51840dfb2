"""Trips and flushes of each operation of real systems, under emulated delays and slow disks.

    python -m benchmarks run commit_paths --system nats      some minutes each
    python -m benchmarks run commit_paths --quick --system redis etcd      writes nothing
    python -m benchmarks run commit_paths --show             the tables of what was measured

Needs Linux with the right to make network namespaces, and the packages of the system; which, a
refusal says. Writes ``commit_paths.csv`` (and versions into ``commit_paths.json``) after every
layout, and measures no layout that the file has already, unless ``--again`` is given.

The servers are started once, at 1 ms from each other. Then RTTs and disks change under them.
*Probes* have RTTs that tell the terms apart. One layout on measured RTTs fits the constants of
``placement/model/systems.csv``. The others are predicted from it.
"""

from __future__ import annotations

import argparse
import shutil
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from benchmarks.commit_paths.layouts import CLIENTS, VOTERS, Layout, layouts
from benchmarks.commit_paths.report import fit, read_results, report
from benchmarks.commit_paths.systems import SYSTEMS, System
from benchmarks.harness import machine
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import (
    RESULTS,
    Row,
    read_json,
    read_rows,
    save_json,
    save_rows,
)
from benchmarks.harness.study import Study
from benchmarks.live.emulated_wan import EmulatedWan
from benchmarks.live.programs import Processes, answer, awaited, c_program, python_with
from placement.errors import UnsupportedError
from placement.model.protocols import system_rows

_SLOW = ROOT / "benchmarks/live/csrc/slowdisk.c"


class Bench(Processes):
    """Running servers of a system and one client of each place, as a context."""

    def __init__(self, system: System) -> None:
        super().__init__()
        self.system, self.version = system, system.version()
        self.names = [*map(str, range(system.servers)), *(f"c{i}" for i in range(len(CLIENTS)))]
        self.wan = EmulatedWan(self.names, np.ones((len(self.names),) * 2))
        self.rows = [row for row in system_rows() if row.system == system.name]
        self.leader = 0

    def __enter__(self) -> Self:
        self.wan.__enter__()
        self.folder = Path(tempfile.mkdtemp(prefix="commits-"))
        self.folder.chmod(0o755)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_all()
        self.wan.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self) -> None:
        system = self.system
        self.hosts = [self.wan.address(str(number)) for number in range(system.servers)]
        self.slow(dict.fromkeys(range(system.servers), 0))
        python = sys.executable
        if system.requirements:
            python = str(python_with(system.name, *system.requirements))
        client = (python, str(Path(__file__).with_name("client.py")), system.client or system.name)
        self.clients = [
            self.talk([*self.wan.inside(f"c{i}"), *client, str(i)]) for i in range(len(CLIENTS))
        ]
        system.start(self)
        self.leader = self.awaited(lambda: system.leader(self))

    def awaited(self, ask: Callable[[], int]) -> int:
        """Return an answer, asked again for as long as there is none."""

        def tried() -> int | str:
            try:
                return ask()
            except (AssertionError, ValueError, KeyError) as error:
                return f"{type(error).__name__}: {error}"

        found = awaited(tried, lambda answer: isinstance(answer, int), 120, 1)
        assert isinstance(found, int)
        return found

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

    def order(self) -> list[int]:
        """Return the numbers of the servers in the order of layouts: the leader first."""
        return sorted(range(len(self.hosts)), key=lambda i: i != self.leader)

    def lay(self, layout: Layout) -> None:
        """Give network and disks the values of a layout."""
        place = self.order()
        rtt = np.ones((len(self.names),) * 2)
        n = len(place)
        rtt[np.ix_(place, place)] = layout.between
        rtt[n:, place] = layout.clients
        rtt[np.ix_(place, range(n, len(self.names)))] = layout.clients.T
        np.fill_diagonal(rtt, 0)
        self.wan.set_rtt(rtt)
        self.slow(dict(zip(place, layout.disks, strict=True)))
        time.sleep(1.5)

    def measured(self, layout: Layout, count: int) -> Iterator[Row]:
        """Yield a row per client and operation: the median of `count` operations, and quartiles.

        It is the mean of more where the servers draw whom they ask.
        """
        self.lay(layout)
        place = self.order()
        for client in range(len(CLIENTS)):  # connections learn of their new RTTs
            self.ask(client, op=self.rows[0].operation, at=self.hosts[self.leader], count=4)
        for row in self.rows:
            operation, (alpha, _, gamma) = row.operation, row.path.trips
            for client in range(len(CLIENTS)):
                near = int(np.argmin(layout.clients[client]))
                at = near if alpha and not gamma else 0
                name = operation.removeprefix("follower-")
                drawn = any(wait.startswith("0.") for wait in row.path.waits)  # by the servers
                times, pause = (count * 3, 0) if drawn else (count, layout.pause)
                if row.kind == "write" and layout.part != "probe":
                    pause = max(pause, self.system.pause)
                values = self.ask(
                    client, op=name, at=self.hosts[place[at]], count=times, pause=pause
                )
                quartiles = (float(q) for q in np.quantile(values, (0.25, 0.75)))
                middle = float((np.mean if drawn else np.median)(values))
                yield self.row(layout, operation, client, len(values), middle, *quartiles)

    def row(
        self, layout: Layout, operation: str, client: int, n: int, *ms: float, part: str = ""
    ) -> Row:
        """Return a row of results: ms that were measured, the lower and the higher of them."""
        names = ("measured", "low", "high")
        figures = {name: round(one, 2) for name, one in zip(names, ms, strict=True)}
        return {"system": self.system.name, "part": part or layout.part, "layout": layout.name,
                "operation": operation, "client": client, **figures, "n": n}  # fmt: skip

    def others(self, layout: Layout) -> Iterator[Row]:
        """Yield staleness at the other servers, quiet and busy, and what a lost leader costs."""
        self.lay(layout)
        place = self.order()
        if "stale" in [row.operation for row in self.rows]:
            for turn, client in ((1, 1), (3, 0))[: 1 + self.system.learners]:
                write, near = self.hosts[self.leader], self.hosts[place[turn]]
                values = self.ask(client, fresh=12, write=write, near=near)
                late = np.array(values) + float(layout.clients[client][turn]) / 2
                figures = (float(np.median(late)), float(late.min()), float(late.max()))
                yield self.row(layout, "stale", turn, len(late), *figures, part="staleness")
        if self.system.elects:
            self.stop(self.started[self.leader])
            rest = [self.hosts[i] for i in place[1:VOTERS]]
            ms = self.ask(2, until=120, hosts=rest)
            yield self.row(layout, "write", 2, 1, ms, ms, ms, part="loss")


def _kept(
    rows: list[Row], entry: Row, found: Iterator[Row], asked: argparse.Namespace
) -> list[Row]:
    """Return the rows of a system with those of a layout; all or none are written.

    Runs of other systems may write theirs meanwhile. The version comes last: a run that stops
    between the two files leaves no rows of an older version under a new one.
    """
    for row in found:
        rows = [*rows, row]
        print(row, file=sys.stderr)
    if rows and not asked.quick:
        name = rows[0]["system"]
        table, versions = (asked.results / f"commit_paths.{end}" for end in ("csv", "json"))
        save_rows(table, [*[row for row in read_rows(table) if row["system"] != name], *rows])
        save_json(versions, {**read_json(versions), name: entry})
    return rows


class _CommitPaths(Study):
    results = ("commit_paths.csv", "commit_paths.json")

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the study."""
        parser.add_argument("--system", nargs="+", choices=list(SYSTEMS), default=list(SYSTEMS),
                            metavar="NAME", help=f"systems: {', '.join(SYSTEMS)}")  # fmt: skip
        parser.add_argument("--quick", action="store_true", help="few operations, writes nothing")
        parser.add_argument(
            "--fit", action="store_true", help="measure nothing, write the constants of the table"
        )
        add_folder(parser, "results", RESULTS)
        parser.add_argument(
            "--again", action="store_true", help="measure what was measured before too"
        )

    def run(self, options: argparse.Namespace) -> int:
        """Measure the layouts that the files lack, or write the constants; return the exit code."""
        if options.fit:
            fit(read_results(options.results))
            return 0
        code = 0
        for name in options.system:
            system = SYSTEMS[name]
            try:
                version = system.version()
            except UnsupportedError as error:
                print(f"{name}: not measured: {error} (package {system.package})", file=sys.stderr)
                code = 1
                continue
            entry: Row = {
                "version": version,
                "package": system.package,
                "servers": system.servers,
                "machine": machine.sentence(machine.describe(["numpy"])),
                "command": f"python -m benchmarks run commit_paths --system {name}",
            }
            old = {} if options.quick else read_results(options.results).get(name, {})
            rows = old["rows"] if old.get("version") == version and not options.again else []
            kept = {(row["part"], row["layout"]) for row in rows}
            todo = [one for one in layouts(entry["servers"]) if (one.part, one.name) not in kept]
            if options.quick:
                todo = [todo[0], *[one for one in todo if one.part != "probe"][:2]]
            rest = not options.quick and not {"staleness", "loss"} & {part for part, _ in kept}
            if not (todo or rest):
                continue
            count = 4 if options.quick else 9
            with Bench(system) as bench:
                for layout in todo:
                    rows = _kept(rows, entry, bench.measured(layout, count), options)
                if rest:
                    _kept(rows, entry, bench.others(layouts(entry["servers"])[0]), options)
            if options.quick:
                print(report({name: {**entry, "rows": rows}}))
        return code


STUDY = _CommitPaths(
    description=__doc__,
    page="docs/benchmarks/commit-paths.md",
    report=lambda: report(read_results(RESULTS)),
)
