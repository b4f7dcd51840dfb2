"""Choosing the majority by distance or by load: answers to the paper's future work.

Each rule picks the m nodes that join a gateway's own; `share` is the coin x for the leaseholder,
0 for none. All are heuristics without guarantee; the optimum they compare with is
``formulations.online.reads``.

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
from typing import ClassVar

import numpy as np

from heuristics.online.reads.paper_paths import checked_share
from heuristics.online.reads.reply_feedback import Learner
from placement.errors import InputError
from placement.online.reads import (
    Answered,
    Quorum,
    ReadStrategy,
    RuleState,
    WaitsForAll,
    uniforms,
)
from placement.support.checks import FloatArray, function, instance_of, number, numbers_of, text

__all__ = [
    "C3Majority",
    "LeastUtilised",
    "NearestMajority",
    "RepeatedMajority",
    "TwoChoiceMajority",
]


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
