"""Order of the moves of a fleet: no step breaks a quorum or a shared limit.

Each database moves by the safe steps of :mod:`placement.overtime.moves.move_steps`: a new replica
is there before an old one goes. So a move needs room for more than its result, and two databases
that exchange full sites wait for each other for ever, unless one of them goes to another site
first. The order is found greedily: the moves that free limits first, then each move that fits, in
rounds; if no move fits, one database is *staged* at sites with room.

A limit that the fleet of today already breaks may stay broken, but no step adds to it.

Examples
--------
Three sites that store 10 GB, and two databases of 10 GB with one replica each. They exchange A and
B, which is possible over C only:

>>> import numpy as np, placement
>>> from placement.fleet import FleetMember, FleetPlan, FleetProblem, Placed, SharedLimits
>>> from placement.fleet.move_order import order_moves
>>> from placement.model.configuration import Configuration
>>> from placement.testing import random_instance
>>> instance = random_instance(1, sites=3, clients=3)
>>> def member(name, site):
...     problem = placement.Problem(instance, replicas=1, voters=1)
...     now = Configuration(site, (site,), (site,))
...     return FleetMember(name, problem, storage_gb=10, present=now)
>>> fleet = FleetProblem([member("x", 0), member("y", 1)], SharedLimits(np.full(3, 10.0)))
>>> swap = [[Placed(Configuration(1, (1,), (1,)))], [Placed(Configuration(0, (0,), (0,)))]]
>>> order = order_moves(FleetPlan(fleet, swap))
>>> [(move.member.name, move.after.replicas, move.staging) for move in order.moves]
[('x', (2,), True), ('y', (0,), False), ('x', (1,), False)]
>>> order.blocked
()
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from placement.feasibility.feasible_plans import violations
from placement.fleet.fleet_plan import FleetPlan
from placement.fleet.fleet_problem import FleetMember
from placement.fleet.shared_rows import SharedRows
from placement.model.configuration import Configuration
from placement.overtime.moves.move_steps import MoveStep, steps_between
from placement.support.checks import BoolArray, FloatArray

__all__ = ["DatabaseMove", "MoveOrder", "order_moves"]

_TOLERANCE = 1e-9
"""Part of a capacity by which a sum of doubles may be beyond it: rounding, not a broken limit."""

_MOST_EXCHANGED = 2
"""Sites of a plan that staging exchanges at most: the candidates are their combinations."""


@dataclass(frozen=True, eq=False)
class DatabaseMove:
    """Move of some copies of a database, one copy after the other.

    Attributes
    ----------
    member
        The database.
    copies
        How many of its copies.
    before, after
        The ends; `before` is None for a database that does not run yet.
    steps
        Safe steps of each copy; empty for a database that is created.
    staging
        Whether `after` is a stop on the way to the plan.
    """

    member: FleetMember
    copies: int
    before: Configuration | None
    after: Configuration
    steps: tuple[MoveStep, ...] = ()
    staging: bool = False


@dataclass(frozen=True, eq=False)
class MoveOrder:
    """Moves in their order, and the copies that cannot move.

    Attributes
    ----------
    moves
        After all of them every database has its configuration in the plan, but those that are
        blocked.
    blocked
        For each database that cannot move: its name, its copies, and the limits that are short. No
        other order was tried for it.
    """

    moves: tuple[DatabaseMove, ...]
    blocked: tuple[str, ...] = ()


def order_moves(plan: FleetPlan) -> MoveOrder:
    """Return the moves from the present to a plan, in an order that keeps every limit.

    Storage, leader operations, outgoing GB and groups apart hold after every step of every move.
    The limits on new replicas and on GB moved count the replicas of staging as well. What a copy
    of a new replica takes of the network while it catches up is not counted.

    Notes
    -----
    O(rounds · moves · rows) after the search for the steps of each move. Greedy: where moves
    compete for room, another order may exist although some are reported as blocked.
    """
    schedule = _ScheduleSearch(plan)
    schedule.run()
    return MoveOrder(tuple(schedule.moves), schedule.blocked())


@dataclass(eq=False)
class _Lot:
    """Copies of a database that share start and target."""

    member: FleetMember
    before: Configuration | None
    after: Configuration
    copies: int
    staged: bool = False
    steps: tuple[MoveStep, ...] = ()
    peak: FloatArray = field(default_factory=lambda: np.zeros(0))
    final: FloatArray = field(default_factory=lambda: np.zeros(0))


class _ScheduleSearch:
    """State of the search: use of the limits, lots that wait, and moves so far."""

    def __init__(self, plan: FleetPlan) -> None:
        self.rows: SharedRows = plan.rows
        self.standing: BoolArray = plan.rows.standing
        self.moves: list[DatabaseMove] = []
        self.load = np.zeros(int(self.standing.sum()))
        capacity = plan.rows.capacity
        self.capacity = capacity[self.standing]
        self.tolerance = _TOLERANCE * np.maximum(self.capacity, 1.0)
        self.names = [n for n, holds in zip(plan.rows.names, self.standing, strict=True) if holds]
        # what the limits on new replicas and GB leave for staging
        self.spare = (capacity - plan.load)[~self.standing]
        self.waiting: list[_Lot] = []
        for member, each in plan:
            present = member.present
            if present is not None:
                self.load += each.copies * self._use(member, present)
            if present is None or not _alike(present, each.configuration):
                lot = _Lot(member, present, each.configuration, each.copies)
                self.waiting.append(self._with_steps(lot))
        self.waiting.sort(key=lambda lot: float((lot.final / self.tolerance).sum()))

    def run(self) -> None:
        """Take each move that fits, round by round; if none does, stage one."""
        while self.waiting:
            before = len(self.moves)
            for lot in list(self.waiting):
                self._take(lot, self._fitting(lot))
            if len(self.moves) == before and not self._stage():
                return

    def blocked(self) -> tuple[str, ...]:
        """Return the databases that still wait, in words."""
        return tuple(
            f"{lot.member.name} ({lot.copies} of {lot.member.copies} copies): no room in "
            + ", ".join(self.names[row] for row in np.flatnonzero(self._short(lot)))
            for lot in self.waiting
        )

    def _use(self, member: FleetMember, configuration: Configuration) -> FloatArray:
        return self.rows.use(member, configuration)[self.standing]

    def _with_steps(self, lot: _Lot) -> _Lot:
        """Return a lot with its steps, and its use of each limit: the largest and the final one."""
        if lot.before is None:
            lot.peak = lot.final = self._use(lot.member, lot.after)
            return lot
        lot.steps = steps_between(lot.member.problem, lot.before, lot.after)
        now = self._use(lot.member, lot.before)
        stages = [step.after.configuration for step in lot.steps] or [lot.after]
        taken = np.array([self._use(lot.member, stage) - now for stage in stages])
        lot.peak, lot.final = taken.max(axis=0), taken[-1]
        return lot

    def _short(self, lot: _Lot) -> BoolArray:
        """Return the limits in which one copy has no room to move."""
        beyond = self.load + lot.peak > self.capacity + self.tolerance
        return np.asarray((lot.peak > 0) & beyond)

    def _fitting(self, lot: _Lot) -> int:
        """Return how many copies may move now, one after the other."""
        if self._short(lot).any():
            return 0
        grows = lot.final > 0
        if not grows.any():
            return lot.copies
        room = (self.capacity + self.tolerance - self.load - lot.peak)[grows]
        return min(lot.copies, 1 + math.floor(float((room / lot.final[grows]).min())))

    def _take(self, lot: _Lot, copies: int, *, staging: bool = False) -> None:
        if not copies:
            return
        self.moves.append(
            DatabaseMove(lot.member, copies, lot.before, lot.after, lot.steps, staging)
        )
        self.load += copies * lot.final
        lot.copies -= copies
        if not lot.copies and not staging:
            self.waiting.remove(lot)

    def _stage(self) -> bool:
        """Send copies of a database to sites with room, where that frees what another waits for."""
        for lot in sorted(self.waiting, key=lambda lot: lot.member.storage_gb):
            if lot.staged or lot.before is None:
                continue
            wanted = np.zeros(len(self.load), dtype=np.bool_)
            for other in self.waiting:
                if other is not lot or lot.copies > 1:
                    wanted |= self._short(other)
            for stop in self._stops(lot, wanted):
                first = self._with_steps(replace(lot, after=stop))
                extra = self._extra(lot, stop)
                copies = min(self._fitting(first), self._affordable(extra))
                if copies:
                    self._take(first, copies, staging=True)
                    self.spare = self.spare - copies * extra
                    rest = replace(lot, before=stop, copies=copies, staged=True)
                    lot.copies -= copies
                    if not lot.copies:
                        self.waiting.remove(lot)
                    self.waiting.append(self._with_steps(rest))
                    return True
        return False

    def _affordable(self, extra: FloatArray) -> int:
        """Return how many copies the limits on new replicas and on GB moved allow."""
        if not (extra > 0).any():
            return np.iinfo(np.int64).max
        room = self.spare[extra > 0] + _TOLERANCE * np.maximum(self.spare[extra > 0], 1.0)
        return max(0, math.floor(float((room / extra[extra > 0]).min())))

    def _extra(self, lot: _Lot, stop: Configuration) -> FloatArray:
        """Return the new replicas and GB moved that a stop adds, shape (limits on moves,)."""
        assert lot.before is not None
        ends = set(lot.before.replicas), set(stop.replicas), set(lot.after.replicas)
        added = len(ends[1] - ends[0]) + len(ends[2] - ends[1]) - len(ends[2] - ends[0])
        return added * self.rows.of_new_replica(lot.member)[~self.standing]

    def _stops(self, lot: _Lot, wanted: BoolArray) -> Iterator[Configuration]:
        """Yield configurations near the plan that have room and free a wanted limit, best first.

        Fewer exchanged sites come first. Whether the steps to a configuration have room is not
        known yet: the search for them costs more than all that is asked here.
        """
        assert lot.before is not None
        problem, after = lot.member.problem, lot.after
        others = [s for s in range(len(self.rows.fleet.sites)) if s not in after.replicas]
        now = self._use(lot.member, lot.before)
        room = self.capacity + self.tolerance - self.load
        for count in range(_MOST_EXCHANGED + 1):
            found: dict[Configuration, float] = {}
            for gone in itertools.combinations(after.replicas, count):
                for new in itertools.combinations(others, count):
                    for stop in _exchanged(after, gone, new):
                        change = self._use(lot.member, stop) - now
                        if ((change > 0) & (change > room)).any():
                            continue
                        if (change[wanted] < 0).any() and not violations(problem, stop):
                            found[stop] = problem.objective.value(problem, stop)
            yield from sorted(found, key=lambda stop: found[stop])


def _exchanged(
    after: Configuration, gone: Sequence[int], new: Sequence[int]
) -> Iterator[Configuration]:
    """Yield a configuration with some sites in place of others, under each of its voters."""
    place = dict(zip(gone, new, strict=True))
    voters = [place.get(site, site) for site in after.voters]
    replicas = [place.get(site, site) for site in after.replicas]
    for leader in voters:
        yield Configuration.of(leader, sorted(voters), replicas)


def _alike(one: Configuration, other: Configuration) -> bool:
    """Return whether two configurations are equal apart from the order of voters."""
    return (
        one.leader == other.leader
        and set(one.voters) == set(other.voters)
        and set(one.replicas) == set(other.replicas)
    )
