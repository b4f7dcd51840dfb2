"""Order in which voters join and leave: a shortest way from one set of voters to another."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from placement.model.configuration import Configuration
from placement.overtime.moves.quorum_sizes import (
    QuorumSizes,
    SizeRule,
    quorums_intersect,
    sets_intersect,
)

__all__ = ["NODE_LIMIT", "VoterChange", "VoterState", "shortest_change_sequence"]

NODE_LIMIT = 50_000
"""States after which the search gives up and the caller takes a fixed order."""


class VoterState(NamedTuple):
    """Voters and leader of a configuration."""

    voters: frozenset[int]
    leader: int


class VoterChange(NamedTuple):
    """Change of one voter or of the leader, and the state after it."""

    kind: Literal["promote", "move-leader", "demote"]
    site: int
    after: VoterState


def shortest_change_sequence(
    before: Configuration,
    after: Configuration,
    rule: SizeRule,
    broken: Callable[[Sequence[int], QuorumSizes], int],
    helpers: Sequence[int] = (),
) -> tuple[int, tuple[VoterChange, ...]] | None:
    """Return a way with the fewest broken guards, then the fewest steps.

    Parameters
    ----------
    before, after
        The ends; only leader and voters matter.
    rule
        Quorums by number of voters.
    broken
        Voters, quorums -> how many guards that state breaks.
    helpers
        Other sites that may vote for a while.

    Returns
    -------
    tuple or None
        Guards broken on the way, summed over its states, and the steps; None after `NODE_LIMIT`
        states.

    Notes
    -----
    A* over (voters, leader): the number of open changes bounds the number of steps. Sets of voters
    have between one fewer than the smaller end and one more than the larger. Without guards that
    bite it visits little more than the way; at worst 2^(sites that change + helpers) states.
    """
    start = VoterState(frozenset(before.voters), before.leader)
    goal = VoterState(frozenset(after.voters), after.leader)
    sites = sorted(start.voters | goal.voters | set(helpers))
    fewest = max(1, min(len(start.voters), len(goal.voters)) - 1)
    most = max(len(start.voters), len(goal.voters)) + 1
    leaders = {start.leader, goal.leader}
    tick = itertools.count()  # then what was found first: promotions before demotions
    cost: dict[VoterState, tuple[int, int]] = {start: (0, 0)}
    came: dict[VoterState, tuple[VoterState, VoterChange]] = {}
    left = _left(start, goal)
    queue = [((0, left, left), next(tick), start)]  # of equals, the one nearest to the goal
    closed: set[VoterState] = set()
    while queue:
        _, _, state = heapq.heappop(queue)
        if state in closed:
            continue
        if state == goal:
            return cost[state][0], _trace(came, state)
        closed.add(state)
        if len(closed) > NODE_LIMIT:
            return None
        hurt, steps = cost[state]
        for move in _moves(state, sites, leaders):
            size = len(move.after.voters)
            quorums = rule(size)
            if not fewest <= size <= most or not quorums_intersect(size, quorums):
                continue
            union = len(state.voters | move.after.voters)
            if not sets_intersect(union, rule(len(state.voters)), quorums):
                continue
            worse = broken(sorted(move.after.voters), quorums)
            total = (hurt + worse, steps + 1)
            if move.after not in cost or total < cost[move.after]:
                cost[move.after] = total
                came[move.after] = (state, move)
                left = _left(move.after, goal)
                estimate = (total[0], total[1] + left, left)
                heapq.heappush(queue, (estimate, next(tick), move.after))
    return None


def _left(state: VoterState, goal: VoterState) -> int:
    return len(state.voters ^ goal.voters) + (state.leader != goal.leader)


def _moves(state: VoterState, sites: Sequence[int], leaders: set[int]) -> Iterator[VoterChange]:
    for site in sites:
        if site not in state.voters:
            yield VoterChange("promote", site, VoterState(state.voters | {site}, state.leader))
    for site in sorted(leaders & state.voters - {state.leader}):
        yield VoterChange("move-leader", site, VoterState(state.voters, site))
    for site in sites:
        if site in state.voters and site != state.leader:
            yield VoterChange("demote", site, VoterState(state.voters - {site}, state.leader))


def _trace(
    came: dict[VoterState, tuple[VoterState, VoterChange]], state: VoterState
) -> tuple[VoterChange, ...]:
    moves: list[VoterChange] = []
    while state in came:
        state, move = came[state]
        moves.append(move)
    return tuple(reversed(moves))
