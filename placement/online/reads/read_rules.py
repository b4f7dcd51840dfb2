"""Protocol of read rules in the simulator, and the rule that draws from a strategy.

A rule is asked at the gateway, once per attempt, which nodes to read from. One that learns is told
of what came back. Rules of the paper and beyond are in ``heuristics.online.reads``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from placement.online.reads.quorum_mixture import ReadStrategy
from placement.online.reads.quorum_systems import Quorum
from placement.online.reads.sample_path import uniforms
from placement.support.checks import instance_of, text

__all__ = [
    "Answered",
    "FromStrategy",
    "ReadRule",
    "RuleState",
    "StrategyState",
    "WaitsForAll",
    "answers_needed",
]


@dataclass(frozen=True, slots=True)
class Answered:
    """Content of a reply.

    Attributes
    ----------
    gateway, node
        Who asked, who answered.
    now
        Time of receipt, ms.
    response_ms
        From sending to receipt.
    service_ms
        Work of this read at the node.
    queue
        Requests at the node (waiting and in service) when this one arrived, itself not counted.
    """

    gateway: int
    node: int
    now: float
    response_ms: float
    service_ms: float
    queue: int


class RuleState(Protocol):
    """A rule at work in one run."""

    def choose(self, gateway: int, now: float) -> Quorum:
        """Nodes to read from; they are taken as sent to.

        One node reads there alone, more are a quorum.
        """

    def answered(self, reply: Answered) -> None:
        """Take note of a reply; only called when the rule learns."""


@runtime_checkable
class ReadRule(Protocol):
    """A rule: immutable, and asked for a fresh state by every run.

    Attributes
    ----------
    name
        For tables.
    learns
        Whether :meth:`RuleState.answered` is to be called.
    spare
        Answers of a quorum of several nodes that a read does not wait for.
    """

    @property
    def name(self) -> str:
        """For tables."""

    @property
    def learns(self) -> bool:
        """Return whether replies are to be told."""

    @property
    def spare(self) -> int:
        """Answers of a quorum of several nodes that a read does not wait for."""

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run on `nodes` nodes."""


def answers_needed(quorum: Quorum, spare: int) -> int:
    """Return how many answers a read of `quorum` waits for: a node asked alone, or all but spare.

    Examples
    --------
    >>> answers_needed((2,), 1), answers_needed((0, 1, 2, 3), 1)
    (1, 3)
    """
    return len(quorum) if len(quorum) == 1 else len(quorum) - spare


class WaitsForAll:
    """Base of rules whose reads wait for every node that they ask."""

    @property
    def spare(self) -> int:
        """Return 0: no node is spare."""
        return 0


@dataclass(frozen=True)
class FromStrategy:
    """Draws from a fixed strategy, for example an optimal one; reads leave its spare answers."""

    strategy: ReadStrategy
    name: str = "strategy"
    learns: ClassVar[bool] = False

    def __post_init__(self) -> None:
        instance_of(self.strategy, ReadStrategy, "strategy", "a ReadStrategy")
        text(self.name, "name")

    @property
    def spare(self) -> int:
        """Answers of a quorum that a read does not wait for; of the strategy."""
        return self.strategy.spare

    def start(self, nodes: int, leader: int, rng: np.random.Generator) -> RuleState:
        """Begin a run."""
        return StrategyState(self.strategy, uniforms(rng))


class StrategyState:
    """A strategy being drawn from."""

    def __init__(self, strategy: ReadStrategy, draws: Iterator[float]) -> None:
        self._strategy, self._draws = strategy, draws

    def choose(self, gateway: int, now: float) -> Quorum:
        """Draw a quorum."""
        return self._strategy.draw(gateway, next(self._draws))

    def answered(self, reply: Answered) -> None:
        """Ignore the reply: this rule does not learn."""
