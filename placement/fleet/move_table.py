"""The moves of a fleet as a table: a row for each step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from placement.fleet.move_order import DatabaseMove, MoveOrder
from placement.overtime.moves.move_steps import step_document

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["moves_frame"]


def moves_frame(order: MoveOrder, sites: Sequence[str]) -> pd.DataFrame:
    """Return the moves of a fleet as a table, in their order.

    Columns: ``move`` (its number), ``step`` (within the move), ``database``, ``copies`` (that take
    the steps one after the other), ``staging`` (whether the move ends at a stop on the way),
    ``action``, ``site``, then ``leader``, ``voters`` and ``replicas`` after the step, and ``text``.
    """
    import pandas as pd

    columns = ("move", "step", "database", "copies", "staging", "action", "site", "leader",
               "voters", "replicas", "text")  # fmt: skip
    rows = [
        (number, step, move.member.name, move.copies, move.staging, *cells)
        for number, move in enumerate(order.moves, 1)
        for step, cells in enumerate(_steps(move, sites), 1)
    ]
    return pd.DataFrame(rows, columns=list(columns))


def _steps(move: DatabaseMove, sites: Sequence[str]) -> Iterator[tuple[object, ...]]:
    """Yield the cells of each step from ``action`` on."""
    if not move.steps:
        after = move.after
        names = [tuple(sites[site] for site in chosen) for chosen in (after.voters, after.replicas)]
        leader = sites[after.leader]
        yield "create", leader, leader, *names, f"create the database, led from {leader}"
    for step in move.steps:
        told = step_document(step, sites)
        voters, replicas = (tuple(map(str, told[key])) for key in ("voters", "replicas"))  # type: ignore[call-overload]
        yield told["step"], told["site"], told["leader"], voters, replicas, told["text"]
