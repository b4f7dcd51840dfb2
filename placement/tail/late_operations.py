"""Number of late operations: a percentile turned into a sum, for one deadline at a time.

The p-th percentile is at most t if and only if at most a share 1 − p of all operations takes longer
than t. For a deadline t and a leader ℓ that share is a sum over clients, as the mean is:

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

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from placement.problem import Problem
from placement.support.checks import FloatArray, IntArray
from placement.tail.distribution_arithmetic import (
    product,
    quorum_distribution,
    sum_of_independent,
)
from placement.tail.histograms import SMALL
from placement.tail.objective import Flow, flows
from placement.tail.rtt_distributions import Distributions

_KNOWN = 2000  # voter sets whose waits are remembered


@dataclass(frozen=True, eq=False)
class LateOperations:
    """Shares of late operations for a problem.

    Attributes
    ----------
    problem
        The question.
    distributions
        Of its objective.
    scenario
        Of the demand: 0, or one of those of RTTs that vary by interval. Shares are of the
        operations of all scenarios.
    """

    problem: Problem
    distributions: Distributions
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
        """s_ℓ(c, r) for some leaders.

        Parameters
        ----------
        leaders
            Site indices, shape (B,).
        deadline
            t, in bins: an operation that takes longer is late.

        Returns
        -------
        ndarray
            Shape (B, sites + 1, clients); the last site stands for "none".
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
        """d_ℓ(V): share of all operations that ask the leader and are late.

        Parameters
        ----------
        leader
            Site index.
        voters
            Site indices, the leader among them. More sites than there may be voters give a lower
            bound for every V among them: the m-th answer of more comes no later.
        deadline
            t, in bins.
        quorum
            m.
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
