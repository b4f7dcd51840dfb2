"""Fleets: gap, time and memory of column generation.

    python -m benchmarks run fleet [--cases NAME …]

Each case draws one fleet and plans it by ``solve_fleet`` with two processes; "alone" is the value
of its bound for databases without shared limits, which no plan can beat. Drawing the fleet does not
count.

Writes benchmarks/results/fleet.json; a case that is not asked for keeps its rows. Rows of methods
that are gone (greedy by size, local search) stay as they were measured.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from dataclasses import dataclass

import placement
from benchmarks.harness.machine import describe
from benchmarks.harness.result_files import RESULTS, read_json, save_json
from benchmarks.harness.study import Study
from benchmarks.harness.timing import most_memory, watch_memory
from formulations.fleet import FleetSearch, solve_fleet
from placement.fleet import FleetPlan, synthetic_fleet
from placement.overtime.replay.generated_fleets import client_ground

__all__ = ["CASES", "STUDY", "Case", "measure"]

FILE = RESULTS / "fleet.json"
METHOD = "column generation"


@dataclass(frozen=True, slots=True)
class Case:
    """Fleet of the study.

    Attributes
    ----------
    data_set
        Bundled data set: sites, clients and RTTs.
    databases, groups
        How many, and how many different ones.
    gap
        Relative gap at which `solve_fleet` stops.
    """

    data_set: str
    databases: int
    groups: int
    gap: float


CASES = {
    "1,000": Case("world27", 1_000, 1_000, 5e-3),
    "10,000": Case("azure", 10_000, 10_000, 1e-3),
    "100,000 in 2,000 groups": Case("azure", 100_000, 2_000, 1e-3),
}


def measure(case: Case, seed: int = 1) -> dict[str, object]:
    """Plan the fleet of a case; return its row."""
    instance = placement.load(case.data_set)
    ground = client_ground(instance)
    fleet = synthetic_fleet(
        instance, ground.clients, case.databases, seed=seed, groups=case.groups, owner=ground.owner
    )
    watched = watch_memory()
    began, busy = time.perf_counter(), _cpu_seconds()
    plan = solve_fleet(fleet, FleetSearch(gap=case.gap, processes=2))
    row: dict[str, object] = {
        "databases": case.databases,
        "groups": len(fleet.members),
        "sites": len(fleet.sites),
        "method": METHOD,
        "seconds": round(time.perf_counter() - began, 2),
        "cpu seconds": round(_cpu_seconds() - busy, 2),
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
    print(row, file=sys.stderr, flush=True)
    return row


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has started and ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", nargs="+", choices=tuple(CASES), default=list(CASES))


def _run_study(asked: argparse.Namespace) -> int:
    """Measure the cases asked for."""
    known = read_json(FILE)["cases"] if FILE.exists() else {}
    for name in asked.cases:
        others = [one for one in known.get(name, {"rows": []})["rows"] if one["method"] != METHOD]
        known[name] = {"rows": [measure(CASES[name]), *others], "machine": describe()}
        save_json(FILE, {"cases": known})
    return 0


STUDY = Study(__doc__, _add_arguments, _run_study, results=("fleet.json",))
