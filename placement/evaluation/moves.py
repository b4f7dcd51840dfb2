"""Moves from the configuration that runs today: what changes, what that costs, and how much may.

The price of a move from (ℓ0, V0, R0) to (ℓ, V, R) is a sum over what changes,

    leader[ℓ]·[ℓ ≠ ℓ0] + Σ_{R ∖ R0} add + Σ_{R0 ∖ R} remove + Σ_{V ∖ V0} promote + Σ_{V0 ∖ V} demote

which is linear in the placement for a given present configuration:
:mod:`placement.evaluation.move_costs` has it in the form of every other cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError
from placement.model.configuration import Configuration
from placement.support.checks import (
    LARGEST,
    FloatArray,
    elements,
    instance_of,
    number,
    suggest,
    text,
    whole,
)

if TYPE_CHECKING:
    from placement.model.instance import Instance

PRICES = ("add", "remove", "promote", "demote", "leader")
"""Parts of a move that have a price."""

_LARGEST_PRICE = 1e9

SitePrice = float | Mapping[str, float]
"""A price for every site, or a price by site."""


@dataclass(frozen=True, slots=True)
class RoleChanges:
    """Roles that differ between two configurations.

    Attributes
    ----------
    leader
        Whether another site leads.
    promoted, demoted
        Sites that gain, lose a vote, ascending.
    added, removed
        Sites that gain, lose a replica, ascending.
    """

    leader: bool
    promoted: tuple[int, ...]
    demoted: tuple[int, ...]
    added: tuple[int, ...]
    removed: tuple[int, ...]

    def __bool__(self) -> bool:
        return self.size > 0

    @property
    def size(self) -> int:
        """Return the number of sites that gain or lose a replica or a vote, and of other leaders.

        A site that is added counts once, whether it votes or not; so does one that is removed. A
        replica that goes to another site is two changes, as is a vote.
        """
        gained, lost = {*self.promoted, *self.added}, {*self.demoted, *self.removed}
        return int(self.leader) + len(gained) + len(lost)


def changes(before: Configuration, after: Configuration) -> RoleChanges:
    """Return the changes between two configurations; the order of voters does not count."""
    votes, votes_after = set(before.voters), set(after.voters)
    held, held_after = set(before.replicas), set(after.replicas)
    return RoleChanges(
        leader=before.leader != after.leader,
        promoted=tuple(sorted(votes_after - votes)),
        demoted=tuple(sorted(votes - votes_after)),
        added=tuple(sorted(held_after - held)),
        removed=tuple(sorted(held - held_after)),
    )


@dataclass(frozen=True, slots=True)
class CurrentSites:
    """The configuration that runs today, by name.

    InputError for a leader that does not vote, a voter without a replica, and a name given twice.
    """

    leader: str  #: ℓ0
    #: `voters`, `replicas`: V0 and R0, each in the order of its names; ℓ0 ∈ V0 ⊆ R0
    voters: tuple[str, ...]
    replicas: tuple[str, ...]

    def __post_init__(self) -> None:
        text(self.leader, "current.leader")
        for name in ("voters", "replicas"):
            given = elements(getattr(self, name), f"current.{name}", "a list of names")
            names = tuple(text(one, f"current.{name}") for one in given)
            if len(set(names)) < len(names):
                twice = next(one for one in names if names.count(one) > 1)
                raise InputError("a site is listed twice", field=f"current.{name}", value=twice)
            object.__setattr__(self, name, tuple(sorted(names)))
        for what, sites, among in (
            ("the leader is no voter", (self.leader,), "voters"),
            ("a voter holds no replica", self.voters, "replicas"),
        ):
            for site in sites:
                if site not in getattr(self, among):
                    raise InputError(
                        what,
                        field="current.leader" if among == "voters" else "current.voters",
                        value=site,
                        expected=f"one of the {among} of the present configuration",
                    )

    @classmethod
    def of(cls, given: object, instance: Instance) -> CurrentSites:
        """Take a configuration on the site indices of an instance, or a table of names.

        InputError for anything else, and for sites that the instance does not have.
        """
        if isinstance(given, Configuration):
            sites = instance.sites
            for site in given.replicas:
                if site >= len(sites):
                    raise InputError(
                        "no such site", field="current", value=site, expected=f"< {len(sites)}"
                    )
            chosen = [tuple(sites[s] for s in each) for each in (given.voters, given.replicas)]
            if not {given.leader, *given.voters} <= set(given.replicas):
                words = "the leader or a voter holds no replica"
                expected = "a leader that votes, and voters with replicas"
                raise InputError(words, field="current", value=given, expected=expected)
            return cls(sites[given.leader], *chosen)
        if isinstance(given, Mapping):
            keys = {"leader", "voters", "replicas"}
            if given.keys() != keys:
                wrong = sorted(map(str, given.keys() ^ keys))
                words = "missing or unknown keys of the present configuration"
                expected = "leader, voters and replicas"
                raise InputError(words, field="current", value=wrong, expected=expected)
            given = cls(given["leader"], given["voters"], given["replicas"])
        instance_of(
            given, CurrentSites, "current", "a Configuration, or leader, voters and replicas"
        )
        assert isinstance(given, CurrentSites)
        given.on(instance)
        return given

    def on(self, instance: Instance) -> Configuration:
        """Return the configuration on the site indices of an instance, or refuse unknown sites."""
        for site in self.replicas:
            if site not in instance.sites:
                words = "unknown site in the present configuration"
                expected = suggest(site, instance.sites, "one of the sites")
                raise InputError(words, field="current.replicas", value=site, expected=expected)
        place = {name: s for s, name in enumerate(instance.sites)}
        voters = sorted(place[v] for v in self.voters)
        if not voters:
            raise InputError("no voters", field="current.voters", expected="at least one site")
        return Configuration.of(
            place[self.leader],
            voters,
            [place[r] for r in self.replicas],
        )

    def document(self) -> dict[str, object]:
        """Return the names, JSON-ready."""
        return {
            "leader": self.leader,
            "voters": list(self.voters),
            "replicas": list(self.replicas),
        }


@dataclass(frozen=True, eq=False)
class Moves:
    """Prices of the changes to the present configuration, and limits on them.

    Prices are in **ms**: a price of P says that the change is as bad as one period in which every
    operation takes P ms longer; a period is the time that the demand of the question covers. Spread
    over `horizon` periods, the objective of a question is

        mean latency + Σ prices of the changes / horizon        (in ms per operation)

    so that the best plan is the one that pays within the horizon.

    Parameters
    ----------
    add, remove
        Price of every replica that a site gains, loses: a number for all sites, or site -> price
        with every site.
    promote, demote
        Price of every vote that a site gains, loses. A new replica that votes costs `add` and
        `promote`.
    leader
        Price of another leader, or site -> price of a change to it.
    at_most
        Most changes (:attr:`RoleChanges.size`); None: any number.
    horizon
        Periods over which the prices are spread, > 0.
    copy_gb
        Most GB copied to sites without a replica; None: any.
    stored_gb
        GB of one replica; None: `Prices.stored_gb` of the instance.

    Raises
    ------
    InputError
        For a price that is negative, not finite or above 1e9 ms, and a limit that is none.

    Examples
    --------
    >>> Moves(leader=20.0, add=100.0, at_most=2).given
    {'add': 100.0, 'leader': 20.0, 'at_most': 2}
    """

    add: SitePrice = 0.0
    remove: SitePrice = 0.0
    promote: SitePrice = 0.0
    demote: SitePrice = 0.0
    leader: SitePrice = 0.0
    _: KW_ONLY
    at_most: int | None = None
    horizon: float = 1.0
    copy_gb: float | None = None
    stored_gb: float | None = None

    def __post_init__(self) -> None:
        for name in PRICES:
            given = getattr(self, name)
            field = f"moves.{name}"
            if isinstance(given, Mapping):
                checked: object = {
                    str(site): number(price, f"{field}[{site!r}]", maximum=_LARGEST_PRICE)
                    for site, price in given.items()
                }
            else:
                checked = number(given, field, maximum=_LARGEST_PRICE)
            object.__setattr__(self, name, checked)
        if self.at_most is not None:
            object.__setattr__(self, "at_most", whole(self.at_most, "moves.at_most"))
        horizon = number(self.horizon, "moves.horizon", above=True, maximum=LARGEST)
        object.__setattr__(self, "horizon", horizon)
        for name in ("copy_gb", "stored_gb"):
            given = getattr(self, name)
            if given is not None:
                gb = number(given, f"moves.{name}", maximum=LARGEST)
                object.__setattr__(self, name, gb)

    @property
    def given(self) -> dict[str, object]:
        """Fields that differ from their default, JSON-ready."""
        fields = (*PRICES, "at_most", "horizon", "copy_gb", "stored_gb")
        return {
            name: dict(value) if isinstance(value, Mapping) else value
            for name in fields
            if (value := getattr(self, name)) != type(self).__dataclass_fields__[name].default
        }

    @property
    def priced(self) -> bool:
        """Return whether any change has a price."""
        prices = [getattr(self, name) for name in PRICES]
        return any(any(p.values()) if isinstance(p, Mapping) else p > 0 for p in prices)

    def by_site(self, name: str, sites: tuple[str, ...]) -> FloatArray:
        """Return one of the prices at every site, in ms, shape (sites,).

        Raises
        ------
        InputError
            For a site without a price, and for a price of an unknown site.
        """
        given: SitePrice = getattr(self, name)
        if not isinstance(given, Mapping):
            return np.full(len(sites), float(given))
        for site in given:
            if site not in sites:
                words = "price of an unknown site"
                expected = suggest(site, sites, "one of the sites")
                raise InputError(words, field=f"moves.{name}", value=site, expected=expected)
        for site in sites:
            if site not in given:
                words = "a site has no price"
                expected = "a price >= 0 for every site, or one number for all"
                raise InputError(words, field=f"moves.{name}", value=site, expected=expected)
        return np.array([given[site] for site in sites], dtype=float)
