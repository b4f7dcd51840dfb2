"""Deployment: the roles of a database's replicas per site, whatever language they are written in.

A :class:`placement.Configuration` has at most one replica per site. A deployment counts: real
databases keep several replicas in one region. It also has an order of preferred leaders.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement.errors import InputError
from placement.io.formats.document import Document
from placement.model.constraints import majority
from placement.support.checks import text, unique_names, whole

if TYPE_CHECKING:
    from placement.plan import Plan
    from placement.quorumstore import QuorumPlan

__all__ = [
    "FORMAT",
    "Deployment",
    "Member",
    "SiteReplicas",
    "deployment_document",
    "deployment_from",
    "deployment_of_plan",
    "deployment_of_quorum_plan",
    "load_deployment",
]

FORMAT = "replica-placement deployment"
VERSION = 1

_MOST = 10_000
"""Most replicas of one kind at a site: far above what any system supports."""


@dataclass(frozen=True, slots=True)
class SiteReplicas:
    """Numbers of replicas at a site.

    Attributes
    ----------
    site
        Name of the site of the instance.
    voters, non_voters
        Replicas that vote, and that do not.
    """

    site: str
    voters: int = 0
    non_voters: int = 0

    def __post_init__(self) -> None:
        text(self.site, "site")
        whole(self.voters, "voters", maximum=_MOST)
        whole(self.non_voters, "non_voters", maximum=_MOST)

    @property
    def replicas(self) -> int:
        """Return the number of replicas of either kind."""
        return self.voters + self.non_voters


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
    """

    name: str
    site: str
    voter: bool
    identity: str = ""
    address: str = ""


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
    commit
        Votes that a commit waits for, the leader's included; None: a majority.
    read
        For a store without a leader, the replicas that a read waits for; then `commit` is the
        number that a write waits for. None: the database has a leader.
    name
        What is placed: a database, a keyspace, a cluster.
    free_voters, free_non_voters
        Replicas that the configuration asks for without saying where.
    members
        The servers, where the system names them. Two deployments that differ in nothing else have
        the same roles, see :attr:`roles`.

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

    def __post_init__(self) -> None:
        kept = sorted((one for one in self.held if one.replicas), key=lambda one: one.site)
        unique_names([one.site for one in kept], "held")
        object.__setattr__(self, "held", tuple(kept))
        object.__setattr__(self, "leaders", unique_names(self.leaders, "leaders"))
        for field in ("commit", "read"):
            if getattr(self, field) is not None:
                whole(getattr(self, field), field, minimum=1, maximum=_MOST)
        for field in ("free_voters", "free_non_voters"):
            whole(getattr(self, field), field, maximum=_MOST)
        # a majority has one name, so that equal deployments are equal
        if self.read is None and self.commit == majority(self.voters):
            object.__setattr__(self, "commit", None)

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
        voters = Counter(member.site for member in held if member.voter)
        others = Counter(member.site for member in held if not member.voter)
        return cls.of(system, voters, others, members=held, **rest)

    @property
    def voters(self) -> int:
        """Return the number of voters, voters without a place included."""
        return sum(one.voters for one in self.held) + self.free_voters

    @property
    def replicas(self) -> int:
        """Return the number of replicas, replicas without a place included."""
        return sum(one.replicas for one in self.held) + self.free_voters + self.free_non_voters

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
    def roles(self) -> tuple[object, ...]:
        """Return the roles without names, equal for two configurations of the same placement."""
        return (
            self.held,
            self.leaders,
            self.commit,
            self.read,
            self.free_voters,
            self.free_non_voters,
        )

    def differences(self, other: Deployment) -> tuple[str, ...]:
        """Return how another deployment differs in its roles, one sentence each."""
        words = []
        mine = {one.site: one for one in self.held}
        theirs = {one.site: one for one in other.held}
        for site in sorted({*mine, *theirs}):
            before = mine.get(site, SiteReplicas(site))
            after = theirs.get(site, SiteReplicas(site))
            for role in ("voters", "non_voters"):
                old, new = getattr(before, role), getattr(after, role)
                if old != new:
                    words.append(f"{site}: {role.replace('_', '-')} {old} -> {new}")
        if self.leaders != other.leaders:
            words.append(f"leaders: {_order(self.leaders)} -> {_order(other.leaders)}")
        for field, was, now in (
            ("commit", self.commit, other.commit),
            ("read", self.read, other.read),
        ):
            if was != now:
                words.append(f"{field}: {was or 'majority'} -> {now or 'majority'}")
        for role, was, now in (
            ("voters", self.free_voters, other.free_voters),
            ("non-voters", self.free_non_voters, other.free_non_voters),
        ):
            if was != now:
                words.append(f"{role} without a place: {was} -> {now}")
        return tuple(words)


def _order(leaders: Sequence[str]) -> str:
    return ", ".join(leaders) if leaders else "no preference"


def deployment_of_plan(plan: Plan) -> Deployment:
    """Return the deployment that a plan asks for, with its failover order.

    The failover order is that of ``Plan.failures``: the voters by the mean latency
    that each gives as leader when the leader's site is lost.

    Raises
    ------
    InputError
        When the plan holds no configuration.
    """
    if plan.configuration is None or plan.leader is None:
        raise InputError("the plan holds no configuration", field="plan", value=plan.status.value)
    if plan.witnesses:
        raise InputError(
            "a deployment gives each voter a replica",
            field="witnesses",
            value=list(plan.witnesses),
            expected="a plan without witnesses",
        )
    if plan.lease_holders:
        raise InputError(
            "a deployment does not store lease holders",
            field="lease_holders",
            value=list(plan.lease_holders),
            expected="a plan without lease holders",
        )
    if plan.problem.vote_layout is not None:
        raise InputError(
            "a deployment gives each voter one vote",
            field="vote_layout",
            value=plan.problem.vote_layout,
            expected="a plan without a vote layout",
        )
    if plan.problem.votes:
        raise InputError(
            "a deployment gives each voter one vote",
            field="votes",
            value=plan.problem.votes,
            expected="a plan without votes of sites, as with votes={}",
        )
    if plan.problem.demand.has_waits:
        raise InputError(
            "a deployment does not say what operations wait for",
            field="protocol",
            value=str(plan.problem.protocol or "operations with waits"),
            expected="a plan for operations of the four coefficients, such as protocol raft",
        )
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
    """Return the deployment of a store without a leader: its sites, R and W.

    Raises
    ------
    InputError
        When the plan holds no configuration.
    """
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
    return {
        "format": FORMAT,
        "version": VERSION,
        "system": deployment.system,
        "name": deployment.name,
        "sites": [
            {"site": one.site, "voters": one.voters, "non_voters": one.non_voters}
            for one in deployment.held
        ],
        "leaders": list(deployment.leaders),
        "commit": deployment.commit,
        "read": deployment.read,
        "free_voters": deployment.free_voters,
        "free_non_voters": deployment.free_non_voters,
        "members": [
            {
                "name": one.name,
                "site": one.site,
                "voter": one.voter,
                "identity": one.identity,
                "address": one.address,
            }
            for one in deployment.members
        ],
    }


def deployment_from(document: Document) -> Deployment:
    """Return the deployment in a document of :func:`deployment_document`.

    Raises
    ------
    InputError
        With the file and the key, for anything that is not as it was written.
    """
    document.check_format(FORMAT, VERSION)
    known = ("format", "version", "system", "name", "sites", "leaders", "commit", "read")
    document.only((*known, "free_voters", "free_non_voters", "members"))
    try:
        return Deployment(
            document.text("system"),
            tuple(map(_site, document.tables("sites"))),
            document.names("leaders", ()),
            document.whole("commit") if document.has("commit") else None,
            document.whole("read") if document.has("read") else None,
            document.text("name", ""),
            document.whole("free_voters") if document.has("free_voters") else 0,
            document.whole("free_non_voters") if document.has("free_non_voters") else 0,
            tuple(map(_member, document.tables("members"))),
        )
    except InputError as error:
        raise error if error.source else error.at(document.source) from None


def _site(table: Document) -> SiteReplicas:
    table.only(("site", "voters", "non_voters"))
    return SiteReplicas(table.text("site"), table.whole("voters"), table.whole("non_voters"))


def _member(table: Document) -> Member:
    table.only(("name", "site", "voter", "identity", "address"))
    voter = table.values.get("voter")
    if not isinstance(voter, bool):
        raise table.refuse("voter", "not a truth value", "true or false")
    return Member(
        table.text("name"),
        table.text("site"),
        voter,
        table.text("identity", ""),
        table.text("address", ""),
    )


def load_deployment(
    path: str | os.PathLike[str],
) -> tuple[Deployment, Plan | QuorumPlan | None]:
    """Read a deployment, or a plan as a deployment.

    Returns
    -------
    tuple
        The deployment, and the plan where the file holds one.

    Raises
    ------
    InputError
        For a file that is neither.
    """
    from placement.io.formats.document import read_document
    from placement.io.leader_plan_document import FORMAT as PLAN
    from placement.io.plan_file import load_any_plan
    from placement.plan import Plan

    document = read_document(path)
    if document.values.get("format") == PLAN:
        plan = load_any_plan(path)
        try:
            if not isinstance(plan, Plan):
                return deployment_of_quorum_plan(plan), plan
            return deployment_of_plan(plan), plan
        except InputError as error:
            raise error.at(os.fspath(path)) from None
    if document.values.get("format") != FORMAT:
        raise document.refuse("format", "a file of another kind", f"{PLAN!r} or {FORMAT!r}")
    return deployment_from(document), None


def check_sites(deployment: Deployment, sites: Iterable[str]) -> None:
    """Refuse a deployment that names a site which the instance does not have."""
    known = set(sites)
    for field, names in (
        ("sites", [one.site for one in deployment.held]),
        ("leaders", deployment.leaders),
    ):
        for name in names:
            if name not in known:
                raise InputError(
                    "unknown site",
                    field=field,
                    value=name,
                    expected="a site of the instance (map other names with --localities)",
                )
