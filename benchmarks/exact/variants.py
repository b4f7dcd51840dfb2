"""CPU times of a proof under rules, limits, waits, losses or drawn RTTs, beside the plain question.

    python -m benchmarks run exact.rules                 three minutes of CPU time
    python -m benchmarks run exact.rules --write-docs    table of docs/methods.md from the file
    python -m benchmarks run exact.leader_waits          some seconds
    python -m benchmarks run exact.set_waits             a minute
    python -m benchmarks run exact.measures --only world27      limits on measures, one data set

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

``exact.measures``: each data set has its own demand, and demand that follows a Pareto distribution
with exponent 1.2, with three operation mixes and 3 to 5, 5, 7 and 9 replicas of which 3 and 5 vote.
Each question is first asked plainly: its plan has the least mean. Each limit asks for 3 % less than
this plan has. "three limits" keeps the first three of them together, each 2 % lower. A question
without a plan is a line of its own, since its time includes the reasons: which limits conflict, and
the best that each can be beside the others.

Then, where the package `skyplane` brings its table of prices, AWS regions with these prices of
traffic and 150 USD for a replica: the least cost within three limits, the same by a program of
HiGHS and by enumeration, the whole front of cost and p99(writes), and limits that no plan keeps.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import itertools
import math
import statistics
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import placement
from benchmarks.exact.networks import weights
from benchmarks.harness.machine import describe, sentence
from benchmarks.harness.results import RESULTS, Row, grouped, lines_table, read_rows
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import spread_demand
from placement import Contingency, Diversity, Instance, Plan, Problem
from placement.datasets.bundled import find_aws_transfer
from placement.errors import MissingDependencyError, PlacementError
from placement.evaluation.objective import MEAN_LATENCY
from placement.io.price_lists import PriceInput, nearest_sites, read_transfer, with_prices
from placement.measures.limits import measure_front
from placement.measures.text import read_measure
from placement.measures.values import value
from placement.methods.options import Options
from placement.model.changed_instance import at_sites
from placement.support.checks import FloatArray
from placement.tail import Distributions
from placement.workloads import MIXES, mix_shares

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


# --- limits on measures ---------------------------------------------------------------------------


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


def limits_table(rows: Sequence[Mapping[str, Any]]) -> str:
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


MEASURES = Study(
    "exact_measures",
    {name: functools.partial(_rows, name) for name in (*_SETS, _AWS)},
    {"repeat": 3},
    _HEADS,
    group="set",
    about=False,
    good=lambda row: row["question"].startswith(_SAME) or row["status"] in PROVEN,
    summary=limits_table,
    description=__doc__,
    page="docs/methods.md",
    report=lambda: {"exact_measures.csv": limits_table(read_rows(RESULTS / "exact_measures.csv"))},
)
