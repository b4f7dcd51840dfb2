"""Servers that hold replicas: their names, and the steps from one deployment to another.

The steps are those of :mod:`placement.overtime.moves`: learners first, voters one at a time, so
that a quorum is left at every moment, then the leadership, and old replicas last. A deployment
counts replicas per site; here every replica gets a number at its site, the same before and after
wherever it can stay.

A deployment that was read names its servers. Else the servers of a site are the rows of the table
of localities with that site, in their order; a site without a row has one server with the name of
the site. Servers that run already keep their names.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from placement.databases.deployment import ROLES, Deployment, Member
from placement.databases.localities import Localities
from placement.errors import UnsupportedError, require
from placement.model.configuration import Configuration
from placement.overtime.moves.move_steps import Kind, QuorumSizes, safe_steps, step_text

if TYPE_CHECKING:
    from placement.overtime.moves.move_steps import MoveStep


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica by its site and its number there, from 1."""

    site: str
    number: int

    def __str__(self) -> str:
        return self.site if self.number == 1 else f"{self.site} (replica {self.number})"


@dataclass(frozen=True, slots=True)
class ServerMove:
    """Step of a move."""

    kind: Kind  #: what to do
    replica: Replica | None  #: where; None for a change of quorum sizes
    leader: Replica  #: replica that leads after the step
    voting: tuple[Replica, ...]  #: replicas that vote after the step, by site and number
    commit: int  #: votes that a commit waits for after the step
    text: str  #: in words, with what is broken
    broken: tuple[str, ...] = ()  #: what both ends keep and this stage does not

    @property
    def broken_words(self) -> str:
        """Return what is broken, each in brackets."""
        return "".join(f" [{words}]" for words in self.broken)


@dataclass(frozen=True, slots=True)
class MovePath:
    """The deployment that runs now, and the steps from there in a safe order."""

    present: Deployment
    steps: tuple[ServerMove, ...]

    def changes(self, said: Deployment) -> tuple[str, ...]:
        """Return the differences to what a configuration says, at least one sentence."""
        return self.present.differences(said) or ("none",)


def path_between(before: Deployment, after: Deployment) -> MovePath:
    """Return the steps from one deployment to another.

    At a site the first numbers are the voters of `before`, then its other replicas, then new
    ones. Votes stay where they are where `after` allows it. Two stores without leaders have no
    steps of votes and leaders: the path is empty then. Where only one has a leader, or one leaves
    the place of a replica open, there is none: UnsupportedError.
    """
    if before.read is not None and after.read is not None:
        return MovePath(before, ())
    for one in (before, after):
        if one.read is not None:
            raise UnsupportedError(
                "one of the two is a store without a leader: there are no steps between them"
            )
        if one.free_voters or one.free_non_voters:
            raise UnsupportedError(
                f"the deployment of {one.system} leaves the place of replicas open: no steps"
            )
        if not one.voters:
            raise UnsupportedError(f"the deployment of {one.system} has no voter: no steps")
    most = {one.site: one.replicas for one in before.held}
    most |= {one.site: max(most.get(one.site, 0), one.replicas) for one in after.held}
    slots = tuple(Replica(site, k + 1) for site in sorted(most) for k in range(most[site]))
    voting, voting_after = _slots(before, votes=True), _slots(after, votes=True)
    lead_after = _leader(after, voting_after, prefer=voting)
    lead = _leader(before, voting, prefer=voting_after)
    if before.leaders[:1] in ((), after.leaders[:1]) and lead_after in voting:
        lead = lead_after
    steps = safe_steps(
        _configuration(slots, lead, voting, _slots(before)),
        _configuration(slots, lead_after, voting_after, _slots(after)),
        start=_quorums(before),
        end=_quorums(after),
    )
    names = [str(slot) for slot in slots]
    return MovePath(before, tuple(_move(step, slots, names) for step in steps))


def _slots(deployment: Deployment, votes: bool = False) -> list[Replica]:
    held = deployment.held
    return [
        Replica(one.site, k + 1)
        for one in held
        for k in range(one.voters if votes else one.replicas)
    ]


def _leader(
    deployment: Deployment, voters: Sequence[Replica], prefer: Sequence[Replica]
) -> Replica:
    """Return the replica that leads: at the preferred site, one that keeps its vote."""
    here = [voter for voter in voters if (voter.site,) == deployment.leaders[:1]] or list(voters)
    return next((voter for voter in here if voter in prefer), here[0])


def _quorums(deployment: Deployment) -> QuorumSizes:
    if deployment.commit is None:
        return QuorumSizes.majorities(deployment.voters)
    return QuorumSizes(deployment.commit, deployment.voters - deployment.commit + 1)


def _configuration(
    slots: Sequence[Replica], leader: Replica, voters: Sequence[Replica], held: Sequence[Replica]
) -> Configuration:
    return Configuration.of(
        slots.index(leader), [*map(slots.index, voters)], [*map(slots.index, held)]
    )


def _move(step: MoveStep, slots: Sequence[Replica], names: Sequence[str]) -> ServerMove:
    assert step.after.leader is not None  # databases without a leader have no such steps
    return ServerMove(
        step.kind,
        None if step.site is None else slots[step.site],
        slots[step.after.leader],
        tuple(slots[voter] for voter in step.after.voters),
        step.after.quorums.commit,
        step_text(step, names),
        step.broken,
    )


# --- names -----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Server(Member):
    """A server that holds a replica, or will, with the columns of its row in the table."""

    facts: Mapping[str, str] = field(default_factory=dict)


def server_refusals(
    deployment: Deployment, localities: Localities, fits: Callable[[str], object], kind: str
) -> list[str]:
    """Return why a configuration cannot name the servers; empty where it can.

    The table has a row for each server; `fits` says whether the configuration can hold a name,
    and `kind` what a name has to be: "a host name".
    """
    found = []
    names = [member.name for member in deployment.members]
    for one in deployment.held if not names else ():
        rows = localities.of_site(one.site)
        names += [row.name for row in rows[: one.replicas]]
        if len(rows) < one.replicas:
            found.append(
                f"{one.site} holds {one.replicas} replicas and the table of localities names "
                f"{len(rows)} servers there: add a row for each server"
            )
    bad = ", ".join(repr(name) for name in dict.fromkeys(names) if not fits(name))
    more = f"not {kind}: {bad}; name the servers of these sites with --localities"
    return [*found, *([more] if bad else [])]


def numbered_steps(
    path: MovePath | None,
    servers: Mapping[Replica, Server],
    words: Callable[[ServerMove, Server | None], str],
) -> list[str]:
    """Return the steps of a path as text, with what is broken at each; a step without words goes.

    The servers are those of :func:`written_servers`; `words` say what to do.
    """
    steps: list[str] = []
    for move in () if path is None else path.steps:
        text = words(move, None if move.replica is None else servers[move.replica])
        if text:
            steps.append(f"step {len(steps) + 1}: {text}{move.broken_words}")
    return steps


def written_servers(
    deployment: Deployment, localities: Localities, path: MovePath | None
) -> tuple[tuple[Server, ...], dict[Replica, Server]]:
    """Return the servers of a deployment, and the servers before, on the way and after by replica.

    Without a path the second are none, and the first are by site the voters first, in the order of
    the table. A running voter keeps its special role while it votes. Servers that the present
    deployment does not name, or that the table lacks, are refused.
    """
    table = {row.name: row.facts for row in localities.rows}
    asked = {member.name: member for member in deployment.members}

    def server(name: str, site: str, voter: bool, role: str, running: Member | None) -> Server:
        one = running or Member(name, site, voter)
        facts = table.get(name, {})
        return Server(name, site, voter, one.identity, one.address, role, one.kept, facts)

    if path is None:
        found = [server(one.name, one.site, one.voter, one.role, one) for one in asked.values()]
        for one in deployment.held if not asked else ():
            rows = zip(localities.of_site(one.site), one.role_names, strict=False)
            for number, (row, role) in enumerate(rows):
                found.append(server(row.name, one.site, number < one.voters, role, None))
        return tuple(found), {}
    present = {one.site: one.replicas for one in path.present.held}
    wanted = {one.site: one for one in deployment.held}
    taken = {member.name for member in path.present.members}
    by_replica: dict[Replica, Server] = {}
    for site in dict.fromkeys((*present, *wanted)):
        members = [member for member in path.present.members if member.site == site]
        members.sort(key=lambda member: (not member.voter, member.role != ""))
        held = present.get(site, 0)
        words = f"the present deployment does not name its servers at {site}"
        expected = f"{held} servers (read it with placement db read)"
        require(len(members) == held, "members", words, len(members), expected)
        free = [row.name for row in localities.of_site(site) if row.name not in taken]
        names = [*(member.name for member in members), *sorted(free, key=lambda n: n not in asked)]
        after, votes = (wanted[site].replicas, wanted[site].voters) if site in wanted else (0, 0)
        words = f"{site} should hold {after} replicas"
        expected = f"{after} servers in the table of localities"
        require(len(names) >= after, "locality", words, names, expected)
        for number, name in enumerate(names[: max(held, after)]):
            running = members[number] if number < held else None
            role = asked[name].role if name in asked else running.role if running else ""
            if role and number < after and ROLES[role].votes != (number < votes):
                role = ""
            by_replica[Replica(site, number + 1)] = server(
                name, site, number < votes, role, running
            )
    last = {site: one.replicas for site, one in wanted.items()}
    there = (one for slot, one in by_replica.items() if slot.number <= last.get(slot.site, 0))
    return tuple(there), by_replica
