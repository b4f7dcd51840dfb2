"""Tiers 1 and 2 for many databases at once: every database, every interval, every leader.

A planner who runs a thousand databases on the same sites asks the same small question of each,
every hour: the best leader for the demand so far (Sharov et al., PVLDB 8(12), 2015, sections 3 and
4). The answer for interval i of a database is the leader of least

    agg_score(i) = agg_score(i−1)/τ + score(i)                                             (Eq. 2)

Eq. 1 is linear in the counts. All intervals of a database are therefore one matrix product over its
candidate leaders (:func:`placement.evaluation.score.leader_scores`), followed by the recursion of
Eq. 2 on the scores of all databases together. One RTT matrix serves all intervals. Input and output
are arrays, with sites and clients by index. Databases with different numbers of replicas and voters
may be mixed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from placement.errors import InputError
from placement.evaluation.score import first_best, leader_scores, quorum_latency
from placement.evaluation.voter_choice import greedy_voters, greedy_waits
from placement.model.constraints import GroupRule, Rules, laminar, majority
from placement.model.demand import decay_weights
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["Fleet", "Leaders", "tier1", "tier2", "tier2_voters"]


@dataclass(frozen=True, eq=False)
class Fleet:
    """Databases that share sites, clients, RTTs and kinds of operations.

    The arrays are checked but not copied where they are contiguous float64 already: a thousand
    databases are 100 MB of counts.

    Parameters
    ----------
    client_rtt
        d(c, r) in ms, shape (clients, sites).
    site_rtt
        d(r, s) in ms, shape (sites, sites), zero diagonal.
    counts
        Operations issued, oldest interval first, shape (databases, intervals, clients, operations).
    coefficients
        (α, β, γ, δ) of each operation, shape (operations, 4).
    replicas
        Which sites hold a replica of which database, boolean, shape (databases, sites).

    Raises
    ------
    InputError
        When shapes do not fit together, a database has no replica, or a number is negative or not
        finite.
    """

    client_rtt: FloatArray
    site_rtt: FloatArray
    counts: FloatArray
    coefficients: FloatArray
    replicas: BoolArray

    def __post_init__(self) -> None:
        for field in ("client_rtt", "site_rtt", "counts", "coefficients"):
            try:
                array = np.ascontiguousarray(vars(self)[field], dtype=np.float64)
            except (TypeError, ValueError) as error:
                raise InputError(
                    f"not a table of numbers ({error})", field=field, expected="numbers"
                ) from None
            # One pass each: the least is NaN if anything is, and the largest shows infinity.
            if array.size and not (array.min() >= 0 and array.max() < np.inf):
                raise InputError("out of range", field=field, expected="finite numbers >= 0")
            object.__setattr__(self, field, array)
        object.__setattr__(self, "replicas", _mask(self.replicas, "replicas"))
        databases, sites = self.replicas.shape
        if self.counts.ndim != 4:
            _wrong_shape("counts", self.counts, "databases × intervals × clients × operations")
        clients, operations = self.counts.shape[2:]
        for field, shape in (
            ("client_rtt", (clients, sites)),
            ("site_rtt", (sites, sites)),
            ("coefficients", (operations, 4)),
            ("counts", (databases, self.counts.shape[1], clients, operations)),
        ):
            if vars(self)[field].shape != shape:
                _wrong_shape(field, vars(self)[field], " × ".join(map(str, shape)))
        if self.site_rtt.diagonal().any():
            raise InputError(
                "a site has a non-zero RTT to itself", field="site_rtt", expected="a zero diagonal"
            )
        if not self.replicas.any(axis=1).all():
            raise InputError(
                "a database without replicas",
                field="replicas",
                value=int(np.nonzero(~self.replicas.any(axis=1))[0][0]),
                expected="at least one site per database",
            )


@dataclass(frozen=True, eq=False)
class Leaders:
    """Best leader of every database after every interval, with the scores of all leaders.

    Attributes
    ----------
    leader
        Site index, ties to the first in site order, shape (databases, intervals); −1 if there
        is none: no demand up to that interval (its score is 0), or no site may
        lead (its score is infinite).
    score
        Its agg_score in ms times operations, shape (databases, intervals).
    scores
        agg_score of every site as leader, infinite for those that may not lead, shape (databases,
        intervals, sites).
    """

    leader: IntArray
    score: FloatArray
    scores: FloatArray

    def overhead(self) -> FloatArray:
        """Percent by which each leader is worse than the best; NaN for those that may not lead.

        Shape (databases, intervals, sites). Infinite where the best score is 0 and the other not.
        """
        best = np.broadcast_to(self.score[..., np.newaxis], self.scores.shape)
        result = np.full(self.scores.shape, np.nan)
        np.divide(self.scores, best, out=result, where=(best > 0) & np.isfinite(self.scores))
        result = 100 * (result - 1)
        result[(best == 0) & (self.scores == 0)] = 0.0
        result[(best == 0) & (self.scores > 0) & np.isfinite(self.scores)] = np.inf
        return result


def tier1(
    fleet: Fleet,
    voters: npt.ArrayLike,
    *,
    quorum: npt.ArrayLike | None = None,
    may_lead: npt.ArrayLike | None = None,
    decay: float = 1.0,
) -> Leaders:
    """Best leader of every database after every interval, with its voters given.

    Parameters
    ----------
    fleet
        The databases.
    voters
        Which sites vote in which database, boolean, shape (databases, sites); a subset of the
        replicas, at least one each.
    quorum
        Votes that a commit waits for, shape (databases,); None: majorities.
    may_lead
        Candidate leaders, boolean, shape (databases, sites); None: every voter.
    decay
        τ >= 1 of Eq. 2; infinite: every interval on its own (the oracle of the paper).

    Notes
    -----
    O(N·T·C·(O + |V|)) for N databases and T intervals, in BLAS. The last interval of a database is
    what method ``leader`` answers, to rounding.
    """
    votes = _inside(_mask(voters, "voters", fleet.replicas.shape), fleet.replicas, "voters")
    counts = votes.sum(axis=1)
    if not counts.all():
        raise InputError(
            "a database without voters",
            field="voters",
            value=int(np.nonzero(counts == 0)[0][0]),
            expected="at least one site per database",
        )
    needed = _quorums(counts, quorum)
    waits = np.full(votes.shape, np.inf)
    for database, vote in enumerate(votes):
        sites = np.nonzero(vote)[0]
        all_of_them = np.broadcast_to(sites, (len(sites), len(sites)))
        waits[database, sites] = quorum_latency(
            fleet.site_rtt, sites, all_of_them, int(needed[database])
        )
    return _leaders(fleet, _allowed(waits, may_lead), decay)


def tier2(
    fleet: Fleet,
    voters: npt.ArrayLike,
    *,
    quorum: npt.ArrayLike | None = None,
    may_lead: npt.ArrayLike | None = None,
    rules: Sequence[GroupRule] = (),
    decay: float = 1.0,
) -> Leaders:
    """Best leader of every database after every interval, with the best voters for each leader.

    Parameters
    ----------
    fleet
        The databases.
    voters
        How many replicas of each database vote, shape (databases,) or one number for all.
    quorum, may_lead, decay
        As for :func:`tier1`; every replica may lead unless `may_lead` says otherwise.
    rules
        Caps on voters per failure domain, on nested levels: the `groups` of the rules
        (:class:`placement.model.constraints.Rules`) of a problem on the same sites.

    Raises
    ------
    InputError
        When the rules are no caps on nested levels; :mod:`heuristics.tier2` takes those.

    Notes
    -----
    Algorithm 2 for all (database, leader) pairs at once: O(N·|R|²·(log |R| + levels)) for the
    waits, and O(N·T·C·(O + |R|)) for the scores. The last interval of a database is what method
    ``tier2`` answers, to rounding; :func:`tier2_voters` names the voters.
    """
    counts = np.broadcast_to(np.asarray(voters, dtype=np.intp), len(fleet.replicas))
    needed = _quorums(counts, quorum)
    _check_nested(rules)
    waits = np.full(fleet.replicas.shape, np.inf)
    for members, databases, wanted in _alike(fleet.replicas, counts, needed):
        size = members.shape[1]
        if wanted.voters <= size:
            found = greedy_waits(
                replace(wanted, groups=tuple(rules)),
                fleet.site_rtt,
                members.reshape(-1),
                np.repeat(members, size, axis=0),
            )
            waits[np.repeat(databases, size), members.reshape(-1)] = found
    return _leaders(fleet, _allowed(waits, may_lead), decay)


def tier2_voters(
    fleet: Fleet,
    leader: npt.ArrayLike,
    voters: npt.ArrayLike,
    *,
    quorum: npt.ArrayLike | None = None,
    rules: Sequence[GroupRule] = (),
) -> BoolArray:
    """Voters that go with one leader per database: the closest that the rules admit.

    Parameters
    ----------
    fleet, voters, quorum, rules
        As given to :func:`tier2`.
    leader
        Site index per database, shape (databases,); −1: none, and no voters.

    Returns
    -------
    ndarray
        Boolean, shape (databases, sites).
    """
    chosen = np.asarray(leader, dtype=np.intp)
    counts = np.broadcast_to(np.asarray(voters, dtype=np.intp), len(fleet.replicas))
    votes = np.zeros_like(fleet.replicas)
    led = np.nonzero(chosen >= 0)[0]
    needed = _quorums(counts, quorum)
    for members, members_of, wanted in _alike(fleet.replicas[led], counts[led], needed[led]):
        databases = led[members_of]
        sites, found = greedy_voters(
            replace(wanted, groups=tuple(rules)), fleet.site_rtt, chosen[databases], members
        )
        if not found.all():
            raise InputError(
                "no voters obey the rules under this leader",
                field="leader",
                value=int(chosen[databases[~found][0]]),
                expected="a leader that tier2 returned",
            )
        votes[databases[:, np.newaxis], sites] = True
    return votes


def _leaders(fleet: Fleet, waits: FloatArray, decay: float) -> Leaders:
    """Score every leader with a finite wait, aggregate by Eq. 2 and take the best."""
    decay_weights(1, decay)  # checks it
    databases, intervals = fleet.counts.shape[:2]
    scores = np.full((databases, intervals, waits.shape[1]), np.inf)
    alpha, beta, gamma, delta = fleet.coefficients.T
    for database, counts in enumerate(fleet.counts):
        candidates = np.nonzero(np.isfinite(waits[database]))[0]
        scores[database][:, candidates] = leader_scores(
            counts @ alpha,
            counts @ beta,
            counts @ gamma,
            (counts @ delta).sum(axis=-1),
            fleet.client_rtt,
            fleet.site_rtt,
            np.nonzero(fleet.replicas[database])[0],
            candidates,
            waits[database, candidates],
        )
    if np.isfinite(decay):
        for interval in range(1, intervals):
            scores[:, interval] += scores[:, interval - 1] / decay
    leader = first_best(scores)
    score = np.take_along_axis(scores, leader[..., np.newaxis], axis=-1)[..., 0]
    issued = fleet.counts.any(axis=(2, 3))
    if np.isfinite(decay):
        issued = np.logical_or.accumulate(issued, axis=1)
    return Leaders(np.where(np.isfinite(score) & issued, leader, -1), score, scores)


def _alike(
    replicas: BoolArray, voters: IntArray, quorum: IntArray
) -> Iterator[tuple[IntArray, IntArray, Rules]]:
    """Group databases by (|R|, v, m): sites of R per row, which databases, and their rules."""
    sites = replicas.shape[1]
    sizes = np.column_stack([replicas.sum(axis=1), voters, quorum])
    kinds, kind_of = np.unique(sizes, axis=0, return_inverse=True)
    anywhere, nowhere = np.ones(sites, dtype=bool), np.zeros(sites, dtype=bool)
    for kind, (size, votes, needed) in enumerate(kinds.tolist()):
        databases = np.nonzero(kind_of.reshape(-1) == kind)[0]
        members = np.nonzero(replicas[databases])[1].reshape(len(databases), size)
        yield (
            members,
            databases,
            Rules(
                replicas_min=size,
                replicas_max=size,
                voters=votes,
                quorum=needed,
                may_hold=anywhere,
                must_hold=nowhere,
                may_vote=anywhere,
                must_vote=nowhere,
                may_lead=anywhere,
            ),
        )


def _check_nested(rules: Sequence[GroupRule]) -> None:
    """Refuse problems for which closest-first voters are not exact."""
    if any(rule.role != "voters" or rule.has_minimum for rule in rules) or (
        rules and not laminar([r.labels for r in rules], np.ones(len(rules[0].labels), dtype=bool))
    ):
        raise InputError(
            "not caps for voters on nested levels",
            field="rules",
            value=[rule.why for rule in rules],
            expected="such caps; method 'tier2' takes other rules, one database at a time",
        )


def _quorums(voters: IntArray, quorum: npt.ArrayLike | None) -> IntArray:
    """Votes that a commit of each database waits for: as given, or a majority of its voters."""
    if voters.min(initial=1) < 1:
        raise InputError("out of range", field="voters", value=int(voters.min()), expected=">= 1")
    if quorum is None:
        return np.array([majority(int(count)) for count in voters], dtype=np.intp)
    needed = np.broadcast_to(np.asarray(quorum, dtype=np.intp), voters.shape)
    bad = np.nonzero((needed < 1) | (needed > voters))[0]
    if bad.size:
        raise InputError(
            "a quorum that its voters can't give",
            field="quorum",
            value=int(needed[bad[0]]),
            expected=f"1 to {int(voters[bad[0]])} for database {int(bad[0])}",
        )
    return needed


def _allowed(waits: FloatArray, may_lead: npt.ArrayLike | None) -> FloatArray:
    """Waits, infinite for sites that may not lead."""
    if may_lead is None:
        return waits
    return np.where(_mask(may_lead, "may_lead", waits.shape), waits, np.inf)


def _mask(values: npt.ArrayLike, field: str, shape: tuple[int, ...] | None = None) -> BoolArray:
    """Check a boolean table of databases × sites."""
    array = np.asarray(values)
    if array.dtype != np.bool_ or array.ndim != 2 or shape not in (None, array.shape):
        _wrong_shape(field, array, "booleans, databases × sites")
    return array


def _inside(inner: BoolArray, outer: BoolArray, field: str) -> BoolArray:
    stray = np.argwhere(inner & ~outer)
    if stray.size:
        database, site = stray[0].tolist()
        raise InputError(
            f"database {database} holds no replica there",
            field=field,
            value=site,
            expected="a site with a replica",
        )
    return inner


def _wrong_shape(field: str, array: npt.NDArray[np.generic], expected: str) -> NoReturn:
    raise InputError(
        "wrong shape", field=field, value=f"{array.dtype} of {array.shape}", expected=expected
    )
