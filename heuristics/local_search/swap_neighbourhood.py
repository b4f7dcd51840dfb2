"""The swap neighbourhood of many (leader, replica set) pairs at once.

For a replica set R with leader ℓ a move takes one replica out, brings one site in, or both.
Following Resende and Werneck, "On the implementation of a swap-based local search procedure for
the p-median problem", ALENEX 2003, the value of every move comes from two replicas per client
alone: the nearest and the second nearest. With s_ℓ(c, r) of :mod:`heuristics.objective_terms`,

    T[out, in] = gain(in) + correction(out, in)
    gain(in)            = Σ_c s_ℓ(c, in if in ⪯_c near(c) else near(c))
    correction(out, in) = Σ_{c: near(c) = out} s_ℓ(c, in if in ⪯_c second(c) else second(c))
                                             − s_ℓ(c, in if in ⪯_c near(c) else near(c))

⪯_c is the client's strict order by RTT, not by cost: a closer replica takes a client over even
where relaying through it costs more, so that a replica can harm and gains may be negative. The
quorum wait follows in closed form: when x joins a set whose (m−1)-th and m-th smallest RTTs from
ℓ are lo and hi, the m-th smallest becomes min(max(x, lo), hi); under one cap on failure domains see
:func:`capped_waits`. s_ℓ(c, in if in ⪯_c …) comes from :class:`InsertionCosts`.

All moves of B pairs cost O(B·C·S) and one matrix product of B·|R|·C·S.

**Starts.** Sets are grown one site at a time, for many leaders at once: the greedy heuristic of the
p-median problem (Cornuéjols, Fisher and Nemhauser, Management Science 23(8), 1977) with the summand
of Eq. 1: begin with the leader, or with the leader and its closest quorum, and add the site after
which the score is lowest until there are n replicas. Quorum waits are left out, as a set is too
small to have one for most of its growth.

With `among` > 1 each addition is drawn evenly from the best few: the construction phase of GRASP
(Feo and Resende, Journal of Global Optimization 6, 1995). Where relayed reads make replicas harm
each other, good sets have next to nothing in common, and such starts reach them where shaking a
local optimum does not.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from heuristics import tuning
from heuristics.objective_terms import ObjectiveTerms
from placement.model.constraints import GroupRule, Rules
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray, IntArray


@dataclass
class Pairs:
    """A batch of B (leader, replica set) pairs, changed in place by searches."""

    leaders: IntArray  #: ℓ, shape (B,)
    #: sites of R in any order, shape (B, W), W > |R|; the places left over hold the number of
    #: sites, which stands for "none"
    replicas: IntArray

    def __len__(self) -> int:
        return len(self.leaders)

    def take(self, rows: IntArray | BoolArray) -> Pairs:
        """Copy some of the pairs."""
        return Pairs(self.leaders[rows], self.replicas[rows])

    @staticmethod
    def join(parts: list[Pairs]) -> Pairs:
        """Put batches of the same width one after another."""
        return Pairs(
            np.concatenate([part.leaders for part in parts]),
            np.concatenate([part.replicas for part in parts]),
        )


@dataclass(frozen=True, eq=False)
class SwapNeighbourhood:
    """Values of moves for one problem."""

    problem: Problem  #: the question
    terms: ObjectiveTerms  #: of the problem, or of another objective on its sites
    rules: Rules  #: constraints on site indices, usually those of the problem

    @cached_property
    def exact(self) -> bool:
        """Return whether the table has the waits of the best voters, not only lower bounds."""
        rules = self.rules
        pins = int(rules.must_vote.sum())
        only_leader = pins == 1 and bool((rules.may_lead == rules.must_vote).all())
        return (
            self.problem.demand.scenarios == 1
            and (not rules.of("voters") or self._cap is not None)
            and (pins == 0 or only_leader)
        )

    @cached_property
    def _cap(self) -> tuple[IntArray, int] | None:
        """Domains and cap where one cap is all that binds voters, in one scenario."""
        rules = self.rules.of("voters")
        if self.problem.demand.scenarios > 1 or len(rules) != 1 or rules[0].cap is None:
            return None
        return None if rules[0].has_minimum else (rules[0].labels, rules[0].cap)

    @cached_property
    def _ranks(self) -> Ranks:
        """Ranks by site, shape (sites + 1, rows); "none" comes after every site."""
        none = np.full((1, len(self.terms.rank)), self.terms.sites)
        return np.ascontiguousarray(np.vstack([self.terms.rank.T, none]), dtype=np.int32)

    @cached_property
    def _without_leader(self) -> InsertionCosts:
        """Costs of the rows without their relay, as of one pair."""
        cost, none = self.terms.served, np.full((len(self.terms.order), 1), self.terms.sites)
        served = np.hstack([cost, np.zeros((len(cost), 1))])
        ranks = np.ascontiguousarray(self._ranks.T)
        return InsertionCosts(ranks, np.hstack([self.terms.order, none]), served[np.newaxis])

    @cached_property
    def _relay_rtt(self) -> FloatArray:
        """d(r, ℓ) in each scenario, shape (leaders, scenarios, sites + 1)."""
        rtt = self.terms.site_rtt.transpose(2, 0, 1)
        return np.concatenate([rtt, np.zeros((*rtt.shape[:2], 1))], axis=2)

    @cached_property
    def _waits(self) -> FloatArray:
        """RTT from ℓ to sites that may vote, else infinite: (scenarios, leaders, sites + 1)."""
        rtt = np.where(self.rules.may_vote, self.terms.site_rtt, np.inf)
        none = np.full((*rtt.shape[:2], 1), np.inf)
        return np.concatenate([rtt, none], axis=2)

    @cached_property
    def _prices(self) -> FloatArray | None:
        """Price of each site under each leader, shape (leaders, sites + 1); None: no budget."""
        if self.rules.budget is None:
            return None
        rows = [self.problem.site_costs(ell) for ell in range(self.terms.sites)]
        return np.array([np.append(row, 0.0) for row in rows if row is not None])

    def insertions(self, leaders: IntArray) -> InsertionCosts:
        """Return the costs of clients when a site joins, for pairs with these leaders."""
        alone, relay = self._without_leader, self.terms.relay[:, np.newaxis]
        relayed = self._relay_rtt[leaders][:, self.terms.scenario]
        return dataclasses.replace(alone, summands=alone.summands + relayed * relay)

    def moves(self, pairs: Pairs, insertions: InsertionCosts) -> tuple[FloatArray, FloatArray]:
        """Value of every move without the quorum wait: (values now, table of values after).

        Now: the objective of the B pairs less D·q, shape (B,), to rounding. The table has shape (B,
        W, sites + 1) as [pair, place that is vacated, site that comes in]; the first place that
        holds "none" vacates nothing, site number `sites` brings nothing in. Infinite for moves that
        break a rule that can be read off counts. `insertions` are those of the leaders, or of other
        summands.
        """
        now, table = self._client_part(pairs, insertions)
        if self.rules.cost_weight:
            self._add_money(pairs, now, table)
        constant = self.terms.direct[pairs.leaders]
        now += constant
        table += constant[:, np.newaxis, np.newaxis]
        np.copyto(table, np.inf, where=~self.allowed(pairs))
        return now, table

    def additions(self, pairs: Pairs, insertions: InsertionCosts) -> FloatArray:
        """Objective less D·q after one more site, shape (B, sites): the table's cheap part.

        Infinite for sites that are there already or may hold no replica; no other rule is heeded.
        """
        joined = insertions.costs_after(self._ranks[pairs.replicas].min(axis=1))
        after = _summed(joined)[:, :-1] + self.terms.direct[pairs.leaders][:, np.newaxis]
        if self.rules.cost_weight:
            after += self.terms.money[pairs.leaders]
        members = np.zeros((len(pairs), self.terms.sites + 1), dtype=bool)
        members[np.arange(len(pairs))[:, np.newaxis], pairs.replicas] = True
        after[members[:, :-1] | ~self.rules.may_hold] = np.inf
        return np.asarray(after)

    def waits(self, pairs: Pairs) -> tuple[FloatArray, FloatArray]:
        """D·q of the m voters that answer first, now and after each move: shapes as in `moves`.

        The wait of the best voter set where :attr:`exact` holds, infinite if there is none under
        a cap; a lower bound on it elsewhere.
        """
        m = self.rules.quorum
        if self._cap is not None:
            return self._waits_under_cap(pairs, *self._cap)
        count, width = pairs.replicas.shape
        now = np.zeros(count)
        table = np.zeros((count, width, self.terms.sites + 1))
        rows = np.arange(count)[:, np.newaxis]
        for k, votes in enumerate(self.terms.votes.tolist()):
            if not votes:
                continue
            waits = self._waits[k][pairs.leaders]  # (B, sites + 1)
            held = waits[rows, pairs.replicas]
            turn = np.argsort(held, axis=1, kind="stable")
            place = np.empty_like(turn)
            place[rows, turn] = np.arange(width)
            ordered = held[rows, turn]
            ordered = np.hstack([ordered, np.full((count, 1), np.inf)])
            # the (m−1)-th and the m-th smallest that are left when a place is vacated
            high = ordered[rows, np.where(place < m, m, m - 1)]
            low = ordered[rows, np.where(place < m - 1, m - 1, m - 2)] if m > 1 else 0.0 * place
            now += votes * ordered[:, m - 1]
            after = np.maximum(waits[:, np.newaxis, :], low[:, :, np.newaxis])
            np.minimum(after, high[:, :, np.newaxis], out=after)
            after *= votes
            table += after
        return now, table

    def _waits_under_cap(
        self, pairs: Pairs, labels: IntArray, cap: int
    ) -> tuple[FloatArray, FloatArray]:
        votes, rules = float(self.terms.votes[0]), self.rules
        now, table = capped_waits(
            self._waits[0][pairs.leaders], pairs.replicas, labels, cap, rules.quorum, rules.voters
        )
        for waits in (now, table):
            np.multiply(waits, votes, out=waits, where=np.isfinite(waits))
        return now, table

    def _client_part(
        self, pairs: Pairs, insertions: InsertionCosts
    ) -> tuple[FloatArray, FloatArray]:
        """Σ_c s_ℓ(c, ·) now and after each move, from nearest and second nearest replicas."""
        held = self._ranks[pairs.replicas]  # (B, W, rows)
        first = held.min(axis=1)
        serves = held == first[:, np.newaxis]
        held += serves * np.int32(self.terms.sites)
        second = np.minimum(held.min(axis=1), np.int32(self.terms.sites))
        joined = insertions.costs_after(first)
        changed = insertions.costs_after(second)
        changed -= joined
        table = serves.astype(np.float64) @ changed
        gain = _summed(joined)
        table += gain[:, np.newaxis, :]
        return gain[:, -1].copy(), table

    def _add_money(self, pairs: Pairs, now: FloatArray, table: FloatArray) -> None:
        money = np.hstack([self.terms.money, np.zeros((self.terms.sites, 1))])[pairs.leaders]
        held = np.take_along_axis(money, pairs.replicas, axis=1)
        now += held.sum(axis=1)
        table += (held.sum(axis=1)[:, np.newaxis] - held)[:, :, np.newaxis]
        table += money[:, np.newaxis, :]

    @cached_property
    def _free(self) -> BoolArray:
        """Sites that may leave unless they lead, shape (sites + 1,)."""
        return np.append(~self.rules.must_hold, False)

    @cached_property
    def _usable(self) -> BoolArray:
        """Sites that may come in, shape (sites + 1,)."""
        return np.append(self.rules.may_hold, False)

    @cached_property
    def _silent(self) -> bool:
        """Return whether some replicas may not vote."""
        return bool((self.rules.may_hold & ~self.rules.may_vote).any())

    def allowed(self, pairs: Pairs) -> BoolArray:
        """Moves that keep pins, |R|, the rules for replicas, the budget and enough voters.

        Shape (B, W, sites + 1), as the table of :meth:`moves`.
        """
        rules, none = self.rules, self.terms.sites
        count = len(pairs)
        real = pairs.replicas < none
        size = real.sum(axis=1)
        vacates = self._free[pairs.replicas] & (pairs.replicas != pairs.leaders[:, np.newaxis])
        members = np.zeros((count, none + 1), dtype=bool)
        members[np.arange(count)[:, np.newaxis], pairs.replicas] = True
        joins = self._usable & ~members
        out = vacates
        if (size < rules.replicas_max).any():
            # one place that holds "none" is enough to say that nothing is vacated
            first_none = ~real & (np.cumsum(~real, axis=1) == 1)
            out = vacates | (first_none & (size < rules.replicas_max)[:, np.newaxis])
        allowed: BoolArray = out[:, :, np.newaxis] & joins[:, np.newaxis, :]
        allowed[:, :, none] = vacates & (size > rules.replicas_min)[:, np.newaxis]
        if self._silent:
            votes = np.append(rules.may_vote, False)
            held = votes[pairs.replicas]
            left = held.sum(axis=1)[:, np.newaxis] - held
            allowed &= left[:, :, np.newaxis] + votes >= rules.voters
        for group in rules.of("replicas"):
            allowed &= _group_allows(pairs, members, group)
        if self._prices is not None and rules.budget is not None:
            prices = self._prices[pairs.leaders]
            held_prices = np.take_along_axis(prices, pairs.replicas, axis=1)
            rest = held_prices.sum(axis=1)[:, np.newaxis] - held_prices
            total = rest[:, :, np.newaxis] + prices[:, np.newaxis, :]
            allowed &= total <= rules.budget + 1e-9 * (1 + abs(rules.budget))
        return allowed


def _summed(costs: FloatArray) -> FloatArray:
    """Σ_c over shape (B, rows, sites + 1): a product, which is quicker than a sum."""
    return np.asarray((np.ones((1, costs.shape[1])) @ costs)[:, 0])


def _group_allows(pairs: Pairs, members: BoolArray, group: GroupRule) -> BoolArray:
    """Moves after which a rule on the domains of replicas holds, shape (B, W, sites + 1)."""
    domains = int(group.labels.max()) + 1
    domain = np.append(group.labels, domains)  # "none" is a domain that no rule counts
    held = members.astype(np.float64) @ np.eye(domains + 1)[domain]
    held[:, domains] = 0
    vacated = domain[pairs.replicas]  # (B, W)
    rest = np.take_along_axis(held, vacated, axis=1)[:, :, np.newaxis]
    same = vacated[:, :, np.newaxis] == domain
    joined = np.take_along_axis(held, np.broadcast_to(domain, (len(pairs), len(domain))), axis=1)
    after = joined[:, np.newaxis, :] - same  # other sites in the domain of the added site
    brings = domain < domains
    allowed: BoolArray = np.ones(same.shape, dtype=bool)
    if group.cap is not None:
        allowed &= (after < group.cap) | ~brings
    if group.has_minimum:
        if group.least:
            lost = (vacated == group.domain)[:, :, np.newaxis].astype(np.intp)
            won = (domain == group.domain).astype(np.intp)
        else:
            lost = ((rest == 1) & (vacated < domains)[:, :, np.newaxis]).astype(np.intp)
            won = ((after == 0) & brings).astype(np.intp)
        short = group.missing(held[:, :domains])[:, np.newaxis, np.newaxis]
        allowed &= short + lost - won <= 0
    return allowed


Ranks = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class InsertionCosts:
    """Costs of every client of B pairs once one more site joins.

    A client whose nearest replica has place f in its order uses an added site x if x comes before
    f, and stays otherwise:

        J_ℓ(c, f, x) = s_ℓ(c, x if rank_c(x) < f else the site at place f)
    """

    #: place of each site in the order of each row, shape (rows, sites + 1); "none" is last
    ranks: Ranks
    order: IntArray  #: the inverse: site at each place, shape (rows, sites + 1)
    summands: FloatArray  #: s(c, r) for each pair, shape (B, rows, sites + 1)

    def costs_after(self, near: Ranks) -> FloatArray:
        """J for nearest replicas at these places, shape (B, rows), as (B, rows, sites + 1).

        The last column, the added site "none", holds what the clients cost as it is. A client
        without a replica has its nearest at place S; the place costs nothing until a site joins.
        O(C·S) for each pair.
        """
        pairs = np.arange(len(near))[:, np.newaxis]
        rows = np.arange(near.shape[1])
        kept = self.summands[pairs, rows, self.order[rows, near]]
        joins = self.ranks < near[:, :, np.newaxis]
        return np.where(joins, self.summands, kept[:, :, np.newaxis])

    def take(self, some: IntArray | BoolArray) -> InsertionCosts:
        """Only some of the pairs."""
        return InsertionCosts(self.ranks, self.order, self.summands[some])


# The quorum wait after every swap when the voters obey one cap on failure domains, in closed form.
#
# Under a cap of c voters per domain the best voters of a leader are the c closest replicas of each
# domain, closest first, up to the number of voters (Sharov et al., PVLDB 8(12), 2015, section 4,
# "Failure diversity"). Call the c closest of every domain of R *admitted*. The wait is the m-th
# smallest RTT among them. If R has lost one replica and its admitted RTTs have lo and hi as the
# (m−1)-th and the m-th smallest, an added site at RTT x makes the wait
#
#     hi                          if c admitted ones of its domain are closer than hi
#     min(max(x, lo), hi)         otherwise
#
# In the first case the added site can only replace a site that counts already. In the second case
# it is one more below hi, or it replaces a site that is no closer than hi, or it is itself no
# closer than hi. There are voters enough when at least v replicas are admitted.


def capped_waits(
    waits: FloatArray, replicas: IntArray, labels: IntArray, cap: int, quorum: int, voters: int
) -> tuple[FloatArray, FloatArray]:
    """Wait in ms for a quorum of B pairs, and after every move as in the table of `moves`.

    `waits` are RTTs from each pair's leader, infinite for sites that may not vote, shape (B, sites
    + 1); the last site stands for "none" and is infinite. `replicas` has shape (B, W), with at
    least one "none", `labels` the domain of each site, `cap` the most voters in one domain.
    Infinite where no voters obey the cap. O(B·W·(W + S)) and a product of B·W²·S.
    """
    count, width = replicas.shape
    domain = np.append(labels, -1)
    pair, places = np.arange(count)[:, np.newaxis], np.arange(width)
    held = waits[pair, replicas]
    turn = np.argsort(held, axis=1, kind="stable")
    rtt, sites = held[pair, turn], replicas[pair, turn]
    label = domain[sites]
    later = (label[:, :, np.newaxis] == label[:, np.newaxis, :]) & (places > places[:, np.newaxis])
    place = later.sum(axis=1)[:, np.newaxis, :] - later  # in the domain, once a replica is gone
    stays = places != places[:, np.newaxis]
    admitted = (place < cap) & np.isfinite(rtt)[:, np.newaxis, :] & stays  # [pair, gone, other]
    reached = np.cumsum(admitted, axis=2)
    ends = np.hstack([rtt, np.full((count, 1), np.inf)])
    high = ends[pair, (reached < quorum).sum(axis=2)]
    low = ends[pair, (reached < quorum - 1).sum(axis=2)] if quorum > 1 else np.zeros_like(high)
    at_home = (domain[:, np.newaxis] == domain).astype(np.float64)[sites]  # (B, W, sites + 1)
    counting = admitted & (rtt[:, np.newaxis, :] < high[:, :, np.newaxis])
    driven_out = counting.astype(np.float64) @ at_home >= cap
    table = np.maximum(waits[:, np.newaxis, :], low[:, :, np.newaxis])
    np.copyto(table, np.inf, where=driven_out)
    np.minimum(table, high[:, :, np.newaxis], out=table)
    enough = reached[:, :, -1]
    # the last entry cannot vote, or is no site at all: without it R votes as it is
    now = np.where(enough[:, -1] >= voters, high[:, -1], np.inf)
    if (enough < voters).any():
        full = admitted.astype(np.float64) @ at_home >= cap
        one_more = ~full & np.isfinite(waits)[:, np.newaxis, :]
        np.copyto(table, np.inf, where=enough[:, :, np.newaxis] + one_more < voters)
    by_place = np.empty_like(turn)
    by_place[pair, turn] = places
    return now, table[pair, by_place]


def grow_sets(
    neighbourhood: SwapNeighbourhood,
    leaders: IntArray,
    size: int | IntArray,
    width: int,
    *,
    quorum: bool,
    among: int = 1,
    rng: np.random.Generator | None = None,
    stop: Callable[[], bool] | None = None,
) -> Pairs:
    """Grow B replica sets, one for each leader, in O(size·B·C·S).

    Only pins and forbidden sites are heeded, so that the problem should have no rules about voters,
    domains or money (:attr:`heuristics.completion.AdmissibleSites.free_of_rules`). `size` is
    |R|, one for all or shape (B,); sets are larger where leader and pins need more, smaller where
    too few sites may hold a replica. A set has `width` places, more than `size`. With `quorum` the
    m sites closest to each leader are taken first, as far as they fit. Each addition is drawn by
    `rng` from the `among` best ones. `stop` is asked between batches of leaders, which keep memory
    at O(C·S), and ends in TimeoutError.
    """
    terms = neighbourhood.terms
    sizes = np.broadcast_to(np.asarray(size, dtype=np.intp), leaders.shape).copy()
    step = max(1, tuning.STARTS_BLOCK // max(1, (terms.sites + 1) * len(terms.rank)))
    parts = []
    for first in range(0, max(1, len(leaders)), step):
        if stop is not None and stop():
            raise TimeoutError
        rows = slice(first, first + step)
        parts.append(_grow(neighbourhood, leaders[rows], sizes[rows], width, quorum, among, rng))
    return Pairs.join(parts)


def _grow(
    neighbourhood: SwapNeighbourhood,
    leaders: IntArray,
    sizes: IntArray,
    width: int,
    quorum: bool,
    among: int,
    rng: np.random.Generator | None,
) -> Pairs:
    """Grow the sets of one batch of leaders."""
    rules, terms = neighbourhood.rules, neighbourhood.terms
    none = terms.sites
    pairs = Pairs(leaders, np.full((len(leaders), width), none, dtype=np.intp))
    for row, leader in enumerate(leaders.tolist()):
        first = [leader, *np.nonzero(rules.must_hold)[0].tolist()]
        sizes[row] = max(sizes[row], len(set(first)))
        if quorum:
            waits = np.where(rules.may_vote, terms.site_rtt[0, leader], np.inf)
            first.extend(np.argsort(waits, kind="stable")[: rules.quorum].tolist())
        chosen = list(dict.fromkeys(first))[: int(sizes[row])]
        pairs.replicas[row, : len(chosen)] = chosen
    insertions = neighbourhood.insertions(leaders)
    open_rows = np.arange(len(leaders))
    while open_rows.size:
        count = (pairs.replicas[open_rows] < none).sum(axis=1)
        short = count < sizes[open_rows]
        open_rows, count = open_rows[short], count[short]
        if not open_rows.size:
            break
        some = pairs.take(open_rows)
        after = neighbourhood.additions(some, insertions.take(open_rows))
        site = _choose(after, among, rng)
        possible = np.isfinite(after[np.arange(len(open_rows)), site])
        pairs.replicas[open_rows[possible], count[possible]] = site[possible]
        open_rows = open_rows[possible]
    return pairs


def _choose(values: FloatArray, among: int, rng: np.random.Generator | None) -> IntArray:
    """Column of each row: the least value, or an even draw from the `among` least finite ones."""
    if among == 1 or rng is None:
        return np.asarray(values.argmin(axis=1))
    few = np.minimum(among, np.maximum(1, np.isfinite(values).sum(axis=1)))
    pick = rng.integers(0, few)
    order = np.argsort(values, axis=1, kind="stable")
    return np.asarray(order[np.arange(len(values)), pick])
