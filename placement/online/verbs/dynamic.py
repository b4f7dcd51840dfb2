"""``placement online dynamic``: extra copies of hot objects beside the replicas of a plan."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.cli.argument_parser import Subparsers
from placement.cli.compared_rows import collect, show_rows
from placement.cli.table_output import check_table_targets
from placement.errors import InputError
from placement.online.verbs.online import add_question, add_values, installed

if TYPE_CHECKING:
    from placement.online.dynamic import ReplicationProblem
    from placement.support.checks import FloatArray

__all__ = ["add_parser", "run"]

_COLUMNS = {
    "mean_latency": "mean ms",
    "copies": "copies/site",
    "gap_percent": "gap %",
    "bound": "bound ms",
    "seconds": "seconds",
}
_MOST_SITES = 12
"""Sites that the Lagrangean relaxation tabulates all subsets of."""


def add_parser(parts: Subparsers) -> None:
    """Add the part."""
    parser = parts.add_parser(
        "dynamic",
        help="place extra copies of hot objects by votes of the reads",
        description="Place dynamic copies of hot objects beside the static copies at the replicas: "
        "votes of the reads (Matri et al. 2018), local and greedy choices, and the proven optimum "
        "at the same number of copies.",
    )
    add_question(parser, leader=False)
    group = add_values(
        parser,
        "objects and copies",
        ("--objects", types.whole(1, 1_000_000), 2000, "N", "objects"),
        ("--copies", types.whole(1), 60, "K", "most dynamic copies at each site"),
        ("--zipf", types.number(), 0.99, "A", "exponent of the popularity of objects"),
        ("--common", types.fraction, 0.5, "F",
         "part of the demand on objects that are hot at every site"),
        ("--prefer-within", types.number(), 100.0, "MS",
         "clients look for a copy at sites within this RTT"),
        ("--write-cost", types.number(), 0.0, "W",
         "cost of a write at each dynamic copy, as part of the RTT to it"),
    )  # fmt: skip
    group.add_argument(
        "--sites", action="append", type=types.names, metavar="SITES",
        help=f"sites that may hold dynamic copies (default: those that read most; with the "
        f"replicas at most {_MOST_SITES})",
    )  # fmt: skip
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Compare the heuristics with the optimum, print, write."""
    from placement.online.dynamic.replication_problem import base_cost

    check_table_targets(args)
    problem, name = _problem(args)
    optimum = installed("dynamic.optimum")
    best = math.nan

    def costed(step: Callable[[], tuple[float, float]]) -> Callable[[], dict[str, object]]:
        def timed() -> dict[str, object]:
            began = time.perf_counter()
            cost, copies = step()
            return {
                "status": "feasible", "mean_latency": cost / problem.total_reads, "copies": copies,
                "seconds": time.perf_counter() - began,
            }  # fmt: skip

        return timed

    def solved() -> dict[str, object]:
        nonlocal best
        began = time.perf_counter()
        plan = optimum(problem)
        best = plan.bound / problem.total_reads
        return {
            "status": str(plan.status),
            "mean_latency": plan.cost / problem.total_reads,
            "copies": float(plan.evaluation.replicas[problem.capacity > 0].mean()),
            "bound": best,
            "seconds": time.perf_counter() - began,
            "reason": "; ".join(plan.notes),
        }

    steps = [("static copies only", costed(lambda: (base_cost(problem), 0.0)))]
    heuristics = installed("dynamic.heuristics")(problem)
    steps += [(label, costed(step)) for label, step in heuristics.items()]
    rows, interrupted = collect(args, [*steps, ("optimum", solved)])
    for row in rows:
        cost, copies = row.get("mean_latency"), row.get("copies")
        # With more copies than the optimum may hold, a gap would say nothing.
        if isinstance(cost, float) and isinstance(copies, float) and copies <= args.copies:
            row["gap"] = 1 - best / cost if cost else 0.0
            row["gap_percent"] = 100 * (1 - best / cost) if cost else 0.0
    sites = ", ".join(problem.geography.sites)
    return show_rows(
        args,
        rows,
        _COLUMNS,
        question=f"Reads of {problem.objects:,} object{'s' if problem.objects > 1 else ''} of "
        f"{name}, with at most {args.copies:,} dynamic cop{'ies' if args.copies > 1 else 'y'} at "
        f"each of the sites {sites}",
        facts=[
            "Mean ms: network RTT of a read, and the cost of writes where --write-cost is given",
            "Gap: to the bound of the optimum; none where votes with a grace period hold more "
            "copies",
        ],
        interrupted=interrupted,
        more={"sites": list(problem.geography.sites)},
    )


def _problem(args: argparse.Namespace) -> tuple[ReplicationProblem, str]:
    """Return the problem, and the name of the instance."""
    import numpy as np

    from placement.cli.options import names
    from placement.model.read_write_counts import reads_and_writes
    from placement.online.dynamic import Geography, ReplicationProblem
    from placement.online.verbs.online import client_rtt, replicas_of, site_rtt

    replicas = replicas_of(args)
    instance = replicas.instance
    reads, writes = reads_and_writes(instance)
    table = client_rtt(instance)
    if args.sites:
        extra = instance.site_indices(names(args.sites, instance.sites), "--sites")
    else:
        near = np.bincount(table.argmin(axis=1), weights=reads, minlength=len(instance.sites))
        extra = np.argsort(-near, kind="stable")[:_MOST_SITES]
    held = replicas.sites.tolist()
    added = [int(site) for site in extra if site not in held]
    if args.sites is None:
        added = added[: max(0, _MOST_SITES - len(held))]
    if not added or len(held) + len(added) > _MOST_SITES:
        raise InputError(
            "no site for dynamic copies" if not added else "too many sites",
            field="--sites", value=len(held) + len(added),
            expected=f"with the replicas at most {_MOST_SITES} sites, at least one of them new",
        )  # fmt: skip
    sites = np.array(held + added)
    home = table[:, sites].argmin(axis=1)
    read = np.bincount(home, weights=reads, minlength=len(sites))
    written = np.bincount(home, weights=writes, minlength=len(sites))
    chance = _chances(args, len(sites))
    of_site, of_object = read[:, None] * chance, written @ chance
    objects = of_site.shape[1]
    rtt = site_rtt(instance, sites)
    static = np.zeros((len(sites), objects), dtype=bool)
    static[: len(held)] = True
    capacity = np.full(len(sites), args.copies)
    capacity[: len(held)] = 0
    names_of = tuple(instance.sites[site] for site in sites)
    geography = Geography.within(names_of, rtt, args.prefer_within)
    problem = ReplicationProblem(
        geography,
        static,
        of_site,
        capacity,
        write_cost=np.outer(args.write_cost * rtt[: len(held)].min(axis=0), of_object),
    )
    return problem, instance.name


def _chances(args: argparse.Namespace, sites: int) -> FloatArray:
    """Return the chance of each object in the requests of each site, shape (sites, objects)."""
    import numpy as np

    from placement.online import spawn_streams
    from placement.online.dynamic.store_demand import Generators, zipf

    rng = spawn_streams(args.seed, ("demand",))["demand"]
    order = np.stack([rng.permutation(args.objects) for _ in range(sites)])
    common = rng.permutation(args.objects)
    popularity = zipf(args.objects, args.zipf)
    generators = Generators(np.arange(sites), order, common, args.common, popularity)
    return generators.probabilities()
