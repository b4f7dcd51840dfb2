"""The four read paths of the paper: leaseholder, local, quorum, quorum with a coin.

Strongly consistent quorum reads go the same ways; they differ in what replicas show
(:func:`placement.online.reads.simulate`, ``strong=True``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from placement.errors import InputError
from placement.online.reads import Answered, Quorum, RuleState, WaitsForAll, uniforms
from placement.support.checks import number

__all__ = ["LeaseHolder", "Local", "UniformQuorum", "checked_share", "others_of"]

_LISTED = 20_000
"""Quorums per gateway up to which they are listed; beyond, nodes are drawn one by one."""


@dataclass(frozen=True)
class LeaseHolder(WaitsForAll):
    """Every read goes to L."""

    name: str = "leaseholder"
    learns: ClassVar[bool] = False

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        return _Always([(leader,)] * nodes)


@dataclass(frozen=True)
class Local(WaitsForAll):
    """Every gateway reads its own copy: stale reads are possible, performance is an upper bound."""

    name: str = "local"
    learns: ClassVar[bool] = False

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        return _Always([(node,) for node in range(nodes)])


@dataclass(frozen=True)
class UniformQuorum(WaitsForAll):
    """The paper's rule: L reads its own copy; others go to L with probability x.

    Otherwise they read from themselves and m nodes drawn uniformly from the rest without L. Every
    retry draws the coin and the quorum again, as in the authors' code.

    Parameters
    ----------
    share
        x; :func:`placement.online.reads.leader_share.uniform_share` evens out the reads.
    """

    share: float
    learns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        checked_share(self.share)

    @property
    def name(self) -> str:
        """With x."""
        return f"uniform quorum, x = {self.share:.3g}"

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        return _Uniform(self.share, nodes, leader, uniforms(rng))


def checked_share(share: float) -> float:
    """Check x."""
    if number(share, "share") > 1:
        raise InputError("not a share", field="share", value=share, expected="0 to 1")
    return share


def others_of(gateway: int, nodes: int, leader: int) -> list[int]:
    """Nodes that a gateway may ask besides itself: all but L."""
    return [node for node in range(nodes) if node not in (gateway, leader)]


class _Always:
    def __init__(self, quorums: list[Quorum]) -> None:
        self._quorums = quorums

    def choose(self, gateway: int, now: float) -> Quorum:
        return self._quorums[gateway]

    def answered(self, reply: Answered) -> None:
        pass


class _Uniform:
    def __init__(self, share: float, nodes: int, leader: int, draws: Iterator[float]) -> None:
        self._share, self._leader, self._draws = share, leader, draws
        self._needed = nodes // 2
        self._others = [others_of(gateway, nodes, leader) for gateway in range(nodes)]
        listed = comb(nodes - 2, self._needed) <= _LISTED
        self._quorums: list[list[Quorum]] | None = None
        if listed:
            self._quorums = [
                [(gateway, *rest) for rest in combinations(others, self._needed)]
                for gateway, others in enumerate(self._others)
            ]

    def choose(self, gateway: int, now: float) -> Quorum:
        if gateway == self._leader or (self._share > 0 and next(self._draws) < self._share):
            return (self._leader,)
        if self._quorums is not None:
            quorums = self._quorums[gateway]
            return quorums[int(next(self._draws) * len(quorums))]
        pool = self._others[gateway].copy()
        for place in range(self._needed):
            other = place + int(next(self._draws) * (len(pool) - place))
            pool[place], pool[other] = pool[other], pool[place]
        return (gateway, *pool[: self._needed])

    def answered(self, reply: Answered) -> None:
        pass
