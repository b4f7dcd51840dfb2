"""Tail latency: speed, how good the local search is, and what a percentile changes.

    python -m benchmarks run tail [--seeds 1] [--runs 7] [--part NAME …]

Five parts, each a table of docs/tail.md:

* speed: tier 1 with five voters and 60 clients, the evaluator alone, tier 2, and the local search;
* gaps: `local-search` against `exhaustive`, four of eight sites and five of eleven;
* leaders: the leader of least mean latency against that of the least percentile, five replicas that
  all vote, every mix, 20 times as many seeds;
* plans: the proven plan of least mean latency against that of `local-search` for p99;
* proofs: how long `exact` takes on the bundled regions, 27 to 48 sites, up to 175 clients.

Times are processor times, which other work on the machine hardly changes. Writes
benchmarks/results/tail.json.
"""

from __future__ import annotations

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np

import placement
from benchmarks.harness import machine
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.doc_pages import grouped, lines_table
from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import Row, read_json, save_text
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import demand, modelled_network
from benchmarks.harness.timing import repeat
from placement import Instance, Options, Problem
from placement.errors import InputError
from placement.evaluation.objective import MEAN_LATENCY, score_of
from placement.io import read_rtt
from placement.io.rtt_distributions import PairTable, distributions_of, read_pairs
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray
from placement.support.status import Status
from placement.tail import Distributions, Percentile
from placement.tail.bin_grid import bins_for, reach_of_family
from placement.tail.distribution_arithmetic import percentile
from placement.tail.histograms import of_family
from placement.tail.latency_mixture import mixture
from placement.workloads import MIXES, mix_shares

__all__ = ["NETWORKS", "RESULTS", "STUDY", "TABLE", "distributions_around", "tables", "world"]


# --- instances with distributions of RTTs -------------------------------------------------------

TABLE = "aws_cloudping_2024-04-19_percentiles.csv"
"""Measured percentiles, in the folder that ``--latency`` names."""

NETWORKS = ("aws-2024", "equal spread", "unequal spread")

EQUAL, MEDIAN, SIGMA = 0.2, 0.15, 0.8
SITES = 27


@lru_cache(maxsize=1)
def _measured(latency: Path) -> tuple[PairTable, tuple[str, ...], FloatArray] | None:
    path = latency / TABLE
    if not path.exists():
        return None
    rtt = read_rtt(path, "percentiles")
    values, _ = rtt.between(rtt.sources, rtt.sources)
    return read_pairs(path), rtt.sources, values


def world(
    network: str,
    mix: str,
    seed: int,
    *,
    sites: int | None = None,
    clients: int = SITES,
    latency: Path | None = None,
) -> tuple[Instance, Distributions] | None:
    """Build an instance and its distributions; None when the measured table is absent.

    Parameters
    ----------
    network
        One of `NETWORKS`.
    mix
        A key of ``MIXES``.
    seed
        Of the choice of sites, the modelled RTTs, the spreads and the demand.
    sites
        How many candidate sites, drawn among the clients' places; None: all of them.
    clients
        How many clients at most.
    latency
        Folder of measured latencies; None: there is none.
    """
    numbers = [seed, sorted(MIXES).index(mix), NETWORKS.index(network)]
    rng = np.random.default_rng(numbers)
    measured = None if latency is None else _measured(latency)
    if network == "aws-2024":
        if measured is None:
            return None
        table, names, rtt = measured
    else:
        names, rtt = modelled_network(rng, clients)
    places = np.sort(rng.permutation(len(names))[: len(names) if sites is None else sites])
    between = rtt[np.ix_(places, places)].copy()
    np.fill_diagonal(between, 0.0)
    instance = Instance(
        sites=tuple(names[i] for i in places),
        clients=names,
        client_rtt=rtt[:, places],
        site_rtt=between,
        counts=demand(mix_shares(mix), len(names), rng),
        operations=STANDARD_OPERATIONS,
        name=f"{network}, {mix}, seed {seed}",
    )
    if network == "aws-2024":
        return instance, distributions_of(table, instance, clients=table)
    return instance, distributions_around(instance, network, rng)


def distributions_around(
    instance: Instance, network: str, rng: np.random.Generator
) -> Distributions:
    """Log-normal distributions around the RTTs of an instance, as the name of the network says."""
    if network not in NETWORKS:
        raise InputError("unknown network", field="network", value=network)
    known: dict[tuple[str, str], float] = {}
    for a in dict.fromkeys((*instance.clients, *instance.sites)):
        for b in instance.sites:
            drawn = MEDIAN * float(np.exp(SIGMA * rng.standard_normal()))
            known[a, b] = EQUAL if network == "equal spread" else drawn
    reaches = [
        reach_of_family(float(instance.client_rtt[i, j]), known[a, b], "lognormal")
        for i, a in enumerate(instance.clients)
        for j, b in enumerate(instance.sites)
    ]
    bins = bins_for(instance, reaches, 1.0)
    return Distributions.build(
        instance,
        lambda mean, a, b: of_family(mean, known[a, b], "lognormal", width=1.0, bins=bins),
    )


# --- the tables of docs/tail.md -----------------------------------------------------------------


def tables(results: dict[str, Any]) -> dict[str, str]:
    """Return the Markdown tables of the parts that there are, by name."""
    made = {
        "speed": _speed_table,
        "gaps": _gap_table,
        "leaders": _leader_table,
        "plans": _plan_table,
        "proofs": _proof_table,
    }
    shown = {name: table(results[name]) for name, table in made.items() if results.get(name)}
    for name in {"speed", "proofs"} & shown.keys():
        shown[name] += f"\n\n{machine.hardware([results['machines'][name]])}"
    return shown


def _speed_table(rows: list[Row]) -> str:
    return lines_table([
        {
            "what": row["what"],
            "spread": f"{row['spread']:g}",
            "bins of 1 ms": f"{row['bins']:,}",
            "processor": f"{row['cpu_ms']:,.1f} ms",
            "runs": row["runs"],
            "target": "" if row["target"] is None else f"< {row['target']:.0f} ms",
        }
        for row in rows
        if row["spread"] == 0.1
    ])  # fmt: skip


def _ratios(group: list[Row], key: str, over: str) -> FloatArray:
    return np.array([row[key] / row[over] for row in group])


def _gap_table(rows: list[Row]) -> str:
    lines = []
    for group in grouped(rows, "sites", "percent"):
        gap = _ratios(group, "found_ms", "best_ms") - 1
        mean = _ratios(group, "mean_plan_ms", "best_ms") - 1
        lines.append(
            {
                "sites": group[0]["sites"],
                "": f"p{group[0]['percent']:g}",
                "problems": len(group),
                "optimal": int((gap <= 1e-9).sum()),
                "proven so": sum(row["bound_ms"] >= row["found_ms"] for row in group),
                "mean gap": f"{100 * gap.mean():.2f} %",
                "largest gap": f"{100 * gap.max():.2f} %",
                "median gap of the mean's plan": f"{100 * np.median(mean):.1f} %",
            }
        )
    return lines_table(lines)


def _leader_table(rows: list[Row]) -> str:
    single = [
        {
            "network": row["network"],
            "percent": percent,
            "cut": 1 - row["tail_leader_ms"][k] / row["mean_leader_ms"][k],
            "price": row["tail_leader_mean_ms"][k] / row["mean_leader_mean_ms"] - 1,
        }
        for row in rows
        for k, percent in enumerate(row["percents"])
        if percent in (50, 99)
    ]

    def share(values: list[float], quantile: float) -> str:
        return f"{100 * np.quantile(values, quantile):.1f} %" if values else "–"

    lines = []
    for group in grouped(single, "network", "percent"):
        other = [row for row in group if row["cut"] > 0]
        cuts, prices = ([row[key] for row in other] for key in ("cut", "price"))
        lines.append(
            {
                "network": group[0]["network"],
                "": f"p{group[0]['percent']:g}",
                "databases": len(group),
                "another leader is better": f"{len(other)} ({100 * len(other) / len(group):.0f} %)",
                "median cut": share(cuts, 0.5),
                "9 in 10 below": share(cuts, 0.9),
                "largest cut": share(cuts, 1.0),
                "median price in the mean": share(prices, 0.5),
            }
        )
    return lines_table(lines)


def _plan_table(rows: list[Row]) -> str:
    lines = []
    for group in grouped(rows, "network"):
        cut = 1 - _ratios(group, "tail_plan_ms", "mean_plan_ms")
        price = _ratios(group, "tail_plan_mean_ms", "mean_plan_mean_ms") - 1
        gap = 1 - _ratios(group, "bound_ms", "tail_plan_ms")
        lines.append(
            {
                "network": group[0]["network"],
                "problems": len(group),
                "p99 is lower in": int((cut > 0).sum()),
                "median cut": f"{100 * np.median(cut):.1f} %",
                "largest cut": f"{100 * cut.max():.1f} %",
                "median price in the mean": f"{100 * np.median(price):.1f} %",
                "another leader": sum(not row["same_leader"] for row in group),
                "median gap to bound": f"{100 * np.median(gap):.1f} %",
                "proven optimal": int((gap <= 1e-9).sum()),
            }
        )
    return lines_table(lines)


def _proof_table(rows: list[Row]) -> str:
    lines = []
    for group in grouped(rows, "regions", "network"):
        seconds = [row["cpu_s"] for row in group]
        lines.append(
            {
                "regions": group[0]["regions"],
                "spread": group[0]["network"],
                "questions": len(group),
                "proven": sum(row["proven"] for row in group),
                "least mean proven": sum(row["least_mean"] for row in group),
                "median": f"{np.median(seconds):.2f} s",
                "longest": f"{max(seconds):.2f} s",
            }
        )
    return lines_table(lines)


RESULTS = ROOT / "benchmarks" / "results" / "tail.json"
PARTS = ("speed", "leaders", "gaps", "plans", "proofs")
PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9)
FIVE = Configuration.of(0, (0, 3, 6, 9, 12), (0, 3, 6, 9, 12))
TARGET = 100.0  # ms
GAPS = ((8, 4, (50.0, 99.0), 1), (11, 5, (99.0,), 3))  # sites, replicas, percents, every nth mix
PROOFS = ("world27", "aws", "gcp", "azure")
PROVEN = (50.0, 95.0, 99.0, 99.9)  # percents
SIZES = ((5, 3), (9, 5))  # replicas, voters
PATIENCE = 10.0  # seconds of wall time for each proof
MORE = 20  # seeds of the part about leaders, per seed of the others


# --- speed -------------------------------------------------------------------------------------


def speed(runs: int) -> Iterator[Row]:
    """Processor seconds of each step; the instance is world27: 27 sites, 60 clients, all reads."""
    instance = placement.load("world27")
    rtts = [*instance.client_rtt.ravel().tolist(), *instance.site_rtt.ravel().tolist()]
    for spread in (0.1, 0.3):
        reaches = [reach_of_family(rtt, spread, "lognormal") for rtt in rtts]
        bins = bins_for(instance, reaches, 1.0)
        timing = repeat(partial(Distributions.parametric, instance, variation=spread, bins=bins), 3)
        yield _timed(f"distributions, {27 * 87:,} pairs", spread, bins, timing.cpu, 3, None)
        given = Distributions.parametric(instance, variation=spread, bins=bins)
        free = Problem(instance, replicas=5, voters=3, objective=Percentile(99, given))
        some = [instance.sites[i] for i in range(0, 27, 3)]
        one = free.replace(replicas=some[:5], voters=some[:5])
        two = free.replace(replicas=some, voters=5)
        for what, problem, method, times, target in (
            ("evaluator, one configuration", one, None, runs, None),
            ("tier 1, 5 voters × 60 clients", one, "leader", runs, TARGET),
            ("tier 2, 5 of 9 vote", two, "tier2", runs, None),
            ("tier 3, local search, 5 of 27, 3 vote", free, "local-search", 1, None),
        ):
            timing = repeat(partial(_answer, problem, method), times)
            yield _timed(what, spread, bins, timing.cpu, times, target)


def _answer(problem: Problem, method: str | None) -> float:
    """Evaluate or solve a question that was not asked yet: objectives remember their values."""
    goal = problem.objective
    assert isinstance(goal, Percentile)
    fresh = problem.replace(objective=Percentile(goal.percent, goal.distributions))
    if method is None:
        return fresh.objective.value(fresh, FIVE)
    return _solved(fresh, method).objective


def _timed(what: str, spread: float, bins: int, cpu: float, runs: int, target: float | None) -> Row:
    return {
        "what": what, "spread": spread, "bins": bins, "cpu_ms": 1000 * cpu, "runs": runs,
        "target": target,
    }  # fmt: skip


def _solved(problem: Problem, method: str) -> placement.Plan:
    plan = run(load_method(method), problem, Options())
    if not plan.found:
        raise SystemExit(f"{method} found nothing for {problem!r}")
    return plan


# --- how good the local search is ----------------------------------------------------------------


def gaps(seeds: int, latency: Path | None) -> Iterator[Row]:
    """`local-search`, and the mean's best plan, against the proven least percentile."""
    for (sites, replicas, percents, every), network in itertools.product(GAPS, NETWORKS):
        for mix, seed in itertools.product(sorted(MIXES)[::every], range(seeds)):
            found = world(network, mix, seed, sites=sites, clients=12, latency=latency)
            if found is None:
                continue
            instance, given = found
            free = Problem(instance, replicas=replicas, voters=3)
            mean = _solved(free, "exact")
            for percent in percents:
                goal = Percentile(percent, given)
                problem = free.replace(objective=goal)
                best, plan = _solved(problem, "exhaustive"), _solved(problem, "local-search")
                if best.status is not Status.OPTIMAL or plan.bound > best.objective:
                    raise SystemExit(f"{problem!r}: no optimum, or a bound above it")
                yield {
                    "network": network,
                    "sites": sites,
                    "mix": mix,
                    "seed": seed,
                    "percent": percent,
                    "best_ms": best.objective,
                    "found_ms": plan.objective,
                    "bound_ms": plan.bound,
                    "mean_plan_ms": goal.value(problem, _configuration(mean)),
                }


def _configuration(plan: placement.Plan) -> Configuration:
    assert plan.configuration is not None
    return plan.configuration


# --- what a percentile changes -------------------------------------------------------------------


def leaders(seeds: int, latency: Path | None) -> Iterator[Row]:
    """Tier 1: least mean against least percentile, five replicas that all vote."""
    for network in NETWORKS:
        for mix in sorted(MIXES):
            for seed in range(seeds):
                found = world(network, mix, seed, sites=5, latency=latency)
                if found is None:
                    continue
                instance, given = found
                problem = Problem(
                    instance, replicas=list(instance.sites), voters=list(instance.sites)
                )
                everyone = tuple(range(5))
                means, values = [], []
                for leader in everyone:
                    chosen = Configuration.of(leader, everyone, everyone)
                    means.append(score_of(problem, chosen) / problem.demand.operations)
                    mixed = mixture(problem, chosen, given)
                    values.append(
                        [
                            percentile(mixed, p / 100, horizon=given.bins) * given.width
                            for p in PERCENTS
                        ]
                    )
                by_mean = int(np.argmin(means))
                # ties of the percentile go to the lower mean
                by_tail = [
                    min((values[ell][k], means[ell], ell) for ell in everyone)[-1]
                    for k in range(len(PERCENTS))
                ]
                yield {
                    "network": network,
                    "mix": mix,
                    "seed": seed,
                    "percents": PERCENTS,
                    "mean_leader_ms": values[by_mean],
                    "tail_leader_ms": [values[ell][k] for k, ell in enumerate(by_tail)],
                    "mean_leader_mean_ms": means[by_mean],
                    "tail_leader_mean_ms": [means[ell] for ell in by_tail],
                }


def plans(seeds: int, latency: Path | None) -> Iterator[Row]:
    """Tier 3: the proven least mean against the local search for p99, five replicas, three vote."""
    for network in NETWORKS:
        for mix in sorted(MIXES):
            for seed in range(seeds):
                found = world(network, mix, seed, latency=latency)
                if found is None:
                    continue
                instance, given = found
                goal = Percentile(99, given)
                problem = Problem(instance, replicas=5, voters=3, objective=goal)
                mean = _solved(problem.replace(objective=MEAN_LATENCY), "exact")
                tail = _solved(problem, "local-search")
                yield {
                    "network": network,
                    "mix": mix,
                    "seed": seed,
                    "mean_plan_ms": goal.value(problem, _configuration(mean)),
                    "tail_plan_ms": tail.objective,
                    "bound_ms": tail.bound,
                    "mean_plan_mean_ms": mean.mean_latency,
                    "tail_plan_mean_ms": tail.mean_latency,
                    "same_leader": mean.leader == tail.leader,
                }


# --- proofs --------------------------------------------------------------------------------------


def proofs() -> Iterator[Row]:
    """Processor seconds of `exact` for four percentiles, two kinds of spreads, every mix."""
    for name, network in itertools.product(PROOFS, NETWORKS[1:]):
        given: Distributions | None = None
        for mix in MIXES:
            instance = placement.load(name, mix=mix)
            if given is None:
                rng = np.random.default_rng([PROOFS.index(name)])
                given = distributions_around(instance, network, rng)
            for (replicas, voters), percent in itertools.product(SIZES, PROVEN):
                problem = Problem(
                    instance, replicas=replicas, voters=voters, objective=Percentile(percent, given)
                )
                began = time.process_time()
                plan = run(load_method("exact"), problem, Options(time_limit=PATIENCE))
                yield {
                    "regions": name,
                    "network": network,
                    "mix": mix,
                    "replicas": replicas,
                    "voters": voters,
                    "percent": percent,
                    "cpu_s": time.process_time() - began,
                    "proven": plan.status is Status.OPTIMAL,
                    "least_mean": bool(plan.stats["least mean proven"]),
                }


def _collect(rows: Iterator[Row], name: str) -> list[Row]:
    found = []
    for row in rows:
        found.append(row)
        if sys.stderr.isatty():
            print(f"{name}: {len(found)}", end="\r", file=sys.stderr)
    print(f"{name}: {len(found)} rows", file=sys.stderr)
    return found


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_folder(parser, "latency")
    parser.add_argument("--seeds", type=int, default=1, help="instances per network and mix (1)")
    parser.add_argument("--runs", type=int, default=7, help="timed runs per row (default 7)")
    parser.add_argument("--part", action="append", choices=PARTS, help="only this part")


def _run_study(options: argparse.Namespace) -> int:
    """Run the benchmark; 0 when the target is met, else 1."""
    for part in options.part or PARTS:
        _measure(part, options.seeds, options.runs, options.latency)
    document = read_json(RESULTS)
    timed = document.get("speed", [])
    late = [row for row in timed if row["target"] and row["cpu_ms"] > row["target"]]
    for row in late:
        print(f"target missed: {row}", file=sys.stderr)
    return 1 if late else 0


def _measure(part: str, seeds: int, runs: int, latency: Path | None) -> None:
    """Run one part and put its rows into the file of results, in place of those that are there."""
    rows = {
        "speed": lambda: speed(runs),
        "leaders": lambda: leaders(MORE * seeds, latency),
        "gaps": lambda: gaps(seeds, latency),
        "plans": lambda: plans(seeds, latency),
        "proofs": proofs,
    }[part]
    found = _collect(rows(), part)
    document: dict[str, object] = {"benchmark": "tail", "machines": {}}
    document |= read_json(RESULTS)
    machines = document["machines"]
    assert isinstance(machines, dict)
    machines[part] = {**machine.describe(["numpy"]), "seeds": seeds}
    document[part] = _rounded(found)
    save_text(RESULTS, _text(document))


def _rounded(value: object) -> object:
    """Round all numbers to a microsecond, so that the file stays small."""
    if isinstance(value, float):
        return round(value, 3)
    if isinstance(value, (list, tuple)):
        return [_rounded(item) for item in value]
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    return value


def _text(document: dict[str, object]) -> str:
    """JSON with one row per line, so that the file stays readable and small."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list):
            lines = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in value)
            parts.append(f" {json.dumps(key)}: [\n  {lines}\n ]")
        else:
            parts.append(f" {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _report() -> dict[str, str]:
    found = tables(read_json(RESULTS))
    return {f"{name} of tail.json": text for name, text in found.items()}


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("tail.json",),
    page="docs/tail.md",
    report=_report,
)
