"""The options that put prices on an instance."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.evaluation.bill import MonthlyBill
    from placement.io.price_lists import PriceInput, SitePrices, TransferTable
    from placement.model.configuration import Configuration
    from placement.model.instance import Instance
    from placement.plan import Plan
    from placement.problem import Problem

__all__ = [
    "add_bill",
    "add_prices",
    "apply_prices",
    "check_present",
    "has_prices",
    "present_configuration",
    "tiered_bill",
]

_AWS = "aws"
_OPTIONS = (
    "prices",
    "transfer",
    "client_sites",
    "gb_per_op",
    "written_gb",
    "interval_hours",
    "stored_gb",
    "replication",
)


def add_prices(parser: argparse.ArgumentParser) -> None:
    """Add the options that :func:`apply_prices` reads."""
    group = parser.add_argument_group("prices (per month, in one currency)")
    group.add_argument(
        "--prices",
        metavar="FILE|X",
        help="prices of each site: a CSV with the columns site, storage, machines, "
        "machines_non_voting, requests; a JSON price list of AWS or Azure; or one price for all",
    )
    group.add_argument(
        "--transfer",
        metavar="FILE|aws",
        help="prices per GB sent: a CSV (from, to, price; or square), a JSON price list of AWS or "
        "Azure, or 'aws': the list of 2022 in the package skyplane",
    )
    group.add_argument(
        "--zones",
        metavar="LEVEL",
        help="the names in --transfer are domains of LEVEL, not sites",
    )
    group.add_argument(
        "--marginal-gb",
        type=types.number(),
        metavar="GB",
        help="monthly volume that selects the price, if --transfer has volume tiers",
    )
    group.add_argument(
        "--client-sites",
        metavar="FILE|nearest|internet",
        help="place of each client for the prices of traffic: a CSV (client, site), the site with "
        "the smallest RTT, or the internet; a client with the name of a site is at this site",
    )
    group.add_argument(
        "--gb-per-op",
        action="append",
        default=[],
        metavar="OP=GB,…",
        help="GB that one operation moves; OP is an operation, or read or write for all of them",
    )
    group.add_argument(
        "--written-gb",
        type=types.number(),
        metavar="GB",
        help="GB written per month, which the leader ships to each replica",
    )
    group.add_argument(
        "--interval-hours",
        type=types.number(0, above=True),
        metavar="H",
        help="hours that one interval of demand covers (default: all intervals are one month)",
    )
    group.add_argument(
        "--stored-gb", type=types.number(), metavar="GB", help="GB that one replica holds"
    )
    group.add_argument(
        "--replication",
        choices=("leader", "gateway"),
        help="sender of a write to the replicas: the leader, or the site of the client (gateway)",
    )


def add_bill(parser: argparse.ArgumentParser) -> None:
    """Add ``--from``, the plan that runs today, and ``--tiers``, which price its bill again."""
    parser.add_argument(
        "--tiers",
        metavar="FILE",
        help="volume tiers for a second bill of the plan's traffic: a CSV with from, "
        "up_to_gb (blank: no limit) and price",
    )
    parser.add_argument(
        "--from",
        dest="present",
        metavar="PLAN",
        help="present configuration: a plan file, or a JSON file with leader, voters and replicas; "
        "the output compares its bill with the bill of the new plan, and with --stored-gb the bill "
        "includes the copies to new sites",
    )


def check_present(problem: Problem, args: argparse.Namespace) -> None:
    """Refuse ``--from`` where nothing is compared with it; read its file before the work begins.

    Raises
    ------
    InputError
        For a file that is no configuration, and for a question without prices and moves.
    """
    if args.present is None or problem.moves is not None:
        return
    if problem.instance.prices is None or problem.demand.has_waits:
        moves = ", or an option of moves such as --max-moves" if "max_moves" in vars(args) else ""
        raise InputError(
            "does nothing without a bill of the plan",
            field="--from",
            value=args.present,
            expected=f"prices (--prices){moves}",
        )
    present_configuration(problem.instance, args.present)


def present_configuration(instance: Instance, path: str) -> Configuration:
    """Return the configuration of a file on the sites of an instance.

    A plan file, or a JSON object of `leader`, `voters` and `replicas` by name.

    Raises
    ------
    InputError
        For a plan without a configuration, and one with a site that the instance does not have.
    """
    from placement.evaluation.moves import CurrentSites
    from placement.io.formats.document import read_document
    from placement.io.plan_file import load_plan

    document = read_document(path)
    try:
        if "format" not in document.values:
            return CurrentSites.of(document.values, instance).on(instance)
        plan = load_plan(path)
        if plan.configuration is None:
            raise InputError("a plan without a configuration", source=path, field="--from")
        return CurrentSites(plan.leader or "", plan.voters, plan.replicas).on(instance)
    except InputError as error:
        raise error if error.source else error.at(path) from None


def tiered_bill(plan: Plan, path: str) -> MonthlyBill:
    """Return the bill of a plan with the volume tiers of a file.

    Raises
    ------
    InputError
        For a plan without prices, and a sender that is neither a site nor a client.
    """
    from placement.io.price_lists import read_tiers

    if plan.bill is None:
        raise InputError(
            "no prices", field="--tiers", value=path, expected="an instance with prices"
        )
    tiers, instance = read_tiers(path), plan.problem.instance
    for name in tiers:
        if name not in instance.sites and name not in instance.clients:
            raise InputError(
                "unknown sender", source=path, field="from", value=name,
                expected="a site or a client of the instance",
            )  # fmt: skip
    senders = {row.sender for row in plan.bill.rows}
    return plan.bill.with_tiers({name: tiers[name] for name in tiers if name in senders})


def has_prices(args: argparse.Namespace) -> bool:
    """Return whether one of the options was given."""
    return any(getattr(args, name, None) not in (None, []) for name in _OPTIONS)


def apply_prices(instance: Instance, args: argparse.Namespace) -> Instance:
    """Return the instance with the prices of the options.

    Raises
    ------
    InputError
        Naming the option, or the file and its row.
    """
    from placement.io.price_lists import with_prices

    given = _given(instance, args)
    if getattr(args, "present", None) is not None:
        here = present_configuration(instance, args.present)
        sites = tuple(instance.sites[r] for r in here.replicas)
        given = dataclasses.replace(given, present=sites)
    return with_prices(instance, given)


def _given(instance: Instance, args: argparse.Namespace) -> PriceInput:
    from placement.io.price_lists import PriceInput

    names = [part for text in args.gb_per_op for part in text.split(",") if part.strip()]
    return PriceInput(
        sites=None if args.prices is None else _sites(args.prices),
        transfer=None if args.transfer is None else _transfer(args),
        zones=args.zones,
        client_places={} if args.client_sites is None else _places(instance, args.client_sites),
        gb_per_op=types.read_named_numbers(names, "--gb-per-op", "OP=GB"),
        written_gb=args.written_gb,
        interval_hours=args.interval_hours,
        replication=args.replication,
        stored_gb=args.stored_gb,
    )


def _sites(text: str) -> SitePrices | float:
    from placement.io.price_lists import read_site_prices

    if not Path(text).exists():
        try:
            return types.read_number(text, "--prices", 0.0, types.LARGEST_NUMBER)
        except InputError:
            raise InputError(
                "no such file", field="--prices", value=text, expected="a file, or one price"
            ) from None
    return read_site_prices(text)


def _transfer(args: argparse.Namespace) -> TransferTable:
    from placement.io.price_lists import read_transfer

    if args.transfer == _AWS:
        from placement.datasets.aws_transfer import find_aws_transfer

        path, source = find_aws_transfer()
        table = dataclasses.replace(read_transfer(path), source=source, currency="USD")
    else:
        table = read_transfer(args.transfer)
    return table if args.marginal_gb is None else table.at_volume(args.marginal_gb)


def _places(instance: Instance, text: str) -> dict[str, str]:
    from placement.io.formats.tables import name_cell, read_table
    from placement.io.price_lists import INTERNET, nearest_sites

    if text == "nearest":
        return nearest_sites(instance)
    if text == INTERNET:
        return dict.fromkeys(instance.clients, INTERNET)
    table = read_table(text)
    client, site = table.column("client"), table.column("site")
    return {
        name_cell(cells[client], table.at(row), "client").strip(): name_cell(
            cells[site], table.at(row), "site"
        ).strip()
        for row, cells in enumerate(table.rows)
    }
