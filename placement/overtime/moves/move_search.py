"""The configuration of least H·value + price of the move there, over all configurations.

Divided by H the sum to minimise is

    value(c') + price(c → c')/H,

the value being the objective of the problem in ms: the mean latency, or a percentile.

The mean latency and the prices are one question (`Problem.moves`): ``exact`` proves the answer in
one search. Other methods and objectives give the configuration of least value, which is a lower
bound too, and the best change is taken from there and from the present configuration until none
improves. An infinite price is a constraint: the replica or vote is pinned or excluded.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from placement.errors import InputError, UnsupportedError
from placement.evaluation.moves import Moves, RoleChanges, changes
from placement.evaluation.score import TIE
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.feasibility.feasible_plans import neighbours, violations
from placement.model.configuration import Configuration
from placement.overtime.moves.move_prices import MovePrices
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.checks import LARGEST
from placement.support.status import Status, status_of

_MOST_PRICE = 1e9
"""Largest price in ms that a question takes."""

_LEAST_HORIZON = 1e-6
"""Horizon that stands for all shorter ones in the search; below it nothing is proven."""


@dataclass(frozen=True, slots=True)
class BestMove:
    """A configuration with its score, price and bound."""

    #: site indices; the present configuration where staying is among the best
    configuration: Configuration
    value: float  #: value + price/H, ms
    bound: float  #: proven lower bound on that over all configurations, ms
    searches: int  #: questions that the method answered

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
    One search where the method takes prices of moves, two where it does not, and steepest descent
    over :func:`placement.feasibility.feasible_plans.neighbours` where the search proves too little.
    Ties: single changes that cost nothing are taken back one by one, which need not reach the
    nearest of all.
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
        bound = max(bound, search.ask())
    if status_of(search.best is not None, search.value, bound) is not Status.OPTIMAL:
        search.descend()
    if search.best is None:
        return None
    found = search.nearer(search.best)
    return BestMove(found, search.value, min(bound, search.value), search.searches)


@dataclass
class _MoveSearch:
    """The best configuration so far, and what the method is asked."""

    problem: Problem
    current: Configuration
    prices: MovePrices
    horizon: float
    answer: Callable[[Problem], Plan]
    best: Configuration | None = None
    value: float = math.inf
    searches: int = 0

    def __post_init__(self) -> None:
        self.weight = 1.0 / max(self.horizon, _LEAST_HORIZON)

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

    def ask(self) -> float:
        """Ask the method; return the proven lower bound over everything, ms."""
        asked = self._reachable()
        if asked is None:
            return math.inf
        # a lower price is a lower bound too; infinite prices are constraints
        finite = [
            min(p, _MOST_PRICE) if math.isfinite(p) else 0.0
            for p in dataclasses.astuple(self.prices)
        ]
        plan = None
        if (
            self.problem.objective.minimises_mean
            and _LEAST_HORIZON <= self.horizon <= LARGEST
            and any(finite)
        ):
            leader, vote, add, remove = finite
            moves = Moves(add, remove, vote, vote, leader, horizon=self.horizon)
            self.searches += 1
            try:
                plan = self.answer(asked.replace(current=self.current, moves=moves))
            except UnsupportedError:
                plan = None  # a method that takes no prices of moves
        if plan is None:
            self.searches += 1
            plan = self.answer(asked)
        if plan.configuration is not None:
            self.take(plan.configuration)
        if self.horizon < _LEAST_HORIZON:
            return -math.inf
        return self.problem.objective.in_ms(self.problem, plan.bound)

    def _reachable(self) -> Problem | None:
        """Return the question without the changes of an infinite price; None: contradictory."""
        problem, now, prices = self.problem, self.current, self.prices
        names, rules = problem.instance.sites, problem.rules
        outside = set(range(len(names))).difference

        def with_sites(given: Iterable[str], sites: Iterable[int]) -> list[str]:
            return sorted({*given, *(names[site] for site in sites)})

        asked: dict[str, object] = {}
        if math.isinf(prices.remove):
            asked["pinned"] = with_sites(problem.pinned, now.replicas)
        if math.isinf(prices.voter):
            asked["pinned_voters"] = with_sites(problem.pinned_voters, now.voters)
            if any(rules.may_vote[site] for site in outside(now.voters)):
                asked["non_voters"] = with_sites(problem.non_voters, outside(now.voters))
        if math.isinf(prices.add) and any(rules.may_hold[site] for site in outside(now.replicas)):
            asked["forbidden"] = with_sites(problem.forbidden, outside(now.replicas))
        if math.isinf(prices.leader):
            asked["leader"] = names[now.leader]
        try:
            return problem.replace(**asked) if asked else problem
        except InputError:
            return None  # pinned and excluded sites contradict each other

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
