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

Waits come on top: one of the leader is the same for all, one of the nearest replica r goes with the
relay from r, and one of a client is a distribution per client that nothing is convolved with unless
the operation has other parts (:mod:`placement.tail.wait_distributions`). Waits one after another
are independent copies. Fractions of an operation with waits are one share of the operations: those
that take the slow path take all of its parts. A constant shifts by the nearest number of bins.
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
from placement.model.demand import Demand
from placement.model.wait_terms import WaitTerm
from placement.model.waits import Wait
from placement.support.checks import FloatArray
from placement.tail.distribution_arithmetic import clean, fft_length, product, quorum_distribution
from placement.tail.rtt_distributions import Distributions
from placement.tail.wait_distributions import AfterLoss, client_wait, site_wait

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["Flow", "flows", "mixture", "weighted_sum"]

ComplexArray = npt.NDArray[np.complex128]

_QUORUM = Wait("leader: quorum of voters")


@dataclass(frozen=True, slots=True)
class Flow:
    """A way an operation can go: whole numbers of round trips, and how often it is taken.

    Attributes
    ----------
    near, relay, direct, quorum
        α, β, γ, δ, whole.
    weight
        Operations of each client that go this way, shape (clients,).
    waits
        Rounds of each wait of the demand, whole; empty where it has none.
    constant
        ms.
    """

    near: int
    relay: int
    direct: int
    quorum: int
    weight: FloatArray
    waits: tuple[int, ...] = ()
    constant: float = 0.0

    @property
    def hops(self) -> int:
        """Round trips in all, a round of a wait being one."""
        return self.near + self.relay + self.direct + self.quorum + sum(self.waits)


def _round_trips(coefficient: float) -> list[tuple[float, int]]:
    """(probability, whole number of round trips) of a coefficient; two when it is fractional."""
    whole = math.floor(coefficient)
    rest = coefficient - whole
    if rest == 0:
        return [(1.0, whole)]
    return [(1 - rest, whole), (rest, whole + 1)]


def flows(problem: Problem, scenario: int = 0) -> tuple[Flow, ...]:
    """Every way that some operation goes, ways of equal round trips taken together."""
    return _flows_of(problem.demand, scenario)


def _flows_of(demand: Demand, scenario: int) -> tuple[Flow, ...]:
    counts = demand.counts[scenario]
    found: dict[tuple[tuple[int, ...], float], FloatArray] = {}
    for index, row in enumerate(demand.coefficients.tolist()):
        if not counts[:, index].any():
            continue
        times = demand.times[index].tolist() if demand.waits else []
        constant = float(demand.constants[index]) if demand.has_waits else 0.0
        for chance, trips in _ways_together(row + times) if any(times) else _ways(row + times):
            way = (trips, constant)
            found[way] = found.get(way, 0.0) + chance * counts[:, index]
    return tuple(
        Flow(trips[0], trips[1], trips[2], trips[3], weight, trips[4:], constant)
        for (trips, constant), weight in found.items()
    )


def _ways(row: Sequence[float]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield (probability, whole numbers of round trips) of coefficients whose fractions differ."""
    for ways in itertools.product(*map(_round_trips, row)):
        chance = math.prod(p for p, _ in ways)
        if chance > 0:
            yield chance, tuple(n for _, n in ways)


def _ways_together(row: Sequence[float]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield the paths of shares of the same operations: a share of 0.1 lies in one of 0.2."""
    ends = sorted({value - math.floor(value) for value in row} - {0.0})
    for low, high in itertools.pairwise([0.0, *ends, 1.0]):
        yield high - low, tuple(math.floor(v) + (v - math.floor(v) > low) for v in row)


def mixture(
    problem: Problem,
    configuration: Configuration,
    distributions: Distributions,
    scenario: int = 0,
    quorum: int | None = None,
    after: AfterLoss | None = None,
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
    after
        What a loss leaves, where operations have waits: the configuration then holds all its roles,
        with lost members; None: nothing is lost.

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
    demand = problem.demand if after is None else after.demand
    lost: frozenset[int] = frozenset() if after is None else after.lost
    near = nearest(demand.client_rtt[scenario], configuration.replicas)
    homes, home = np.unique(near, return_inverse=True)
    taken = _flows_of(demand, scenario)
    bins = distributions.bins
    shifts = {flow.constant: round(flow.constant / distributions.width) for flow in taken}
    longest = max((max(f.hops, 1) * (bins - 1) + shifts[f.constant] for f in taken), default=bins)
    length = fft_length(longest + 1, 1)
    leader = configuration.leader
    m = quorum_size(problem, configuration) if quorum is None else quorum
    wait = _votes(problem, configuration, distributions, m, lost)
    waits = _WaitDistributions(problem, configuration, distributions, scenario, m, after)
    tables = (
        distributions.client_site[np.arange(len(near)), near],
        distributions.client_site[:, leader],
    )
    relay = distributions.site_site[homes, leader]

    total = np.zeros(length // 2 + 1, dtype=np.complex128)
    mass = 0.0
    # Flows that share relays and quorums are added up in front of them.
    for behind in dict.fromkeys(waits.behind(flow) for flow in taken):
        relays, quorums, rounds, constant = behind
        # Without a relay it does not matter where a client's nearest replica is.
        at_home = relays > 0 or any(waits.origin(j) == "near" for j, _ in rounds)
        group = home if at_home else np.zeros_like(home)
        count = len(homes) if at_home else 1
        spectrum: ComplexArray = np.zeros((count, length // 2 + 1), dtype=np.complex128)
        known = np.zeros(count)
        alike: FloatArray = np.zeros((count, bins))
        for flow in (flow for flow in taken if waits.behind(flow) == behind):
            parts = [tables[0]] * flow.near + [tables[1]] * flow.direct + waits.of_clients(flow)
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
        for j, times in rounds:
            if waits.origin(j) == "near":
                from_home = waits.at_sites(j, homes.tolist())
                spectrum = spectrum * np.fft.rfft(from_home, length) ** times
                known = known * from_home.sum(axis=-1) ** times
        behind_leader = np.fft.rfft(wait, length) ** quorums
        kept = float(wait.sum()) ** quorums
        for j, times in rounds:
            if waits.origin(j) == "leader":
                (from_leader,) = waits.at_sites(j, [leader])
                behind_leader = behind_leader * np.fft.rfft(from_leader, length) ** times
                kept *= float(from_leader.sum()) ** times
        if shifts[constant]:
            behind_leader = behind_leader * np.fft.rfft(np.eye(1, length, shifts[constant])[0])
        total += spectrum.sum(axis=0) * behind_leader
        mass += float(known.sum()) * kept
    share_of_one = 1 / sum(float(flow.weight.sum()) for flow in taken)
    return clean(np.fft.irfft(total * share_of_one, length), mass * share_of_one)


def _votes(
    problem: Problem,
    configuration: Configuration,
    distributions: Distributions,
    quorum: int,
    lost: frozenset[int],
) -> FloatArray:
    """Distribution of the wait of the leader for m votes, or for those of a vote layout."""
    leader = configuration.leader
    if problem.vote_layout is not None:
        votes = WaitTerm(_QUORUM, (None,), np.ones((1, 1)))
        return site_wait(problem, configuration, distributions, votes, leader, quorum)
    others = [v for v in configuration.voters if v != leader and v not in lost]
    answers = distributions.site_site[leader, others].reshape(len(others), distributions.bins)
    return quorum_distribution(answers, quorum)


class _WaitDistributions:
    """Distributions of the waits of a demand, made when they are first asked for."""

    def __init__(
        self,
        problem: Problem,
        configuration: Configuration,
        distributions: Distributions,
        scenario: int,
        quorum: int,
        after: AfterLoss | None,
    ) -> None:
        self.terms = problem.demand.waits if after is None else after.demand.waits
        self._after = after
        self._plan = (problem, configuration, distributions)
        self._scenario, self._quorum = scenario, quorum
        self._clients: dict[int, FloatArray] = {}

    def origin(self, j: int) -> str:
        """Return who waits."""
        return self.terms[j].origin

    def behind(self, flow: Flow) -> tuple[int, int, tuple[tuple[int, int], ...], float]:
        """Return the part of a flow behind the client: relays, quorums, waits, constant."""
        rounds = [(j, times) for j, times in enumerate(flow.waits) if times]
        at_sites = tuple((j, times) for j, times in rounds if self.origin(j) != "client")
        return flow.relay, flow.quorum, at_sites, flow.constant

    def of_clients(self, flow: Flow) -> list[FloatArray]:
        """Return the waits of clients of a flow, each of shape (clients, bins)."""
        found = []
        for j, times in enumerate(flow.waits):
            if times and self.origin(j) == "client":
                if j not in self._clients:
                    self._clients[j] = client_wait(
                        *self._plan, self.terms[j], self._scenario, self._quorum, self._after
                    )
                found += [self._clients[j]] * times
        return found

    def at_sites(self, j: int, sites: Sequence[int]) -> FloatArray:
        """Return a wait at some sites, shape (sites, bins)."""
        lost = () if self._after is None else self._after.lost
        waits = [site_wait(*self._plan, self.terms[j], s, self._quorum, lost) for s in sites]
        return np.array(waits)


def weighted_sum(parts: Sequence[tuple[float, FloatArray]]) -> FloatArray:
    """Return the mixture of distributions of any lengths by their shares, which sum to 1."""
    total = np.zeros(max(len(distribution) for _, distribution in parts))
    for share, distribution in parts:
        total[: len(distribution)] += share * distribution
    return total
