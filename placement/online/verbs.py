"""``placement lab online``: decisions at run time for the replicas of a plan, beside the best.

Each part builds its problem from the instance, and shows one row for each rule and for the optimum
or bound. Rules and proofs are entry points of :data:`GROUP`.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from placement.cli import exit_codes as exits
from placement.cli import options as types
from placement.cli.options import PROGRESS, Parser, Subparsers, Switch, add_verb
from placement.cli.output import Rows, add_table_output, check_table_targets, collect, show_rows
from placement.cli.problem_options import instance_from, names
from placement.errors import InputError, UnsupportedError, refused, require
from placement.support.entry_points import entry_points

if TYPE_CHECKING:
    from placement.model.instance import Instance
    from placement.online.dynamic import ReplicationProblem
    from placement.online.reads import ReadPlan, ReadProblem, ReadStrategy
    from placement.online.selection import SelectionRun, ServerSamplePath
    from placement.support.checks import FloatArray, IntArray

GROUP = "placement.online"
"""Entry points of what the parts compare: ``selection.bound``, ``reads.optimum``, …"""

Row = dict[str, object]
Step = Callable[[], Mapping[str, object]]


def add_parser(verbs: Subparsers) -> None:
    """Add the verb and its parts."""
    parser = verbs.add_parser(
        "online",
        help="compare decisions at run time: replica of a read, leader or majority, hot copies",
        description="Compare the rules that databases use at run time with the best possible, on "
        "the sites, RTTs and demand of an instance: 'selection' (C3 and other rules that choose "
        "the replica of a read), 'reads' (leaseholder or majority), 'dynamic' (extra copies of "
        "hot objects).",
    )
    parts = parser.add_subparsers(dest="part", metavar="PART", required=True)
    _add_dynamic(parts)
    _add_reads(parts)
    _add_selection(parts)


def _installed(name: str) -> Any:
    """Return the object of an entry point of :data:`GROUP`."""
    entry = entry_points(GROUP).get(name)
    if entry is None:
        raise UnsupportedError(
            f"no installed package has the entry point {name!r} of the group {GROUP!r}"
        )
    try:
        return entry.load()
    except (ImportError, AttributeError) as error:
        raise UnsupportedError(f"{name!r} ({entry.value}) cannot be imported: {error}") from error


def _add_question(parser: Parser, *, reads: bool = False) -> None:
    """Add the instance, and the options that say where the replicas are."""
    parser.ask("instance", leave=("wait",))
    parser.add("replicas: --plan, or their sites by name",
        Switch("--plan", "FILE", "a plan for this instance: its replicas and its leader"),
        Switch("--replicas", "SITES", "replica sites", types.names, several=True),
        *([Switch("--leader", "SITE", "site of the leaseholder")] if reads else []),
    )  # fmt: skip
    if not reads:  # their means are computed
        parser.ask("method", only=("seed",), helps={"seed": "seed of random draws"})
    parser.add("run", PROGRESS)
    add_table_output(parser, plot=False)


@dataclass(frozen=True)
class ReplicaSites:
    """Replica sites of the question."""

    instance: Instance  #: the sites, RTTs and demand
    sites: IntArray  #: indices of the replica sites
    leader: int | None  #: position of the leader in `sites`; None without a leader

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the replica sites."""
        return tuple(self.instance.sites[site] for site in self.sites)


def replicas_of(args: argparse.Namespace) -> ReplicaSites:
    """Load the instance, and the replicas from the plan or by name, once tables can be written.

    InputError for a plan of another instance, a plan without a configuration, both or neither of
    ``--plan`` and ``--replicas``, an unknown site, or a leader that holds no replica.
    """
    check_table_targets(args)
    instance = instance_from(args)
    chosen: tuple[str, ...] = ()
    leader: str | None = args.leader if args.part == "reads" else None
    if args.plan is not None:
        words, expected = "the replicas are given twice", "--plan or --replicas"
        require(not args.replicas, "--replicas", words, args.replicas, expected)
    if args.plan is not None:
        from placement.databases.deployment import read_present

        present = read_present(instance, args.plan)
        chosen = tuple(instance.sites[site] for site in present.replicas)
        leader = instance.sites[present.leader] if leader is None else leader
    elif args.replicas:
        chosen = names(args.replicas, instance.sites)
    else:
        raise InputError("no replicas", field="--plan", expected="--plan FILE or --replicas SITES")
    sites = instance.site_indices(chosen, "--replicas")
    words = "the leader holds no replica"
    expected = "one of " + ", ".join(map(repr, chosen))
    require(leader is None or leader in chosen, "--leader", words, leader, expected)
    return ReplicaSites(instance, sites, None if leader is None else chosen.index(leader))


def client_rtt(instance: Instance) -> FloatArray:
    """Return the RTTs of clients to sites, the mean over intervals; shape (clients, sites)."""
    table = instance.client_rtt
    return table.mean(axis=0) if table.ndim == 3 else table


def site_rtt(instance: Instance, sites: IntArray) -> FloatArray:
    """Return the RTTs between some sites, the mean over intervals; shape (sites, sites)."""
    table = instance.site_rtt
    mean: FloatArray = table.mean(axis=0) if table.ndim == 3 else table
    return mean[sites][:, sites]


def _add_gaps(rows: Rows, bound: float) -> None:
    """Add the gap of each mean latency to a proven bound."""
    for row in rows:
        mean = row.get("mean_latency")
        if isinstance(mean, float) and not math.isnan(bound):
            gap = 1 - bound / mean if mean else 0.0
            row |= {"gap": gap, "gap_percent": 100 * gap}


# Replica selection


def _add_selection(parts: Subparsers) -> None:
    parser = add_verb(parts, "selection", _compare_selection)
    _add_question(parser)
    above = types.number(above=True)
    parser.add("servers",
        Switch("--servers", "N", "servers at each replica site (default 3)",
            types.whole(1, 1000), 3),
        Switch("--slots", "N", "reads that a server serves at a time (default 4)",
            types.whole(1, 1000), 4),
        Switch("--service", "MS", "mean service time of a slow server (default 4)", above, 4.0),
        Switch("--fluctuation", "D", "speed of a fast server, as a multiple of a slow one "
            "(default 3)", types.number(1, 1000), 3.0),
        Switch("--epoch", "MS", "time between two draws of the speeds (default 100)", above, 100.0),
        Switch("--slow-site", "SITE=X", "factor on the service times of a replica site "
            "(repeatable)", several=True, default=()),
    )  # fmt: skip
    parser.add("requests",
        Switch("--utilisation", "U", "reads over the mean capacity (default 0.7)", above, 0.7),
        Switch("--requests", "N", "simulated requests (default 20000)",
            types.whole(1, 10_000_000), 20_000),
        Switch("--shadow", "P", "chance that a read goes to all replicas (default 0)",
            types.fraction, 0.0),
        Switch("--zipf", "A", "exponent of the popularity of key groups (default 0)",
            types.number(), 0.0),
        Switch("--records", "N", "largest record; sizes follow Zipf's law (default 1)",
            types.whole(1, 100_000), 1),
        Switch("--updates", "F", "part of the requests that update all replicas (default 0)",
            types.fraction, 0.0),
    )  # fmt: skip


def _compare_selection(args: argparse.Namespace) -> int:
    """Compare rules that choose the replica of each read: C3, nearest, duplicates and others.

    They are simulated at the replicas of a plan, on the same random requests and server speeds,
    beside a proven lower bound on the mean latency of every rule.
    """
    replicas = replicas_of(args)
    path = _requests(args, replicas)
    simulate = _installed("selection.run")
    bound = math.nan

    def simulated(policy: object) -> Step:
        return lambda: {"status": "feasible", **_selection_figures(simulate(path, policy))}

    def bounded() -> Row:
        nonlocal bound
        bound = _installed("selection.bound")(path)
        return {"status": "bound", "mean_latency": bound, "bound": bound}

    steps = [(each.name, simulated(each)) for each in _installed("selection.policies")()]
    rows, interrupted = collect(args, [*steps, ("no rule is below", bounded)])
    _add_gaps(rows, bound)
    cluster = path.cluster
    return show_rows(
        args,
        rows,
        {
            "mean_latency": "mean ms",
            "p50": "p50",
            "p95": "p95",
            "p99": "p99",
            "p999": "p99.9",
            "gap_percent": "gap %",
            "local_percent": "nearest %",
            "busiest": "busiest",
        },
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


def _selection_figures(outcome: SelectionRun) -> Row:
    import numpy as np

    reads, found = ~outcome.update, asdict(outcome.latencies())
    served = np.bincount(outcome.server[reads], minlength=outcome.sample.cluster.servers)
    return {
        "mean_latency": found.pop("mean"),
        **{name: value for name, value in found.items() if name != "n"},
        "local_percent": 100 * float(outcome.at_nearest[reads].mean()),
        "busiest": float(served.max() / served.mean()),
        "hedged": outcome.hedged,
    }


def _requests(args: argparse.Namespace, replicas: ReplicaSites) -> ServerSamplePath:
    """Return the requests on the servers, on a grid of times that bound and simulator share."""
    import numpy as np

    from placement.model.demand import reads_and_writes
    from placement.online.selection import ServerCluster, draw

    given = types.read_named_numbers(
        args.slow_site, "--slow-site", "SITE=X", known=replicas.names, most=1e6, above=True
    )
    factors = [given.get(name, 1.0) for name in replicas.names]
    cluster = ServerCluster(
        len(replicas.sites) * args.servers,
        args.slots,
        len(replicas.sites),
        utilisation=args.utilisation,
        epoch_ms=round(args.epoch * 128) / 128,
        requests=args.requests,
        slow_ms=args.service,
        fluctuation=args.fluctuation,
        shadow=args.shadow,
        group_zipf=args.zipf,
        slowness=tuple(np.repeat(factors, args.servers).tolist()),
        largest_record=args.records,
        update_share=args.updates,
    )
    rtt = client_rtt(replicas.instance)[:, replicas.sites]
    demand = reads_and_writes(replicas.instance)[0]
    return draw(cluster.at_sites(rtt, demand), args.seed).on_grid()


# Leaseholder or majority


def _add_reads(parts: Subparsers) -> None:
    parser = add_verb(parts, "reads", _compare_reads)
    _add_question(parser, reads=True)
    parser.add("goal",
        Switch("--latency-budget", "MS", "mean latency from the gateway that least load may cost",
            types.number(), math.inf),
        Switch("--load-limit", "X", "load of the busiest node that least latency may cost",
            types.number(), math.inf),
        Switch("--leader-cost", "R", "load of a write at the leaseholder, in reads (default 1)",
            types.number(), 1.0),
        Switch("--follower-cost", "R", "load of a write at every other replica, in reads "
            "(default 1)", types.number(), 1.0),
        Switch("--goal", "", "optimum whose routing is shown (default load: of the busiest "
            "node)", default="load", choices=("load", "latency")),
        Switch("--capacity", "SITE=X", "speed of the machine of a replica, relative to the "
            "other machines (repeatable)", several=True, default=()),
    )  # fmt: skip


def _compare_reads(args: argparse.Namespace) -> int:
    """Compare strong reads from the leaseholder and from a majority without it.

    Beside them stand the coin of the HotCloud 2017 paper, and the proven optima for the load of the
    busiest node and for latency. Every client uses its nearest replica as gateway.
    """
    import numpy as np

    from placement.model.demand import reads_and_writes
    from placement.online.reads import ReadGoal, ReadProblem

    replicas = replicas_of(args)
    count, held = len(replicas.sites), replicas.names
    expected = "at least 3 replicas"
    require(count >= 3, "--replicas", "no majority without the leaseholder", count, expected)
    if replicas.leader is None:
        raise InputError("no leaseholder", field="--leader", expected="a replica site")
    reads, writes = reads_and_writes(replicas.instance)
    near = client_rtt(replicas.instance)[:, replicas.sites]
    entering = np.bincount(near.argmin(axis=1), weights=reads, minlength=count) / reads.sum()
    to_gateway = float(near.min(axis=1) @ reads / reads.sum())  # mean RTT of clients
    given = types.read_named_numbers(
        args.capacity, "--capacity", "SITE=X", known=held, most=1e9, above=True
    )
    capacity = np.array([given.get(name, 1.0) for name in held])
    written = float(writes.sum() / reads.sum())
    base = np.full(count, written * args.follower_cost)
    base[replicas.leader] = written * args.leader_cost
    between = site_rtt(replicas.instance, replicas.sites)
    loads = {"capacity": capacity, "base": base / capacity}
    problem = ReadProblem(between, entering, replicas.leader, **loads)
    solve = _installed("reads.optimum")
    goals = {
        "load": ReadGoal.least_load(args.latency_budget),
        "latency": ReadGoal.least_latency(args.load_limit),
    }
    plans: dict[str, ReadPlan] = {}

    def fixed(strategy: ReadStrategy) -> Step:
        return lambda: {"status": "feasible", **_read_figures(problem, strategy)}

    def optimum(name: str, goal: ReadGoal) -> Step:
        def step() -> Row:
            plan = plans[name] = solve(problem, goal)
            found = {} if plan.strategy is None else _read_figures(problem, plan.strategy)
            return {
                "status": str(plan.status), **found, "bound": plan.bound, "gap": plan.gap,
                "reason": "; ".join(plan.notes),
            }  # fmt: skip

        return step

    baselines: dict[str, ReadStrategy] = _installed("reads.baselines")(problem)
    steps = [(name, fixed(strategy)) for name, strategy in baselines.items()]
    steps += [(f"optimum, least {name}", optimum(name, goal)) for name, goal in goals.items()]
    rows, interrupted = collect(args, steps)
    shown = plans.get(args.goal)
    strategy = None if shown is None else shown.strategy
    routing: list[Row] = []  # per gateway the sets that it asks, the most likely first
    mixtures = () if strategy is None else strategy.mixtures
    for gateway, mixture in zip(replicas.names if strategy else (), mixtures, strict=True):
        parts = sorted(mixture, key=lambda part: (-round(part[1], 9), part[0]))
        words = (
            f"{100 * share:.1f} % {' + '.join(replicas.names[node] for node in quorum)}"
            for quorum, share in parts
        )
        routing.append({"gateway": gateway, "routing": "; ".join(words)})
    code = show_rows(
        args,
        rows,
        {
            "mean_latency": "mean ms",
            "p_leader": "leader %",
            "peak_load": "peak load",
            "bound": "bound",
            "seconds": "seconds",
        },
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


def _read_figures(problem: ReadProblem, strategy: ReadStrategy) -> Row:
    from placement.online.reads import evaluate

    figures = evaluate(problem, strategy)
    return {
        "mean_latency": figures.latency,
        "p_leader": 100 * figures.leader_served,
        "peak_load": figures.peak,
        "load": [f"{value:.6g}" for value in figures.load],
    }


# Dynamic copies

_MOST_SITES = 12
"""Sites that the Lagrangean relaxation tabulates all subsets of."""


def _add_dynamic(parts: Subparsers) -> None:
    parser = add_verb(parts, "dynamic", _compare_dynamic)
    _add_question(parser)
    parser.add("objects and copies",
        Switch("--objects", "N", "objects (default 2000)", types.whole(1, 1_000_000), 2000),
        Switch("--copies", "K", "most dynamic copies at each site (default 60)",
            types.whole(1), 60),
        Switch("--zipf", "A", "exponent of the popularity of objects (default 0.99)",
            types.number(), 0.99),
        Switch("--common", "F", "part of the demand on objects that are hot at every site "
            "(default 0.5)", types.fraction, 0.5),
        Switch("--prefer-within", "MS", "clients look for a copy at sites within this RTT "
            "(default 100)", types.number(), 100.0),
        Switch("--write-cost", "W", "cost of a write at each dynamic copy, as part of the RTT "
            "to it (default 0)", types.number(), 0.0),
        Switch("--sites", "SITES", "sites that may hold dynamic copies (default: the sites with "
            f"the most reads; with the replicas at most {_MOST_SITES})", types.names, several=True),
    )  # fmt: skip


def _compare_dynamic(args: argparse.Namespace) -> int:
    """Place extra copies of hot objects by votes of the reads.

    They stand beside the static copies at the replicas. Compared are votes of the reads (Matri et
    al. 2018), local and greedy choices, and the proven optimum at the same number of copies.
    """
    from placement.online.dynamic.replication_problem import base_cost

    replicas = replicas_of(args)
    problem = _copy_problem(args, replicas)
    optimum = _installed("dynamic.optimum")
    best = math.nan

    def costed(method: Callable[[], tuple[float, float]]) -> Step:
        def step() -> Row:
            cost, copies = method()
            mean = cost / problem.total_reads
            return {"status": "feasible", "mean_latency": mean, "copies": copies}

        return step

    def solved() -> Row:
        nonlocal best
        plan = optimum(problem)
        best = plan.bound / problem.total_reads
        return {
            "status": str(plan.status),
            "mean_latency": plan.cost / problem.total_reads,
            "copies": float(plan.evaluation.replicas[problem.capacity > 0].mean()),
            "bound": best,
            "reason": "; ".join(plan.notes),
        }

    steps = [("static copies only", costed(lambda: (base_cost(problem), 0.0)))]
    heuristics = _installed("dynamic.heuristics")(problem)
    steps += [(label, costed(step)) for label, step in heuristics.items()]
    rows, interrupted = collect(args, [*steps, ("optimum", solved)])
    # With more copies than the optimum may hold, a gap would say nothing.
    fair = [row for row in rows if isinstance(row.get("copies"), float)]
    _add_gaps([row for row in fair if float(str(row["copies"])) <= args.copies], best)
    sites = ", ".join(problem.geography.sites)
    return show_rows(
        args,
        rows,
        {
            "mean_latency": "mean ms",
            "copies": "copies/site",
            "gap_percent": "gap %",
            "bound": "bound ms",
            "seconds": "seconds",
        },
        question=f"Reads of {problem.objects:,} object{'s' if problem.objects > 1 else ''} of "
        f"{replicas.instance.name}, with at most {args.copies:,} dynamic "
        f"cop{'ies' if args.copies > 1 else 'y'} at each of the sites {sites}",
        facts=[
            "Mean ms: network RTT of a read, and the cost of writes where --write-cost is given",
            "Gap: to the bound of the optimum; none where votes with a grace period hold more "
            "copies",
        ],
        interrupted=interrupted,
        more={"sites": list(problem.geography.sites)},
    )


def _copy_problem(args: argparse.Namespace, replicas: ReplicaSites) -> ReplicationProblem:
    """Return the objects at the replicas, and the sites that may hold dynamic copies."""
    import numpy as np

    from placement.model.demand import reads_and_writes
    from placement.online.dynamic import Geography, ReplicationProblem
    from placement.online.dynamic.store_demand import Generators
    from placement.online.simulation import spawn_streams, zipf

    instance, held = replicas.instance, replicas.sites.tolist()
    reads, writes = reads_and_writes(instance)
    table = client_rtt(instance)
    if args.sites:
        extra = instance.site_indices(names(args.sites, instance.sites), "--sites")
    else:
        near = np.bincount(table.argmin(axis=1), weights=reads, minlength=len(instance.sites))
        extra = np.argsort(-near, kind="stable")[:_MOST_SITES]
    added = [int(site) for site in extra if site not in held]
    if args.sites is None:
        added = added[: max(0, _MOST_SITES - len(held))]
    if not added or len(held) + len(added) > _MOST_SITES:
        words = "no site for dynamic copies" if not added else "too many sites"
        expected = f"with the replicas at most {_MOST_SITES} sites, at least one of them new"
        raise refused("", "--sites", words, len(held) + len(added), expected)
    sites = np.array(held + added)
    home = table[:, sites].argmin(axis=1)
    read = np.bincount(home, weights=reads, minlength=len(sites))
    written = np.bincount(home, weights=writes, minlength=len(sites))
    rng = spawn_streams(args.seed, ("demand",))["demand"]
    order = np.stack([rng.permutation(args.objects) for _ in sites])
    common, popularity = rng.permutation(args.objects), zipf(args.objects, args.zipf)
    each = Generators(np.arange(len(sites)), order, common, args.common, popularity)
    chance = each.probabilities()  # of each object in the requests of each site
    rtt = site_rtt(instance, sites)
    static = np.zeros(chance.shape, dtype=bool)
    static[: len(held)] = True
    capacity = np.full(len(sites), args.copies)
    capacity[: len(held)] = 0
    sites_named = tuple(instance.sites[site] for site in sites)
    return ReplicationProblem(
        Geography.within(sites_named, rtt, args.prefer_within),
        static,
        read[:, None] * chance,
        capacity,
        write_cost=np.outer(args.write_cost * rtt[: len(held)].min(axis=0), written @ chance),
    )
