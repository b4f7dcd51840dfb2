"""Table of studies, and the declaration of a study: its options, its run, its results, its report.

A study is a constant of a module of this package, ``STUDY`` where the table says no other name. The
module is imported when the study is run.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

from benchmarks.harness import machine
from benchmarks.harness.machine import ROOT
from benchmarks.harness.results import (
    RESULTS,
    Row,
    add_folder,
    alone_in,
    read_json,
    read_rows,
    save_csv,
    save_json,
    save_text,
    with_tables,
)
from placement.cli.output import ProgressLine
from placement.errors import UnsupportedError

FOUND, BAD, WORSE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: done; bad input, or a file that cannot be written; `diff` found something worse,
a suite a defect; interrupted. 141 as in `placement`: the reader of the output went away. A study
has its own reasons for 1, which its help gives."""

MODULES = MappingProxyType(
    {
        "contingency": "benchmarks.contingency",
        "commit_paths": "benchmarks.commit_paths.study",
        "exact.leader_waits": "benchmarks.exact.variants:LEADER_WAITS",
        "exact.measures": "benchmarks.exact.variants:MEASURES",
        "exact.rules": "benchmarks.exact.variants:RULES",
        "exact.scale": "benchmarks.exact.scale",
        "exact.set_waits": "benchmarks.exact.variants:SET_WAITS",
        "exact.speed": "benchmarks.exact.speed",
        "explore": "benchmarks.explore.study",
        "fleet": "benchmarks.fleet",
        "milp.strength": "benchmarks.milp_strength",
        "online.dynamic": "benchmarks.online.dynamic",
        "online.reads": "benchmarks.online.reads:SLIDES",
        "online.reads.claims": "benchmarks.online.reads:CLAIMS",
        "online.selection": "benchmarks.online.selection:PUBLISHED",
        "online.selection.closed_loop": "benchmarks.online.selection:CLOSED",
        "online.selection.ladder": "benchmarks.online.selection:BOUNDS",
        "online.selection.wide_area": "benchmarks.online.selection:WIDE",
        "overtime.leader_moves": "benchmarks.overtime.leader_moves",
        "overtime.leader_shares": "benchmarks.overtime.replay:SHARES",
        "overtime.replay": "benchmarks.overtime.replay",
        "paper_tier3": "benchmarks.paper_tier3",
        "paper_tier3.replicas": "benchmarks.paper_tier3:REPLICAS",
        "quorumstore.speed": "benchmarks.quorumstore",
        "rtt_model": "benchmarks.rtt_model",
        "tail": "benchmarks.tail",
    }
)
"""Name of a study -> its module, and the name of its constant after a colon."""


@dataclass(frozen=True)
class Study:
    """Study that ``python -m benchmarks run NAME`` runs: a table of experiments.

    Each part yields its rows from the options, which have defaults of the types that they take; a
    tuple takes several values. With `columns` the results are a CSV, beside which stands a document
    `about` the run; without, they are a document of JSON. Where parts are kept `apart`, each has
    its options, machine and `facts` of its own. The column `group` names the part, and those of
    `key` tell the rows of a CSV apart, where one is replaced alone: the parts find what
    ``--resume`` keeps in ``options.kept``, by these columns, and yield it again. The exit code is 1
    when a row is not `good`. Rows are written as they come, where they are many and quick after a
    `pause` in seconds. Parts write the `series` too.

    The help is the docstring of the module, which begins with a summary. The page of the
    documentation, from the root of the checkout, has tables that `report` returns by name
    (:func:`benchmarks.harness.results.tables_of`), and figures that `draw` draws into a folder,
    both from the results that the project keeps.
    """

    name: str
    parts: Mapping[str, Callable[[argparse.Namespace], Iterable[Mapping[str, Any]]]]
    options: Mapping[str, Any]
    columns: tuple[str, ...] = ()
    packages: Sequence[str] = ("numpy",)
    apart: bool = False
    folders: Sequence[str] = ()
    group: str = "suite"
    key: Sequence[str] = ()
    about: bool = True
    pause: float = 0.0
    good: Callable[[Mapping[str, Any]], bool] = lambda _row: True
    summary: Callable[[Sequence[Mapping[str, Any]]], str] | None = None
    series: Sequence[str] = ()
    facts: Callable[[str], Mapping[str, object]] = lambda _part: {}
    description: str | None = None
    page: str = ""
    report: Callable[[], Mapping[str, str]] | None = None
    draw: Callable[[Path], None] | None = None

    @property
    def path(self) -> Path:
        """The file of results that the project keeps."""
        return self.file_in(RESULTS)

    @property
    def results(self) -> Sequence[str]:
        """Files of ``benchmarks/results`` that a run writes and the project keeps."""
        about = [self.path.with_suffix(".json").name] if self.about else []
        return sorted({self.path.name, *about, *self.series})

    def file_in(self, folder: Path) -> Path:
        """Return the file of results in a folder."""
        return folder / f"{self.name}.{'csv' if self.columns else 'json'}"

    def rows_in(self, folder: Path) -> Sequence[Mapping[str, Any]]:
        """Return the rows of the table of results in a folder."""
        return read_rows(self.file_in(folder))

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the study and of its report."""
        every = list(self.parts)
        also = [f"--{self.group}"] if self.columns else []
        if "only" not in self.options:
            parser.add_argument(
                "--only", *also, nargs="+", choices=every, default=every, dest="only",
                metavar="PART", help=f"parts to run: {', '.join(every)}",
            )  # fmt: skip
        for name, default in self.options.items():
            parser.add_argument(f"--{name}", **_option(default))
        for name in self.folders:
            add_folder(parser, name)
        if self.key:
            parser.add_argument(
                "--resume", action="store_true", help="keep the rows that the file has"
            )
        add_folder(parser, "results", RESULTS)
        if self.report is not None:
            parser.add_argument(
                "--show", action="store_true", help="measure nothing, print the report"
            )
            parser.add_argument(
                "--write-docs",
                action="store_true",
                help=f"measure nothing, print the report and write it into {self.page}",
            )

    def run_or_report(self, asked: argparse.Namespace) -> int:
        """Measure, or report on the results that the project keeps; return the exit code."""
        if self.report is None or not (asked.show or asked.write_docs):
            return self.run(asked)
        found = self.report()
        print("\n\n".join(f"{name}\n\n{text.strip()}" for name, text in found.items()))
        if asked.write_docs:
            save_text(ROOT / self.page, self.new_page())
            if self.draw is not None:
                self.draw(ROOT / "docs" / "figures")
        return FOUND

    def new_page(self) -> str:
        """Return the page with the report of the results that the project keeps."""
        assert self.report is not None
        return with_tables((ROOT / self.page).read_text(encoding="utf-8"), self.report())

    def run(self, options: argparse.Namespace) -> int:
        """Run the parts asked for; return the exit code. Ctrl-C keeps the rows so far.

        What this machine cannot run is told, and the other parts go on.
        """
        began, found = time.process_time(), list[Mapping[str, Any]]()
        run: dict[str, object] = {}
        for name, default in self.options.items():
            run[name] = default if vars(options)[name] is None else vars(options)[name]
        vars(options).update(run)
        options.kept = {}
        if self.key and options.resume:
            old = self.rows_in(options.results)
            options.kept = {tuple(row[name] for name in self.key): row for row in old}
        run["machine"] = machine.describe(self.packages)
        missing, line = False, ProgressLine(sys.stderr, in_ms=float)
        for part in self.parts if "only" in self.options else options.only:
            rows: list[Mapping[str, Any]] = []
            written, due = 0, 0.0
            try:
                about = {**run, **self.facts(part)}
                try:
                    for row in self.parts[part](options):
                        rows.append({self.group: part, **row} if self.columns else row)
                        line.count(f"{part}: {len(rows)} rows", len(rows), 0)
                        if time.monotonic() >= due:
                            self._add(part, rows, about, options.results, began)
                            written, due = len(rows), time.monotonic() + self.pause
                finally:
                    if written < len(rows):
                        self._add(part, rows, about, options.results, began)
                told = f"{len(rows)} rows"
            except UnsupportedError as error:
                told, missing = f"not measured: {error}", True
            line.close()
            print(f"{part}: {told}", file=sys.stderr)
            found += rows
        if self.summary is not None:
            print(self.summary(found))
        return int(missing or not all(map(self.good, found)))

    def _add(
        self, part: str, rows: Sequence[Mapping[str, Any]], run: Row, folder: Path, began: float
    ) -> None:
        with alone_in(folder):  # parts, and runs of one suite, may be run side by side
            self._keep(part, rows, run, folder, began)

    def _keep(
        self, part: str, rows: Sequence[Mapping[str, Any]], run: Row, folder: Path, began: float
    ) -> None:
        path = self.file_in(folder)
        about = path.with_suffix(".json")
        document = read_json(about)
        if self.columns:
            self._keep_table(part, rows, path)
        if self.columns and self.apart:
            document[part] = run
        elif self.apart:
            document = {"benchmark": self.name, **document}
            document.setdefault("parts", {})[part] = {**run, "rows": rows}
        else:
            document = {
                "benchmark": self.name,
                **document,
                **run,
                "cpu_s": round(time.process_time() - began, 1),
            }
            document |= {} if self.columns else {part: rows}
        if self.about:
            save_json(about, document)

    def _keep_table(self, part: str, rows: Sequence[Mapping[str, Any]], path: Path) -> None:
        """Write rows in place of those of the part, or of those with the same key."""
        new = {tuple(str(row[name]) for name in self.key) for row in rows}
        kept = [row for row in read_rows(path)
                if row[self.group] != part
                or (self.key and tuple(row[name] for name in self.key) not in new)]  # fmt: skip
        order = list(self.parts)
        every = sorted(
            (row for row in [*kept, *rows] if row[self.group] in order),
            key=lambda row: order.index(row[self.group]),
        )
        save_csv(path, self.columns, ([row[name] for name in self.columns] for row in every))


def _option(default: Any) -> dict[str, Any]:
    """Return how an option is read that has a value without being given."""
    if default is False:
        return {"action": "store_true"}
    if isinstance(default, tuple):
        kind, shown = type(default[0]) if default else str, " ".join(map(str, default)) or "all"
        return {"nargs": "+", "action": "extend", "type": kind, "help": f"default {shown}"}
    return {"type": type(default), "default": default, "help": f"default {default!r}"}


def load_study(name: str) -> Study:
    """Import a study of :data:`MODULES` and return its declaration."""
    module, _, constant = MODULES[name].partition(":")
    study = vars(importlib.import_module(module))[constant or "STUDY"]
    assert isinstance(study, Study)
    return study


def summary(name: str) -> str:
    """Return the first line of a study's docstring, read from the file without an import."""
    path = ROOT / Path(*MODULES[name].partition(":")[0].split(".")).with_suffix(".py")
    with path.open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')
