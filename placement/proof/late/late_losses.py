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


class LossTables:
    """Shares of late operations under everyone who may lead after a loss.

    Parameters
    ----------
    question
        What shares are worked out from.
    deadline
        In bins.
    threshold
        Share that is too much, on the grid.
    work
        Steps that may still be taken.
    """

    def __init__(self, question: LateClaim, deadline: int, threshold: int, work: Work) -> None:
        self.question, self.work = question, work
        self.deadline, self.threshold = deadline, threshold
        self._tables: dict[int, LateTables] = {}
        self._costs: dict[tuple[int, ...], TableCosts] = {}
        self._reads: dict[tuple[int, frozenset[int]], int] = {}
        self._led: dict[tuple[int, frozenset[int]], int] = {}

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
            if led is not None and nearby + led < self.threshold:
                found.append(site)
        return tuple(found)

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

    def elected(self, alive: frozenset[int]) -> list[int]:
        """Return the voters of whom one leads."""
        may_lead = self.question.rules.may_lead
        return [h for h in alive if may_lead[h]] or list(alive)

    def share(self, leader: int, replicas: frozenset[int], voters: frozenset[int]) -> int:
        """Return the share that is late in a plan from below."""
        if (leader, replicas) not in self._reads:
            reads = self.under(leader).costs.reads(sorted(replicas))
            self._reads[leader, replicas] = reads
        if (leader, voters) not in self._led:
            self._led[leader, voters] = self.under(leader).of(voters)
        return self._reads[leader, replicas] + self._led[leader, voters]
