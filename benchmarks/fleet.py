"""Fleets: gap, time and memory of column generation.

    python -m benchmarks run fleet [--only NAME …]

Each case draws one fleet and plans it by ``solve_fleet`` with two processes; "alone" is the value
of its bound for databases without shared limits, which no plan can beat. Drawing the fleet does not
count.

Writes benchmarks/results/fleet.json; a case that is not asked for keeps its rows.
"""

from __future__ import annotations

import argparse
import functools
import time
from collections.abc import Iterator

import placement
from benchmarks.harness.machine import cpu_seconds, most_memory, watch_memory
from benchmarks.harness.results import Row
from benchmarks.harness.study import Study
from formulations.fleet import FleetSearch, solve_fleet
from placement.fleet import FleetPlan, synthetic_fleet
from placement.overtime.replay.generated_fleets import client_ground

CASES = {
    "1,000": ("world27", 1_000, 1_000, 5e-3),
    "10,000": ("azure", 10_000, 10_000, 1e-3),
    "100,000 in 2,000 groups": ("azure", 100_000, 2_000, 1e-3),
}
"""Data set, databases, different ones, and the relative gap at which `solve_fleet` stops."""


def _planned(
    data_set: str, databases: int, groups: int, gap: float, options: argparse.Namespace
) -> Iterator[Row]:
    """Plan the fleet of a case; yield its row."""
    instance = placement.load(data_set)
    ground = client_ground(instance)
    fleet = synthetic_fleet(
        instance, ground.clients, databases, seed=options.seed, groups=groups, owner=ground.owner
    )
    watched = watch_memory()
    began, busy = time.perf_counter(), cpu_seconds()
    plan = solve_fleet(fleet, FleetSearch(gap=gap, processes=2))
    row: Row = {
        "databases": databases,
        "groups": len(fleet.members),
        "sites": len(fleet.sites),
        "seconds": round(time.perf_counter() - began, 2),
        "cpu seconds": round(cpu_seconds() - busy, 2),
        "peak MB": round(most_memory()) if watched else None,
    }
    if isinstance(plan, FleetPlan):
        row |= {
            "value": plan.value,
            "bound": plan.bound,
            "gap %": round(100 * plan.gap, 4),
            "rounds": len(plan.rounds),
            "alone": plan.value_alone,
        }
    else:
        row |= {"exceeded limits": len(plan.short), "reasons": list(plan.reasons)}
    yield row


STUDY = Study(
    "fleet",
    {name: functools.partial(_planned, *case) for name, case in CASES.items()},
    {"seed": 1},
    apart=True,
    description=__doc__,
)
