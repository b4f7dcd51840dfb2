"""The objective "p-th percentile of the latency of all operations".

An operation of client c takes the sum of α RTTs to its nearest replica, β from there to the leader,
γ to the leader, and δ quorum waits, all independent: δ = 2 is two independent quorums (two-phase
commit). A fractional coefficient is a mixture: with probability φ one round trip more. The latency
of a database is the mixture over clients and operations weighted by their counts. The nearest
replica stays the one of smallest *mean* RTT.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placement.checks import FloatArray
from placement.configuration import Configuration
from placement.constraints import Diversity
from placement.errors import InputError
from placement.objectives import quorum_size, score_of
from placement.score import nearest
from placement.tail.arithmetic import clean, fft_length, percentile, quorum_distribution
from placement.tail.distributions import Distributions

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["Percentile", "mixture"]

ComplexArray = npt.NDArray[np.complex128]


@dataclass(frozen=True)
class Percentile:
    """Minimise the p-th percentile of operation latency.

    Parameters
    ----------
    percent
        p in (0, 100].
    distributions
        Of the RTTs of every pair.
    """

    percent: float
    distributions: Distributions = field(hash=False)

    def __post_init__(self) -> None:
        if not (isinstance(self.percent, (int, float)) and 0 < self.percent <= 100):
            raise InputError(
                "out of range", field="percentile", value=self.percent, expected="0 < p <= 100"
            )

    @property
    def kind(self) -> str:
        """Return "percentile"."""
        return "percentile"

    def value(self, problem: Problem, configuration: Configuration) -> float:
        """p-th percentile in ms; infinite when it lies beyond the horizon of the distributions."""
        latency = mixture(problem, configuration, self.distributions)
        bins = percentile(latency, self.percent / 100, horizon=self.distributions.bins)
        return bins * self.distributions.width

    def tie_break(self, problem: Problem, configuration: Configuration) -> float:
        """Mean latency: percentiles on a grid tie often."""
        return score_of(problem, configuration)

    def violations(self, problem: Problem, configuration: Configuration) -> tuple[str, ...]:
        """Say so when the percentile lies beyond the horizon."""
        if math.isfinite(self.value(problem, configuration)):
            return ()
        horizon = self.distributions.bins * self.distributions.width
        return (f"its {self.describe()} lies beyond the horizon of {horizon:g} ms",)

    def diversity(self, voters: int, quorum: int) -> tuple[Diversity, ...]:
        """Return no rules."""
        del voters, quorum
        return ()

    def check(self, problem: Problem) -> None:
        """Check that the distributions are those of the instance, and that RTTs do not vary."""
        self.distributions.check(problem.instance)
        if problem.demand.scenarios > 1:
            raise InputError(
                "RTTs that vary by interval have no one distribution per pair",
                field="objective",
                expected="an instance with one RTT matrix",
            )

    def reasons_infeasible(self, problem: Problem) -> tuple[str, ...]:
        """Return nothing: every configuration has a percentile, be it beyond the horizon."""
        del problem
        return ()

    def describe(self) -> str:
        """Return the objective in words."""
        return f"p{self.percent:g} latency"


def _round_trips(coefficient: float) -> list[tuple[float, int]]:
    """(probability, whole number of round trips) of a coefficient; two when it is fractional."""
    whole = math.floor(coefficient)
    rest = coefficient - whole
    if rest == 0:
        return [(1.0, whole)]
    return [(1 - rest, whole), (rest, whole + 1)]


def _flows(problem: Problem) -> Iterator[tuple[float, tuple[int, int, int, int], int]]:
    """(probability, whole (α, β, γ, δ), operation index) of every way an operation can go."""
    for index, row in enumerate(problem.demand.coefficients.tolist()):
        for ways in itertools.product(*map(_round_trips, row)):
            chance = math.prod(p for p, _ in ways)
            near, relay, direct, quorum = (n for _, n in ways)
            yield chance, (near, relay, direct, quorum), index


def mixture(
    problem: Problem, configuration: Configuration, distributions: Distributions
) -> FloatArray:
    """Distribution of the latency of all operations under a configuration, per bin.

    Notes
    -----
    Sums are products of Fourier transforms, and a mixture is a sum, so that one inverse transform
    is enough: O(C·F) per operation plus O((C + |V|)·F log F), F bins of the transform.
    """
    demand = problem.demand
    near = nearest(demand.client_rtt[0], configuration.replicas)
    flows = [flow for flow in _flows(problem) if flow[0] > 0]
    bins = distributions.bins
    length = fft_length(bins, max((sum(hops) for _, hops, _ in flows), default=1))
    clients = np.arange(len(near))
    leader = configuration.leader
    others = [v for v in configuration.voters if v != leader]
    wait = quorum_distribution(
        distributions.site_site[leader, others].reshape(len(others), bins),
        quorum_size(problem, configuration),
    )

    def transform(table: FloatArray) -> tuple[ComplexArray, FloatArray]:
        return np.fft.rfft(table, length), table.sum(axis=-1)

    to_near = transform(distributions.client_site[clients, near])
    direct = transform(distributions.client_site[:, leader])
    quorum = transform(wait)
    homes, home = np.unique(near, return_inverse=True)
    relays = transform(distributions.site_site[homes, leader])
    relay = (relays[0][home], relays[1][home])

    counts = demand.counts[0]
    spectrum = np.zeros(length // 2 + 1, dtype=np.complex128)
    mass = 0.0
    for chance, hops, index in flows:
        weight = chance * counts[:, index]
        issuing = np.nonzero(weight)[0]
        if not issuing.size:
            continue
        product: ComplexArray = weight[issuing, np.newaxis].astype(np.complex128)
        known = weight[issuing].copy()
        for (part, part_mass), times in zip((to_near, relay, direct), hops[:3], strict=True):
            for _ in range(times):
                product = product * part[issuing]
                known *= part_mass[issuing]
        total: ComplexArray = product.sum(axis=0)
        spectrum += total * quorum[0] ** hops[3]
        mass += float(known.sum()) * float(quorum[1]) ** hops[3]
    share = 1 / float(counts.sum())
    return clean(np.fft.irfft(spectrum * share, length), mass * share)
