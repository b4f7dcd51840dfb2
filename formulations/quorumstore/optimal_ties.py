"""All optimal configurations of a key, and the ranges of figures over them.

Optima are wildly non-unique: under BA a typical key of a 27-site store has hundreds, and what a
failure then costs differs by more than 100 ms among them. A statement such as "BA degrades by 80 ms
when a site is lost" is therefore one about tie-breaking, unless the whole range is given.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from formulations.quorumstore.enumeration.enumeration import Enumeration
from formulations.quorumstore.enumeration.nearest_sites import SetTables
from formulations.quorumstore.enumeration.set_search import Ties
from placement.quorumstore import (
    Metrics,
    QuorumConfiguration,
    QuorumProblem,
    metrics,
    structural_reasons,
)
from placement.support.checks import FloatArray

__all__ = ["TieEnvelope", "TieRange", "tie_envelope"]

_CHUNK = 512


@dataclass(frozen=True, slots=True)
class TieRange:
    """Best and worst of one figure over all optimal configurations, each with its configuration.

    The first configuration in the order (N, R, set) is named where several attain it.
    """

    best: float
    best_configuration: QuorumConfiguration
    worst: float
    worst_configuration: QuorumConfiguration


@dataclass(frozen=True, eq=False)
class TieEnvelope:
    """The optimal configurations of one key.

    Attributes
    ----------
    problem
        The key.
    value
        The optimal value of its goal.
    ties
        All optimal configurations with R + W = N + 1 (or the fixed quorums), in blocks.
    normal, failure, mean
        Ranges of max(T_r, T_w) in normal operation, of the worst max(T_r, T_w) over normal
        operation and all losses (also if the goal has no losses), and of the mean latency.
    """

    problem: QuorumProblem
    value: float
    ties: tuple[Ties, ...]
    normal: TieRange
    failure: TieRange
    mean: TieRange

    @property
    def count(self) -> int:
        """Number of optimal configurations."""
        return sum(len(group.sets) for group in self.ties)

    def __iter__(self) -> Iterator[QuorumConfiguration]:
        """All optimal configurations, by (N, R, set)."""
        for group in self.ties:
            for row in group.sets.tolist():
                yield QuorumConfiguration(tuple(row), group.read, group.write)

    def sample(self, rng: np.random.Generator) -> QuorumConfiguration:
        """Sample an optimal configuration, each with the same probability."""
        place = int(rng.integers(self.count))
        for group in self.ties:
            if place < len(group.sets):
                return QuorumConfiguration(
                    tuple(group.sets[place].tolist()), group.read, group.write
                )
            place -= len(group.sets)
        raise IndexError(place)


def tie_envelope(problem: QuorumProblem) -> TieEnvelope | None:
    """Return all optimal configurations and the ranges over them; None when infeasible.

    Parameters
    ----------
    problem
        The key.

    Notes
    -----
    The evaluator scores every tie under every loss: about 0.3 ms per tie at 27 sites.
    """
    if structural_reasons(problem):
        return None
    value, ties = Enumeration(SetTables.of(problem)).optima(problem)
    if not ties:
        return None
    figures: list[tuple[Ties, Metrics]] = []
    for group in ties:
        for low in range(0, len(group.sets), _CHUNK):
            part = Ties(group.sets[low : low + _CHUNK], group.read, group.write)
            figures.append((part, metrics(problem, part.sets, part.read, part.write, losses=True)))
    normal = _range(
        [(part, np.maximum(one.normal_read, one.normal_write)) for part, one in figures]
    )
    failure = _range([(part, np.maximum(one.worst_read, one.worst_write)) for part, one in figures])
    mean = _range([(part, one.mean) for part, one in figures])
    return TieEnvelope(problem, value, tuple(ties), normal, failure, mean)


def _range(values: list[tuple[Ties, FloatArray]]) -> TieRange:
    def attained(pick: int, part: Ties) -> QuorumConfiguration:
        return QuorumConfiguration(tuple(part.sets[pick].tolist()), part.read, part.write)

    low_part, low = min(values, key=lambda entry: entry[1].min())
    high_part, high = max(values, key=lambda entry: entry[1].max())
    return TieRange(
        float(low.min()),
        attained(int(np.argmin(low)), low_part),
        float(high.max()),
        attained(int(np.argmax(high)), high_part),
    )
