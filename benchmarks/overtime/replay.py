"""Replays over generated demand: what moving is worth, strategies, tiers, memory, speed, figures.

    python -m benchmarks run overtime.replay                 everything: minutes of processor time
    python -m benchmarks run overtime.replay --only fleets   a part; the others keep what they had
    python -m benchmarks run overtime.replay --databases 60 --days 2 --results DIR
    python -m benchmarks run overtime.leader_shares [--databases 200] [--seed 1]

Writes ``benchmarks/results/replay.json`` and the pictures ``docs/figures/replay-*.png``. The page
of the documentation shows medians; ``python -m benchmarks report`` shows all rows of the file.

``overtime.leader_shares``: the effect of an uneven distribution of leaders, section 6.2 and Figure
4 of Sharov et al., 2015. A tool that does not know where the leaders are takes them for evenly
spread, and predicts by how much the latency falls when all move to the recommended site. The paper
predicted 39.7 % and measured 33 % (median), and explains it: about one third of the leaders were at
one site. Databases of a generated fleet, each on five voters drawn at random, all its demand of a
day together:

* shares: the predicted reduction of the mean, and the true one with a third of the leaders at the
  recommended site, or at any other voter;
* figure 4: one voter is down, its leaders spread over the other four, and all leaders move to the
  recommended site: reductions of the mean and of the median, and one database step by step.
"""

from __future__ import annotations

import argparse
import math
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np

import placement
from benchmarks.harness import machine
from benchmarks.harness.machine import ROOT
from benchmarks.harness.pictures import Panel, save_panels
from benchmarks.harness.results import (
    Row,
    grouped,
    lines_table,
    markdown_table,
    pivot,
    read_json,
    row_table,
)
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import MATRICES, read_matrix
from placement import Configuration, Instance, Problem
from placement.datasets import regions
from placement.errors import MissingDependencyError
from placement.evaluation.objective import MEAN_LATENCY
from placement.feasibility.feasible_plans import kept_diversity
from placement.measures.question import percentile_question
from placement.overtime.migration.simulate import LeaderMigration, migrate, plot_migration
from placement.overtime.replay import NOBODY, STRATEGIES, Deployments, Trace, replay
from placement.overtime.replay.generated_fleets import (
    ClientGround,
    client_ground,
    fleet_trace,
    trace_of,
)
from placement.overtime.replay.plots import plot_reductions
from placement.overtime.replay.results import Replay, gains, summary
from placement.report.plots import Picture, save_figure
from placement.support.checks import BoolArray, FloatArray
from placement.tail import Distributions
from placement.workloads import (
    Clients,
    Consumer,
    Curve,
    Database,
    Flat,
    Office,
    Timeline,
    everywhere,
    fleet,
    generate,
    mix_shares,
    write_parquet,
)

DAY = date(2026, 3, 2)
"""A Monday; no clock changes within the week but America's, on its last day."""

NETWORKS = ("aws-2025", "azure", "aws", "gcp", "world27")
"""Measured AWS (from the folder that --latency names) and Azure, then three with modelled RTTs."""

POLES = ("New York", "Los Angeles", "Sao Paulo", "London", "Mumbai", "Tokyo")
"""Cities that tenants with two or three poles are at home in."""

CLASSES = (
    "world-wide consumers",
    "two poles, evening",
    "three poles, evening",
    "two poles, office",
    "three poles, office",
)
"""Tenants whose demand moves with the sun."""


def network(name: str, latency: Path | None = None) -> Instance | None:
    """Return one of :data:`NETWORKS`; its own demand plays no part. None when it is not there."""
    if name != "aws-2025":
        try:
            return placement.load(name)
        except MissingDependencyError:
            return None
    if latency is None or not (path := latency / MATRICES[name]).exists():
        return None
    names, rtt = read_matrix(path)
    known = {region.id: region for region in regions("aws")}
    points = np.array([(known[site].lat, known[site].lon) for site in names])
    between = rtt.copy()
    np.fill_diagonal(between, 0.0)
    return Instance(
        sites=names,
        clients=names,
        client_rtt=rtt,
        site_rtt=between,
        counts=np.ones((len(names), 5)),
        site_coordinates=points,
        client_coordinates=points,
        name=name,
    )


def poles(clients: Clients, cities: tuple[str, ...], share: float = 0.9) -> FloatArray:
    """Return weights with equal parts of `share` at some cities and a global tail."""
    at = np.array([name in cities for name in clients.names])
    tail = np.where(at, 0.0, everywhere(clients))
    return np.where(at, share / len(cities), (1.0 - share) * tail / tail.sum())


def tenants(ground: ClientGround, mix: str) -> Iterator[tuple[str, Database]]:
    """Yield class and database of all tenants: 3 global, and every pair and triple of `POLES`.

    Global consumers have peaks 2.5, 3.5 and 5 times their troughs; tenants at poles have
    the default curves (evening 3.5, office 8).
    """
    clients = ground.clients
    shapes: list[tuple[str, FloatArray, Curve]] = [
        (CLASSES[0], everywhere(clients), Consumer(ratio=ratio)) for ratio in (2.5, 3.5, 5.0)
    ]
    curves: tuple[tuple[Curve, str], ...] = ((Consumer(), "evening"), (Office(), "office"))
    for daily, words in curves:
        for count, word in ((2, "two"), (3, "three")):
            shapes += [
                (f"{word} poles, {words}", poles(clients, cities), daily)
                for cities in combinations(POLES, count)
            ]
    for index, (kind, weights, curve) in enumerate(shapes):
        yield (
            kind,
            Database(
                index=index,
                name=f"{kind} {index}",
                rate=1e5,
                weights=weights,
                mix=mix_shares(mix),
                curve=curve,
            ),
        )


# --- parts --------------------------------------------------------------------------------------


def _moving(options: argparse.Namespace) -> Iterator[Row]:
    """Static and dynamic gain of tenants whose demand moves with the sun."""
    timeline = Timeline.of_day(DAY, options.days * 48)
    for name in NETWORKS:
        instance = network(name, options.latency)
        if instance is None:
            continue
        ground = client_ground(instance)
        for mix in ("social", "ycsb-b"):
            classes, databases = zip(*tenants(ground, mix), strict=True)
            trace = trace_of(
                ground, instance, databases, timeline, seed=options.seed, law="expected"
            )
            for candidates in ("5 planned", "all sites"):
                found: dict[str, list[tuple[float, ...]]] = {kind: [] for kind in CLASSES}
                for row, kind in enumerate(classes):
                    alone = trace.part(row, row + 1)
                    sites = instance.sites
                    if candidates == "5 planned":  # as a careful owner has for all the demand
                        total = alone.counts[0].sum(axis=0)
                        all_of_it = instance.replace(counts=total, intervals=())
                        sites = placement.solve(Problem(all_of_it, replicas=5, voters=5)).replicas
                    problem = Problem(instance, replicas=5, voters=5, decay=2.0)
                    result = replay(
                        problem,
                        alone,
                        Deployments.same(instance, 1, sites, sites),
                        tiers=(1,),
                        strategies=("optimized", "average", "static", "worst"),
                    )
                    (line,) = gains(result).to_dict("records")
                    moves = float(result.moves(1, "oracle")[0] / options.days)
                    found[kind].append((line["dynamic"], line["realised"], line["static"], moves))
                for kind, lines in found.items():
                    table = np.array(lines)
                    row_of: Row = {
                        "network": name, "mix": mix, "candidates": candidates, "tenants": kind,
                        "count": len(table),
                    }  # fmt: skip
                    for place, gain in enumerate(("dynamic", "realised", "static")):
                        for words, of in (("least", np.min), ("median", np.median),
                                          ("most", np.max)):  # fmt: skip
                            row_of[f"{gain}_{words}"] = round(float(of(table[:, place])), 2)
                    yield row_of | {"moves_per_day": round(float(table[:, 3].mean()), 2)}


def drawn_fleet(
    name: str, databases: int, seed: int, intervals: int = 48, latency: Path | None = None
) -> tuple[Instance, Trace, tuple[str | None, ...]]:
    """Draw a fleet on a network."""
    instance = network(name, latency)
    assert instance is not None, name
    trace, wishes = fleet_trace(instance, databases, Timeline.of_day(DAY, intervals), seed=seed)
    return instance, trace, wishes


def deployments(
    problem: Problem, trace: Trace, wishes: Sequence[str | None], kind: str, seed: int
) -> Deployments:
    """Return what the databases run on.

    ``planned``: the proven plan for the first interval. ``scattered``: seven sites at random, the
    first five of which vote: what grew without a plan.
    """
    if kind == "planned":
        held = Deployments.solved(problem, trace)
    else:
        held = scattered(problem.instance, len(trace), seed)
    return held.preferring(problem.instance, wishes)


def scattered(instance: Instance, databases: int, seed: int) -> Deployments:
    """Return seven sites at random for each database, of which the first five vote."""
    rng = np.random.default_rng(seed)
    replicas = np.zeros((databases, len(instance.sites)), dtype=bool)
    voters = replicas.copy()
    for row in range(databases):
        chosen = rng.permutation(replicas.shape[1])[:7]
        replicas[row, chosen], voters[row, chosen[:5]] = True, True
    return Deployments(replicas, voters, np.full(databases, NOBODY))


def fleet_replays(seed: int, databases: int) -> Iterator[tuple[str, str, Replay]]:
    """Yield network, kind of deployment and the replay in tiers 1 and 2."""
    for name in ("azure", "world27"):
        if network(name) is None:
            continue
        instance, trace, wishes = drawn_fleet(name, databases, seed)
        problem = Problem(instance, replicas=7, voters=5, decay=2.0)
        for kind in ("planned", "scattered"):
            held = deployments(problem, trace, wishes, kind, seed)
            yield name, kind, replay(problem, trace, held)


def _lines(result: Replay) -> Iterator[Row]:
    for line in summary(result).to_dict("records"):
        yield {str(name): _short(value) for name, value in line.items()}


def _fleets(options: argparse.Namespace) -> Iterator[Row]:
    """Strategies over fleets, by network and deployment."""
    for name, kind, result in fleet_replays(options.seed, options.databases):
        for line in _lines(result):
            yield {"network": name, "deployment": kind, **line}


def _memory(options: argparse.Namespace) -> Iterator[Row]:
    """Costs of the optimized strategy by decay and length of interval."""
    instance, trace, wishes = drawn_fleet(
        "world27", max(1, options.databases * 2 // 5), options.seed
    )
    base = Problem(instance, replicas=7, voters=5)
    held = deployments(base.replace(decay=2.0), trace, wishes, "scattered", options.seed)
    for merge in (1, 2, 4, 8):
        merged = trace.merged(merge)
        for decay in (1.0, 1.1, 1.25, 1.5, 2.0, 4.0, math.inf):
            result = replay(
                base.replace(decay=decay), merged, held, tiers=(1,), strategies=("optimized",)
            )
            line = next(_lines(result))
            yield {
                "minutes": 30 * merge,
                "decay": decay if math.isfinite(decay) else "inf",
                **{name: line[name] for name in ("overhead_mean", "overhead_p95", "moves")},
            }


def _tier3(options: argparse.Namespace) -> Iterator[Row]:
    """All three tiers on a small fleet, with a proof for every interval of the oracle."""
    databases = max(1, options.databases * 48 // 1000)
    instance, trace, wishes = drawn_fleet("world27", databases, options.seed)
    problem = Problem(instance, replicas=5, voters=3, decay=2.0)
    held = deployments(problem, trace, wishes, "planned", options.seed)
    result = replay(problem, trace, held, tiers=(1, 2, 3))
    for line in _lines(result):
        yield {**line, "proven": result.proven}


def _speed(options: argparse.Namespace) -> Iterator[Row]:
    """Processor time of the generator and of replays, one process, everything included."""
    databases, seed = options.databases, options.seed
    clients: Clients = client_ground(placement.load("world27")).clients
    fortnight = Timeline.of_day(DAY, 14 * 48)
    drawn = fleet(clients, databases, seed=seed, timeline=fortnight)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "fleet.parquet"
        before = time.process_time()
        rows = write_parquet(
            path, generate(drawn, clients, fortnight, seed=seed), clients, fortnight
        )
        yield {
            "what": "generate and stream to Parquet",
            "size": f"{databases:,} databases × {fortnight.intervals} intervals × {len(clients)} "
            f"clients × 5 operations; {rows:,} rows, {path.stat().st_size / 1e6:.0f} MB",
            "cpu_seconds": round(time.process_time() - before, 2),
        }
    instance, trace, wishes = drawn_fleet("world27", databases, seed)
    problem = Problem(instance, replicas=7, voters=5, decay=2.0)
    held = deployments(problem, trace, wishes, "scattered", seed)
    for what, tiers in (("tier 1", (1,)), ("tier 2", (2,)), ("tiers 1 and 2", (1, 2))):
        before = time.process_time()
        replay(problem, trace, held, tiers=tiers, strategies=STRATEGIES)
        yield {
            "what": f"{what}, all strategies, 7 replicas",
            "size": f"{databases:,} databases × 48 intervals × {len(clients)} clients",
            "cpu_seconds": round(time.process_time() - before, 2),
        }


def _short(value: object) -> object:
    if isinstance(value, float):
        return round(value, 3) if math.isfinite(value) else None
    return value


# --- figures of Sharov et al. (2015) on generated demand -----------------------------------------

TRIES = 60
"""Deployments of Figure 7, of which the two best examples are shown."""

STRONG_READS = np.array([0.0, 0.0, 1.0, 0.0, 0.0])


def _kept(
    number: int, figure: Picture | Sequence[Panel], numbers: Mapping[str, object]
) -> list[Row]:
    """Save a figure; return its numbers, a row for each curve or number."""
    path = ROOT / "docs" / "figures" / f"replay-figure-{number}.png"
    if isinstance(figure, Sequence):
        save_panels(path, figure)
    else:
        save_figure(figure, path, force=True, dpi=110)
    return [
        {"": name, **(value if isinstance(value, dict) else {"value": value})}
        for name, value in numbers.items()
    ]


def _reduction(result: Replay, tier: int) -> tuple[FloatArray, BoolArray]:
    """Return the reduction in percent per database and interval, and who prefers a leader.

    The reduction is against tier 1: the preferred leader with the voters of today, or leaders
    spread evenly over the voters where no leader is preferred.
    """
    wished = result.outcome(1, "preferred").score
    spread = result.outcome(1, "average").score
    prefers = ~np.isnan(wished[:, 0])
    now = np.where(prefers[:, np.newaxis], wished, spread)
    better = result.outcome(tier, "optimized").score
    ratio = np.divide(better, now, out=np.ones_like(now), where=now > 0)
    return 100.0 * (1.0 - ratio), prefers


def _figure_1(options: argparse.Namespace) -> list[Row]:
    """Reduction of the mean latency per database, with and without a preferred leader."""
    numbers: dict[str, object] = {}
    shown: dict[str, FloatArray] = {}
    for network_name, kind, result in fleet_replays(options.seed, options.databases):
        name = f"{network_name}, {kind}"
        reduction, prefers = _reduction(result, 1)
        mean = reduction.mean(axis=1)
        for words, part in (("with", mean[prefers]), ("without", mean[~prefers])):
            numbers[f"{name}, {words} a preferred leader"] = {
                "databases": len(part),
                "below 1 %": _share(part < 1),
                **{f"{limit} % or more": _share(part >= limit) for limit in (10, 50, 90)},
            }
            shown.setdefault(f"{name}, {words} a preferred leader", part)
    edges = [0, 1, 5, *range(10, 101, 10)]
    bars = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
    axes = {"xlabel": "reduction of the mean latency (%)", "ylabel": "databases (%)"}
    panels = []
    for name, values in list(shown.items())[:2]:
        count, _ = np.histogram(np.clip(values, 0, 100), edges)
        share = 100 * count / max(1, len(values))
        lines: dict[str, Any] = {name: (bars, share, {"linestyle": "none", "marker": "o"})}
        panels.append(Panel(lines, axes | {"title": f"{len(values)} databases"}))
    return _kept(1, panels, numbers)


def _share(where: np.ndarray) -> float | None:
    return round(100 * float(where.mean()), 1) if where.size else None


def _network() -> tuple[Instance, ClientGround]:
    instance = network("azure") or network("world27")
    assert instance is not None
    return instance, client_ground(instance)


def _database(
    weights: FloatArray, mix: FloatArray, curve: Curve | None = None, index: int = 0
) -> Database:
    return Database(
        index=index,
        name=f"db{index}",
        rate=2e5,
        weights=weights / weights.sum(),
        mix=mix / mix.sum(),
        curve=Consumer() if curve is None else curve,
    )


def _figure_3(options: argparse.Namespace) -> list[Row]:
    """Strategies above the oracle for a database of bounded reads and one without transactions."""
    instance, ground = _network()
    timeline = Timeline.of_day(DAY)
    mixes = {
        "(a) 92 % bounded reads": np.array([2.0, 92, 4, 2, 0]),
        "(b) 38 % strong, 60 % weak reads": np.array([60.0, 2, 38, 0, 0]),
    }
    tenants = [
        _database(everywhere(ground.clients), mix, index=i) for i, mix in enumerate(mixes.values())
    ]
    drawn = trace_of(ground, instance, tenants, timeline, seed=options.seed)
    trace = Trace(tuple(mixes), drawn.intervals, drawn.counts)
    problem = Problem(instance, replicas=7, voters=5, decay=2.0)
    both = scattered(instance, 1, options.seed)
    held = Deployments(
        np.repeat(both.replicas, 2, axis=0), np.repeat(both.voters, 2, axis=0), np.full(2, NOBODY)
    )
    result = replay(problem, trace, held, tiers=(1,))
    over = {
        name: {
            strategy: result.overhead(1, strategy)[row]
            for strategy in ("optimized", "closest-to-writes", "smallest-quorum", "average")
        }
        for row, name in enumerate(trace.databases)
    }
    figure = plot_reductions(
        over,
        result.intervals,
        of="latency above the oracle, %",
        title="After Figure 3 of Sharov et al. 2015: tier 1",
    )
    numbers = {
        name: {strategy: _rounded(line.mean()) for strategy, line in lines.items()}
        for name, lines in over.items()
    }
    return _kept(3, figure, numbers)


def _over_time(ratios: Mapping[str, FloatArray], label: str, moves: Sequence[int] = ()) -> Panel:
    """Draw ratios over half hours, and marks at moves of the leader."""
    lines: dict[str, Any] = {
        name: (np.arange(len(ratio)) / 2, ratio, {}) for name, ratio in ratios.items()
    }
    marks = {f"{'_' if number else ''}the leader changes sides{number or ''}": at / 2
             for number, at in enumerate(moves)}  # fmt: skip
    return Panel(lines, {"xlabel": "hours", "ylabel": label, "ylim": (0, None)}, marks)


def _figure_5(options: argparse.Namespace) -> list[Row]:
    """European over American traffic for 120 hours, of people and of machines."""
    _, ground = _network()
    clients = ground.clients
    timeline = Timeline.of_day(DAY, 240)
    america = np.array([c == "US" for c in clients.countries])
    europe = np.array([c == "Europe" for c in clients.continents])
    base = everywhere(clients)
    weights = np.where(america, base / base[america].sum(), 0.0)
    weights += np.where(europe, 0.35 * base / base[europe].sum(), 0.0)
    kinds: dict[str, Curve] = {"people": Consumer(), "machines": Flat()}
    tenants = [_database(weights, STRONG_READS, curve, i) for i, curve in enumerate(kinds.values())]
    blocks = generate(tenants, clients, timeline, seed=options.seed)
    by_city = np.concatenate([block.counts.sum(axis=-1) for block in blocks]).astype(float)
    ratios = {
        name: _over(by_city[row][:, europe], by_city[row][:, america])
        for row, name in enumerate(kinds)
    }
    numbers: dict[str, object] = {
        name: {
            "least": _rounded(100 * ratio.min()),
            "mean": _rounded(100 * ratio.mean()),
            "most": _rounded(100 * ratio.max()),
        }
        for name, ratio in ratios.items()
    }
    return _kept(5, [_over_time(ratios, "Europe / United States")], numbers)


def _over(top: FloatArray, bottom: FloatArray) -> FloatArray:
    return np.asarray(top.sum(axis=1) / bottom.sum(axis=1))


def _figure_6(options: argparse.Namespace) -> list[Row]:
    """East Coast over West Coast traffic for 48 hours, and where the leader goes."""
    instance = network("aws")
    assert instance is not None
    ground = client_ground(instance)
    zones = np.array(ground.clients.timezones)
    east = np.isin(zones, ["America/New_York", "America/Detroit"])
    west = zones == "America/Los_Angeles"
    base = everywhere(ground.clients)
    weights = np.where(east, base / base[east].sum(), 0.0)
    weights += np.where(west, base / base[west].sum(), 0.0)
    timeline = Timeline.of_day(DAY, 96)
    tenant = _database(weights, STRONG_READS)
    trace = trace_of(ground, instance, [tenant], timeline, seed=options.seed)
    ratio = _over(trace.counts[0].sum(axis=-1)[:, east], trace.counts[0].sum(axis=-1)[:, west])
    voters = ("us-east-1", "us-east-2", "us-west-1", "us-west-2", "ca-central-1")
    held = Deployments.same(instance, 1, voters, voters)
    result = replay(Problem(instance, replicas=5, voters=5, decay=2.0), trace, held, tiers=(1,))
    leader = result.outcome(1, "optimized").leader[0]
    western = np.array(["west" in instance.sites[site] for site in leader])
    moves = 1 + np.nonzero(western[1:] != western[:-1])[0]
    agree = (ratio[1:] > 1) == ~western
    numbers: dict[str, object] = {
        "ratio least": _rounded(ratio.min()),
        "ratio most": _rounded(ratio.max()),
        "changes of side": len(moves),
        "intervals in which the leader is on the busier side": _share(agree),
    }
    later = (moves + 1).tolist()  # the replay begins with the second interval
    panel = _over_time({"East Coast / West Coast": ratio}, "operations, East / West", later)
    return _kept(6, [panel], numbers)


def _with_diversity(problem: Problem, trace: Trace, held: Deployments) -> FloatArray:
    """Reduction by tier 2 where each database keeps the diversity that its deployment has."""
    names, rows = problem.instance.sites, []
    for number in range(len(trace)):
        part = held.part(number, number + 1)
        voters, replicas = (
            [names[site] for site in np.nonzero(mask[0])[0].tolist()]
            for mask in (part.voters, part.replicas)
        )
        rules = kept_diversity(problem.instance, voters, replicas)
        kept = problem.replace(diversity=rules)
        result = replay(kept, trace.part(number, number + 1), part)
        rows.append(_reduction(result, 2)[0])
    return np.concatenate(rows)


def _figure_7(options: argparse.Namespace) -> list[Row]:
    """Reduction by tiers 1 and 2 over three days, for the two best examples of many.

    Beside them stands tier 2 with the diversity of every deployment kept, as the paper keeps it.
    """
    instance, ground = _network()
    timeline = Timeline.of_day(DAY, 144)
    mixes = {
        "(a) 98 % strong reads": np.array([1.0, 1, 98, 0, 0]),
        "(b) 57 % strong reads, 42 % multi-group": np.array([1.0, 0, 57, 0, 42]),
    }
    panels: dict[str, dict[str, FloatArray]] = {}
    numbers: dict[str, object] = {}
    held = scattered(instance, TRIES, options.seed)
    problem = Problem(instance, replicas=7, voters=5, decay=2.0)
    for index, (name, mix) in enumerate(mixes.items()):
        one = trace_of(
            ground,
            instance,
            [_database(everywhere(ground.clients), mix, index=index)],
            timeline,
            seed=options.seed,
        )
        trace = Trace(
            tuple(f"{i}" for i in range(TRIES)),
            one.intervals,
            np.repeat(one.counts, TRIES, axis=0),
        )
        result = replay(problem, trace, held)
        tiers = {f"tier {tier}": _reduction(result, tier)[0] for tier in (1, 2)}
        same = (
            result.outcome(1, "optimized").leader == result.outcome(2, "optimized").leader
        ).mean(axis=1)
        gap = (tiers["tier 2"] - tiers["tier 1"]).mean(axis=1)
        wanted = gap if index == 0 else np.where(same > 0.95, gap, -np.inf)
        best = int(wanted.argmax())
        tiers["tier 2, diversity kept"] = _with_diversity(problem, trace, held)
        panels[name] = {line: each[best] for line, each in tiers.items()}
        voting = held.voters[best][result.outcome(2, "optimized").leader[best]]
        numbers[name] = {
            **{line: _rounded(each[best].mean()) for line, each in tiers.items()},
            "same leader in": _rounded(100 * same[best]),
            "leader of tier 2 was read-only in": _share(~voting),
            **{
                f"median of all deployments, {line}": _rounded(np.median(each.mean(axis=1)))
                for line, each in tiers.items()
            },
            "deployments": TRIES,
        }
    figure = plot_reductions(
        panels,
        timeline.labels[1:],
        title="After Figure 7 of Sharov et al. 2015: below leaders spread evenly",
    )
    return _kept(7, figure, numbers)


def _rounded(value: float | np.floating) -> float | None:
    return round(float(value), 2) if np.isfinite(value) else None


# --- the page -----------------------------------------------------------------------------------


def _span(rows: Sequence[Row], name: str) -> str:
    values = [float(row[name]) for row in rows]
    return f"{min(values):.1f}–{max(values):.1f}"


def _moving_table(rows: Sequence[Row]) -> str:
    """Return the range over the networks of the medians, by mix, candidates and tenants."""
    keys = ("mix", "candidates", "tenants")
    # those of the evening lie between the two others
    groups = grouped((row for row in rows if not row["tenants"].endswith("evening")), *keys)
    shown = ("dynamic_median", "realised_median", "static_median", "moves_per_day")
    return markdown_table(
        (*keys, "dynamic", "realised", "static", "moves a day"),
        ((*(mine[0][key] for key in keys), *(_span(mine, name) for name in shown))
         for mine in groups),
    )  # fmt: skip


def _by_strategy(rows: Sequence[Row], columns: Mapping[str, Mapping[str, object]]) -> str:
    """Return "mean (p95)" above the oracle: a row per strategy, a column per set of conditions."""
    shown = [
        {**row, "head": head}
        for head, wanted in columns.items()
        for row in rows
        if row["strategy"] != "oracle" and all(row[name] == x for name, x in wanted.items())
    ]
    return pivot(
        shown, "strategy", "head",
        lambda mine: f"{mine[0]['overhead_mean']:.1f} ({mine[0]['overhead_p95']:.1f})",
    )  # fmt: skip


def _memory_table(rows: Sequence[Row]) -> str:
    shown = [{**row, "τ": row["decay"], "length": f"{row['minutes']} minutes"} for row in rows]
    return pivot(
        shown,
        "τ",
        "length",
        lambda mine: f"{mine[0]['overhead_mean']:.2f} ({mine[0]['moves']:.1f})",
    )


def _copies(rows: Sequence[Row]) -> str:
    wanted = ("optimized", "static", "oracle")
    return row_table(
        "strategy|leader moves|copies",
        "{strategy}|{moves}|{copies}",
        (row for row in rows if row["tier"] == 3 and row["strategy"] in wanted),
    )


def tables() -> dict[str, str]:
    """Return the tables of the page, by name."""
    document = read_json(STUDY.path)
    fleets_shown = {
        f"{network}, {deployment}": {
            "network": network, "deployment": deployment, "tier": 1,
        }
        for network in ("azure", "world27")
        for deployment in ("planned", "scattered")
    }  # fmt: skip
    tiers = {f"tier {tier}": {"tier": tier} for tier in (1, 2, 3)}
    return {
        "machine": f"Machine: {machine.sentence(document['machine'])}. Times are processor times.",
        "moving": _moving_table(document["moving"]),
        "fleets": _by_strategy(document["fleets"], fleets_shown),
        "tier3": _by_strategy(document["tier3"], tiers),
        "copies": _copies(document["tier3"]),
        "memory": _memory_table(document["memory"]),
        "speed": row_table("what|size|s", "{what}|{size}|{cpu_seconds}", document["speed"]),
        "figure 1": lines_table([row for row in document["figure 1"] if "scattered" in row[""]]),
        **{
            f"figure {number}": lines_table(document[f"figure {number}"]) for number in (3, 5, 6, 7)
        },
    }


STUDY = Study(
    "replay",
    {
        "moving": _moving,
        "fleets": _fleets,
        "memory": _memory,
        "tier3": _tier3,
        "speed": _speed,
        "figure 1": _figure_1,
        "figure 3": _figure_3,
        "figure 5": _figure_5,
        "figure 6": _figure_6,
        "figure 7": _figure_7,
    },
    {"seed": 0, "databases": 1000, "days": 7},
    packages=("numpy", "pandas", "pyarrow"),
    folders=("latency",),
    description=__doc__,
    page="docs/benchmarks/replay.md",
    report=tables,
)


# --- leaders that are not evenly spread -----------------------------------------------------------


_VOTERS = 5
THIRD = 1 / 3
NEAR = (35.0, 45.0)
"""Predicted reductions that count as near the paper's, per cent."""

FIGURE = ROOT / "docs" / "figures" / "leader_migration.png"
BINS = 1200


def true_reduction(means: FloatArray, best: int, heavy: int, share: float) -> float:
    """Return the fall in % to `best` where `heavy` has a share, the others the rest, evenly."""
    weights = np.full(len(means), (1 - share) / (len(means) - 1))
    weights[heavy] = share
    return float(100 * (1 - means[best] / (weights @ means)))


def _questions(
    name: str, databases: int, seed: int, latency: Path | None
) -> list[tuple[Problem, Configuration]]:
    """Databases with the best of five random voters as leader."""
    instance, trace, _ = drawn_fleet(name, databases, seed, latency=latency)
    spread = Distributions.parametric(instance, variation=0.0, bins=BINS)
    rng = np.random.default_rng(seed)
    found = []
    for counts in trace.counts.sum(axis=1):
        chosen = tuple(sorted(rng.permutation(len(instance.sites))[:_VOTERS].tolist()))
        names = [instance.sites[site] for site in chosen]
        problem = Problem(
            instance.replace(counts=counts, intervals=()),
            replicas=names,
            voters=names,
            objective=percentile_question(50, spread),
        )
        best = chosen[int(np.argmin(_means(problem, chosen)))]
        found.append((problem, Configuration.of(best, chosen, chosen)))
    return found


def _means(problem: Problem, sites: tuple[int, ...]) -> FloatArray:
    """Mean latency in ms under each of the sites as leader."""
    plain = problem.replace(objective=MEAN_LATENCY)
    each = [Configuration.of(site, sites, sites) for site in sites]
    return MEAN_LATENCY.values(plain, each) / plain.demand.operations


def _medians(problem: Problem, chosen: Configuration) -> tuple[float, float]:
    """Reductions of the median in per cent: from even leaders, and with a third at the best."""
    goal, sites = problem.objective, chosen.voters
    each = [Configuration.of(site, sites, sites) for site in sites]
    after = goal.value(problem, chosen)
    found = []
    for share in (1 / _VOTERS, THIRD):
        rest = (1 - share) / (_VOTERS - 1)
        weights = [share if site == chosen.leader else rest for site in sites]
        found.append(100 * (1 - after / goal.mixed(problem, each, weights)))
    return found[0], found[1]


def _each(options: argparse.Namespace) -> Iterator[tuple[str, list[tuple[Problem, Configuration]]]]:
    for name in NETWORKS:
        if network(name, options.latency) is not None:
            yield name, _questions(name, options.databases, options.seed, options.latency)


def _share_rows(options: argparse.Namespace) -> Iterator[Row]:
    for name, questions in _each(options):
        rows = []
        for problem, chosen in questions:
            means = _means(problem, chosen.voters)
            best = chosen.voters.index(chosen.leader)
            predicted, true = (true_reduction(means, best, best, x) for x in (1 / _VOTERS, THIRD))
            near_it = NEAR[0] <= predicted <= NEAR[1]
            medians = _medians(problem, chosen) if near_it else (np.nan, np.nan)
            rows.append((predicted, true, *medians))
        found = np.array(rows)
        near = found[(found[:, 0] >= NEAR[0]) & (found[:, 0] <= NEAR[1])]
        row: Row = {"network": name, "databases": len(found), "near": len(near)}
        for place, key in enumerate(("predicted", "third at best", "p50", "p50, third at best")):
            row[key] = round(float(near[:, place].mean()), 1) if len(near) else None
        yield row


def _moved_rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield reductions when the leaders of four voters move to the best, for each network.

    The course of a database on Azure is drawn.
    """
    for name, questions in _each(options):
        courses: list[LeaderMigration] = []
        for problem, chosen in questions:
            names = problem.instance.sites
            down = next(site for site in reversed(chosen.voters) if site != chosen.leader)
            rest = {names[site]: 1 / (_VOTERS - 1) for site in chosen.voters if site != down}
            courses.append(migrate(problem, chosen, shares=rest, groups=100, per_step=7))
        fell = np.array([
            [100 * (1 - line[-1] / line[0]) for line in (one.mean, one.of(50.0), one.of(99.0))]
            for one in courses
        ])  # fmt: skip
        if name == "azure":
            closest = int(np.abs(fell - np.array([30.0, 60.0, 30.0])).sum(axis=1).argmin())
            title = "Leaders move to the recommended site"
            shown = plot_migration(courses[closest], title=title)
            save_figure(shown, FIGURE, force=True, dpi=110)
        median, halves = np.median(fell, axis=0).tolist(), fell[:, 1]
        yield {
            "network": name,
            "databases": len(fell),
            **dict(zip(("mean", "p50", "p99"), (round(x, 1) for x in median), strict=True)),
            "p50 at least twice the mean": int(
                ((halves >= 2 * fell[:, 0]) & (fell[:, 0] > 1)).sum()
            ),
            "p50 halves": int((halves >= 50).sum()),
            "p50 rises": int((halves < 0).sum()),
        }


def shares_tables() -> dict[str, str]:
    """Return the tables of docs/over-time.md from the results that the project keeps."""
    document = read_json(SHARES.path)
    shown = ("network", "near", "predicted", "third at best", "p50", "p50, third at best")
    return {
        "leader shares": lines_table(document["shares"], shown),
        "moved leaders": lines_table(document["figure 4"]),
    }


SHARES = Study(
    "leader_shares",
    {"shares": _share_rows, "figure 4": _moved_rows},
    {"databases": 200, "seed": 1},
    folders=("latency",),
    description=__doc__,
    page="docs/over-time.md",
    report=shares_tables,
)
