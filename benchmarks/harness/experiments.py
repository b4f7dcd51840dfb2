"""Experiments of a study: parts that yield rows, each kept in the study's file of results.

The file is a CSV with a column ``suite``, and a document about the run beside it; or one document
of JSON with a list of rows for each part. Parts that are not run keep their rows.
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
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import read_json, read_rows, save_csv, save_json
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
        Name of each option of the study -> its default, a number of the type that it takes.
    columns
        Columns of a CSV; none: the results are a document of JSON.
    packages
        Packages whose versions are kept.
    apart
        Whether each part of a document keeps its own options and machine, under "parts".
    folders
        Folders of data that the parts read (:mod:`benchmarks.harness.data_folders`).
    """

    name: str
    parts: Mapping[str, Callable[[argparse.Namespace], Iterable[Mapping[str, Any]]]]
    options: Mapping[str, int | float]
    columns: tuple[str, ...] = ()
    packages: Sequence[str] = ("numpy",)
    apart: bool = False
    folders: Sequence[str] = ()

    @property
    def path(self) -> Path:
        """The file of results that the project keeps."""
        ending = "csv" if self.columns else "json"
        return ROOT / "benchmarks" / "results" / f"{self.name}.{ending}"

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the study."""
        every = list(self.parts)
        parser.add_argument("--only", nargs="+", choices=every, default=every, help="parts to run")
        for name, default in self.options.items():
            parser.add_argument(
                f"--{name}", type=type(default), default=default, help=f"default {default}"
            )
        for name in self.folders:
            add_folder(parser, name)
        parser.add_argument("--output", type=Path, default=self.path, help="file of results")

    def run(self, options: argparse.Namespace) -> int:
        """Run the parts asked for, and keep each when it ends; Ctrl-C keeps the rows so far."""
        began, code = time.process_time(), 0
        for part in options.only:
            rows: list[Mapping[str, Any]] = []
            try:
                for row in self.parts[part](options):
                    rows.append(row)
                    print(f"\r{part}: {len(rows)} rows", end="", file=sys.stderr)
                print(file=sys.stderr)
            except KeyboardInterrupt:
                print("\nstopped; the rows so far are kept", file=sys.stderr)
                code = 130
            self._keep(part, rows, options, time.process_time() - began)
            if code:
                break
        return code

    def _keep(
        self, part: str, rows: Sequence[Mapping[str, Any]], options: argparse.Namespace, cpu: float
    ) -> None:
        path: Path = options.output
        about = path.with_suffix(".json")
        document = {"benchmark": self.name, **read_json(about)}  # parts may be run side by side
        run: dict[str, object] = {name: vars(options)[name] for name in self.options}
        run["machine"] = machine.describe(self.packages)
        if self.apart:
            document.setdefault("parts", {})[part] = {**run, "rows": rows}
        else:
            document |= {**run, "cpu_s": round(cpu, 1)}
        if self.columns:
            kept = [row for row in read_rows(path) if row["suite"] != part]
            every = [*kept, *({"suite": part, **row} for row in rows)]
            save_csv(path, self.columns, ([row[name] for name in self.columns] for row in every))
        elif not self.apart:
            document[part] = rows
        save_json(about, document)

    def study(
        self,
        description: str | None,
        *,
        page: str = "",
        report: Callable[[], Mapping[str, str]] | None = None,
        page_module: str = "",
        series: Sequence[str] = (),
    ) -> Study:
        """Return the study of these experiments.

        Parameters
        ----------
        description
            Docstring of the module.
        page, report
            Page of the documentation, and what returns its tables.
        page_module
            In place of `report`: a module, imported when the page is written, with the functions
            ``tables`` and ``draw_figures``.
        series
            Files that the parts write too.
        """
        files = {self.path.name, self.path.with_suffix(".json").name, *series}
        return Study(
            description,
            self.add_arguments,
            self.run,
            results=tuple(sorted(files)),
            page=page,
            report=(lambda: vars(import_module(page_module))["tables"]())
            if page_module
            else report,
            draw=(lambda folder: vars(import_module(page_module))["draw_figures"](folder))
            if page_module
            else None,
        )
