"""Figures 1, 3, 5, 6 and 7 of Sharov et al. (2015) on generated demand: numbers and pictures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from benchmarks.harness.machine import ROOT
from benchmarks.harness.result_files import Row
from benchmarks.overtime.replay import DAY, fleet_replays, network, scattered
from placement import Instance, Problem
from placement.feasibility.kept_diversity import kept_diversity
from placement.overtime.replay import NOBODY, Deployments, Replay, Trace, replay
from placement.overtime.replay.generated_fleets import ClientGround, client_ground, trace_of
from placement.overtime.replay.plots import plot_ratio, plot_reduction_histogram, plot_reductions
from placement.support.checks import BoolArray, FloatArray
from placement.workloads import Consumer, Curve, Database, Flat, Timeline, everywhere, generate

if TYPE_CHECKING:
    from matplotlib.figure import Figure

STRONG_READS = np.array([0.0, 0.0, 1.0, 0.0, 0.0])


def _kept(number: int, figure: Figure, numbers: Mapping[str, object]) -> list[Row]:
    """Save a figure; return its numbers, a row for each curve or number."""
    figure.savefig(ROOT / "docs" / "figures" / f"replay-figure-{number}.png", dpi=110)
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


def figure_1(seed: int, databases: int) -> list[Row]:
    """Reduction of the mean latency per database, with and without a preferred leader."""
    numbers: dict[str, object] = {}
    shown: dict[str, FloatArray] = {}
    for network_name, kind, result in fleet_replays(seed, databases):
        name = f"{network_name}, {kind}"
        reduction, prefers = _reduction(result, 1)
        mean = reduction.mean(axis=1)
        for words, part in (("with", mean[prefers]), ("without", mean[~prefers])):
            numbers[f"{name}, {words} a preferred leader"] = {
                "databases": len(part),
                "below 1 %": _share(part < 1),
                "10 % or more": _share(part >= 10),
                "50 % or more": _share(part >= 50),
                "90 % or more": _share(part >= 90),
            }
            shown.setdefault(f"{name}, {words} a preferred leader", part)
    panels = dict(list(shown.items())[:2])
    return _kept(
        1, plot_reduction_histogram(panels, title="After Figure 1 of Sharov et al. 2015"), numbers
    )


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


def figure_3(seed: int, databases: int) -> list[Row]:
    """Strategies above the oracle for a database of bounded reads and one without transactions."""
    del databases
    instance, ground = _network()
    timeline = Timeline.of_day(DAY)
    mixes = {
        "(a) 92 % bounded reads": np.array([2.0, 92, 4, 2, 0]),
        "(b) 38 % strong, 60 % weak reads": np.array([60.0, 2, 38, 0, 0]),
    }
    tenants = [
        _database(everywhere(ground.clients), mix, index=i) for i, mix in enumerate(mixes.values())
    ]
    drawn = trace_of(ground, instance, tenants, timeline, seed=seed)
    trace = Trace(tuple(mixes), drawn.intervals, drawn.counts)
    problem = Problem(instance, replicas=7, voters=5, decay=2.0)
    both = scattered(instance, 1, seed)
    held = Deployments(
        np.repeat(both.replicas, 2, axis=0), np.repeat(both.voters, 2, axis=0), np.full(2, NOBODY)
    )
    result = replay(problem, trace, held, tiers=(1,))
    numbers: dict[str, object] = {}
    for row, name in enumerate(trace.databases):
        numbers[name] = {
            strategy: _rounded(result.overhead(1, strategy)[row].mean())
            for strategy in ("optimized", "closest-to-writes", "smallest-quorum", "average")
        }
    figure = _side_by_side(result)
    return _kept(3, figure, numbers)


def _side_by_side(result: Replay) -> Figure:
    """Draw a panel per database; a strategy that is undefined there is left out."""
    panels = {
        name: {
            strategy: result.overhead(1, strategy)[row]
            for strategy in ("optimized", "closest-to-writes", "smallest-quorum", "average")
            if np.isfinite(result.overhead(1, strategy)[row]).all()
        }
        for row, name in enumerate(result.databases)
    }
    return plot_reductions(
        panels,
        result.intervals,
        of="latency above the oracle (%)",
        title="After Figure 3 of Sharov et al. 2015: tier 1",
    )


def figure_5(seed: int, databases: int) -> list[Row]:
    """European over American traffic for 120 hours, of people and of machines."""
    del databases
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
    by_city = _city_counts(ground, tenants, timeline, seed)
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
    figure = plot_ratio(
        ratios,
        timeline.labels,
        of="Europe / United States",
        title="After Figure 5 of Sharov et al. 2015: 35 % as much traffic in Europe",
    )
    return _kept(5, figure, numbers)


def _city_counts(
    ground: ClientGround, tenants: list[Database], timeline: Timeline, seed: int
) -> FloatArray:
    """Operations per database, interval and city."""
    blocks = generate(tenants, ground.clients, timeline, seed=seed)
    return np.concatenate([block.counts.sum(axis=-1) for block in blocks]).astype(float)


def _over(top: FloatArray, bottom: FloatArray) -> FloatArray:
    return np.asarray(top.sum(axis=1) / bottom.sum(axis=1))


def figure_6(seed: int, databases: int) -> list[Row]:
    """East Coast over West Coast traffic for 48 hours, and where the leader goes."""
    del databases
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
    trace = trace_of(ground, instance, [tenant], timeline, seed=seed)
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
    figure = plot_ratio(
        {"East Coast / West Coast": ratio},
        timeline.labels,
        of="operations, East / West",
        moves=moves + 1,  # the replay begins with the second interval
        title="After Figure 6 of Sharov et al. 2015",
    )
    return _kept(6, figure, numbers)


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


def figure_7(seed: int, databases: int, tries: int = 60) -> list[Row]:
    """Reduction by tiers 1 and 2 over three days, for the two best examples of many.

    Beside them stands tier 2 with the diversity of every deployment kept, as the paper keeps it.
    """
    del databases
    instance, ground = _network()
    timeline = Timeline.of_day(DAY, 144)
    mixes = {
        "(a) 98 % strong reads": np.array([1.0, 1, 98, 0, 0]),
        "(b) 57 % strong reads, 42 % multi-group": np.array([1.0, 0, 57, 0, 42]),
    }
    panels: dict[str, dict[str, FloatArray]] = {}
    numbers: dict[str, object] = {}
    held = scattered(instance, tries, seed)
    problem = Problem(instance, replicas=7, voters=5, decay=2.0)
    for index, (name, mix) in enumerate(mixes.items()):
        one = trace_of(
            ground,
            instance,
            [_database(everywhere(ground.clients), mix, index=index)],
            timeline,
            seed=seed,
        )
        trace = Trace(
            tuple(f"{i}" for i in range(tries)),
            one.intervals,
            np.repeat(one.counts, tries, axis=0),
        )
        result = replay(problem, trace, held)
        tiers = {tier: _reduction(result, tier)[0] for tier in (1, 2)}
        same = (
            result.outcome(1, "optimized").leader == result.outcome(2, "optimized").leader
        ).mean(axis=1)
        gap = (tiers[2] - tiers[1]).mean(axis=1)
        wanted = gap if index == 0 else np.where(same > 0.95, gap, -np.inf)
        best = int(wanted.argmax())
        kept = _with_diversity(problem, trace, held)
        panels[name] = {f"tier {tier}": lines[best] for tier, lines in tiers.items()}
        panels[name]["tier 2, diversity kept"] = kept[best]
        voting = held.voters[best][result.outcome(2, "optimized").leader[best]]
        numbers[name] = {
            "tier 1": _rounded(tiers[1][best].mean()),
            "tier 2": _rounded(tiers[2][best].mean()),
            "tier 2, diversity kept": _rounded(kept[best].mean()),
            "same leader in": _rounded(100 * same[best]),
            "leader of tier 2 was read-only in": _share(~voting),
            "median of all deployments, tier 1": _rounded(np.median(tiers[1].mean(axis=1))),
            "median of all deployments, tier 2": _rounded(np.median(tiers[2].mean(axis=1))),
            "median of all deployments, tier 2, diversity kept": _rounded(
                np.median(kept.mean(axis=1))
            ),
            "deployments": tries,
        }
    figure = plot_reductions(
        panels,
        timeline.labels[1:],
        title="After Figure 7 of Sharov et al. 2015: below leaders spread evenly",
    )
    return _kept(7, figure, numbers)


def _rounded(value: float | np.floating) -> float | None:
    return round(float(value), 2) if np.isfinite(value) else None


FIGURES: dict[int, Callable[[int, int], list[Row]]] = {
    1: figure_1,
    3: figure_3,
    5: figure_5,
    6: figure_6,
    7: figure_7,
}
"""Figure -> function of a seed and the number of databases, which only Figure 1 takes."""
