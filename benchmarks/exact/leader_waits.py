"""Times of the method ``exact`` where leaders wait for more than a quorum of votes.

    python -m benchmarks run exact.leader_waits                 some seconds of CPU time
    python -m benchmarks run exact.leader_waits --sets world27 --repeat 9

The same questions plain, with leases (one wait more), with leases that reads interfere with (two
waits that differ): data sets of 27 to 48 sites, four operation mixes, 5 and 7 replicas that all
vote. CPU time from the problem to the proven plan with
its certificate, least of `--repeat` runs.

Prints median and worst of each kind, and of their ratios to the plain question. Writes
results/leader_waits.csv in the folder of the benchmarks, one row per question.
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
from formulations.exact.kernel import compiled_available

KINDS: dict[str, str | None] = {
    "plain": None,
    "leases": "leases",
    "two waits": "leases:interference=0.2",
}
"""Protocol of each kind of question."""

MIXES = ("ycsb-a", "ycsb-b", "oltp", "social")
HEADS = ("set", "mix", "replicas", "question", "ms", "ratio", "nodes", "bounds")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", default=["world27", "aws", "azure"])
    parser.add_argument("--repeat", type=int, default=5)
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark."""
    if not compiled_available():
        print("error: there is no compiled kernel here", file=sys.stderr)
        return 1
    rows: list[tuple[object, ...]] = []
    times: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for name in asked.sets:
        for mix in MIXES:
            instance = placement.load(name, mix=mix)
            for size in (5, 7):
                for kind, protocol in KINDS.items():
                    problem = placement.Problem(
                        instance, replicas=size, voters=size, protocol=protocol
                    )
                    plan, ms = proven_cpu_ms(problem, asked.repeat)
                    times[kind].append(ms)
                    ratio = f"{ms / times['plain'][-1]:.2f}"
                    work = plan.stats["nodes"], plan.stats["bounds"]
                    rows.append((name, mix, size, kind, f"{ms:.2f}", ratio, *work))
                    print(*rows[-1], file=sys.stderr, flush=True)
    for kind, of_kind in times.items():
        ratios = [ms / plain for ms, plain in zip(of_kind, times["plain"], strict=True)]
        print(
            f"{kind}: median {statistics.median(of_kind):.1f} ms, worst {max(of_kind):.0f} ms; "
            f"times plain: median {statistics.median(ratios):.1f}, worst {max(ratios):.1f}"
        )
    print(sentence(describe(("numpy",))))
    save_csv(asked.results / "leader_waits.csv", HEADS, rows)
    return 0


STUDY = Study(__doc__, _add_arguments, _run_study, results=("leader_waits.csv",))
