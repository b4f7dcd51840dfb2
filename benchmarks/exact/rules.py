"""Time of a question under rules, or with RTTs that vary, in units of the plain question.

    python -m benchmarks run exact.rules                 three minutes of CPU time
    python -m benchmarks run exact.rules --write-docs    table of docs/methods.md from the file

Every bundled data set and operation mix, with 5 replicas of which 3 vote and 7 of which 5 vote: 18
questions a set. Each is asked for the least mean latency without rules, under every rule of
`VARIANTS`, and with three RTT matrices that differ by up to a fifth for each pair (seeded); then
for the least latency after the worst loss of a site, with the RTTs of the data set and with those
three. The first of the three matrices is asked about alone as well: RTTs that are drawn pair by
pair make a question harder, even where they do not vary. The certificate is left out. The least CPU
time of `--repeat` runs counts, from the problem to the proven plan; what takes more than a second
is run once.

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
from dataclasses import dataclass

import numpy as np

import placement
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import describe, sentence
from benchmarks.harness.result_files import RESULTS, Row, add_results, read_rows, save_csv
from benchmarks.harness.study import Study
from placement import Diversity, Instance, Plan, Problem
from placement.contingency.objective import Contingency
from placement.evaluation.objective import MEAN_LATENCY
from placement.support.checks import FloatArray
from placement.workloads import MIXES

__all__ = ["STUDY", "VARIANTS", "Variant", "table"]


SETS = ("world27", "azure", "aws", "gcp")
COUNTS = ((5, 3), (7, 5))
PLAIN, LOSS = "no rules", "worst loss"
_INTERVALS = 3
_AIM = 5.0  # ratio
_ONCE = 1.0  # seconds from which a question is not repeated


@dataclass(frozen=True)
class Variant:
    """Change of the plain question.

    Attributes
    ----------
    diversity
        Rules on failure domains.
    matrices
        RTT matrices that are drawn; 0: the RTTs of the data set.
    base
        Name of the variant whose time is the unit.
    losses
        Whether the worst case after the loss of a site is minimised, and not the mean.
    """

    diversity: tuple[Diversity, ...] = ()
    matrices: int = 0
    base: str = PLAIN
    losses: bool = False


VARIANTS: Mapping[str, Variant] = {
    PLAIN: Variant(),
    "4 countries": Variant((Diversity("country", "replicas", min_domains=4),)),
    "3 continents": Variant((Diversity("continent", "replicas", min_domains=3),)),
    "voters in 3 continents": Variant((Diversity("continent", "voters", min_domains=3),)),
    "one replica in South America": Variant(
        (Diversity("continent", "replicas", domain="South America", least=1),)
    ),
    "caps on crossing levels": Variant(
        (Diversity("country", "replicas", cap=1), Diversity("provider", "replicas", cap=3))
    ),
    "the first of 3 matrices alone": Variant(matrices=1),
    "RTTs of 3 intervals": Variant(matrices=_INTERVALS),
    LOSS: Variant(losses=True),
    "worst loss, the first of 3 matrices alone": Variant(matrices=1, base=LOSS, losses=True),
    "worst loss, RTTs of 3 intervals": Variant(matrices=_INTERVALS, base=LOSS, losses=True),
}
"""Name of a variant -> what it is. Sets without its levels are left out."""

HEADS = ("set", "mix", "replicas", "voters", "rule", "status", "ms", "nodes", "machine")


def _varying(instance: Instance, matrices: int = _INTERVALS) -> Instance:
    """Return an instance with drawn RTT matrices, and as much of the demand in each interval."""
    rng = np.random.default_rng(1)

    def drawn(rtt: FloatArray) -> FloatArray:
        return np.round(rtt * rng.uniform(0.8, 1.2, (_INTERVALS, *rtt.shape)), 1)[:matrices]

    counts = instance.counts.sum(axis=0) / matrices
    return instance.replace(
        client_rtt=drawn(instance.client_rtt),
        site_rtt=drawn(instance.site_rtt),
        counts=np.repeat(counts[np.newaxis], matrices, axis=0),
        intervals=tuple(f"interval {k + 1}" for k in range(matrices)),
    )


def _least_time(problem: Problem, repeat: int) -> tuple[float, Plan]:
    """Return the least CPU seconds of some runs, and the plan."""
    least = math.inf
    for _ in range(repeat):
        began = time.process_time()
        plan = placement.solve(problem, settings={"certificate": False})
        least = min(least, time.process_time() - began)
        if least > _ONCE:
            break
    return least, plan


def _rows(name: str, repeat: int) -> Iterator[Row]:
    """Yield the rows of one data set."""
    machine = sentence(describe(("numpy",)))
    for mix, (replicas, voters) in itertools.product(MIXES, COUNTS):
        plain = placement.load(name, mix=mix)
        for rule, variant in VARIANTS.items():
            if any(one.level not in plain.levels for one in variant.diversity):
                continue
            problem = Problem(
                _varying(plain, variant.matrices) if variant.matrices else plain,
                replicas=replicas,
                voters=voters,
                diversity=variant.diversity,
                objective=Contingency() if variant.losses else MEAN_LATENCY,
            )
            seconds, plan = _least_time(problem, repeat)
            values = (
                name, mix, replicas, voters, rule, plan.status.value, f"{1e3 * seconds:.3f}",
                plan.stats.get("nodes", 0), machine,
            )  # fmt: skip
            row = dict(zip(HEADS, map(str, values), strict=True))
            print(*list(row.values())[:-1], file=sys.stderr, flush=True)
            yield row


def table(found: Sequence[Row]) -> str:
    """Return the rows as a Markdown table, one line per rule, and what they ran on."""

    def question(row: Row) -> tuple[str, ...]:
        return (row["set"], row["mix"], row["replicas"], row["voters"])

    known = {(row["rule"], *question(row)): float(row["ms"]) for row in found}
    lines = []
    for rule in VARIANTS:
        rows = [row for row in found if row["rule"] == rule]
        if not rows:
            continue
        proven = sum(row["status"] in ("optimal", "infeasible") for row in rows)
        slowest = max(rows, key=lambda row: float(row["ms"]))
        unit = VARIANTS[rule].base if rule not in (PLAIN, LOSS) else rule
        ratios = sorted(float(row["ms"]) / known[unit, *question(row)] for row in rows)
        compared = (
            f"{statistics.median(ratios):.1f}", f"{ratios[-1]:.0f}",
            str(sum(ratio > _AIM for ratio in ratios)),
        )  # fmt: skip
        asked = f"{slowest['set']} {slowest['mix']} {slowest['replicas']}/{slowest['voters']}"
        lines.append(
            (
                rule, f"{proven} of {len(rows)}",
                *(("", "", "") if rule == unit else compared),
                f"{float(slowest['ms']):.0f} ms ({asked})",
            )
        )  # fmt: skip
    heads = ("rule", "proven", "ratio: median", "largest", "above 5", "slowest question")
    machines = dict.fromkeys(row["machine"].split(" (")[0] for row in found)
    return "\n".join([markdown_table(heads, lines), "", *machines])


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    parser.add_argument("--repeat", type=int, default=3)
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark."""
    for objective in (MEAN_LATENCY, Contingency()):  # imports
        placement.solve(
            Problem(placement.load("world27"), replicas=3, voters=3, objective=objective)
        )
    found = [row for name in asked.sets for row in _rows(name, asked.repeat)]
    save_csv(
        asked.results / "exact_rules.csv", HEADS, ([row[head] for head in HEADS] for row in found)
    )
    print(table(found))
    return int(any(row["status"] not in ("optimal", "infeasible") for row in found))


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("exact_rules.csv",),
    page="docs/methods.md",
    report=lambda: {"exact_rules.csv": table(read_rows(RESULTS / "exact_rules.csv"))},
)
