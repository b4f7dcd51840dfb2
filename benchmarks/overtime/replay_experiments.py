"""The experiments of :mod:`benchmarks.overtime.replay`; each returns rows for its table.

Networks and tenants that :mod:`benchmarks.overtime.replay` runs on.
"""

from __future__ import annotations

import csv
import dataclasses
import math
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import combinations
from pathlib import Path

import numpy as np

import placement
from benchmarks.harness.result_files import Row
from placement import Instance, Problem
from placement.datasets import regions
from placement.errors import MissingDependencyError
from placement.overtime.replay import NOBODY, STRATEGIES, Deployments, Replay, Trace, replay
from placement.overtime.replay.generated_fleets import (
    ClientGround,
    client_ground,
    fleet_trace,
    trace_of,
)
from placement.overtime.replay.results import gains, summary
from placement.support.checks import FloatArray
from placement.workloads import (
    Clients,
    Consumer,
    Curve,
    Database,
    Office,
    Timeline,
    everywhere,
    fleet,
    generate,
    mix_shares,
    write_parquet,
)

__all__ = [
    "CLASSES",
    "NETWORKS",
    "POLES",
    "Tenant",
    "deployments",
    "drawn_fleet",
    "fleets",
    "memory",
    "moving",
    "network",
    "poles",
    "speed",
    "tenants",
    "tier3",
]

DAY = date(2026, 3, 2)
"""A Monday; no clock changes within the week but America's, on its last day."""

READ = ("cache", "social", "configuration", "oltp", "ycsb-b")
"""Mixes with at most 5 % transactions."""


# --- what moving is worth --------------------------------------------------------------------


def moving(seed: int, latency: Path | None, days: int = 7) -> list[Row]:
    """Static and dynamic gain of tenants whose demand moves with the sun."""
    timeline = Timeline.of_day(DAY, days * 48)
    rows: list[Row] = []
    for name in NETWORKS:
        instance = network(name, latency)
        if instance is None:
            continue
        ground = client_ground(instance)
        for mix in ("social", "ycsb-b"):
            known = list(tenants(ground, mix))
            trace = trace_of(
                ground,
                instance,
                [each.database for each in known],
                timeline,
                seed=seed,
                law="expected",
            )
            everywhere = (instance.sites, instance.sites)
            for candidates in ("5 planned", "all sites"):
                found: dict[str, list[tuple[float, ...]]] = {kind: [] for kind in CLASSES}
                for row, tenant in enumerate(known):
                    alone = trace.part(row, row + 1)
                    sites = everywhere if candidates == "all sites" else _planned(instance, alone)
                    problem = Problem(instance, replicas=5, voters=5, decay=2.0)
                    held = Deployments.same(instance, 1, *sites)
                    result = replay(
                        problem,
                        alone,
                        held,
                        tiers=(1,),
                        strategies=("optimized", "average", "static", "worst"),
                    )
                    (line,) = gains(result).to_dict("records")
                    moves = result.moves(1, "oracle")[0] / days
                    found[tenant.kind].append(
                        (line["dynamic"], line["realised"], line["static"], float(moves))
                    )
                for kind, lines in found.items():
                    table = np.array(lines)
                    rows.append(
                        {
                            "network": name,
                            "mix": mix,
                            "candidates": candidates,
                            "tenants": kind,
                            "count": len(table),
                            **_span("dynamic", table[:, 0]),
                            **_span("realised", table[:, 1]),
                            **_span("static", table[:, 2]),
                            "moves_per_day": round(float(table[:, 3].mean()), 2),
                        }
                    )
    return rows


def _planned(instance: Instance, trace: Trace) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Five voters planned for the whole of the demand, as a careful owner has."""
    total = instance.replace(counts=trace.counts[0].sum(axis=0), intervals=())
    plan = placement.solve(Problem(total, replicas=5, voters=5))
    return plan.replicas, plan.replicas


def _span(name: str, values: FloatArray) -> Row:
    return {
        f"{name}_least": round(float(values.min()), 2),
        f"{name}_median": round(float(np.median(values)), 2),
        f"{name}_most": round(float(values.max()), 2),
    }


# --- strategies on fleets --------------------------------------------------------------------


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
        rng = np.random.default_rng(seed)
        replicas = np.zeros((len(trace), len(problem.instance.sites)), dtype=bool)
        voters = replicas.copy()
        for row in range(len(trace)):
            chosen = rng.permutation(replicas.shape[1])[:7]
            replicas[row, chosen], voters[row, chosen[:5]] = True, True
        held = Deployments(replicas, voters, np.full(len(trace), NOBODY))
    return held.preferring(problem.instance, wishes)


def fleets(seed: int, databases: int) -> tuple[list[Row], dict[str, Replay]]:
    """Strategies in tiers 1 and 2 over fleets, by network, deployment and kind of mix."""
    rows: list[Row] = []
    replays = {}
    for name in ("azure", "world27"):
        if network(name) is None:
            continue
        instance, trace, wishes = drawn_fleet(name, databases, seed)
        problem = Problem(instance, replicas=7, voters=5, decay=2.0)
        for kind in ("planned", "scattered"):
            held = deployments(problem, trace, wishes, kind, seed)
            result = replay(problem, trace, held)
            replays[f"{name}, {kind}"] = result
            mixes = np.array([database.rsplit("-", 1)[0] for database in trace.databases])
            for label, wanted in (
                ("all mixes", np.ones(len(mixes), dtype=bool)),
                ("read-dominated mixes", np.isin(mixes, READ)),
                ("transactions", ~np.isin(mixes, READ)),
            ):
                part = _rows_of(result, wanted)
                for line in summary(part).to_dict("records"):
                    rows.append(
                        {
                            "network": name,
                            "deployment": kind,
                            "mixes": label,
                            **{str(k): _short(v) for k, v in line.items()},
                        }
                    )
    return rows, replays


def _rows_of(result: Replay, wanted: np.ndarray) -> Replay:
    """Keep some databases of a replay."""
    return dataclasses.replace(
        result,
        databases=tuple(np.array(result.databases)[wanted].tolist()),
        operations=result.operations[wanted],
        outcomes=tuple(
            dataclasses.replace(
                each,
                leader=each.leader[wanted],
                voters=each.voters[wanted],
                replicas=each.replicas[wanted],
                score=each.score[wanted],
            )
            for each in result.outcomes
        ),
    )


def memory(seed: int, databases: int) -> list[Row]:
    """Costs of the optimized strategy by decay and length of interval."""
    instance, trace, wishes = drawn_fleet("world27", databases, seed)
    base = Problem(instance, replicas=7, voters=5)
    held = deployments(base.replace(decay=2.0), trace, wishes, "scattered", seed)
    rows: list[Row] = []
    for merge in (1, 2, 4, 8):
        merged = trace.merged(merge)
        for decay in (1.0, 1.1, 1.25, 1.5, 2.0, 4.0, math.inf):
            result = replay(
                base.replace(decay=decay), merged, held, tiers=(1,), strategies=("optimized",)
            )
            (line, _) = summary(result).to_dict("records")
            rows.append(
                {
                    "minutes": 30 * merge,
                    "decay": decay if math.isfinite(decay) else "inf",
                    "overhead_mean": _short(line["overhead_mean"]),
                    "overhead_p95": _short(line["overhead_p95"]),
                    "moves": _short(line["moves"]),
                }
            )
    return rows


def tier3(seed: int, databases: int) -> tuple[list[Row], float, Replay]:
    """All three tiers on a small fleet, with a proof for every interval of the oracle."""
    instance, trace, wishes = drawn_fleet("world27", databases, seed)
    problem = Problem(instance, replicas=5, voters=3, decay=2.0)
    held = deployments(problem, trace, wishes, "planned", seed)
    before = time.process_time()
    result = replay(problem, trace, held, tiers=(1, 2, 3))
    seconds = time.process_time() - before
    rows: list[Row] = [
        {str(k): _short(v) for k, v in line.items()} for line in summary(result).to_dict("records")
    ]
    return rows, seconds, result


# --- speed -----------------------------------------------------------------------------------


def speed(seed: int, databases: int) -> list[Row]:
    """Processor time of the generator and of replays, one process, everything included."""
    return list(_speed(seed, databases))


def _speed(seed: int, databases: int) -> Iterator[Row]:
    instance = placement.load("world27")
    ground = client_ground(instance)
    clients: Clients = ground.clients
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
    everyone = Deployments(
        np.ones_like(held.replicas), np.ones_like(held.voters), np.full(len(held), NOBODY)
    )
    size = f"{databases:,} databases × 48 intervals × {len(clients)} clients"
    for what, deployed, tiers in (
        ("tier 1, all strategies, 7 replicas", held, (1,)),
        ("tier 2, all strategies, 7 replicas", held, (2,)),
        ("tiers 1 and 2, all strategies, 7 replicas", held, (1, 2)),
        ("tiers 1 and 2, all strategies, 27 replicas, all vote", everyone, (1, 2)),
    ):
        before = time.process_time()
        result = replay(problem, trace, deployed, tiers=tiers, strategies=STRATEGIES)
        yield {
            "what": what,
            "size": size,
            "cpu_seconds": round(time.process_time() - before, 2),
        }
    rng = np.random.default_rng(seed)
    varying = instance.replace(
        client_rtt=instance.client_rtt * rng.lognormal(0, 0.1, (48, *instance.client_rtt.shape)),
        site_rtt=instance.site_rtt * rng.lognormal(0, 0.1, (48, *instance.site_rtt.shape)),
        counts=np.ones((48, len(clients), 5)),
        intervals=trace.intervals,
    )
    before = time.process_time()
    replay(problem.replace(instance=varying), trace, held, tiers=(1, 2))
    yield {
        "what": "tiers 1 and 2, all strategies, 7 replicas, RTTs of each interval",
        "size": size,
        "cpu_seconds": round(time.process_time() - before, 2),
    }
    before = time.process_time()
    lines = len(result.to_frame())
    yield {
        "what": "the tidy table, 8 strategies in 2 tiers",
        "size": f"{lines:,} rows",
        "cpu_seconds": round(time.process_time() - before, 2),
    }


def _short(value: object) -> object:
    if isinstance(value, float):
        return round(value, 3) if math.isfinite(value) else None
    return value


_AWS = "aws_cloudping_2025-05_p50.csv"

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


@dataclass(frozen=True)
class Tenant:
    """A database and its class."""

    kind: str
    database: Database


def network(name: str, latency: Path | None = None) -> Instance | None:
    """Return a network as an instance whose own demand plays no part; None when it is not there.

    Parameters
    ----------
    name
        One of :data:`NETWORKS`.
    latency
        Folder of measured latencies; None: there is none.
    """
    if name == "aws-2025":
        return None if latency is None else _measured_aws(latency / _AWS)
    try:
        return placement.load(name)
    except MissingDependencyError:
        return None


def _measured_aws(path: Path) -> Instance | None:
    """32 AWS regions, measured medians of May 2025; a client in each."""
    if not path.exists():
        return None
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    names = rows[0][1:]
    rtt = np.array([[float(cell) for cell in row[1:]] for row in rows[1:]])
    known = {region.id: region for region in regions("aws")}
    points = np.array([(known[name].lat, known[name].lon) for name in names])
    between = rtt.copy()
    np.fill_diagonal(between, 0.0)
    return Instance(
        sites=tuple(names),
        clients=tuple(names),
        client_rtt=rtt,
        site_rtt=between,
        counts=np.ones((len(names), 5)),
        site_coordinates=points,
        client_coordinates=points,
        name="aws-2025",
    )


def poles(clients: Clients, cities: tuple[str, ...], share: float = 0.9) -> FloatArray:
    """Return weights with equal parts of `share` at some cities and a global tail."""
    at = np.array([name in cities for name in clients.names])
    tail = np.where(at, 0.0, everywhere(clients))
    return np.where(at, share / len(cities), (1.0 - share) * tail / tail.sum())


def tenants(ground: ClientGround, mix: str) -> Iterator[Tenant]:
    """Yield the tenants of all classes: 3 global, and every pair and triple of `POLES`.

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
        yield Tenant(
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
