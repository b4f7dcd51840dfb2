"""Rules for reads: those of the paper, and rules that choose the majority by distance or load.

The paper (:mod:`placement.online.reads`) has leaseholder, local, quorum, and quorum with a coin.
Strongly consistent quorum reads go the same ways; they differ in what replicas show
(:func:`placement.online.reads.simulate`, ``strong=True``).

The paper draws the majority uniformly and leaves a better choice to the future. Each further rule
is such a choice: it picks the m nodes that join a gateway's own. `share` is the coin x for the
leaseholder, 0 for none. All are heuristics without guarantee; the optimum they compare with is
``formulations.online.reads``. A gateway knows what it has sent and not got back, and what each node
told it last; gateways do not talk to each other. Averages move by `new = 0.9·sample + 0.1·old`, as
in C3 (Suresh et al., NSDI 2015); the first sample replaces the initial zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from placement.errors import InputError
from placement.online.reads import (
    Answered,
    Quorum,
    ReadProblem,
    ReadRule,
    ReadStrategy,
    RuleState,
    uniforms,
)
from placement.online.reads.leader_share import uniform_share
from placement.online.simulation import check_fields
from placement.support.checks import FloatArray, numbers_of

__all__ = [
    "C3Majority",
    "LeaseHolder",
    "LeastUtilised",
    "Local",
    "NearestMajority",
    "TwoChoiceMajority",
    "UniformQuorum",
    "fixed_strategies",
]

_LISTED = 20_000
"""Quorums per gateway up to which they are listed; beyond, nodes are drawn one by one."""

_ALPHA = 0.9
"""Weight of the newest sample."""


class _Always(RuleState):
    def __init__(self, quorums: Sequence[Quorum]) -> None:
        self._quorums = quorums

    def choose(self, gateway: int) -> Quorum:
        return self._quorums[gateway]


@dataclass(frozen=True)
class LeaseHolder(ReadRule):
    """Every read goes to L."""

    label: ClassVar[str] = "leaseholder"

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        return _Always([(leader,)] * nodes)


@dataclass(frozen=True)
class Local(ReadRule):
    """Every gateway reads its own copy: stale reads are possible, performance is an upper bound."""

    label: ClassVar[str] = "local"

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        return _Always([(node,) for node in range(nodes)])


class _Coin(RuleState):
    """Common part of the rules with a coin: L or the gateway with the m nodes of :meth:`pick`."""

    def __init__(self, share: float, nodes: int, leader: int, draws: Iterator[float]) -> None:
        self.share, self.nodes, self.leader, self.draws = share, nodes, leader, draws
        self.needed = nodes // 2
        self.others = [
            [node for node in range(nodes) if node not in (gateway, leader)]
            for gateway in range(nodes)
        ]

    def pick(self, gateway: int) -> Sequence[int]:
        """Choose the m other nodes of a quorum."""
        raise NotImplementedError

    def choose(self, gateway: int) -> Quorum:
        """Toss the coin, unless the gateway is L itself."""
        alone = gateway == self.leader or (self.share > 0 and next(self.draws) < self.share)
        return (self.leader,) if alone else (gateway, *self.pick(gateway))


@dataclass(frozen=True)
class _CoinRule(ReadRule):
    """Base of the rules with a coin.

    Parameters
    ----------
    share
        x, 0 to 1: L reads its own copy; every other gateway goes to L with probability x. Every
        retry tosses the coin again, as in the authors' code.
    """

    share: float = 0.0
    state: ClassVar[type[_Coin]]

    def __post_init__(self) -> None:
        check_fields(self, shares=["share"])

    @property
    def name(self) -> str:
        """With x."""
        return f"{self.label}, x = {self.share:.3g}"

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        return self.state(self.share, nodes, leader, uniforms(rng))


class _Uniform(_Coin):
    def __init__(self, share: float, nodes: int, leader: int, draws: Iterator[float]) -> None:
        super().__init__(share, nodes, leader, draws)
        self._listed: list[list[Quorum]] = []
        if comb(nodes - 2, self.needed) <= _LISTED:
            self._listed = [list(combinations(others, self.needed)) for others in self.others]

    def pick(self, gateway: int) -> Sequence[int]:
        if self._listed:
            quorums = self._listed[gateway]
            return quorums[int(next(self.draws) * len(quorums))]
        pool = self.others[gateway].copy()
        for place in range(self.needed):
            other = place + int(next(self.draws) * (len(pool) - place))
            pool[place], pool[other] = pool[other], pool[place]
        return pool[: self.needed]


@dataclass(frozen=True)
class UniformQuorum(_CoinRule):
    """The paper's rule: the m nodes are drawn uniformly from the rest without L.

    :func:`placement.online.reads.leader_share.uniform_share` is the x that evens out the reads.
    """

    label: ClassVar[str] = "uniform quorum"
    state: ClassVar[type[_Coin]] = _Uniform


@dataclass(frozen=True, eq=False)
class NearestMajority(_CoinRule):
    """The m nearest nodes by RTT, whatever their load.

    Parameters
    ----------
    share
        x.
    rtt
        In ms, shape (n, n).
    """

    _: KW_ONLY
    rtt: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))
    label: ClassVar[str] = "nearest majority"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "rtt", numbers_of(self.rtt, "rtt"))

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        if self.rtt.shape != (nodes, nodes):
            raise InputError(
                "wrong shape", field="rtt", value=self.rtt.shape, expected=f"({nodes}, {nodes})"
            )
        state = _NearestOthers(self.share, nodes, leader, uniforms(rng))
        for gateway, others in enumerate(state.others):
            others.sort(key=lambda node: (self.rtt[gateway, node], node))
        return state


class _NearestOthers(_Coin):
    """Other nodes in the order of their RTT: `others` of each gateway is sorted."""

    def pick(self, gateway: int) -> Sequence[int]:
        return self.others[gateway][: self.needed]


class Knowledge:
    """Knowledge of one gateway about every node.

    Attributes
    ----------
    outstanding
        Reads sent and unanswered.
    queue
        Average of the queue lengths that its reads found.
    service_ms, other_ms
        Averages of service times, and of response less service times.
    heard
        Whether anything was heard at all.
    """

    __slots__ = ("heard", "other_ms", "outstanding", "queue", "service_ms")

    def __init__(self, nodes: int) -> None:
        self.outstanding = [0] * nodes
        self.queue = [0.0] * nodes
        self.service_ms = [0.0] * nodes
        self.other_ms = [0.0] * nodes
        self.heard = [False] * nodes

    def note(self, reply: Answered) -> None:
        """Take note of a reply."""
        node = reply.node
        self.outstanding[node] -= 1
        keep = 1.0 - _ALPHA if self.heard[node] else 0.0
        take = 1.0 - keep
        self.queue[node] = take * reply.queue + keep * self.queue[node]
        self.service_ms[node] = take * reply.service_ms + keep * self.service_ms[node]
        other = max(0.0, reply.response_ms - reply.service_ms)
        self.other_ms[node] = take * other + keep * self.other_ms[node]
        self.heard[node] = True


class _Learner(_Coin):
    """Common part of the adaptive rules at work: keeping count."""

    def __init__(self, share: float, nodes: int, leader: int, draws: Iterator[float]) -> None:
        super().__init__(share, nodes, leader, draws)
        self.known = [Knowledge(nodes) for _ in range(nodes)]

    def choose(self, gateway: int) -> Quorum:
        quorum = super().choose(gateway)
        for node in quorum:
            self.known[gateway].outstanding[node] += 1
        return quorum

    def answered(self, reply: Answered) -> None:
        self.known[reply.gateway].note(reply)

    def keys(self, gateway: int) -> list[float]:
        """Requests at each node, as far as the gateway knows."""
        known = self.known[gateway]
        return [q + os for q, os in zip(known.queue, known.outstanding, strict=True)]

    def pick(self, gateway: int) -> Sequence[int]:
        """The m nodes of least key; ties are broken at random."""
        keys = self.keys(gateway)
        order = sorted((keys[node], next(self.draws), node) for node in self.others[gateway])
        return [node for _, _, node in order[: self.needed]]


@dataclass(frozen=True)
class LeastUtilised(_CoinRule):
    """The m with the fewest requests: the last reported queue plus the gateway's own reads."""

    label: ClassVar[str] = "least utilised"
    learns: ClassVar[bool] = True
    state: ClassVar[type[_Coin]] = _Learner


class _LessOfTwo(_Learner):
    def pick(self, gateway: int) -> Sequence[int]:
        loads = self.keys(gateway)
        pool = self.others[gateway].copy()
        chosen = []
        for _ in range(self.needed):
            one = pool[int(next(self.draws) * len(pool))]
            other = pool[int(next(self.draws) * len(pool))]
            taken = one if loads[one] <= loads[other] else other
            pool.remove(taken)
            chosen.append(taken)
        return chosen


@dataclass(frozen=True)
class TwoChoiceMajority(_CoinRule):
    """m times the less loaded of two nodes drawn at random.

    M. Mitzenmacher, "The power of two choices in randomized load balancing", 2001. Fresher than the
    least of all when reports are old, because not everyone runs to the same node.
    """

    label: ClassVar[str] = "two choices"
    learns: ClassVar[bool] = True
    state: ClassVar[type[_Coin]] = _LessOfTwo


class _LeastScore(_Learner):
    def keys(self, gateway: int) -> list[float]:
        known, found = self.known[gateway], []
        for node in range(self.nodes):
            queue = 1.0 + known.outstanding[node] * self.nodes + known.queue[node]
            score = known.other_ms[node] + queue**3.0 * known.service_ms[node]
            found.append(score if known.heard[node] else 0.0)
        return found


@dataclass(frozen=True)
class C3Majority(_CoinRule):
    """The m of least C3 score (R − S) + q̂³·S with q̂ = 1 + outstanding·w + queue.

    The score of Suresh et al., NSDI 2015, applied to every node on its own; w is the number of
    gateways; a node never heard of comes first.
    """

    label: ClassVar[str] = "C3 majority"
    learns: ClassVar[bool] = True
    state: ClassVar[type[_Coin]] = _LeastScore


_MOST_QUORUMS = 20_000
"""Quorums of a gateway above which the uniform strategy is left out."""


def fixed_strategies(problem: ReadProblem) -> dict[str, ReadStrategy]:
    """Return the strategies by name.

    - ``leaseholder``: every read goes to L.
    - ``nearest majority``: every gateway but L asks the majority without L that answers first.
    - ``uniform majority``: the majority is drawn uniformly (the paper's quorum read).
    - ``leader or majority, x``: the paper's coin: L with probability x, else a uniform majority; x
      evens out the reads of all nodes where gateways are alike
      (:func:`placement.online.reads.leader_share.uniform_share`).

    Notes
    -----
    O(quorums); the strategies with uniform majorities are left out above 20,000 per gateway.
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
