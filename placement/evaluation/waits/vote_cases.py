"""Numbers of voters by their votes that end a wait for votes: inner problem of given votes.

A leader waits no longer than a radius t if and only if its voters V within t have W votes. Let the
sites that may vote have the votes w_1 < w_2 < … < w_K, and class k be those with w_k votes. A *row*
says how many voters a set must hold in each class: at least n_k of class k within t, and, where W
depends on the voters, at least N_k of class k at any distance, k < K.

**A number of votes W.** The rows are the minimal (n_1, …, n_K) with Σ_k n_k·w_k >= W and
Σ_k n_k <= v. Voters with W votes within t have some number of voters in each class there, which is
at least some row; voters that hold a row have W votes within t.

**A majority.** V has N_k voters of class k, of v in all, and Σ_k N_k·w_k =: T votes; it needs
W = ⌊T/2⌋ + 1 of them. The rows are those (N_1, …, N_{K−1}; n_1, …, n_K) for which
N_K = v − Σ_{k<K} N_k >= 0, n_k <= N_k, and Σ_k n_k·w_k >= W(N).

*Every V that ends its wait within t meets a row:* its own numbers, or fewer within t.
*Every replica set that meets a row has voters that end the wait within t:* take N_k of its members
of class k < K, among them n_k within t, n_K of class K within t, and others until v vote. These
others lie in any class, while T counts each of them with w_K, the most votes of all. So the true
number of votes is at most T, the true majority at most W(N), and the votes within t reach it. The
leader is one of these voters: it is 0 ms away, and a row that leaves it no room among v voters is
refused when the cases are built, which count the leader as held.

So a case with a row is one about disjoint classes, each with its ball: blocks that are nested or
disjoint, for which the greedy of a matroid is exact. What a row asks for and another row asks for
as well needs no case of its own: only minimal rows are kept.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from placement.model.constraints import Rules
from placement.model.waits import Clause
from placement.support.checks import BoolArray, IntArray

__all__ = ["MOST_ROWS", "VoteBlocks", "block_count", "vote_blocks"]

MOST_ROWS = 2_000
"""Rows of a clause beyond which its waits are not taken by cases."""

_MOST_LOOKED_AT = 2_000_000


@dataclass(frozen=True, eq=False)
class VoteBlocks:
    """The blocks of a clause that counts votes, and the numbers of voters that meet it.

    Attributes
    ----------
    classes
        Sites of each block, shape (blocks, sites).
    near
        Whether a block holds only sites within the radius, shape (blocks,).
    least
        Sites that must be held in each block, one row for each way to meet the clause, shape
        (rows, blocks); more than all voters where the clause cannot be met.
    votes
        Votes of a site of each block.
    needed
        W, or 0 for a majority of the votes of all voters.
    """

    classes: BoolArray
    near: tuple[bool, ...]
    least: IntArray
    votes: tuple[int, ...]
    needed: int


def block_count(clause: Clause, rules: Rules) -> int:
    """Return the number of blocks of a clause that counts votes."""
    blocks = vote_blocks(clause, rules)
    return 0 if blocks is None else len(blocks.near)


@lru_cache(maxsize=16)  # the rules of one question are asked again and again
def vote_blocks(clause: Clause, rules: Rules) -> VoteBlocks | None:
    """Return the blocks and rows of a clause that counts votes; None: there are too many rows.

    Parameters
    ----------
    clause
        A majority of all voters, or a number of their votes.
    rules
        With votes.
    """
    assert rules.votes is not None
    number = Counter(rules.votes[rules.may_vote].tolist())
    weight = tuple(sorted(number))
    need = clause.need if isinstance(clause.need, int) else 0
    rows = _rows(weight, tuple(number[votes] for votes in weight), rules.voters, need)
    if rows is None:
        return None
    classes = rules.may_vote & (rules.votes == np.array(weight)[:, np.newaxis])
    near = (True,) * len(weight)
    if need == 0:
        classes = np.concatenate([classes, classes[:-1]])
        near += (False,) * (len(weight) - 1)
        weight += weight[:-1]
    if not len(rows):
        rows = np.array([[rules.voters + 1, *[0] * (len(near) - 1)]], dtype=np.intp)
    return VoteBlocks(classes, near, rows, weight, need)


@lru_cache(maxsize=256)
def _rows(
    votes: tuple[int, ...], number: tuple[int, ...], voters: int, need: int
) -> IntArray | None:
    """Return the minimal rows; None: too many. Need 0: a majority, whose rows end with the N_k.

    `number` are the sites of each class.
    """
    heaviest, found, looked = votes[-1], set[tuple[int, ...]](), 0
    choices: Iterator[tuple[int, ...]] = iter([()])
    if need == 0:
        spans = [range(min(count, voters) + 1) for count in number[:-1]]
        choices = itertools.product(*spans)
    for chosen in choices:
        rest = voters - sum(chosen)
        if rest < 0 or (need == 0 and rest > number[-1]):
            continue
        asked = need or (sum(map(int.__mul__, chosen, votes)) + rest * heaviest) // 2 + 1
        room = [min(count, voters) for count in number] if need else [*chosen, rest]
        for near in _reaching(votes, room, asked, voters):
            found.add((*near, *chosen))
            looked += 1
            if looked > _MOST_LOOKED_AT or len(found) > 10 * MOST_ROWS:
                return None
    rows = _minimal(sorted(found, key=sum))
    return rows if len(rows) <= MOST_ROWS else None


def _reaching(
    votes: Sequence[int], room: Sequence[int], asked: int, voters: int
) -> Iterator[tuple[int, ...]]:
    """Yield the minimal numbers of voters of each class that have the votes asked for together."""
    if len(votes) == 1:
        count = max(0, -(-asked // votes[0]))
        if count <= min(room[0], voters):
            yield (count,)
        return
    for count in range(min(room[0], voters) + 1):
        for rest in _reaching(votes[1:], room[1:], asked - count * votes[0], voters - count):
            yield (count, *rest)
        if count * votes[0] >= asked:
            return


def _minimal(rows: Sequence[tuple[int, ...]]) -> IntArray:
    """Return the rows, by ascending sum, of which no other asks for as little everywhere."""
    if not rows:
        return np.zeros((0, 0), dtype=np.intp)
    kept = np.zeros((0, len(rows[0])), dtype=np.intp)
    for row in rows:
        one = np.array(row, dtype=np.intp)
        if not (kept <= one).all(axis=1).any():
            kept = np.concatenate([kept, one[np.newaxis]])
    kept.flags.writeable = False  # it is kept, and shared
    return kept
