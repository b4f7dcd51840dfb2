"""Wait of a leader for its voters and its quorum, where replicas are fixed (tiers 1 and 2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.errors import InputError
from placement.evaluation.score import closest_first, quorum_latency
from placement.evaluation.voter_choice import best_voters, greedy_voters, greedy_waits
from placement.model.constraints import Rules
from placement.model.demand import Demand
from placement.overtime.replay.deployments import Deployments
from placement.problem import Problem
from placement.support.checks import FloatArray, IntArray

__all__ = ["QuorumWaits"]


@dataclass(frozen=True, eq=False)
class QuorumWaits:
    """Voters and waits of every candidate leader of every database.

    In tier 1 the voters stand; in tier 2 each leader gets the best voters that its database's
    replicas offer under the constraints: as many as the deployment has. Where RTTs vary, the
    voters that go with a leader are those that are best in one interval, the *basis*.

    Parameters
    ----------
    problem
        Network and constraints.
    deployments
        Replicas and voters.
    tier
        1 or 2.
    databases
        Names, for messages; empty: numbers.
    """

    problem: Problem
    deployments: Deployments
    tier: int
    databases: tuple[str, ...] = ()

    @cached_property
    def bases(self) -> int:
        """K: intervals whose RTTs differ, 1 when RTTs do not vary between sites."""
        return len(self.site_rtt)

    @cached_property
    def site_rtt(self) -> FloatArray:
        """RTTs between sites in ms, shape (K, sites, sites)."""
        rtt = self.problem.instance.site_rtt
        return rtt if rtt.ndim == 3 else rtt[np.newaxis]

    @cached_property
    def rules(self) -> dict[int, Rules]:
        """Constraints by number of voters, for all numbers that the deployments have."""
        sites = len(self.problem.instance.sites)
        return {
            v: self.problem.replace(replicas=(v, sites), voters=v).rules
            for v in np.unique(self.votes).tolist()
        }

    @cached_property
    def votes(self) -> IntArray:
        """Number of voters, shape (databases,)."""
        return np.asarray(self.deployments.voters.sum(axis=1), dtype=np.intp)

    @cached_property
    def needed(self) -> IntArray:
        """m, votes that a commit waits for, shape (databases,)."""
        return np.array([self.rules[v].quorum for v in self.votes.tolist()], dtype=np.intp)

    @cached_property
    def waits(self) -> FloatArray:
        """q_ℓ in ms of the voters that go with ℓ, shape (K, databases, sites).

        Infinite for sites that may not lead the database.

        Raises
        ------
        InputError
            Naming a database in which no site may lead.
        """
        pool = self.deployments.voters if self.tier == 1 else self.deployments.replicas
        waits = np.full((self.bases, *pool.shape), np.inf)
        for rules, databases, members in self._alike(pool):
            size = members.shape[1]
            leaders, rows = members.reshape(-1), np.repeat(databases, size)
            sets = np.repeat(members, size, axis=0)
            for basis, rtt in enumerate(self.site_rtt):
                if self.tier == 1:
                    found = quorum_latency(rtt, leaders, sets, rules.quorum)
                    found = np.where(rules.may_lead[leaders], found, np.inf)
                elif rules.nested_voter_caps:
                    found = greedy_waits(rules, rtt, leaders, sets)
                else:
                    found = np.array(
                        [
                            self._wait(rules, rtt, leader, _searched(rules, rtt, leader, replicas))
                            for leader, replicas in zip(leaders.tolist(), sets, strict=True)
                        ]
                    )
                waits[basis, rows, leaders] = found
        nobody = np.nonzero(~np.isfinite(waits).any(axis=2).all(axis=0))[0]
        if nobody.size:
            first = int(nobody[0])
            raise InputError(
                "under the constraints no site may lead with the deployment",
                field="deployments",
                value=self.databases[first] if self.databases else first,
                expected="replicas and voters with a candidate leader in every database",
            )
        return waits

    def voters(
        self, databases: IntArray, leaders: IntArray, bases: IntArray
    ) -> list[tuple[int, ...]]:
        """Voters that go with leaders, each set in site order.

        Parameters
        ----------
        databases, leaders, bases
            Indices, all of shape (n,); the leaders have finite waits there.
        """
        if self.tier == 1:
            return [tuple(np.nonzero(self.deployments.voters[d])[0].tolist()) for d in databases]
        result: list[tuple[int, ...]] = [()] * len(databases)
        kinds = np.column_stack([self.deployments.replicas.sum(axis=1), self.votes])[databases]
        if all(_unconstrained(rules) for rules in self.rules.values()):
            return self._closest(databases, leaders, bases, kinds)
        keys, which = np.unique(np.column_stack([kinds, bases]), axis=0, return_inverse=True)
        for key, (size, votes, basis) in enumerate(keys.tolist()):
            rows = np.nonzero(which.reshape(-1) == key)[0]
            held = self.deployments.replicas[databases[rows]]
            members = np.nonzero(held)[1].reshape(len(rows), size)
            rules, rtt = self.rules[votes], self.site_rtt[basis]
            if rules.nested_voter_caps:
                found = greedy_voters(rules, rtt, leaders[rows], members)[0].tolist()
            else:
                pairs = zip(leaders[rows].tolist(), members, strict=True)
                found = [_searched(rules, rtt, leader, sites) or () for leader, sites in pairs]
            for row, sites in zip(rows.tolist(), found, strict=True):
                result[row] = tuple(sorted(sites))
        return result

    def _closest(
        self, databases: IntArray, leaders: IntArray, bases: IntArray, kinds: IntArray
    ) -> list[tuple[int, ...]]:
        """Voters without constraints, all intervals at once: the leader and those closest to it."""
        result: list[tuple[int, ...]] = [()] * len(databases)
        for size, votes in np.unique(kinds, axis=0).tolist():
            rows = np.nonzero((kinds == (size, votes)).all(axis=1))[0]
            held = self.deployments.replicas[databases[rows]]
            members = np.nonzero(held)[1].reshape(len(rows), size)
            led = leaders[rows][:, np.newaxis]
            away = self.site_rtt[bases[rows][:, np.newaxis], led, members]
            order = closest_first(np.where(members == led, -1.0, away))[:, :votes]
            found = np.sort(np.take_along_axis(members, order, axis=1), axis=1).tolist()
            for row, sites in zip(rows.tolist(), found, strict=True):
                result[row] = tuple(sites)
        return result

    def _alike(
        self, pool: np.ndarray[tuple[int, ...], np.dtype[np.bool_]]
    ) -> Iterator[tuple[Rules, IntArray, IntArray]]:
        """Group databases by size of their pool and number of voters: rules, which, members."""
        kinds = np.column_stack([pool.sum(axis=1), self.votes])
        keys, which = np.unique(kinds, axis=0, return_inverse=True)
        for key, (size, votes) in enumerate(keys.tolist()):
            databases = np.nonzero(which.reshape(-1) == key)[0]
            members = np.nonzero(pool[databases])[1].reshape(len(databases), size)
            yield self.rules[votes], databases, members

    @staticmethod
    def _wait(rules: Rules, rtt: FloatArray, leader: int, voters: tuple[int, ...] | None) -> float:
        if voters is None or not rules.may_lead[leader]:
            return np.inf
        return float(quorum_latency(rtt, leader, voters, rules.quorum))


def _unconstrained(rules: Rules) -> bool:
    """Return True when any replicas may vote together."""
    return not rules.of("voters") and not rules.must_vote.any() and bool(rules.may_vote.all())


def _searched(
    rules: Rules, rtt: FloatArray, leader: int, replicas: IntArray
) -> tuple[int, ...] | None:
    """Best voters under rules that no greedy can handle, one leader at a time."""
    nothing = np.zeros((1, 0))
    demand = Demand(
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
    return best_voters(demand, rules, leader, replicas)
