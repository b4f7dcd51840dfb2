"""Local search on the coupled problem: databases are placed again, one or two at a time.

The start is the greedy plan. A sweep goes through the databases. Each is placed again by a descent
from where it is, against the loads of all others. Where the site that it would like is full, it
goes there, and one of the databases there, of a few drawn at random, is placed again: an exchange,
kept if both together are better. Sweeps end when one improves nothing.

Planners of production fleets search like this (Rebalancer, OSDI 2024); nothing bounds how far the
end is from the best plan.
"""

from __future__ import annotations

import math
import time

import numpy as np

from heuristics import tuning
from heuristics.fleet.greedy_by_size import place_all, plan_within_limits
from heuristics.fleet.penalised_descent import PenalisedDescent
from placement.fleet.fleet_plan import FleetPlan, NoFleetPlan, Placed
from placement.fleet.fleet_problem import FleetProblem
from placement.model.configuration import Configuration
from placement.support.checks import BoolArray, instance_of, number, whole
from placement.support.status import Termination

__all__ = ["local_search"]

_METHOD = "local-search"


_IMPROVES = 1e-9
"""Part of the cost by which a change must be better."""


def local_search(
    fleet: FleetProblem, *, seconds: float = math.inf, seed: int = 0
) -> FleetPlan | NoFleetPlan:
    """Improve the greedy plan of a fleet by single moves and exchanges.

    Parameters
    ----------
    fleet
        The question.
    seconds
        Wall time after which no further database is placed again; the greedy plan is finished.
    seed
        Of the partners of exchanges.

    Returns
    -------
    FleetPlan or NoFleetPlan
        As :func:`heuristics.fleet.greedy_by_size`; at the end of the time what is placed so far.

    Notes
    -----
    Each sweep makes at most eight steepest descents for each group of like copies.
    """
    instance_of(fleet, FleetProblem, "fleet", "a placement.fleet.FleetProblem")
    if seconds != math.inf:
        number(seconds, "seconds")
    whole(seed, "seed")
    began = time.perf_counter()
    descent = PenalisedDescent(fleet)
    placed = place_all(fleet, descent)
    if isinstance(placed, NoFleetPlan):
        return placed
    search = _ExchangeSearch(fleet, descent, placed, seed)
    finished = search.run(began + seconds)
    return plan_within_limits(
        FleetPlan(
            fleet,
            search.placed(),
            method=_METHOD,
            seconds=time.perf_counter() - began,
            termination=Termination.FINISHED if finished else Termination.TIME_LIMIT,
        )
    )


class _ExchangeSearch:
    """State of the search: how many copies of each database have each configuration."""

    def __init__(
        self, fleet: FleetProblem, descent: PenalisedDescent, placed: list[list[Placed]], seed: int
    ) -> None:
        self.fleet, self.descent = fleet, descent
        self.rng = np.random.default_rng(seed)
        self.copies: list[dict[Configuration, int]] = [{} for _ in fleet.members]
        for index, several in enumerate(placed):
            for each in several:
                self.count(index, each.configuration, each.copies)

    def placed(self) -> list[list[Placed]]:
        """Return the plan."""
        return [[Placed(one, count) for one, count in each.items()] for each in self.copies]

    def run(self, end: float) -> bool:
        """Sweep until nothing improves; return False at the end of the time."""
        improved = True
        while improved:
            improved = False
            for index in range(len(self.fleet.members)):
                for here in tuple(self.copies[index]):
                    if time.perf_counter() >= end:
                        return False
                    improved |= self.move(index, here) or self.exchange(index, here)
        return True

    def count(self, index: int, configuration: Configuration, copies: int) -> None:
        """Count copies of a database in a configuration, in the loads of the caller."""
        total = self.copies[index].get(configuration, 0) + copies
        if total:
            self.copies[index][configuration] = total
        else:
            del self.copies[index][configuration]

    def shift(self, index: int, here: Configuration, there: Configuration, copies: int) -> None:
        """Move copies of a database, in the plan and in the loads."""
        member = self.fleet.members[index]
        self.count(index, there, copies)
        self.count(index, here, -copies)
        self.descent.place(member, here, -copies)
        self.descent.place(member, there, copies)

    def move(self, index: int, here: Configuration) -> bool:
        """Place the copies in a configuration again, as many as fit; return whether it helped."""
        member, descent = self.fleet.members[index], self.descent
        descent.place(member, here, -1)
        cost = float(descent.costs(member, [here])[0])
        there, better = descent.descend(member, here)
        count = descent.copies_that_fit(member, there, self.copies[index][here])
        descent.place(member, here, 1)
        if there == here or not better < cost * (1.0 - _IMPROVES):
            return False
        self.shift(index, here, there, count)
        return True

    def exchange(self, index: int, here: Configuration) -> bool:
        """Take one copy to the sites that it would like, and place one database there again."""
        member, descent = self.fleet.members[index], self.descent
        descent.place(member, here, -1)
        there, _ = descent.descend(member, here, alone=True)
        descent.place(member, here, 1)
        if there == here:
            return False
        gain = np.subtract(*descent.costs(member, [here, there], alone=True).tolist())
        before = descent.overload
        self.shift(index, here, there, 1)
        crowded = descent.overload > before
        for other in self.partners(index, crowded):
            rival = self.fleet.members[other]
            old = next(iter(self.copies[other]))
            descent.place(rival, old, -1)
            new, _ = descent.descend(rival, old)
            descent.place(rival, old, 1)
            if new == old:
                continue
            loss = np.subtract(*descent.costs(rival, [new, old], alone=True).tolist())
            self.shift(other, old, new, 1)
            if loss < gain * (1.0 - _IMPROVES) and (descent.overload <= before).all():
                return True
            self.shift(other, new, old, 1)
        self.shift(index, there, here, 1)
        return False

    def partners(self, index: int, crowded: BoolArray) -> list[int]:
        """Draw databases whose first configuration uses a crowded limit."""
        found: list[int] = []
        if not crowded.any():
            return found
        for other in self.rng.permutation(len(self.fleet.members)).tolist():
            if other == index:
                continue
            use = self.descent.rows.use(self.fleet.members[other], next(iter(self.copies[other])))
            if use[crowded].any():
                found.append(other)
                if len(found) == tuning.FLEET_PARTNERS:
                    break
        return found
