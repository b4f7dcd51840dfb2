"""Experiments of a study: parts that yield rows, each kept in the study's file of results.

The file is a CSV with a column that names the part, and a document about the run beside it; or one
document of JSON with a list of rows for each part. A row is written when it is there. Parts that
are not run keep their rows.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.harness import machine
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.result_files import (
    RESULTS,
    Row,
    read_json,
    read_rows,
    save_csv,
    save_json,
)
from benchmarks.harness.study import Study


@dataclass(frozen=True)
class Experiments:
    """Table of the experiments of a study.

    Attributes
    ----------
    name
        Of the file of results, without its ending.
    parts
        Name of each part -> function that takes the options and yields its rows.
    options
        Name of each option of the study -> its default, a value of the type that it takes.
    columns
        Columns of a CSV; none: the results are a document of JSON.
    packages
        Packages whose versions are kept.
    apart
        Whether each part keeps its own options and machine: in a document under "parts".
    folders
        Folders of data that the parts read (:mod:`benchmarks.harness.data_folders`).
    group
        Column of a CSV that names the part.
    key
        Columns that tell the rows of a CSV apart, where one is replaced alone. The option
        ``--resume`` then keeps what the file has: the parts find it in ``options.kept``, by these
        columns, and yield it again.
    about
        Whether a document about the run stands beside a CSV.
    good
        Whether a row is as it should be; the exit code is 1 when one is not.
    summary
        What is printed of all rows of a run at its end.
    """

    name: str
    parts: Mapping[str, Callable[[argparse.Namespace], Iterable[Mapping[str, Any]]]]
    options: Mapping[str, int | float | str]
    columns: tuple[str, ...] = ()
    packages: Sequence[str] = ("numpy",)
    apart: bool = False
    folders: Sequence[str] = ()
    group: str = "suite"
    key: Sequence[str] = ()
    about: bool = True
    good: Callable[[Mapping[str, Any]], bool] = lambda _row: True
    summary: Callable[[Sequence[Mapping[str, Any]]], str] | None = None

    @property
    def path(self) -> Path:
        """The file of results that the project keeps."""
        return self.file_in(RESULTS)

    def file_in(self, folder: Path) -> Path:
        """Return the file of results in a folder."""
        return folder / f"{self.name}.{'csv' if self.columns else 'json'}"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the study."""
        every = list(self.parts)
        parser.add_argument("--only", nargs="+", choices=every, default=every, metavar="PART",
                            help=f"parts to run: {', '.join(every)}")  # fmt: skip
        for name, default in self.options.items():
            parser.add_argument(
                f"--{name}", type=type(default), default=default, help=f"default {default!r}"
            )
        for name in self.folders:
            add_folder(parser, name)
        if self.key:
            parser.add_argument(
                "--resume", action="store_true", help="keep the rows that the file has"
            )
        add_folder(parser, "results", RESULTS)

    def run(self, options: argparse.Namespace) -> int:
        """Run the parts asked for; return the exit code. Ctrl-C keeps the rows so far."""
        began, found = time.process_time(), list[Mapping[str, Any]]()
        options.kept = {}
        if self.key and options.resume:
            old = read_rows(self.file_in(options.results))
            options.kept = {tuple(row[name] for name in self.key): row for row in old}
        run: dict[str, object] = {name: vars(options)[name] for name in self.options}
        run["machine"] = machine.describe(self.packages)
        for part in options.only:
            rows: list[Mapping[str, Any]] = []
            for row in self.parts[part](options):
                rows.append({self.group: part, **row} if self.columns else row)
                self._keep(part, rows, run, options.results, time.process_time() - began)
                print(f"\r{part}: {len(rows)} rows", end="", file=sys.stderr, flush=True)
            print(file=sys.stderr)
            found += rows
        if self.summary is not None:
            print(self.summary(found))
        return int(not all(map(self.good, found)))

    def _keep(
        self, part: str, rows: Sequence[Mapping[str, Any]], run: Row, folder: Path, cpu: float
    ) -> None:
        path = self.file_in(folder)
        about = path.with_suffix(".json")
        document = read_json(about)  # parts may be run side by side
        if self.columns:
            self._keep_table(part, rows, path)
        if self.columns and self.apart:
            document[part] = run
        elif self.apart:
            document = {"benchmark": self.name, **document}
            document.setdefault("parts", {})[part] = {**run, "rows": rows}
        else:
            document = {"benchmark": self.name, **document, **run, "cpu_s": round(cpu, 1)}
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

    def study(
        self,
        description: str | None,
        *,
        page: str = "",
        report: Callable[[], str | Mapping[str, str]] | None = None,
        draw: Callable[[Path], None] | None = None,
        page_module: str = "",
        series: Sequence[str] = (),
    ) -> Study:
        """Return the study of these experiments.

        Parameters
        ----------
        description
            Docstring of the module.
        page, report, draw
            Page of the documentation, and the functions for its tables and for its figures.
        page_module
            In place of the last two: a module, imported when the page is written, with the
            functions ``tables`` and ``draw_figures``.
        series
            Files that the parts write too.
        """
        files = {self.path.name, *series}
        if self.about:
            files.add(self.path.with_suffix(".json").name)
        if page_module:
            report = lambda: vars(import_module(page_module))["tables"]()  # noqa: E731 - imported late
            draw = lambda folder: vars(import_module(page_module))["draw_figures"](folder)  # noqa: E731 - imported late
        return Study(
            description, self.add_arguments, self.run, tuple(sorted(files)), page, report, draw
        )
