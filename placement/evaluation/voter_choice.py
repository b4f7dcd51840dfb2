"""The best voters of a leader among given replicas: the inner step of every tier.

For one RTT matrix and caps on nested levels the feasible voter sets are the bases of a laminar
matroid. Taking the closest replica that still fits therefore gives, for every m at once, the
smallest m-th RTT (Sharov et al., section 4, Algorithm 2 and "Failure diversity"). For minimum
numbers of domains, crossing levels, and RTTs that vary by interval the greedy is not exact, and a
search decides.

Among voter sets with the same wait the one whose members are closest to the leader is taken, so
that every method names the same voters.

**Branch and bound.** With several RTT matrices the voters V of a leader ℓ minimise

    W(V) = Σ_k D_k · q_k(V),    q_k(V) = m-th smallest RTT of scenario k from ℓ to V.

A node of the search holds chosen sites I and excluded sites O. Let F be the candidates outside O.

- **Bound.** V ⊆ F, so q_k(V) >= q_k(F), and W(F) is a lower bound.
- **Closing.** The m sites of F closest to ℓ in scenario k attain q_k(F). Let U be the union of
  these sites over k. When a voter set with I ∪ U ⊆ V ⊆ F exists, its wait is W(F): the bound is
  attained and the node is closed.
- **Branching.** Otherwise on a site of U outside I: choose it, or exclude it. A site outside U
  never changes the bound, so no branch is spent on it.

Example: candidates a, b, c with RTTs (0, 1, 9) and (0, 9, 1) ms in two scenarios of weight 1, the
leader a, two voters, m = 2. W({a, b, c}) = 1 + 1 = 2 with U = {a, b, c}, which has three sites and
does not fit. Choosing b leaves c out: W({a, b}) = 1 + 9 = 10. Excluding b: W({a, c}) = 9 + 1 = 10.
The optimum is 10 with {a, b}, first in the order of answer.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from placement.evaluation.score import TIE, closest_first, quorum_latency
from placement.evaluation.waits.wait_latency import wait_latency
from placement.model.constraints import GroupRule, Rules
from placement.model.demand import Demand
from placement.model.site_families import SiteSubset, subsets
from placement.support.checks import BoolArray, FloatArray, IntArray


def least_total_wait(
    waits: FloatArray,
    weights: FloatArray,
    quorum: int,
    choice: SiteSubset,
) -> tuple[int, ...] | None:
    """Return the voters of least total wait, the first in the order of the choice among ties.

    `waits` are the RTTs from the leader, ms, shape (scenarios, sites), `weights` D of each
    scenario. Of the choice, a budget or nearness is not heeded. None when no set obeys the rules.
    One search for the value, and at most one for each candidate to find the first of several
    optima: exponential in |U| at worst, a few nodes where the scenarios resemble each other.
    """
    search = _VoterSubsetSearch(waits, weights, quorum, choice)
    chosen = search.complete(frozenset(choice.pinned), frozenset())
    if chosen is None:
        return None
    least = search.minimum(frozenset(choice.pinned), frozenset(), np.inf)
    cutoff = least * (1 + TIE)
    fixed, excluded = frozenset(choice.pinned), frozenset[int]()
    for site in choice.order:
        if site in fixed or len(fixed) == choice.size:
            continue
        if search.minimum(fixed | {site}, excluded, cutoff, attain=True) <= cutoff:
            fixed |= {site}
        else:
            excluded |= {site}
    return search.complete(fixed, excluded)


class _VoterSubsetSearch:
    """Branch and bound over (chosen, excluded) sites, for one leader."""

    def __init__(
        self, waits: FloatArray, weights: FloatArray, quorum: int, choice: SiteSubset
    ) -> None:
        self.order = tuple(int(site) for site in choice.order)
        self.size = choice.size
        self.groups: Sequence[GroupRule] = choice.groups
        self.quorum = quorum
        self.weights = weights
        self.waits = waits
        candidates = np.array(self.order, dtype=np.intp)
        # the candidates of each scenario, closest first
        self.closest = [
            candidates[np.argsort(row[candidates], kind="stable")].tolist() for row in waits
        ]

    def complete(self, chosen: frozenset[int], excluded: frozenset[int]) -> tuple[int, ...] | None:
        """Return the first voter set that holds `chosen`, avoids `excluded` and obeys the rules."""
        order = [site for site in self.order if site not in excluded]
        return next(subsets(SiteSubset(order, self.size, chosen, self.groups)), None)

    def minimum(
        self,
        chosen: frozenset[int],
        excluded: frozenset[int],
        cutoff: float,
        *,
        attain: bool = False,
    ) -> float:
        """Return the least wait below `chosen` and `excluded`, infinite if no set is feasible.

        Sets above `cutoff` are not looked for; with `attain` the first value at or below `cutoff`
        ends the search.
        """
        best = np.inf
        stack = [(chosen, excluded)]
        while stack:
            chosen, excluded = stack.pop()
            bound, needed = self._bound(excluded)
            if not bound <= cutoff or not bound < best:
                continue
            missing = [site for site in needed if site not in chosen]
            if len(chosen) + len(missing) <= self.size and self.complete(
                chosen | frozenset(missing), excluded
            ):
                best = bound
                if attain:
                    return best
                continue
            feasible = self.complete(chosen, excluded)
            if feasible is None:
                continue
            value = self._bound(frozenset(self.order) - frozenset(feasible))[0]
            if value <= cutoff:
                best = min(best, value)
                if attain:
                    return best
            # a site is missing: a node without one was closed, or has no feasible completion
            site = missing[0]
            stack.append((chosen, excluded | {site}))
            if len(chosen) < self.size:
                stack.append((chosen | {site}, excluded))
        return best

    def _bound(self, excluded: frozenset[int]) -> tuple[float, list[int]]:
        """Return W(F) and the union U of the m closest sites of each scenario, in turn."""
        total, needed = 0.0, dict[int, None]()
        for row, weight, closest in zip(self.waits, self.weights, self.closest, strict=True):
            near = [site for site in closest if site not in excluded][: self.quorum]
            if len(near) < self.quorum:
                return np.inf, []
            total += float(weight) * float(row[near[-1]])
            needed.update(dict.fromkeys(near))
        return total, list(needed)


def best_voters(
    demand: Demand, rules: Rules, leader: int, replicas: npt.ArrayLike
) -> tuple[int, ...] | None:
    """Voters V ∋ `leader` out of `replicas` of least Σ D·q_ℓ(V), in order of answer, or None.

    O(|R| log |R|) for nested caps; exponential in |V| at worst otherwise.
    """
    ordered = np.array(replicas, dtype=np.intp)
    ordered.sort()
    pins = int(np.count_nonzero(rules.must_vote))
    if not rules.may_lead[leader] or (pins and pins > np.count_nonzero(rules.must_vote[ordered])):
        return None
    if len(ordered) > rules.voters and demand.has_waits:
        from placement.evaluation.waits.wait_cases import case_wait

        if case_wait(demand):
            return _voters_of_waits(demand, rules, leader, ordered)
    if demand.scenarios == 1 and not rules.of("voters"):
        return _nearest_voters(demand.site_rtt[0, leader], rules, leader, ordered, pins)
    if demand.scenarios == 1 and rules.nested_voter_caps:
        voters, found = greedy_voters(
            rules, demand.site_rtt[0], np.array([leader]), ordered[np.newaxis]
        )
        return tuple(voters[0].tolist()) if found[0] else None
    candidates = ordered[rules.may_vote[ordered]]
    pinned = frozenset(np.nonzero(rules.must_vote)[0].tolist()) | {leader}
    if demand.scenarios == 1:
        return _closest(demand.site_rtt[0, leader], rules, candidates, pinned)
    order = by_answer_time(demand, leader, candidates)
    choice = SiteSubset(order, rules.voters, pinned, rules.of("voters"))
    return least_total_wait(
        demand.site_rtt[:, leader], _scenario_weights(demand), rules.quorum, choice
    )


def best_voters_of_each(
    demand: Demand, rules: Rules, leaders: Sequence[int], replicas: Sequence[Sequence[int]]
) -> list[tuple[int, ...] | None]:
    """Best voters of many (leader, R) pairs, each as :func:`best_voters` gives them.

    Under nested caps sets of one size are worked out together.
    """
    if demand.scenarios > 1 or not rules.nested_voter_caps or demand.has_waits:
        return [
            best_voters(demand, rules, leader, sites)
            for leader, sites in zip(leaders, replicas, strict=True)
        ]
    result: list[tuple[int, ...] | None] = [None] * len(leaders)
    for size in {len(sites) for sites in replicas}:
        rows = [row for row, sites in enumerate(replicas) if len(sites) == size]
        led = np.array([leaders[row] for row in rows], dtype=np.intp)
        sets = np.sort(np.array([replicas[row] for row in rows], dtype=np.intp), axis=1)
        voters, found = greedy_voters(rules, demand.site_rtt[0], led, sets)
        found &= rules.may_lead[led]
        for row, chosen, good in zip(rows, voters.tolist(), found.tolist(), strict=True):
            if good:
                result[row] = tuple(chosen)
    return result


def _voters_of_waits(
    demand: Demand, rules: Rules, leader: int, replicas: IntArray
) -> tuple[int, ...] | None:
    """Return the voters of the least Σ_j D_j·wait_j of a leader, by evaluating every set of them.

    Among equals the one whose members are closest to the leader.
    """
    near = by_answer_time(demand, leader, replicas)
    able = [site for site in near if rules.may_vote[site]]
    chosen = np.array(list(itertools.combinations(able, rules.voters)), dtype=np.intp)
    if not len(chosen):
        return None
    pinned = np.append(np.nonzero(rules.must_vote)[0], leader)
    good = (chosen[:, :, np.newaxis] == pinned).any(axis=1).all(axis=1)
    chosen = chosen[good & rules.obeyed("voters", chosen)]
    if not len(chosen):
        return None
    leaders = np.full(len(chosen), leader)
    everyone = np.broadcast_to(replicas, (len(chosen), len(replicas)))
    total = np.zeros(len(chosen))
    for k in range(demand.scenarios):
        between = demand.site_rtt[k]
        total += demand.quorum[k] * quorum_latency(between, leaders, chosen, rules.quorum)
        for term in demand.waits:
            if term.origin == "leader" and term.weight[k].any():
                one = (demand.client_rtt[k], between, leaders, chosen, everyone, leaders)
                total += term.weight[k].sum() * wait_latency(term, *one, rules.quorum)[:, 0]
    least = int(total.argmin())
    return by_answer_time(demand, leader, chosen[least]) if np.isfinite(total[least]) else None


def _nearest_voters(
    waits: FloatArray, rules: Rules, leader: int, replicas: IntArray, pins: int
) -> tuple[int, ...] | None:
    """Pins and the closest others, where no rule is about several voters; replicas ascending."""
    sites: list[int] = replicas.tolist()
    near = sorted(zip(waits[replicas].tolist(), sites, strict=True))
    if pins == 0 and rules.may_vote[replicas].all():
        closest = [site for _, site in near[: rules.voters]]
        if leader in closest and len(closest) == rules.voters:
            return tuple(closest)
    must, may = rules.must_vote[replicas].tolist(), rules.may_vote[replicas].tolist()
    pinned = {site for site, pin in zip(sites, must, strict=True) if pin or site == leader}
    able = {site for site, vote in zip(sites, may, strict=True) if vote}
    free = [site for _, site in near if site in able and site not in pinned]
    room = rules.voters - len(pinned)
    if not 0 <= room <= len(free):
        return None
    chosen = pinned.union(free[:room])
    return tuple(site for _, site in near if site in chosen)


def by_answer_time(demand: Demand, leader: int, sites: npt.ArrayLike) -> tuple[int, ...]:
    """Order sites by how soon they answer a leader, ties by site order.

    With RTTs that vary by interval, by the mean over the scenarios weighted with D, the rounds of
    votes in each (evenly when no operation needs votes).
    """
    ordered = np.sort(np.asarray(sites, dtype=np.intp))
    waits = demand.site_rtt[0, leader]
    if demand.scenarios > 1:
        waits = _scenario_weights(demand) @ demand.site_rtt[:, leader]
    return tuple(ordered[closest_first(waits[ordered])].tolist())


def greedy_waits(
    rules: Rules, site_rtt: FloatArray, leaders: IntArray, replicas: IntArray
) -> FloatArray:
    """q_ℓ in ms of the best voters under nested caps, shape (n,); infinite where none fit.

    `leaders` has shape (n,), `replicas` (n, r) with ascending rows that have the leader.
    """
    if not rules.of("voters") and not rules.must_vote.any() and rules.may_vote[replicas].all():
        waits = quorum_latency(site_rtt, leaders, replicas, rules.quorum)
        return np.where(rules.may_lead[leaders], waits, np.inf)
    voters, found = greedy_voters(rules, site_rtt, leaders, replicas)
    waits = quorum_latency(site_rtt, leaders, np.where(found[:, None], voters, 0), rules.quorum)
    return np.where(found & rules.may_lead[leaders], waits, np.inf)


def greedy_voters(
    rules: Rules, site_rtt: FloatArray, leaders: IntArray, replicas: IntArray
) -> tuple[IntArray, BoolArray]:
    """Closest-first voters under nested caps for many (leader, R) pairs, and which were found.

    Shapes (n, v) and (n,). Pins first, then by (RTT, site order), each taken if the caps still have
    room: O(n·r·levels) after one sort.
    """
    count, width = replicas.shape
    known, which = np.unique(leaders, return_inverse=True)
    rank = _ranks(site_rtt[known])
    pinned = rules.must_vote[replicas] | (replicas == leaders[:, np.newaxis])
    pins = pinned.sum(axis=1)
    ranks = np.where(pinned, -1, rank[which[:, np.newaxis], replicas])
    turn = np.argsort(ranks, axis=1, kind="stable")
    site = np.take_along_axis(replicas, turn, axis=1)
    caps = [
        (group.labels, group.cap, len(group.names))
        for group in rules.of("voters")
        if group.cap is not None
    ]
    chosen = _admitted(rules, caps, site)
    # a pinned voter that lies outside R, or that the caps have no room for, leaves no feasible set
    found = pins >= int(rules.must_vote.sum()) + ~rules.must_vote[leaders]
    found &= (chosen | (np.arange(width) >= pins[:, np.newaxis])).all(axis=1)
    place = np.cumsum(chosen, axis=1) - 1
    found &= place[:, -1] == rules.voters - 1
    voters = np.zeros((count, rules.voters), dtype=np.intp)
    row, column = np.nonzero(chosen)
    voters[row, place[row, column]] = site[row, column]
    closest = np.argsort(rank[which[:, np.newaxis], voters], axis=1, kind="stable")
    return np.take_along_axis(voters, closest, axis=1), found


_Cap = tuple[IntArray, int, int]
"""Domain of every site, most voters in one, and number of domains."""


def _admitted(rules: Rules, caps: Sequence[_Cap], site: IntArray) -> BoolArray:
    """Voters among sites in order of preference: one that a cap rejects uses no other cap."""
    count, width = site.shape
    rows = np.arange(count)
    held = [np.zeros((count, domains), dtype=np.intp) for _, _, domains in caps]
    chosen = np.zeros(site.shape, dtype=bool)
    taken = np.zeros(count, dtype=np.intp)
    for step in range(width):
        fits = rules.may_vote[site[:, step]] & (taken < rules.voters)
        for (labels, cap, _), load in zip(caps, held, strict=True):
            fits &= load[rows, labels[site[:, step]]] < cap
        for (labels, _, _), load in zip(caps, held, strict=True):
            load[rows, labels[site[:, step]]] += fits
        chosen[:, step] = fits
        taken += fits
    return chosen


def _ranks(waits: FloatArray) -> npt.NDArray[np.int32]:
    """Place of every site in the strict order of each row of `waits`, from 0."""
    rank = np.empty(waits.shape, dtype=np.int32)
    places = np.arange(waits.shape[1], dtype=np.int32)[np.newaxis]
    np.put_along_axis(rank, closest_first(waits), places, axis=1)
    return rank


def _scenario_weights(demand: Demand) -> FloatArray:
    """D of each scenario (weight of a wait in it), or ones when no operation needs votes."""
    return demand.quorum if demand.quorum.any() else np.ones(demand.scenarios)


def _closest(
    waits: FloatArray, rules: Rules, candidates: IntArray, pinned: frozenset[int]
) -> tuple[int, ...] | None:
    """Smallest radius whose ball can give m of the v voters, then the closest such voters."""
    order = candidates[closest_first(waits[candidates])]
    sorted_waits = waits[order]
    last_of_ties = np.nonzero(np.append(np.diff(sorted_waits) > 0, True))[0] + 1
    for ball in last_of_ties:
        if ball < rules.quorum:
            continue
        choice = SiteSubset(
            order.tolist(), rules.voters, pinned, rules.of("voters"), (int(ball), rules.quorum)
        )
        for voters in subsets(choice):
            return voters
    return None
