"""Deployment: the roles of a database's replicas per site, whatever language they are written in.

A :class:`placement.Configuration` has at most one replica per site. A deployment counts: real
databases keep several replicas in one region. It also has an order of preferred leaders.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, get_args

from placement.errors import InputError, located, refused, require
from placement.evaluation.moves import CurrentSites
from placement.io.formats.document import Document, read_document, record_document
from placement.model.configuration import Configuration
from placement.model.constraints import majority
from placement.model.protocols import Protocol
from placement.support.checks import text, unique_names, whole

if TYPE_CHECKING:
    from placement.model.instance import Instance
    from placement.plan import Plan
    from placement.quorumstore import QuorumPlan

FORMAT = "replica-placement deployment"
VERSION = 2

_MOST_NAMED = 4
"""Most possible sites that are named in a table."""

_MOST = 10_000
"""Most replicas of one kind at a site: far above what any system supports."""


@dataclass(frozen=True, slots=True)
class Role:
    """Rights of a replica of a special role."""

    votes: bool  #: whether it counts as a voter
    acknowledges: bool  #: whether a commit may count it
    elects: bool  #: whether it counts when the next leader is chosen
    leads: bool  #: whether it may lead
    serves: bool  #: whether clients read from it


_PLAIN_VOTER = Role(True, True, True, True, True)
_PLAIN_REPLICA = Role(False, False, False, False, True)
ROLES: Mapping[str, Role] = MappingProxyType(
    {
        "arbiter": Role(True, False, True, False, False),  # no data
        "witness": Role(True, True, True, False, False),  # the log, and no data to read
        "delayed": Role(True, False, True, False, False),  # its data are old
        "hidden": Role(True, True, True, False, False),
        "follower": Role(True, True, True, False, True),
        "spare": Role(True, False, False, False, True),  # a standby that steps in for a lost one
        "down": Role(True, False, False, False, False),  # counted, and not running now
        "unread": Role(False, False, False, False, False),  # hidden or delayed, without a vote
    }
)
"""Special roles by name. Other voters do everything; other replicas serve reads."""


@dataclass(frozen=True, slots=True)
class SiteReplicas:
    """Numbers of replicas at a site.

    Attributes
    ----------
    site
        Name of the site of the instance.
    voters, non_voters
        Replicas that vote, and that do not.
    special
        Replicas among them of a role of :data:`ROLES`, and their number.
    zones
        Voters and non-voters by zone inside the site, where the configuration says; they need not
        be all.
    """

    site: str
    voters: int = 0
    non_voters: int = 0
    special: tuple[tuple[str, int], ...] = ()
    zones: tuple[SiteReplicas, ...] = ()

    def __post_init__(self) -> None:
        text(self.site, "site")
        whole(self.voters, "voters", maximum=_MOST)
        whole(self.non_voters, "non_voters", maximum=_MOST)
        object.__setattr__(self, "special", tuple(sorted(one for one in self.special if one[1])))
        object.__setattr__(self, "zones", tuple(sorted(self.zones, key=lambda one: one.site)))
        unique_names([role for role, _ in self.special], "roles")
        unique_names([one.site for one in self.zones], "zones")
        for role, count in self.special:
            require(role in ROLES, "roles", "unknown role", role, ", ".join(ROLES))
            whole(count, role, maximum=self.voters if ROLES[role].votes else self.non_voters)
        more = len(self.role_names) > self.replicas
        require(not more, "roles", "more roles than replicas", dict(self.special))
        whole(sum(zone.voters for zone in self.zones), "voters of zones", maximum=self.voters)
        others = sum(zone.non_voters for zone in self.zones)
        whole(others, "non_voters of zones", maximum=self.non_voters)

    @property
    def replicas(self) -> int:
        """Return the number of replicas of either kind."""
        return self.voters + self.non_voters

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of replicas of each kind: both kinds of votes, then special roles."""
        special = {**dict.fromkeys(ROLES, 0), **dict(self.special)}
        return {"voters": self.voters, "non-voters": self.non_voters, **special}

    @property
    def role_names(self) -> tuple[str, ...]:
        """Return the special role of each replica, or "": plain voters first, non-voters last."""
        roles = [role for role, count in self.special for _ in range(count)]
        votes = [role for role in roles if ROLES[role].votes]
        others = [role for role in roles if not ROLES[role].votes]
        plain = [""] * (self.voters - len(votes))
        return (*plain, *votes, *[""] * (self.non_voters - len(others)), *others)

    @property
    def each(self) -> tuple[Role, ...]:
        """Return the role of each replica, in the order of :attr:`role_names`."""
        return tuple(
            ROLES[name] if name else _PLAIN_VOTER if k < self.voters else _PLAIN_REPLICA
            for k, name in enumerate(self.role_names)
        )


OpenRole = Literal["voter", "non-voter", "either"]


@dataclass(frozen=True, slots=True)
class OpenReplicas:
    """Replicas whose site or role the configuration leaves to the database.

    Attributes
    ----------
    sites
        Sites among which the database chooses; empty: all sites.
    replicas
        Number of them.
    role
        Whether they vote; "either" where the configuration does not say it.
    """

    sites: tuple[str, ...]
    replicas: int
    role: OpenRole = "either"

    def __post_init__(self) -> None:
        object.__setattr__(self, "sites", tuple(sorted(unique_names(self.sites, "open"))))
        whole(self.replicas, "open", minimum=1, maximum=_MOST)
        text(self.role, "role", choices=get_args(OpenRole))

    @property
    def place(self) -> str:
        """Return the possible sites in words; empty for all sites."""
        if len(self.sites) > _MOST_NAMED:
            return f"any of {len(self.sites)} sites"
        return " or ".join(self.sites)


@dataclass(frozen=True, slots=True)
class Member:
    """A server that holds a replica, for systems that name their servers.

    Attributes
    ----------
    name
        Name in the database.
    site
        Name of the site.
    voter
        Whether it votes.
    identity, address
        What the database calls it in commands (the number of an etcd member), and where it is;
        empty where not known.
    role
        One of :data:`ROLES`; empty for a voter that does everything and a replica that serves.
    kept
        What the configuration says beside that, as it was read: an export keeps it.
    """

    name: str
    site: str
    voter: bool
    identity: str = ""
    address: str = ""
    role: str = ""
    kept: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Deployment:
    """Replicas per site with their roles, and the order of preferred leaders.

    Parameters
    ----------
    system
        Name of the system it was read from; "plan" for a plan.
    held
        Replicas per site; kept in the order of the names, sites without replicas are left out.
    leaders
        Sites in the order in which they should lead: the leader first, then the failover order.
        Empty: the configuration has no preference.
    ranks
        Preference of each of `leaders`, from 1 on; equal numbers: any of these sites may lead.
        Empty: no two are equal.
    order_void
        Whether the system ignores the order behind the first leader.
    commit
        Votes that a commit waits for, the leader's included; None: a majority.
    elect
        Votes that the choice of the next leader needs; None: see :attr:`election`.
    least
        Fewest votes that a commit waits for, where the system lowers their number by itself when
        voters are lost; None: it does not.
    read
        For a store without a leader, the replicas that a read waits for; then `commit` is the
        number that a write waits for. None: the database has a leader.
    name
        What is placed: a database, a keyspace, a cluster.
    free_voters, free_non_voters
        Replicas that the configuration asks for without saying where, or in which role where.
    open
        What it says of some of these all the same: the sites that are possible. The others may be
        at any site.
    everywhere
        Operations ("reads", "writes") of a store without a leader that need a majority at each of
        its sites (EACH_QUORUM).
    members
        The servers, where the system names them. Two deployments that differ in nothing else have
        the same roles, see :attr:`roles`.
    kept
        The configuration as it was read, in the language of `system`, for what the roles do not
        hold: an export to the same system keeps it.

    Raises
    ------
    InputError
        For a site given twice, and for numbers out of range.
    """

    system: str
    held: tuple[SiteReplicas, ...]
    leaders: tuple[str, ...] = ()
    commit: int | None = None
    read: int | None = None
    name: str = ""
    free_voters: int = 0
    free_non_voters: int = 0
    members: tuple[Member, ...] = ()
    ranks: tuple[int, ...] = ()
    order_void: bool = False
    elect: int | None = None
    least: int | None = None
    kept: str = ""
    open: tuple[OpenReplicas, ...] = ()
    everywhere: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        held = sorted((one for one in self.held if one.replicas), key=lambda one: one.site)
        unique_names([one.site for one in held], "held")
        object.__setattr__(self, "held", tuple(held))
        self._order_leaders()
        votes = {"commit": self.commit, "read": self.read, "elect": self.elect, "least": self.least}
        for name, number in votes.items():
            if number is not None:
                whole(number, name, minimum=1, maximum=_MOST)
        whole(self.free_voters, "free_voters", maximum=_MOST)
        whole(self.free_non_voters, "free_non_voters", maximum=_MOST)
        self._check_open()
        # a majority has one name, so that equal deployments are equal
        if self.read is None and self.commit == majority(self.voters):
            object.__setattr__(self, "commit", None)
        if self.elect is not None and self.elect == replace(self, elect=None).election:
            object.__setattr__(self, "elect", None)

    def _order_leaders(self) -> None:
        """Sort the leaders by rank; ranks that say no more than the order are dropped."""
        leaders = unique_names(self.leaders, "leaders")
        ranks = tuple(whole(rank, "ranks", minimum=1, maximum=_MOST) for rank in self.ranks)
        fits, words = len(ranks) in (0, len(leaders)), "not a rank for each leader"
        require(fits, "ranks", words, list(ranks), "as many")
        if ranks:
            order = sorted(zip(ranks, leaders, strict=True), key=lambda one: one[0])
            leaders = tuple(name for _, name in order)
            levels = sorted({*ranks})
            tied = len(levels) < len(ranks)
            ranks = tuple(levels.index(rank) + 1 for rank, _ in order) if tied else ()
        object.__setattr__(self, "leaders", leaders)
        object.__setattr__(self, "ranks", ranks)

    def _check_open(self) -> None:
        """Join open replicas of one kind, and refuse more of them than there are free ones."""
        counts: Counter[tuple[tuple[str, ...], OpenRole]] = Counter()
        for one in self.open:
            counts[one.sites, one.role] += one.replicas
        pools = tuple(OpenReplicas(sites, n, role) for (sites, role), n in sorted(counts.items()))
        object.__setattr__(self, "open", pools)
        votes, others, total = self.free_voters, self.free_non_voters, counts.total()
        if not (
            self.open_of("voter") <= votes
            and self.open_of("non-voter") <= others
            and total <= votes + others
        ):
            words = "more open replicas than replicas without a place"
            expected = f"at most {votes} voters and {others} others"
            raise InputError(words, field="open", value=total, expected=expected)

    @classmethod
    def of(
        cls,
        system: str,
        voters: Mapping[str, int],
        non_voters: Mapping[str, int] | None = None,
        **rest: object,
    ) -> Deployment:
        """Build one from numbers by site; `rest` are the other fields."""
        others = non_voters or {}
        held = tuple(
            SiteReplicas(site, voters.get(site, 0), others.get(site, 0))
            for site in dict.fromkeys((*voters, *others))
        )
        return cls(system, held, **rest)  # type: ignore[arg-type]  # fields by name

    @classmethod
    def of_members(cls, system: str, members: Iterable[Member], **rest: object) -> Deployment:
        """Build one from the servers that hold replicas; `rest` are the other fields."""
        held = tuple(members)
        unique_names([member.name for member in held], "members")
        sites = []
        for site in dict.fromkeys(member.site for member in held):
            here = [member for member in held if member.site == site]
            voters = sum(member.voter for member in here)
            roles = Counter(member.role for member in here if member.role)
            sites.append(SiteReplicas(site, voters, len(here) - voters, tuple(roles.items())))
        return cls(system, tuple(sites), members=held, **rest)  # type: ignore[arg-type]  # as above

    @property
    def voters(self) -> int:
        """Return the number of voters, voters without a place included."""
        return sum(one.voters for one in self.held) + self.free_voters

    @property
    def replicas(self) -> int:
        """Return the number of replicas, replicas without a place included."""
        return sum(one.replicas for one in self.held) + self.free_voters + self.free_non_voters

    @property
    def sites(self) -> tuple[str, ...]:
        """Return the sites that hold replicas."""
        return tuple(one.site for one in self.held)

    @property
    def voters_at(self) -> dict[str, int]:
        """Return the number of voters by site; sites without voters are left out."""
        return {one.site: one.voters for one in self.held if one.voters}

    @property
    def non_voters_at(self) -> dict[str, int]:
        """Return the number of replicas without a vote by site."""
        return {one.site: one.non_voters for one in self.held if one.non_voters}

    @property
    def quorum(self) -> int:
        """Return the votes that a commit waits for."""
        return majority(self.voters) if self.commit is None else self.commit

    @property
    def election(self) -> int:
        """Return the votes that the choice of the next leader needs, after a loss of the leader.

        A majority; where a commit waits for m of v voters instead, v − m + 1 of these, so that one
        of them has the last commit.
        """
        if self.elect is not None:
            return self.elect
        outside = {"spare"} if self.least is None else {"spare", "down"}
        spares = sum(name in outside for one in self.held for name in one.role_names)
        if self.commit is None and not spares and self.least is None:
            return majority(self.voters)
        return max(1, self.voters - spares - self.quorum + 1)

    @property
    def tiers(self) -> tuple[tuple[str, ...], ...]:
        """Return the leaders in groups of equal preference, the most preferred first."""
        ranks = self.ranks or tuple(range(1, len(self.leaders) + 1))
        return tuple(
            tuple(name for name, one in zip(self.leaders, ranks, strict=True) if one == rank)
            for rank in dict.fromkeys(ranks)
        )

    @property
    def order(self) -> str:
        """Return the order of leaders in words."""
        words = ", ".join(" or ".join(tier) for tier in self.tiers) or "no preference"
        return f"{words} (the system ignores the order)" if self.order_void else words

    @property
    def may_lead_at(self) -> dict[str, int]:
        """Return the number of voters that may lead by site; other sites are left out."""
        found = {one.site: sum(role.leads for role in one.each) for one in self.held}
        return {site: count for site, count in found.items() if count}

    def outage(self, lost: Collection[str], leader: str | None, free_lost: int = 0) -> str:
        """Return why commits stop after the loss of sites; empty where they go on.

        Replicas without a place are taken to be there, apart from `free_lost` voters.

        Parameters
        ----------
        lost
            Sites.
        leader
            Site of the leader, or "" for one that is not lost; None: the leader is lost too.
        free_lost
            Voters without a place that are lost.
        """
        there = [role for one in self.held if one.site not in lost for role in one.each]
        spare, free = ROLES["spare"], self.free_voters - free_lost
        commits = sum(role.acknowledges or role is spare for role in there) + free
        elects = sum(role.elects for role in there) + free
        if leader is None or leader in lost:
            if elects < self.election:
                return f"{elects} voters are left, and the choice of a leader needs {self.election}"
            if not any(role.leads for role in there) and not free:
                return "no voter is left that may lead"
        needed = min(self.quorum, self.least or self.quorum)
        if commits < needed:
            return f"{commits} of {self.voters} voters acknowledge, and a commit waits for {needed}"
        return ""

    @property
    def roles(self) -> tuple[object, ...]:
        """Return the roles without names, equal for two configurations of the same placement."""
        return (
            self.held,
            self.tiers[:1] if self.order_void else self.tiers,
            self.commit,
            self.elect,
            self.least,
            self.read,
            self.free_voters,
            self.free_non_voters,
            self.open,
            self.everywhere,
        )

    def open_of(self, role: OpenRole) -> int:
        """Return how many open replicas have a role."""
        return sum(one.replicas for one in self.open if one.role == role)

    def votes_within(self, group: Collection[str], sites: Iterable[str]) -> tuple[int, int]:
        """Return the least and the largest number of voters that a group of sites can hold.

        Parameters
        ----------
        group
            Names of sites.
        sites
            All sites, among which the database places replicas without a place.
        """
        everywhere = tuple(sites)
        held = sum(count for site, count in self.voters_at.items() if site in group)
        inside: Counter[OpenRole] = Counter()  # replicas that can be in the group
        bound: Counter[OpenRole] = Counter()  # replicas that can be nowhere else
        rest = self.free_voters + self.free_non_voters - sum(one.replicas for one in self.open)
        for one in (*self.open, *([OpenReplicas((), rest)] if rest else [])):
            among = one.sites or everywhere
            inside[one.role] += one.replicas * any(site in group for site in among)
            bound[one.role] += one.replicas * all(site in group for site in among)
        undecided = self.free_voters - self.open_of("voter")  # votes that replicas of either get
        elsewhere = rest + self.open_of("either") - bound["either"]
        least = held + bound["voter"] + max(0, undecided - elsewhere)
        return least, held + inside["voter"] + min(undecided, inside["either"])

    def differences(self, other: Deployment) -> tuple[str, ...]:
        """Return how another deployment differs in its roles, one sentence each."""
        words = []
        mine = {one.site: one for one in self.held}
        theirs = {one.site: one for one in other.held}
        for site in sorted({*mine, *theirs}):
            before = mine.get(site, SiteReplicas(site))
            after = theirs.get(site, SiteReplicas(site))
            for name, old in before.counts.items():
                if old != after.counts[name]:
                    words.append(f"{site}: {name} {old} -> {after.counts[name]}")
            if before.zones != after.zones:
                words.append(f"{site}: other zones, or other numbers in them")
        if self.roles[1] != other.roles[1]:
            words.append(f"leaders: {self.order} -> {other.order}")
        votes = "majority"
        for what, was, now in (
            ("commit", self.commit or votes, other.commit or votes),
            ("read", self.read or votes, other.read or votes),
            ("elect", self.elect or votes, other.elect or votes),
            ("votes left after losses", self.least or votes, other.least or votes),
            ("voters without a place", self.free_voters, other.free_voters),
            ("non-voters without a place", self.free_non_voters, other.free_non_voters),
        ):
            words += [f"{what}: {was} -> {now}"] * (was != now)
        if self.open != other.open:
            pools = (
                ", ".join(f"{pool.replicas} ({pool.role}) at {pool.place}" for pool in one.open)
                for one in (self, other)
            )
            change = " -> ".join(pool or "all" for pool in pools)
            words.append(f"possible sites of those: {change}")
        return tuple(words)


def deployment_of_plan(plan: Plan) -> Deployment:
    """Return the deployment that a plan asks for, with its failover order.

    That is the order of ``Plan.failures``: the voters by the mean latency that each gives as
    leader when the leader's site is lost. A plan without a configuration is refused.
    """
    protocol = plan.problem.protocol
    if plan.found and isinstance(protocol, Protocol) and protocol.name == "coordinated":
        numbers = {key: int(protocol.parameters[key]) for key in "rw"}
        held = dict.fromkeys(plan.replicas, 1)
        return Deployment.of("plan", held, {}, leaders=(), commit=numbers["w"], read=numbers["r"])
    if plan.configuration is None:
        raise InputError("the plan holds no configuration", field="plan", value=plan.status.value)
    words = "a deployment gives each voter a replica"
    expected = "a plan without witnesses"
    require(not plan.witnesses, "witnesses", words, list(plan.witnesses), expected)
    if plan.problem.demand.has_waits:
        words, told = "a deployment does not say what operations wait for", plan.problem.protocol
        expected = "a plan for operations of the four coefficients, such as protocol raft; or "
        expected += "coordinated:r=2,w=2 for a store without a leader"
        raise refused("", "protocol", words, str(told or "operations with waits"), expected)
    assert plan.leader is not None  # without waits there is one
    follow = tuple(name for name, _ in plan.failures.failover)
    voters = set(plan.voters)
    return Deployment.of(
        "plan",
        {site: 1 for site in plan.replicas if site in voters},
        {site: 1 for site in plan.replicas if site not in voters},
        leaders=(plan.leader, *follow),
        commit=plan.problem.quorum,
    )


def deployment_of_quorum_plan(plan: QuorumPlan) -> Deployment:
    """Return the deployment of a store without a leader: its sites, R and W."""
    return Deployment.of(
        "plan",
        dict.fromkeys(plan.replicas, 1),
        {},
        leaders=(),
        commit=plan.write_quorum,
        read=plan.read_quorum,
    )


# --- files -----------------------------------------------------------------------------------


def deployment_document(deployment: Deployment) -> dict[str, object]:
    """Return a deployment as one JSON-ready object."""
    rest = record_document(deployment)
    rest["held"] = [_site_document(one) for one in deployment.held]
    return {"format": FORMAT, "version": VERSION, "sites": rest.pop("held"), **rest}


def _site_document(one: SiteReplicas) -> dict[str, object]:
    rest: dict[str, object] = {"roles": dict(one.special)} if one.special else {}
    if one.zones:
        rest["zones"] = [_site_document(zone) for zone in one.zones]
    return {"site": one.site, "voters": one.voters, "non_voters": one.non_voters, **rest}


def deployment_from(document: Document) -> Deployment:
    """Return the deployment in a document of :func:`deployment_document`."""
    document.check_format(FORMAT, VERSION)
    document.only(deployment_document(Deployment("", ())))
    document.text("system")
    own = ("held", "members")
    plain = [one.name for one in fields(Deployment) if one.name not in own]
    with located(document.source):
        return Deployment(
            held=tuple(map(_site, document.tables("sites"))),
            members=tuple(map(_member, document.tables("members"))),
            **document.fields(Deployment, plain),
        )


def _site(table: Document) -> SiteReplicas:
    table.only(("site", "voters", "non_voters", "roles", "zones"))
    roles = table.table("roles")
    special = tuple((role, roles.whole(role)) for role in roles.values)
    zones = tuple(map(_site, table.tables("zones")))
    counts = table.whole("voters"), table.whole("non_voters")
    return SiteReplicas(table.text("site"), *counts, special, zones)


def _member(table: Document) -> Member:
    names = ("name", "site", "voter", "identity", "address", "role")
    table.only((*names, "kept"))
    voter, role = table.truth("voter"), table.text("role", "")
    if role and (role not in ROLES or ROLES[role].votes != voter):
        known = [name for name, one in ROLES.items() if one.votes == voter]
        raise table.refuse("role", "no such role here", "one of " + ", ".join(known))
    for name in names[:2]:
        table.text(name)
    return Member(**table.fields(Member, names), kept=table.table("kept").values)


def load_deployment(
    path: str | os.PathLike[str],
) -> tuple[Deployment, Plan | QuorumPlan | None]:
    """Read a deployment, or a plan or a bare configuration as a deployment.

    Return it with the plan, where the file holds one; any other file is refused.
    """
    from placement.io.plan_file import FORMAT as PLAN
    from placement.io.plan_file import load_any_plan
    from placement.io.problem_document import current_from
    from placement.plan import Plan

    document = read_document(path)
    if document.values.get("format") == PLAN:
        plan = load_any_plan(path)
        with located(os.fspath(path)):
            if not isinstance(plan, Plan):
                return deployment_of_quorum_plan(plan), plan
            return deployment_of_plan(plan), plan
    if {"leader", "voters", "replicas"} & {*document.values}:
        document.only(("leader", "voters", "replicas"))
        with located(os.fspath(path)):
            here = current_from(document)
        others = dict.fromkeys((site for site in here.replicas if site not in here.voters), 1)
        votes = dict.fromkeys(here.voters, 1)
        return Deployment.of("as written", votes, others, leaders=(here.leader,)), None
    if document.values.get("format") != FORMAT:
        kinds = f"{PLAN!r} or {FORMAT!r}, or leader, voters and replicas"
        raise document.refuse("format", "a file of another kind", kinds)
    return deployment_from(document), None


def check_sites(deployment: Deployment, sites: Iterable[str], source: str = "") -> None:
    """Refuse a deployment (of a file) that names a site which the instance does not have."""
    known = set(sites)
    for what, names in (
        ("sites", [one.site for one in deployment.held]),
        ("leaders", deployment.leaders),
        ("open", [site for one in deployment.open for site in one.sites]),
    ):
        for name in names:
            expected = "a site of the instance (map other names with --localities)"
            require(name in known, what, "unknown site", name, expected, source=source)


# --- the configuration that runs today, from any file that says it ---------------------------

_EXPECTED = (
    "a plan, a deployment that was read from a database, JSON or TOML with leader, voters and "
    'replicas; or database = "SYSTEM" (--database) beside it for the output of a database'
)


def read_present(instance: Instance, path: str, *, database: str | None = None) -> Configuration:
    """Return the configuration of a file on the sites of an instance.

    The file is a plan; JSON or TOML with `leader`, `voters` and `replicas`; a deployment that
    ``placement db read`` wrote; or the output of a `database`, a system. The error about another
    file names the option that would make it right.
    """
    if database is not None:
        from placement.databases.localities import load_localities
        from placement.databases.system import load_system, read_deployment
        from placement.io.formats.files import read_text

        system = load_system(database)
        request = system.request(load_localities(None, instance.sites), "", {})
        reading = read_deployment(system, [(path, read_text(path))], request)
        with located(path):
            return _of_deployment(instance, reading.deployment)
    try:
        plan = _plan_of(path)
        if plan is None:
            return _of_deployment(instance, load_deployment(path)[0])
        leader = plan.leader or next((s for s in instance.sites if s in plan.voters), "")
        return CurrentSites(leader, plan.voters, plan.replicas).on(instance)
    except InputError as error:
        expected = _EXPECTED if error.field == "format" else error.expected
        raise error.at("" if error.source else path, expected=expected) from None


def _plan_of(path: str) -> Plan | None:
    """Return the plan of a file, which has a configuration; None for a file of another kind."""
    from placement.io.plan_file import FORMAT as PLAN
    from placement.io.plan_file import load_plan

    if read_document(path, _EXPECTED).values.get("format") != PLAN:
        return None
    plan, words = load_plan(path), "a plan without a configuration"
    there, status = plan.configuration is not None, plan.status.value
    require(there, "status", words, status, _EXPECTED, source=path)
    return plan


def read_running(instance: Instance | None, path: str) -> Plan:
    """Return what runs today as a plan: the plan of a file, or its configuration evaluated.

    A file that is no plan needs the instance; other errors are as of :func:`read_present`.
    """
    from placement.plan import evaluate
    from placement.problem import Problem

    plan = _plan_of(path)
    if plan is not None:
        return plan
    if instance is None:
        words = "a file without its instance"
        raise InputError(words, source=path, field="--instance", expected="INSTANCE")
    here = read_present(instance, path)
    quorum = load_deployment(path)[0].commit
    sizes = len(here.replicas), len(here.voters)
    problem = Problem(instance, replicas=sizes[0], voters=sizes[1], quorum=quorum)
    return evaluate(problem, here, method="as read")


def _of_deployment(instance: Instance, deployment: Deployment) -> Configuration:
    """Return the sites of a deployment with their roles."""
    check_sites(deployment, instance.sites)
    for one in deployment.held:
        if one.replicas > 1 or {"arbiter", "witness"} & {*one.role_names}:
            words = "several replicas at a site, or a voter without data"
            expected = "one replica with data; `placement db evaluate` takes others"
            raise InputError(words, field=one.site, value=one.counts, expected=expected)
    voters = [one.site for one in deployment.held if one.voters]
    if not voters or deployment.free_voters or deployment.free_non_voters:
        words = "the configuration does not name the sites of its voters"
        expected = "a configuration whose replicas are at named sites"
        raise InputError(words, field="voters", value=voters, expected=expected)
    led = [name for name in deployment.leaders if name in voters]
    if not led and deployment.read is None and len(voters) > 1:
        expected = "the site of the leader, first in the list"
        raise InputError("nothing says who leads", field="leaders", expected=expected)
    replicas = tuple(one.site for one in deployment.held)
    return CurrentSites((led or voters)[0], tuple(voters), replicas).on(instance)
