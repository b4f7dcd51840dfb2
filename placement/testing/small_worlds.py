"""Small test networks of every kind, and all their configurations."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from placement.evaluation.breakdown import objective_values
from placement.feasibility.feasible_plans import violations
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity
from placement.model.instance import Instance
from placement.model.prices import Prices
from placement.problem import Problem


@dataclass(frozen=True, eq=False)
class World:
    """Small problem whose name states its special property."""

    name: str
    problem: Problem


def random_instance(
    seed: int,
    *,
    sites: int = 6,
    clients: int = 7,
    ties: bool = False,
    intervals: int = 1,
    varying: bool = False,
    prices: bool = False,
    scale: float = 1.0,
) -> Instance:
    """Seeded small instance with asymmetric RTTs, regions inside continents, crossing providers."""
    rng = np.random.default_rng(seed)

    def rtt(*shape: int) -> np.ndarray:
        values = rng.integers(1, 4, shape) if ties else rng.uniform(1, 200, shape)
        return np.asarray(values, dtype=float) * scale

    periods = (intervals,) if varying else ()
    site_rtt = rtt(*periods, sites, sites)
    site_rtt[..., np.arange(sites), np.arange(sites)] = 0
    issues = rng.random((clients, 5)) < 0.7
    counts = rng.integers(0, 50, (intervals, clients, 5)).astype(float) * issues
    counts[..., 0, 0] += 1
    return Instance(
        sites=tuple(f"site-{i}" for i in range(sites)),
        clients=tuple(f"client-{i}" for i in range(clients)),
        client_rtt=rtt(*periods, clients, sites),
        site_rtt=site_rtt,
        counts=counts,
        domains={
            "region": tuple(f"region-{i // 2}" for i in range(sites)),
            "continent": tuple(f"continent-{i // 4}" for i in range(sites)),
            "provider": tuple(f"provider-{i % 2}" for i in range(sites)),
        },
        prices=Prices(
            storage=rng.integers(1, 9, sites).astype(float),
            transfer=np.where(np.eye(sites), 0, rng.integers(0, 5, (sites, sites))).astype(float),
            written_gb=2.0,
        )
        if prices
        else None,
        # drawn apart, so that the other numbers do not depend on them
        site_coordinates=_on_the_globe(seed, sites),
        client_coordinates=_on_the_globe(seed + 1, clients),
        name=f"random-{seed}",
    )


def _on_the_globe(seed: int, count: int) -> np.ndarray:
    """Latitudes and longitudes in degrees, shape (count, 2)."""
    return np.random.default_rng([seed, count]).uniform([-60, -180], [70, 180], (count, 2))


@lru_cache(maxsize=8)
def large_worlds(seed: int = 0) -> tuple[World, ...]:
    """Problems too large to enumerate: many sites, and RTTs that vary with many voter sets."""
    many = random_instance(seed, sites=120, clients=120)
    moving = random_instance(seed, sites=24, clients=24, intervals=2, varying=True)
    return (
        World("120 sites", Problem(many, replicas=9, voters=5)),
        World("RTTs that vary, 9 voters of 20", Problem(moving, replicas=20, voters=9)),
    )


@lru_cache(maxsize=8)
def worlds(seed: int = 0) -> tuple[World, ...]:
    """Tier 3 problems of every kind the model knows, small enough to enumerate."""
    plain = random_instance(seed)
    tied = random_instance(seed + 1, ties=True)
    priced = random_instance(seed + 2, prices=True)
    site = plain.sites
    reads = np.zeros((1, 7, 5))
    reads[0, :, 0] = np.arange(7)
    writes = np.zeros((1, 7, 5))
    writes[0, 2, 3:] = 5
    bounded = np.zeros((1, 7, 5))
    bounded[0, :, 1] = 1 + np.arange(7)
    lonely = random_instance(seed + 3, sites=1, clients=3)
    crowd = random_instance(seed + 4, sites=5, clients=1)
    days = random_instance(seed + 5, intervals=3)
    moving = random_instance(seed + 6, sites=5, clients=4, intervals=3, varying=True)
    equal = plain.replace(
        client_rtt=np.full((7, 6), 10.0), site_rtt=np.where(np.eye(6, dtype=bool), 0.0, 10.0)
    )
    found: list[World] = []

    def ask(name: str, of: Instance, replicas: Any = 4, voters: Any = 3, **rules: Any) -> None:
        found.append(World(name, Problem(of, replicas=replicas, voters=voters, **rules)))

    ask("plain", plain)
    ask("ties", tied)
    ask("all RTTs equal", equal, 3)
    ask("one site", lonely, 1, 1)
    ask("one client", crowd, 3)
    ask("every site a replica", plain, 6, 5)
    ask("one replica", plain, 1, 1)
    ask("even voters", plain, 4, 4)
    ask("two voters", tied, 3, 2)
    ask("weak reads only", plain.replace(counts=reads), 3, 1)
    ask("writes of one client only", plain.replace(counts=writes))
    ask("bounded reads only", plain.replace(counts=bounded))
    ask("huge counts", plain.replace(counts=plain.counts * 1e12), 3)
    ask("tiny RTTs", random_instance(seed, scale=1e-3), 3)
    ask("small flexible quorum", plain, 5, 4, quorum=1)
    ask("full flexible quorum", plain, quorum=3)
    ask("range of replicas", plain.replace(counts=bounded), (3, 5))
    ask("pins", plain, pinned=[site[5]], pinned_voters=[site[3]])
    ask("a pin and a range", plain, (1, 3), 1, pinned=[site[1]])
    ask("every replica pinned", plain, 3, pinned=site[2:5])
    ask("forbidden", plain, 3, forbidden=[site[0], site[2]])
    ask("non-voters", plain, non_voters=[site[1], site[4]])
    ask("fixed leader", plain, leader=site[3])
    ask("leader candidates", tied, leaders=[site[1], site[5]])
    ask("survive a region", plain, survive="region")
    one_a_region, two_a_region = Diversity("region", cap=1), Diversity("region", cap=2)
    two_held, two_regions = (
        Diversity("region", "replicas", cap=2),
        Diversity("region", min_domains=2),
    )
    two_continents = Diversity("continent", min_domains=2)
    some = Diversity("continent", cap=3)
    ask("survive a continent", plain, 5, 4, quorum=2, diversity=some)
    ask("nested caps", plain, 5, diversity=[one_a_region, Diversity("continent", cap=2)])
    wider = Diversity("continent", "replicas", cap=3)
    ask("nested caps on replicas", tied, diversity=[two_held, wider])
    ask("caps on both roles", plain, diversity=[two_held, one_a_region])
    ask("minimum domains of voters", plain, diversity=[two_regions, two_continents])
    three_regions = Diversity("region", "replicas", min_domains=3)
    ask("minimum domains of replicas", tied, 3, 1, diversity=[three_regions])
    here = Diversity("continent", "replicas", domain="continent-0", least=2)
    there = Diversity("region", domain="region-2", least=1)
    ask("minimums of named domains", plain, 5, diversity=[here, there, two_held])
    providers = Diversity("provider", cap=2)
    ask("crossing levels", plain, 5, 4, diversity=[two_a_region, providers])
    held = Diversity("provider", "replicas", cap=2)
    ask("crossing levels of replicas", tied, diversity=[two_held, held, two_continents])
    ask("budget", priced, budget=40.0)
    ask("cost in the objective", priced, (3, 5), cost_weight=300.0)
    ask("decay", days, decay=2.0)
    ask("last interval only", days, 3, decay=math.inf)
    ask("RTTs that vary", moving, decay=2.0)
    ask("RTTs that vary, with rules", moving, survive="region")
    without = [site[4], site[5]]
    name = "infeasible: two regions for three voters"
    ask(name, plain, 3, survive="region", forbidden=without)
    conflict = Diversity("region", min_domains=3)
    ask("infeasible: rules in conflict", plain, 3, pinned=site[:2], diversity=[conflict])
    ask("infeasible: budget", priced, budget=3.0)
    return tuple(found)


def every_configuration(problem: Problem) -> Iterator[Configuration]:
    """Every configuration that obeys all constraints, by plain enumeration.

    Witnesses are voters outside the replicas.
    """
    rules = problem.rules
    sites = range(len(problem.instance.sites))
    for size in range(rules.replicas_min, rules.replicas_max + 1):
        for replicas in itertools.combinations(sites, size):
            others = [site for site in sites if site not in replicas]
            for holding, witnesses in itertools.product(
                itertools.combinations(replicas, rules.data_voters),
                itertools.combinations(others, rules.witnesses),
            ):
                voters = tuple(sorted((*holding, *witnesses)))
                for leader in holding:
                    configuration = Configuration(leader, voters, replicas)
                    if not violations(problem, configuration):
                        yield configuration


def optimum(problem: Problem) -> float:
    """Least objective of all configurations, +∞ when there is none; for small problems only."""
    values = objective_values(problem, list(every_configuration(problem)))
    return float(values.min(initial=math.inf))
