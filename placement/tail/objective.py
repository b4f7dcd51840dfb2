"""Distribution of the latency of all operations of a database, and its percentiles.

The measure of that name reads them (:mod:`placement.measures.values`).

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

For one deadline at a time a percentile is turned into a sum. The p-th percentile is at most t if
and only if at most a share 1 − p of all operations takes longer than t. For a deadline t and a
leader ℓ that share is a sum over clients, as the mean is:

    late_ℓ(R, V) = Σ_c s_ℓ(c, near(c, R)) + d_ℓ(V)
    s_ℓ(c, r) = Σ_o n_co · P(α_o H_{c,r} + β_o H_{r,ℓ} > t)     operations that ask nearby
    d_ℓ(V)    = Σ_co n_co · P(γ_o H_{c,ℓ} + δ_o Q_ℓ(V) > t)     operations that ask the leader

with n the share of operation o of client c in all operations and m·H the sum of m independent RTTs.
So replica sets can be searched as for the mean: the local search values its moves from nearest and
second nearest replicas, the exact search bounds the sum by Lagrangean relaxation. Sharov et al.
(PVLDB 8(12), 2015, section 3.1) leave the percentile beyond tier 1 open; this is ours.

An operation that does both, such as one that asks a replica nearby and waits for a quorum, is
counted without the second part: too few are late then, and `exact` says so.

A table of s costs O(S·C·t·S) for all leaders, one matrix product per site; d of one voter set costs
O(|V|·m·t) and a convolution per further quorum.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, LimitError
from placement.evaluation.objective import quorum_size
from placement.evaluation.score import nearest
from placement.model.configuration import Configuration
from placement.model.demand import decay_weights
from placement.model.instance import Instance
from placement.problem import Problem
from placement.support.checks import FloatArray, IntArray, instance_of
from placement.tail.histograms import (
    MOST_STORED,
    SMALL,
    clean,
    fft_length,
    percentile,
    product,
    quorum_distribution,
    sum_of_independent,
)
from placement.tail.rtt_distributions import Distributions, spread_distributions

ComplexArray = npt.NDArray[np.complex128]


@dataclass(frozen=True, slots=True)
class Flow:
    """A way an operation can go: whole numbers of round trips, and how often it is taken."""

    #: `near`, `relay`, `direct`, `quorum`: α, β, γ, δ, whole
    near: int
    relay: int
    direct: int
    quorum: int
    weight: FloatArray  #: operations of each client that go this way, shape (clients,)

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
    if longest > MOST_STORED:
        words = f"operations of so many round trips that a latency has {longest:,} bins"
        raise LimitError(f"{words}: at most {MOST_STORED:,}, a smaller horizon or a larger width")
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


# Percentiles of the mixture

_REMEMBERED = 4096
"""Values that an objective remembers."""


_PERCENTS = (50.0, 90.0, 95.0, 99.0, 99.9)


@dataclass(frozen=True, slots=True)
class PercentileRow:
    """A percentile of all operations: percent, and ms (infinite beyond the horizon)."""

    percent: float
    ms: float


@dataclass(frozen=True)
class Percentile:
    """The p-th percentile of operation latency.

    Parameters
    ----------
    percent
        p in (0, 100].
    distributions
        Of the RTTs of every pair; in the first interval, where RTTs vary by interval.
    by_interval
        Where RTTs vary: those of every interval, on one grid. Empty: RTTs do not vary.
    """

    percent: float
    distributions: Distributions = field(hash=False)
    by_interval: tuple[Distributions, ...] = field(hash=False, default=())
    # A value takes a convolution, and methods, rules and plans all ask for it.
    _known: dict[tuple[Problem, Configuration, int | None], float] = field(
        init=False, repr=False, compare=False, default_factory=dict
    )

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_known": {}}

    def __post_init__(self) -> None:
        instance_of(
            self.distributions, Distributions, "distributions", "placement.tail.Distributions"
        )
        if isinstance(self.percent, bool) or not (
            isinstance(self.percent, (int, float)) and 0 < self.percent <= 100
        ):
            raise InputError(
                "out of range", field="percentile", value=self.percent, expected="0 < p <= 100"
            )
        object.__setattr__(self, "by_interval", tuple(self.by_interval))
        for interval, one in enumerate(self.by_interval):
            instance_of(
                one, Distributions, f"by_interval[{interval}]", "placement.tail.Distributions"
            )
            if (one.width, one.bins) != (self.distributions.width, self.distributions.bins):
                raise InputError(
                    "distributions on different grids",
                    field=f"by_interval[{interval}]",
                    value=f"{one.bins} bins of {one.width:g} ms",
                    expected=f"{self.distributions.bins} bins of {self.distributions.width:g} ms",
                )

    @classmethod
    def varying(cls, percent: float, by_interval: Sequence[Distributions]) -> Percentile:
        """Return the percentile over intervals whose RTTs differ, one entry per interval."""
        if not by_interval:
            raise InputError(
                "no distributions", field="by_interval", expected="one entry per interval"
            )
        return cls(percent, by_interval[0], tuple(by_interval))

    def value(
        self, problem: Problem, configuration: Configuration, quorum: int | None = None
    ) -> float:
        """p-th percentile in ms; infinite when it lies beyond the horizon of the distributions.

        `quorum` as in :meth:`latency`.
        """
        key = (problem, configuration, quorum)
        value = self._known.get(key)
        if value is None:
            value = self.of_mixture([(1.0, self.latency(problem, configuration, quorum))])
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[key] = value
        return value

    def latency(
        self,
        problem: Problem,
        configuration: Configuration,
        quorum: int | None = None,
    ) -> FloatArray:
        """Distribution of the latency of all operations, per bin.

        Where RTTs vary, the mixture of the intervals, each with its weight in the demand.

        Parameters
        ----------
        problem, configuration
            The plan, or what a loss leaves of it.
        quorum
            Votes that a commit waits for; None: those of the configuration.
        """
        parts = self.by_scenario(problem)
        counts = problem.demand.counts
        whole = float(counts.sum())
        return weighted_sum(
            [
                (
                    float(counts[scenario].sum()) / whole if len(parts) > 1 else 1.0,
                    mixture(problem, configuration, one, scenario, quorum),
                )
                for scenario, one in enumerate(parts)
                if counts[scenario].any()
            ]
        )

    def by_scenario(self, problem: Problem) -> tuple[Distributions, ...]:
        """Return the distributions of every scenario of the demand: of intervals with a weight."""
        if not self.by_interval:
            return (self.distributions,)
        counts = problem.instance.counts
        weights = decay_weights(len(counts), problem.decay)
        kept = np.asarray((counts * weights[:, np.newaxis, np.newaxis]).any(axis=(1, 2)))
        return tuple(one for one, known in zip(self.by_interval, kept, strict=True) if known)

    def of_mixture(self, parts: Sequence[tuple[float, FloatArray]]) -> float:
        """p-th percentile in ms of latencies per bin with their shares, which sum to 1."""
        latency, one = weighted_sum(parts), self.distributions
        return percentile(latency, self.percent / 100, horizon=one.bins) * one.width

    def rows(self, problem: Problem, configuration: Configuration) -> tuple[PercentileRow, ...]:
        """Return some percentiles of a plan, of one distribution of its latency."""
        latency, one = self.latency(problem, configuration), self.distributions
        return tuple(
            PercentileRow(p, one.width * percentile(latency, p / 100, horizon=one.bins))
            for p in _PERCENTS
        )

    def check(self, problem: Problem) -> None:
        """Check that the distributions are the instance's."""
        for one in (self.distributions, *self.by_interval):
            one.check(problem.instance)
        periods = len(problem.instance.intervals) if problem.instance.varying_rtt else 0
        if len(self.by_interval) != periods:
            raise InputError(
                "as many distributions as intervals with RTTs of their own are needed"
                if periods
                else "RTTs do not vary by interval",
                field="by_interval",
                value=len(self.by_interval),
                expected=f"one for each of {periods} intervals" if periods else "none",
            )


def percentile_of_spread(instance: Instance, percent: float, spread: float) -> Percentile:
    """Return the percentile of all operations, RTTs lognormal with a relative spread.

    The RTTs of the instance are the means; they may vary by interval. `spread` is the standard
    deviation over the mean.
    """
    if not instance.varying_rtt:
        return Percentile(percent, spread_distributions(instance, spread))
    each = [
        spread_distributions(instance.at_interval(interval), spread, whole=instance)
        for interval in range(len(instance.intervals))
    ]
    return Percentile.varying(percent, each)


# Number of late operations: a percentile turned into a sum, for one deadline at a time

_KNOWN = 2000  # voter sets whose waits are remembered


@dataclass(frozen=True, eq=False)
class LateOperations:
    """Shares of late operations for a problem."""

    problem: Problem  #: the question
    distributions: Distributions  #: of its objective
    #: of the demand: 0, or one of those of RTTs that vary by interval. Shares are of the operations
    #: of all scenarios.
    scenario: int = 0
    _waits: dict[tuple[int, ...], list[FloatArray]] = field(default_factory=dict)
    # Of the last deadline: blocks of leaders ask for the same.
    _alone: tuple[int, FloatArray] | None = None
    _tables: dict[tuple[int, int], FloatArray] = field(default_factory=dict)
    _answered: dict[int, FloatArray] = field(default_factory=dict)

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """Ways that operations go, weighted with their share of all."""
        found = flows(self.problem, self.scenario)
        scenarios = range(self.problem.demand.scenarios)
        every = (
            found if len(scenarios) == 1 else [f for k in scenarios for f in flows(self.problem, k)]
        )
        total = sum(float(flow.weight.sum()) for flow in every)
        return tuple(Flow(f.near, f.relay, f.direct, f.quorum, f.weight / total) for f in found)

    @cached_property
    def nearby(self) -> tuple[Flow, ...]:
        """Flows that ask a replica nearby."""
        return tuple(flow for flow in self.flows if flow.near or flow.relay)

    @cached_property
    def led(self) -> tuple[Flow, ...]:
        """Flows that ask the leader alone."""
        return tuple(flow for flow in self.flows if not (flow.near or flow.relay))

    @cached_property
    def exact(self) -> bool:
        """Return whether no operation asks a replica nearby and the leader or a quorum besides."""
        return not any(flow.direct or flow.quorum for flow in self.nearby)

    def _near(self, times: int, site: int, bins: int) -> FloatArray:
        """Distributions of α RTTs from every client to a site, shape (clients, bins at most)."""
        table = self.distributions.client_site
        if times == 1:
            return table.begin(np.s_[:, site], bins)
        return sum_of_independent([table[:, site]] * times)[:, :bins]

    def answered(self, leader: int) -> FloatArray:
        """P(d(ℓ, s) <= u) of all sites, shape (sites, bins)."""
        if leader not in self._answered:
            if len(self._answered) * self.distributions.site_site[leader].size > SMALL:
                self._answered.clear()
            self._answered[leader] = np.cumsum(self.distributions.site_site[leader], axis=-1)
        return self._answered[leader]

    def summands(self, leaders: IntArray, deadline: int) -> FloatArray:
        """s_ℓ(c, r) for some leaders at a deadline, in bins; what takes longer is late.

        Shape (leaders, sites + 1, clients); the last site stands for "none".
        """
        sites, clients = len(self.problem.instance.sites), len(self.problem.instance.clients)
        late = np.zeros((len(leaders), sites + 1, clients))
        late[:, :sites] = self._unrelayed(deadline)
        for flow in self.nearby:
            if flow.relay:
                for r in range(sites):
                    in_time = self._in_time(flow, r, leaders, deadline)
                    late[:, r] += flow.weight * np.clip(1 - in_time, 0.0, 1.0)
        return late

    def prepare(self, leaders: Sequence[int], deadline: int) -> None:
        """Work out the tables of some leaders at once, for the next calls of :meth:`table`."""
        self._tables.clear()
        for leader, table in zip(leaders, self.summands(np.array(leaders), deadline), strict=True):
            self._tables[leader, deadline] = table[:-1]

    def table(self, leader: int, deadline: int) -> FloatArray:
        """s_ℓ(c, r) of one leader, shape (sites, clients)."""
        known = self._tables.get((leader, deadline))
        return self.summands(np.array([leader]), deadline)[0, :-1] if known is None else known

    def _unrelayed(self, deadline: int) -> FloatArray:
        """Late operations that ask nothing but a replica nearby, the same for every leader."""
        if self._alone is None or self._alone[0] != deadline:
            late = np.zeros(self.distributions.client_site.shape[1::-1])
            for flow in (flow for flow in self.nearby if not flow.relay):
                in_time = np.empty(late.shape)
                if flow.near == 1:
                    in_time = self.distributions.client_site.within(deadline).T
                else:
                    for r in range(len(late)):
                        in_time[r] = self._near(flow.near, r, deadline + 1).sum(axis=1)
                late += flow.weight * np.clip(1 - in_time, 0.0, 1.0)
            object.__setattr__(self, "_alone", (deadline, late))
            return late
        return self._alone[1]

    def _in_time(self, flow: Flow, site: int, leaders: IntArray, deadline: int) -> FloatArray:
        """P(α H_{c,r} + β H_{r,ℓ} <= t) where β > 0, shape (leaders, clients or 1)."""
        bins, table = deadline + 1, self.distributions.site_site
        if flow.relay == 1:
            each = table.begin((site, leaders), bins)
        else:
            each = sum_of_independent([table[site, leaders]] * flow.relay)
        relayed = np.cumsum(each, axis=-1)[:, :bins]  # P(β RTTs to the leaders <= u)
        last = relayed.shape[-1] - 1
        if not flow.near:
            return np.asarray(relayed[:, min(deadline, last), np.newaxis])
        first = self._near(flow.near, site, deadline + 1)
        left = np.minimum(deadline - np.arange(first.shape[1]), last)
        return product(relayed[:, left], first.T)

    @cached_property
    def asked(self) -> dict[int, FloatArray]:
        """δ -> Σ n_c · distribution of γ RTTs from c to ℓ over all that wait so, (sites, bins)."""
        table = self.distributions.client_site
        bins = max((flow.direct for flow in self.led), default=0) * (table.shape[-1] - 1) + 1
        found: dict[int, FloatArray] = {}
        for flow in self.led:
            part = found.setdefault(flow.quorum, np.zeros((table.shape[1], bins)))
            for site in range(table.shape[1]):
                if not flow.direct:
                    part[site, 0] += flow.weight.sum()
                    continue
                to_site = table[:, site]
                if flow.direct > 1:
                    to_site = sum_of_independent([to_site] * flow.direct)
                part[site, : to_site.shape[1]] += product(flow.weight, to_site)
        return found

    @cached_property
    def led_shares(self) -> dict[int, float]:
        """δ -> share of all operations that ask the leader and wait so."""
        shares = dict.fromkeys((flow.quorum for flow in self.led), 0.0)
        for flow in self.led:
            shares[flow.quorum] += float(flow.weight.sum())
        return shares

    def led_late(self, leader: int, voters: tuple[int, ...], deadline: int, quorum: int) -> float:
        """d_ℓ(V): share of all operations that ask the leader and are later than t, in bins.

        The leader is among the voters. More sites than there may be voters give a lower bound for
        every V among them: the m-th answer of more comes no later.
        """
        late = 0.0
        for votes, asked in self.asked.items():
            row = asked[leader, : deadline + 1]
            in_time = row
            if votes:
                key = (leader, *sorted(voters))
                if key not in self._waits:
                    if len(self._waits) >= _KNOWN:
                        self._waits.clear()
                    others = [v for v in voters if v != leader]
                    table = self.distributions.site_site[leader, others]
                    answers = table.reshape(len(others), self.distributions.bins)
                    one = quorum_distribution(answers, quorum)
                    more = range(2, max(self.asked) + 1)
                    sums = [one, *(sum_of_independent([one] * n) for n in more)]
                    self._waits[key] = [np.cumsum(part) for part in sums]
                waited = self._waits[key][votes - 1]  # P(δ independent quorum waits <= u)
                left = np.minimum(deadline - np.arange(len(row)), len(waited) - 1)
                in_time = row * waited[left]
            late += max(0.0, self.led_shares[votes] - float(in_time.sum()))
        return late
