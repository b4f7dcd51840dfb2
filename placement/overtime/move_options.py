"""The options about moves from the configuration that runs today."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import argument_types as types
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["add_moves", "with_moves"]

_PARTS = ("add", "remove", "promote", "demote", "leader")
_LARGEST = 1e9


def add_moves(parser: argparse.ArgumentParser) -> None:
    """Add the options that :func:`with_moves` reads, beside ``--from``."""
    group = parser.add_argument_group("moves (from the configuration of --from)")
    group.add_argument(
        "--max-moves",
        type=types.whole(),
        metavar="K",
        help="most changes: a site that gains or loses a replica or a vote, another leader; a "
        "replica that goes to another site is two changes",
    )
    group.add_argument(
        "--move-price",
        action="append",
        default=[],
        metavar="PART=MS,…",
        help="price of a change, in ms added to the latency of one period of the demand; PART is "
        "add, remove, promote, demote or leader; one number alone: the same for all of them",
    )
    group.add_argument(
        "--move-horizon",
        type=types.number(0, 1e12, above=True),
        metavar="H",
        help="periods of the demand over which the prices are spread (default 1)",
    )
    group.add_argument(
        "--copy-gb",
        type=types.number(0, _LARGEST),
        metavar="GB",
        help="most GB copied to sites without a replica; needs --replica-gb",
    )
    group.add_argument(
        "--replica-gb", type=types.number(0, _LARGEST), metavar="GB", help="GB of one replica"
    )


def with_moves(problem: Problem, args: argparse.Namespace) -> Problem:
    """Return the question with the present configuration and the moves of the options.

    Raises
    ------
    InputError
        For moves without ``--from``, a part that is none, a price that is none.
    """
    limits = {
        "--max-moves": args.max_moves,
        "--copy-gb": args.copy_gb,
        "--replica-gb": args.replica_gb,
        "--move-horizon": args.move_horizon,
        "--move-price": args.move_price or None,
    }
    given = [option for option, value in limits.items() if value is not None]
    if not given:
        return problem
    if args.present is None:
        raise InputError(
            "moves from no present configuration",
            field=given[0],
            value=limits[given[0]],
            expected="--from PLAN, the configuration that runs today",
        )
    from placement.cli.price_options import present_configuration
    from placement.evaluation.moves import Moves

    return problem.replace(
        current=present_configuration(problem.instance, args.present),
        moves=Moves(
            **_prices(args.move_price),
            at_most=args.max_moves,
            horizon=1.0 if args.move_horizon is None else args.move_horizon,
            copy_gb=args.copy_gb,
            stored_gb=args.replica_gb,
        ),
    )


def _prices(given: list[str]) -> dict[str, float]:
    """Return the prices by part."""
    found: dict[str, float] = {}
    for entry in (part.strip() for text in given for part in text.split(",")):
        name, sign, number = entry.rpartition("=")
        price = types.read_number(number, "--move-price", 0.0, _LARGEST)
        parts = (name,) if sign else _PARTS
        for part in parts:
            if part not in _PARTS or part in found:
                raise InputError(
                    "a part is priced twice" if part in found else "not a part of a move",
                    field="--move-price",
                    value=entry,
                    expected=f"PART=MS with one of {', '.join(_PARTS)}, each once",
                )
            found[part] = price
    return found
