"""``placement online reads``: the leaseholder or a majority, for the replicas of a plan."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli import dispatch as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.compared_rows import collect, show_rows
from placement.cli.table_output import check_table_targets
from placement.errors import InputError
from placement.online.verbs.online import add_question, add_values, installed

if TYPE_CHECKING:
    from placement.online.reads import ReadGoal, ReadPlan, ReadProblem, ReadStrategy
    from placement.online.verbs.online import ReplicaSites

__all__ = ["add_parser", "run"]

_COLUMNS = {
    "mean_latency": "mean ms",
    "p_leader": "leader %",
    "peak_load": "peak load",
    "bound": "bound",
    "seconds": "seconds",
}


def add_parser(parts: Subparsers) -> None:
    """Add the part."""
    parser = parts.add_parser(
        "reads",
        help="compare strong reads from the leaseholder and from a majority without it",
        description="Compare read strategies for a replicated range: all reads at the leaseholder, "
        "majorities without it, the coin of the HotCloud 2017 paper, and the proven optima for the "
        "load of the busiest node and for latency. Every client uses its nearest replica as "
        "gateway.",
    )
    add_question(parser, leader=True)
    group = add_values(
        parser,
        "goal",
        ("--latency-budget", types.number(), math.inf, "MS",
         "mean latency from the gateway that least load may cost"),
        ("--load-limit", types.number(), math.inf, "X",
         "load of the busiest node that least latency may cost"),
        ("--leader-cost", types.number(), 1.0, "R",
         "load of a write at the leaseholder, in reads"),
        ("--follower-cost", types.number(), 1.0, "R",
         "load of a write at every other replica, in reads"),
    )  # fmt: skip
    group.add_argument(
        "--goal", choices=("load", "latency"), default="load",
        help="optimum whose routing is shown (default load: of the busiest node)",
    )  # fmt: skip
    group.add_argument(
        "--capacity", action="append", default=[], metavar="SITE=X",
        help="speed of the machine of a replica, relative to the other machines (repeatable)",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Evaluate the fixed strategies and the optima, print, write."""
    from placement.online.reads import ReadGoal
    from placement.online.verbs.online import replicas_of

    check_table_targets(args)
    replicas = replicas_of(args)
    problem, to_gateway = _problem(args, replicas)
    solve = installed("reads.optimum")
    goals = {
        "load": ReadGoal.least_load(args.latency_budget),
        "latency": ReadGoal.least_latency(args.load_limit),
    }
    plans: dict[str, ReadPlan] = {}

    def fixed(strategy: ReadStrategy) -> Callable[[], dict[str, object]]:
        return lambda: {"status": "feasible", **_figures(problem, strategy)}

    def optimum(name: str, goal: ReadGoal) -> Callable[[], dict[str, object]]:
        def step() -> dict[str, object]:
            began = time.perf_counter()
            plan = plans[name] = solve(problem, goal)
            found = {} if plan.strategy is None else _figures(problem, plan.strategy)
            return {
                "status": str(plan.status), **found, "bound": plan.bound, "gap": plan.gap,
                "seconds": time.perf_counter() - began, "reason": "; ".join(plan.notes),
            }  # fmt: skip

        return step

    baselines: dict[str, ReadStrategy] = installed("reads.baselines")(problem)
    steps = [(name, fixed(strategy)) for name, strategy in baselines.items()]
    steps += [(f"optimum, least {name}", optimum(name, goal)) for name, goal in goals.items()]
    rows, interrupted = collect(args, steps)
    shown = plans.get(args.goal)
    strategy = None if shown is None else shown.strategy
    routing = [] if strategy is None else _routing(replicas, strategy)
    code = show_rows(
        args,
        rows,
        _COLUMNS,
        question=f"Strong reads of {replicas.instance.name} among {', '.join(replicas.names)}; "
        f"the leaseholder is {replicas.names[problem.leader]}",
        facts=[
            f"Clients reach their gateway in {to_gateway:.2f} ms (mean); mean ms is from there on",
            "Load: work of a node per read of all clients, in reads; bound: of what the row "
            "minimises",
            *(f"{row['gateway']}: {row['routing']}" for row in routing),
        ],
        interrupted=interrupted,
        more={"clients_to_gateway_ms": to_gateway, "goal": args.goal, "routing": routing},
    )
    if not interrupted and shown is not None and strategy is None:
        return exits.INFEASIBLE
    return code


def _problem(args: argparse.Namespace, replicas: ReplicaSites) -> tuple[ReadProblem, float]:
    """Return the problem, and the mean RTT of clients to their gateways."""
    import numpy as np

    from placement.model.read_write_counts import reads_and_writes
    from placement.online.reads import ReadProblem
    from placement.online.verbs.online import client_rtt, site_rtt

    count = len(replicas.sites)
    if count < 3:
        raise InputError(
            "no majority without the leaseholder", field="--replicas", value=count,
            expected="at least 3 replicas",
        )  # fmt: skip
    if replicas.leader is None:
        raise InputError("no leaseholder", field="--leader", expected="a replica site")
    reads, writes = reads_and_writes(replicas.instance)
    near = client_rtt(replicas.instance)[:, replicas.sites]
    gateway = near.argmin(axis=1)
    entering = np.bincount(gateway, weights=reads, minlength=count) / reads.sum()
    written = float(writes.sum() / reads.sum())
    capacity = _capacities(args, replicas)
    base = np.full(count, written * args.follower_cost)
    base[replicas.leader] = written * args.leader_cost
    problem = ReadProblem(
        site_rtt(replicas.instance, replicas.sites),
        entering,
        replicas.leader,
        capacity=np.array(capacity),
        base=base / np.array(capacity),
    )
    return problem, float(near.min(axis=1) @ reads / reads.sum())


def _capacities(args: argparse.Namespace, replicas: ReplicaSites) -> list[float]:
    given = types.read_named_numbers(
        args.capacity, "--capacity", "SITE=X", known=replicas.names, most=1e9, above=True
    )
    return [given.get(name, 1.0) for name in replicas.names]


def _figures(problem: ReadProblem, strategy: ReadStrategy) -> dict[str, object]:
    from placement.online.reads import evaluate

    figures = evaluate(problem, strategy)
    return {
        "mean_latency": figures.latency,
        "p_leader": 100 * figures.leader_served,
        "peak_load": figures.peak,
        "load": [f"{value:.6g}" for value in figures.load],
    }


def _routing(replicas: ReplicaSites, strategy: ReadStrategy) -> list[dict[str, object]]:
    """Return, per gateway, the sets that it asks with their probabilities, largest first."""
    names = replicas.names
    found: list[dict[str, object]] = []
    for gateway, mixture in zip(names, strategy.mixtures, strict=True):
        parts = sorted(mixture, key=lambda part: (-round(part[1], 9), part[0]))
        found.append(
            {
                "gateway": gateway,
                "routing": "; ".join(
                    f"{100 * share:.1f} % {' + '.join(names[node] for node in quorum)}"
                    for quorum, share in parts
                ),
            }
        )
    return found
