"""Moves from the configuration that runs today: what changes, what that costs, and how much may.

The price of a move from (ℓ0, V0, R0) to (ℓ, V, R) is a sum over what changes,

    leader[ℓ]·[ℓ ≠ ℓ0] + Σ_{R ∖ R0} add + Σ_{R0 ∖ R} remove + Σ_{V ∖ V0} promote + Σ_{V0 ∖ V} demote

which is linear in the placement for a given present configuration, as every other cost is.

A budget, a limit on the number of changes to the present configuration and a limit on the GB that
are copied are the same thing: a function of the form of
:class:`~placement.evaluation.cost_model.LinearCost` that may be so much at most. With ℓ0, V0 and R0
the present configuration, the price of a move under a leader ℓ is

    K_ℓ = leader[ℓ]·[ℓ ≠ ℓ0] + Σ_{R0} remove + Σ_{V0} demote
    a_r = add_r outside R0, −remove_r in it        b_r = promote_r outside V0, −demote_r in it

The GB copied are the same sum with the size of a replica as the price of every addition. The number
of changes counts a site that is added or removed once, whether it votes or not:

    K_ℓ = [ℓ ≠ ℓ0] + |R0|      a_r = 1 outside R0, 0 in V0, −1 elsewhere
                               b_r = −1 in V0, 1 in the other sites of R0, 0 elsewhere
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field

import numpy as np

from placement.errors import InputError
from placement.evaluation.cost_model import CostModel, LinearCost
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.support.checks import (
    LARGEST,
    SMALLEST,
    FloatArray,
    elements,
    instance_of,
    number,
    suggest,
    text,
    whole,
)

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
        return Configuration.of(place[self.leader], voters, [place[r] for r in self.replicas])

    def document(self) -> dict[str, object]:
        """Return the names, JSON-ready."""
        return {"leader": self.leader, "voters": list(self.voters), "replicas": list(self.replicas)}


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
        horizon = number(self.horizon, "moves.horizon", minimum=SMALLEST, maximum=LARGEST)
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


_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class LinearLimit:
    """A linear function of the placement that may be so much at most."""

    name: str  #: "budget", "changes" or "copied GB"
    most: float  #: the limit
    #: gives the function under a leader: the model of the cost, or one of the moves
    function: CostModel | MoveFunction

    def linear(self, leader: int) -> LinearCost:
        """Return the function under a leader."""
        return self.function.linear(leader)

    def value(self, configuration: Configuration) -> float:
        """Return the function of a configuration."""
        return self.function.value(configuration)

    @property
    def noun(self) -> str:
        """Return the name after its number: "1 change", "2 changes"."""
        return self.name.removesuffix("s") if self.most == 1 else self.name

    @property
    def allowed(self) -> float:
        """Largest value that is taken: the limit and the rounding error of sums of prices."""
        return self.most + _TOLERANCE * (1 + abs(self.most))

    def broken(self, configuration: Configuration) -> str | None:
        """Return the limits that a configuration exceeds, in words, or None."""
        value = self.value(configuration)
        if value <= self.allowed:
            return None
        if self.name == "budget":
            return f"the cost {value:g} is above the budget {self.most:g}"
        return f"{value:g} {self.name} are above the limit of {self.most:g}"


@dataclass(frozen=True, eq=False)
class MoveFunction:
    """Sum over the changes, as a linear function of the placement."""

    present: Configuration  #: (ℓ0, V0, R0)
    constant: float  #: what of K does not depend on the leader
    leader: FloatArray  #: price of each leader that is not ℓ0, shape (sites,)
    #: `replica`, `voter`: a and b, shape (sites,), of either sign
    replica: FloatArray
    voter: FloatArray | None

    def linear(self, leader: int) -> LinearCost:
        """Return the function under a leader."""
        handed = float(self.leader[leader]) if leader != self.present.leader else 0.0
        return LinearCost(self.constant + handed, self.replica, self.voter, None)

    def value(self, configuration: Configuration) -> float:
        """Return the value of a configuration, as the sum over its changes."""
        now = changes(self.present, configuration)
        votes = np.zeros(len(self.leader)) if self.voter is None else self.voter
        # a removal has the negative price of keeping the replica
        total = float(self.leader[configuration.leader]) if now.leader else 0.0
        total += float(self.replica[list(now.added)].sum() - self.replica[list(now.removed)].sum())
        return total + float(votes[list(now.promoted)].sum() - votes[list(now.demoted)].sum())


@dataclass(frozen=True, eq=False)
class MoveCosts:
    """Prices and limits of moves on the sites of an instance."""

    #: `instance`, `present`, `moves`: what it is about
    instance: Instance
    present: Configuration
    moves: Moves
    price: MoveFunction = field(init=False)  #: price of a move in ms, spread over the horizon
    #: those on the number of changes and on the GB copied, as far as they are given
    limits: tuple[LinearLimit, ...] = field(init=False)

    def __post_init__(self) -> None:
        sites, moves = self.instance.sites, self.moves
        add, remove, promote, demote, leader = (
            moves.by_site(name, sites) / moves.horizon
            for name in ("add", "remove", "promote", "demote", "leader")
        )
        object.__setattr__(self, "price", self._function(add, remove, promote, demote, leader))
        limits = []
        if moves.at_most is not None:
            limits.append(LinearLimit("changes", float(moves.at_most), self._count()))
        if moves.copy_gb is not None:
            free = np.zeros(len(sites))
            copied = np.full(len(sites), self._stored_gb())
            function = self._function(copied, free, free, free, free)
            limits.append(LinearLimit("copied GB", moves.copy_gb, function))
        object.__setattr__(self, "limits", tuple(limits))

    def _stored_gb(self) -> float:
        given, prices = self.moves.stored_gb, self.instance.prices
        if given is None and prices is not None and prices.stored_gb:
            given = prices.stored_gb
        if given is None:
            raise InputError(
                "a limit on the GB copied, but the GB of a replica are not known",
                field="moves.copy_gb",
                value=self.moves.copy_gb,
                expected="Moves(stored_gb=…), or prices with stored_gb",
            )
        return given

    def _function(
        self,
        add: FloatArray,
        remove: FloatArray,
        promote: FloatArray,
        demote: FloatArray,
        leader: FloatArray,
    ) -> MoveFunction:
        held, votes = list(self.present.replicas), list(self.present.voters)
        replica, voter = add.copy(), promote.copy()
        replica[held], voter[votes] = -remove[held], -demote[votes]
        constant = float(remove[held].sum() + demote[votes].sum())
        return MoveFunction(self.present, constant, leader, replica, voter if voter.any() else None)

    def _count(self) -> MoveFunction:
        present, sites = self.present, len(self.instance.sites)
        replica, voter = np.ones(sites), np.zeros(sites)
        replica[list(present.replicas)] = -1.0
        replica[list(present.voters)] = 0.0
        voter[list(present.replicas)] = 1.0
        voter[list(present.voters)] = -1.0
        leader = np.ones(sites)
        return MoveFunction(present, float(len(present.replicas)), leader, replica, voter)
