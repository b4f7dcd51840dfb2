"""Distribution of the latency of all operations of a database: sums, quorums, and their mixture.

An operation of client c takes the sum of α RTTs to its nearest replica, β from there to the leader,
γ to the leader, and δ quorum waits, all independent: δ = 2 is two independent quorums (two-phase
commit). A fractional coefficient is a mixture: with probability φ one round trip more. The latency
of a database is the mixture over clients and operations weighted by their counts. The nearest
replica stays the one of smallest *mean* RTT.

A mixture is linear, so that clients are added up before anything is convolved: with n_c operations
of client c and near(c) = r,

    Σ_c n_c · H_{c,r} * H_{r,ℓ} * Q = Σ_r ( Σ_{c: near(c) = r} n_c · H_{c,r} ) * H_{r,ℓ} * Q

which takes a transform per replica instead of one per client (Sharov et al., section 3.1, compute
the distribution of each operation of each client).

Questions with waits or constants have no percentiles
(:mod:`placement.evaluation.waits.wait_checks`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placement.evaluation.objective import quorum_size
from placement.evaluation.score import nearest
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray
from placement.tail.distribution_arithmetic import clean, fft_length, product, quorum_distribution
from placement.tail.rtt_distributions import Distributions

if TYPE_CHECKING:
    from placement.problem import Problem

ComplexArray = npt.NDArray[np.complex128]


@dataclass(frozen=True, slots=True)
class Flow:
    """A way an operation can go: whole numbers of round trips, and how often it is taken.

    Attributes
    ----------
    near, relay, direct, quorum
        α, β, γ, δ, whole.
    weight
        Operations of each client that go this way, shape (clients,).
    """

    near: int
    relay: int
    direct: int
    quorum: int
    weight: FloatArray

    @property
    def hops(self) -> int:
        """Round trips in all, a quorum wait being one."""
        return self.near + self.relay + self.direct + self.quorum


def _round_trips(coefficient: float) -> list[tuple[float, int]]:
    """(probability, whole number of round trips) of a coefficient; two when it is fractional."""
    whole = math.floor(coefficient)
    rest = coefficient - whole
    if rest == 0:
        return [(1.0, whole)]
    return [(1 - rest, whole), (rest, whole + 1)]


def flows(problem: Problem, scenario: int = 0) -> tuple[Flow, ...]:
    """Every way that some operation goes, ways of equal round trips taken together."""
    demand = problem.demand
    counts = demand.counts[scenario]
    found: dict[tuple[int, ...], FloatArray] = {}
    for index, row in enumerate(demand.coefficients.tolist()):
        if not counts[:, index].any():
            continue
        for chance, trips in _ways(row):
            found[trips] = found.get(trips, 0.0) + chance * counts[:, index]
    return tuple(Flow(n[0], n[1], n[2], n[3], weight) for n, weight in found.items())


def _ways(row: Sequence[float]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield (probability, whole numbers of round trips) of coefficients whose fractions differ."""
    for ways in itertools.product(*map(_round_trips, row)):
        chance = math.prod(p for p, _ in ways)
        if chance > 0:
            yield chance, tuple(n for _, n in ways)


def mixture(
    problem: Problem,
    configuration: Configuration,
    distributions: Distributions,
    scenario: int = 0,
    quorum: int | None = None,
) -> FloatArray:
    """Distribution of the latency of all operations under a configuration, per bin.

    Parameters
    ----------
    problem
        The demand and the RTTs.
    configuration
        Site indices.
    distributions
        Of the problem's instance in the scenario.
    scenario
        Of the demand: 0, or one of those of RTTs that vary by interval.
    quorum
        Votes that a commit waits for; None: those of the configuration.

    Returns
    -------
    ndarray
        One entry per bin, enough bins for the largest sum. It sums to 1 less the probability that
        some RTT lies beyond the horizon; then entries at or beyond the horizon are lower bounds.

    Notes
    -----
    O(C·n) additions for n bins, and O(|R|) transforms of O(F log F), F bins of the largest sum; an
    operation that asks a client's sites more than once takes a transform per client.
    """
    demand = problem.demand
    near = nearest(demand.client_rtt[scenario], configuration.replicas)
    homes, home = np.unique(near, return_inverse=True)
    taken = flows(problem, scenario)
    bins = distributions.bins
    longest = max((max(f.hops, 1) * (bins - 1) for f in taken), default=bins)
    length = fft_length(longest + 1, 1)
    leader = configuration.leader
    m = quorum_size(problem, configuration) if quorum is None else quorum
    others = [v for v in configuration.voters if v != leader]
    answers = distributions.site_site[leader, others].reshape(len(others), bins)
    wait = quorum_distribution(answers, m)
    tables = (
        distributions.client_site[np.arange(len(near)), near],
        distributions.client_site[:, leader],
    )
    relay = distributions.site_site[homes, leader]

    total = np.zeros(length // 2 + 1, dtype=np.complex128)
    mass = 0.0
    # Flows that share relays and quorums are added up in front of them.
    for relays, quorums in dict.fromkeys((flow.relay, flow.quorum) for flow in taken):
        # Without a relay it does not matter where a client's nearest replica is.
        group = home if relays else np.zeros_like(home)
        count = len(homes) if relays else 1
        spectrum: ComplexArray = np.zeros((count, length // 2 + 1), dtype=np.complex128)
        known = np.zeros(count)
        alike: FloatArray = np.zeros((count, bins))
        for flow in (flow for flow in taken if (flow.relay, flow.quorum) == (relays, quorums)):
            parts = [tables[0]] * flow.near + [tables[1]] * flow.direct
            for g in range(count):
                rows = np.nonzero((group == g) & (flow.weight > 0))[0]
                weight = flow.weight[rows]
                if not parts:
                    alike[g, 0] += weight.sum()
                elif len(parts) == 1:
                    alike[g] += product(weight, parts[0][rows])
                elif rows.size:
                    spectra, share = weight[:, np.newaxis] + 0j, weight.copy()
                    for part in parts:
                        spectra = spectra * np.fft.rfft(part[rows], length)
                        share *= part[rows].sum(axis=-1)
                    spectrum[g] += spectra.sum(axis=0)
                    known[g] += float(share.sum())
        spectrum += np.fft.rfft(alike, length)
        known += alike.sum(axis=-1)
        if relays:
            spectrum = spectrum * np.fft.rfft(relay, length) ** relays
            known = known * relay.sum(axis=-1) ** relays
        total += spectrum.sum(axis=0) * np.fft.rfft(wait, length) ** quorums
        mass += float(known.sum()) * float(wait.sum()) ** quorums
    share_of_one = 1 / sum(float(flow.weight.sum()) for flow in taken)
    return clean(np.fft.irfft(total * share_of_one, length), mass * share_of_one)


def weighted_sum(parts: Sequence[tuple[float, FloatArray]]) -> FloatArray:
    """Return the mixture of distributions of any lengths by their shares, which sum to 1."""
    total = np.zeros(max(len(distribution) for _, distribution in parts))
    for share, distribution in parts:
        total[: len(distribution)] += share * distribution
    return total
