"""Certificates about losses: their claim, the proof of a tree over losses, and their format.

Claim of a certificate about losses, and the numbers behind it on an exact or rounded grid.

The normal case is scenario 0, and loss L is scenario 1 + L. Where clients of lost sites move, a
loss counts without a replica there as well. It has a second number for that, 1 + losses + L.

A claim has a threshold T_s for every scenario. It says that each configuration reaches one of them,
X_s >= T_s. The thresholds depend on the goal:

- "worst": all thresholds are the claimed bound;
- "bounded": T_0 is the claimed bound. The other thresholds are the limit, raised by the rounding of
  the evaluator. A configuration that reaches one of these breaks the limit. T_0 is no more than the
  others, because a configuration above the limit without a loss breaks it too;
- "weighted": there is one threshold, for Σ p_s X_s.

Without a bound, T_0 is the limit or infinite: no configuration keeps it, or none survives every
loss.

Three sites by hand: in the instance of :mod:`placement.contingency`, the leaders A, B and C have
the largest sums 1080, 1080 and 1650, each after the loss of B, which is scenario 2. So the claim
"no worst case is below 1080" needs one event for all leaders: weight 1 on scenario 2. The claim
"none is below 1081" is false, since the plan under A reaches no threshold.

>>> from placement import Contingency, Instance, Operation, Problem
>>> rtt = [[0, 30, 90], [30, 0, 70], [90, 70, 0]]
>>> write = Operation("write", direct=1, quorum=1)
>>> names = ["A", "B", "C"]
>>> three = Instance(names, names, rtt, rtt, operations=[write], counts=[[6], [3], [1]])
>>> problem = Problem(three, replicas=3, voters=3, objective=Contingency())
>>> claim = LossClaim(problem, "worst", 1080.0, 0.0, None)
>>> claim.loss_of, claim.scenarios, sorted(claim.in_force({0, 1, 2}))
([0, 1, 2], 4, [0, 1, 2, 3])

The proof of a tree over losses, replayed in whole numbers.

**What is proved.** The configurations of a leader ℓ have a score in every scenario, normal or after
a loss, and reach one of the thresholds. The bound of a scenario is that of
:mod:`placement.proof.threshold_proof`: what is left of R after a loss is an assignment problem
without the lost sites. w and rest (K + D·q, :meth:`placement.proof.costs.led_costs.LedCosts.led`)
are those of ℓ. After the loss that takes ℓ, a site of the group Γ leads: w takes the least hop to
one of Γ, and rest the least of them. Γ are all voters that are not out, or a single one: then the
proof is about the configurations in which that one takes over. (With leaders that may move, this
holds after every loss, and ℓ counts in.) Only losses that hit I count. For the worst case with
clients and leaders that stay, the other losses count as well: a set that a loss misses has its
normal score after it, which has the same threshold.

For the goal "weighted" the weights are the probabilities: those of losses that hit I, and for the
normal case the rest up to 1, since a loss that does not hit I costs at least the normal bound
without the sites that it takes.

A site is *out* as a leader where the normal bound, with no site but its own fixed, reaches T_0, and
as a successor where it reaches T of losses: with fewer sites no bound falls. Where clients
move, no site is out as a successor: clients may come closer to the remaining sites.

Check of a certificate about losses (format ``replica-placement/losses/1``).

=============  ====================================================================================
"floors"       [[site, bits, u], …]: multipliers of sites eliminated as leaders, successors, or
               both (:func:`placement.proof.losses.reached`)
"proofs"       [{"leader": ℓ, "successor": s or null, "events": […]}, …]: for every leader that is
               not out, one tree for all successors that are not out either (null), or one for each
=============  ====================================================================================

The events are those of :mod:`placement.proof.event_tree`. In place of multipliers a "fix" or
"close" has ``[[scenario, weight, bits, u], …]``; every u is a list of whole numbers of 2^-bits, one
per client of "clients". A "close" without scenarios says that the state holds no set of replicas,
or that one of the losses that hit it leaves no quorum. Weights are null for the goal "weighted".

A plan of the goal "worst" may hold a second claim under "ties": of the configurations whose worst
case is as good, none has a normal score below its "bound". It is a claim of this format, or one of
the mean (``replica-placement/bound/1``) where no configuration at all has a lower normal score.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cached_property
from operator import index
from typing import Any

import numpy as np

from placement.contingency.objective import Contingency, Goal
from placement.errors import CertificateError
from placement.evaluation.losses import demand_after
from placement.problem import Problem
from placement.proof.choice.site_choice import SiteChoice
from placement.proof.choice.sorted_sites import SortedSites
from placement.proof.claim import Claim, finest_bit, integers
from placement.proof.costs.exact_costs import ExactCosts
from placement.proof.costs.led_costs import LedCosts
from placement.proof.costs.rounded_costs import RoundedCosts
from placement.proof.event_tree import CELLS_PER_STEP, State
from placement.proof.threshold_proof import (
    NO_BETAS,
    BoundPart,
    ThresholdProof,
    check_clients,
    read_multipliers,
)
from placement.support.checks import FloatArray
from placement.support.work import Work

__all__ = [
    "FORMAT",
    "LossClaim",
    "LossGrid",
    "LossProof",
    "check_losses",
    "reached",
]


_PARTS = 10**12  # 1 / placement.evaluation.score.TIE
_NOBODY: frozenset[int] = frozenset()


class LossClaim:
    """A question about losses of single domains, and a bound that is claimed of it.

    Parameters
    ----------
    problem
        With an objective about losses.
    goal
        Of the claim: that of the objective, or "bounded" for the plans of a worst case.
    bound
        No configuration has a value below it, it is claimed; +∞: there is no configuration.
    granularity
        As for :class:`~placement.proof.claim.Claim`.
    limit
        For "bounded": the largest score after a loss; else None.

    Raises
    ------
    ValueError
        As :class:`~placement.proof.claim.Claim`, and for losses that no certificate is about.

    Attributes
    ----------
    lost
        Sites of each loss.
    loss_of
        Number of the loss that takes each site; −1: none.
    shares
        p of each loss in units of 2^-`share_bits`, for "weighted".
    moved
        The claim with the RTTs of the clients after each loss that moves some, by its number.
    """

    def __init__(
        self, problem: Problem, goal: Goal, bound: float, granularity: float, limit: float | None
    ) -> None:
        contingency = problem.objective
        assert isinstance(contingency, Contingency)
        if contingency.together != 1:
            raise ValueError("certificates are about losses of one domain")
        if bound == math.inf and goal == "weighted":
            raise ValueError("a bound on a mean over outages is finite")
        self.goal, self.rules = goal, problem.rules
        self.finite = bound != math.inf
        losses = contingency.losses(problem)
        moved = {
            number: demand_after(problem, loss.sites).client_rtt
            for number, loss in enumerate(losses)
            if contingency.moves_clients(problem, loss)
        }
        claimed = bound if self.finite else 0.0
        self.claim = Claim(problem, claimed, granularity, list(moved.values()))
        self.moved = {n: self.claim.with_client_rtt(rtt) for n, rtt in moved.items()}
        self.leader_may_move = contingency.leader_may_move
        self.lost = [loss.sites for loss in losses]
        self.loss_of = [-1] * len(problem.instance.sites)
        for number, sites in enumerate(self.lost):
            for site in sites:
                self.loss_of[site] = number
        probabilities = np.array(contingency.probabilities(problem))
        self.share_bits = finest_bit(probabilities) if goal == "weighted" else 0
        self.shares: list[int] = integers(probabilities, self.share_bits).tolist()
        if goal == "weighted" and sum(self.shares) > 1 << self.share_bits:
            raise ValueError("the probabilities of the losses sum to more than 1")
        self._limit = limit
        self.may_vote: list[bool] = self.rules.may_vote.tolist()
        self.may_lead: list[bool] = self.rules.may_lead.tolist()

    @cached_property
    def exact(self) -> LossGrid:
        """The numbers in exact integers."""
        return LossGrid(self, exact=True)

    @cached_property
    def rounded(self) -> LossGrid | None:
        """The numbers in int64; None where they are too large or too small for it."""
        return None if self.claim.rounded is None else LossGrid(self, exact=False)

    def thresholds(self) -> tuple[int | None, int | None]:
        """T of the normal case and of every loss on the exact grid; None: infinite."""
        normal = self.claim.needed if self.finite else None
        if self._limit is None:
            return normal, normal
        top, bottom = self._limit.as_integer_ratio()
        limit = -((-top << self.claim.bits) // bottom)
        limit += -(-abs(limit) // _PARTS)
        return limit if normal is None else min(normal, limit), limit

    def sites_lost(self, scenario: int) -> frozenset[int]:
        """Sites that a scenario takes."""
        return self.lost[self.loss(scenario)] if scenario else _NOBODY

    def loss(self, scenario: int) -> int:
        """Return the loss of a scenario; −1: the normal one."""
        return (scenario - 1) % len(self.lost) if scenario else -1

    @property
    def scenarios(self) -> int:
        """Number of scenarios: a loss that moves clients has a second one, which always counts."""
        return 1 + len(self.lost) * (2 if self.moved else 1)

    def hit(self, replicas: Collection[int]) -> set[int]:
        """Return the scenarios that count for sets with the given replicas.

        The normal one, losses that hit a replica, and the second ones of losses that move clients;
        where outages are weighted, each loss has one number.
        """
        second = 1 if self.goal == "weighted" else 1 + len(self.lost)
        hit = (1 + self.loss_of[site] for site in replicas if self.loss_of[site] >= 0)
        return {0, *hit, *(second + loss for loss in self.moved)}

    def in_force(self, inside: Collection[int]) -> set[int]:
        """Return the scenarios that a bound may use where the given sites hold replicas.

        Those of :meth:`hit`. For the worst case with clients and leaders that stay, every loss: a
        set that a loss misses has its normal score there, which has the same threshold.
        """
        if self.goal == "worst" and not self.moved and not self.leader_may_move:
            return set(range(self.scenarios))
        return self.hit(inside)


class LossGrid(LedCosts):
    """The numbers of a claim on one grid.

    Attributes
    ----------
    normal, after
        Thresholds of the normal case and of losses; None: infinite.
    moved
        The numbers after each loss that moves clients.
    """

    def __init__(self, question: LossClaim, *, exact: bool) -> None:
        super().__init__(question.claim, exact=exact)
        self.normal, self.after = (
            None if threshold is None else self.threshold(threshold)
            for threshold in question.thresholds()
        )
        self.moved = {n: LedCosts(claim, exact=exact) for n, claim in question.moved.items()}

    def of_loss(self, loss: int) -> LedCosts:
        """Return the numbers after a loss; −1: with nothing lost."""
        return self.moved.get(loss, self)


class _GridOfLeader:
    """Costs of the scenarios of one leader and group on one grid."""

    def __init__(self, grid: LossGrid, leader: int, group: Sequence[int]) -> None:
        self.grid = grid
        self._leader, self._group = leader, group
        self._known: dict[tuple[int, bool], RoundedCosts | ExactCosts] = {}

    def costs(self, loss: int, by_group: bool) -> RoundedCosts | ExactCosts:
        """Costs after a loss under the leader, or under the best of the group for each site."""
        key = (loss if loss in self.grid.moved else -1, by_group)
        if key not in self._known:
            leads = self._group if by_group else self._leader
            self._known[key] = self.grid.of_loss(key[0]).costs(leads)
        return self._known[key]


class LossProof(ThresholdProof[_GridOfLeader]):
    """The proof of one leader, for one group of successors.

    Parameters
    ----------
    question
        What is to be proved.
    leader
        ℓ.
    successors
        Γ: sites one of which leads when ℓ is lost.
    work
        Steps that may still be taken.
    whom
        For messages.
    """

    def __init__(
        self, question: LossClaim, leader: int, successors: Iterable[int], work: Work, whom: str
    ) -> None:
        self.question, self.leader = question, leader
        own = question.loss_of[leader]
        if question.leader_may_move:
            group = {*successors, leader}
        else:
            group = set(successors) - (question.lost[own] if own >= 0 else set())
        self.group = sorted(group)
        grids = [
            (_GridOfLeader(grid, leader, self.group), cells)
            for grid, cells in ((question.rounded, CELLS_PER_STEP), (question.exact, 1))
            if grid is not None
        ]
        choice = SiteChoice(question.rules, leader, None)
        clients = len(question.claim.clients)
        super().__init__(choice, whom, work, clients, question.scenarios, grids)

    def start(self, *held: int) -> State:
        """Return the state in which nothing is decided but pins, and `held`, who vote."""
        pinned = np.nonzero(self.question.rules.must_vote)[0].tolist()
        return dataclasses.replace(super().start(*held), voters=frozenset((*pinned, *held)))

    # --- bounds -----------------------------------------------------------------------------

    def _in_force(self, state: State) -> set[int]:
        return self.question.in_force(state.inside)

    def _lost(self, scenario: int) -> frozenset[int]:
        return self.question.sites_lost(scenario)

    def _led_by_group(self, scenario: int) -> bool:
        return scenario > 0 and (
            self.question.leader_may_move or self.leader in self._lost(scenario)
        )

    def _costs(self, form: _GridOfLeader, scenario: int) -> RoundedCosts | ExactCosts:
        return form.costs(self.question.loss(scenario), self._led_by_group(scenario))

    def _rest(self, form: _GridOfLeader, scenario: int, state: State) -> int | None:
        leaders = self.group if self._led_by_group(scenario) else (self.leader,)
        grid = form.grid.of_loss(self.question.loss(scenario))
        return grid.led(leaders, self._lost(scenario), state)

    def _threshold(self, form: _GridOfLeader, scenario: int) -> int | None:
        return form.grid.after if scenario else form.grid.normal

    def _weights(
        self, form: _GridOfLeader, state: State, parts: Sequence[BoundPart]
    ) -> tuple[list[int], int]:
        question = self.question
        if question.goal != "weighted":
            return super()._weights(form, state, parts)
        assert form.grid.normal is not None
        force, shares = self._in_force(state), question.shares
        left = (1 << question.share_bits) - sum(shares[s - 1] for s in force if s)
        weights = [shares[part.scenario - 1] if part.scenario else left for part in parts]
        return weights, form.grid.normal << question.share_bits

    def _less(self, scenario: int, state: State) -> list[int]:
        question = self.question
        if scenario or question.goal != "weighted":
            return super()._less(scenario, state)
        force = self._in_force(state)
        return [
            0 if loss < 0 or 1 + loss in force else question.shares[loss]
            for loss in question.loss_of
        ]

    # --- sets of replicas -------------------------------------------------------------------

    def _no_better(self, form: _GridOfLeader, replicas: list[int]) -> bool:
        rules = self.question.rules
        if not all(group.satisfied(replicas) for group in rules.of("replicas")):
            return True
        values = _SetValues(self, form.grid, replicas)
        able = [r for r in replicas if self.question.may_vote[r]]
        pinned = {int(s) for s in np.nonzero(rules.must_vote)[0]} | {self.leader}
        if len(able) < rules.voters or not pinned <= set(able) or values.reach(able, relaxed=True):
            return True
        others = [r for r in able if r not in pinned]
        spare = rules.voters - len(pinned)
        if spare < 0:
            return True
        ways = math.comb(len(others), spare)
        self.work.take(ways * rules.voters * (1 + len(values.hits)))
        for more in itertools.combinations(others, spare):
            voters = [*pinned, *more]
            obeyed = all(group.satisfied(voters) for group in rules.of("voters"))
            if obeyed and not values.reach(voters):
                return False
        return True


class _SetValues:
    """Scores of the configurations of one set of replicas under one leader, from below.

    Attributes
    ----------
    hits
        The losses that hit it, as scenarios.
    """

    def __init__(self, proof: LossProof, grid: LossGrid, replicas: list[int]) -> None:
        self.proof, self.grid, self.replicas = proof, grid, replicas
        self.question = proof.question
        force = self.question.hit(replicas) - {0}
        self.hits = sorted({1 + self.question.loss(scenario) for scenario in force})
        self._reads: dict[tuple[int, int], int] = {}
        self._near: dict[int, list[int]] = {}

    def reach(self, voters: Sequence[int], *, relaxed: bool = False) -> bool:
        """Return whether no configuration with these voters is better than the claim.

        `relaxed`: neither is one with fewer of them.
        """
        question, grid = self.question, self.grid
        normal = self._score(0, self.proof.leader, voters)
        if normal is None:
            return True
        if question.goal != "weighted" and grid.normal is not None and normal >= grid.normal:
            return True
        total, left = 0, 1 << question.share_bits
        for scenario in self.hits:
            after = self._after(scenario, voters, relaxed)
            if after is None:
                return True
            if question.goal == "weighted":
                total += question.shares[scenario - 1] * after
                left -= question.shares[scenario - 1]
            elif grid.after is not None and after >= grid.after:
                return True
        if question.goal != "weighted":
            return False
        assert grid.normal is not None
        return total + left * normal >= grid.normal << question.share_bits

    def _after(self, scenario: int, voters: Sequence[int], relaxed: bool) -> int | None:
        """Least score of a loss; None: no quorum is left, or no site of the group can lead."""
        proof, question = self.proof, self.question
        lost = question.sites_lost(scenario)
        alive = [v for v in voters if v not in lost]
        if proof.leader not in lost and not question.leader_may_move:
            return self._score(scenario, proof.leader, alive)
        elected = [a for a in alive if question.may_lead[a]]
        leaders = alive if relaxed or not elected else elected
        scores = [self._score(scenario, a, alive) for a in leaders if a in proof.group]
        return min((score for score in scores if score is not None), default=None)

    def _score(self, scenario: int, leader: int, voters: Sequence[int]) -> int | None:
        led = self.grid.of_loss(self.question.loss(scenario))
        if len(voters) < self.question.rules.quorum:
            return None
        if (scenario, leader) not in self._reads:
            lost = self.question.sites_lost(scenario)
            survivors = [r for r in self.replicas if r not in lost]
            self._reads[scenario, leader] = led.single(leader).reads(survivors)
        return self._reads[scenario, leader] + led.wait(leader, voters)


def reached(question: LossClaim, site: int, u: FloatArray, work: Work) -> tuple[bool, bool]:
    """Return whether a site is ruled out as a leader, and as a successor; see the module."""
    rules = question.rules
    free = [int(s) for s in np.nonzero(rules.may_hold)[0] if s != site]
    closed = frozenset(int(s) for s in np.nonzero(~rules.may_hold)[0]) - {site}
    state = State(frozenset((site,)), closed)
    none = np.zeros(len(rules.may_hold), dtype=bool)
    # Survivors alone may break a minimum, but they cost no less than all replicas, which obey it.
    any_set = dataclasses.replace(
        rules,
        replicas_min=max(rules.replicas_min, rules.voters),
        voters=0,
        must_hold=none,
        must_vote=none,
        groups=rules.of("replicas"),
    )
    choice = SiteChoice(any_set, None, None)
    out = [False, False]
    for grid, cells in ((question.rounded, CELLS_PER_STEP), (question.exact, 1)):
        if grid is None:
            continue
        costs = grid.single(site)
        if not costs.fits(u, NO_BETAS):
            continue
        work.take(len(rules.may_hold) * len(question.claim.clients) // cells + 1000)
        fixed, rho = costs.evaluation(state.inside, free, u, NO_BETAS)
        rest = grid.led((site,), frozenset(), state)
        sites = SortedSites(state.inside, free, rho)
        for case, threshold in enumerate((grid.normal, grid.after)):
            if threshold is None or out[case]:
                continue
            needed = -math.inf if rest is None else threshold - fixed + costs.constant - rest
            out[case] = not choice.open_radii(needed, sites, [0])
        if all(out):
            break
    return out[0], out[1]


FORMAT = "replica-placement/losses/1"


def check_losses(
    problem: Problem,
    bound: float,
    certificate: Mapping[str, Any],
    work: Work,
    *,
    limit: float | None = None,
) -> tuple[int, int, int]:
    """Prove that no configuration has a value below a bound, or refuse.

    Parameters
    ----------
    problem
        A question about losses.
    bound
        What is to be proved; +∞: there is no configuration.
    certificate
        See the module.
    work
        Steps that may be taken.
    limit
        Given: prove instead that none whose scores are at most this has a lower normal score.

    Returns
    -------
    tuple of int
        How many leaders, events and bounds there were.

    Raises
    ------
    CertificateError
        When a step of the proof does not hold, or something is not covered.
    """
    goal = problem.objective
    if not isinstance(goal, Contingency):
        raise CertificateError("certificates of this format are about losses")
    granularity, kind = float(certificate["granularity"]), goal.goal
    if kind == "weighted" and granularity:
        raise CertificateError("a mean over outages is no whole number")
    if limit is not None:
        kind = "bounded"
    elif kind == "bounded":
        limit = goal.ceiling(problem)
    try:
        question = LossClaim(problem, kind, bound, granularity, limit)
    except ValueError as flaw:
        raise CertificateError(str(flaw)) from None
    return _check(question, certificate, work)


def _check(question: LossClaim, certificate: Mapping[str, Any], work: Work) -> tuple[int, int, int]:
    check_clients(certificate, question.claim.clients.tolist())
    no_leaders, no_successors = set(), set()
    for given, bits, numbers in certificate["floors"]:
        site = index(given)
        if not 0 <= site < len(question.may_vote):
            raise CertificateError(f"no site {site}")
        if question.goal == "weighted":
            raise CertificateError("no site is eliminated where outages are weighted")
        u = read_multipliers(numbers, bits, len(question.claim.clients))
        out = reached(question, site, u, work)
        no_leaders |= {site} if out[0] else set()
        no_successors |= {site} if out[1] and not question.moved else set()
    successors = [
        s for s, votes in enumerate(question.may_vote) if votes and s not in no_successors
    ]
    events = bounds = 0
    proved: dict[int, set[int | None]] = {}
    for proof in certificate["proofs"]:
        leader, successor = index(proof["leader"]), proof["successor"]
        if not 0 <= leader < len(question.may_vote):
            raise CertificateError(f"no site {leader}")
        whom = f"leader {leader}" if successor is None else f"leader {leader} before {successor}"
        pairs = question.loss_of[leader] >= 0 and not question.leader_may_move
        if successor is not None and not (pairs and index(successor) in successors):
            raise CertificateError(f"{whom}: site {successor} is no successor of its own")
        group = successors if successor is None else [index(successor)]
        tree = LossProof(question, leader, group, work, whom)
        held = (leader,) if successor is None else (leader, index(successor))
        tree.run(proof["events"], tree.start(*held))
        proved.setdefault(leader, set()).add(successor)
        events, bounds = events + tree.events, bounds + tree.bounds
    for leader in np.nonzero(question.rules.may_lead)[0].tolist():
        done, own = proved.get(leader, set()), question.loss_of[leader]
        if leader in no_leaders or None in done:
            continue
        if own < 0 or question.leader_may_move:
            raise CertificateError(f"nothing is proved of leader {leader}")
        missing = [h for h in successors if h not in done and h not in question.lost[own]]
        if missing:
            raise CertificateError(f"nothing is proved of leader {leader}, successors {missing}")
    return int(question.rules.may_lead.sum()), events, bounds
