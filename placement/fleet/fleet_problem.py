"""The question of a fleet: its databases, and the limits that they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np

from placement.errors import require
from placement.model.configuration import Configuration
from placement.problem import Problem
from placement.support.checks import (
    FloatArray,
    elements,
    instance_of,
    number,
    text,
    unique_names,
    whole,
)


@dataclass(frozen=True, eq=False)
class FleetMember:
    """A database of a fleet, or several that are alike.

    Parameters
    ----------
    name
        Its name.
    problem
        The question of the database alone, for the mean latency and without a budget.
    storage_gb
        GB that one replica stores.
    written_gb
        GB that the leader ships to each other replica; in the unit of time of the limits.
    leader_operations
        Operations that the leader serves; None: the operations of the demand that need one.
    present
        The configuration that runs today; None: nothing runs, and all replicas are new.
    copies
        Number of databases with this very question: they may get different configurations.

    Raises
    ------
    InputError
        For a negative number, or a question that fleets do not take.
    """

    name: str
    problem: Problem
    _: KW_ONLY
    storage_gb: float = 0.0
    written_gb: float = 0.0
    leader_operations: float | None = None
    present: Configuration | None = None
    copies: int = 1

    def __post_init__(self) -> None:
        text(self.name, "name")
        instance_of(self.problem, Problem, "problem", "a placement.Problem")
        for field in ("storage_gb", "written_gb"):
            number(getattr(self, field), field)
        if self.leader_operations is not None:
            number(self.leader_operations, "leader_operations")
        whole(self.copies, "copies", minimum=1)
        self._refuse()

    def _refuse(self) -> None:
        """Refuse questions whose cost is not linear in the placement for a fixed leader."""
        problem = self.problem
        for field, odd, expected in (
            ("objective", not problem.objective.minimises_mean, "the mean latency"),
            ("budget", problem.budget is not None, "no budget: limits belong to the fleet"),
            ("protocol", problem.demand.has_waits, "operations without waits"),
            ("witnesses", bool(problem.rules.witnesses), "voters with a replica alone"),
            (
                "cost_weight",
                bool(problem.rules.cost_weight and problem.cost_parts),
                "prices without near reads and without prices of votes",
            ),
        ):
            place, given = f"{self.name}: {field}", getattr(problem, field)
            require(not odd, place, "a fleet cannot hold this database", given, expected)

    @cached_property
    def leader_load(self) -> float:
        """Operations that the leader serves."""
        if self.leader_operations is not None:
            return float(self.leader_operations)
        instance = self.problem.instance
        led = np.array([any(each.coefficients[1:]) for each in instance.operations])
        return float(instance.counts.sum(axis=(0, 1))[led].sum())


SITE_LIMITS = ("storage_gb", "leader_operations", "egress_gb")
"""Fields of the limits that have a number for each site."""


@dataclass(frozen=True, eq=False)
class SharedLimits:
    """Limits that the databases of a fleet share; None: no limit.

    Parameters
    ----------
    storage_gb
        GB that each site can store, shape (sites,); +∞: no limit at the site.
    leader_operations
        Operations that the leaders at each site can serve, shape (sites,).
    egress_gb
        GB that the leaders at each site can ship to other replicas, shape (sites,).
    most_moves
        Most replicas that may be new, over all databases.
    most_moved_gb
        Most GB that new replicas may hold.
    apart
        Groups of names; two databases of a group never have replicas at the same site.
    headroom
        Part of every limit of a site that the plan leaves free, from 0 to 0.99: the
        capacity is (1 − headroom) times the limit. Room for growth, or for the load of a lost site.

    Raises
    ------
    InputError
        For a limit that is negative or not a number.
    """

    storage_gb: FloatArray | None = None
    leader_operations: FloatArray | None = None
    egress_gb: FloatArray | None = None
    most_moves: float | None = None
    most_moved_gb: float | None = None
    apart: Sequence[Sequence[str]] = ()
    headroom: float = 0.0

    def __post_init__(self) -> None:
        for field in SITE_LIMITS:
            given = getattr(self, field)
            if given is None:
                continue
            values = np.asarray(given, dtype=np.float64)
            good = values.ndim == 1 and (values >= 0).all()  # no NaN among them
            expected = "one number >= 0 or infinity for each site"
            require(good, field, "not a limit for each site", given, expected)
            object.__setattr__(self, field, values)
        for field in ("most_moves", "most_moved_gb"):
            if getattr(self, field) is not None:
                number(getattr(self, field), field)
        number(self.headroom, "headroom", maximum=0.99)
        groups = elements(self.apart, "apart", "groups of names")
        object.__setattr__(self, "apart", tuple(unique_names(group, "apart") for group in groups))


@dataclass(frozen=True, eq=False)
class FleetProblem:
    """Databases on the same sites, and the limits that they share.

    Parameters
    ----------
    members
        The databases; all of their instances have the same sites.
    limits
        What they share.

    Raises
    ------
    InputError
        For no database, a name that stands twice, other sites, or limits of another number of
        sites.
    """

    members: Sequence[FleetMember]
    limits: SharedLimits

    def __post_init__(self) -> None:
        object.__setattr__(self, "members", tuple(self.members))
        require(self.members, "members", "no databases", expected="at least one database")
        unique_names([member.name for member in self.members], "members")
        for member in self.members:
            sites, field = member.problem.instance.sites, f"{member.name}: sites"
            words = "the databases of a fleet share their sites"
            require(sites == self.sites, field, words, ", ".join(sites), ", ".join(self.sites))
        for field in SITE_LIMITS:
            given = getattr(self.limits, field)
            count = len(self.sites) if given is None else len(given)
            expected = f"one for each of the {len(self.sites)} sites"
            require(count == len(self.sites), field, "wrong number of limits", count, expected)
        known = {member.name for member in self.members}
        for group in self.limits.apart:
            for name in group:
                require(name in known, "apart", "unknown database", name, "a name of the fleet")

    @property
    def sites(self) -> tuple[str, ...]:
        """Names of the sites."""
        return self.members[0].problem.instance.sites

    @cached_property
    def databases(self) -> int:
        """Number of databases, copies counted."""
        return sum(member.copies for member in self.members)
