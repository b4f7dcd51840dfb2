"""Parts of a study of a real system: each is measured alone, and keeps its rows, time and machine.

The document of a system is part -> {"rows", "seconds", "machine", "server"}.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from benchmarks.harness import machine
from benchmarks.harness.machine import ROOT, sentence
from benchmarks.harness.result_files import Row, read_json, save_json
from benchmarks.harness.study import Study

__all__ = ["Parts", "live_study", "runs_text"]

Parts = Mapping[str, Callable[[bool], Iterator[Row]]]
"""Part -> its rows, in a short form or in full."""


def live_study(
    description: str | None,
    results: str,
    parts: Parts,
    version: Callable[[], str],
    report: Callable[[Mapping[str, Any]], Mapping[str, str]],
    draw: Callable[[Mapping[str, Any]], None] | None = None,
) -> Study:
    """Return the study of a real system, with options ``--only`` and ``--quick``.

    Parameters
    ----------
    description
        The docstring of its module.
    results
        Name of its file of results.
    parts, version
        As for :func:`_run_parts`.
    report, draw
        Tables and figures of the page, from the document of the results.
    """
    path = ROOT / "benchmarks/results" / results

    def add_arguments(parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            "--only", nargs="+", choices=parts, default=list(parts), help="parts that are measured"
        )
        parser.add_argument("--quick", action="store_true", help="small, and writes nothing")

    return Study(
        description,
        add_arguments,
        lambda asked: _run_parts(parts, asked, path, version),
        results=(results,),
        page="docs/benchmarks/live.md",
        report=lambda: report(read_json(path)),
        draw=None if draw is None else lambda: draw(read_json(path)),
    )


def _run_parts(
    parts: Parts, asked: argparse.Namespace, results: Path, version: Callable[[], str]
) -> int:
    """Measure the parts that are asked for, and keep each when it is there; return the exit code.

    Parameters
    ----------
    parts
        All parts of the study.
    asked
        With ``only`` and ``quick``; the short form writes nothing.
    results
        The document; the parts that are not measured keep what they had.
    version
        Returns the versions of the server.
    """
    for part in asked.only:
        started = time.monotonic()
        rows = []
        for row in parts[part](asked.quick):
            rows.append(row)
            print(f"{part}: {row}")
        seconds = time.monotonic() - started
        print(f"{part}: {seconds:.0f} s", file=sys.stderr)
        if not asked.quick:
            document = read_json(results)  # another run may have measured another part meanwhile
            document[part] = {
                "rows": rows,
                "seconds": round(seconds),
                "machine": machine.describe(["numpy"]),
                "server": version(),
            }
            save_json(results, document)
    return 0


def runs_text(document: Mapping[str, Any]) -> str:
    """Return a line per part: how long it took, on which server and machine."""
    return "\n".join(
        f"- {part} ({run['seconds']} s): {run['server']}; {sentence(run['machine'])}"
        for part, run in document.items()
    )
