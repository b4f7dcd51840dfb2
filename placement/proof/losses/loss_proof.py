"""The proof of a tree over losses, replayed in whole numbers.

What is proved
--------------
The configurations of a leader ℓ have a score in every scenario, normal or after a loss, and reach
one of the thresholds of :mod:`placement.proof.losses.loss_claim`. The bound of a scenario is that
of :mod:`placement.proof.threshold_proof`: what is left of R after a loss is an assignment problem
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
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from placement.proof.choice.site_choice import SiteChoice
from placement.proof.choice.sorted_sites import SortedSites
from placement.proof.costs.exact_costs import ExactCosts
from placement.proof.costs.rounded_costs import RoundedCosts
from placement.proof.event_tree import CELLS_PER_STEP, State
from placement.proof.losses.loss_claim import LossClaim, LossGrid
from placement.proof.threshold_proof import NO_BETAS, BoundPart, ThresholdProof
from placement.support.checks import FloatArray
from placement.support.work import Work

__all__ = ["LossProof", "reached"]


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
