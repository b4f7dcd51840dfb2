"""The tree of beginnings of replica sets, as the writer and the checker of a certificate walk it.

Depth first over increasing sequences of places in an order of the sites; under a leader, the leader
and the pinned sites come first in every sequence. A beginning that lacks one site is a batch of
sets, which are evaluated; every longer one is asked about first.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from placement.contingency.objective import Contingency
from placement.evaluation.replica_prices import most_new_sites, new_sites
from placement.problem import Problem

__all__ = ["SetWalk", "least_normal", "walk_refusal"]

Ask = Callable[[tuple[int, ...], Sequence[int]], bool]
Sets = Callable[[tuple[int, ...], Sequence[int]], None]


def walk_refusal(problem: Problem) -> str | None:
    """Return why certificates of this kind do not prove a question, or None."""
    rules = problem.rules
    if problem.demand.scenarios > 1:
        return "RTTs vary by interval"
    if not rules.replicas_min == rules.replicas_max == rules.voters:
        return "not all replicas vote"
    if rules.budget is not None or rules.cost_weight:
        return "more than the latency is asked for"
    if problem.moves is not None and not problem.objective.minimises_mean:
        return "moves count, and the objective is no mean latency"
    if rules.lease_holders:
        return "lease holders are chosen"
    if rules.witnesses:
        return "there are witnesses"
    if rules.votes is not None:
        return "sites have several votes"
    if problem.objective.kind not in ("mean", "contingency"):
        return "the objective is no mean latency, normally or after losses"
    return None


def least_normal(problem: Problem, least: float) -> float:
    """Return the normal score from which on no configuration has a value below another number.

    Parameters
    ----------
    problem
        One of those that :func:`walk_refusal` accepts.
    least
        Of the objective, ms times operations.
    """
    objective = problem.objective
    if not isinstance(objective, Contingency):
        return least
    share = objective.normal_share(problem)
    return least / share if share else math.inf


class SetWalk:
    """The tree of one leader, or of all where no operation needs one.

    Parameters
    ----------
    problem
        One of those that :func:`walk_refusal` accepts.
    order
        Sites that may hold a replica and vote, each once.
    leader
        Site index, or None.

    Attributes
    ----------
    first
        Sites that every set of the tree holds.
    """

    def __init__(self, problem: Problem, order: Sequence[int], leader: int | None) -> None:
        rules = problem.rules
        self.order = list(order)
        self.size = rules.voters
        pinned = np.nonzero(rules.must_hold | rules.must_vote)[0].tolist()
        own = [] if leader is None else [leader]
        self.first = tuple(dict.fromkeys([*own, *pinned]))
        self._caps = [
            (group.labels.tolist(), group.cap) for group in rules.groups if group.cap is not None
        ]
        self._new, self._most_new = new_sites(problem), self.size
        if problem.limits:
            self._most_new = most_new_sites(problem, self.size)

    def run(self, ask: Ask, sets: Sets) -> None:
        """Walk the tree.

        Parameters
        ----------
        ask
            Called with the chosen sites of a beginning and those that may come; whether to go on.
        sets
            Called with the chosen sites, and those of which one completes a set.
        """
        if len(self.first) <= self.size and self._fits(self.first):
            self._below(self.first, 0, ask, sets)

    def _below(self, chosen: tuple[int, ...], place: int, ask: Ask, sets: Sets) -> None:
        coming = [site for site in self.order[place:] if site not in chosen]
        free = self.size - len(chosen)
        if free == 0:
            sets(chosen[:-1], chosen[-1:])
        elif len(coming) < free:
            return
        elif free == 1:
            sets(chosen, coming)
        elif ask(chosen, coming):
            for after in range(place, len(self.order)):
                site = self.order[after]
                more = (*chosen, site)
                if site not in chosen and self._fits(more):
                    self._below(more, after + 1, ask, sets)

    def _fits(self, chosen: Sequence[int]) -> bool:
        """Return whether no domain holds more of the chosen sites than a cap or limit allows."""
        if self._most_new < self.size and self._new[list(chosen)].sum() > self._most_new:
            return False
        for labels, cap in self._caps:
            held = [labels[site] for site in chosen]
            if any(held.count(label) > cap for label in {*held}):
                return False
        return True
