"""Methods for one key of a quorum store side by side, against the best bound that one proves."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from functools import partial

from formulations.quorumstore.one_key import QuorumMethod, place
from placement.cli import exit_codes as exits
from placement.cli.compared_rows import Rows, collect, show_rows
from placement.cli.table_output import check_table_targets, exit_code_of
from placement.errors import LimitError, UnsupportedError
from placement.quorumstore import QuorumPlan, QuorumProblem, Target
from placement.support.entry_points import entry_points
from placement.support.status import OPTIMALITY_TOLERANCE

__all__ = ["GROUP", "show_comparison"]

GROUP = "placement.quorumstore"
"""Entry points of further methods: callables that return name -> (problem -> QuorumPlan)."""

_EXACT = (QuorumMethod.ENUMERATION, QuorumMethod.CP_SAT, QuorumMethod.MILP)

_COLUMNS = {
    "value": "value",
    "gap_percent": "gap %",
    "bound": "bound",
    "seconds": "seconds",
    "quorums": "N-R-W",
}


def show_comparison(problem: QuorumProblem, args: argparse.Namespace) -> int:
    """Run all methods on a key, print and write the table; return the exit code.

    Parameters
    ----------
    problem
        The key.
    args
        Of ``placement contingency quorum``.
    """
    check_table_targets(args)
    rows, interrupted = collect(args, [(name, _step(problem, run)) for name, run in _runs(args)])
    _measure(rows)
    unit = "" if problem.goal.target is Target.COST else " ms"
    code = show_rows(
        args,
        rows,
        _COLUMNS,
        question=f"{problem.total_reads:,} reads and {problem.total_writes:,} writes at "
        f"{len(problem.sites)} sites; value: {problem.goal.target.value}{unit}, "
        + ("with losses" if problem.rules.contingency else "in normal operation"),
        facts=[
            "Gap: to the best bound that any method proved; bound: the method's own",
            *(f"{row['method']}: {row['reason']}" for row in rows if row.get("reason")),
        ],
        interrupted=interrupted,
    )
    if code != exits.FOUND:
        return code
    return exit_code_of(
        [str(row["status"]) for row in rows], [str(row.get("reason", "")) for row in rows]
    )


def _runs(
    args: argparse.Namespace,
) -> list[tuple[str, Callable[[QuorumProblem], QuorumPlan]]]:
    """Return the methods of this package, then those that distributions have registered."""
    exact = partial(place, time_limit=args.time_limit, certificate=False)
    runs: list[tuple[str, Callable[[QuorumProblem], QuorumPlan]]] = [
        (method.value, partial(exact, method=method)) for method in _EXACT
    ]
    for entry in entry_points(GROUP).values():
        runs += entry.load()().items()
    return runs


def _step(
    problem: QuorumProblem, run: Callable[[QuorumProblem], QuorumPlan]
) -> Callable[[], dict[str, object]]:
    def step() -> dict[str, object]:
        began = time.perf_counter()
        try:
            plan = run(problem)
        except (LimitError, UnsupportedError) as error:
            return {"status": "refused", "reason": str(error)}
        row: dict[str, object] = {
            "status": str(plan.status),
            "bound": plan.bound,
            "seconds": time.perf_counter() - began,
            "reason": "; ".join((*plan.reasons, *plan.notes)),
        }
        if plan.configuration is not None:
            row |= {
                "value": plan.value,
                "quorums": f"{len(plan.replicas)}-{plan.read_quorum}-{plan.write_quorum}",
                "replicas": ", ".join(plan.replicas),
            }
        return row

    return step


def _measure(rows: Rows) -> None:
    """Give each row its gap to the best bound; mark a bound that another row refutes."""
    bounds = [float(str(row["bound"])) for row in rows if "bound" in row]
    values = [float(str(row["value"])) for row in rows if "value" in row]
    best, least = max(bounds, default=-math.inf), min(values, default=math.inf)
    for row in rows:
        if "bound" in row and float(str(row["bound"])) > least * (1 + OPTIMALITY_TOLERANCE):
            row["reason"] = f"WRONG: the bound is above the value {least:g} of another method"
        if "value" in row:
            value = float(str(row["value"]))
            row["gap"] = 1 - best / value if value else 0.0
            row["gap_percent"] = max(0.0, 100 * float(str(row["gap"])))
