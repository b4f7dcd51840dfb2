"""The proof of a tree over losses, replayed in whole numbers.

What is proved
--------------
The configurations of a leader ℓ have a score X_s in every scenario s, normal or after a loss, and
a threshold T_s (:mod:`placement.proof.loss_claim`). In a state (I, O), let L_s be the sites that s
takes and f(c) client c's first site of I ∖ L_s. With any u, as for the mean
(:mod:`placement.proof.leader_proof`),

    X_s >= rest_s + Σ_c min(u_c, w_c,f(c)) + Σ_{j ∈ R∩F, j ∉ L_s} ρ_js
    ρ_js = Σ_{c prefers j to f(c)} min(0, w_cj − u_c)

because what is left of R after the loss is an assignment problem without the lost sites. w and
rest_s (K + D·q, :meth:`placement.proof.loss_claim.LossGrid.led`) are those of ℓ. After the loss
that takes ℓ, somebody of the group Γ leads: w takes the least hop to one of Γ, and rest the least
of them. Γ are all voters that are not out, or a single one: then the proof is about the
configurations in which that one takes over. (With leaders that may move, this holds after every
loss, and ℓ counts in.)

For weights λ >= 0, not all 0, and scenarios that hit I, Σ_s λ_s (X_s − T_s) >= 0 says that some X_s
reaches its threshold; the sum is bounded by the sets that the rules allow, as for the mean. For the
goal "weighted" the weights are the probabilities: those of losses that hit I, and for the normal
case what is left of 1, since a loss that misses I costs at least the normal bound without the sites
that it takes.

A site is *out* as a leader where the normal bound, with no site but its own fixed, reaches T_0, and
as a successor where it reaches T of losses: with fewer sites no bound falls.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import Any

import numpy as np

from placement.checks import FloatArray
from placement.proof.event_tree import (
    CELLS_PER_STEP,
    CertificateError,
    EventTree,
    State,
    Work,
)
from placement.proof.exact_costs import ExactCosts
from placement.proof.loss_claim import LossClaim, LossGrid
from placement.proof.multipliers import Betas
from placement.proof.rounded_costs import RoundedCosts
from placement.proof.site_choice import CapUsage, SiteChoice, SortedSites

__all__ = ["LossProof", "reached", "read_multipliers"]

_WEIGHT_BITS = 60
_MOST_BITS = 1000
_NO_BETAS = Betas()


@dataclass(frozen=True, eq=False)
class _BoundPart:
    """One scenario of a bound: its weight in units of 2^-60, and its multipliers."""

    scenario: int
    weight: int
    u: FloatArray


class _GridOfLeader:
    """Costs of the scenarios of one leader and group on one grid."""

    def __init__(self, grid: LossGrid, leader: int, group: Sequence[int]) -> None:
        self.grid = grid
        self._leader, self._group = leader, group

    @cached_property
    def of_leader(self) -> RoundedCosts | ExactCosts:
        """Costs under the leader."""
        return self.grid.costs(self._leader)

    @cached_property
    def of_group(self) -> RoundedCosts | ExactCosts:
        """Costs under the best of the group for each site."""
        return self.grid.costs(self._group)


class LossProof(EventTree[_GridOfLeader, list[_BoundPart]]):
    """The proof of one leader, for one group of successors.

    Parameters
    ----------
    question
        What is to be proved.
    leader
        ℓ.
    heirs
        Γ: sites one of which leads when ℓ is lost.
    work
        Steps that may still be taken.
    whom
        For messages.
    """

    def __init__(
        self, question: LossClaim, leader: int, heirs: Iterable[int], work: Work, whom: str
    ) -> None:
        super().__init__(SiteChoice(question.rules, leader, None), whom, work)
        self.question, self.leader = question, leader
        own = question.loss_of[leader]
        if question.leader_may_move:
            group = {*heirs, leader}
        else:
            group = set(heirs) - (question.lost[own] if own >= 0 else set())
        self.group = sorted(group)
        self._grids = [
            (_GridOfLeader(grid, leader, self.group), cells)
            for grid, cells in ((question.rounded, CELLS_PER_STEP), (question.exact, 1))
            if grid is not None
        ]

    # --- bounds -----------------------------------------------------------------------------

    def _cells(self, multipliers: list[_BoundPart] | None) -> int:
        clients = len(self.question.claim.clients)
        if multipliers is None:
            most = self.choice.rules.replicas_max
            return 2 * most * most * (clients + self.sites)
        return (1 + len(multipliers)) * self.sites * (clients + self.sites)

    def _forms(self, multipliers: list[_BoundPart] | None) -> Iterator[tuple[_GridOfLeader, int]]:
        for form, cells in self._grids:
            costs = form.of_leader
            if isinstance(costs, ExactCosts) or _fit(costs, multipliers or ()):
                yield form, cells

    def _led_by_group(self, scenario: int) -> bool:
        return scenario > 0 and (
            self.question.leader_may_move or self.leader in self.question.sites_lost(scenario)
        )

    def _rest(self, form: _GridOfLeader, scenario: int, state: State) -> int | None:
        leaders = self.group if self._led_by_group(scenario) else (self.leader,)
        return form.grid.led(leaders, self.question.sites_lost(scenario), state)

    def _wanted(
        self,
        form: _GridOfLeader,
        state: State,
        multipliers: list[_BoundPart],
        less: int | None,
    ) -> tuple[float, list[int], list[int]]:
        question, grid = self.question, form.grid
        force = question.in_force(state.inside)
        rho = [0] * self.sites
        if not multipliers:  # it is claimed that there is no set of replicas
            stops = any(self._rest(form, s, state) is None for s in force)
            return -math.inf if stops else math.inf, rho, [0]
        weights, wanted = self._weights(force, multipliers, grid)
        free = self._free(state)
        for part in multipliers:
            lost, weight = question.sites_lost(part.scenario), weights[part.scenario]
            rest = self._rest(form, part.scenario, state)
            if rest is None:
                return -math.inf, rho, [0]
            costs = form.of_group if self._led_by_group(part.scenario) else form.of_leader
            left = [s for s in free if s not in lost]
            fixed, saved = costs.evaluation(state.inside - lost, left, part.u, _NO_BETAS)
            wanted -= weight * (fixed - costs.constant + rest)  # K is part of `rest`
            shares = self._shares_missed(part.scenario, force)
            for s in left:
                rho[s] += (weight - shares[s]) * saved[s]
        return wanted, rho, [0]

    def _weights(
        self, force: set[int], multipliers: list[_BoundPart], grid: LossGrid
    ) -> tuple[dict[int, int], int]:
        """Weight of each scenario, and the sum of the thresholds times these."""
        question = self.question
        if {part.scenario for part in multipliers} - force:
            raise CertificateError(f"proof for {self.whom}: a loss that hits no replica counts")
        if question.goal == "weighted":
            hit = {s: question.shares[s - 1] for s in force if s}
            assert grid.normal is not None
            whole = 1 << question.share_bits
            return {0: whole - sum(hit.values()), **hit}, grid.normal << question.share_bits
        weights = {part.scenario: part.weight for part in multipliers}
        total = 0
        for scenario, weight in weights.items():
            threshold = grid.after if scenario else grid.normal
            if threshold is None:
                raise CertificateError(f"proof for {self.whom}: nothing limits scenario {scenario}")
            total += weight * threshold
        return weights, total

    def _shares_missed(self, scenario: int, force: set[int]) -> list[int]:
        """Weight that ρ of a site has less than the normal case: of the losses that take it."""
        question = self.question
        if scenario or question.goal != "weighted":
            return [0] * self.sites
        return [
            0 if loss < 0 or 1 + loss in force else question.shares[loss]
            for loss in question.loss_of
        ]

    # --- sets of replicas -------------------------------------------------------------------

    def _no_better(self, form: _GridOfLeader, replicas: list[int]) -> bool:
        rules = self.question.rules
        if not CapUsage(rules.of("replicas"), replicas).kept:
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
            if CapUsage(rules.of("voters"), voters).kept and not values.reach(voters):
                return False
        return True

    # --- reading ----------------------------------------------------------------------------

    def _read(self, event: Sequence[Any]) -> list[_BoundPart]:
        bits, parts = index(event[1]), []
        for scenario, weight, numbers in event[2]:
            whole = 1 if weight is None else math.floor(math.ldexp(float(weight), _WEIGHT_BITS))
            if whole < 0:
                raise CertificateError(f"proof for {self.whom}: a negative weight")
            if not 0 <= index(scenario) <= len(self.question.lost):
                raise CertificateError(f"proof for {self.whom}: no scenario {scenario}")
            u = read_multipliers(numbers, bits, len(self.question.claim.clients))
            if whole:
                parts.append(_BoundPart(index(scenario), whole, u))
        if len({part.scenario for part in parts}) != len(parts):
            raise CertificateError(f"proof for {self.whom}: a scenario is told twice")
        if event[2] and not parts:
            raise CertificateError(f"proof for {self.whom}: all weights are 0")
        return parts


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
        self.hits = sorted(self.question.in_force(replicas) - {0})
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
        """Least score of a loss; None: no quorum is left, or nobody of the group can lead."""
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
        costs = self.grid.single(leader)
        if len(voters) < self.question.rules.quorum:
            return None
        if (scenario, leader) not in self._reads:
            lost = self.question.sites_lost(scenario)
            survivors = [r for r in self.replicas if r not in lost]
            self._reads[scenario, leader] = costs.reads(survivors)
        waits = sorted(costs.radius_costs[v] for v in voters)
        return self._reads[scenario, leader] + waits[self.question.rules.quorum - 1]


def _fit(costs: RoundedCosts, parts: Iterable[_BoundPart]) -> bool:
    """Return whether all multipliers have a rounded form."""
    return all(costs.fits(part.u, _NO_BETAS) for part in parts)


def reached(question: LossClaim, site: int, u: FloatArray, work: Work) -> tuple[bool, bool]:
    """Whether a site is out as a leader, and as a successor; see the module."""
    rules = question.rules
    free = [int(s) for s in np.nonzero(rules.may_hold)[0] if s != site]
    closed = frozenset(int(s) for s in np.nonzero(~rules.may_hold)[0]) - {site}
    state = State(frozenset((site,)), closed)
    none = np.zeros(len(rules.may_hold), dtype=bool)
    any_set = dataclasses.replace(rules, replicas_min=1, voters=0, must_hold=none, must_vote=none)
    choice = SiteChoice(any_set, None, None)
    out = [False, False]
    for grid, cells in ((question.rounded, CELLS_PER_STEP), (question.exact, 1)):
        if grid is None:
            continue
        costs = grid.single(site)
        if isinstance(costs, RoundedCosts) and not costs.fits(u, _NO_BETAS):
            continue
        work.take(len(rules.may_hold) * len(question.claim.clients) // cells + 1000)
        fixed, rho = costs.evaluation(state.inside, free, u, _NO_BETAS)
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


def read_multipliers(numbers: Sequence[Any], bits: int, clients: int) -> FloatArray:
    """Multipliers as whole numbers of 2^-bits; ValueError where they are none."""
    if len(numbers) != clients or abs(bits) > _MOST_BITS:
        raise ValueError("a list of multipliers has the wrong length or grid")
    whole = [index(x) for x in numbers]
    if any(abs(x) >= 1 << 53 for x in whole):
        raise ValueError("a multiplier is too large")
    return np.ldexp(np.array(whole, dtype=np.float64), -bits)
