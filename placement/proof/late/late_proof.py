"""The proof of one leader about a percentile, replayed in whole numbers.

Scenario 0 is the share of late operations at a deadline, with the threshold of what may be late;
scenario 1 is the mean, with the threshold that is claimed of it, or none
(:mod:`placement.proof.threshold_proof`). A configuration that reaches the first threshold exceeds
the deadline. Shares of late operations fall as the deadline grows, so a proof may be about a later
deadline than the claim. s, d and their rounding: :mod:`placement.proof.late.late_claim`.

Where losses are to be survived, scenario 2 + L is the share of late operations after the loss L
(:mod:`placement.proof.late.late_losses`). It counts in a state that has a replica there.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from placement.proof.choice.site_choice import SiteChoice
from placement.proof.choice.sorted_sites import SortedSites
from placement.proof.costs.exact_costs import ExactCosts
from placement.proof.costs.led_costs import LedCosts
from placement.proof.costs.rounded_costs import TableCosts
from placement.proof.event_tree import CELLS_PER_STEP, State
from placement.proof.late.late_claim import LateClaim, LateTables
from placement.proof.late.late_losses import LossTables
from placement.proof.threshold_proof import NO_BETAS, BoundPart, VotersProof
from placement.support.work import Work

__all__ = ["LateProof"]

_LATE, _MEAN = 0, 1


class LateProof(VotersProof[LedCosts]):
    """The proof of one leader.

    Parameters
    ----------
    question
        What is to be proved.
    leader
        ℓ.
    deadline
        That of the share of late operations, in bins.
    work
        Steps that may still be taken.
    losses
        Shares after losses; None: none is to be survived.
    """

    def __init__(
        self,
        question: LateClaim,
        leader: int,
        deadline: int,
        work: Work,
        losses: LossTables | None = None,
    ) -> None:
        self.question, self.leader, self.losses = question, leader, losses
        claim, rules = question.claim, question.rules
        sites, clients = len(rules.may_hold), len(claim.clients)
        cells = sites * (clients + sites)
        work.take(cells * (deadline + 1) * (1 + len(question.flows)) // CELLS_PER_STEP)
        self.tables = LateTables(question, leader, deadline, work)
        self._led: dict[frozenset[int], int] = {}  # d by voters
        exact = claim.rounded is None
        grids = [(LedCosts(claim, exact=exact), CELLS_PER_STEP)]
        if question.bound is not None and not exact:
            grids.append((LedCosts(claim, exact=True), 1))
        choice = SiteChoice(rules, leader, None)
        scenarios = 2 + len(question.losses)
        super().__init__(choice, f"leader {leader}", work, clients, scenarios, grids)

    # --- bounds -----------------------------------------------------------------------------

    def _in_force(self, state: State) -> set[int]:
        hit = (2 + n for n, lost in enumerate(self.question.losses) if lost & state.inside)
        return {_LATE, _MEAN, *hit}

    def _lost(self, scenario: int) -> frozenset[int]:
        return self.question.losses[scenario - 2] if scenario > _MEAN else super()._lost(scenario)

    def _costs(self, form: LedCosts, scenario: int) -> TableCosts | ExactCosts:
        if self.losses is not None and scenario > _MEAN:
            # without anyone who can lead in time, `_rest` says that nothing is left
            leaders = self.losses.leaders(self.leader, self._lost(scenario)) or (self.leader,)
            return self.losses.costs(leaders)
        return self.tables.costs if scenario == _LATE else form.single(self.leader)

    def _rest(self, form: LedCosts, scenario: int, state: State) -> int | None:
        if self.losses is not None and scenario > _MEAN:
            lost = self._lost(scenario)
            leaders = self.losses.leaders(self.leader, lost)
            return self.losses.led(self.leader, leaders, lost, state)
        if scenario == _LATE:
            return self.tables.led(state)
        return form.led((self.leader,), frozenset(), state)

    def _threshold(self, form: LedCosts, scenario: int) -> int | None:
        if scenario != _MEAN:
            return self.question.budget
        return None if self.question.bound is None else form.threshold(self.question.claim.needed)

    def _bits(self, form: LedCosts, scenario: int) -> int:
        return form.bits if scenario == _MEAN else self.tables.bits

    def _no_voters(self, form: LedCosts, state: State, parts: Sequence[BoundPart]) -> bool:
        """Return whether the clients' bound of each scenario leaves too little for any voters."""
        rules, near = self.question.rules, None
        cutoff = 1 << self.tables.bits
        for part in parts:
            if part.scenario > _MEAN:  # the voters after a loss are others
                continue
            self.bounds += 1
            costs, threshold = (
                self._costs(form, part.scenario),
                self._threshold(form, part.scenario),
            )
            if threshold is None:
                return False
            open_sites = self._open_sites(state)
            fixed, rho = costs.evaluation(state.inside, open_sites, part.u, NO_BETAS)
            longer = costs.detours(state.inside, open_sites)
            rho = [saved + more for saved, more in zip(rho, longer, strict=True)]
            least = self.choice.least_sum(SortedSites(state.inside, open_sites, rho))
            if least is None:
                return True
            left = threshold - fixed - least
            if part.scenario == _LATE:
                cutoff = left
            else:  # `fixed` has the constant
                waits = form.waits(self.leader)
                near = {s for s, wait in enumerate(waits) if wait < left}
                if self.leader not in near:
                    return True
        far = rules.voters - rules.quorum
        return self.tables.none_below(state, cutoff, near, far)

    # --- sets of replicas -------------------------------------------------------------------

    def _no_better(self, form: LedCosts, replicas: list[int]) -> bool:
        rules, late = self.question.rules, self.tables
        if not all(group.satisfied(replicas) for group in rules.of("replicas")):
            return True
        able = [r for r in replicas if rules.may_vote[r]]
        pinned = {int(s) for s in np.nonzero(rules.must_vote)[0]} | {self.leader}
        spare = rules.voters - len(pinned)
        if len(able) < rules.voters or not pinned <= set(able) or spare < 0:
            return True
        chosen = frozenset(replicas)
        state = State(chosen, frozenset(range(self.sites)) - chosen)
        nearby, least = late.costs.reads(replicas), late.led(state)
        costs, mean = form.single(self.leader), self._threshold(form, _MEAN)
        if least is None or nearby + least >= self.question.budget:
            return True
        if self.losses is not None and self.losses.closed(self.leader, state):
            return True
        reads = costs.reads(replicas) if mean is not None else 0
        others, groups = [r for r in able if r not in pinned], rules.of("voters")
        self.work.take(math.comb(len(others), spare) * rules.voters)
        for more in itertools.combinations(others, spare):
            listed = [*pinned, *more]
            voters = frozenset(listed)
            if not all(group.satisfied(listed) for group in groups):
                continue
            if mean is not None and reads + form.wait(self.leader, listed) >= mean:
                continue
            if voters not in self._led:
                self._led[voters] = late.of(voters)
            if nearby + self._led[voters] < self.question.budget and not (
                self.losses is not None and self.losses.late(self.leader, chosen, voters)
            ):
                return False
        return True
