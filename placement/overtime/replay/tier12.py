"""Strategies where the replicas stand: which leader (tier 1), and which voters with it (tier 2).

Eq. 1 is linear in the counts and, for given replicas, is a part that depends on the leader only
plus D·q_ℓ(V). The first part is one matrix product per database for all its intervals and leaders;
whatever a strategy chooses is then a look-up plus one product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placement.errors import InputError
from placement.evaluation.score import TIE, first_best, leader_scores
from placement.overtime.decayed_counts import Decay, decayed_counts
from placement.overtime.replay.deployments import NOBODY, Deployments, Trace
from placement.overtime.replay.quorum_waits import QuorumWaits
from placement.overtime.replay.results import SiteSets, StrategyCosts
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["FixedRoles", "agg_scores", "fixed_roles", "interval_scores", "replay_tier12"]


@dataclass(frozen=True, eq=False)
class FixedRoles:
    """Eq. 1 for given replicas, taken apart.

    Attributes
    ----------
    without_quorum
        Eq. 1 without its last term for each leader in ms times operations, infinite for sites that
        hold no replica; shape (databases, intervals, sites).
    rounds
        D, rounds of votes, shape (databases, intervals).
    """

    without_quorum: FloatArray
    rounds: FloatArray


def fixed_roles(problem: Problem, trace: Trace, deployments: Deployments) -> FixedRoles:
    """Return the parts of Eq. 1 for every database, interval and leader.

    O(N·T·C·(O + |R|)) for N databases and T intervals, in BLAS.
    """
    instance = problem.instance
    coefficients = np.array([operation.coefficients for operation in problem.operations])
    alpha, beta, gamma, delta = coefficients.T
    databases, intervals = trace.counts.shape[:2]
    scores = np.full((databases, intervals, len(instance.sites)), np.inf)
    rounds = np.empty((databases, intervals))
    for database, counts in enumerate(trace.counts):
        held = np.nonzero(deployments.replicas[database])[0]
        terms = (counts @ alpha, counts @ beta, counts @ gamma, (counts @ delta).sum(axis=-1))
        rounds[database] = terms[3]
        if not instance.varying_rtt:
            scores[database][:, held] = leader_scores(
                *terms, instance.client_rtt, instance.site_rtt, held, held, np.zeros(len(held))
            )
            continue
        for interval in range(intervals):
            near, relay, direct, quorum = (term[interval] for term in terms)
            scores[database, interval, held] = leader_scores(
                near,
                relay,
                direct,
                quorum,
                _at(instance.client_rtt, interval),
                _at(instance.site_rtt, interval),
                held,
                held,
                np.zeros(len(held)),
            )
    return FixedRoles(scores, rounds)


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
    if tier not in (1, 2):
        raise InputError("no such tier", field="tier", value=tier, expected="1 or 2")
    trace.check_fits(problem.instance)
    quorums = QuorumWaits(problem, deployments, tier, trace.databases)
    return _best_scores(fixed_roles(problem, trace, deployments), quorums)


def agg_scores(parts: FixedRoles, quorums: QuorumWaits, decay: Decay) -> FloatArray:
    """agg_score of Eq. 2 for every leader with its best voters, shape (databases, T, sites)."""
    return decayed_counts(_best_scores(parts, quorums), decay, axis=1)


def replay_tier12(
    trace: Trace,
    parts: FixedRoles,
    quorums: QuorumWaits,
    strategies: Sequence[str],
    sets: SiteSets,
) -> list[StrategyCosts]:
    """Replay some strategies in tier 1 or 2.

    Parameters
    ----------
    trace
        The demand.
    parts
        From :func:`fixed_roles`.
    quorums
        Of the tier.
    strategies
        Names; see :mod:`placement.overtime.replay.run_replay`.
    sets
        Where the sets of voters and replicas are numbered.
    """
    scores = _best_scores(parts, quorums)
    table = _ScoreTable(trace, parts, quorums, sets)
    first = _first(quorums)
    constants: list[list[_Constant]] = []
    outcomes = []
    for strategy in strategies:
        if strategy == "average":
            choice = _optimized(trace, scores, quorums, first)
            outcomes.append(table.spread(strategy, choice))
        elif strategy == "given":
            outcomes.append(table.given())
        elif strategy in ("static", "worst") and quorums.tier == 2 and quorums.bases > 1:
            constants = constants or table.constants()
            outcomes.append(table.constant(strategy, constants))
        else:
            leader, bases = _choice(strategy, trace, scores, quorums, first)
            outcomes.append(table.outcome(strategy, leader, bases))
    return outcomes


def _choice(
    strategy: str, trace: Trace, scores: FloatArray, quorums: QuorumWaits, first: IntArray
) -> tuple[IntArray, IntArray]:
    """Leaders, shape (N, T), and the interval whose RTTs choose the voters, shape (T,)."""
    shape = trace.counts.shape[:2]
    before = _bases(quorums, np.maximum(np.arange(shape[1]) - 1, 0))
    if strategy == "optimized":
        return _optimized(trace, scores, quorums, first)
    if strategy == "oracle":
        return first_best(scores), _bases(quorums, np.arange(shape[1]))
    if strategy == "smallest-quorum":
        leader = first_best(quorums.waits[before].swapaxes(0, 1))
        return leader, before
    if strategy == "closest-to-writes":
        wanted = _closest_to_writes(trace, quorums)
        return _constant(wanted, shape), np.zeros(shape[1], dtype=np.intp)
    if strategy == "preferred":
        wish = quorums.deployments.preferred
        able = _may_lead(quorums, wish)
        return _constant(np.where(able, wish, NOBODY), shape), before
    totals = scores[:, 1:].sum(axis=1)
    if strategy == "static":
        return _constant(first_best(totals), shape), before
    assert strategy == "worst", strategy
    return _constant(_first_worst(totals), shape), before


def _optimized(
    trace: Trace, scores: FloatArray, quorums: QuorumWaits, first: IntArray
) -> tuple[IntArray, IntArray]:
    """Least agg_score of the intervals before; as before where these say nothing."""
    decay = Decay(quorums.problem.decay)
    shape = trace.counts.shape[:2]
    leader = np.empty(shape, dtype=np.intp)
    leader[:, 0] = first
    leader[:, 1:] = first_best(decayed_counts(scores, decay, axis=1)[:, :-1])
    issued = np.asarray(trace.counts.any(axis=(2, 3)))
    if np.isfinite(decay.factor):
        issued = np.asarray(np.logical_or.accumulate(issued, axis=1))
    for interval in range(1, shape[1]):
        blind = ~issued[:, interval - 1]
        leader[blind, interval] = leader[blind, interval - 1]
    return leader, _bases(quorums, np.maximum(np.arange(shape[1]) - 1, 0))


def _first(quorums: QuorumWaits) -> IntArray:
    """Leader before anything was issued: the preferred one, else the first that may lead."""
    wish = quorums.deployments.preferred
    first: IntArray = np.isfinite(quorums.waits[0]).argmax(axis=1)
    return np.where(_may_lead(quorums, wish), wish, first)


def _may_lead(quorums: QuorumWaits, leader: IntArray) -> BoolArray:
    """Return True per database, shape (databases,), whose leader is a site that may lead."""
    waits = quorums.waits[0, np.arange(len(leader)), np.maximum(leader, 0)]
    return np.asarray((leader != NOBODY) & np.isfinite(waits))


def _closest_to_writes(trace: Trace, quorums: QuorumWaits) -> IntArray:
    """Candidate closest to the client of most transactions in the first interval, or `NOBODY`."""
    instance = quorums.problem.instance
    writing = np.array([operation.is_transaction for operation in instance.operations])
    writes = trace.counts[:, 0] @ writing.astype(np.float64)
    greatest = writes.argmax(axis=1)
    away = _at(instance.client_rtt, 0)[greatest]
    closest = np.where(np.isfinite(quorums.waits[0]), away, np.inf).argmin(axis=1)
    return np.where(writes.any(axis=1), closest, NOBODY)


@dataclass(frozen=True, eq=False)
class _Constant:
    """A leader and voters (number of a set) for all intervals: total and score of each interval."""

    total: float
    leader: int
    voters: int
    score: FloatArray


@dataclass(frozen=True, eq=False)
class _ScoreTable:
    """Turns choices into outcomes: every score is looked up here."""

    trace: Trace
    parts: FixedRoles
    quorums: QuorumWaits
    sets: SiteSets

    def outcome(self, strategy: str, leader: IntArray, bases: IntArray) -> StrategyCosts:
        """Score leaders, shape (N, T), with the voters that the bases, shape (T,), give them."""
        voters = self._voters(leader, bases)
        defined = leader != NOBODY
        rows, columns = np.indices(leader.shape)
        able = np.where(defined, leader, 0)
        if self.quorums.bases == 1:
            waits = self.quorums.waits[0][rows, able]
        elif self.quorums.tier == 1:
            waits = self.quorums.waits[columns, rows, able]
        else:
            waits = self._waits(leader, voters)
        waits = np.where(defined, waits, 0.0)
        score = self.parts.without_quorum[rows, columns, able] + self.parts.rounds * waits
        return self._cut(strategy, leader, voters, np.where(defined, score, np.nan))

    def spread(self, strategy: str, choice: tuple[IntArray, IntArray]) -> StrategyCosts:
        """Score leaders spread evenly over the voters of a choice that may lead (Eq. 4)."""
        voters = self._voters(*choice)
        score = np.empty(voters.shape)
        for database, codes in enumerate(voters):
            for code in np.unique(codes):
                members = np.array(self.sets.members[code], dtype=np.intp)
                may_lead = self.quorums.rules[int(self.quorums.votes[database])].may_lead
                leaders = members[may_lead[members]]
                waits = self._all_waits(database, leaders, members)  # (K, leaders)
                each = (
                    self.parts.without_quorum[database][:, leaders]
                    + self.parts.rounds[database][:, np.newaxis] * waits
                )
                there = codes == code
                score[database, there] = each.mean(axis=1)[there]
        nobody = np.full(voters.shape, NOBODY, dtype=np.intp)
        return self._cut(strategy, nobody, voters, score)

    def given(self) -> StrategyCosts:
        """Score the voters of the deployment, with its share of leaders at each of them."""
        shape = self.trace.counts.shape[:2]
        held = self.quorums.deployments
        score = np.full(shape, np.nan)
        voters = np.full(shape, -1, dtype=np.intp)
        for database in range(shape[0]):
            shares = None if held.leader_shares is None else held.leader_shares[database]
            if shares is None or not shares.any():
                continue
            members = np.nonzero(held.voters[database])[0]
            leaders = np.nonzero(shares)[0]
            each = self.parts.without_quorum[database][:, leaders] + self.parts.rounds[database][
                :, np.newaxis
            ] * self._all_waits(database, leaders, members)
            score[database] = each @ shares[leaders]
            voters[database] = self.sets.code(members)
        nobody = np.full(shape, NOBODY, dtype=np.intp)
        return self._cut("given", nobody, voters, score)

    def constants(self) -> list[list[_Constant]]:
        """Return each database's leaders for all intervals, where RTTs vary and voters are free.

        A leader is given the best, over all intervals, of the voter sets that are best in one.
        """
        bases = self.quorums.bases
        able = np.argwhere(np.isfinite(self.quorums.waits).all(axis=0))
        pairs = np.repeat(able, bases, axis=0)
        found = self.quorums.voters(pairs[:, 0], pairs[:, 1], np.tile(np.arange(bases), len(able)))
        codes = np.array([self.sets.code(voters) for voters in found]).reshape(len(able), bases)
        result: list[list[_Constant]] = [[] for _ in self.trace.databases]
        for (database, site), row in zip(able.tolist(), codes, strict=True):
            options = []
            for code in np.unique(row).tolist():
                members = np.array(self.sets.members[code], dtype=np.intp)
                waits = self._all_waits(database, np.array([site]), members)[:, 0]
                score = (
                    self.parts.without_quorum[database, :, site]
                    + self.parts.rounds[database] * waits
                )
                options.append(_Constant(float(score[1:].sum()), site, code, score))
            result[database].append(min(options, key=lambda option: option.total))
        return result

    def constant(self, strategy: str, constants: list[list[_Constant]]) -> StrategyCosts:
        """Take the best constant leader of each database, or, for `worst`, the worst."""
        shape = self.trace.counts.shape[:2]
        leader = np.empty(shape, dtype=np.intp)
        voters = np.empty(shape, dtype=np.intp)
        score = np.empty(shape)
        for database, options in enumerate(constants):
            totals = np.array([option.total for option in options])
            place = _first_worst(totals) if strategy == "worst" else first_best(totals)
            chosen = options[int(place)]
            leader[database], voters[database] = chosen.leader, chosen.voters
            score[database] = chosen.score
        return self._cut(strategy, leader, voters, score)

    def _voters(self, leader: IntArray, bases: IntArray) -> IntArray:
        """Numbers of the voter sets, shape (N, T); −1 for none."""
        # one number per (database, leader, basis): sorting rows of three takes ten times as long
        shape = (len(leader), len(self.quorums.problem.instance.sites) + 1, self.quorums.bases)
        rows = np.arange(len(leader))[:, np.newaxis]
        keys = np.ravel_multi_index((rows, leader - NOBODY, bases), shape)
        unique, which = np.unique(keys.reshape(-1), return_inverse=True)
        databases, places, when = np.unravel_index(unique, shape)
        named = places > 0
        codes = np.full(len(unique), -1, dtype=np.intp)
        found = self.quorums.voters(databases[named], places[named] + NOBODY, when[named])
        codes[named] = [self.sets.code(voters) for voters in found]
        return codes[which.reshape(-1)].reshape(leader.shape)

    def _waits(self, leader: IntArray, voters: IntArray) -> FloatArray:
        """Waits of chosen leaders with voters chosen before, at the RTTs of the interval itself."""
        waits = np.zeros(leader.shape)
        for database in range(len(leader)):
            pairs = np.unique(np.column_stack([leader[database], voters[database]]), axis=0)
            for site, code in pairs.tolist():
                if site == NOBODY:
                    continue
                members = np.array(self.sets.members[code], dtype=np.intp)
                there = (leader[database] == site) & (voters[database] == code)
                found = self._all_waits(database, np.array([site]), members)[:, 0]
                waits[database, there] = found[there]
        return waits

    def _all_waits(self, database: int, leaders: IntArray, voters: IntArray) -> FloatArray:
        """q_ℓ(V) of several leaders in all intervals, shape (K, leaders)."""
        rtt = self.quorums.site_rtt[:, leaders[:, np.newaxis], voters]
        nth = int(self.quorums.needed[database]) - 1
        return np.asarray(np.partition(rtt, nth, axis=-1)[..., nth])

    def _cut(
        self, strategy: str, leader: IntArray, voters: IntArray, score: FloatArray
    ) -> StrategyCosts:
        """Leave out the first interval, which is only learnt from."""
        held = [self.sets.code(np.nonzero(row)[0]) for row in self.quorums.deployments.replicas]
        replicas = np.broadcast_to(np.array(held)[:, np.newaxis], leader.shape)
        return StrategyCosts(
            self.quorums.tier,
            strategy,
            leader[:, 1:],
            voters[:, 1:],
            np.where(np.isnan(score), -1, replicas)[:, 1:],
            score[:, 1:],
        )


def _best_scores(parts: FixedRoles, quorums: QuorumWaits) -> FloatArray:
    """Eq. 1 for every leader with its best voters of the interval, infinite for non-candidates."""
    waits = quorums.waits.swapaxes(0, 1)  # (N, K, S)
    able = np.isfinite(waits)
    total = parts.without_quorum + parts.rounds[..., np.newaxis] * np.where(able, waits, 0.0)
    return np.where(able, total, np.inf)


def _first_worst(scores: FloatArray) -> IntArray:
    """Index of the first finite score that ties with the greatest, along the last axis."""
    finite = np.where(np.isfinite(scores), scores, -np.inf)
    return np.asarray((finite >= finite.max(axis=-1, keepdims=True) * (1 - TIE)).argmax(axis=-1))


def _bases(quorums: QuorumWaits, intervals: IntArray) -> IntArray:
    return intervals if quorums.bases > 1 else np.zeros_like(intervals)


def _constant(leader: IntArray, shape: tuple[int, ...]) -> IntArray:
    return np.broadcast_to(leader[:, np.newaxis], shape)


def _at(rtt: FloatArray, interval: int) -> FloatArray:
    return rtt if rtt.ndim == 2 else rtt[interval]
