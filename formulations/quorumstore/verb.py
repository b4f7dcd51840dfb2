"""``placement contingency quorum``: leaderless stores, one key or a table of keys."""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING

from formulations.quorumstore.verb_options import add_question, problem_from
from placement.cli import argument_types as types
from placement.cli import exit_codes as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.options import add_file, add_json
from placement.cli.page import print_page
from placement.cli.plan_output import check_target, exit_code, print_json
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.quorumstore import QuorumPlan, QuorumProblem

__all__ = ["add_parser", "run"]


def add_parser(parts: Subparsers) -> None:
    """Add the part."""
    parser = parts.add_parser(
        "quorum",
        help="choose replica sites, N, R and W for the keys of a leaderless store",
        description="Choose replica sites, N, R and W with proven optimality. The goal is the "
        "smallest percentile of read and write latency, normally (BA, basic availability) or in "
        "the worst case over the loss of any one site (N-1C), or the least cost within limits.",
    )
    add_question(parser)
    group = parser.add_argument_group("what is shown")
    what = group.add_mutually_exclusive_group()
    what.add_argument(
        "--pareto",
        action="store_true",
        help="show the Pareto front of the read and write thresholds",
    )
    what.add_argument(
        "--envelope",
        action="store_true",
        help="show the number of optimal configurations, and the ranges of their figures",
    )
    what.add_argument(
        "--compare",
        action="store_true",
        help="run all methods; show gap to the best proven bound, seconds, configuration",
    )
    group = parser.add_argument_group("method and output")
    group.add_argument(
        "--method",
        choices=("auto", "enumeration", "cp-sat", "milp", "assignment", "radius"),
        default="auto",
        help="method for one key (default auto)",
    )
    group.add_argument(
        "--time-limit",
        type=types.seconds,
        default=math.inf,
        metavar="S",
        help="time limit in seconds (default: no limit)",
    )
    group.add_argument(
        "--processes", type=types.threads, default=1, metavar="N", help="processes of --keys"
    )
    group.add_argument(
        "--batch", type=types.whole(1), default=500, metavar="N", help="keys per unit of work"
    )
    add_json(group)
    add_file(group, "write the plan, or the table of --keys or --compare")
    parser.set_defaults(run=run, csv=False, plot=None, progress=None)


def run(args: argparse.Namespace) -> int:
    """Solve one key or a table of keys."""
    problem = problem_from(args)
    if args.keys is not None:
        return _table(problem, args)
    if args.output is not None and (args.pareto or args.envelope):
        raise InputError(
            "a front and a range of optima are no plan", field="-o", expected="one key, or --keys"
        )
    if args.compare:
        from formulations.quorumstore.method_comparison import show_comparison

        return show_comparison(problem, args)
    if args.output is not None and args.output.lower().endswith((".csv", ".parquet")):
        raise InputError("only tables are written as such", field="-o", expected="--keys, or .json")
    check_target(args)
    if args.pareto:
        return _front(problem, args)
    if args.envelope:
        return _envelope(problem, args)
    from formulations.quorumstore.one_key import QuorumMethod, place

    plan = place(problem, QuorumMethod(args.method), time_limit=args.time_limit)
    written = ""
    if args.output is not None:
        from placement.io.plan_file import save_plan

        written = f"Nothing was written to {args.output}"
        if plan.configuration is not None:
            written = f"Written to {save_plan(plan, args.output, force=args.force)}"
    if args.json:
        print_json(_document(plan))
    else:
        from placement.text.quorum_plans import quorum_plan_text

        print_page(quorum_plan_text(plan))
        if written:
            print(f"\n{written}")
    return exit_code(plan.status)


def _table(problem: QuorumProblem, args: argparse.Namespace) -> int:
    from formulations.quorumstore.keys.solve_keys import KeysProgress, solve_keys
    from placement.support.status import Termination
    from placement.text import escape

    if args.output is None:
        raise InputError(
            "an output file is required", field="--keys", expected="-o FILE together with --keys"
        )

    def progress(state: KeysProgress) -> None:
        print(
            f"{state.keys:,} keys, {state.solved:,} solved, {state.seconds:.0f} s", file=sys.stderr
        )

    summary = solve_keys(
        problem,
        args.keys,
        args.output,
        batch=args.batch,
        processes=args.processes,
        progress=progress,
        force=args.force,
    )
    done = summary.termination is Termination.FINISHED
    document = {
        "target": str(summary.target) if done else None,
        "keys": summary.keys,
        "solved": summary.solved,
        "resumed": summary.resumed,
        "seconds": summary.seconds,
        "termination": str(summary.termination),
    }
    if args.json:
        print_json(document)
    elif done:
        print(
            f"{summary.keys:,} keys, {summary.solved:,} solved in {summary.seconds:.1f} s; "
            f"written to {escape(str(summary.target))}"
        )
    else:
        print(f"interrupted after {summary.keys:,} keys; the same command goes on from there")
    return exits.FOUND if done else exits.INTERRUPTED


def _front(problem: QuorumProblem, args: argparse.Namespace) -> int:
    from formulations.quorumstore.threshold_fronts import pareto_front
    from placement.text import table

    points = pareto_front(problem)
    if args.json:
        print_json(
            [
                {
                    "read_threshold_ms": point.read_threshold,
                    "write_threshold_ms": point.write_threshold,
                    **_configuration(point.plan),
                }
                for point in points
            ]
        )
    elif points:
        rows = [
            [
                f"{point.read_threshold:.2f}",
                f"{point.write_threshold:.2f}",
                _quorums(point.plan),
                ", ".join(point.plan.replicas),
            ]
            for point in points
        ]
        print_page(table(["read ms", "write ms", "N-R-W", "replicas"], rows, right=(0, 1)))
    else:
        print("No configuration obeys rules and limits.")
    return exits.FOUND if points else exits.INFEASIBLE


def _envelope(problem: QuorumProblem, args: argparse.Namespace) -> int:
    from formulations.quorumstore.optimal_ties import tie_envelope

    found = tie_envelope(problem)
    if found is None:
        if args.json:
            print_json(None)
        else:
            print("No configuration obeys rules and limits.")
        return exits.INFEASIBLE
    ranges = {"normal": found.normal, "failure": found.failure, "mean": found.mean}
    if args.json:
        print_json(
            {
                "value": found.value,
                "optima": found.count,
                **{name: {"best": r.best, "worst": r.worst} for name, r in ranges.items()},
            }
        )
    else:
        print(f"{found.count:,} optimal configurations with the value {found.value:.2f} ms")
        for name, label in (
            ("normal", "threshold in normal operation"),
            ("failure", "threshold after the worst loss"),
            ("mean", "mean latency"),
        ):
            print(f"  {label}: {ranges[name].best:.2f} to {ranges[name].worst:.2f} ms")
    return exits.FOUND


def _configuration(plan: QuorumPlan) -> dict[str, object]:
    return {
        "replicas": list(plan.replicas),
        "n": len(plan.replicas),
        "r": plan.read_quorum,
        "w": plan.write_quorum,
    }


def _quorums(plan: QuorumPlan) -> str:
    return f"{len(plan.replicas)}-{plan.read_quorum}-{plan.write_quorum}"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _unit(plan: QuorumPlan) -> str:
    """Say that the value is in ms, unless it is a cost."""
    return "" if plan.problem.goal.target.value == "cost" else "_ms"


def _document(plan: QuorumPlan) -> dict[str, object]:
    document: dict[str, object] = {
        "status": str(plan.status),
        "termination": str(plan.termination),
        "method": plan.method,
        "seconds": plan.seconds,
        "goal": plan.problem.goal.target.value,
        f"value{_unit(plan)}": _finite(plan.value),
        f"bound{_unit(plan)}": _finite(plan.bound),
        "certificate_steps": None if plan.certificate is None else plan.certificate.steps,
        "reasons": list(plan.reasons),
    }
    if plan.configuration is not None:
        document |= _configuration(plan)
        document["mean_ms"] = plan.mean_latency
        if plan.problem.prices is not None:
            document["cost"] = plan.cost
        document["losses"] = [
            {
                "lost": list(effect.lost),
                "read_ms": _finite(effect.read_threshold),
                "write_ms": _finite(effect.write_threshold),
            }
            for effect in plan.losses
        ]
    return document
