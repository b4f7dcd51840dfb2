"""The plan of a fleet and its one evaluator: value, loads, broken limits, gap.

For a fixed leader ℓ the use of every limit is linear in the placement. With the price π of each row
and the replicas R, a configuration pays

    Σ_{r ∈ R} price[ℓ, r]
    price[ℓ, r] = storage_gb · π_storage[r]  +  [r = ℓ] · leader_operations · π_leader[ℓ]
                + [r ≠ ℓ] · written_gb · π_egress[ℓ]
                + [r new] · (π_moves + storage_gb · π_moved)  +  Σ_{groups} π_apart[group, r]

which is the form of a price of replicas that the exact search takes.
"""

from __future__ import annotations

import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.errors import require
from placement.evaluation.cost_model import LinearCost
from placement.feasibility.feasible_plans import violations
from placement.fleet.fleet_problem import FleetMember, FleetProblem
from placement.model.configuration import Configuration
from placement.model.constraints import Rules
from placement.model.demand import Demand
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.status import Termination, relative_gap

# Use of shared limits as rows of numbers: what each configuration of a database takes of them


class SharedRows:
    """The finite limits of a fleet as rows: names, capacities, use and prices.

    Parameters
    ----------
    fleet
        The databases and their limits.

    Attributes
    ----------
    names
        What each row limits, such as ``"storage GB at eu-west-1"``.
    capacity
        Limit of each row, less the headroom of the fleet, shape (rows,).
    """

    def __init__(self, fleet: FleetProblem) -> None:
        self.fleet = fleet
        limits, sites = fleet.limits, len(fleet.sites)
        names: list[str] = []
        capacity: list[float] = []

        def add(what: str, limit: FloatArray | None) -> IntArray:
            """Add a row for each site with a finite limit; return the rows, −1 without a limit."""
            rows = np.full(sites, -1)
            if limit is None:
                return rows
            for site in np.flatnonzero(np.isfinite(limit)):
                rows[site] = len(names)
                names.append(f"{what} at {fleet.sites[site]}")
                capacity.append(float(limit[site]))
            return rows

        def add_one(what: str, limit: float | None) -> int:
            if limit is None or not np.isfinite(limit):
                return -1
            names.append(what)
            capacity.append(float(limit))
            return len(names) - 1

        def kept_free(limit: FloatArray | None) -> FloatArray | None:
            return None if limit is None else np.asarray(limit * (1.0 - limits.headroom))

        self._storage = add("storage GB", kept_free(limits.storage_gb))
        self._leading = add("leader operations", kept_free(limits.leader_operations))
        self._egress = add("outgoing GB", kept_free(limits.egress_gb))
        self._moves = add_one("new replicas", limits.most_moves)
        self._moved = add_one("GB moved", limits.most_moved_gb)
        self._apart: dict[str, list[IntArray]] = {}
        for number, group in enumerate(limits.apart, 1):
            rows = add(f"databases of group {number}", np.ones(sites))
            for name in group:
                self._apart.setdefault(name, []).append(rows)
        self.names = tuple(names)
        self.capacity = np.array(capacity, dtype=np.float64)

    def use(self, member: FleetMember, configuration: Configuration) -> FloatArray:
        """Return the use of each row by one database with a configuration, shape (rows,)."""
        found = np.zeros(len(self.capacity) + 1)  # the last is that of row −1: no limit
        replicas = np.array(configuration.replicas, dtype=np.intp)
        np.add.at(found, self._storage[replicas], member.storage_gb)
        found[self._leading[configuration.leader]] += member.leader_load
        found[self._egress[configuration.leader]] += member.written_gb * (len(replicas) - 1)
        new = int(self._is_new(member)[replicas].sum())
        found[self._moves] += new
        found[self._moved] += new * member.storage_gb
        for rows in self._apart.get(member.name, ()):
            np.add.at(found, rows[replicas], 1.0)
        return found[:-1]

    def price(self, member: FleetMember, prices: FloatArray) -> FloatArray:
        """Return the price of a replica at each site under each leader, shape (sites, sites).

        Row = leader. The sum over the replicas of a configuration is the price of its use,
        ``prices @ use(member, configuration)``.
        """
        amounts, added = self.amounts([member], prices)
        stored, led, shipped = amounts[0][:, np.newaxis] * self.unit_prices(prices)
        found = stored + added + shipped[:, np.newaxis]
        np.fill_diagonal(found, stored + added + led)
        return np.asarray(found)

    def unit_prices(self, prices: FloatArray) -> FloatArray:
        """Return prices of a unit stored, led and shipped at each site, shape (3, sites)."""
        rows = np.array([self._storage, self._leading, self._egress])
        return np.asarray(np.append(prices, 0.0)[rows])

    def amounts(
        self, members: Sequence[FleetMember], prices: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return what databases store, lead and ship, and what a replica pays beside them.

        The shapes are (members, 3) and (members, sites).
        """
        padded = np.append(prices, 0.0)
        amounts = np.array([(m.storage_gb, m.leader_load, m.written_gb) for m in members], float)
        new = np.array([self._is_new(member) for member in members])
        added = new * (padded[self._moves] + amounts[:, :1] * padded[self._moved])
        for row, member in zip(added, members, strict=True):
            for rows in self._apart.get(member.name, ()):
                row += padded[rows]
        return amounts, added

    def fitting_sites(
        self, member: FleetMember, room: FloatArray | None = None
    ) -> tuple[BoolArray, BoolArray]:
        """Return the sites that can hold a replica of one database, and the sites that can lead.

        Parameters
        ----------
        member
            The database, one copy.
        room
            Remaining capacity of each limit, shape (rows,); None: all of it. No plan of the fleet
            uses the other sites then: the database alone is beyond a limit there.
        """
        sites, new = len(self.fleet.sites), self._is_new(member)
        hold, lead = np.ones(sites, dtype=np.bool_), np.ones(sites, dtype=np.bool_)
        left = np.append(self.capacity if room is None else room, np.inf)
        hold &= left[self._storage] >= member.storage_gb
        hold &= ~new | bool(left[self._moves] >= 1 and left[self._moved] >= member.storage_gb)
        for rows in self._apart.get(member.name, ()):
            hold &= left[rows] >= 1
        lead &= left[self._leading] >= member.leader_load
        least = member.written_gb * (member.problem.rules.replicas_min - 1)
        lead &= left[self._egress] >= least
        return hold, lead & hold

    def _is_new(self, member: FleetMember) -> BoolArray:
        """Return whether a replica at each site would be new, shape (sites,)."""
        return self._new_sites[member.name]

    @cached_property
    def _new_sites(self) -> dict[str, BoolArray]:
        found = {}
        for member in self.fleet.members:
            new = np.ones(len(self.fleet.sites), dtype=np.bool_)
            if member.present is not None:
                new[list(member.present.replicas)] = False
            found[member.name] = new
        return found


def own_prices(problem: Problem) -> FloatArray | None:
    """Return what a replica adds to the objective under each leader, shape (sites, sites)."""
    if not problem.rules.cost_weight:
        return None
    costs = [problem.site_costs(leader) for leader in range(len(problem.rules.may_hold))]
    return problem.rules.cost_weight * np.array([row for row in costs if row is not None])


@dataclass(frozen=True, eq=False)
class PricedQuestion:
    """Demand, rules, prices of replicas; every plan of the fleet pays at least the least score."""

    demand: Demand  #: that of the database
    #: without the sites that cannot hold or lead the database alone: no plan of the fleet uses them
    rules: Rules
    #: of a replica at each site under each leader, shape (sites, sites), row = leader
    price: FloatArray

    @classmethod
    def of(
        cls,
        rows: SharedRows,
        member: FleetMember,
        prices: FloatArray,
        room: FloatArray | None = None,
    ) -> PricedQuestion | None:
        """Return the question of one database; None where a site that it must have is too small.

        `prices` are those of the shared limits, shape (rows,), and `room` what is left of each
        (None: all of it). Sites without room for the database are left out.
        """
        problem = member.problem
        price, own = rows.price(member, prices), own_prices(problem)
        if own is not None:
            price = price + own
        hold, lead = rows.fitting_sites(member, room)
        rules = dataclasses.replace(
            problem.rules,
            may_hold=problem.rules.may_hold & hold,
            may_vote=problem.rules.may_vote & hold,
            may_lead=problem.rules.may_lead & lead,
        )
        if (rules.must_hold & ~rules.may_hold).any():
            return None
        return cls(problem.demand, rules, price)

    def added_cost(self, leader: int) -> LinearCost:
        """Return the prices of replicas under a leader, in the form that proofs take."""
        return LinearCost(0.0, self.price[leader], None, None)


_TOLERANCE = 1e-9
"""Part of a capacity by which a sum of doubles may be beyond it: rounding, not a broken limit."""


@dataclass(frozen=True, eq=False)
class Placed:
    """Copies of a database of a fleet that have the same configuration."""

    configuration: Configuration  #: on site indices
    copies: int = 1  #: how many


@dataclass(frozen=True, eq=False)
class FleetPlan:
    """Configuration of each database of a fleet, and the proven bound on all plans.

    Parameters
    ----------
    fleet
        The question.
    placed
        For each member its configurations; their copies add up to those of the member.
    bound
        Proven by `prices`: no plan of the fleet has a smaller value. −∞: nothing is proven.
    whole_bound
        The same, proven by an integer program over all configurations of a small fleet, which the
        check of a file does not repeat; −∞: there was none.
    prices
        Price of each shared limit that proves the bound, in ms·operations per unit, shape (rows,).
    alone
        Least objective of each database without the others, shape (members,); empty: not known.
    method
        Who found it.
    seconds
        Wall time.
    termination
        Why the search stopped.
    rounds
        Bound and value of the relaxation after each round of the search.

    Raises
    ------
    InputError
        When a database has too few or too many copies.
    """

    fleet: FleetProblem
    placed: Sequence[Sequence[Placed]]
    bound: float = -math.inf
    whole_bound: float = -math.inf
    prices: FloatArray | None = None
    alone: tuple[float, ...] = ()
    method: str = ""
    seconds: float = 0.0
    termination: Termination = Termination.FINISHED
    rounds: tuple[tuple[float, float], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "placed", tuple(map(tuple, self.placed)))
        for member, placed in zip(self.fleet.members, self.placed, strict=True):
            found, asked = sum(each.copies for each in placed), member.copies
            require(found == asked, member.name, "wrong number of copies", found, str(asked))

    def __iter__(self) -> Iterator[tuple[FleetMember, Placed]]:
        for member, placed in zip(self.fleet.members, self.placed, strict=True):
            for each in placed:
                yield member, each

    @cached_property
    def rows(self) -> SharedRows:
        """The shared limits as rows."""
        return SharedRows(self.fleet)

    @cached_property
    def value(self) -> float:
        """Sum of the objectives of all databases, ms·operations, by the shared evaluator."""
        return math.fsum(
            each.copies * member.problem.objective.value(member.problem, each.configuration)
            for member, each in self
        )

    @property
    def value_alone(self) -> float:
        """Sum of the least objectives of the databases without each other; NaN: not known."""
        if not self.alone:
            return math.nan
        copies = [member.copies for member in self.fleet.members]
        return math.fsum(c * each for c, each in zip(copies, self.alone, strict=True))

    @property
    def mean_latency(self) -> float:
        """Value over all operations: the mean latency in ms if nothing has a price."""
        operations = sum(m.copies * m.problem.demand.operations for m in self.fleet.members)
        return self.value / operations

    @cached_property
    def load(self) -> FloatArray:
        """Use of each shared limit, shape (rows,)."""
        total = np.zeros(len(self.rows.capacity))
        for member, each in self:
            total += each.copies * self.rows.use(member, each.configuration)
        return total

    @cached_property
    def load_today(self) -> FloatArray | None:
        """Use of each shared limit by the present configurations, shape (rows,); None: unknown."""
        if not any(member.present is not None for member in self.fleet.members):
            return None
        total = np.zeros(len(self.rows.capacity))
        for member in self.fleet.members:
            if member.present is not None:
                total += member.copies * self.rows.use(member, member.present)
        return total

    @cached_property
    def overloads(self) -> tuple[tuple[str, float, float], ...]:
        """(name, load, limit) of the shared limits that the plan breaks."""
        limit = self.rows.capacity
        beyond = self.load > limit + _TOLERANCE * np.maximum(limit, 1.0)
        return tuple(
            (self.rows.names[row], float(self.load[row]), float(limit[row]))
            for row in np.flatnonzero(beyond)
        )

    @cached_property
    def violations(self) -> tuple[str, ...]:
        """Return the violations of the plan, in words: rules of databases, then shared limits."""
        broken = [
            f"{member.name}: {why}"
            for member, each in self
            for why in violations(member.problem, each.configuration)
        ]
        broken += [f"{name}: {load:g} of {limit:g}" for name, load, limit in self.overloads]
        return tuple(broken)

    @property
    def gap(self) -> float:
        """(value − the larger bound) / value, at least 0; +∞ when nothing is proven."""
        return relative_gap(self.value, max(self.bound, self.whole_bound))


@dataclass(frozen=True, slots=True)
class Shortage:
    """A shared limit that is short."""

    name: str  #: of the limit, such as "storage GB at eu-west-1"
    #: by how much the best plan in parts of databases is beyond it, or the plan of a heuristic
    short_by: float
    limit: float  #: the limit
    #: weight of the limit in the sum that proves that there is no plan; 0: it takes no part
    price: float


def shortage_reasons(short: Iterable[Shortage]) -> tuple[str, ...]:
    """Return a line for each limit that is short: which one, by how much, and what it is."""
    return tuple(f"{each.name}: short by {each.short_by:.6g} of {each.limit:.6g}" for each in short)


@dataclass(frozen=True, slots=True)
class FleetSearch:
    """Settings of a search for a plan of a fleet.

    Attributes
    ----------
    gap
        Relative gap at which to stop.
    seconds
        Wall time; +∞: no limit. At its end the last prices are rounded for a second at most.
    processes
        How many price databases at the same time.
    dask
        Address of the scheduler of a Dask cluster that prices in place of processes.
    checkpoint
        Folder that keeps what pricing has found. A search with the same fleet, gap and seed goes on
        from it, and ends with the same plan.
    seed
        Of the choice of databases that are placed again.
    listen
        Called with (round, seconds, value of the relaxation, proven bound).
    """

    gap: float = 1e-3
    seconds: float = math.inf
    processes: int = 1
    dask: str | None = None
    checkpoint: str | os.PathLike[str] | None = None
    seed: int = 0
    listen: Callable[[int, float, float, float], None] | None = None


@dataclass(frozen=True, eq=False)
class NoFleetPlan:
    """The end of a search that found no plan.

    Attributes
    ----------
    fleet
        The question.
    proven
        Whether it is proven that there is none.
    reasons
        In words: databases that fit no sites, or the limits that are short, with numbers.
    prices
        Prices of the shared limits that prove the bound, shape (rows,); None: no bound, or the
        first reason alone is enough.
    termination
        Why the search stopped.
    short
        The limits that are short, largest part first.
    oversize
        Names of the databases that fit no sites, even alone.
    bound
        Proven: no plan of the fleet has a smaller value. −∞: nothing is known.
    """

    fleet: FleetProblem
    proven: bool
    reasons: tuple[str, ...]
    prices: FloatArray | None = None
    termination: Termination = Termination.FINISHED
    short: tuple[Shortage, ...] = ()
    oversize: tuple[str, ...] = ()
    bound: float = -math.inf


def worst_value(fleet: FleetProblem) -> float:
    """Return a value that no plan of a fleet exceeds: every trip as long as the longest RTT.

    A lower bound above it proves that there is no plan. O(members · clients).
    """
    total = []
    for member in fleet.members:
        demand, rules = member.problem.demand, member.problem.rules
        client, site = float(demand.client_rtt.max()), float(demand.site_rtt.max())
        worst = client * float(demand.near.sum() + demand.direct.sum())
        worst += site * float(demand.relay.sum() + demand.quorum.sum())
        if rules.cost_weight:
            prices = [member.problem.site_costs(leader) for leader in range(len(fleet.sites))]
            dearest = max(float(row.max()) for row in prices if row is not None)
            worst += rules.cost_weight * rules.replicas_max * dearest
        total.append(member.copies * worst)
    return math.fsum(total)
