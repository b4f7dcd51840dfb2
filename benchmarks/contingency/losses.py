"""Times of the method ``exact`` on the worst case after the loss of any site, ties included.

    python -m benchmarks run contingency.losses [--time-limit 30]

Every bundled data set and operation mix, with 5, 7 and 9 replicas of which 3 or 5 vote: 216
questions. A row has the CPU seconds of the process, from the problem to the proven plan, and the
work of the search. At the end stand the median and the largest of the seconds.

Writes results/contingency_losses.csv in the folder of the benchmarks, and the machine as .json.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import time

import placement
from benchmarks.harness.machine import describe
from benchmarks.harness.result_files import add_results, save_csv, save_json
from benchmarks.harness.study import Study
from placement.contingency.objective import Contingency
from placement.workloads.fleets import MIXES

__all__ = ["STUDY", "measure"]

WORLDS = ("world27", "aws", "gcp", "azure")
REPLICAS, VOTERS = (5, 7, 9), (3, 5)
HEADS = (
    "world",
    "mix",
    "replicas",
    "voters",
    "status",
    "worst ms",
    "normal ms",
    "gap %",
    "CPU s",
    "nodes",
)


def measure(problem: placement.Problem, time_limit: float) -> tuple[object, ...]:
    """Return the end of a row of `HEADS`, from the status on."""
    began = time.process_time()
    plan = placement.solve(problem, time_limit=time_limit)
    seconds = time.process_time() - began
    rate = problem.demand.operations
    return (
        str(plan.status),
        f"{plan.objective / rate:.3f}",
        f"{plan.score / rate:.3f}",
        f"{100 * plan.gap:.2f}",
        f"{seconds:.2f}",
        plan.stats.get("nodes", 0),
    )


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--time-limit", type=float, default=30.0, help="seconds per question")
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark."""
    rows: list[tuple[object, ...]] = []
    print("  ".join(HEADS))
    for world, mix in itertools.product(WORLDS, MIXES):
        instance = placement.load(world, mix=mix)
        for replicas, voters in itertools.product(REPLICAS, VOTERS):
            problem = placement.Problem(
                instance, replicas=replicas, voters=voters, objective=Contingency()
            )
            rows.append((world, mix, replicas, voters, *measure(problem, asked.time_limit)))
            print("  ".join(map(str, rows[-1])), flush=True)
    seconds = [float(str(row[HEADS.index("CPU s")])) for row in rows]
    proven = sum(row[HEADS.index("status")] == "optimal" for row in rows)
    about = {
        "machine": describe(),
        "time limit s": asked.time_limit,
        "questions": len(rows),
        "proven": proven,
        "median CPU s": statistics.median(seconds),
        "largest CPU s": max(seconds),
    }
    print(
        f"{proven} of {len(rows)} proven; CPU s: median {about['median CPU s']:.2f}, largest "
        f"{about['largest CPU s']:.2f}"
    )
    save_csv(asked.results / "contingency_losses.csv", HEADS, rows)
    save_json(asked.results / "contingency_losses.json", about)
    return 0


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("contingency_losses.csv", "contingency_losses.json"),
)
