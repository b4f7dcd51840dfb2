"""CPU times of a proof under rules, waits, losses or RTTs that vary, against the plain question.

    python -m benchmarks run exact.rules                 three minutes of CPU time
    python -m benchmarks run exact.rules --write-docs    table of docs/methods.md from the file
    python -m benchmarks run exact.leader_waits          some seconds
    python -m benchmarks run exact.set_waits             a minute

A study is a table: data sets × operation mixes × numbers of replicas and voters × variants.

- ``exact.rules``: every bundled data set and mix, 5 replicas of which 3 vote and 7 of which 5 vote.
  Each question is asked for the least mean latency without rules, under rules, and with three RTT
  matrices that differ by up to a fifth for each pair (seeded); then for the least latency after the
  worst loss of a site, with the RTTs of the data set and with those three. The first of the three
  matrices is asked about alone as well: RTTs that are drawn pair by pair make a question harder,
  even where they do not vary. The certificate is left out.
- ``exact.leader_waits``: the same questions plain, with leases (one wait more), and with leases
  that reads interfere with (two waits that differ), with the certificate.
- ``exact.set_waits``: the method ``sets`` where the nearest replica or the client waits: protocols
  without a leader, and `pqr`, whose clients ask a majority beside the commits of a leader.

The least CPU time of `--repeat` runs counts, from the problem to the proven plan; what takes more
than a second is run once. Each study writes a CSV, one row per question and variant, and prints a
line for each variant with its ratios to the plain question. Exit code 1 when something is not
proven.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import math
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import placement
from benchmarks.harness.machine import describe, sentence
from benchmarks.harness.results import RESULTS, Row, grouped, lines_table, read_rows
from benchmarks.harness.study import Study
from placement import Contingency, Diversity, Instance, Plan, Problem
from placement.evaluation.objective import MEAN_LATENCY
from placement.support.checks import FloatArray
from placement.workloads import MIXES

PLAIN, LOSS = "no rules", "worst loss"
PROVEN = ("optimal", "infeasible")
_INTERVALS = 3
_ONCE = 1.0  # seconds from which a question is not repeated


@dataclass(frozen=True)
class Variant:
    """Change of the plain question.

    Rules on failure domains; drawn RTT matrices (0: the RTTs of the data set); the variant whose
    time is the unit (empty: none); whether the worst case after the loss of a site is minimised;
    the commit protocol (None: that of the data set).
    """

    diversity: tuple[Diversity, ...] = ()
    matrices: int = 0
    base: str = PLAIN
    losses: bool = False
    protocol: str | None = None

    def problem(self, plain: Instance, replicas: int, voters: int) -> Problem:
        """Return the question on an instance."""
        return Problem(
            _varying(plain, self.matrices) if self.matrices else plain,
            replicas=replicas,
            voters=voters,
            diversity=self.diversity,
            objective=Contingency() if self.losses else MEAN_LATENCY,
            protocol=self.protocol,
        )


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
    LOSS: Variant(base=LOSS, losses=True),
    "worst loss, the first of 3 matrices alone": Variant(matrices=1, base=LOSS, losses=True),
    "worst loss, RTTs of 3 intervals": Variant(matrices=_INTERVALS, base=LOSS, losses=True),
}
"""Variants of ``exact.rules``: name -> what it is. Sets without its levels are left out."""


def variant_study(
    file: str,
    heads: Sequence[str],
    variants: Mapping[str, Variant],
    *,
    sets: Sequence[str] = ("world27", "azure", "aws", "gcp"),
    mixes: Sequence[str] = tuple(MIXES),
    counts: Sequence[tuple[int, int]] = ((5, 3), (7, 5)),
    method: str = "exact",
    settings: Mapping[str, object] | None = None,
    repeat: int = 3,
    **more: Any,
) -> Study:
    """Return a study: a table of questions that a method proves, for every set, mix and variant.

    `heads` are the columns, keys of a row; `counts` the numbers of replicas and voters; `repeat`
    the runs of a question where the options say nothing else; `more` its page and report.
    """

    def rows(name: str, options: argparse.Namespace) -> Iterator[Row]:
        """Yield the rows of a data set: all that is known of a question, as text."""
        for objective in (MEAN_LATENCY, Contingency()):  # imports
            world = placement.load("world27")
            placement.solve(Problem(world, replicas=3, voters=3, objective=objective))
        machine = sentence(describe(("numpy",)))
        for mix, (replicas, voters) in itertools.product(mixes, counts):
            plain = placement.load(name, mix=mix)
            unit: dict[str, float] = {}
            for variant, change in variants.items():
                if any(one.level not in plain.levels for one in change.diversity):
                    continue
                problem = change.problem(plain, replicas, voters)
                seconds, plan = least_time(problem, options.repeat, method, None, settings)
                ms = unit[variant] = 1e3 * seconds
                row = {
                    "set": name, "mix": mix, "replicas": replicas, "voters": voters,
                    **dict.fromkeys(("variant", "rule", "question", "protocol"), variant),
                    "status": plan.status.value, "ms": f"{ms:.3f}", "machine": machine,
                    "ratio": f"{ms / unit.get(change.base, ms):.2f}",
                    **{key: plan.stats.get(key, 0) for key in ("nodes", "bounds", "sets")},
                    "sets looked at": plan.stats.get("leaves", 0),
                }  # fmt: skip
                yield {key: str(value) for key, value in row.items()}

    return Study(
        file,
        {name: functools.partial(rows, name) for name in sets},
        {"repeat": repeat},
        tuple(heads),
        group="set",
        about=False,
        good=lambda row: row["status"] in PROVEN,
        summary=functools.partial(table, variants),
        description=__doc__,
        **more,
    )


def least_time(
    problem: Problem,
    repeat: int,
    method: str = "exact",
    time_limit: float | None = None,
    settings: Mapping[str, object] | None = None,
) -> tuple[float, Plan]:
    """Return the least CPU seconds of `repeat` solves, and the plan; one solve where that is long.

    Parameters are as of :func:`placement.solve`.
    """
    least = math.inf
    for _ in range(repeat):
        fresh = problem.replace(quorum=problem.quorum)  # a copy that knows nothing yet
        began = time.process_time()
        plan = placement.solve(fresh, method, time_limit=time_limit, settings=settings)
        least = min(least, time.process_time() - began)
        if least > _ONCE:
            break
    return least, plan


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


def table(variants: Mapping[str, Variant], found: Sequence[Mapping[str, Any]]) -> str:
    """Return the rows of a study as Markdown, a line per variant, and what they ran on."""

    def question(row: Mapping[str, Any]) -> tuple[str, ...]:
        return (row["set"], row["mix"], row["replicas"], row["voters"])

    known = {(row["rule"], *question(row)): float(row["ms"]) for row in found}
    lines = []
    for rows in grouped(found, "rule"):
        rule = rows[0]["rule"]
        slowest = max(rows, key=lambda row: float(row["ms"]))
        unit = variants[rule].base or rule
        ratios = sorted(float(row["ms"]) / known[unit, *question(row)] for row in rows)
        asked = f"{slowest['set']} {slowest['mix']} {slowest['replicas']}/{slowest['voters']}"
        lines.append(
            {
                "rule": rule,
                "proven": f"{sum(row['status'] in PROVEN for row in rows)} of {len(rows)}",
                "ratio: median": "" if rule == unit else f"{statistics.median(ratios):.1f}",
                "largest": "" if rule == unit else f"{ratios[-1]:.0f}",
                "above 5": "" if rule == unit else sum(ratio > 5 for ratio in ratios),
                "slowest question": f"{float(slowest['ms']):.0f} ms ({asked})",
            }
        )
    machines = dict.fromkeys(row["machine"].split(" (")[0] for row in found)
    return "\n".join([lines_table(lines), "", *machines])


RULES = variant_study(
    "exact_rules",
    ("set", "mix", "replicas", "voters", "rule", "status", "ms", "nodes", "machine"),
    VARIANTS,
    settings={"certificate": False},
    page="docs/methods.md",
    report=lambda: {"exact_rules.csv": table(VARIANTS, read_rows(RESULTS / "exact_rules.csv"))},
)

LEADER_WAITS = variant_study(
    "leader_waits",
    ("set", "mix", "replicas", "question", "ms", "ratio", "nodes", "bounds"),
    {
        "plain": Variant(base="plain"),
        "leases": Variant(base="plain", protocol="leases"),
        "two waits": Variant(base="plain", protocol="leases:interference=0.2"),
    },
    sets=("world27", "aws", "azure"),
    mixes=("ycsb-a", "ycsb-b", "oltp", "social"),
    counts=((5, 5), (7, 7)),
    repeat=5,
)

SET_WAITS = variant_study(
    "set_waits",
    ("set", "mix", "replicas", "protocol", "ms", "nodes", "sets looked at", "sets"),
    {
        name: Variant(base="", protocol=name)
        for name in (
            "epaxos:multi=2", "epaxos:slow=0.1,multi=2", "mencius:multi=2", "hermes:multi=2",
            "abd:multi=2", "fast-paxos:multi=2", "pqr", "coordinated:r=2,w=3,multi=2",
        )
    },
    sets=("world27", "aws", "azure"),
    mixes=("ycsb-a", "ycsb-b", "social"),
    counts=((5, 5),),
    method="sets",
    repeat=2,
)  # fmt: skip
