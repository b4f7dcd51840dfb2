"""Cases in which `local-search` is above the optimum: many sites, many replicas, relayed reads.

    python -m benchmarks run local_search.large [--patience 3 8]

Instances of :mod:`benchmarks.harness.tier3_worlds` with up to 48 sites, which are their own
clients: modelled, and measured Azure and AWS regions (48, 48 and 32 sites); the three mixes in
which reads go from the nearest replica to the leader, eleven and thirteen replicas, three and five
voters. The optimum is that of method ``exact``; a problem not proven in `--time-limit` seconds is
left out and counted.

Writes results/local_search_large.csv in the folder of the benchmarks, one row per problem and
patience, and a summary with the machine as .json.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import placement
from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.machine import describe
from benchmarks.harness.result_files import add_results, save_csv, save_json
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import world

__all__ = ["STUDY"]

NETWORKS = ("modelled", "azure-2025", "aws-2025")
SITES = 48
MIXES = ("oltp", "social", "ledger")
SIZES = ((11, 3), (11, 5), (13, 3), (13, 5))
HEADS = ("network", "mix", "seed", "replicas", "voters", "patience", "gap %", "CPU ms")
EQUAL = 1e-9


def questions(
    seeds: int, latency: Path | None
) -> Iterator[tuple[tuple[object, ...], placement.Problem]]:
    """Yield the problems with their names."""
    for network, mix, seed in itertools.product(NETWORKS, MIXES, range(seeds)):
        drawn = world(network, mix, seed, SITES, latency=latency)
        if drawn is None:
            continue  # the measured matrix is not there
        for replicas, voters in SIZES:
            about = (network, mix, seed, replicas, voters)
            yield about, placement.Problem(drawn.instance, replicas=replicas, voters=voters)


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_folder(parser, "latency")
    parser.add_argument("--patience", type=int, nargs="+", default=[3, 8])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--time-limit", type=float, default=120.0, help="seconds for the optimum")
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark."""
    rows: list[tuple[object, ...]] = []
    gaps: dict[int, list[float]] = {patience: [] for patience in asked.patience}
    unproven = 0
    for about, problem in questions(asked.seeds, asked.latency):
        best = placement.solve(problem, time_limit=asked.time_limit)
        if best.status != "optimal":
            unproven += 1
            continue
        for patience in asked.patience:
            began = time.process_time()
            plan = placement.solve(problem, "local-search", settings={"patience": patience})
            spent = 1000 * (time.process_time() - began)
            gap = plan.objective / best.objective - 1
            gaps[patience].append(gap)
            rows.append((*about, patience, f"{100 * max(gap, 0.0):.5f}", f"{spent:.0f}"))
        print("  ".join(map(str, rows[-1])), file=sys.stderr, flush=True)
    summary = [
        {
            "patience": patience,
            "problems": len(found),
            "missed": sum(gap > EQUAL for gap in found),
            "least gap % of the missed": round(
                min((100 * g for g in found if g > EQUAL), default=0.0), 5
            ),
            "worst gap %": round(max((100 * g for g in found), default=0.0), 5),
        }
        for patience, found in gaps.items()
    ]
    for line in summary:
        print(line)
    about_run = {"machine": describe(), "seeds": asked.seeds, "not proven": unproven}
    save_csv(asked.results / "local_search_large.csv", HEADS, rows)
    save_json(asked.results / "local_search_large.json", about_run | {"table": summary})
    return 0


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("local_search_large.csv", "local_search_large.json"),
)
