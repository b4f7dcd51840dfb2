"""Tuning constants of the searches: time and result with each of them changed.

    python -m benchmarks run tuning                    a quarter of an hour of CPU time
    python -m benchmarks run tuning --sets limits fleet

Each question of a set (:mod:`benchmarks.tuning.study`) is answered with the constants as
they are, and with one constant at a time at other values, in turns. The least CPU time of
`--repeat` turns counts, divided by the time with the constants as they are. "Better" and "worse"
count the questions whose value differs by more than a relative 1e-9; "largest rise" is the largest
relative increase of the value. The value of a search with proof differs by its allowed gap at most.

Writes results/tuning.csv in the folder of the benchmarks, one row per constant and value; a set
that is not asked for keeps its rows.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from unittest.mock import patch

import numpy as np

import placement
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import describe, sentence
from benchmarks.harness.result_files import add_results, read_rows, save_csv
from benchmarks.harness.study import Study
from formulations.exact import tuning as exact_tuning
from formulations.fleet import FleetSearch, solve_fleet
from formulations.fleet import tuning as fleet_tuning
from heuristics import tuning as heuristic_tuning
from placement import Moves, Prices, Problem
from placement.fleet import FleetPlan, FleetProblem, synthetic_fleet
from placement.overtime.replay.generated_fleets import client_ground
from placement.tail import Distributions, Percentile
from placement.workloads import MIXES

__all__ = ["QUESTION_SETS", "STUDY", "QuestionSet", "TunedQuestion", "measure"]


# --- question sets: constants with other values, and questions ----------------------------------

_SHARE = 0.2
"""Of the way from the cheapest replicas to the plan without a budget."""


@dataclass(frozen=True)
class TunedQuestion:
    """Question, and a function that returns the value of an answer, which is minimised."""

    name: str
    answer: Callable[[], float]


@dataclass(frozen=True)
class QuestionSet:
    """Questions for some constants of a table.

    Attributes
    ----------
    table
        Module of constants.
    values
        Constant -> other values.
    questions
        Returns the questions.
    """

    table: ModuleType
    values: Mapping[str, tuple[object, ...]]
    questions: Callable[[], Iterator[TunedQuestion]]


def _value(problem: Problem, method: str) -> float:
    settings = {"certificate": False} if method == "exact" else None
    return placement.solve(problem, method, settings=settings).objective


def _limits() -> Iterator[TunedQuestion]:
    """Yield questions with a budget, at most three changes, or both; prices are log-normal."""
    mixes = list(MIXES)
    for name in ("world27", "azure", "aws", "gcp"):
        sites = len(placement.load(name).sites)
        rng = np.random.default_rng([1, sites])
        prices = Prices(storage=np.round(100 * rng.lognormal(0, 0.5, sites)))
        for mix, (few, many, voters) in itertools.product(
            mixes[::3], ((5, 5, 3), (7, 7, 5), (3, 7, 3))
        ):
            instance = placement.load(name, mix=mix).replace(prices=prices)
            free = Problem(instance, replicas=range(few, many + 1), voters=voters)
            other = placement.load(name, mix=mixes[(mixes.index(mix) + 1) % len(mixes)])
            now = placement.solve(free.replace(instance=other)).configuration
            cost = placement.solve(free).cost
            assert cost is not None
            least = float(np.sort(prices.storage)[:few].sum())
            budget = least + _SHARE * (cost - least)
            moves = free.replace(current=now, moves=Moves(at_most=3))
            for kind, asked in (
                ("budget", free.replace(budget=budget)),
                ("moves", moves),
                ("both", moves.replace(budget=max(budget, cost))),
            ):
                about = f"{name} {mix} {few}..{many}/{voters} {kind}"
                yield TunedQuestion(about, partial(_value, asked, "exact"))


def _local_search() -> Iterator[TunedQuestion]:
    """Yield questions for ``local-search``: the bundled data sets, with and without ``survive``."""
    for name, mix in itertools.product(("world27", "azure"), list(MIXES)):
        instance = placement.load(name, mix=mix)
        for (replicas, voters), level in itertools.product(((5, 3), (9, 5)), (None, "country")):
            asked = Problem(instance, replicas=replicas, voters=voters, survive=level)
            about = f"{name} {mix} {replicas}/{voters} {level or 'no rules'}"
            yield TunedQuestion(about, partial(_value, asked, "local-search"))


def _percentiles() -> Iterator[TunedQuestion]:
    """Yield questions for ``local-search`` that minimise the 99th percentile on ``world27``."""
    for mix, spread in itertools.product(("social", "oltp", "ledger"), (0.1, 0.3)):
        instance = placement.load("world27", mix=mix)
        given = Distributions.parametric(instance, "lognormal", variation=spread, width=4, bins=400)
        asked = Problem(instance, replicas=5, voters=3, objective=Percentile(99, given))
        yield TunedQuestion(f"world27 {mix} {spread}", partial(_value, asked, "local-search"))


def _fleet_value(fleet: FleetProblem) -> float:
    plan = solve_fleet(fleet, FleetSearch(gap=5e-3))
    return plan.value if isinstance(plan, FleetPlan) else float("inf")


def _fleets() -> Iterator[TunedQuestion]:
    """Yield fleets of 40 databases on ``world27``, to a gap of 0.5 %."""
    instance = placement.load("world27")
    ground = client_ground(instance)
    for seed, slack in ((0, 1.5), (1, 1.8)):
        fleet = synthetic_fleet(
            instance, ground.clients, 40, seed=seed, slack=slack, owner=ground.owner
        )
        yield TunedQuestion(
            f"40 databases, slack {slack}, seed {seed}", partial(_fleet_value, fleet)
        )


QUESTION_SETS = {
    "limits": QuestionSet(
        exact_tuning,
        {
            "LIMIT_SCALE": (1.0, 2.0, 10.0, 20.0),
            "LIMIT_LEADERS": (1, 2, 8, 16),
            "LIMIT_DESCENT_STEPS": (1, 5, 100),
            "AFFORDABLE_SWAPS": (0, 5, 200),
        },
        _limits,
    ),
    "local-search": QuestionSet(
        heuristic_tuning,
        {
            "GROWN_LEADERS": (2, 8),
            "GROWN_COPIES": (4, 16),
            "GROWN_AMONG": (3, 12),
            "SHAKES": ((3,), (8,)),
            "INSERTION_PAIRS": (1, 16),
            "EXACT_MOVES": (2, 32),
        },
        _local_search,
    ),
    "percentiles": QuestionSet(
        heuristic_tuning,
        {
            "LATE_LEADERS": (2, 8),
            "LATE_COPIES": (2, 8),
            "LATE_SHAKES": ((3,), (8,)),
            "LATE_ROLES": (200, 20_000),
        },
        _percentiles,
    ),
    "fleet": QuestionSet(
        fleet_tuning,
        {
            "SMOOTHING": (0.0, 0.8),
            "SHARE_OF_GAP": (0.1, 0.5),
            "PRICE_STEPS": (1, 16),
            "ROUNDED_COLUMNS": (6, 24),
            "ROUNDING_NODES": (5, 80),
            "PRICINGS": (1, 8),
            "POLISHES": (2, 16),
        },
        _fleets,
    ),
}
"""Question sets by name."""

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
