"""``placement online selection``: which replica of a plan answers a read."""

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
from placement.online.verbs.online import add_question, add_values, installed

if TYPE_CHECKING:
    from placement.online.selection import SelectionRun, ServerSamplePath
    from placement.online.verbs.online import ReplicaSites

__all__ = ["add_parser", "run"]

_COLUMNS = {
    "mean_latency": "mean ms",
    "p50": "p50",
    "p95": "p95",
    "p99": "p99",
    "p999": "p99.9",
    "gap_percent": "gap %",
    "local_percent": "nearest %",
    "busiest": "busiest",
}


def add_parser(parts: Subparsers) -> None:
    """Add the part."""
    parser = parts.add_parser(
        "selection",
        help="compare rules that choose the replica of a read: C3, nearest, duplicates, …",
        description="Simulate rules that choose the replica of each read, at the replicas of a "
        "plan, on the same random requests and server speeds, beside a proven lower bound on the "
        "mean latency of every rule.",
    )
    add_question(parser, leader=False)
    group = add_values(
        parser,
        "servers",
        ("--servers", types.whole(1, 1000), 3, "N", "servers at each replica site"),
        ("--slots", types.whole(1, 1000), 4, "N", "reads that a server serves at a time"),
        ("--service", types.number(above=True), 4.0, "MS", "mean service time of a slow server"),
        (
            "--fluctuation",
            types.number(1, 1000),
            3.0,
            "D",
            "speed of a fast server, as a multiple of a slow one",
        ),
        ("--epoch", types.number(above=True), 100.0, "MS", "time between two draws of the speeds"),
    )
    group.add_argument(
        "--slow-site", action="append", default=[], metavar="SITE=X",
        help="factor on the service times of a replica site (repeatable)",
    )  # fmt: skip
    add_values(
        parser,
        "requests",
        ("--utilisation", types.number(above=True), 0.7, "U", "reads over the mean capacity"),
        ("--requests", types.whole(1, 10_000_000), 20_000, "N", "simulated requests"),
        ("--shadow", types.fraction, 0.0, "P", "chance that a read goes to all replicas"),
        ("--zipf", types.number(), 0.0, "A", "exponent of the popularity of key groups"),
        ("--records", types.whole(1, 100_000), 1, "N", "largest record; sizes follow Zipf's law"),
        ("--updates", types.fraction, 0.0, "F", "part of the requests that update all replicas"),
    )
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Simulate all policies on one path, bound the mean, print, write."""
    from placement.online.verbs.online import replicas_of

    check_table_targets(args)
    replicas = replicas_of(args)
    path = _path(args, replicas)
    simulate = installed("selection.run")
    bound = math.nan

    def simulated(policy: object) -> Callable[[], dict[str, object]]:
        def step() -> dict[str, object]:
            began = time.perf_counter()
            outcome = simulate(path, policy)
            row = _figures(outcome)
            return {"status": "feasible", **row, "seconds": time.perf_counter() - began}

        return step

    def bounded() -> dict[str, object]:
        nonlocal bound
        began = time.perf_counter()
        bound = installed("selection.bound")(path)
        return {
            "status": "bound", "mean_latency": bound, "bound": bound,
            "seconds": time.perf_counter() - began,
        }  # fmt: skip

    policies = installed("selection.policies")()
    steps = [(policy.name, simulated(policy)) for policy in policies]
    rows, interrupted = collect(args, [*steps, ("no rule is below", bounded)])
    for row in rows:
        mean = row.get("mean_latency")
        if isinstance(mean, float) and math.isfinite(bound):
            row["gap"] = 1 - bound / mean
            row["gap_percent"] = 100 * (1 - bound / mean)
    cluster = path.cluster
    return show_rows(
        args,
        rows,
        _COLUMNS,
        question=f"{path.size:,} requests of {replicas.instance.name} at {args.servers} servers in "
        f"each of {', '.join(replicas.names)}; load {cluster.offered_load:.2f} with copies",
        facts=[
            "Latency in ms of reads, from the client to the answer, network included; gap: to the "
            "bound on the mean, which holds for every rule, one that knows the future too",
            "nearest %: reads served by the nearest replica; busiest: reads of the busiest server "
            "over the mean of all",
        ],
        interrupted=interrupted,
        more={"utilisation": cluster.utilisation, "offered_load": cluster.offered_load},
    )


def _figures(outcome: SelectionRun) -> dict[str, object]:
    import numpy as np

    cluster, sample = outcome.sample.cluster, outcome.sample
    reads = ~outcome.update
    found = outcome.latencies()
    way = cluster.one_way[sample.client]
    groups = cluster.groups[sample.group]
    nearest = np.take_along_axis(way, groups, axis=1).min(axis=1)
    taken = np.take_along_axis(way, outcome.server[:, np.newaxis], axis=1)[:, 0]
    served = np.bincount(outcome.server[reads], minlength=cluster.servers)
    return {
        "mean_latency": found.mean,
        "p50": found.p50,
        "p95": found.p95,
        "p99": found.p99,
        "p999": found.p999,
        "local_percent": 100 * float((taken <= nearest)[reads].mean()),
        "busiest": float(served.max() / served.mean()),
        "hedged": outcome.hedged,
    }


def _path(args: argparse.Namespace, replicas: ReplicaSites) -> ServerSamplePath:
    """Return the requests on the servers, on a grid of times that bound and simulator share."""
    import numpy as np

    from placement.model.read_write_counts import reads_and_writes
    from placement.online.selection import ServerCluster, draw
    from placement.online.verbs.online import client_rtt

    instance, sites = replicas.instance, len(replicas.sites)
    given = types.read_named_numbers(
        args.slow_site, "--slow-site", "SITE=X", known=replicas.names, most=1e6, above=True
    )
    factors = {name: given.get(name, 1.0) for name in replicas.names}
    # Server s·m + j is the j-th of m at the s-th site; group j is replicated on the j-th servers.
    groups = np.arange(args.servers)[:, np.newaxis] + args.servers * np.arange(sites)
    rtt = np.repeat(client_rtt(instance)[:, replicas.sites], args.servers, axis=1)
    cluster = ServerCluster(
        sites * args.servers,
        args.slots,
        sites,
        len(instance.clients),
        utilisation=args.utilisation,
        epoch_ms=round(args.epoch * 128) / 128,
        requests=args.requests,
        slow_ms=args.service,
        fluctuation=args.fluctuation,
        shadow=args.shadow,
        client_demand=tuple(reads_and_writes(instance)[0].tolist()),
        group_servers=tuple(map(tuple, groups.tolist())),
        group_zipf=args.zipf,
        rtt_ms=tuple(map(tuple, rtt.tolist())),
        slowness=tuple(np.repeat(list(factors.values()), args.servers).tolist()),
        largest_record=args.records,
        update_share=args.updates,
    )
    return draw(cluster, args.seed).on_grid()
