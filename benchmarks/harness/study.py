"""The table of studies, and what a study declares: its options, its run, the files that it writes.

A study is a module of this package with a constant ``STUDY``. It is imported when it is run.
"""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from benchmarks.harness.machine import ROOT

__all__ = ["BAD", "FOUND", "INTERRUPTED", "MODULES", "WORSE", "Study", "load_study", "summary"]

FOUND, BAD, WORSE, INTERRUPTED = 0, 1, 2, 130
"""Exit codes: done; bad input, or a file that cannot be written; `diff` found something worse,
a suite a defect; interrupted. 141 as in `placement`: the reader of the output went away. A study
has its own reasons for 1, which its help gives."""

MODULES = MappingProxyType(
    {
        "contingency": "benchmarks.contingency.study",
        "contingency.losses": "benchmarks.contingency.losses",
        "contingency.methods": "benchmarks.contingency.methods",
        "exact.hard": "benchmarks.exact.hard",
        "exact.kernels": "benchmarks.exact.kernels",
        "exact.many_clients": "benchmarks.exact.many_clients",
        "exact.speed": "benchmarks.exact.speed",
        "exact.sweep": "benchmarks.exact.sweep",
        "foundation": "benchmarks.foundation.study",
        "local_search": "benchmarks.local_search.study",
        "local_search.large": "benchmarks.local_search.large",
        "milp.strength": "benchmarks.milp.strength",
        "online.dynamic": "benchmarks.online.dynamic.study",
        "online.reads": "benchmarks.online.reads.study",
        "online.selection": "benchmarks.online.selection.study",
        "online.selection.ladder": "benchmarks.online.selection.ladder",
        "overtime.configuration_moves": "benchmarks.overtime.configuration_moves",
        "overtime.leader_moves": "benchmarks.overtime.leader_moves",
        "overtime.replay": "benchmarks.overtime.replay",
        "paper_tier3": "benchmarks.paper_tier3.study",
        "quorumstore.speed": "benchmarks.quorumstore.speed",
        "rtt_model": "benchmarks.rtt_model.study",
        "tail": "benchmarks.tail.study",
    }
)
"""Name of a study -> its module."""


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
    pages
        Pages of the documentation that it writes, from the root of the checkout.
    """

    description: str | None
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]
    results: tuple[str, ...] = ()
    pages: tuple[str, ...] = ()


def load_study(name: str) -> Study:
    """Import a study and return what it declares.

    Parameters
    ----------
    name
        A key of :data:`MODULES`.
    """
    study = importlib.import_module(MODULES[name]).STUDY
    assert isinstance(study, Study)
    return study


def summary(name: str) -> str:
    """Return the first line of a study's docstring, read from the file without an import.

    Parameters
    ----------
    name
        A key of :data:`MODULES`.
    """
    path = ROOT / Path(*MODULES[name].split(".")).with_suffix(".py")
    with path.open(encoding="utf-8") as file:
        return file.readline().strip().strip('"')
