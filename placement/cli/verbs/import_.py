"""``placement import``: an instance from measured RTTs and counted operations."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from placement.cli import argument_types as types
from placement.cli import exit_codes as exits
from placement.cli.argument_parser import Subparsers
from placement.cli.options import add_output
from placement.cli.plan_output import print_json, print_notes
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.model.operations import Operation

__all__ = ["add_parser", "run"]

_ROUND_TRIPS = ("near", "relay", "direct", "quorum")


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = verbs.add_parser(
        "import",
        help="make an instance of your own RTTs and demand",
        description="Make an instance from a table of RTTs between sites, and demand. RTTs are "
        "milliseconds; rows (sources) wait for columns (destinations).",
    )
    parser.add_argument("rtt", metavar="RTT", help="RTTs between sites: CSV, TSV, Parquet, JSON")
    parser.add_argument(
        "--format",
        choices=("auto", "square", "long", "cloudping", "percentiles"),
        default="auto",
        help="layout of the RTT files (default: by their columns)",
    )
    parser.add_argument(
        "--client-rtt",
        metavar="FILE",
        help="RTTs from clients to sites (default: a client in every site)",
    )
    long = parser.add_argument_group("columns of a long table")
    long.add_argument("--src", metavar="COLUMN", help="the source (default src)")
    long.add_argument("--dst", metavar="COLUMN", help="the destination (default dst)")
    long.add_argument("--rtt-column", metavar="COLUMN", help="the RTT (default rtt)")
    long.add_argument("--interval", metavar="COLUMN", help="the interval, if there are several")
    demand = parser.add_argument_group("demand")
    demand.add_argument(
        "--counts",
        metavar="FILE",
        help="operations issued: client and a column per operation, or client, operation, count; "
        "with a column interval if there are several",
    )
    demand.add_argument(
        "--mix", help="instead: the same demand of every client, with a named operation mix"
    )
    demand.add_argument(
        "--operation",
        action="append",
        default=[],
        metavar="NAME:KEY=VALUE,…",
        help="define an operation that --counts names, by round trips: near (client to nearest "
        "replica), relay (nearest replica to leader), direct (client to leader), quorum (rounds of "
        "votes); may be repeated",
    )
    more = parser.add_argument_group("more about the sites")
    more.add_argument(
        "--sites",
        metavar="FILE",
        help="candidate sites: name, lat, lon, a column per failure-domain level",
    )
    more.add_argument(
        "--fill",
        choices=("none", "transpose"),
        default="none",
        help="take a missing RTT from the opposite direction (default: refuse)",
    )
    more.add_argument(
        "--intra-site",
        type=types.number(),
        default=1.0,
        metavar="MS",
        help="RTT within a site in ms, used where the table has no value (default 1)",
    )
    more.add_argument(
        "--scale",
        type=types.number(above=True),
        default=1.0,
        metavar="F",
        help="multiply RTTs, 1000 for seconds",
    )
    more.add_argument("--name", help="of the instance (default: that of the folder)")
    group = parser.add_argument_group("files")
    group.add_argument(
        "-o", "--output", required=True, metavar="FOLDER", help="where the instance goes"
    )
    group.add_argument("--tables", choices=("csv", "parquet"), default="csv")
    group.add_argument("--force", action="store_true", help="replace an existing instance")
    add_output(parser, plan=False)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Read, check, write."""
    from placement.io.assemble_instance import assemble, read_counts
    from placement.io.formats.files import check_folder
    from placement.io.instance_folder import save_instance
    from placement.io.rtt_importers import LongColumns, read_rtt
    from placement.text import instance_text

    check_folder(args.output, force=args.force)
    given = {
        "source": args.src,
        "destination": args.dst,
        "rtt": args.rtt_column,
        "interval": args.interval,
    }
    chosen = {key: value for key, value in given.items() if value is not None}
    columns = LongColumns(**chosen) if chosen else None
    rtt = read_rtt(args.rtt, args.format, columns).scaled(args.scale)
    client_rtt = None
    if args.client_rtt is not None:
        client_rtt = read_rtt(args.client_rtt, args.format, columns).scaled(args.scale)
    counts = None if args.counts is None else read_counts(args.counts)
    if counts is not None:
        print_notes(args.counts, counts.notes)
    instance = assemble(
        rtt,
        counts=counts,
        mix=args.mix,
        client_rtt=client_rtt,
        sites=args.sites,
        operations=tuple(map(_operation, args.operation)),
        fill=args.fill,
        intra_site=args.intra_site,
        name=args.name if args.name is not None else Path(args.output).resolve().name,
    )
    manifest = save_instance(instance, args.output, tables=args.tables, force=args.force)
    if args.json:
        print_json(
            {
                "manifest": str(manifest),
                "fingerprint": instance.fingerprint,
                "sites": len(instance.sites),
                "clients": len(instance.clients),
                "intervals": len(instance.intervals),
                "provenance": list(instance.provenance),
            }
        )
    else:
        print(instance_text(instance))
        print(f"\nWritten to {manifest}")
    return exits.FOUND


def _operation(argument: str) -> Operation:
    """Read an operation such as ``audit:near=1,relay=0.3``."""
    from placement.model.operations import Operation

    name, separator, rest = argument.rpartition(":")
    given: dict[str, float] = {}
    for part in rest.split(",") if separator else ():
        key, equals, value = (piece.strip() for piece in part.partition("="))
        try:
            if not equals or key not in _ROUND_TRIPS or key in given:
                raise ValueError(part)
            given[key] = types.read_number(value, "--operation", 0, types.LARGEST_NUMBER)
        except ValueError:
            raise InputError(
                "not a number of round trips",
                field="--operation",
                value=part,
                expected=" or ".join(f"{known}=NUMBER" for known in _ROUND_TRIPS) + ", each once",
            ) from None
    if not given:
        raise InputError(
            "no round trips",
            field="--operation",
            value=argument,
            expected="a name and round trips, such as audit:near=1,relay=0.3",
        )
    near, relay, direct, quorum = (given.get(key, 0.0) for key in _ROUND_TRIPS)
    return Operation(name.strip(), near, relay, direct, quorum)
