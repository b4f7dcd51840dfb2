"""Options about votes: how many a commit waits for, and which sites have none."""

from __future__ import annotations

import argparse

from placement.cli import argument_parser as types
from placement.errors import InputError

__all__ = ["add_votes", "without_vote"]


def add_votes(group: argparse._ArgumentGroup) -> None:
    """Add ``--quorum`` and ``--votes``."""
    group.add_argument(
        "--quorum",
        type=types.whole(1),
        metavar="M",
        help="votes a commit waits for (default: a majority)",
    )
    group.add_argument(
        "--votes",
        action="append",
        default=[],
        type=types.names,
        metavar="SITE=0,…",
        help="sites without a vote, as a database writes them; the same as --no-vote SITE,…",
    )


def without_vote(args: argparse.Namespace) -> tuple[str, ...]:
    """Return the sites to which ``--votes`` gives no vote.

    Raises
    ------
    InputError
        With the option, for a text of another form and for other numbers than 0.
    """
    found = []
    for one in args.votes:
        site, _, votes = one.rpartition("=")
        if not site.strip() or votes.strip() != "0":
            raise InputError(
                "sites vote once or not at all",
                field="--votes",
                value=one,
                expected="SITE=0 for a site without a vote, and no option for the others",
            )
        found.append(site.strip())
    return tuple(found)
