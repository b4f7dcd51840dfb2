"""The best sequence of whole configurations in hindsight: leader, voters and replicas may move.

The shortest path of :mod:`formulations.overtime.leader_sequence` over (interval, configuration).
With move prices the voters that a move leaves in place matter, so that replicas are candidates with
all of their voter sets, not with the best alone.

*Complete.* When no more than `limit` configurations obey the rules, all of them are enumerated. A
configuration c may be left out without loss when some other c' satisfies, in every interval t,

    score(t, c) >= score(t, c') + price(c → c') + price(c' → c)

for then a stay at c of one interval or more can be replaced by one at c': the price of a move is
never more than that of a detour, so that coming to c' costs at most price(c → c') more, and leaving
it at most price(c' → c) more. Every candidate left out is replaced by one that is kept, so that the
optimum over the remaining configurations is the optimum over all.

*Not complete.* Otherwise the candidates are the optimum of every interval, of the demand of all
intervals, and of windows of 2, 4, 8, … intervals, each by an exact method; the answer is "optimal
among the candidates". Its bound is the cost that serving every interval at its own proven optimum
would cost with all moves free: no sequence at all pays less.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from formulations.overtime.leader_sequence import best_sequence
from placement.errors import InputError, UnsupportedError
from placement.evaluation.objective import quorum_size
from placement.evaluation.score import score_many
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.configuration import Configuration
from placement.model.demand import Demand, aggregate
from placement.model.site_families import SiteSubset, subsets
from placement.overtime.moves.move_prices import MovePrices, PathCost, price_table
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray
from placement.support.status import Termination, relative_gap

__all__ = ["ConfigurationSequence", "best_configurations", "configurations", "interval_scores"]

LIMIT = 20_000
"""Configurations that are enumerated before the candidates are chosen instead."""


@dataclass(frozen=True, eq=False)
class ConfigurationSequence:
    """An optimal sequence of configurations.

    Attributes
    ----------
    path
        Configuration of every interval.
    cost
        What it costs, ms·operations.
    bound
        Proven lower bound over all sequences of feasible configurations.
    complete
        Whether every feasible configuration was considered, so that the bound is the cost.
    candidates
        How many were, after those that cannot help were left out.
    feasible
        How many obey the rules; None when that was not counted.
    """

    path: tuple[Configuration, ...]
    cost: PathCost
    bound: float
    complete: bool
    candidates: int
    feasible: int | None

    @property
    def gap(self) -> float:
        """(cost − bound)/cost, relative."""
        return relative_gap(float(self.cost.total), self.bound)


def best_configurations(
    problem: Problem,
    prices: MovePrices,
    *,
    start: Configuration | None = None,
    limit: int = LIMIT,
    method: str = "exact",
) -> ConfigurationSequence:
    """Return a sequence of configurations of least total cost over the intervals of an instance.

    Parameters
    ----------
    problem
        Constraints, and the instance with its intervals (its RTTs may vary too). The decay does not
        count: everything is known in hindsight.
    prices
        Of moves, in ms·operations.
    start
        Configuration before the first interval; None: the first one is free.
    limit
        Most configurations to enumerate; 0: choose candidates.
    method
        Exact method that gives candidates and bound where they are not enumerated.

    Raises
    ------
    InputError
        When no configuration obeys the rules, or no sequence has a finite price.
    UnsupportedError
        For a weight of money, or an objective other than the mean.

    Notes
    -----
    O(T·(n·C·|R| + n²)) for n candidates; 8·n² bytes of prices. Ties as in
    :func:`formulations.overtime.leader_sequence.best_sequence`, candidates in order of leader,
    replicas, voters; of those that replace each other, the one of least total score is kept.
    """
    if not problem.minimises_mean:
        raise UnsupportedError("sequences are for the mean latency without a weight of money")
    every = _every(problem, limit)
    complete = every is not None
    bound = math.nan
    if every is not None:
        chosen, feasible = every, len(every)
    else:
        chosen, bound = _chosen(problem, method)
        feasible = None
    start = None if start is None else _plain(start)
    if start is not None and start not in chosen:
        chosen.append(start)
    if not chosen:
        raise InputError("no configuration obeys the rules", field="problem")
    scores = interval_scores(problem, chosen)
    if start is not None and violations(problem, start):
        scores[:, chosen.index(start)] = np.inf  # to come from, not to stay at
    table = price_table(prices, chosen, len(problem.instance.sites))
    keep = _useful(scores, table)
    if start is not None:
        keep[chosen.index(start)] = True
    rows = np.nonzero(keep)[0]
    chosen = [chosen[row] for row in rows]
    found = best_sequence(
        scores[:, rows],
        table[np.ix_(rows, rows)],
        start=None if start is None else chosen.index(start),
    )
    total = float(found.cost.total)
    return ConfigurationSequence(
        path=tuple(chosen[row] for row in found.path.tolist()),
        cost=found.cost,
        bound=total if complete else min(bound, total),
        complete=complete,
        candidates=len(chosen),
        feasible=feasible,
    )


def configurations(problem: Problem) -> Iterator[Configuration]:
    """Yield every configuration that obeys the rules, by leader, replicas, voters.

    Raises
    ------
    LimitError
        When the search for one of the sets would take too long.
    """
    rules = problem.rules
    held = np.nonzero(rules.may_hold)[0].tolist()
    must_hold = frozenset(np.nonzero(rules.must_hold)[0].tolist())
    must_vote = frozenset(np.nonzero(rules.must_vote)[0].tolist())
    for leader in np.nonzero(rules.may_lead)[0].tolist():
        for size in range(rules.replicas_min, rules.replicas_max + 1):
            pinned = must_hold | {leader}
            for replicas in subsets(SiteSubset(held, size, pinned, rules.of("replicas"))):
                voters_of = SiteSubset(
                    [site for site in replicas if rules.may_vote[site]],
                    rules.voters,
                    must_vote | {leader},
                    rules.of("voters"),
                )
                for voters in subsets(voters_of):
                    one = Configuration.of(leader, sorted(voters), replicas)
                    if not violations(problem, one):  # the budget, too
                        yield one


def interval_scores(problem: Problem, chosen: list[Configuration]) -> FloatArray:
    """Eq. 1 of configurations in every interval of the instance, (intervals, configurations)."""
    instance = problem.instance
    scores = np.zeros((len(instance.intervals), len(chosen)))
    shapes: dict[tuple[int, int], list[int]] = {}
    for row, one in enumerate(chosen):
        shapes.setdefault((len(one.voters), len(one.replicas)), []).append(row)
    for interval, counts in enumerate(instance.counts):
        if not counts.any():
            continue  # no operation waited
        demand: Demand = aggregate(instance.at_interval(interval, counts))
        for rows in shapes.values():
            among = [chosen[row] for row in rows]
            scores[interval, rows] = score_many(
                demand,
                [one.leader for one in among],
                [one.voters for one in among],
                [one.replicas for one in among],
                quorum_size(problem, among[0]),
            )
    return scores


def _plain(configuration: Configuration) -> Configuration:
    """Return the configuration with its voters in site order, for comparison."""
    return Configuration.of(
        configuration.leader, sorted(configuration.voters), configuration.replicas
    )


def _every(problem: Problem, limit: int) -> list[Configuration] | None:
    """Return all feasible configurations, or None when there are more than `limit`."""
    found = list(itertools.islice(configurations(problem), limit + 1)) if limit else []
    return found if limit and len(found) <= limit else None


def _chosen(problem: Problem, method: str) -> tuple[list[Configuration], float]:
    """Return candidates by an exact method, and the cost of every interval at its optimum."""
    instance = problem.instance
    active = [i for i, counts in enumerate(instance.counts) if counts.any()]
    found: dict[Configuration, None] = {}
    bound = 0.0
    size = 1
    while True:
        for first in range(0, len(instance.intervals), size):
            among = [i for i in active if first <= i < first + size]
            if among:
                plan = _solved(problem, among, method)
                if size == 1:
                    bound += max(0.0, plan.bound)
                assert plan.configuration is not None  # `_solved` saw to that
                found[_plain(plan.configuration)] = None
        if size >= len(instance.intervals):
            break
        size *= 2
    # in the order of the enumeration, so that ties go the same way
    order = sorted(found, key=lambda one: (one.leader, one.replicas, one.voters))
    return order, bound


def _solved(problem: Problem, intervals: list[int], method: str) -> Plan:
    instance = problem.instance
    changes: dict[str, object] = {
        "counts": instance.counts[intervals],
        "intervals": tuple(instance.intervals[i] for i in intervals),
    }
    for field in ("client_rtt", "site_rtt"):
        rtt: FloatArray = vars(instance)[field]
        if rtt.ndim == 3:
            changes[field] = rtt[intervals]
    asked = problem.replace(instance=instance.replace(**changes), decay=1.0)
    plan = run(load_method(method), asked, Options())
    if plan.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    if plan.configuration is None:
        raise InputError(
            f"method {method!r} finds no configuration: " + "; ".join(plan.reasons),
            field="problem",
            expected="a question with an answer",
        )
    return plan


def _useful(scores: FloatArray, table: FloatArray) -> BoolArray:
    """Return the candidates that no other candidate replaces without loss.

    Candidates come best total first; each is compared with those already kept. A candidate
    that replaces another is itself kept, so a chain of replacements ends at a kept one.
    """
    keep = np.zeros(scores.shape[1], dtype=bool)
    with np.errstate(invalid="ignore"):
        order = np.argsort(scores.sum(axis=0), kind="stable")
    kept: list[int] = []
    for row in order.tolist():
        among = np.array(kept, dtype=np.intp)
        there_and_back = table[row, among] + table[among, row]
        dear = scores[:, [row]] >= scores[:, among] + there_and_back
        if among.size == 0 or not dear.all(axis=0).any():
            keep[row] = True
            kept.append(row)
    return keep
