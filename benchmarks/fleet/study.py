"""Fleets: gap, time and memory of column generation, beside greedy and local search.

    python -m benchmarks run fleet [--cases NAME …] [--patience 60]

Each case draws one fleet and plans it three ways in one run: ``solve_fleet`` with two processes,
the greedy plan by size, and local search, whose seconds begin when its greedy plan is there. All
values are those of the one evaluator of plans. A method that exceeds a limit has no plan and no
gap: its row says which limits, and by how much. The gap of every method is to the bound that
``solve_fleet`` proves; "alone" is the value of that bound for databases without shared limits,
which no plan can beat. Drawing the fleet does not count.

Writes benchmarks/results/fleet.json; a case that is not asked for keeps its row.
"""

from __future__ import annotations

import argparse
import math
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import placement
from benchmarks.harness.machine import describe
from benchmarks.harness.memory import most_memory, watch_memory
from benchmarks.harness.result_files import RESULTS, read_json, save_json
from benchmarks.harness.study import Study
from formulations.fleet import FleetSearch, solve_fleet
from heuristics.fleet import greedy_by_size, local_search
from placement.fleet import FleetPlan, FleetProblem, NoFleetPlan, synthetic_fleet
from placement.overtime.replay.generated_fleets import client_ground
from placement.support.status import relative_gap

__all__ = ["CASES", "STUDY", "Case", "measure"]

FILE = RESULTS / "fleet.json"


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


def measure(case: Case, patience: float, seed: int = 1) -> list[dict[str, object]]:
    """Plan the fleet of a case by every method; return one row each."""
    instance = placement.load(case.data_set)
    ground = client_ground(instance)
    fleet = synthetic_fleet(
        instance, ground.clients, case.databases, seed=seed, groups=case.groups, owner=ground.owner
    )
    methods: tuple[tuple[str, Callable[[FleetProblem], FleetPlan | NoFleetPlan]], ...] = (
        ("column generation", lambda f: solve_fleet(f, FleetSearch(gap=case.gap, processes=2))),
        ("greedy by size", greedy_by_size),
        ("local search", lambda f: local_search(f, seconds=greedy_seconds + patience)),
    )
    bound, greedy_seconds, rows = -math.inf, 0.0, []
    for name, method in methods:
        watched = watch_memory()
        began, busy = time.perf_counter(), _cpu_seconds()
        plan = method(fleet)
        if method is greedy_by_size:
            greedy_seconds = time.perf_counter() - began
        row: dict[str, object] = {
            "databases": case.databases,
            "groups": len(fleet.members),
            "sites": len(fleet.sites),
            "method": name,
            "seconds": round(time.perf_counter() - began, 2),
            "cpu seconds": round(_cpu_seconds() - busy, 2),
            "peak MB": round(most_memory()) if watched else None,
        }
        if isinstance(plan, FleetPlan):
            bound = max(bound, plan.bound)
            gap = relative_gap(plan.value, bound)
            row |= {
                "value": plan.value,
                "bound": bound if math.isfinite(bound) else None,
                "gap %": round(100 * gap, 4) if math.isfinite(gap) else None,
                "rounds": len(plan.rounds),
            }
            if plan.alone:
                row["alone"] = plan.value_alone
        else:
            row |= {"exceeded limits": len(plan.short), "reasons": list(plan.reasons)}
        rows.append(row)
        print(row, file=sys.stderr, flush=True)
    return rows


def _cpu_seconds() -> float:
    """Return the CPU time of this process and of those that it has started and ended."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + ended.ru_utime + ended.ru_stime


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cases", nargs="+", choices=tuple(CASES), default=list(CASES))
    parser.add_argument(
        "--patience",
        type=float,
        default=60.0,
        metavar="S",
        help="seconds of local search after its greedy plan",
    )


def _run_study(asked: argparse.Namespace) -> int:
    """Measure the cases asked for."""
    known = read_json(FILE)["cases"] if FILE.exists() else {}
    for name in asked.cases:
        known[name] = {"rows": measure(CASES[name], asked.patience), "machine": describe()}
        save_json(FILE, {"cases": known})
    return 0


STUDY = Study(__doc__, _add_arguments, _run_study, results=("fleet.json",))
