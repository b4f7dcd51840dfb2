"""Shares of late operations after losses, from below, in whole numbers.

After the loss of F, under the leader ℓ' that is left, the share is that of
:mod:`placement.proof.late.late_claim` with R ∖ F and V ∖ F, and does not depend on the sites of F.
Where ℓ is lost or may move, the best of those who may lead then counts, and a bound takes the least
of each client's shares and of d over all of them. Left out are those under whom every client at its
best site and the best voters are late already: with fewer sites neither falls.

V ∖ F has at most v − 1 voters beside ℓ', one less where ℓ was lost, and at least v − |F|. Those
that are lost never answer, so that d falls with every voter more, and the bound on d for the most
of them holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from placement.proof.costs.rounded_costs import TableCosts
from placement.proof.event_tree import CELLS_PER_STEP, State
from placement.proof.late.late_claim import LateClaim, LateTables
from placement.support.work import Work

__all__ = ["LossTables"]


class LossTables:
    """Shares of late operations under everyone who may lead after a loss.

    Parameters
    ----------
    question
        What is to be proved, with losses.
    deadline
        Out of reach with nothing lost, in bins: after losses that of the limit counts, if any.
    work
        Steps that may still be taken.
    """

    def __init__(self, question: LateClaim, deadline: int, work: Work) -> None:
        self.question, self.work = question, work
        self.deadline = deadline if question.limit is None else question.limit
        self._tables: dict[int, LateTables] = {}
        self._costs: dict[tuple[int, ...], TableCosts] = {}
        self._reads: dict[tuple[int, frozenset[int]], int] = {}
        self._led: dict[tuple[int, frozenset[int]], int] = {}
        self._order = list(question.losses)  # what ruled out something last comes first

    def under(self, leader: int) -> LateTables:
        """Shares under a leader."""
        if leader not in self._tables:
            question = self.question
            sites, clients = len(question.rules.may_hold), len(question.claim.clients)
            cells = sites * (clients + sites) * (self.deadline + 1) * (1 + len(question.flows))
            self.work.take(cells // CELLS_PER_STEP)
            self._tables[leader] = LateTables(question, leader, self.deadline, self.work)
        return self._tables[leader]

    @cached_property
    def successors(self) -> tuple[int, ...]:
        """Sites under which few enough operations may be late."""
        rules = self.question.rules
        held, found = set(np.nonzero(rules.may_hold)[0].tolist()), []
        for site in np.nonzero(rules.may_vote)[0].tolist():
            inside, tables = frozenset((site,)), self.under(site)
            state = State(inside, frozenset(range(len(rules.may_hold))) - held - inside)
            led = tables.led(state)
            nearby = tables.costs.least(inside, sorted(held - inside))
            if led is not None and nearby + led < self.question.budget:
                found.append(site)
        return tuple(found)

    def leaders(self, leader: int, lost: frozenset[int]) -> tuple[int, ...]:
        """Return the sites that may lead after a loss under a leader, eliminated sites left out."""
        if leader not in lost and not self.question.leader_may_move:
            return (leader,)
        return tuple(h for h in self.successors if h not in lost)

    def costs(self, leaders: tuple[int, ...]) -> TableCosts:
        """Shares of operations that ask nearby under the best of some leaders for each client."""
        if len(leaders) == 1:
            return self.under(leaders[0]).costs
        if leaders not in self._costs:
            each = [self.under(leader).shares for leader in leaders]
            grid = self.under(leaders[0]).costs.grid
            self._costs[leaders] = TableCosts(
                self.question.claim.rank, grid, np.minimum.reduce(each)
            )
        return self._costs[leaders]

    def led(
        self, leader: int, leaders: Sequence[int], lost: frozenset[int], state: State
    ) -> int | None:
        """Least d after a loss under `leader`; None: no site can lead in time, or no quorum.

        Parameters
        ----------
        leader
            ℓ.
        leaders
            Who may lead then.
        lost
            F.
        state
            I, O and free sites.
        """
        rules = self.question.rules
        most = rules.voters - 1 - (leader in lost)
        votes = int(rules.may_vote[sorted(lost)].sum())
        fewest = min(most, max(rules.quorum, rules.voters - votes) - 1)
        found = [
            self.under(h).led(state, lost, most, fewest) for h in leaders if h not in state.outside
        ]
        return min((late for late in found if late is not None), default=None)

    def closed(self, leader: int, state: State) -> bool:
        """Return whether some loss leaves too few voters of a set, or too much of it late."""
        return any(
            self._first(lost)
            for lost in self._order
            if lost & state.inside and self._set_late(leader, lost, state)
        )

    def _set_late(self, leader: int, lost: frozenset[int], state: State) -> bool:
        leaders = self.leaders(leader, lost)
        led = self.led(leader, leaders, lost, state)
        left = sorted(state.inside - lost)
        return led is None or self.costs(leaders).reads(left) + led >= self.question.budget

    def late(self, leader: int, replicas: frozenset[int], voters: frozenset[int]) -> bool:
        """Return whether some loss leaves no quorum of a configuration, or too much of it late."""
        return any(
            self._first(lost)
            for lost in self._order
            if lost & replicas and self._plan_late(leader, lost, replicas, voters)
        )

    def _plan_late(
        self,
        leader: int,
        lost: frozenset[int],
        replicas: frozenset[int],
        voters: frozenset[int],
    ) -> bool:
        rules, alive = self.question.rules, voters - lost
        if len(alive) < rules.quorum:
            return True
        leaders = self.leaders(leader, lost)
        elected = [h for h in alive if rules.may_lead[h]] or alive
        if leader in alive and not self.question.leader_may_move:
            elected = [leader]
        return all(
            self._share(h, replicas - lost, alive) >= self.question.budget
            for h in elected
            if h in leaders
        )

    def _first(self, lost: frozenset[int]) -> bool:
        """Evaluate a loss before the other losses from now on."""
        self._order = [lost, *(other for other in self._order if other is not lost)]
        return True

    def _share(self, leader: int, replicas: frozenset[int], voters: frozenset[int]) -> int:
        if (leader, replicas) not in self._reads:
            reads = self.under(leader).costs.reads(sorted(replicas))
            self._reads[leader, replicas] = reads
        if (leader, voters) not in self._led:
            self._led[leader, voters] = self.under(leader).of(voters)
        return self._reads[leader, replicas] + self._led[leader, voters]
