"""Constants of the search for plans within limits: time of ``exact`` with each of them changed.

    python -m benchmarks run exact.limits              five minutes of CPU time

The constants are those of the part "limits" of :mod:`formulations.exact.tuning`. The questions have
a budget, a limit on the changes to a present configuration, or both, on every bundled data set with
all operation mixes: 5 replicas of which 3 vote, 7 of which 5 vote, and 3 to 7 of which 3 vote. Prices
per replica are log-normal (seeded). The budget is a fifth of the way from the cost of the cheapest
replicas to the cost of the plan without a budget. The present configuration is the best plan of the
next operation mix, and at most three changes are allowed.

Every question is solved with the constants as they are, and with one constant at a time at the
values of `VALUES`, in turns. The least CPU time of `--repeat` turns counts, without the certificate.
Each time is divided by the time with the constants as they are.

Writes results/exact_limits.csv in the folder of the benchmarks, one row per constant and value. Exit
code 1 when a question is not proven, or two values of a constant differ in the objective.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

import placement
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import describe, sentence
from benchmarks.harness.result_files import add_results, save_csv
from benchmarks.harness.study import Study
from formulations.exact import tuning
from placement import Moves, Prices, Problem
from placement.workloads import MIXES

__all__ = ["STUDY", "VALUES", "questions"]

SETS = ("world27", "azure", "aws", "gcp")
COUNTS = ((5, 5, 3), (7, 7, 5), (3, 7, 3))
"""Least and largest number of replicas, and voters."""

VALUES = {
    "LIMIT_SCALE": (1.0, 2.0, 10.0, 20.0),
    "LIMIT_LEADERS": (1, 2, 8, 16),
    "LIMIT_DESCENT_STEPS": (1, 5, 100),
    "AFFORDABLE_SWAPS": (0, 5, 200),
}
"""Other values of each constant."""

HEADS = (
    "constant", "value", "questions", "proven", "together s", "ratio together", "ratio median",
    "ratio largest", "nodes", "machine",
)  # fmt: skip
_SHARE = 0.2  # of the way from the cheapest replicas to the plan without a budget
_CHANGES = 3


def questions(name: str) -> Iterator[tuple[str, Problem]]:
    """Yield the questions of a data set with their names."""
    plain = placement.load(name)
    rng = np.random.default_rng([1, len(plain.sites)])
    prices = Prices(storage=np.round(100 * rng.lognormal(0, 0.5, len(plain.sites))))
    mixes = list(MIXES)
    for mix, (few, many, voters) in itertools.product(mixes, COUNTS):
        instance = placement.load(name, mix=mix).replace(prices=prices)
        replicas = range(few, many + 1)
        free = Problem(instance, replicas=replicas, voters=voters)
        other = placement.load(name, mix=mixes[(mixes.index(mix) + 1) % len(mixes)])
        now = placement.solve(Problem(other, replicas=replicas, voters=voters)).configuration
        least = float(np.sort(prices.storage)[:few].sum())
        cost = placement.solve(free).cost
        assert cost is not None
        budget = least + _SHARE * (cost - least)
        moves = Moves(at_most=_CHANGES)
        about = f"{name} {mix} {few}..{many}/{voters}"
        yield f"{about} budget", free.replace(budget=budget)
        yield f"{about} moves", free.replace(current=now, moves=moves)
        yield f"{about} both", free.replace(budget=max(budget, cost), current=now, moves=moves)


@contextmanager
def _changed(constant: str, value: float) -> Iterator[None]:
    """Solve with another value of a constant; the name "" changes none."""
    if not constant:
        yield
        return
    kind = type(getattr(tuning, constant))
    with patch.object(tuning, constant, kind(value)):
        yield


def _measure(
    asked: Sequence[tuple[str, Problem]], repeat: int
) -> dict[tuple[str, float], list[tuple[float, placement.Plan]]]:
    """Return least CPU seconds and plan of each question, by constant and value; "" is no change."""
    settings = [("", 0.0), *((key, float(v)) for key, values in VALUES.items() for v in values)]
    found: dict[tuple[str, float], list[tuple[float, placement.Plan]]] = {s: [] for s in settings}
    for about, problem in asked:
        least = dict.fromkeys(settings, math.inf)
        plans = {}
        for key, value in settings * repeat:
            with _changed(key, value):
                began = time.process_time()
                plans[key, value] = placement.solve(problem, settings={"certificate": False})
                spent = time.process_time() - began
            least[key, value] = min(least[key, value], spent)
        for one in settings:
            found[one].append((least[one], plans[one]))
        print(about, f"{1e3 * least['', 0.0]:.1f} ms", file=sys.stderr, flush=True)
    return found


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--repeat", type=int, default=2)
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark."""
    chosen = [one for name in asked.sets for one in questions(name)]
    placement.solve(chosen[0][1])  # imports
    found = _measure(chosen, asked.repeat)
    plain = found["", 0.0]
    machine, rows, wrong = sentence(describe(("numpy",))), [], 0
    for (key, value), each in found.items():
        proven = sum(plan.status.value in ("optimal", "infeasible") for _, plan in each)
        wrong += len(each) - proven
        wrong += sum(
            not math.isclose(plan.objective, best.objective, rel_tol=1e-9)
            for (_, plan), (_, best) in zip(each, plain, strict=True)
            if best.found
        )
        ratios = [seconds / unit for (seconds, _), (unit, _) in zip(each, plain, strict=True)]
        together, unit = sum(s for s, _ in each), sum(s for s, _ in plain)
        nodes = sum(int(plan.stats.get("nodes", 0)) for _, plan in each)
        rows.append(
            (
                key or "as they are", f"{value:g}" if key else "", len(each), proven,
                f"{together:.2f}", f"{together / unit:.2f}", f"{statistics.median(ratios):.2f}",
                f"{max(ratios):.1f}", nodes, machine,
            )
        )  # fmt: skip
    save_csv(asked.results / "exact_limits.csv", HEADS, rows)
    print(markdown_table(HEADS[:-1], [tuple(map(str, row[:-1])) for row in rows]))
    return int(wrong > 0)


STUDY = Study(__doc__, _add_arguments, _run_study, results=("exact_limits.csv",))
