"""Cache of descents: the end of a descent is stored, and reused where another meets its path.

Steepest descent from a (leader, replica set) pair depends on the pair alone. If two descents reach
the same pair, one of them can stop and take the end of the other. A descent that reaches a pair on
the path of a finished one has its end at once. Restarts around few good sets meet often: about a
third of all steps are saved, the last ones of most descents among them.
"""

from __future__ import annotations

import numpy as np

from heuristics import tuning
from heuristics.local_search.swap_neighbourhood import Pairs
from placement.support.checks import FloatArray, IntArray

__all__ = ["DescentCache", "Ends"]

Ends = dict[bytes, tuple[float, IntArray]]
"""Value and sites at which the descent from a pair ends, by :func:`_keys` of the pair."""


class DescentCache:
    """Pairs passed by one batch of descents, beside the end points of earlier ones.

    Parameters
    ----------
    ends
        Of earlier descents in the same neighbourhood; grows by :meth:`store_end_points`.
    """

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self._passed: dict[bytes, int] = {}
        self._follows: dict[int, int] = {}
        self._arrived: dict[int, tuple[float, IntArray]] = {}

    def unvisited(self, rows: IntArray, pairs: Pairs) -> IntArray:
        """Return the descents whose (leader, replica set) no other descent has visited.

        Parameters
        ----------
        rows
            Numbers of the descents within the batch, shape (B,).
        pairs
            Their present pairs, in the same order.
        """
        open_ = []
        for row, name in zip(rows.tolist(), _keys(pairs), strict=True):
            end = self._ends.get(name)
            first = self._passed.setdefault(name, row) if end is None else row
            if end is not None:
                self._arrived[row] = end
            elif first != row:
                self._follows[row] = first
            else:
                open_.append(row)
        return np.array(open_, dtype=np.intp)

    def copy_end_points(self, replicas: IntArray, rows: IntArray, values: FloatArray) -> None:
        """Copy the end point of a descent to every descent that met it.

        Parameters
        ----------
        replicas
            Sites of all sets, shape (pairs, W), changed in place.
        rows
            The rows of the batch.
        values
            Their values, changed in place.
        """
        for row, (value, sites) in self._arrived.items():
            values[row], replicas[rows[row]] = value, sites
        for row in self._follows:
            end = self._first_of(row)
            values[row], replicas[rows[row]] = values[end], replicas[rows[end]]

    def store_end_points(self, replicas: IntArray, rows: IntArray, values: FloatArray) -> None:
        """Store the ends of all pairs that were passed.

        Parameters as for :meth:`copy_end_points`, which must come first.
        """
        if len(self._ends) + len(self._passed) > tuning.REMEMBERED_DESCENTS:
            self._ends.clear()
        ends = [
            (float(value), replicas[row].copy()) for row, value in zip(rows, values, strict=True)
        ]
        self._ends.update((name, ends[row]) for name, row in self._passed.items())

    def _first_of(self, row: int) -> int:
        """Follow from descent to descent; values fall on the way, so that it has an end."""
        while row in self._follows:
            row = self._follows[row]
        return row


def _keys(pairs: Pairs) -> list[bytes]:
    """Return a key for every pair, equal for equal leaders and sets."""
    named = np.column_stack([pairs.leaders, np.sort(pairs.replicas, axis=1)]).astype(np.int32)
    return [row.tobytes() for row in named]
