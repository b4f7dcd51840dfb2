"""Steps from one deployment to another, replica by replica, in a safe order.

The steps are those of :mod:`placement.overtime.moves`: learners first, voters one at a time, so
that a quorum is left at every moment, then the leadership, and old replicas last. A deployment
counts replicas per site; here every replica gets a number at its site, the same before and after
wherever it can stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from placement.databases.deployment import Deployment
from placement.errors import UnsupportedError
from placement.model.configuration import Configuration
from placement.overtime.moves.move_steps import Kind, QuorumSizes, safe_steps, step_text

if TYPE_CHECKING:
    from placement.overtime.moves.move_steps import MoveStep

__all__ = ["MovePath", "Replica", "ServerMove", "path_between", "replicas_of"]


@dataclass(frozen=True, slots=True)
class Replica:
    """A replica by its site and its number there, from 1."""

    site: str
    number: int

    def __str__(self) -> str:
        return self.site if self.number == 1 else f"{self.site} (replica {self.number})"


@dataclass(frozen=True, slots=True)
class ServerMove:
    """Step of a move.

    Attributes
    ----------
    kind
        What to do, as ``Kind`` of :mod:`placement.overtime.moves.move_steps`.
    replica
        Where; None for a change of quorum sizes.
    leader
        Replica that leads after the step.
    voting
        Replicas that vote after the step, by site and number.
    commit
        Votes that a commit waits for after the step.
    text
        The step in words, with what both ends keep and this stage does not.
    broken
        That alone, empty where nothing is broken.
    """

    kind: Kind
    replica: Replica | None
    leader: Replica
    voting: tuple[Replica, ...]
    commit: int
    text: str
    broken: tuple[str, ...] = ()

    @property
    def voters(self) -> int:
        """Return the number of voters after the step."""
        return len(self.voting)


@dataclass(frozen=True, slots=True)
class MovePath:
    """The present deployment, and the steps from there.

    Attributes
    ----------
    present
        The deployment that runs now.
    steps
        In a safe order; empty if nothing changes.
    """

    present: Deployment
    steps: tuple[ServerMove, ...]


def replicas_of(before: Deployment, after: Deployment) -> tuple[Replica, ...]:
    """Return all replicas of two deployments, by site and number."""
    held = {one.site: one.replicas for one in before.held}
    for one in after.held:
        held[one.site] = max(held.get(one.site, 0), one.replicas)
    return tuple(Replica(site, k + 1) for site in sorted(held) for k in range(held[site]))


def path_between(before: Deployment, after: Deployment) -> MovePath:
    """Return the steps from one deployment to another.

    At a site the first numbers are the voters of `before`, then its other replicas, then new
    ones. Votes stay where they are where `after` allows it. Two stores without leaders have no
    steps of votes and leaders: the path is empty then.

    Raises
    ------
    UnsupportedError
        When only one of the two has a leader, or one leaves the place of a replica open.
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
    slots = replicas_of(before, after)
    index = {slot: i for i, slot in enumerate(slots)}
    voters_before, held_before = _numbers(before)
    voters_after, held_after = _numbers(after)
    lead_after = _leader(after, voters_after, prefer=voters_before)
    same = before.leaders[:1] == after.leaders[:1] or not before.leaders
    lead_before = (
        lead_after
        if same and lead_after in voters_before
        else _leader(before, voters_before, prefer=voters_after)
    )
    steps = safe_steps(
        _configuration(index, lead_before, voters_before, held_before),
        _configuration(index, lead_after, voters_after, held_after),
        start=_quorums(before),
        end=_quorums(after),
    )
    names = [str(slot) for slot in slots]
    return MovePath(before, tuple(_move(step, slots, names) for step in steps))


def _numbers(deployment: Deployment) -> tuple[list[Replica], list[Replica]]:
    voters, held = [], []
    for one in deployment.held:
        replicas = [Replica(one.site, k + 1) for k in range(one.replicas)]
        held += replicas
        voters += replicas[: one.voters]
    return voters, held


def _leader(
    deployment: Deployment, voters: Sequence[Replica], prefer: Sequence[Replica]
) -> Replica:
    """Return the replica that leads: at the preferred site, one that keeps its vote."""
    wanted = deployment.leaders[0] if deployment.leaders else None
    here = [voter for voter in voters if voter.site == wanted] or list(voters)
    return next((voter for voter in here if voter in prefer), here[0])


def _quorums(deployment: Deployment) -> QuorumSizes:
    if deployment.commit is None:
        return QuorumSizes.majorities(deployment.voters)
    return QuorumSizes(deployment.commit, deployment.voters - deployment.commit + 1)


def _configuration(
    index: dict[Replica, int],
    leader: Replica,
    voters: Sequence[Replica],
    held: Sequence[Replica],
) -> Configuration:
    return Configuration.of(
        index[leader], [index[one] for one in voters], [index[one] for one in held]
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
