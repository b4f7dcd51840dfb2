"""The question of ``placement contingency quorum``: its options, and the problem they describe."""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from placement.cli import argument_types as types
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.quorumstore import Goal, QuorumProblem, StoreRules, TrafficPrices
    from placement.quorumstore.problem import CountArray
    from placement.support.checks import FloatArray

__all__ = ["add_question", "problem_from"]

_MOST_REQUESTS = 10**15
"""Most requests of a site that one option may add."""

_MESSAGES = "messages"
"""Name of the prices that count messages between sites."""


def add_question(parser: argparse.ArgumentParser) -> None:
    """Add the options that make the problem."""
    parser.add_argument(
        "store",
        metavar="RTTS",
        help="a table of RTTs in ms (square with names in the first row and column, or long with "
        "src, dst, rtt), or an instance folder or bundled data set, whose site RTTs are used",
    )
    parser.add_argument(
        "--local-rtt",
        type=types.number(),
        default=0.5,
        metavar="MS",
        help="least RTT within a site (default 0.5)",
    )
    group = parser.add_argument_group("demand: one key, or a table of keys")
    for side in ("reads", "writes"):
        group.add_argument(
            f"--{side}",
            action="append",
            default=[],
            metavar="SITE=N",
            help=f"{side} entering at a site, a whole number (repeatable)",
        )
    group.add_argument(
        "--own-demand",
        action="store_true",
        help="the counts of the instance: requests of each client enter at its closest site",
    )
    group.add_argument(
        "--keys",
        metavar="FILE",
        help="CSV or Parquet with columns key, reads:<site>, writes:<site>; needs -o; the table is "
        "streamed, and an interrupted run is continued",
    )
    group = parser.add_argument_group("rules")
    model = group.add_mutually_exclusive_group()
    model.add_argument("--normal", action="store_true", help="BA: latency with nothing lost")
    model.add_argument("--worst", action="store_true", help="N-1C: the worst loss (default)")
    group.add_argument(
        "--redirect",
        choices=("keep", "closest", "hop"),
        default="hop",
        help="clients of a lost site keep their latency, are at the closest survivor, or reach it "
        "by an extra hop (default)",
    )
    group.add_argument(
        "--p",
        type=types.number(0, 1, above=True),
        default=0.9,
        metavar="P",
        help="share within the threshold (default 0.9)",
    )
    group.add_argument(
        "--p-reads",
        type=types.number(0, 1, above=True),
        metavar="P",
        help="share of reads within the threshold, in place of --p",
    )
    group.add_argument(
        "--p-writes",
        type=types.number(0, 1, above=True),
        metavar="P",
        help="share of writes within the threshold, in place of --p",
    )
    group.add_argument(
        "--n-max", type=types.whole(1), default=5, metavar="N", help="largest N (default 5)"
    )
    for option, text in (("--n", "N"), ("--r", "R"), ("--w", "W")):
        group.add_argument(option, type=types.whole(1), metavar=text, help=f"fix {text}")
    group.add_argument(
        "--failures",
        type=types.whole(),
        default=1,
        metavar="F",
        help="sites lost at once (default 1)",
    )
    group.add_argument(
        "--regions", metavar="LEVEL", help="level whose failure domains are the regions"
    )
    group.add_argument("--lose-region", action="store_true", help="lose one whole region at a time")
    group.add_argument(
        "--distinct-regions", action="store_true", help="no two replicas in one region"
    )
    group = parser.add_argument_group("goal")
    group.add_argument(
        "--target",
        choices=("threshold", "reads", "writes", "cost"),
        help="max(T_r, T_w) (default); one of them, ties by the other; or traffic and storage",
    )
    group.add_argument(
        "--weighted",
        type=types.two_numbers,
        metavar="A,B",
        help="A * T_r + B * T_w, in place of --target",
    )
    group.add_argument(
        "--mix",
        type=types.two_numbers,
        metavar="A,B",
        help="A * normal + B * worst loss, in place of the worst loss alone (0,1); A,0 with "
        "limits: the best normal latency with limits on the worst case",
    )
    for side in ("read", "write"):
        group.add_argument(
            f"--{side}-limit", type=types.number(), default=math.inf, metavar="MS",
            help=f"largest {side} threshold allowed",
        )  # fmt: skip
    group = parser.add_argument_group("costs")
    group.add_argument(
        "--traffic",
        metavar="FILE",
        help="prices per GB sent between sites: a CSV shaped like RTTS (rows send), or 'messages', "
        "which counts messages between sites",
    )
    group.add_argument(
        "--storage",
        action="append",
        default=[],
        metavar="[SITE=]PRICE",
        help="price of a replica: at every site, or at one (repeatable)",
    )
    group.add_argument(
        "--object-gb",
        type=types.number(),
        default=1.0,
        metavar="GB",
        help="size of an object (default 1)",
    )
    group.add_argument(
        "--digest-gb",
        type=types.number(),
        default=0.0,
        metavar="GB",
        help="size of an answer to a read from replicas other than the nearest (default 0)",
    )
    group.add_argument(
        "--budget",
        type=types.number(),
        default=math.inf,
        metavar="COST",
        help="largest cost of traffic and storage",
    )


def problem_from(args: argparse.Namespace) -> QuorumProblem:
    """Return the problem; of a table of keys, a template."""
    import numpy as np

    from placement.quorumstore import QuorumProblem

    sites, rtt, regions = _store(args)
    rtt = rtt.copy()
    np.fill_diagonal(rtt, np.maximum(np.diagonal(rtt), args.local_rtt))
    given = {"reads": args.reads, "writes": args.writes}
    demand = {side: _counts(values, sites, side) for side, values in given.items()}
    if args.own_demand:
        demand = _own_demand(args)
    if args.keys is not None:
        one = args.reads or args.writes or args.own_demand
        if one or args.pareto or args.envelope or args.compare:
            raise InputError(
                "one key and a table of keys were given",
                field="--keys",
                value=args.keys,
                expected="no --reads, --writes, --own-demand, --pareto, --envelope, --compare",
            )
        demand["reads"] = np.ones(len(sites), dtype=np.int64)  # not used: the table has its own
    return QuorumProblem(
        rtt,
        demand["reads"],
        demand["writes"],
        sites=sites,
        regions=regions,
        rules=_rules(args),
        goal=_goal(args),
        prices=_prices(args, sites),
    )


def _own_demand(args: argparse.Namespace) -> dict[str, CountArray]:
    """Return the reads and writes of the instance itself."""
    from placement import datasets, load
    from placement.quorumstore.instance_demand import site_requests

    if args.reads or args.writes:
        raise InputError(
            "the demand is given twice", field="--own-demand", expected="no --reads and no --writes"
        )
    if args.store not in datasets.names() and not Path(args.store).is_dir():
        raise InputError(
            "a table of RTTs has no demand",
            field="--own-demand",
            value=args.store,
            expected="a bundled data set, or the folder of an instance",
        )
    reads, writes = site_requests(load(args.store))
    return {"reads": reads, "writes": writes}


def _store(
    args: argparse.Namespace,
) -> tuple[tuple[str, ...], FloatArray, tuple[str, ...]]:
    import numpy as np

    from placement import datasets, load

    if args.store in datasets.names() or Path(args.store).is_dir():
        instance = load(args.store)
        if instance.site_rtt.ndim != 2:
            raise InputError("RTTs vary by interval", field="RTTS", value=args.store)
        regions: tuple[str, ...] = ()
        if args.regions is not None:
            regions = tuple(str(label or "") for label in instance.labels(args.regions))
        return instance.sites, np.array(instance.site_rtt), regions
    if args.regions is not None:
        raise InputError(
            "a table of RTTs has no levels",
            field="--regions",
            value=args.regions,
            expected="a bundled data set, or the folder of an instance",
        )
    long = _long_table(args.store)
    if long is not None:
        return *long, ()
    sites, table = _matrix(args.store, "RTTS", "an RTT", "milliseconds")
    return sites, table, ()


def _long_table(name: str) -> tuple[tuple[str, ...], FloatArray] | None:
    """Read a long table of RTTs (src, dst, rtt); None where the file is none."""
    import numpy as np

    from placement.io.formats.tables import read_table
    from placement.io.rtt_importers import LongColumns, read_long_rtt

    if not Path(name).is_file():
        return None
    columns = LongColumns()
    if not {columns.source, columns.destination, columns.rtt} <= set(read_table(name).columns):
        return None
    found = read_long_rtt(name)
    sites = tuple(dict.fromkeys((*found.sources, *found.destinations)))
    table, _ = found.between(sites, sites, diagonal=False)
    own = np.arange(len(sites))
    table[own, own] = np.nan_to_num(table[own, own])
    return sites, table


def _matrix(name: str, field: str, what: str, unit: str) -> tuple[tuple[str, ...], FloatArray]:
    """Read a square table with names in the first row and column; an empty diagonal is 0."""
    import numpy as np

    from placement import datasets

    path = Path(name)
    if not path.is_file():
        others = (*datasets.names(),) if field == "RTTS" else (_MESSAGES,)
        raise InputError(
            "no such file or data set" if field == "RTTS" else "no such file",
            field=field,
            value=name,
            expected="a CSV, or one of " + ", ".join(others),
        )
    with path.open(newline="", encoding="utf-8") as stream:
        rows = [row for row in csv.reader(stream) if row]
    sites = tuple(row[0] for row in rows[1:])
    if not rows or tuple(rows[0][1:]) != sites:
        raise InputError(
            "rows and columns name different sites",
            source=name,
            expected="a header 'site,a,b,…' and then one row per site in the same order",
        )
    table = np.zeros((len(sites), len(sites)))
    for i, row in enumerate(rows[1:]):
        if len(row) != len(sites) + 1:
            raise InputError("wrong number of cells", source=f"{name}, row {i + 2}", value=len(row))
        for j, cell in enumerate(row[1:]):
            try:
                table[i, j] = float(cell) if cell or i != j else 0.0
            except ValueError:
                raise InputError(
                    f"not {what}",
                    source=f"{name}, row {i + 2}",
                    field=sites[j],
                    value=cell,
                    expected=unit,
                ) from None
    return sites, table


def _counts(values: list[str], sites: tuple[str, ...], side: str) -> CountArray:
    import numpy as np

    counts = np.zeros(len(sites), dtype=np.int64)
    for text in values:
        site, equals, number = text.rpartition("=")
        if not equals or site not in sites or not number.isdecimal():
            raise InputError(
                "not a count",
                field=f"--{side}",
                value=text,
                expected="SITE=N with a whole number and a site of " + ", ".join(sites),
            )
        counts[sites.index(site)] += types.read_whole(number, f"--{side}", 0, _MOST_REQUESTS)
    return counts


def _rules(args: argparse.Namespace) -> StoreRules:
    from placement.quorumstore import LossScope, Redirect, StoreRules

    return StoreRules(
        not args.normal,
        redirect=Redirect(args.redirect),
        read_fraction=args.p if args.p_reads is None else args.p_reads,
        write_fraction=args.p if args.p_writes is None else args.p_writes,
        max_replicas=args.n_max,
        replicas=args.n,
        read_quorum=args.r,
        write_quorum=args.w,
        failures=args.failures,
        loss=LossScope.REGION if args.lose_region else LossScope.SITE,
        distinct_regions=args.distinct_regions,
    )


def _goal(args: argparse.Namespace) -> Goal:
    from placement.quorumstore import Goal, Target

    target = Target(args.target or "threshold")
    read_weight = write_weight = 1.0
    if args.weighted is not None:
        if args.target is not None:
            raise InputError(
                "two goals were given",
                field="--weighted",
                value=args.weighted,
                expected="no --target",
            )
        target = Target.WEIGHTED
        read_weight, write_weight = args.weighted
    normal_weight, worst_weight = 0.0, 1.0
    if args.mix is not None:
        if args.normal:
            raise InputError(
                "--mix needs losses, and --normal has none",
                field="--mix",
                value=args.mix,
                expected="--worst, or no --mix",
            )
        normal_weight, worst_weight = args.mix
    return Goal(
        target,
        read_weight=read_weight,
        write_weight=write_weight,
        normal_weight=normal_weight,
        worst_weight=worst_weight,
        read_bound=args.read_limit,
        write_bound=args.write_limit,
        cost_bound=args.budget,
    )


def _prices(args: argparse.Namespace, sites: tuple[str, ...]) -> TrafficPrices | None:
    """Return the prices; None if nothing has a price."""
    import numpy as np

    from placement.quorumstore import TrafficPrices, message_prices

    if args.traffic is None and not args.storage:
        if args.target == "cost" or math.isfinite(args.budget):
            raise InputError(
                "nothing has a price",
                field="--target" if args.target == "cost" else "--budget",
                value="cost" if args.target == "cost" else args.budget,
                expected="--traffic or --storage as well",
            )
        return None
    storage = _storage(args.storage, sites)
    if args.traffic == _MESSAGES:
        counted = message_prices(len(sites))
        return TrafficPrices(
            counted.traffic, storage, object_gb=counted.object_gb, digest_gb=counted.digest_gb
        )
    traffic = np.zeros((len(sites), len(sites)))
    if args.traffic is not None:
        named, traffic = _matrix(args.traffic, "--traffic", "a price", "a price per GB")
        if named != sites:
            raise InputError(
                "prices and RTTs name different sites",
                source=args.traffic,
                value=", ".join(named),
                expected=", ".join(sites),
            )
    return TrafficPrices(traffic, storage, object_gb=args.object_gb, digest_gb=args.digest_gb)


def _storage(values: Sequence[str], sites: tuple[str, ...]) -> FloatArray:
    """Price of a replica at each site; a later option overrules an earlier one."""
    import numpy as np

    prices = np.zeros(len(sites))
    for text in values:
        site, equals, number = text.rpartition("=")
        if equals and site not in sites:
            raise InputError(
                "not a price",
                field="--storage",
                value=text,
                expected="PRICE, or SITE=PRICE with a site of " + ", ".join(sites),
            )
        price = types.read_number(number, "--storage", 0, types.LARGEST_NUMBER)
        if equals:
            prices[sites.index(site)] = price
        else:
            prices[:] = price
    return prices
