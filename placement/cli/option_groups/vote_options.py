"""Options about votes: how many a commit waits for, and how many a voter has."""

from __future__ import annotations

import argparse
import re

from placement.cli import argument_parser as types
from placement.errors import InputError

__all__ = ["add_votes", "votes_from"]

_PAIR = re.compile(r"\s*(?P<site>[^=]+?)\s*=\s*(?P<votes>[^,=]*?)\s*(?:,|$)")
_MOST = 10**6
_FORM = "SITE=VOTES, once for each site"


def add_votes(group: argparse._ArgumentGroup) -> None:
    """Add ``--quorum``, ``--vote-layout`` and ``--votes``."""
    group.add_argument(
        "--quorum",
        type=types.whole(1),
        metavar="M",
        help="votes a commit waits for (default: a majority)",
    )
    group.add_argument(
        "--vote-layout",
        type=types.whole_numbers,
        metavar="V,V,…",
        help="votes per voter, largest first: votes of the leader, then of the voters closest to "
        "it",
    )
    group.add_argument(
        "--votes",
        action="append",
        default=[],
        metavar="SITE=V,…",
        help="votes of the sites that have several; --quorum then counts votes",
    )


def votes_from(args: argparse.Namespace) -> dict[str, int] | None:
    """Return the votes by site that ``--votes`` gives; None: one each.

    Raises
    ------
    InputError
        With the option, for a text of another form, a site given twice, and votes that are no whole
        number >= 1. The question refuses unknown sites.
    """
    found: dict[str, int] = {}
    for value in args.votes:
        end = 0
        while end < len(value):
            pair = _PAIR.match(value, end)
            if pair is None:
                problem = "not votes of a site"
                raise InputError(problem, field="--votes", value=value, expected=_FORM)
            site, end = pair["site"], pair.end()
            if site in found:
                raise InputError("given twice", field="--votes", value=site, expected=_FORM)
            found[site] = types.read_whole(pair["votes"], "--votes", 1, _MOST)
    return found or None
