"""Times of the method ``sets``, where the nearest replica or the client waits.

    python -m benchmarks run exact.set_waits                    a minute of CPU time
    python -m benchmarks run exact.set_waits --sets world27 --repeat 9

Protocols without a leader, and `pqr`, whose clients ask a majority beside the commits of a leader:
data sets of 27 to 48 sites, three operation mixes, 5 replicas that all vote. CPU time from the
problem to the proven plan, least of `--repeat` runs.

Prints median and worst of each data set. Writes results/set_waits.csv in the folder of the
benchmarks, one row per question.
"""

from __future__ import annotations

import argparse
import statistics
import sys

import placement
from benchmarks.harness.machine import describe, sentence
from benchmarks.harness.result_files import add_results, save_csv
from benchmarks.harness.study import Study
from benchmarks.harness.timing import proven_cpu_ms
from formulations.waits.sets import compiled_available

PROTOCOLS = (
    "epaxos:multi=2", "epaxos:slow=0.1,multi=2", "mencius:multi=2", "hermes:multi=2",
    "abd:multi=2", "fast-paxos:multi=2", "pqr", "coordinated:r=2,w=3,multi=2",
)  # fmt: skip
MIXES = ("ycsb-a", "ycsb-b", "social")
HEADS = ("set", "mix", "replicas", "protocol", "ms", "nodes", "sets looked at", "sets")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", default=["world27", "aws", "azure"])
    parser.add_argument("--repeat", type=int, default=2)
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark."""
    if not compiled_available():
        print("error: there is no compiled kernel here", file=sys.stderr)
        return 1
    rows: list[tuple[object, ...]] = []
    for name in asked.sets:
        times = []
        for protocol in PROTOCOLS:
            for mix in MIXES:
                problem = placement.Problem(
                    placement.load(name, mix=mix), replicas=5, voters=5, protocol=protocol
                )
                plan, ms = proven_cpu_ms(problem, asked.repeat, method="sets")
                times.append(ms)
                work = (plan.stats["nodes"], plan.stats["leaves"], plan.stats["sets"])
                rows.append((name, mix, 5, protocol, f"{ms:.1f}", *work))
                print(*rows[-1], file=sys.stderr, flush=True)
        print(f"{name}: median {statistics.median(times):.0f} ms, worst {max(times):.0f} ms")
    print(sentence(describe(("numpy",))))
    save_csv(asked.results / "set_waits.csv", HEADS, rows)
    return 0


STUDY = Study(__doc__, _add_arguments, _run_study, results=("set_waits.csv",))
