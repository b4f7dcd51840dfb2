"""Four methods on the worst case of a plan with a leader: how long, and how close.

    python -m benchmarks run contingency.methods [--time-limit 60]

The objective is the worst of normal operation and of the loss of any one site, on `world27`: four
replicas and three voters among its first 11 and its first 14 sites, and five among all 27. Every
value is the evaluator's. The gap is to the best bound that any method proved for the question, and
`own gap` to the method's own; a bound above another method's value stops the run with an error.
CPU seconds are those of the process with all its threads.

Writes results/contingency_methods.csv in the folder of the benchmarks, and the machine as .json.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import placement
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import describe
from benchmarks.harness.result_files import RESULTS, add_results, read_rows, save_csv, save_json
from benchmarks.harness.study import Study
from placement.contingency.objective import Contingency

__all__ = ["STUDY", "measure"]

CASES = ((11, 4), (14, 4), (27, 5))
METHODS = ("exhaustive", "local-search", "cp-sat", "milp")
HEADS = (
    "sites",
    "replicas",
    "method",
    "status",
    "worst ms",
    "gap %",
    "own gap %",
    "CPU s",
    "wall s",
)


def measure(sites: int, replicas: int, time_limit: float) -> Iterator[tuple[object, ...]]:
    """Yield a row of `HEADS` for each method on the first so many sites.

    Raises
    ------
    placement.SolverError
        When one method's bound is above another's value.
    """
    world = placement.load("world27")
    problem = placement.Problem(
        world,
        replicas=replicas,
        voters=3,
        forbidden=world.sites[sites:],
        objective=Contingency(),
    )
    found = []
    for method in METHODS:
        cpu, wall = time.process_time(), time.perf_counter()
        plan = placement.solve(problem, method, time_limit=time_limit)
        found.append((plan, time.process_time() - cpu, time.perf_counter() - wall))
    bound = max(plan.bound for plan, *_ in found)
    best = min(plan.objective for plan, *_ in found if plan.configuration is not None)
    if bound > best * (1 + 1e-9):
        raise placement.SolverError(f"the bound {bound!r} is above the value {best!r}")
    for plan, cpu, wall in found:
        row = [sites, replicas, plan.method, str(plan.status)]
        if plan.configuration is None:
            row += ["-", "-", "-"]
        else:
            value = plan.objective / problem.demand.operations
            gap = max(0.0, 1 - bound / plan.objective)
            row += [f"{value:.3f}", f"{100 * gap:.2f}", f"{100 * plan.gap:.2f}"]
        yield (*row, f"{cpu:.2f}", f"{wall:.2f}")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--time-limit", type=float, default=60.0, help="seconds per method")
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Run the benchmark."""
    rows = []
    print("  ".join(HEADS))
    for sites, replicas in CASES:
        for row in measure(sites, replicas, asked.time_limit):
            rows.append(row)
            print("  ".join(map(str, row)), flush=True)
    save_csv(asked.results / "contingency_methods.csv", HEADS, rows)
    about = {"machine": describe(), "time limit s": asked.time_limit}
    save_json(asked.results / "contingency_methods.json", about)
    return 0


def _report() -> dict[str, str]:
    """Return the table of the page: CPU seconds of a proof, else the method's own gap."""
    found: dict[str, list[str]] = {}
    for row in read_rows(RESULTS / "contingency_methods.csv"):
        finished = row["status"] == "optimal" or row["method"] == "local-search"
        cells = found.setdefault(f"{row['sites']} sites, \\|R\\| = {row['replicas']}", [])
        cells.append(row["CPU s"] if finished else f"gap {row['own gap %']} %")
    heads = ("question", *(f"`{method}`" for method in METHODS))
    body = [(question, *cells) for question, cells in found.items()]
    return {"contingency_methods.csv": markdown_table(heads, body)}


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("contingency_methods.csv", "contingency_methods.json"),
    page="docs/contingency.md",
    report=_report,
)
