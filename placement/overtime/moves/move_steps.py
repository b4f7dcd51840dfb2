"""Steps of a move: a list none of whose steps endangers committed data.

    add a learner → it catches up → promote it → hand over the leadership → demote → remove

New replicas come first and old ones go last. Voters come and go one at a time, so that quorums of
consecutive sets meet (:mod:`placement.overtime.moves.quorum_sizes`). The leader is a voter at every
moment. The order of promotions and demotions keeps what both ends keep (number of voters, and
domains that may be lost) if any order does; other replicas vote for a while if this helps. A
promise that cannot be kept is named at the step that breaks it. A database may stay at every prefix
for any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from placement.model.configuration import Configuration
from placement.overtime.moves.fault_guards import Guard, LossGuard, common_guards, voters_to_spare
from placement.overtime.moves.quorum_sizes import (
    QuorumSizes,
    SizeRule,
    quorum_path,
    quorums_of,
    resizing_steps,
)
from placement.overtime.moves.voter_change_search import (
    VoterChange,
    VoterState,
    shortest_change_sequence,
)
from placement.problem import Problem

__all__ = [
    "Kind",
    "MoveState",
    "MoveStep",
    "safe_steps",
    "step_document",
    "step_text",
    "steps_between",
]

Kind = Literal[
    "add-learner", "catch-up", "set-quorums", "promote", "move-leader", "demote", "remove"
]
"""Kind of action of a step."""


@dataclass(frozen=True, slots=True)
class MoveState:
    """A configuration on the way.

    Attributes
    ----------
    leader
        Site index; None where no operation needs a leader.
    voters, replicas
        Site indices, ascending; replicas that do not vote are learners (they may serve reads).
    behind
        Replicas that are still catching up.
    quorums
        Votes that commits and elections wait for.
    """

    leader: int | None
    voters: tuple[int, ...]
    replicas: tuple[int, ...]
    behind: tuple[int, ...]
    quorums: QuorumSizes

    @property
    def configuration(self) -> Configuration:
        """The roles; without a leader the first voter stands for all."""
        leader = self.voters[0] if self.leader is None else self.leader
        return Configuration.of(leader, self.voters, self.replicas)


@dataclass(frozen=True, slots=True)
class MoveStep:
    """Single step of a move.

    Attributes
    ----------
    kind
        What to do.
    site
        Where; None for a change of quorum sizes.
    after
        The stage it leads to.
    broken
        What both ends keep and this stage does not, in words.
    """

    kind: Kind
    site: int | None
    after: MoveState
    broken: tuple[str, ...] = ()


def steps_between(
    problem: Problem, before: Configuration, after: Configuration
) -> tuple[MoveStep, ...]:
    """Return the steps between two configurations of a problem, guarded by what both keep of it.

    Replicas that may vote by the rules of the problem may help out as voters. Rules for replicas
    (their number, caps, the budget) are not kept on the way: old and new replicas stand side by
    side until the old ones are removed. Where no operation needs a leader, none is handed over.
    """
    may_vote = problem.rules.may_vote
    held = set(before.replicas) | set(after.replicas)
    leaderless = problem.demand.leaderless
    if leaderless:
        common = sorted(set(before.voters) & set(after.voters))
        ends = (before.voters, after.voters)
        first, last = (common[0] if common else min(voters) for voters in ends)
        before = replace(before, leader=first)
        after = replace(after, leader=last)
    steps = safe_steps(
        before,
        after,
        start=quorums_of(problem, before),
        end=quorums_of(problem, after),
        guards=common_guards(problem, (before, after)),
        helpers=[site for site in sorted(held) if may_vote[site]],
    )
    return _without_leader(steps) if leaderless else steps


def _without_leader(steps: Sequence[MoveStep]) -> tuple[MoveStep, ...]:
    """Return the steps of votes and replicas alone."""
    return tuple(
        replace(step, after=replace(step.after, leader=None))
        for step in steps
        if step.kind != "move-leader"
    )


def safe_steps(
    before: Configuration,
    after: Configuration,
    *,
    start: QuorumSizes | None = None,
    end: QuorumSizes | None = None,
    guards: Sequence[Guard] | None = None,
    helpers: Sequence[int] = (),
) -> tuple[MoveStep, ...]:
    """Return the steps from one configuration to another.

    Parameters
    ----------
    before, after
        The ends.
    start, end
        Their quorums; None: majorities.
    guards
        What every stage should keep; None: as many voters may be lost as at the worse end.
    helpers
        Replicas of either end that may vote for a while, where that keeps a guard.

    Raises
    ------
    InputError
        When the quorums of an end are not safe in themselves.

    Notes
    -----
    See :func:`placement.overtime.moves.voter_change_search.shortest_change_sequence` for the cost
    of the search. When it
    gives up (dozens of voters that change), promotions and demotions alternate, and the steps still
    say what breaks.
    """
    quorums = start or QuorumSizes.majorities(len(before.voters))
    target = end or QuorumSizes.majorities(len(after.voters))
    if guards is None:
        least = min(
            voters_to_spare(len(before.voters), quorums), voters_to_spare(len(after.voters), target)
        )
        guards = (LossGuard(least),)
    rule = quorum_path(len(before.voters), quorums, len(after.voters), target)
    stage = MoveState(
        before.leader,
        tuple(sorted(before.voters)),
        tuple(sorted(before.replicas)),
        (),
        quorums,
    )
    steps: list[MoveStep] = []

    def take(kind: Kind, site: int | None, **changes: object) -> None:
        nonlocal stage
        stage = replace(stage, **changes)  # type: ignore[arg-type]  # fields of MoveState by name
        words = (guard.broken(stage.voters, stage.quorums) for guard in guards)
        steps.append(MoveStep(kind, site, stage, tuple(text for text in words if text)))

    for site in sorted(set(after.replicas) - set(before.replicas)):
        held = tuple(sorted((*stage.replicas, site)))
        take("add-learner", site, replicas=held, behind=(site,))
        take("catch-up", site, behind=())
    moves = _vote_moves(before, after, rule, guards, helpers)
    if moves:
        for sizes in resizing_steps(stage.quorums, rule(len(stage.voters))):
            take("set-quorums", None, quorums=sizes)
    for move in moves:
        voters = tuple(sorted(move.after.voters))
        take(
            move.kind,
            move.site,
            leader=move.after.leader,
            voters=voters,
            quorums=stage.quorums if move.kind == "move-leader" else rule(len(voters)),
        )
    for sizes in resizing_steps(stage.quorums, target):
        take("set-quorums", None, quorums=sizes)
    for site in sorted(set(before.replicas) - set(after.replicas)):
        take("remove", site, replicas=tuple(r for r in stage.replicas if r != site))
    return tuple(steps)


def _vote_moves(
    before: Configuration,
    after: Configuration,
    rule: SizeRule,
    guards: Sequence[Guard],
    helpers: Sequence[int],
) -> tuple[VoterChange, ...]:
    def broken(voters: Sequence[int], quorums: QuorumSizes) -> int:
        return sum(guard.broken(voters, quorums) is not None for guard in guards)

    if before.leader == after.leader and set(before.voters) == set(after.voters):
        return ()
    found = shortest_change_sequence(before, after, rule, broken)
    others = set(helpers) - set(before.voters) - set(after.voters)
    if others and (found is None or found[0]):
        helped = shortest_change_sequence(before, after, rule, broken, sorted(others))
        if helped is not None and (found is None or helped[0] < found[0]):
            found = helped
    return _alternating(before, after) if found is None else found[1]


def _alternating(before: Configuration, after: Configuration) -> tuple[VoterChange, ...]:
    """Promote one, demote one; the leadership goes as soon as the new leader votes."""
    state = VoterState(frozenset(before.voters), before.leader)
    coming = sorted(set(after.voters) - state.voters, key=lambda site: (site != after.leader, site))
    # the old leader goes last, when another site leads
    going = sorted(state.voters - set(after.voters), key=lambda site: (site == before.leader, site))
    moves: list[VoterChange] = []
    while state != VoterState(frozenset(after.voters), after.leader):
        if state.leader != after.leader and after.leader in state.voters:
            state = VoterState(state.voters, after.leader)
            moves.append(VoterChange("move-leader", after.leader, state))
        elif coming and (len(coming) >= len(going) or len(state.voters) <= len(before.voters)):
            site = coming.pop(0)
            state = VoterState(state.voters | {site}, state.leader)
            moves.append(VoterChange("promote", site, state))
        else:
            site = going.pop(0)
            state = VoterState(state.voters - {site}, state.leader)
            moves.append(VoterChange("demote", site, state))
    return tuple(moves)


def step_text(step: MoveStep, sites: Sequence[str]) -> str:
    """Return a step as a sentence, with names."""
    name = "" if step.site is None else sites[step.site]
    commit, elect = step.after.quorums
    votes = f"{len(step.after.voters)} voters"
    if step.after.leader is not None:
        votes += f", commits wait for {commit}, elections for {elect}"
    words = {
        "add-learner": f"add a learner at {name}",
        "catch-up": f"wait until {name} has caught up",
        "set-quorums": f"set the quorums: {votes}",
        "promote": f"promote {name} to a voter: {votes}",
        "move-leader": f"hand the leadership over to {name}",
        "demote": f"demote {name} to a learner: {votes}",
        "remove": f"remove the replica at {name}",
    }[step.kind]
    return words + "".join(f" [{text}]" for text in step.broken)


def step_document(step: MoveStep, sites: Sequence[str]) -> Mapping[str, object]:
    """Return a step as JSON values, with names."""
    after = step.after

    def names(chosen: Sequence[int]) -> list[str]:
        return [sites[int(site)] for site in np.asarray(chosen, dtype=np.intp)]

    return {
        "step": step.kind,
        "site": None if step.site is None else sites[step.site],
        "leader": None if after.leader is None else sites[after.leader],
        "voters": names(after.voters),
        "replicas": names(after.replicas),
        "commit": after.quorums.commit,
        "elect": after.quorums.elect,
        "broken": list(step.broken),
        "text": step_text(step, sites),
    }
