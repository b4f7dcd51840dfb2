"""Eq. 1 of one database for every interval and leader, where the replicas stand (tiers 1 and 2).

Eq. 1 is linear in the counts and, for given replicas, is a part that depends on the leader only
plus D·q_ℓ(V). The first part is one matrix product for all intervals and leaders; the cost of any
leader with any voters is then a look-up plus one product.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from placement.errors import InputError, require
from placement.evaluation.score import leader_scores
from placement.evaluation.voter_choice import best_voters_of_each
from placement.model.configuration import Configuration
from placement.model.constraints import Rules
from placement.model.demand import Demand
from placement.overtime.replay.deployments import Deployments, Trace
from placement.problem import Problem
from placement.support.checks import FloatArray


def rules_by_votes(problem: Problem, deployments: Deployments) -> dict[int, Rules]:
    """Return the constraints by number of voters, for all numbers that the deployments have."""
    sites = len(problem.instance.sites)
    return {
        votes: problem.replace(replicas=(votes, sites), voters=votes).rules
        for votes in np.unique(deployments.voters.sum(axis=1)).tolist()
    }


@dataclass(frozen=True, eq=False)
class LeaderTable:
    """Costs of the candidate leaders of one database.

    In tier 1 the voters stand; in tier 2 each leader gets the best voters that the replicas offer
    under the constraints: as many as the deployment has. Where RTTs vary, the voters of a leader
    are the best ones of a single interval, the *basis*.

    `rules` are those for the number of voters of the database, `counts` its demand, shape (T,
    clients, operations), and `replicas` and `voted` its deployment, site indices ascending.
    """

    problem: Problem
    rules: Rules
    counts: FloatArray
    replicas: tuple[int, ...]
    voted: tuple[int, ...]
    tier: int
    name: str
    _scores: dict[tuple[int, tuple[int, ...]], FloatArray] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        problem: Problem,
        trace: Trace,
        deployments: Deployments,
        database: int,
        rules: dict[int, Rules],
        *,
        tier: int,
    ) -> LeaderTable:
        """Return the table of a database of a trace; `rules` from :func:`rules_by_votes`."""
        if tier not in (1, 2):
            raise InputError("no such tier", field="tier", value=tier, expected="1 or 2")
        held, votes = (
            tuple(np.nonzero(mask[database])[0].tolist())
            for mask in (deployments.replicas, deployments.voters)
        )
        counts, name = trace.counts[database], trace.databases[database]
        return cls(problem, rules[len(votes)], counts, held, votes, tier, name)

    @cached_property
    def site_rtt(self) -> FloatArray:
        """RTTs between sites in ms, shape (K, sites, sites): K = 1 unless RTTs vary."""
        rtt = self.problem.instance.site_rtt
        return rtt if rtt.ndim == 3 else rtt[np.newaxis]

    @cached_property
    def _parts(self) -> tuple[FloatArray, FloatArray]:
        """Eq. 1 without its last term, infinite for sites without a replica; and D.

        In ms times operations, shape (T, sites), and rounds of votes, shape (T,).
        """
        instance, held = self.problem.instance, np.array(self.replicas)
        coefficients = np.array([operation.coefficients for operation in self.problem.operations])
        alpha, beta, gamma, delta = coefficients.T
        counts, nothing = self.counts, np.zeros(len(held))
        terms = (counts @ alpha, counts @ beta, counts @ gamma, (counts @ delta).sum(axis=-1))
        table = np.full((len(counts), len(instance.sites)), np.inf)
        if instance.varying_rtt:
            for interval in range(len(counts)):
                near, relay, direct, quorum = (term[interval] for term in terms)
                client_rtt, site_rtt = (
                    rtt if rtt.ndim == 2 else rtt[interval]
                    for rtt in (instance.client_rtt, instance.site_rtt)
                )
                table[interval, held] = leader_scores(
                    near, relay, direct, quorum, client_rtt, site_rtt, held, held, nothing
                )
        else:
            client_rtt, site_rtt = instance.client_rtt, instance.site_rtt
            table[:, held] = leader_scores(*terms, client_rtt, site_rtt, held, held, nothing)
        return table, terms[3]

    @cached_property
    def _chosen(self) -> list[dict[int, Configuration]]:
        """Each candidate leader with its voters, by basis; InputError when no site may lead."""
        found: list[dict[int, Configuration]] = []
        pool = self.voted if self.tier == 1 else self.replicas
        able = [site for site in pool if self.rules.may_lead[site]]
        if self.tier == 1:
            each = {site: Configuration(site, self.voted, self.replicas) for site in able}
            found = [each] * len(self.site_rtt)
        else:
            for rtt in self.site_rtt:
                sets = best_voters_of_each(_network(rtt), self.rules, able, [pool] * len(able))
                found.append(
                    {
                        site: Configuration(site, tuple(sorted(voters)), self.replicas)
                        for site, voters in zip(able, sets, strict=True)
                        if voters
                    }
                )
        words = "under the constraints no site may lead with the deployment"
        expected = "replicas and voters with a candidate leader in every database"
        require(all(found), "deployments", words, self.name, expected)
        return found

    def basis(self, interval: int) -> int:
        """Return the row of `site_rtt` and `waits` that an interval has."""
        return interval if len(self.site_rtt) > 1 else 0

    def plan(self, leader: int, interval: int) -> Configuration:
        """Return a candidate with the voters that go with it by the RTTs of an interval."""
        return self._chosen[self.basis(interval)][leader]

    def plans(self, leader: int) -> list[Configuration]:
        """Return a candidate with the voters that go with it by the RTTs of any interval."""
        return list(dict.fromkeys(row[leader] for row in self._chosen))

    @cached_property
    def waits(self) -> FloatArray:
        """q_ℓ in ms of the voters that go with ℓ, shape (K, sites); infinite: may not lead."""
        waits = np.full(self.site_rtt.shape[:2], np.inf)
        for basis, row in enumerate(self._chosen):
            for leader, plan in row.items():
                rtt = np.partition(self.site_rtt[basis, leader, list(plan.voters)], self._last)
                waits[basis, leader] = rtt[self._last]
        return waits

    @property
    def _last(self) -> int:
        """Place of the vote that a commit waits for, from 0."""
        return self.rules.quorum - 1

    @cached_property
    def scores(self) -> FloatArray:
        """Eq. 1 of each leader with its best voters, ms·operations, (T, sites); ∞: may not lead."""
        table, rounds = self._parts
        able = np.isfinite(self.waits)
        total = table + rounds[:, np.newaxis] * np.where(able, self.waits, 0.0)
        return np.where(able, total, np.inf)

    def scores_with(self, leader: int, voters: tuple[int, ...]) -> FloatArray:
        """Eq. 1 of a leader with some voters in every interval, shape (T,)."""
        if (leader, voters) not in self._scores:
            table, rounds = self._parts
            waits = np.partition(self.site_rtt[:, leader, list(voters)], self._last, axis=-1)
            self._scores[leader, voters] = table[:, leader] + rounds * waits[:, self._last]
        return self._scores[leader, voters]


def _network(rtt: FloatArray) -> Demand:
    """Return a demand without clients, for the choice of voters alone."""
    nothing = np.zeros((1, 0))
    return Demand(
        client_rtt=np.zeros((1, 0, len(rtt))),
        site_rtt=rtt[np.newaxis],
        counts=np.zeros((1, 0, 0)),
        coefficients=np.zeros((0, 4)),
        near=nothing,
        relay=nothing,
        direct=nothing,
        quorum=np.ones(1),
        operations=0.0,
    )


def interval_scores(
    problem: Problem, trace: Trace, deployments: Deployments, *, tier: int = 1
) -> FloatArray:
    """Eq. 1 of every leader in every interval, with that interval's demand and RTTs.

    Parameters
    ----------
    problem, trace, deployments
        As for :func:`placement.overtime.replay.replay`.
    tier
        1: the voters stand; 2: each leader with its best voters of the interval.

    Returns
    -------
    ndarray
        ms times operations, infinite for sites that may not lead; shape (databases, intervals,
        sites). What :mod:`placement.overtime.moves` and
        :mod:`formulations.overtime.leader_sequence` work on.
    """
    trace.check_fits(problem.instance)
    rules = rules_by_votes(problem, deployments)
    rows = [
        LeaderTable.of(problem, trace, deployments, row, rules, tier=tier).scores
        for row in range(len(trace))
    ]
    return np.stack(rows)
