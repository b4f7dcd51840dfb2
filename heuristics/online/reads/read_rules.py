"""Rules for reads: those of the paper, and rules that choose the majority by distance or load.

The paper has leaseholder, local, quorum, and quorum with a coin. Strongly consistent quorum reads
go the same ways; they differ in what replicas show (:func:`placement.online.reads.simulate`,
``strong=True``).

A gateway knows what it has sent and not got back, and what each node told it last. Gateways do not
talk to each other. Averages move by `new = 0.9·sample + 0.1·old`, as in C3 (Suresh et al., NSDI
2015); the first sample replaces the initial zero.

Each further rule, an answer to the paper's future work, picks the m nodes that join a gateway's
own; `share` is the coin x for the leaseholder, 0 for none. All are heuristics without guarantee;
the optimum they compare with is ``formulations.online.reads``.

* :class:`NearestMajority`: the m nearest by RTT, whatever their load.
* :class:`LeastUtilised`: the m with the fewest requests, by the last reported queue plus the
  gateway's own outstanding ones.
* :class:`TwoChoiceMajority`: m times the less loaded of two drawn at random (M. Mitzenmacher, "The
  power of two choices in randomized load balancing", 2001); fresher than the least of all when
  reports are old, because not everyone runs to the same node.
* :class:`C3Majority`: the m of least score (R − S) + q̂³·S with q̂ = 1 + outstanding·w + queue, of
  P. L. Suresh et al., "C3: cutting tail latency in cloud data stores via adaptive replica
  selection", NSDI 2015, applied to every node on its own; w = number of gateways; a node never
  heard of comes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import ClassVar

import numpy as np

from placement.errors import InputError
from placement.online.reads import (
    Answered,
    Quorum,
    ReadProblem,
    ReadStrategy,
    RuleState,
    ThresholdQuorums,
    WaitsForAll,
    uniforms,
)
from placement.online.reads.leader_share import uniform_share
from placement.support.checks import FloatArray, function, instance_of, number, numbers_of, text

__all__ = [
    "ALPHA",
    "C3Majority",
    "Knowledge",
    "Learner",
    "LeaseHolder",
    "LeastUtilised",
    "Local",
    "NearestMajority",
    "RepeatedMajority",
    "TwoChoiceMajority",
    "UniformQuorum",
    "checked_share",
    "fixed_strategies",
    "others_of",
]

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


ALPHA = 0.9
"""Weight of the newest sample."""


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
        keep = 1.0 - ALPHA if self.heard[node] else 0.0
        take = 1.0 - keep
        self.queue[node] = take * reply.queue + keep * self.queue[node]
        self.service_ms[node] = take * reply.service_ms + keep * self.service_ms[node]
        other = max(0.0, reply.response_ms - reply.service_ms)
        self.other_ms[node] = take * other + keep * self.other_ms[node]
        self.heard[node] = True


class Learner:
    """Common part of the adaptive rules at work: the coin, the gateway itself, keeping count.

    Parameters
    ----------
    share
        x of the coin.
    nodes, leader
        Of the cluster.
    draws
        Numbers from U[0, 1).
    """

    def __init__(self, share: float, nodes: int, leader: int, draws: Iterator[float]) -> None:
        self.share, self.nodes, self.leader = share, nodes, leader
        self.draws = draws
        self.needed = nodes // 2
        self.known = [Knowledge(nodes) for _ in range(nodes)]
        self.others = [others_of(gateway, nodes, leader) for gateway in range(nodes)]

    def pick(self, gateway: int, now: float) -> list[int]:
        """Choose the m other nodes of a quorum."""
        raise NotImplementedError

    def choose(self, gateway: int, now: float) -> Quorum:
        """Toss the coin, else add the gateway itself to the nodes of :meth:`pick`."""
        alone = gateway == self.leader or (self.share > 0 and next(self.draws) < self.share)
        quorum = (self.leader,) if alone else (gateway, *self.pick(gateway, now))
        outstanding = self.known[gateway].outstanding
        for node in quorum:
            outstanding[node] += 1
        return quorum

    def answered(self, reply: Answered) -> None:
        """Take note of a reply."""
        self.known[reply.gateway].note(reply)

    def least(self, gateway: int, keys: list[float], candidates: list[int]) -> list[int]:
        """The m candidates of least key; ties are broken at random."""
        order = sorted((keys[node], next(self.draws), node) for node in candidates)
        return [node for _, _, node in order[: self.needed]]


@dataclass(frozen=True, eq=False)
class NearestMajority(WaitsForAll):
    """The m nearest nodes by RTT.

    Parameters
    ----------
    rtt
        In ms, shape (n, n).
    share
        x.
    """

    rtt: FloatArray
    share: float = 0.0
    learns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "rtt", numbers_of(self.rtt, "rtt"))
        checked_share(self.share)

    @property
    def name(self) -> str:
        """With x."""
        return f"nearest majority, x = {self.share:.3g}"

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        if self.rtt.shape != (nodes, nodes):
            raise InputError(
                "wrong shape", field="rtt", value=self.rtt.shape, expected=f"({nodes}, {nodes})"
            )
        return _NearestMajorities(self.share, nodes, leader, uniforms(rng), self.rtt)


class _NearestMajorities(Learner):
    def __init__(
        self, share: float, nodes: int, leader: int, draws: Iterator[float], rtt: FloatArray
    ) -> None:
        super().__init__(share, nodes, leader, draws)
        self._near = [
            sorted(others, key=lambda node: (rtt[gateway, node], node))[: self.needed]
            for gateway, others in enumerate(self.others)
        ]

    def pick(self, gateway: int, now: float) -> list[int]:
        return self._near[gateway]


@dataclass(frozen=True)
class _Listening(WaitsForAll):
    """Base of the rules that learn from replies and have no state but the coin."""

    share: float = 0.0
    learns: ClassVar[bool] = True
    label: ClassVar[str]

    def __post_init__(self) -> None:
        checked_share(self.share)

    @property
    def name(self) -> str:
        """With x."""
        return f"{self.label}, x = {self.share:.3g}"


@dataclass(frozen=True)
class LeastUtilised(_Listening):
    """The m nodes with the fewest requests, as far as the gateway knows."""

    label: ClassVar[str] = "least utilised"

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        return _Least(self.share, nodes, leader, uniforms(rng))


class _Least(Learner):
    def loads(self, gateway: int) -> list[float]:
        known = self.known[gateway]
        return [q + os for q, os in zip(known.queue, known.outstanding, strict=True)]

    def pick(self, gateway: int, now: float) -> list[int]:
        return self.least(gateway, self.loads(gateway), self.others[gateway])


@dataclass(frozen=True)
class TwoChoiceMajority(_Listening):
    """m times the less loaded of two nodes drawn at random."""

    label: ClassVar[str] = "two choices"

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        return _Two(self.share, nodes, leader, uniforms(rng))


class _Two(_Least):
    def pick(self, gateway: int, now: float) -> list[int]:
        loads = self.loads(gateway)
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
class C3Majority(WaitsForAll):
    """The m nodes of least C3 score.

    Parameters
    ----------
    share
        x.
    exponent
        Of q̂; 3 in the paper.
    """

    share: float = 0.0
    exponent: float = 3.0
    learns: ClassVar[bool] = True

    def __post_init__(self) -> None:
        checked_share(self.share)
        number(self.exponent, "exponent", above=True)

    @property
    def name(self) -> str:
        """With x."""
        return f"C3 majority, x = {self.share:.3g}"

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        return _C3Majorities(self.share, nodes, leader, uniforms(rng), self.exponent)


class _C3Majorities(Learner):
    def __init__(
        self, share: float, nodes: int, leader: int, draws: Iterator[float], exponent: float
    ) -> None:
        super().__init__(share, nodes, leader, draws)
        self._exponent = exponent

    def scores(self, gateway: int) -> list[float]:
        known = self.known[gateway]
        found = []
        for node in range(self.nodes):
            if not known.heard[node]:
                found.append(0.0)
                continue
            queue = 1.0 + known.outstanding[node] * self.nodes + known.queue[node]
            found.append(known.other_ms[node] + queue**self._exponent * known.service_ms[node])
        return found

    def pick(self, gateway: int, now: float) -> list[int]:
        return self.least(gateway, self.scores(gateway), self.others[gateway])


@dataclass(frozen=True, eq=False)
class RepeatedMajority:
    """Solves for a new strategy in every window, for the reads that gateways had in the last one.

    Parameters
    ----------
    solve
        Takes reads per gateway in the last window, shape (n,), not all zero, and returns a
        strategy; an exact formulation, in general.
    first
        What to do in the first window; later strategies have as many spare answers.
    window_ms
        Length of a window.
    """

    solve: Callable[[Sequence[int]], ReadStrategy]
    first: ReadStrategy
    window_ms: float = 100.0
    name: str = "solved every window"
    learns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        function(self.solve, "solve")
        instance_of(self.first, ReadStrategy, "first", "a ReadStrategy")
        number(self.window_ms, "window_ms", above=True)
        text(self.name, "name")

    @property
    def spare(self) -> int:
        """Answers of a quorum that a read does not wait for; of the first strategy."""
        return self.first.spare

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        return _Resolving(self, nodes, uniforms(rng))


class _Resolving:
    def __init__(self, rule: RepeatedMajority, nodes: int, draws: Iterator[float]) -> None:
        self._rule, self._draws = rule, draws
        self._strategy = rule.first
        self._counts = [0] * nodes
        self._end = rule.window_ms

    def choose(self, gateway: int, now: float) -> Quorum:
        if now >= self._end:
            if any(self._counts):
                self._strategy = self._rule.solve(tuple(self._counts))
                if self._strategy.spare != self._rule.spare:
                    raise InputError(
                        "another number of spare answers than in the first window",
                        field="solve",
                        value=self._strategy.spare,
                        expected=str(self._rule.spare),
                    )
            self._counts = [0] * len(self._counts)
            windows = int((now - self._end) // self._rule.window_ms) + 1
            self._end += windows * self._rule.window_ms
        self._counts[gateway] += 1
        return self._strategy.draw(gateway, next(self._draws))

    def answered(self, reply: Answered) -> None:
        pass


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

    Raises
    ------
    InputError
        For a problem without a leaseholder, or whose quorums are not thresholds.

    Notes
    -----
    O(quorums); the strategies with uniform majorities are left out above 20,000 per gateway.
    """
    leader, system = problem.leader, problem.quorums
    if leader is None or not isinstance(system, ThresholdQuorums):
        raise InputError(
            "no leaseholder, or no majorities", field="problem", value=system,
            expected="a leaseholder and ThresholdQuorums",
        )  # fmt: skip
    alone: Quorum = (leader,)
    gateways = range(problem.nodes)

    def nearest(gateway: int) -> Quorum:
        if gateway == leader:
            return alone
        near = sorted(others_of(gateway, problem.nodes, leader), key=lambda v: (
            float(problem.rtt[gateway, v]), v))  # fmt: skip
        return tuple(sorted((gateway, *near[: problem.nodes // 2])))

    found = {
        "leaseholder": ReadStrategy.of(problem, [{alone: 1.0} for _ in gateways]),
        "nearest majority": ReadStrategy.of(problem, [{nearest(g): 1.0} for g in gateways]),
    }
    if max(system.count(gateway) for gateway in gateways) > _MOST_QUORUMS:
        return found

    def uniform(share: float) -> ReadStrategy:
        mixtures: list[dict[Quorum, float]] = []
        for gateway in gateways:
            quorums = [] if gateway == leader else list(system.quorums(gateway))
            mixture = {quorum: (1.0 - share) / len(quorums) for quorum in quorums}
            mixtures.append({alone: share if quorums else 1.0, **mixture})
        return ReadStrategy.of(problem, mixtures)

    share = float(uniform_share(problem.nodes))
    found["uniform majority"] = uniform(0.0)
    found[f"leader or majority, x = {share:.3f}"] = uniform(share)
    return found
