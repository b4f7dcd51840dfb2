"""Check of a certificate about operations with waits (format ``replica-placement/sets/2``).

The certificate says of each beginning of a replica set, in the order of the walk, whether it stays
open (o), or by which bound all its sets are ruled out: independent clients (i), or Lagrangean with
the prices that are stored (l). Both rest on waits alone and, by weights that are stored, on pairs
of waits (:mod:`placement.proof.sets.wait_pairs`). The checker computes each of these bounds itself
(:mod:`placement.proof.sets.prefix_bounds`), and evaluates every set that is left with the one
evaluator of this package, in doubles.

Where the objective is about losses, the bounds are on the normal score, of which the value is at
least a share (:func:`.least_normal`). The sets that are left are evaluated under losses as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from operator import index
from typing import Any

import numpy as np

from placement.contingency.objective import Contingency
from placement.errors import CertificateError
from placement.evaluation.replica_prices import ReplicaPrices
from placement.evaluation.score import TIE, score_many
from placement.feasibility.feasible_plans import violations
from placement.model.configuration import Configuration
from placement.problem import Problem
from placement.proof.sets.prefix_bounds import PrefixBounds
from placement.proof.sets.set_walk import SetWalk, least_normal, walk_refusal
from placement.support.checks import FloatArray, IntArray
from placement.support.work import Work

__all__ = [
    "DIGITS",
    "FORMAT",
    "PRICE_STEPS",
    "WITHOUT_PAIRS",
    "SetLeaves",
    "check_sets",
    "prices_of",
]

FORMAT = "replica-placement/sets/2"

WITHOUT_PAIRS = "replica-placement/sets/1"
"""Format of certificates without pairs of waits, which are checked like those with none."""

PRICE_STEPS = 4095
"""Parts of h, the cost at the nearest chosen site, of which a stored price is a whole number."""

DIGITS = 3
"""Hexadecimal digits of a stored price."""

_STEPS_OF_A_SET = 500
_STEPS_OF_A_BOUND = 5000
_BATCH = 4000


def prices_of(text: str, home: FloatArray) -> FloatArray:
    """Return the prices that some hexadecimal digits stand for; ValueError for other text."""
    if len(text) != DIGITS * len(home):
        raise ValueError("prices of another number of clients")
    parts = [int(text[at : at + DIGITS], 16) for at in range(0, len(text), DIGITS)]
    return np.array(parts, dtype=np.float64) / PRICE_STEPS * home


class SetLeaves:
    """Complete sets, evaluated many at a time.

    Parameters
    ----------
    problem
        The question.
    leader
        Site index, or None.
    least
        No set that obeys the rules may have less.
    work
        Steps that may be taken.

    Attributes
    ----------
    seen
        Sets so far.
    normal
        Least normal score of those that were evaluated under losses and are as good as `least`.
    """

    def __init__(self, problem: Problem, leader: int | None, least: float, work: Work) -> None:
        self._problem, self._leader, self._least, self._work = problem, leader, least, work
        self._least_normal = least_normal(problem, least)
        self.normal = math.inf
        self._each = _STEPS_OF_A_SET + len(problem.instance.clients) * problem.rules.voters
        self._waiting: list[IntArray] = []
        self._number = 0
        self.seen = 0

    def add(self, chosen: Sequence[int], coming: Sequence[int]) -> None:
        """Take the sets of the chosen sites and one that comes each."""
        self._work.take(len(coming) * self._each)
        sets = np.empty((len(coming), len(chosen) + 1), dtype=np.intp)
        sets[:, :-1], sets[:, -1] = chosen, coming
        self._waiting.append(np.sort(sets, axis=1))
        self._number += len(coming)
        self.seen += len(coming)
        if self._number >= _BATCH:
            self.finish()

    def finish(self) -> None:
        """Evaluate the pending sets; CertificateError for a set that is below."""
        if not self._waiting:
            return
        sets, self._waiting, self._number = np.concatenate(self._waiting), [], 0
        leaders = sets[:, 0] if self._leader is None else np.full(len(sets), self._leader)
        problem = self._problem
        scores = score_many(problem.demand, leaders, sets, sets, problem.rules.quorum)
        rows = np.nonzero(scores < self._least_normal)[0]
        values, as_good = scores[rows], -math.inf
        if not problem.minimises_mean and len(rows):
            self._work.take(len(rows) * self._each * (1 + len(problem.instance.sites)))
            some = [Configuration(int(leaders[row]), sets[row], sets[row]) for row in rows]
            values = problem.objective.values(problem, some)
            as_good = self._least * (1 + 4 * TIE)
        for row, value in zip(rows.tolist(), values.tolist(), strict=True):
            if not (value < self._least or value <= as_good):
                continue
            members = tuple(sets[row].tolist())
            for leader in members if self._leader is None else (self._leader,):
                found = Configuration(leader, members, members)
                if violations(problem, found):
                    continue
                if value < self._least:
                    raise CertificateError(f"{found} has the objective {value!r}")
                self.normal = min(self.normal, float(scores[row]))


def check_sets(
    problem: Problem, bound: float, certificate: Mapping[str, Any], work: Work
) -> tuple[int, int, int, float | None]:
    """Prove that no configuration is below a bound.

    Parameters
    ----------
    problem
        The question.
    bound
        The claim, finite.
    certificate
        With ``order`` (sites) and ``proofs``: for each leader (or null) its ``steps``, a text of
        o, i and l, its ``prices``, a text for each l, and its ``pairs`` of waits: two places in
        the `waits` of :class:`~placement.proof.sets.prefix_bounds.PrefixBounds` and a weight each.
    work
        Steps that may be taken.

    Returns
    -------
    tuple
        Numbers of leaders, of beginnings and sets, and of bounds; for the goal "worst", the least
        normal score of the configurations that are as good.

    Raises
    ------
    CertificateError
        At the first thing that does not hold.
    """
    reason = walk_refusal(problem)
    if reason is not None:
        raise CertificateError(f"certificates of this kind do not prove such a question: {reason}")
    if not math.isfinite(bound):
        raise CertificateError(f"the claimed bound {bound!r} is no number")
    rules, demand = problem.rules, problem.demand
    order = [index(site) for site in certificate["order"]]
    able = np.nonzero(rules.may_hold & rules.may_vote)[0].tolist()
    if sorted(order) != able:
        raise CertificateError("the order does not hold every site that may vote once")
    proofs: list[Mapping[str, Any]] = list(certificate["proofs"])
    leaders = [None if one["leader"] is None else index(one["leader"]) for one in proofs]
    wanted = [None] if demand.leaderless else np.nonzero(rules.may_lead)[0].tolist()
    if sorted(leaders, key=str) != sorted(wanted, key=str):
        raise CertificateError("not exactly one proof for every site that may lead")
    least = bound - abs(bound) * TIE
    events = bounds = 0
    normal = math.inf
    for leader, proof in zip(leaders, proofs, strict=True):
        replay = _SetProof(problem, leader, least, proof, work)
        replay.run(order)
        events, bounds = events + replay.events, bounds + replay.bounds
        normal = min(normal, replay.normal)
    goal = problem.objective
    worst = isinstance(goal, Contingency) and goal.goal == "worst" and math.isfinite(normal)
    return len(proofs), events, bounds, normal if worst else None


class _SetProof:
    """The proof of one leader."""

    def __init__(
        self, problem: Problem, leader: int | None, least: float, proof: Mapping[str, Any],
        work: Work,
    ) -> None:  # fmt: skip
        rules = problem.rules
        self._problem, self._leader, self._work = problem, leader, work
        self._least = least_normal(problem, least)
        pairs: Sequence[Sequence[Any]] = proof.get("pairs", ())
        work.take(len(pairs) * len(rules.may_hold))
        prices = ReplicaPrices.of(problem, rules.voters)
        self._tables = PrefixBounds(
            problem.demand, rules.voters, rules.quorum, leader, pairs, prices
        )
        self._leaves = SetLeaves(problem, leader, least, work)
        self._steps: Iterator[str] = iter(proof["steps"])
        self._prices: Iterator[str] = iter(proof["prices"])
        self.events = self.bounds = 0
        sites, clients = len(rules.may_hold), len(self._tables.clients)
        self._cost = _STEPS_OF_A_BOUND + sites * (sites + clients + 10 * len(pairs))

    @property
    def normal(self) -> float:
        """Return the least normal score of the sets that are as good as the bound."""
        return self._leaves.normal

    def run(self, order: Sequence[int]) -> None:
        SetWalk(self._problem, order, self._leader).run(self._open, self._leaves.add)
        self._leaves.finish()
        self.events += self._leaves.seen
        if next(self._steps, None) is not None or next(self._prices, None) is not None:
            raise CertificateError("a proof goes on where its tree is complete")

    def _open(self, chosen: tuple[int, ...], coming: Sequence[int]) -> bool:
        """Read a step; return whether the beginning stays open."""
        step = next(self._steps, None)
        self.events += 1
        if step == "o":
            return True
        if step not in ("i", "l"):
            raise CertificateError(f"step {self.events} is {step!r}, expected o, i or l")
        self._work.take(self._cost)
        self.bounds += 1
        start = self._tables.beginning(chosen, coming, self._least)
        if step == "i":
            value = start.independent
        else:
            value = start.lagrangean(prices_of(next(self._prices, ""), start.home))
        if not value >= self._least:
            raise CertificateError(f"nothing rules out the sets with {sorted(chosen)}")
        return False
