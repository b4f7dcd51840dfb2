"""The options about moves from the configuration that runs today, or from interval to interval."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from placement.cli import argument_parser as types
from placement.errors import InputError

if TYPE_CHECKING:
    from placement.evaluation.moves import Moves
    from placement.problem import Problem

__all__ = ["add_moves", "read_moves", "with_moves"]

_PARTS = ("add", "remove", "promote", "demote", "leader")
_LARGEST = 1e9


def add_moves(
    parser: argparse.ArgumentParser,
    title: str = "moves (from the configuration of --from)",
    *,
    limit: bool = True,
) -> None:
    """Add the options that :func:`read_moves` reads; `limit`: that on the number of changes too."""
    group = parser.add_argument_group(title)
    if limit:
        group.add_argument(
            "--max-moves",
            type=types.whole(),
            metavar="K",
            help="most changes: a site that gains or loses a replica or a vote, another leader; a "
            "replica that goes to another site is two changes",
        )
    else:
        parser.set_defaults(max_moves=None)
    group.add_argument(
        "--move-price",
        action="append",
        default=[],
        metavar="PART=MS,…",
        help="price of a change, in ms added to the latency of one period of the demand; PART is "
        "add, remove, promote, demote or leader; one number: the price of every part",
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


def read_moves(args: argparse.Namespace) -> Moves | None:
    """Return the moves of the options; None if no option is given.

    Raises
    ------
    InputError
        For a part that is none, a price that is none.
    """
    if not _given(args):
        return None
    from placement.evaluation.moves import Moves

    return Moves(
        **_prices(args.move_price),
        at_most=args.max_moves,
        horizon=1.0 if args.move_horizon is None else args.move_horizon,
        copy_gb=args.copy_gb,
        stored_gb=args.replica_gb,
    )


def with_moves(problem: Problem, args: argparse.Namespace) -> Problem:
    """Return the question with the present configuration and the moves of the options.

    Raises
    ------
    InputError
        As :func:`read_moves`, and for moves without ``--from``.
    """
    moves = read_moves(args)
    if moves is None:
        return problem
    if args.present is None:
        option, value = next(iter(_given(args).items()))
        raise InputError(
            "moves from no present configuration",
            field=option,
            value=value,
            expected="--from PLAN, the configuration that runs today",
        )
    from placement.cli.option_groups.price_options import present_configuration

    current = present_configuration(problem.instance, args.present)
    return problem.replace(current=current, moves=moves)


def _given(args: argparse.Namespace) -> dict[str, object]:
    """Return the options that are given, and their values."""
    values = {
        "--max-moves": args.max_moves,
        "--copy-gb": args.copy_gb,
        "--replica-gb": args.replica_gb,
        "--move-horizon": args.move_horizon,
        "--move-price": args.move_price or None,
    }
    return {option: value for option, value in values.items() if value is not None}


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
