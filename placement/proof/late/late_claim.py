"""Shares of late operations at a deadline, from below, in whole numbers.

The p-th percentile of a configuration is at most t only if no more than a share 1 − p of all
operations takes longer than t (docs/tail.md). Under a leader ℓ that share is

    late(R, V) = Σ_c s(c, near(c, R)) + d(V)
    s(c, r) = Σ n_c · P(α H_cr + β H_rℓ > t)      operations that ask nearby
    d(V)    = Σ n_c · P(γ H_cℓ + δ Q_ℓ(V) > t)    operations that ask the leader

d is worked out in :mod:`placement.proof.late.late_votes`. Where RTTs vary by interval, a client has
one row for each interval, d is the sum over the intervals, and shares are of the operations of all.

Both are computed here a second time, without the transforms of the evaluator. Every probability of
being in time is a sum of products of doubles >= 0, with a relative error of less than
`terms` · 2^-52; it is raised by that before it is taken from 1, and shares are rounded down to
multiples of 2^-50. What follows is whole numbers.

The evaluator cuts off probabilities below 1e-13 and allows 1e-12 for its transforms. So a
configuration that it says to keep t has a share of late operations of at most 1 − p + 2e-12 + 1e-13
for each bin of the longest sum.

Shares of late operations after losses, from below, in whole numbers.

After the loss of F, under the leader ℓ' that is left, the share is the one above with R ∖ F and
V ∖ F, and does not depend on the sites of F.
Where ℓ is lost or may move, the best of those who may lead then counts, and a bound takes the least
of each client's shares and of d over all of them. Left out are those under whom every client at its
best site and the best voters are late already: with fewer sites neither falls.

V ∖ F has at most v − 1 voters beside ℓ', one less where ℓ was lost, and at least v − |F|. Those
that are lost never answer, so that d falls with every voter more, and the bound on d for the most
of them holds.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction
from functools import cached_property

import numpy as np

from placement.model.constraints import Rules
from placement.problem import Problem
from placement.proof.claim import Claim, Scale
from placement.proof.costs.rounded_costs import TableCosts
from placement.proof.event_tree import CELLS_PER_STEP, State
from placement.proof.late.late_votes import LESS, SHARE_BITS, UNIT, LateVotes, raised, repeated
from placement.support.checks import FloatArray, IntArray
from placement.support.work import Work
from placement.tail.objective import Flow, Percentile, flows
from placement.tail.rtt_distributions import Distributions

_TOLERANCE, _PER_BIN = Fraction(2, 10**12), Fraction(1, 10**13)
_OVERFLOWS = 1 - 3e-9  # the evaluator calls a latency of mass below 1 - 1e-9 one that overflows
_ROUNDED_PER_BIN, _ROUNDED_PER_CLIENT = 4e-15, 4e-15  # what the tables may be too low by


def rounding_of_shares(last: int, clients: int) -> float:
    """Share of late operations by which these tables and their budget may be off."""
    return 2 * float(_TOLERANCE) + float(_PER_BIN) * (last + 1) + rounding_of_tables(last, clients)


def rounding_of_tables(last: int, clients: int) -> float:
    """Share of late operations by which the tables may be off; `last`: of the longest sum."""
    return _ROUNDED_PER_BIN * (last + 1) + _ROUNDED_PER_CLIENT * clients


def last_deadline(ways: Iterable[Flow], distributions: Sequence[Distributions]) -> int:
    """Return the latest deadline that says anything, in bins, for ways of all scenarios.

    No latency is above the horizon of every trip: hops · (bins − 1). Where every trip between a
    client and a site has mass beyond the horizon, so has every latency, and the evaluator calls
    percentiles beyond the horizon infinite. Where only some trips have, a plan without these trips
    may keep a later deadline.
    """
    found, bins = list(ways), distributions[0].bins
    last = max((flow.hops for flow in found), default=0) * (bins - 1)
    mass = max(float(one.client_site.mass.max()) for one in distributions)
    overflows = mass <= _OVERFLOWS and all(flow.near + flow.direct for flow in found)
    return min(last, bins - 1) if overflows else last


def whole_share(threshold: float) -> int:
    """Return the least share on the grid that is above a threshold."""
    return math.ceil(math.ldexp(threshold, SHARE_BITS)) + 1


class LateClaim:
    """Data of the shares of late operations: the demand, `goal` with the distributions, rules.

    `distributions` and `flows` (ways that operations go, with their shares) are of each scenario of
    the demand; so is `issued`, the clients that ask a replica nearby. ValueError where an operation
    asks a replica nearby and the leader besides.
    """

    def __init__(self, problem: Problem, goal: Percentile, rules: Rules) -> None:
        self.problem, self.rules = problem, rules
        self.distributions = goal.by_scenario(problem)
        self.claim = Claim(problem, 0.0, 0.0)
        scenarios = range(len(self.distributions))
        by_scenario = [flows(problem, scenario) for scenario in scenarios]
        found = [flow for ways in by_scenario for flow in ways]
        total = sum(float(flow.weight.sum()) for flow in found)
        self.flows = [[(flow, flow.weight / total) for flow in ways] for ways in by_scenario]
        clients = self.claim.clients % len(problem.instance.clients)
        self.issued = [clients[self.claim.scenario == scenario] for scenario in scenarios]
        if any((f.near or f.relay) and (f.direct or f.quorum) for f in found):
            raise ValueError("an operation asks a replica nearby and the leader besides")

    def nearby(self, scenario: int, site: int) -> FloatArray:
        """P(H_cr = u) of these clients at a site, shape (clients, bins)."""
        return self.distributions[scenario].client_site[self.issued[scenario], site]


class LateTables:
    """Shares of late operations under one leader at one deadline, in bins, >= 0.

    `shares` are s of the clients that ask a replica nearby, shape (clients, sites), and `costs` are
    bounds with them. Steps of each share d are counted when it is worked out.
    """

    bits = SHARE_BITS

    def __init__(self, question: LateClaim, leader: int, deadline: int, work: Work) -> None:
        self.question, self.leader, self.deadline = question, leader, deadline
        claim = question.claim
        scenarios = range(len(question.distributions))
        self.shares: IntArray = np.concatenate([self._nearby(k) for k in scenarios])
        scale = Scale(SHARE_BITS, math.ldexp(1.0, SHARE_BITS))
        self.costs = TableCosts(claim.rank, scale, self.shares)
        self._votes = [
            LateVotes(
                question.rules, question.distributions[k], question.flows[k],
                claim.scenario_rtt[k], leader, deadline, work,
            )
            for k in scenarios
        ]  # fmt: skip

    # --- operations that ask nearby -----------------------------------------------------------

    def _nearby(self, scenario: int) -> IntArray:
        """Shares s of the active clients of a scenario, shape (clients, sites)."""
        question, clients = self.question, self.question.issued[scenario]
        late = np.zeros((len(clients), len(question.rules.may_hold)))
        for flow, weight in question.flows[scenario]:
            if flow.near or flow.relay:
                for site in range(late.shape[1]):
                    in_time = self._in_time(flow, site, scenario)
                    late[:, site] += weight[clients] * np.maximum(0.0, 1 - in_time - UNIT)
        return np.floor(np.ldexp(late * LESS * LESS, SHARE_BITS)).astype(np.int64)

    def _in_time(self, flow: Flow, site: int, scenario: int) -> FloatArray:
        """P(α H_cr + β H_rℓ <= t), rounded up, shape (clients,)."""
        distributions, times = self.question.distributions[scenario], self.deadline + 1
        near = self.question.nearby(scenario, site)
        first = repeated(near, flow.near)[:, :times]
        if not flow.relay:
            return raised(first.sum(axis=1), first.shape[1] * max(1, flow.near))
        hop = distributions.site_site[site, self.leader][np.newaxis]
        relayed = np.cumsum(repeated(hop, flow.relay)[0])
        left = np.minimum(self.deadline - np.arange(first.shape[1]), len(relayed) - 1)
        terms = (first.shape[1] + len(relayed)) * (flow.near + flow.relay)
        return raised(first @ relayed[left], terms)

    # --- operations that ask the leader ---------------------------------------------------------

    def led(
        self,
        state: State,
        lost: frozenset[int] = frozenset(),
        most: int | None = None,
        fewest: int | None = None,
    ) -> int | None:
        """Return d from below for the voters that a state leaves; None: there are too few.

        `lost` sites do not vote. Beside the leader vote `most` sites at most and `fewest` at least;
        None: v − 1.
        """
        total = 0
        for votes in self._votes:
            late = votes.led(state, lost, most, fewest)
            if late is None:
                return None
            total += late
        return total

    def none_below(self, state: State, cutoff: int, near: Collection[int] | None, far: int) -> bool:
        """Return whether every set of voters that a state leaves has a d of at least `cutoff`.

        Never so where RTTs vary by interval: this proof is about one interval. With `near` all
        voters but at most `far` and the leader are of these sites, the closest ones.
        """
        return len(self._votes) == 1 and self._votes[0].none_below(state, cutoff, near, far)

    def of(self, voters: Collection[int]) -> int:
        """Return d of a set of voters from below."""
        return sum(votes.of(voters) for votes in self._votes)


class LossTables:
    """Shares of late operations under everyone who may lead after a loss.

    At `deadline`, in bins, a share of `threshold`, on the grid, is too much.
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
        """Least d after the loss of F; None: no site can lead in time, or no quorum.

        `leader` led before, and one of `leaders` may lead then.
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
