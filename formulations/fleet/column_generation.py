"""Column generation for fleets: prices of the shared limits, a proven bound, and a plan.

1. Every database alone, at prices of zero: the first bound, and the first columns.
2. The master problem over the columns (:mod:`formulations.fleet.column_pool`) gives new prices.
   They are smoothed with the prices of the best bound, which keeps them from jumping; the smoothed
   ones are dropped for a round where they bring no new column.
3. Pricing at these prices (:mod:`formulations.fleet.pricing`) gives a bound that holds whatever the
   prices are, and a column for each database. The search ends when the relaxation and the best
   bound are close, or when no column is new.
4. The plan: a basic solution splits at most as many databases as there are shared limits. Dives
   make whole plans of it, the largest databases first (:mod:`formulations.fleet.rounding`).
   Where the fleet is small, an integer program chooses from all configurations, and its bound
   counts too.
"""

from __future__ import annotations

import math
import time

import numpy as np

from formulations.fleet import tuning
from formulations.fleet.column_pool import ColumnPool, Master, MasterResult
from formulations.fleet.pricing import Checkpoint, PricedMember, Pricer, lagrangean_bound
from formulations.fleet.rounding import Rounding
from placement.fleet.fleet_plan import (
    FleetPlan,
    FleetSearch,
    NoFleetPlan,
    Placed,
    SharedRows,
    Shortage,
    shortage_reasons,
    worst_value,
)
from placement.fleet.fleet_problem import FleetMember, FleetProblem
from placement.support.checks import FloatArray
from placement.support.status import Termination, end_early, relative_gap

_CLOSED = 1e-9
"""Relative gap between the relaxation and the bound that rounding alone may leave."""


def solve_fleet(
    fleet: FleetProblem, settings: FleetSearch | None = None
) -> FleetPlan | NoFleetPlan:
    """Find a plan of a fleet with a proven gap.

    Parameters
    ----------
    fleet
        The databases and their shared limits.
    settings
        Limits of the search.

    Returns
    -------
    FleetPlan or NoFleetPlan
        After a limit or Ctrl-C the best plan so far with the best bound so far, or NoFleetPlan
        with that bound where no plan was found yet.

    Raises
    ------
    SolverError
        When HiGHS fails, or workers are lost again and again.
    InputError
        When a checkpoint is of another search, or no cluster answers.
    MissingDependencyError
        For a cluster, without the extra ``dask``.

    Notes
    -----
    Each round takes one call of the exact search for each database (about a millisecond at 48
    sites) and a linear program with a row for each different database and each shared limit.
    """
    settings = FleetSearch() if settings is None else settings
    rows = SharedRows(fleet)
    kept = None
    if settings.checkpoint is not None:
        kept = Checkpoint(settings.checkpoint, fleet, {"gap": settings.gap, "seed": settings.seed})
    with Pricer(rows, settings.processes, dask=settings.dask, checkpoint=kept) as pricer:
        return Generation(rows, pricer, settings).run()


class Generation:
    """State and steps of the search of :func:`solve_fleet`."""

    def __init__(self, rows: SharedRows, pricer: Pricer, settings: FleetSearch) -> None:
        self.rows = rows
        self.fleet = rows.fleet
        self.pricer = pricer
        self.settings = settings
        self.started = time.perf_counter()
        self.pool = ColumnPool(rows)
        self.bound = self.whole_bound = -math.inf
        self.prices: FloatArray = np.zeros(len(rows.capacity))
        self.master: MasterResult | None = None
        self.rounds: list[tuple[float, float]] = []
        self.unit = 1.0
        self.alone: tuple[float, ...] = ()
        self.termination = Termination.FINISHED
        own = [member.copies for member in self.fleet.members]
        self.copies = np.array(own, dtype=np.float64)
        self.worst = worst_value(self.fleet)
        self.placed: list[list[Placed]] | None = None

    def run(self) -> FleetPlan | NoFleetPlan:
        """Generate columns until the gap is small, then round."""
        with end_early(self):
            alone = self.begin()
            misfits = [
                member
                for member, each in zip(self.fleet.members, alone, strict=True)
                if each.configuration is None
            ]
            if misfits:
                return NoFleetPlan(
                    self.fleet,
                    True,
                    tuple(map(self.misfit, misfits)),
                    oversize=tuple(member.name for member in misfits),
                )
            self.generate()
        self.pool.drop_unfinished()
        return self.conclude()

    def begin(self) -> list[PricedMember]:
        """Price every database alone, and set the scales of the master."""
        alone = self.price(self.prices)
        self.unit = max(self.bound / float(self.copies.sum()), 1e-12)
        limit = np.maximum(self.rows.capacity, 1.0)
        self.penalize(tuning.FIRST_PENALTY * max(self.bound, 1e-12) / limit)
        self.alone = tuple(each.least for each in alone)
        return alone

    def penalize(self, penalty: FloatArray) -> None:
        """Begin a master with other penalties of overloads."""
        self.relaxation = Master(self.pool, self.copies, penalty, self.unit)

    def round(self, master: MasterResult) -> None:
        """Make a plan of the weights of a master."""
        rounding = Rounding(
            self.relaxation,
            self.pricer.tables,
            master,
            self.bound,
            self.settings,
            self.unit,
            self.deadline,
            self.termination,
        )
        self.placed = rounding.run()
        self.whole_bound, self.termination = rounding.whole_bound, rounding.termination

    def misfit(self, member: FleetMember) -> str:
        """Say of a database that has no configuration alone how many sites are large enough."""
        hold, lead = self.rows.fitting_sites(member)
        moves = self.fleet.limits.most_moves
        if moves is not None and moves < 1 and member.present is None:
            return (
                f"{member.name} fits no sites, even alone: it has no present configuration, so "
                f"that each of its replicas is a move, and {moves:g} moves are allowed"
            )
        return (
            f"{member.name} fits no sites, even alone: {int(hold.sum())} sites can hold a replica "
            f"of it, and {int(lead.sum())} can lead it"
        )

    def price(self, prices: FloatArray) -> list[PricedMember]:
        """Price all databases, keep their columns, and raise the bound."""
        priced = []
        for member, each in enumerate(self.pricer.price(prices)):
            if self.late():
                raise TimeoutError
            priced.append(each)
            if each.configuration is not None:
                self.pool.add(member, each.configuration)
        bound = lagrangean_bound(self.rows, prices, priced)
        if bound > self.bound:
            self.bound, self.prices = bound, prices
        return priced

    def generate(self) -> None:
        """Alternate between master and pricing."""
        raised = 0
        smoothing, gap = tuning.SMOOTHING, max(tuning.SHARE_OF_GAP * self.settings.gap, _CLOSED)
        while True:
            self.master = master = self.relaxation.solve(self.deadline)
            self.note_round(master.value)
            over = master.overload > 1e-9 * np.maximum(self.rows.capacity, 1)
            apart = relative_gap(master.value, self.bound)
            if apart <= gap and not over.any():
                return
            if self.bound > self.worst:
                return
            if self.late():
                raise TimeoutError
            if apart > tuning.CLOSE or not over.any():
                mixed = smoothing * self.prices + (1 - smoothing) * master.prices
                columns = len(self.pool)
                self.price(mixed)
                if len(self.pool) > columns:
                    smoothing = tuning.SMOOTHING
                    continue
                if smoothing:
                    smoothing = 0.0
                    continue
            if raised == tuning.MOST_PENALTIES or not over.any():
                return
            self.penalize(tuning.LARGER_PENALTY * self.relaxation.penalty)
            raised += 1

    @property
    def deadline(self) -> float:
        """Time of ``time.perf_counter`` at which the search ends."""
        return self.started + self.settings.seconds

    def late(self) -> bool:
        """Return whether the time is over."""
        return time.perf_counter() >= self.deadline

    def note_round(self, value: float) -> None:
        """Keep bound and value of the relaxation, and tell the listener."""
        self.rounds.append((self.bound, value))
        if self.settings.listen is not None:
            seconds = time.perf_counter() - self.started
            self.settings.listen(len(self.rounds), seconds, value, self.bound)

    def conclude(self) -> FleetPlan | NoFleetPlan:
        """Round the last master; without a plan, say why."""
        if not self.alone:
            why = f"stopped ({self.termination}) before every database was priced: no bound yet"
            return NoFleetPlan(self.fleet, False, (why,), termination=self.termination)
        if self.master is None:
            self.master = self.relaxation.solve()
        if self.bound > self.worst:
            return self.no_plan(True)
        self.round(self.master)
        if self.placed is None:
            return self.no_plan(False)
        return FleetPlan(
            self.fleet,
            self.placed,
            bound=self.bound,
            whole_bound=self.whole_bound,
            prices=self.prices,
            alone=self.alone,
            method="column-generation",
            seconds=time.perf_counter() - self.started,
            termination=self.termination,
            rounds=tuple(self.rounds),
        )

    def no_plan(self, proven: bool) -> NoFleetPlan:
        """Name the limits that are short in the last master, and by how much."""
        if not proven and self.termination is not Termination.FINISHED:
            why = f"stopped ({self.termination}) before a plan within the limits was found"
            return NoFleetPlan(
                self.fleet, False, (why,), self.prices, self.termination, bound=self.bound
            )
        assert self.master is not None
        limit, over = self.rows.capacity, self.master.overload
        parts = over / np.maximum(limit, 1e-300)
        short = tuple(
            Shortage(
                self.rows.names[row],
                float(over[row]),
                float(limit[row]),
                float(self.prices[row]) if proven else 0.0,
            )
            for row in np.argsort(-parts, kind="stable").tolist()
            if over[row] > 1e-9
        )
        reasons = shortage_reasons(short)
        return NoFleetPlan(
            self.fleet,
            proven,
            reasons or ("no whole configurations within the limits were found",),
            self.prices,
            self.termination,
            short=short,
            bound=self.bound,
        )
