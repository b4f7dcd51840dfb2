"""The plan of a fleet and its one evaluator: value, loads, broken limits, gap."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.errors import InputError
from placement.feasibility.feasible_plans import violations
from placement.fleet.fleet_problem import FleetMember, FleetProblem
from placement.fleet.shared_rows import SharedRows
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray
from placement.support.status import Termination, relative_gap

_TOLERANCE = 1e-9
"""Part of a capacity by which a sum of doubles may be beyond it: rounding, not a broken limit."""


@dataclass(frozen=True, eq=False)
class Placed:
    """Copies of a database of a fleet that have the same configuration.

    Attributes
    ----------
    configuration
        On site indices.
    copies
        How many.
    """

    configuration: Configuration
    copies: int = 1


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
            if sum(each.copies for each in placed) != member.copies:
                raise InputError(
                    "wrong number of copies",
                    field=member.name,
                    value=sum(each.copies for each in placed),
                    expected=str(member.copies),
                )

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
    """A shared limit that is short.

    Attributes
    ----------
    name
        Of the limit, such as "storage GB at eu-west-1".
    short_by
        By how much the best plan in parts of databases is beyond it, or the plan of a heuristic.
    limit
        The limit.
    price
        Weight of the limit in the sum that proves that there is no plan; 0: it takes no part.
    """

    name: str
    short_by: float
    limit: float
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
