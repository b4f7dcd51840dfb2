"""Late operations after losses: the scenarios of one leader and deadline, and complete plans.

After the loss of F, the share of late operations under the leader ℓ' is again a sum over clients
and a term of the voters, of the survivors R ∖ F and V ∖ F
(:mod:`placement.tail.late_operations`). It does not depend on the sites of F, so that a bound over
the other sites holds whether or not the plan has a replica there: one scenario for each loss, which
counts as soon as a site of F is fixed in. Where the leader survives and stays, ℓ' = ℓ. Else the
best of those who may take over leads, and with s and d of each of them

    min_h late_h(R ∖ F, V ∖ F) >= Σ_c min_h s_h(c, near(c, R ∖ F)) + min_h d_h(V ∖ F)

Those who are late with every client at its best site and with the best voters are left out.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from formulations.exact.late_voters import LateIntervals, LateSuccessors, VotersByInterval
from formulations.exact.threshold_search import Scenario
from placement.contingency.objective import Contingency
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = ["LateLosses", "LossesOfSet"]

_BLOCK = 16
"""Leaders that get their tables at once."""


@dataclass(frozen=True, eq=False)
class _Hit:
    """A loss that hits a set of replicas.

    Attributes
    ----------
    lost
        Replicas that it takes.
    leaders
        Candidate leaders then, if they vote: late operations that ask the leader, and
        how many are.
    """

    lost: frozenset[int]
    leaders: dict[int, tuple[float, VotersByInterval]]

    def kept(self, voters: tuple[int, ...], quorum: int, may_lead: list[bool]) -> bool:
        """Return whether few enough operations are late after the loss."""
        left = tuple(v for v in voters if v not in self.lost)
        if len(left) < quorum:
            return False
        able = [h for h in left if h in self.leaders]
        able = [h for h in able if may_lead[h]] or able
        return any(
            slack >= 0 and late.of(left) <= slack for slack, late in (self.leaders[h] for h in able)
        )


@dataclass(eq=False)
class LossesOfSet:
    """The losses that hit one set of replicas under one leader.

    Attributes
    ----------
    hits
        The loss that ruled out voters last comes first.
    quorum, may_lead
        Of the rules.
    """

    hits: tuple[_Hit, ...]
    quorum: int
    may_lead: list[bool]

    def keeps(self, voters: tuple[int, ...]) -> bool:
        """Return whether few enough operations are late after every loss."""
        for hit in self.hits:
            if not hit.kept(voters, self.quorum, self.may_lead):
                self.hits = (hit, *(other for other in self.hits if other is not hit))
                return False
        return True


@dataclass(eq=False)
class LateLosses:
    """The losses of one question about a percentile.

    Attributes
    ----------
    goal
        Which losses, and the limit after them, if there is one.
    late
        Shares of late operations.
    rank
        Place of each site in the order of each row of clients, shape (sites, rows).
    allowed
        Share of operations that may be late.
    in_time
        Raises TimeoutError at the time limit; called now and then.
    """

    goal: Contingency
    late: LateIntervals
    rank: IntArray
    allowed: float
    in_time: Callable[[], None]
    _lost: tuple[BoolArray, ...] = field(init=False)
    _voters: dict[tuple[int, int], VotersByInterval] = field(init=False, default_factory=dict)
    # of the last deadline
    _deadline: int = field(init=False, default=-1)
    _tables: FloatArray = field(init=False, repr=False)
    _successors: tuple[int, ...] = field(init=False, default=())
    _costs: dict[tuple[int, ...], FloatArray] = field(init=False, default_factory=dict)
    _nearby: dict[tuple[int, tuple[int, ...]], float] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        sites = len(self.late.problem.instance.sites)
        losses = self.goal.losses(self.late.problem)
        self._lost = tuple(np.isin(np.arange(sites), sorted(loss.sites)) for loss in losses)

    @property
    def ceiling(self) -> float:
        """Largest deadline in bins that a percentile after a loss may keep; infinite: no limit."""
        distributions = self.late.distributions
        most = self.goal.ceiling(self.late.problem) / distributions.width
        if math.isinf(most):
            return most
        return min(math.floor(most * (1 + 1e-12)), self.late.last)

    @property
    def numbers(self) -> tuple[int, ...]:
        """Numbers in a certificate of the scenarios of :meth:`scenarios`."""
        may_hold = self.late.problem.rules.may_hold
        return tuple(2 + n for n, lost in enumerate(self._lost) if (lost & may_hold).any())

    def scenarios(self, voters: VotersByInterval, normal: Scenario) -> list[Scenario]:
        """Return the scenarios of the losses that a plan may have.

        Parameters
        ----------
        voters
            Of the leader and the deadline of the percentile with nothing lost.
        normal
            The scenario of that, whose threshold and scale those after losses have as well.
        """
        leader, rules = voters.leader, self.late.problem.rules
        self._open(voters.deadline)
        found = []
        for lost in self._lost:
            if not (lost & rules.may_hold).any():
                continue
            successors = [leader]
            if lost[leader] or self.goal.leader_may_move:
                successors = [h for h in self._successors if not lost[h]]
            # without a site that can lead in time, every leader is late
            part = LateSuccessors(tuple(self._voters_of(h, lost, leader) for h in successors))
            found.append(
                Scenario(
                    self._costs_of(tuple(successors)),
                    0.0 if successors else 2.0,
                    part
                    if successors
                    else LateSuccessors((self._voters_of(leader, lost, leader),)),
                    normal.threshold,
                    normal.scale,
                    lost=lost,
                )
            )
        return found

    def of_set(self, leader: int, replicas: list[int], deadline: int) -> LossesOfSet:
        """Return the losses that hit a set of replicas, to be asked about sets of voters.

        Parameters
        ----------
        leader
            Site index.
        replicas
            Site indices.
        deadline
            Of the percentile with nothing lost, in bins.
        """
        self._open(deadline)
        rules, moves = self.late.problem.rules, self.goal.leader_may_move
        hits = []
        for lost in self._lost:
            left = [r for r in replicas if not lost[r]]
            if len(left) == len(replicas):
                continue
            stays = not (lost[leader] or moves)
            able = [leader] if stays else [r for r in left if rules.may_vote[r]]
            hits.append(
                _Hit(
                    frozenset(r for r in replicas if lost[r]),
                    {
                        h: (self.allowed - self._nearby_of(h, tuple(left)), voters)
                        for h in able
                        if (voters := self._voters_of(h, lost, leader))
                    },
                )
            )
        return LossesOfSet(tuple(hits), rules.quorum, rules.may_lead.tolist())

    def _open(self, deadline: int) -> None:
        """Work out the tables of everyone who may lead, after losses, at a deadline."""
        if not math.isinf(self.ceiling):
            deadline = int(self.ceiling)
        if deadline == self._deadline:
            return
        self._deadline = deadline
        rules = self.late.problem.rules
        able = np.nonzero(rules.may_vote)[0]
        sites = len(rules.may_vote)
        self._tables = np.zeros((sites, sites, self.rank.shape[1]))
        for first in range(0, len(able), _BLOCK):
            self.in_time()
            some = able[first : first + _BLOCK]
            self._tables[some] = self.late.summands(some, deadline)[:, :-1]
        self._voters.clear()
        self._costs.clear()
        self._nearby.clear()
        nobody, successors = np.zeros(sites, dtype=bool), []
        for h in able.tolist():
            self.in_time()
            voters = self._voters_of(h, nobody, -1)
            if self._static(h) + voters.least(nobody, rules.may_hold, sites) <= self.allowed:
                successors.append(h)
        self._successors = tuple(successors)

    def _static(self, leader: int) -> float:
        """Return the least late operations with every client at its best site."""
        usable = self.late.problem.rules.may_hold[:, np.newaxis] & (self.rank <= self.rank[leader])
        return float(np.where(usable, self._tables[leader], math.inf).min(axis=0).sum())

    def _voters_of(self, successor: int, lost: BoolArray, leader: int) -> VotersByInterval:
        """Return the voters' part of someone who leads after a loss."""
        rules = self.late.problem.rules
        taken = int(leader >= 0 and bool(lost[leader]))  # the leader voted
        gone = min(int((lost & rules.may_vote).sum()), rules.voters - rules.quorum)
        key = (successor, 2 * gone + taken)
        if key not in self._voters:
            most = rules.voters - 1 - taken
            fewest = min(most, rules.voters - 1 - gone)
            self._voters[key] = self.late.voters(successor, self._deadline, most, fewest)
        return self._voters[key]

    def _costs_of(self, successors: tuple[int, ...]) -> FloatArray:
        """Shares of late operations by site and client under the best of some leaders."""
        if not self.late.relays:
            successors = successors[:1]  # the same under every leader
        if successors not in self._costs:
            table = self._tables[list(successors)]
            self._costs[successors] = (
                table.min(axis=0) if successors else np.zeros(self._tables.shape[1:])
            )
        return self._costs[successors]

    def _nearby_of(self, leader: int, replicas: tuple[int, ...]) -> float:
        key = (leader, replicas)
        if key not in self._nearby:
            near = np.array(replicas)[self.rank[list(replicas)].argmin(axis=0)]
            table = self._tables[leader]
            self._nearby[key] = float(table[near, np.arange(len(near))].sum())
        return self._nearby[key]
