"""Time of a question under rules, or with RTTs that vary, in units of the plain question.

    python -m benchmarks run exact.rules                 ten seconds of CPU time
    python -m benchmarks run exact.rules --write-docs    table of docs/methods.md from the file

Every bundled data set and operation mix, with 5 replicas of which 3 vote and 7 of which 5 vote: 18
questions a set, each without rules, under every rule of `RULES`, and with three RTT matrices that
differ by up to a fifth for each pair (seeded). The certificate is left out. The least CPU time of
`--repeat` runs counts, from the problem to the proven plan.

Writes results/exact_rules.csv in the folder of the benchmarks, one row per question and rule. Exit
code 1 when something is not proven.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

import placement
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import ROOT, describe, sentence
from benchmarks.harness.result_files import Row, read_rows, save_csv
from benchmarks.harness.study import Study
from placement import Diversity, Instance, Problem
from placement.checks import FloatArray
from placement.workloads import MIXES

__all__ = ["RULES", "STUDY", "table"]

RESULTS = ROOT / "benchmarks" / "results" / "exact_rules.csv"

SETS = ("world27", "azure", "aws", "gcp")
COUNTS = ((5, 3), (7, 5))
PLAIN = "no rules"
VARYING = "RTTs of 3 intervals"
_INTERVALS = 3
RULES: Mapping[str, tuple[Diversity, ...]] = {
    PLAIN: (),
    "4 countries": (Diversity("country", "replicas", min_domains=4),),
    "3 continents": (Diversity("continent", "replicas", min_domains=3),),
    "voters in 3 continents": (Diversity("continent", "voters", min_domains=3),),
    "one replica in South America": (
        Diversity("continent", "replicas", domain="South America", least=1),
    ),
    "caps on crossing levels": (
        Diversity("country", "replicas", cap=1),
        Diversity("provider", "replicas", cap=3),
    ),
    VARYING: (),
}
"""Name of a rule -> what it is. Sets without its levels are left out."""

HEADS = ("set", "mix", "replicas", "voters", "rule", "status", "ms", "nodes", "machine")


def _varying(instance: Instance) -> Instance:
    """Return an instance with three RTT matrices and a third of the demand in each interval."""
    rng = np.random.default_rng(1)

    def drawn(rtt: FloatArray) -> FloatArray:
        return np.round(rtt * rng.uniform(0.8, 1.2, (_INTERVALS, *rtt.shape)), 1)

    counts = instance.counts.sum(axis=0) / _INTERVALS
    return instance.replace(
        client_rtt=drawn(instance.client_rtt),
        site_rtt=drawn(instance.site_rtt),
        counts=np.repeat(counts[np.newaxis], _INTERVALS, axis=0),
        intervals=tuple(f"interval {k + 1}" for k in range(_INTERVALS)),
    )


def _rows(name: str, repeat: int) -> Iterator[Row]:
    """Yield the rows of one data set."""
    machine = sentence(describe(("numpy",)))
    for mix, (replicas, voters) in itertools.product(MIXES, COUNTS):
        plain = placement.load(name, mix=mix)
        for rule, diversity in RULES.items():
            instance = _varying(plain) if rule == VARYING else plain
            if any(one.level not in instance.levels for one in diversity):
                continue
            least = math.inf
            for _ in range(repeat):
                began = time.process_time()
                plan = placement.solve(
                    Problem(instance, replicas=replicas, voters=voters, diversity=diversity),
                    settings={"certificate": False},
                )
                least = min(least, time.process_time() - began)
            values = (
                name, mix, replicas, voters, rule, plan.status.value, f"{1e3 * least:.3f}",
                plan.stats.get("nodes", 0), machine,
            )  # fmt: skip
            row = dict(zip(HEADS, map(str, values), strict=True))
            print(*list(row.values())[:-1], file=sys.stderr, flush=True)
            yield row


def table(found: Sequence[Row]) -> str:
    """Return the rows as a Markdown table, one line per set and rule, and what they ran on."""

    def question(row: Row) -> tuple[str, ...]:
        return (row["set"], row["mix"], row["replicas"], row["voters"])

    plain = {question(row): float(row["ms"]) for row in found if row["rule"] == PLAIN}
    lines = []
    for name, rule in dict.fromkeys((row["set"], row["rule"]) for row in found):
        rows = [row for row in found if (row["set"], row["rule"]) == (name, rule)]
        proven = sum(row["status"] in ("optimal", "infeasible") for row in rows)
        slowest = max(rows, key=lambda row: float(row["ms"]))
        ratios = sorted(float(row["ms"]) / plain[question(row)] for row in rows)
        asked = f"{slowest['mix']} {slowest['replicas']}/{slowest['voters']}"
        lines.append(
            (
                name, rule, f"{proven} of {len(rows)}",
                f"{sum(float(row['ms']) for row in rows) / 1e3:.2f} s",
                "" if rule == PLAIN else f"{statistics.median(ratios):.1f}",
                "" if rule == PLAIN else f"{ratios[-1]:.0f}",
                f"{float(slowest['ms']):.0f} ms ({asked})",
            )
        )  # fmt: skip
    heads = ("set", "rule", "proven", "together", "ratio: median", "largest", "slowest question")
    machines = dict.fromkeys(row["machine"] for row in found)
    return "\n".join([markdown_table(heads, lines), "", *machines])


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--results", type=Path, default=RESULTS)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark."""
    placement.solve(Problem(placement.load("world27"), replicas=3, voters=3))  # imports
    found = [row for name in asked.sets for row in _rows(name, asked.repeat)]
    save_csv(asked.results, HEADS, ([row[head] for head in HEADS] for row in found))
    print(table(found))
    return int(any(row["status"] not in ("optimal", "infeasible") for row in found))


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("exact_rules.csv",),
    page="docs/methods.md",
    report=lambda: {"exact_rules.csv": table(read_rows(RESULTS))},
)
