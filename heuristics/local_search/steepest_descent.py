"""Steepest descent of many (leader, replica set) pairs at once.

Every pair takes its best move until no move lowers its objective. If the quorum wait of a move is
known in closed form, the best move is the minimum of a table. Under several caps, minimum domains,
pinned voters or RTTs that vary by interval the table holds lower bounds. The most promising moves
are then evaluated exactly, a few at a time, until one of them is an improvement or no bound
promises one. The search finds every improving move, and never takes one that breaks a rule.

The best move depends on nothing but the pair, so that descents that meet go on as one, and one that
meets the way of an earlier descent is known to come out where that did:
:mod:`heuristics.local_search.steepest_descent`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from heuristics import tuning
from heuristics.local_search.swap_neighbourhood import Pairs, SwapNeighbourhood
from placement.evaluation.score import quorum_latency
from placement.evaluation.voter_choice import best_voters, greedy_waits
from placement.support.checks import BoolArray, FloatArray, IntArray

_FALL = 1e-11  # relative; the tables are exact to about 1e-14


@dataclass
class SteepestDescent:
    """Descends, and remembers the exact waits it has worked out."""

    neighbourhood: SwapNeighbourhood  #: values of moves
    stop: Callable[[], bool]  #: asked between steps; true ends the descent where it stands
    steps: int = 0  #: rounds of moves done
    #: end points of the descents so far, by the sets on their paths
    ends: Ends = field(default_factory=dict)
    _known: dict[tuple[int, ...], float] = field(default_factory=dict)

    @property
    def block(self) -> int:
        """Number of pairs that are handled at once without large temporaries."""
        terms = self.neighbourhood.terms
        return max(1, tuning.DESCENT_BLOCK // max(1, (terms.sites + 1) * len(terms.rank)))

    def run(self, pairs: Pairs) -> FloatArray:
        """Move every pair down to a local optimum, in place; return the objectives, shape (B,).

        Infinite for a pair that obeys no rule to begin with. Steps cost as
        :meth:`SwapNeighbourhood.moves`; pairs that have arrived, or that meet the path of another,
        cost nothing.
        """
        values = [
            self._run(pairs, np.arange(first, min(first + self.block, len(pairs))))
            for first in range(0, len(pairs), self.block)
        ]
        return np.concatenate(values) if values else np.zeros(0)

    def _run(self, pairs: Pairs, rows: IntArray) -> FloatArray:
        """Descend with the pairs in `rows`, which fit into one block."""
        moves_of = self.neighbourhood
        values = np.full(len(rows), math.inf)
        insertions = moves_of.insertions(pairs.leaders[rows])
        cache = DescentCache(self.ends)
        active = cache.unvisited(np.arange(len(rows)), pairs.take(rows))
        valued = False
        while active.size:
            some = pairs.take(rows[active])
            now, table = moves_of.moves(some, insertions.take(active))
            waits_now, waits = moves_of.waits(some)
            if not valued:
                values[active] = now + (waits_now if moves_of.exact else self.exact_waits(some))
                valued = True
            if self.stop():
                cache.copy_end_points(pairs.replicas, rows, values)
                return values
            if moves_of.exact:
                table += waits
                flat = table.reshape(len(active), -1)
                move = flat.argmin(axis=1)
                lowest = flat[np.arange(len(active)), move]
                better = lowest < _below(values[active])
            else:
                move, lowest, better = self._promising(some, table, waits, values[active])
            active = active[better]
            place, site = np.divmod(move[better], table.shape[2])
            pairs.replicas[rows[active], place] = site
            values[active] = lowest[better]
            active = cache.unvisited(active, pairs.take(rows[active]))
            self.steps += 1
        cache.copy_end_points(pairs.replicas, rows, values)
        cache.store_end_points(pairs.replicas, rows, values)
        return values

    def _promising(
        self, pairs: Pairs, table: FloatArray, waits: FloatArray, values: FloatArray
    ) -> tuple[IntArray, FloatArray, BoolArray]:
        """Find a move that truly lowers each pair's value: (move, value after it, found)."""
        base = table.reshape(len(pairs), -1)
        hope = (table + waits).reshape(len(pairs), -1)
        limit = _below(values)
        move = np.zeros(len(pairs), dtype=np.intp)
        lowest = np.full(len(pairs), math.inf)
        found = np.zeros(len(pairs), dtype=bool)
        open_ = np.nonzero(hope.min(axis=1) < limit)[0]
        while open_.size:
            take = min(tuning.EXACT_MOVES, hope.shape[1])
            picks = np.argpartition(hope[open_], take - 1, axis=1)[:, :take]
            owner = np.repeat(open_, take)
            moves = picks.reshape(-1)
            promising = hope[owner, moves] < limit[owner]
            owner, moves = owner[promising], moves[promising]
            after = pairs.take(owner)
            place, site = np.divmod(moves, table.shape[2])
            after.replicas[np.arange(len(owner)), place] = site
            exact = base[owner, moves] + self.exact_waits(after)
            hope[owner, moves] = math.inf
            # the last write wins, so the best move of a pair must come last
            for i in np.argsort(-exact, kind="stable"):
                if exact[i] < limit[owner[i]]:
                    move[owner[i]], lowest[owner[i]], found[owner[i]] = moves[i], exact[i], True
            open_ = open_[~found[open_] & (hope[open_].min(axis=1) < limit[open_])]
        return move, lowest, found

    def exact_waits(self, pairs: Pairs) -> FloatArray:
        """D·q of the best feasible voters of each pair, infinite without any; shape (B,)."""
        terms, rules = self.neighbourhood.terms, self.neighbourhood.rules
        if len(terms.votes) == 1 and rules.nested_voter_caps:
            return self._greedy_waits(pairs)
        result = np.full(len(pairs), math.inf)
        for row, (leader, sites) in enumerate(zip(pairs.leaders, pairs.replicas, strict=True)):
            replicas = tuple(sorted(site for site in sites.tolist() if site < terms.sites))
            key = (int(leader), *replicas)
            if key not in self._known:
                self._known[key] = self._searched_wait(int(leader), replicas)
            result[row] = self._known[key]
        return result

    def _greedy_waits(self, pairs: Pairs) -> FloatArray:
        problem, terms = self.neighbourhood.problem, self.neighbourhood.terms
        ordered = np.sort(pairs.replicas, axis=1)
        count = (ordered < terms.sites).sum(axis=1)
        result = np.full(len(pairs), math.inf)
        for size in np.unique(count):
            rows = np.nonzero(count == size)[0]
            waits = greedy_waits(
                problem.rules, terms.site_rtt[0], pairs.leaders[rows], ordered[rows, :size]
            )
            found = np.isfinite(waits)
            result[rows[found]] = terms.votes[0] * waits[found]
        return result

    def _searched_wait(self, leader: int, replicas: tuple[int, ...]) -> float:
        problem, terms = self.neighbourhood.problem, self.neighbourhood.terms
        voters = best_voters(problem.demand, problem.rules, leader, replicas)
        if voters is None:
            return math.inf
        waits = [
            float(quorum_latency(rtt, leader, voters, problem.rules.quorum))
            for rtt in terms.site_rtt
        ]
        return float(terms.votes @ np.array(waits))


def _below(values: FloatArray) -> FloatArray:
    """Return the thresholds below which a value is lower in spite of rounding."""
    values = np.where(np.isfinite(values), values, -math.inf)
    return values - _FALL * np.abs(values)


# Cache of descents: the end of a descent is stored, and reused where another meets its path.
#
# Steepest descent from a (leader, replica set) pair depends on the pair alone. If two descents
# reach the same pair, one of them can stop and take the end of the other. A descent that reaches a
# pair on the path of a finished one has its end at once. Restarts around few good sets meet often:
# about a third of all steps are saved, the last ones of most descents among them.


Ends = dict[bytes, tuple[float, IntArray]]
"""Value and sites at which the descent from a pair ends, by :func:`_keys` of the pair."""


class DescentCache:
    """Pairs passed by one batch of descents, beside the end points of earlier ones (`ends`)."""

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self._passed: dict[bytes, int] = {}
        self._follows: dict[int, int] = {}
        self._arrived: dict[int, tuple[float, IntArray]] = {}

    def unvisited(self, rows: IntArray, pairs: Pairs) -> IntArray:
        """Return the rows of the batch whose (leader, replica set) no other descent has visited."""
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
        """Copy the end point and value of a descent, in place, to every descent that met it."""
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
