"""Tuning constants of the searches: time and result with each of them changed.

    python -m benchmarks run tuning                    a quarter of an hour of CPU time
    python -m benchmarks run tuning --sets limits fleet

Each question of a set (:mod:`benchmarks.tuning.question_sets`) is answered with the constants as
they are, and with one constant at a time at other values, in turns. The least CPU time of
`--repeat` turns counts, divided by the time with the constants as they are. "Better" and "worse"
count the questions whose value differs by more than a relative 1e-9; "largest rise" is the largest
relative increase of the value. The value of a search with proof differs by its allowed gap at most.

Writes results/tuning.csv in the folder of the benchmarks, one row per constant and value; a set
that is not asked for keeps its rows.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import describe, sentence
from benchmarks.harness.result_files import add_results, read_rows, save_csv
from benchmarks.harness.study import Study
from benchmarks.tuning.question_sets import QUESTION_SETS, QuestionSet

__all__ = ["STUDY", "measure"]

HEADS = (
    "set", "constant", "value", "questions", "together s", "ratio together", "ratio median",
    "ratio largest", "better", "worse", "largest rise %", "machine",
)  # fmt: skip
_EQUAL = 1e-9

Setting = tuple[str, object]
_AS_THEY_ARE: Setting = ("", "")


@contextmanager
def _changed(one: QuestionSet, setting: Setting) -> Iterator[None]:
    """Answer with another value of a constant."""
    if setting == _AS_THEY_ARE:
        yield
        return
    with patch.object(one.table, *setting):
        yield


def measure(name: str, repeat: int) -> list[list[str]]:
    """Return the rows of a question set, without the machine."""
    one = QUESTION_SETS[name]
    settings: list[Setting] = [
        _AS_THEY_ARE,
        *((key, value) for key, values in one.values.items() for value in values),
    ]
    found: dict[Setting, list[tuple[float, float]]] = {setting: [] for setting in settings}
    for place, question in enumerate(one.questions()):
        if not place:
            question.answer()  # imports
        least = dict.fromkeys(settings, math.inf)
        values = {}
        for setting in settings * repeat:
            with _changed(one, setting):
                began = time.process_time()
                values[setting] = question.answer()
                least[setting] = min(least[setting], time.process_time() - began)
        for setting in settings:
            found[setting].append((least[setting], values[setting]))
        print(name, question.name, f"{least[_AS_THEY_ARE]:.3f} s", file=sys.stderr, flush=True)
    plain = found[_AS_THEY_ARE]
    return [_row(name, setting, found[setting], plain) for setting in settings]


def _row(
    name: str, setting: Setting, each: list[tuple[float, float]], plain: list[tuple[float, float]]
) -> list[str]:
    key, value = setting
    ratios = [seconds / unit for (seconds, _), (unit, _) in zip(each, plain, strict=True)]
    rises = [value / best - 1 for (_, value), (_, best) in zip(each, plain, strict=True)]
    together, unit = sum(seconds for seconds, _ in each), sum(seconds for seconds, _ in plain)
    return [
        name, key or "as they are", str(value), str(len(each)), f"{together:.2f}",
        f"{together / unit:.2f}", f"{statistics.median(ratios):.2f}", f"{max(ratios):.1f}",
        str(sum(rise < -_EQUAL for rise in rises)), str(sum(rise > _EQUAL for rise in rises)),
        f"{100 * max(0.0, *rises):.3f}",
    ]  # fmt: skip


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", choices=QUESTION_SETS, default=list(QUESTION_SETS))
    parser.add_argument("--repeat", type=int, default=2)
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark; exit code 0."""
    path = asked.results / "tuning.csv"
    for name in asked.sets:
        machine = sentence(describe(("numpy",)))
        rows = [[*row, machine] for row in measure(name, asked.repeat)]
        print(markdown_table(HEADS[:-1], [tuple(row[:-1]) for row in rows]), flush=True)
        rows += [[*row.values()] for row in read_rows(path) if row["set"] != name]
        order = list(QUESTION_SETS)
        rows.sort(key=lambda row: order.index(row[0]))
        save_csv(path, HEADS, rows)
    return 0


STUDY = Study(__doc__, _add_arguments, _run_study, results=("tuning.csv",))
