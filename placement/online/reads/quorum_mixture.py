"""Read strategies as mixtures of quorums, and drawing subsets with given inclusion probabilities.

A linear program gives probabilities p_v that node v is asked. Any p in [0, 1]^n with Σ p_v = k is a
mixture of subsets of exactly k nodes (the hypersimplex has integral corners). Systematic sampling
finds one with at most n + 1 subsets. Lay the nodes along a line, each p_v long; draw u from U[0, 1)
and take the nodes that contain u, u + 1, …, u + k − 1. Source: W. G. Madow, "On the theory of
systematic sampling, II", Annals of Mathematical Statistics 20 (1949).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.errors import InputError
from placement.online.reads.problem import ReadProblem
from placement.online.reads.quorum_systems import Quorum
from placement.support.checks import FloatArray, elements, instance_of, number

__all__ = ["ReadStrategy", "subsets_of"]

_ROUNDING = 1e-7
"""Probabilities may miss their sums by this much; solvers work to about as much."""

_SLIVER = 1e-12
"""Intervals this short come from rounding, not from the probabilities."""


@dataclass(frozen=True)
class ReadStrategy:
    """Probabilities of the quorums that each gateway asks.

    Build one with :meth:`of`.

    Attributes
    ----------
    mixtures
        Per gateway a tuple of (quorum, probability), the probabilities positive with sum 1, in
        order of the quorums.
    spare
        Answers of a quorum of several nodes that a read does not wait for; of the quorum system.
    """

    mixtures: tuple[tuple[tuple[Quorum, float], ...], ...]
    spare: int = 0

    @classmethod
    def of(cls, problem: ReadProblem, mixtures: Sequence[Mapping[Quorum, float]]) -> ReadStrategy:
        """Check that every set is legal and normalise the probabilities.

        Raises
        ------
        InputError
            For a gateway without a mixture, a set it may not ask, a probability that is none, or a
            sum away from 1 by more than 1e-7.
        """
        instance_of(problem, ReadProblem, "problem", "a ReadProblem")
        listed = elements(mixtures, "mixtures", "one mapping of quorums for each gateway")
        if len(listed) != problem.nodes:
            raise InputError(
                "not one mixture per gateway",
                field="mixtures",
                value=len(listed),
                expected=str(problem.nodes),
            )
        kept = []
        for gateway, mixture in enumerate(listed):
            if not isinstance(mixture, Mapping):
                raise InputError(
                    f"the mixture of gateway {gateway} is no mapping",
                    field="mixtures",
                    value=mixture,
                    expected="quorums with their probabilities",
                )
            total = 0.0
            for quorum, probability in mixture.items():
                if not _is_quorum(quorum) or not problem.legal(gateway, quorum):
                    raise InputError(
                        f"gateway {gateway} may not read from {quorum}",
                        field="mixtures",
                        value=quorum,
                        expected="the leaseholder alone or a quorum of the system",
                    )
                field = f"mixtures[{gateway}][{quorum}]"
                number(probability, field, minimum=-_ROUNDING, maximum=1 + _ROUNDING)
                total += max(0.0, probability)
            if not abs(total - 1.0) <= _ROUNDING * max(1, len(mixture)):
                raise InputError(
                    f"the probabilities of gateway {gateway} do not add up to 1",
                    field="mixtures",
                    value=total,
                    expected="1",
                )
            kept.append(tuple((q, p / total) for q, p in sorted(mixture.items()) if p > 0.0))
        return cls(tuple(kept), problem.quorums.spare)

    @classmethod
    def coin(cls, problem: ReadProblem, share: float) -> ReadStrategy:
        """The paper's strategy: L with probability x, otherwise a uniform quorum.

        A gateway without a quorum goes to L always, and so does L itself.
        """
        mixtures: list[dict[Quorum, float]] = []
        for gateway in range(problem.nodes):
            quorums = list(problem.quorums.quorums(gateway))
            lease: Quorum | None = None if problem.leader is None else (problem.leader,)
            if lease is not None and (gateway == problem.leader or not quorums):
                mixtures.append({lease: 1.0})
                continue
            rest = 1.0 if lease is None else 1.0 - share
            mixture = {quorum: rest / len(quorums) for quorum in quorums}
            if lease is not None:
                mixture[lease] = mixture.get(lease, 0.0) + share
            mixtures.append(mixture)
        return cls.of(problem, mixtures)

    @cached_property
    def _steps(self) -> tuple[FloatArray, ...]:
        return tuple(np.cumsum([p for _, p in mixture]) for mixture in self.mixtures)

    def draw(self, gateway: int, uniform: float) -> Quorum:
        """Return the quorum of `gateway` for a number drawn from U[0, 1); O(log of the quorums)."""
        mixture = self.mixtures[gateway]
        place = int(np.searchsorted(self._steps[gateway], uniform, side="right"))
        return mixture[min(place, len(mixture) - 1)][0]


def _is_quorum(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(node, int | np.integer) for node in value)


def subsets_of(
    members: Sequence[int], probabilities: Sequence[float], size: int
) -> list[tuple[Quorum, float]]:
    """Mix subsets of exactly `size` members so that each is included as often as asked.

    Parameters
    ----------
    members
        Distinct nodes, along the line. Where a prefix of them has a whole sum j, every subset has
        exactly j nodes of the prefix.
    probabilities
        p, each in [0, 1], with sum `size`, both to a tolerance of 1e-7.
    size
        k.

    Returns
    -------
    Subsets in increasing order of nodes with positive probabilities of sum 1; at most one more than
    members.

    Raises
    ------
    InputError
        When the sum is not `size` or a probability is none.

    Examples
    --------
    >>> subsets_of([3, 5, 7], [0.5, 0.5, 1.0], 2)
    [((3, 7), 0.5), ((5, 7), 0.5)]
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.shape != (len(members),) or not ((p > -_ROUNDING) & (p < 1 + _ROUNDING)).all():
        raise InputError(
            "not probabilities", field="probabilities", value=list(p), expected="each 0 to 1"
        )
    if abs(p.sum() - size) > _ROUNDING * max(1, len(members)):
        raise InputError(
            "the probabilities do not add up to the size",
            field="probabilities",
            value=float(p.sum()),
            expected=str(size),
        )
    # Positions that should be whole become whole: then nodes with p = 1 are in every subset.
    ends = np.cumsum(np.clip(p, 0.0, 1.0))
    near = np.rint(ends)
    ends = np.where(np.abs(ends - near) <= _ROUNDING * len(members), near, ends)
    ends = np.minimum(np.maximum.accumulate(ends), size) if len(ends) else ends
    cuts = np.unique(np.concatenate([[0.0, 1.0], ends % 1.0]))
    found: dict[Quorum, float] = {}
    for low, high in itertools.pairwise(cuts):
        if high - low < _SLIVER:
            continue
        points = (low + high) / 2.0 + np.arange(size)
        places = np.searchsorted(ends, points, side="right")
        subset = tuple(sorted(members[place] for place in places))
        found[subset] = found.get(subset, 0.0) + float(high - low)
    total = sum(found.values())
    return [(subset, weight / total) for subset, weight in sorted(found.items())]
