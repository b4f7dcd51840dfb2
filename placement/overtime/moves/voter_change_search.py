"""In which order voters come and go: a shortest way from one set of voters to another."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple

from placement.model.configuration import Configuration
from placement.overtime.moves.quorum_sizes import Quorums, SizeRule, legal, meet

__all__ = ["NODE_LIMIT", "VoteMove", "VoterState", "way"]

NODE_LIMIT = 50_000
"""States after which the search gives up and the caller takes a fixed order."""


class VoterState(NamedTuple):
    """Who votes and who leads."""

    voters: frozenset[int]
    leader: int


class VoteMove(NamedTuple):
    """One step, and the state after it."""

    kind: Literal["promote", "move-leader", "demote"]
    site: int
    after: VoterState


def way(
    before: Configuration,
    after: Configuration,
    rule: SizeRule,
    broken: Callable[[Sequence[int], Quorums], int],
    helpers: Sequence[int] = (),
) -> tuple[int, tuple[VoteMove, ...]] | None:
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
    A* over (voters, leader): what is left to change is a bound on the steps left. Sets of voters
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
    came: dict[VoterState, tuple[VoterState, VoteMove]] = {}
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
            if not fewest <= size <= most or not legal(size, quorums):
                continue
            union = len(state.voters | move.after.voters)
            if not meet(union, rule(len(state.voters)), quorums):
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


def _moves(state: VoterState, sites: Sequence[int], leaders: set[int]) -> Iterator[VoteMove]:
    for site in sites:
        if site not in state.voters:
            yield VoteMove("promote", site, VoterState(state.voters | {site}, state.leader))
    for site in sorted(leaders & state.voters - {state.leader}):
        yield VoteMove("move-leader", site, VoterState(state.voters, site))
    for site in sites:
        if site in state.voters and site != state.leader:
            yield VoteMove("demote", site, VoterState(state.voters - {site}, state.leader))


def _trace(
    came: dict[VoterState, tuple[VoterState, VoteMove]], state: VoterState
) -> tuple[VoteMove, ...]:
    moves: list[VoteMove] = []
    while state in came:
        state, move = came[state]
        moves.append(move)
    return tuple(reversed(moves))
