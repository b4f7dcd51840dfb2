"""Comparison of the two kernels of method ``exact``: the worth of a C compiler at installation.

    python -m benchmarks run exact.kernels                      a minute of CPU time
    python -m benchmarks run exact.kernels --sets world27 aws gcp --repeat 3

The same questions to the compiled kernel and to the one in NumPy: a bundled data set, all nine
operation mixes, three voters of five and of nine replicas. CPU time from the problem to the proven
plan, the certificate left out, least of `--repeat` runs. Both must prove the same optimum, or the
run stops with an error.

Writes results/kernels.csv in the folder of the benchmarks, one row per question.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys

import placement
from benchmarks.harness.machine import describe, sentence
from benchmarks.harness.result_files import add_results, save_csv
from benchmarks.harness.study import Study
from benchmarks.harness.timing import proven_cpu_ms
from formulations.exact.kernel import compiled_available
from placement.workloads import MIXES

HEADS = ("set", "mix", "replicas", "voters", "compiled ms", "NumPy ms", "ratio")


def _settings(kernel: str) -> dict[str, object]:
    return {"kernel": kernel, "certificate": False}


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--sets", nargs="+", default=["world27"])
    parser.add_argument("--repeat", type=int, default=2)
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark."""
    if not compiled_available():
        print("error: there is no compiled kernel here", file=sys.stderr)
        return 1
    first = placement.Problem(placement.load("world27"), replicas=3, voters=1)
    for kernel in ("compiled", "numpy"):
        proven_cpu_ms(first, 1, _settings(kernel))  # imports
    rows: list[tuple[object, ...]] = []
    for name in asked.sets:
        for mix in MIXES:
            for size in (5, 9):
                problem = placement.Problem(placement.load(name, mix=mix), replicas=size, voters=3)
                best, quick = proven_cpu_ms(problem, asked.repeat, _settings("compiled"))
                same, slow = proven_cpu_ms(problem, asked.repeat, _settings("numpy"))
                if not math.isclose(best.objective, same.objective, rel_tol=1e-9):
                    raise placement.SolverError(
                        f"two optima: {best.objective!r}, {same.objective!r}"
                    )
                rows.append((name, mix, size, 3, round(quick, 2), round(slow, 1), slow / quick))
                print(*rows[-1], file=sys.stderr, flush=True)
    ratios = [float(str(row[-1])) for row in rows]
    print(
        f"NumPy over compiled, {len(rows)} questions: median {statistics.median(ratios):.0f}, "
        f"from {min(ratios):.0f} to {max(ratios):.0f}"
    )
    print(sentence(describe(("numpy",))))
    lines = ((*row[:-1], f"{ratio:.1f}") for row, ratio in zip(rows, ratios, strict=True))
    save_csv(asked.results / "kernels.csv", HEADS, lines)
    return 0


STUDY = Study(__doc__, _add_arguments, _run_study, results=("kernels.csv",))
