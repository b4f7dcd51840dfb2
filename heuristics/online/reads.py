"""Rules for reads of the paper: leaseholder, local, quorum, and quorum with a coin.

Strongly consistent quorum reads go the same ways; they differ in what replicas show
(:func:`placement.online.reads.simulate`, ``strong=True``). The optimum that the rules compare with
is ``formulations.online.reads``.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from placement.online.reads import (
    Choose,
    Quorum,
    ReadProblem,
    ReadRule,
    ReadStrategy,
    uniforms,
)
from placement.online.reads.leader_share import uniform_share
from placement.online.simulation import check_fields

_LISTED = 20_000
"""Quorums per gateway up to which they are listed; beyond, nodes are drawn one by one."""


@dataclass(frozen=True)
class LeaseHolder(ReadRule):
    """Every read goes to L."""

    label: ClassVar[str] = "leaseholder"

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> Choose:
        """Begin a run."""
        return lambda gateway: (leader,)


@dataclass(frozen=True)
class Local(ReadRule):
    """Every gateway reads its own copy: stale reads are possible, performance is an upper bound."""

    label: ClassVar[str] = "local"

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> Choose:
        """Begin a run."""
        return lambda gateway: (gateway,)


@dataclass(frozen=True)
class UniformQuorum(ReadRule):
    """The paper's rule: L reads its own copy; others go to L with probability x.

    Otherwise they read from themselves and m nodes drawn uniformly from the rest without L. Every
    retry draws the coin and the quorum again, as in the authors' code.
    :func:`placement.online.reads.leader_share.uniform_share` is the x that evens out the reads.
    """

    share: float

    def __post_init__(self) -> None:
        check_fields(self, shares=["share"])

    @property
    def name(self) -> str:
        """With x."""
        return f"uniform quorum, x = {self.share:.3g}"

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> Choose:
        """Begin a run."""
        share, draws, needed = self.share, uniforms(rng), nodes // 2
        others = [[v for v in range(nodes) if v not in (g, leader)] for g in range(nodes)]
        listed: list[list[Quorum]] = []
        if comb(nodes - 2, needed) <= _LISTED:
            listed = [list(combinations(some, needed)) for some in others]

        def choose(gateway: int) -> Quorum:
            if gateway == leader or (share > 0 and next(draws) < share):
                return (leader,)
            if listed:
                quorums = listed[gateway]
                return (gateway, *quorums[int(next(draws) * len(quorums))])
            pool = others[gateway].copy()
            for place in range(needed):
                other = place + int(next(draws) * (len(pool) - place))
                pool[place], pool[other] = pool[other], pool[place]
            return (gateway, *pool[:needed])

        return choose


_MOST_QUORUMS = 20_000
"""Quorums of a gateway above which the uniform strategy is left out."""


def fixed_strategies(problem: ReadProblem) -> dict[str, ReadStrategy]:
    """Return the strategies by name; uniform majorities up to 20,000 per gateway. O(quorums).

    - ``leaseholder``: every read goes to L.
    - ``nearest majority``: every gateway but L asks the majority without L that answers first.
    - ``uniform majority``: the majority is drawn uniformly (the paper's quorum read).
    - ``leader or majority, x``: the paper's coin: L with probability x, else a uniform majority; x
      evens out the reads of all nodes where gateways are alike.
    """
    gateways = range(problem.nodes)

    def nearest(gateway: int) -> Quorum:
        others = [node for node in problem.order(gateway) if node != gateway]
        near = (gateway, *others[: problem.others_asked])
        return tuple(sorted(near)) if others else (problem.leader,)

    found = {
        "leaseholder": ReadStrategy.of(problem, [{(problem.leader,): 1.0} for _ in gateways]),
        "nearest majority": ReadStrategy.of(problem, [{nearest(g): 1.0} for g in gateways]),
    }
    if max(problem.count(gateway) for gateway in gateways) > _MOST_QUORUMS:
        return found
    share = float(uniform_share(problem.nodes))
    found["uniform majority"] = ReadStrategy.coin(problem, 0.0)
    found[f"leader or majority, x = {share:.3f}"] = ReadStrategy.coin(problem, share)
    return found
