"""The configuration of least H·value + price of the move there, over all configurations.

The price of a move from a given configuration is additive in sites, votes and leader
(:mod:`placement.overtime.moves.move_prices`). Divided by H the sum to minimise is

    value(c') + price(c → c')/H,

the value being the objective of the problem in ms: the mean latency, or a percentile.

The mean latency and the prices are one question (`Problem.moves`), for the methods that take it:
``exact`` proves the answer in one search. For other methods and objectives:

- *Sites.* With k replicas, add·|R' ∖ R| + remove·|R ∖ R'| = (add + remove)·|R' ∖ R| +
  remove·(|R| − k): a price per site that is added, which is money in the objective
  (`Problem.cost_weight`). Any method that weighs money takes it.
- *Leader, votes.* Branch and bound over kept roles. A search without these prices bounds a part
  from below. If its plan changes the leader or takes a vote away that the bound of the part does
  not count yet, the part is split into "is kept" (pinned) and "is given up" (excluded, and its
  price is counted). The prices of a part in which all is decided are exact.
- *Budget, other objectives.* Money is taken, or weighs nothing, and sites are split like votes.
- An infinite price is a constraint: the replica or vote is pinned or excluded.

Each part is a problem of the same kind, for whatever method is asked. The bound that is returned
comes from the bounds of the method's plans, so that the result is proven where those are.
"""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import math
import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from placement.errors import InputError, UnitsWarning, UnsupportedError
from placement.evaluation.moves import Moves, RoleChanges, changes
from placement.evaluation.score import TIE
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.feasibility.feasible_plans import neighbours, violations
from placement.model.configuration import Configuration
from placement.model.instance import Prices
from placement.overtime.moves.move_prices import MovePrices
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.checks import LARGEST
from placement.support.status import Status, status_of

__all__ = ["BestMove", "best_move"]

_MOST_PARTS = 400
"""Parts that are searched before the result is given as it is, with the bound so far."""

_MOST_MONEY = 1e12
"""Price of a site in ms from which parts are split instead, so that every sum stays exact."""

_MOST_PRICE = 1e9
"""Price in ms from which prices are not part of the question."""

_LEAST_HORIZON = 1e-6
"""Horizon that stands for all shorter ones in the search; below it nothing is proven."""


@dataclass(frozen=True, slots=True)
class BestMove:
    """A configuration with its score, price and bound.

    Attributes
    ----------
    configuration
        Site indices; the present configuration where staying is among the best.
    value
        value + price/H, ms.
    bound
        Proven lower bound on that over all configurations, ms.
    parts
        Searches that it took.
    """

    configuration: Configuration
    value: float
    bound: float
    parts: int

    @property
    def status(self) -> Status:
        """Status of the result: optimal when the bound proves the least cost."""
        return status_of(True, self.value, self.bound)


def best_move(
    problem: Problem,
    current: Configuration,
    prices: MovePrices,
    horizon: float,
    answer: Callable[[Problem], Plan],
    known: Iterable[Configuration] = (),
    floor: float = -math.inf,
) -> BestMove | None:
    """Return the configuration of least value + price/H, and of equal ones one near the present.

    Parameters
    ----------
    problem
        The question with the predicted demand; no weight of money.
    current
        The present configuration; it need not obey the rules, and is left then.
    prices
        Of moves, in ms of the objective of one interval.
    horizon
        H, intervals; infinity: the least value, moves of an infinite price left out.
    answer
        A method: the plan of a problem, with a proven bound or −∞.
    known
        Configurations to begin with; those that break the rules are left out.
    floor
        Proven lower bound on the value of every configuration, ms: it can save the search.

    Returns
    -------
    BestMove or None
        None when no configuration that obeys the rules can be reached at a finite price.

    Notes
    -----
    One search where the method takes prices of moves, or only sites have a price; else at most
    2^(|V| + 1) with votes and leader, usually a handful. Where the method proves too little,
    steepest descent over :func:`placement.feasibility.feasible_plans.neighbours` follows. Ties:
    single changes that cost nothing are taken back one by one, which need not reach the nearest of
    all.
    """
    refuse_waits(problem, "a move with a price")
    search = _MoveSearch(problem, current, prices, horizon, answer)
    for one in (current, *known):
        if not violations(problem, one):
            search.take(one)
    stays = not violations(problem, current)
    if stays and horizon == 0:  # staying costs nothing, and no price is negative
        worth = search.worth(current)
        return BestMove(current, worth, worth, 0)
    bound = search.quick_bound(floor, stays)
    if status_of(search.best is not None, search.value, bound) is not Status.OPTIMAL:
        try:
            bound = max(bound, search.run())
        except UnsupportedError:
            search.split_prices()
            bound = max(bound, search.run())
    if search.best is None:
        return None
    if status_of(True, search.value, bound) is not Status.OPTIMAL:
        search.descend()
    found = search.nearer(search.best)
    return BestMove(found, search.value, min(bound, search.value), search.parts)


@dataclass(frozen=True)
class _SearchPart:
    """Configurations that keep some of the present one and give up some.

    Attributes
    ----------
    kept, lost
        Sites whose replica is kept, given up.
    votes, lost_votes
        Sites whose vote is kept, taken away.
    leads
        Whether the present leader goes on; None: undecided.
    size
        |R'|; None: as the problem says.
    bound
        Proven lower bound of what holds it, ms.
    """

    kept: frozenset[int] = frozenset()
    lost: frozenset[int] = frozenset()
    votes: frozenset[int] = frozenset()
    lost_votes: frozenset[int] = frozenset()
    leads: bool | None = None
    size: int | None = None
    bound: float = -math.inf


@dataclass
class _MoveSearch:
    """Best-first branch and bound over parts."""

    problem: Problem
    current: Configuration
    prices: MovePrices
    horizon: float
    answer: Callable[[Problem], Plan]
    best: Configuration | None = None
    value: float = math.inf
    parts: int = 0
    weight: float = field(init=False)
    per_site: bool = field(init=False)
    sites_move: bool = field(init=False)
    priced: Problem = field(init=False)
    whole: bool = field(init=False)  # all prices are part of the question

    def __post_init__(self) -> None:
        self.weight = 1.0 / max(self.horizon, _LEAST_HORIZON)
        prices = tuple(map(self._finite, dataclasses.astuple(self.prices)))
        self.whole = (
            self.problem.objective.minimises_mean
            and _LEAST_HORIZON <= self.horizon <= LARGEST
            and 0 < max(prices) <= _MOST_PRICE
        )
        if not self.whole:
            self.split_prices()
            return
        leader, vote, add, remove = prices
        moves = Moves(add, remove, vote, vote, leader, horizon=self.horizon)
        self.priced = self.problem.replace(current=self.current, moves=moves)
        self.per_site = self.sites_move = False

    def split_prices(self) -> None:
        """Leave the prices of votes and leader to the parts, for methods that take no moves."""
        self.whole = False
        rules = self.problem.rules
        most = max(self._finite(self.prices.add), self._finite(self.prices.remove))
        weighs = rules.budget is None and self.problem.minimises_mean
        self.per_site = weighs and most < _MOST_MONEY
        self.priced = self.problem
        held = tuple(np.nonzero(rules.may_hold)[0].tolist())
        self.sites_move = self.problem.tier == 3 or held != self.current.replicas
        added = self._finite(self.prices.add)
        if self._sizes_matter():
            added += self._finite(self.prices.remove)
        if self.per_site and added * self.weight and self.sites_move:
            outside = np.full(len(self.problem.instance.sites), added)
            outside[list(self.current.replicas)] = 0.0
            weight = self.weight * self.problem.demand.operations
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", UnitsWarning)  # the RTTs are the same as before
                    instance = self.problem.instance.replace(prices=Prices(outside))
                self.priced = self.problem.replace(instance=instance, cost_weight=weight)
            except InputError:
                self.per_site = False  # the prices are too large for money: split instead

    def changes_to(self, configuration: Configuration) -> RoleChanges:
        """Return what a move to a configuration changes."""
        return changes(self.current, configuration)

    def worth(self, configuration: Configuration) -> float:
        """Return value + price/H of a configuration, ms; infinite at an infinite price."""
        price = self.prices.of(self.changes_to(configuration))
        if math.isinf(price):
            return math.inf
        value = objective_value(self.problem, configuration)
        return self.problem.objective.in_ms(self.problem, value) + price * self.weight

    def take(self, configuration: Configuration) -> float:
        """Keep a configuration that obeys the rules when it is the best so far."""
        worth = self.worth(configuration)
        if worth < self.value:
            self.best, self.value = configuration, worth
        return worth

    def quick_bound(self, floor: float, stays: bool) -> float:
        """Return the bound that follows from one on the value: a change has its price."""
        if self.horizon < _LEAST_HORIZON:
            return -math.inf
        if not stays:
            return floor
        prices, rules = self.prices, self.problem.rules
        swap = prices.add + prices.remove
        if rules.replicas_min < rules.replicas_max:
            swap = min(prices.add, prices.remove)
        least = min(prices.leader, 2 * prices.voter, swap)
        if math.isinf(least):
            return self.worth(self.current)
        return min(floor + least * self.weight, self.worth(self.current))

    def run(self) -> float:
        """Search, and return the proven lower bound over everything."""
        if self.horizon < _LEAST_HORIZON:
            self._walk()
            return -math.inf
        return self._walk()

    def _walk(self) -> float:
        bound = math.inf
        count = itertools.count()
        heap: list[tuple[float, int, _SearchPart, Configuration]] = []

        def look(part: _SearchPart) -> float:
            """Search a part; return the bound of what is dealt with by that alone."""
            self.parts += 1
            plan = self._plan(part)
            if plan is None:
                return math.inf
            in_ms = self.problem.objective.in_ms
            extra = self._decided(part) * self.weight
            lower = max(part.bound, in_ms(self.problem, plan.bound) + extra)
            if plan.configuration is None:
                return lower  # infinite where it is proven that nothing is there
            self.take(plan.configuration)
            estimate = in_ms(self.problem, plan.objective) + extra
            entry = (estimate, next(count), dataclasses.replace(part, bound=lower))
            heapq.heappush(heap, (*entry, plan.configuration))
            return math.inf

        for part in self._roots():
            bound = min(bound, look(part))
        while heap:
            estimate, _, part, found = heapq.heappop(heap)
            pieces = () if estimate >= self.value * (1 - TIE) else self._split(part, found)
            if not pieces or self.parts + len(pieces) > _MOST_PARTS:
                bound = min(bound, part.bound)
                continue
            for piece in pieces:
                bound = min(bound, look(piece))
        return bound

    def _finite(self, price: float) -> float:
        return price if math.isfinite(price) else 0.0

    def _sizes_matter(self) -> bool:
        """Return True when the price of the sites depends on |R'| beside the added sites."""
        if self.whole:
            return False
        if self.per_site:
            return self._finite(self.prices.remove) > 0
        return self._finite(self.prices.remove) > 0 or self._finite(self.prices.add) > 0

    def _roots(self) -> Iterator[_SearchPart]:
        rules, now = self.problem.rules, self.current
        kept = frozenset(now.replicas) if math.isinf(self.prices.remove) else frozenset[int]()
        votes = frozenset(now.voters) if math.isinf(self.prices.voter) else frozenset[int]()
        leads = True if math.isinf(self.prices.leader) else None
        root = _SearchPart(kept=kept, votes=votes, leads=leads)
        if rules.replicas_min == rules.replicas_max or not self._sizes_matter():
            yield root
            return
        for size in range(rules.replicas_min, rules.replicas_max + 1):
            yield dataclasses.replace(root, size=size)

    def _decided(self, part: _SearchPart) -> float:
        """Return the least price of the decided changes of a part that the money does not count."""
        rules, now, prices = self.problem.rules, self.current, self.prices
        if self.whole:
            return 0.0
        total = self._finite(prices.leader) if part.leads is False else 0.0
        lost = len(part.lost_votes)
        gained = max(0, rules.voters - (len(now.voters) - lost))
        total += self._finite(prices.voter) * (lost + gained)
        if not self.sites_move or not self._sizes_matter():
            return total
        size = rules.replicas_min if part.size is None else part.size
        if self.per_site:
            return total + self._finite(prices.remove) * (len(now.replicas) - size)
        gone = len(part.lost)
        new = max(0, size - (len(now.replicas) - gone))
        return total + self._finite(prices.remove) * gone + self._finite(prices.add) * new

    def _split(self, part: _SearchPart, found: Configuration) -> tuple[_SearchPart, ...]:
        """Split a part at a change of its plan that has a price and is not counted yet."""
        after = self.changes_to(found)
        if self.whole:
            return ()
        if after.leader and part.leads is None and self.prices.leader:
            return tuple(dataclasses.replace(part, leads=leads) for leads in (True, False))
        if self.prices.voter:
            for site in after.demoted:
                if site not in part.lost_votes:
                    return (
                        dataclasses.replace(part, votes=part.votes | {site}),
                        dataclasses.replace(part, lost_votes=part.lost_votes | {site}),
                    )
        if not self.per_site:
            for site in after.removed:
                if site not in part.lost:
                    return (
                        dataclasses.replace(part, kept=part.kept | {site}),
                        dataclasses.replace(
                            part,
                            lost=part.lost | {site},
                            lost_votes=part.lost_votes | ({site} & set(self.current.voters)),
                        ),
                    )
        return ()

    def _plan(self, part: _SearchPart) -> Plan | None:
        """Ask the method about a part; None when it contradicts the rules and so is empty."""
        problem, now = self.priced, self.current
        names = problem.instance.sites
        outside = set(range(len(names))).difference

        def with_sites(given: Iterable[str], sites: Iterable[int]) -> list[str]:
            return sorted({*given, *(names[site] for site in sites)})

        asked: dict[str, object] = {}
        if part.kept:
            asked["pinned"] = with_sites(problem.pinned, part.kept)
        closed = set(part.lost) | (outside(now.replicas) if math.isinf(self.prices.add) else set())
        silent = set(part.lost_votes)
        if math.isinf(self.prices.voter):
            silent |= outside(now.voters)
        if part.votes:
            asked["pinned_voters"] = with_sites(problem.pinned_voters, part.votes)
        may_hold, may_vote = problem.rules.may_hold, problem.rules.may_vote
        if any(may_hold[site] for site in closed):
            asked["forbidden"] = with_sites(problem.forbidden, closed)
        if any(may_vote[site] for site in silent):
            asked["non_voters"] = with_sites(problem.non_voters, silent)
        if part.leads is True:
            asked["leader"] = names[now.leader]
        elif part.leads is False:
            may_lead = np.nonzero(problem.rules.may_lead)[0].tolist()
            asked["leaders"] = [names[site] for site in may_lead if site != now.leader]
        if part.size is not None:
            asked["replicas"] = part.size
        if not asked:
            return self.answer(problem)
        try:
            part_of = problem.replace(**asked)
        except InputError:
            return None  # pinned and excluded sites contradict each other
        return self.answer(part_of)

    def descend(self) -> None:
        """Take the best change until none improves, from the best so far."""
        while self.best is not None:
            before = self.best
            for one in neighbours(self.problem, before):
                if not violations(self.problem, one):
                    self.take(one)
            if self.best is before:
                return

    def nearer(self, found: Configuration) -> Configuration:
        """Take back changes that make no difference to the value, nearest first."""
        limit = self.value * (1 + TIE)
        if not violations(self.problem, self.current) and self.worth(self.current) <= limit:
            return self.current
        while True:
            here = self._distance(found)
            closer = [one for one in neighbours(self.problem, found) if self._distance(one) < here]
            closer.sort(key=self._distance)
            for one in closer:
                if not violations(self.problem, one) and self.worth(one) <= limit:
                    found = one
                    break
            else:
                return found

    def _distance(self, configuration: Configuration) -> tuple[float, int]:
        """Price of the way from the present configuration, and how much changes."""
        after = self.changes_to(configuration)
        return self.prices.of(after), after.size
