"""CPU times of proofs within limits on measures, against the plain question of the same run.

    python -m benchmarks run exact.measures                 questions of four data sets: minutes
    python -m benchmarks run exact.measures --only world27  one data set
    python -m benchmarks run exact.measures --write-docs    table of docs/methods.md from the file

Each data set has its own demand, and demand that follows a Pareto distribution with exponent 1.2,
with three operation mixes and 3 to 5, 5, 7 and 9 replicas of which 3 and 5 vote. Each question is
first asked plainly: its plan has the least mean. Each limit asks for 3 % less than this plan has.
"three limits" keeps the first three of them together, each 2 % lower. A question without a plan is
a line of its own, since its time includes the reasons: which limits conflict, and the best that
each can be beside the others.

Then, where the package `skyplane` brings its table of prices, AWS regions with these prices of
traffic and 150 USD for a replica: the least cost within three limits, the same by a program of
HiGHS and by enumeration, the whole front of cost and p99(writes), and limits that no plan keeps.

The time is the least CPU time of ``--repeat`` runs, without the certificate; what takes more than a
second is run once. Writes results/exact_measures.csv, one row per question; what there is of sets
that were not run stays. Exit code 1 when something is not proven.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import placement
from benchmarks.exact.networks import weights
from benchmarks.exact.variants import PROVEN, least_time
from benchmarks.harness.machine import describe, sentence
from benchmarks.harness.results import RESULTS, Row, grouped, lines_table, read_rows
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import spread_demand
from placement import Instance, Plan, Problem
from placement.datasets.bundled import find_aws_transfer
from placement.errors import MissingDependencyError, PlacementError
from placement.io.price_lists import PriceInput, nearest_sites, read_transfer, with_prices
from placement.measures.limits import measure_front
from placement.measures.text import read_measure
from placement.measures.values import value
from placement.methods.options import Options
from placement.model.changed_instance import at_sites
from placement.tail import Distributions
from placement.workloads import mix_shares

LIMITED = (
    "mean(writes)",
    "mean(reads, clients in continent:Europe)",
    "slowest client",
    "mean after the loss of any site",
    "p99(writes)",
)
"""Measures that are limited, one in a question; the first three are limited together as well."""

_MIXES = ("social", "oltp", "ycsb-a")
_SETS = ("world27", "aws", "azure", "gcp")
_COUNTS: tuple[tuple[int | tuple[int, int], int], ...] = (((3, 5), 3), (5, 3), (7, 5), (9, 5))
_PLAIN, _THREE, _AWS, _SAME = "plain", "three limits", "aws-prices", "the same"
_HEADS = ("set", "demand", "mix", "replicas", "voters", "question", "status", "ms", "ratio",
          "nodes", "machine")  # fmt: skip
_NO_CERTIFICATE = {"certificate": False}
_REGIONS = 25
_REPLICA = 150.0  # USD a month
_READ_GB = 1e-5
_REFEREE = 60.0  # seconds of another method at most


# --- the table of docs/methods.md ---------------------------------------------------------------


def _time(ms: float) -> str:
    return f"{ms:.2g} ms" if ms < 10 else f"{ms:,.0f} ms"


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows as Markdown: a line for each question, and what they ran on."""
    lines, single = [], []
    for found in (some for one in grouped(rows, "question") for some in grouped(one, "status")):
        slowest = max(found, key=lambda row: float(row["ms"]))
        if found[0]["set"] == _AWS:
            told = {"question": found[0]["question"], "answer": found[0]["status"]}
            single.append({**told, "CPU time": _time(float(slowest["ms"]))})
            continue
        asked = (slowest["set"], slowest["demand"], slowest["mix"],
                 f"{slowest['replicas']}/{slowest['voters']}")  # fmt: skip
        lines.append(
            {
                "question": found[0]["question"],
                "answer": found[0]["status"],
                "questions": len(found),
                "median": _time(statistics.median(float(row["ms"]) for row in found)),
                "times plain": f"{statistics.median(float(row['ratio']) for row in found):.1f}",
                "slowest": f"{_time(float(slowest['ms']))} ({' '.join(asked)})",
            }
        )
    machines = dict.fromkeys(row["machine"].split(" (")[0] for row in rows)
    return "\n".join([lines_table(lines), "", lines_table(single), "", *machines])


# --- questions ----------------------------------------------------------------------------------


def _asked(problem: Problem, repeat: int = 1) -> tuple[float, Plan]:
    return least_time(problem, repeat, settings=_NO_CERTIFICATE)


def _instances(name: str, mix: str) -> Iterator[tuple[str, Instance]]:
    """Yield a data set with its own demand, and with demand of a heavy tail."""
    plain = placement.load(name, mix=mix)
    yield "own", plain
    rng = np.random.default_rng([1, len(plain.sites)])
    weight = weights("pareto", len(plain.clients), rng)
    counts = spread_demand(mix_shares(mix), weight, rng)
    yield "pareto", plain.replace(counts=counts, intervals=())


def _limits(problem: Problem, plan: Plan, share: float) -> list[str]:
    """Return a limit on each measure, at a share of what a plan has."""
    assert plan.configuration is not None
    had = (value(problem, read_measure(one), plan.configuration) for one in LIMITED)
    return [f"{one} <= {share * ms:.6g} ms" for one, ms in zip(LIMITED, had, strict=True)]


def _questions(name: str) -> Iterator[tuple[Row, dict[str, Problem]]]:
    """Yield what questions are about, and the questions by name, the plain one first."""
    for mix in _MIXES:
        for demand, instance in _instances(name, mix):
            spread = Distributions.parametric(instance, variation=0.2)
            for replicas, voters in _COUNTS:
                size = replicas if isinstance(replicas, int) else f"{replicas[0]}..{replicas[1]}"
                about = {"set": name, "demand": demand, "mix": mix, "replicas": str(size),
                         "voters": str(voters)}  # fmt: skip
                plain = Problem(instance, replicas=replicas, voters=voters)
                _, plan = _asked(plain)
                asked, varied = {_PLAIN: plain}, plain.replace(distributions=spread)
                for measure, limit in zip(LIMITED, _limits(varied, plan, 0.97), strict=True):
                    one = varied if measure.startswith("p99") else plain
                    asked[measure] = one.replace(keep=(limit,))
                three = _limits(varied, plan, 0.98)[:3]
                asked[_THREE] = plain.replace(keep=tuple(three))
                yield about, asked


def _priced() -> Problem:
    """Return AWS regions with prices, 3 to 5 replicas of which 3 vote, and RTTs that vary."""
    path, source = find_aws_transfer()
    transfer = dataclasses.replace(read_transfer(path), source=source, currency="USD")
    whole = placement.load("aws", mix="social")
    priced_pairs = Counter(sender for sender, _ in transfer.prices)
    most = max(priced_pairs.values())  # some regions lack the prices to others
    known = [i for i, site in enumerate(whole.sites) if priced_pairs[site] == most][:_REGIONS]
    part = at_sites(whole, known)
    places, gb = nearest_sites(part), {"read": _READ_GB, "write": _READ_GB}
    priced = with_prices(part, PriceInput(_REPLICA, transfer, client_places=places, gb_per_op=gb))
    spread = Distributions.parametric(priced, variation=0.2)
    return Problem(priced, replicas=(3, 5), voters=3, distributions=spread)


def _least_cost(repeat: int) -> Iterator[Row]:
    """Yield the rows about AWS regions with prices."""
    problem = _priced()
    _, plan = _asked(problem)
    limits = _limits(problem, plan, 1.1)[:3]
    cheapest = problem.replace(minimise="cost", keep=tuple(limits))
    about = {"set": _AWS, "demand": "own", "mix": "social", "replicas": "3..5", "voters": "3"}
    seconds, found = _asked(cheapest, repeat)
    yield {**about, "question": "least cost within three limits", **_told(found, seconds)}
    for name, method in {"HiGHS": "milp", "enumeration": "exhaustive"}.items():
        try:
            seconds, found = least_time(cheapest, 1, method, _REFEREE)
        except PlacementError as refusal:
            print(f"{name}: {refusal}", file=sys.stderr)
            continue
        yield {**about, "question": f"{_SAME}, {name}", **_told(found, seconds)}
    strict = cheapest.replace(keep=tuple(_limits(problem, plan, 0.5)[:3]))
    seconds, found = _asked(strict, repeat)
    yield {**about, "question": "limits that no plan keeps", **_told(found, seconds)}
    began = time.process_time()
    front, proven = measure_front(
        problem, read_measure("cost"), read_measure("p99(writes)"),
        options=Options(settings=_NO_CERTIFICATE),
    )  # fmt: skip
    told = _told(front[0], time.process_time() - began)
    told["status"] = "optimal" if proven else "feasible"
    yield {**about, "question": f"front of cost and p99(writes), {len(front)} plans", **told}


def _told(plan: Plan, seconds: float, plain: float = math.nan) -> Row:
    times = {"ms": f"{1e3 * seconds:.3f}", "ratio": f"{seconds / plain:.2f}"}
    return {"status": plan.status.value, "nodes": str(plan.stats.get("nodes", 0)), **times}


def _rows(name: str, options: argparse.Namespace) -> Iterator[Row]:
    """Yield the rows of a data set."""
    about = {"machine": sentence(describe(("numpy",)))}
    if name == _AWS:
        try:
            yield from (about | row for row in _least_cost(options.repeat))
        except MissingDependencyError as error:
            print(error, file=sys.stderr)
        return
    for asked, questions in _questions(name):
        unit = math.nan
        for question, problem in questions.items():
            seconds, plan = _asked(problem, options.repeat)
            unit = seconds if question == _PLAIN else unit
            yield {**about, **asked, "question": question, **_told(plan, seconds, unit)}


STUDY = Study(
    "exact_measures",
    {name: functools.partial(_rows, name) for name in (*_SETS, _AWS)},
    {"repeat": 3},
    _HEADS,
    group="set",
    about=False,
    good=lambda row: row["question"].startswith(_SAME) or row["status"] in PROVEN,
    summary=table,
    description=__doc__,
    page="docs/methods.md",
    report=lambda: {"exact_measures.csv": table(read_rows(RESULTS / "exact_measures.csv"))},
)
