"""Table of studies, and the declaration of a study: its options, its run, its results, its report.

A study is a constant of a module of this package, ``STUDY`` where the table says no other name. The
module is imported when the study is run.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from benchmarks.harness.doc_pages import with_tables
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import save_text

FOUND, BAD, WORSE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: done; bad input, or a file that cannot be written; `diff` found something worse,
a suite a defect; interrupted. 141 as in `placement`: the reader of the output went away. A study
has its own reasons for 1, which its help gives."""

MODULES = MappingProxyType(
    {
        "contingency": "benchmarks.contingency",
        "commit_paths": "benchmarks.commit_paths.study",
        "exact.leader_waits": "benchmarks.exact.variants:LEADER_WAITS",
        "exact.measures": "benchmarks.exact.measures",
        "exact.rules": "benchmarks.exact.variants:RULES",
        "exact.scale": "benchmarks.exact.scale",
        "exact.set_waits": "benchmarks.exact.variants:SET_WAITS",
        "exact.speed": "benchmarks.exact.speed",
        "explore": "benchmarks.explore.study",
        "fleet": "benchmarks.fleet",
        "milp.strength": "benchmarks.milp_strength",
        "online.dynamic": "benchmarks.online.dynamic:DYNAMIC_STUDY",
        "online.reads": "benchmarks.online.reads:READS_STUDY",
        "online.reads.claims": "benchmarks.online.reads:CLAIMS_STUDY",
        "online.selection": "benchmarks.online.selection:SELECTION_STUDY",
        "online.selection.closed_loop": "benchmarks.online.selection:CLOSED_STUDY",
        "online.selection.ladder": "benchmarks.online.selection:LADDER_STUDY",
        "online.selection.wide_area": "benchmarks.online.selection:WIDE_STUDY",
        "overtime.leader_moves": "benchmarks.overtime.leader_moves",
        "overtime.leader_shares": "benchmarks.overtime.leader_shares",
        "overtime.replay": "benchmarks.overtime.replay",
        "paper_tier3": "benchmarks.paper_tier3",
        "quorumstore.speed": "benchmarks.quorumstore",
        "rtt_model": "benchmarks.rtt_model",
        "tail": "benchmarks.tail",
    }
)
"""Name of a study -> its module, and the name of its constant after a colon."""


@dataclass(frozen=True, slots=True)
class Study:
    """Study that ``python -m benchmarks run NAME`` runs.

    Attributes
    ----------
    description
        The docstring of the module: the help of the study. Its first line is the summary.
    add_arguments
        Adds the options of the study to a parser.
    run
        Takes the options and returns the exit code.
    results
        Files of ``benchmarks/results`` that a run writes and the project keeps.
    page
        Page of the documentation that shows the results, from the root of the checkout.
    report
        Returns that page, or its tables by name (:func:`benchmarks.harness.doc_pages.tables_of`),
        from the files that the project keeps. None: no page is generated.
    draw
        Draws the figures of the page into a folder from the same files, where that needs no
        measurement.
    """

    description: str | None
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    results: tuple[str, ...] = ()
    page: str = ""
    report: Callable[[], str | Mapping[str, str]] | None = None
    draw: Callable[[Path], None] | None = None

    def add_options(self, parser: argparse.ArgumentParser) -> None:
        """Add the options of the study and of its report."""
        self.add_arguments(parser)
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
        if isinstance(found, str):
            print(found)
        else:
            print("\n\n".join(f"{name}\n\n{text.strip()}" for name, text in found.items()))
        if asked.write_docs:
            save_text(ROOT / self.page, self.new_page())
            if self.draw is not None:
                self.draw(ROOT / "docs" / "figures")
        return FOUND

    def new_page(self) -> str:
        """Return the page with the report of the results that the project keeps."""
        assert self.report is not None
        found = self.report()
        if isinstance(found, str):
            return found
        return with_tables((ROOT / self.page).read_text(encoding="utf-8"), found)


def load_study(name: str) -> Study:
    """Import a study and return its declaration.

    Parameters
    ----------
    name
        A key of :data:`MODULES`.
    """
    module, _, constant = MODULES[name].partition(":")
    study = vars(importlib.import_module(module))[constant or "STUDY"]
    assert isinstance(study, Study)
    return study


def summary(name: str) -> str:
    """Return the first line of a study's docstring, read from the file without an import.

    Parameters
    ----------
    name
        A key of :data:`MODULES`.
    """
    path = ROOT / Path(*MODULES[name].partition(":")[0].split(".")).with_suffix(".py")
    with path.open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')
