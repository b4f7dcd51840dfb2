"""Search of the compiled kernel over losses: starts, leaders, trees, and their proofs."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np

from formulations.contingency.loss_certificate import LossClaimRecord, TreeRecords
from formulations.contingency.loss_kernel import LossKernel, loss_of_sites
from formulations.exact import tuning
from formulations.exact.reduced_problem import ReducedProblem
from formulations.exact.threshold_search import MOST_RECORDED, TreeOutcome
from placement.contingency.objective import Contingency, Goal
from placement.methods.options import Options
from placement.model.configuration import Configuration
from placement.plan import objective_value
from placement.problem import Problem
from placement.support.checks import BoolArray
from placement.support.status import least_bound

__all__ = ["TIE", "StageHost", "ThresholdStage"]

TIE = 1e-12
"""Scores this close, relatively, are the same (:data:`placement.evaluation.score.TIE`)."""

_NODES_PER_SUCCESSOR, _NODES_AT_LEAST = 30, 20
_CLAIMED = 1 - 9e-10
"""Share of the value that a proof is claimed for: less than the search asks (`_below`), so
that multipliers may be rounded to few digits, and enough to call the value optimal."""
_SLICE = 0.25  # seconds between two reports
_ALL_NODES = 2**30


class StageHost(Protocol):
    """Question that a stage works for.

    Attributes
    ----------
    problem, core, goal, options
        The question, the same without its objective, the objective, and what bounds the work.
    bound, value
        Proven lower bound, and value of the best configuration so far.
    stats
        Numbers of the search, which a stage adds to.
    """

    problem: Problem
    core: ReducedProblem
    goal: Contingency
    options: Options
    bound: float
    value: float
    stats: dict[str, float | int | str]

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit."""
        ...

    def offer(self, configuration: Configuration, value: float) -> None:
        """Keep a better configuration."""
        ...

    def report(self, bound: float = -math.inf) -> None:
        """Pass progress on, and stop at a limit."""
        ...


class ThresholdStage:
    """Search of the kernel.

    Parameters
    ----------
    search
        The question that the stage works for.
    goal
        "worst", "bounded" or "weighted".
    ceiling
        Largest score after a loss, for "bounded"; else +∞.
    share
        Share of the normal score in the value: 1 less the probability of all losses.
    ties
        Whether plans of the best worst case are compared by their normal score, so that a plan
        found before the end does not answer the question.
    certify
        Whether to record the proof of the end.
    """

    def __init__(
        self,
        search: StageHost,
        goal: Goal,
        ceiling: float,
        share: float,
        *,
        ties: bool = False,
        certify: bool = False,
    ) -> None:
        self.search, self.goal, self.ceiling, self.share = search, goal, ceiling, share
        self.ties = ties
        self.trees = TreeRecords(MOST_RECORDED if certify else 0)
        core = search.core
        self.kernel = LossKernel(search.problem, core, goal, ceiling)
        self.rules = core.rules
        self.step = self.kernel.step
        self.loss_of = loss_of_sites(search.problem, search.goal)
        self.u = np.zeros((core.sites, self.kernel.padded))
        self.floors = np.full(core.sites, -math.inf)
        self.open_bounds: dict[int, float] = {}

    def start_from(self, configuration: Configuration) -> None:
        """Descend from a configuration."""
        seconds = self.search.seconds_left
        self.kernel.offer(configuration.replicas, seconds)
        seed = self.search.options.seed
        self.kernel.descend(configuration.replicas, tuning.LOSS_KICKS, seed, min(seconds, 5.0))
        self._take()

    def start_from_worst(self, configuration: Configuration) -> None:
        """Look for a set that keeps the ceiling by descending on the worst case."""
        search = self.search
        worst = LossKernel(search.problem, search.core, "worst")
        worst.descend(configuration.replicas, tuning.LOSS_KICKS, 0, min(search.seconds_left, 5.0))
        found = worst.best()[2]
        if found is not None:
            self.start_from(found)

    def prove(self) -> float:
        """Close every leader; the bound that this proves."""
        leaders = self._bound_leaders()
        left: list[tuple[int, BoolArray]] = []
        for leader in leaders:
            successors = self._successors(leader)
            if successors is None:
                continue
            alone = not self._has_pairs(leader)
            nodes = _NODES_PER_SUCCESSOR * int(successors.sum()) + _NODES_AT_LEAST
            if self._tree(leader, successors, -1, _ALL_NODES if alone else nodes):
                self.open_bounds.pop(leader)
            else:
                left.append((leader, successors))
        for leader, _ in sorted(left, key=lambda pair: self.open_bounds[pair[0]]):
            successors = self._successors(leader)
            if successors is not None:
                for successor in sorted(
                    np.nonzero(successors)[0].tolist(), key=self.floors.__getitem__
                ):
                    if not self._out_as_successor(successor):
                        one = np.zeros(len(successors), dtype=bool)
                        one[successor] = True
                        self._tree(leader, one, successor, _ALL_NODES)
            self.open_bounds.pop(leader, None)
        return self.proven()

    def proven(self) -> float:
        """Bound of the whole stage: of the leaders that are open, and the threshold elsewhere."""
        closed = self._below(self.kernel.best()[0])
        if self.step and math.isfinite(closed):
            closed = math.ceil(closed)  # scores are whole numbers
        return least_bound(closed, *self.open_bounds.values())

    def claim(self) -> LossClaimRecord | None:
        """Return the proofs, once all leaders are closed; None: they were not recorded."""
        if not self.trees.complete:
            return None
        core, value = self.search.core, self.kernel.best()[0]
        bound, required = value * _CLAIMED, value * _CLAIMED
        if self.step and math.isfinite(value):
            bound, required = math.ceil(self._below(value)), value - 0.75 * self.step
        after = (self._below(value), required)
        if self.goal == "bounded":
            after = (self._most_after, self.ceiling * (1 + TIE))
            required = min(required, after[1])
        return LossClaimRecord(
            goal=self.goal,
            bound=bound,
            granularity=self.step,
            reached=(self._most_normal, after[0]),
            required=(required, after[1]),
            floors=self.floors,
            multipliers=self.u,
            may_vote=self.rules.may_vote.tolist(),
            may_lead=self.rules.may_lead.tolist(),
            trees=self.trees.trees,
            clients=core.active,
            replicas=self.rules.replicas_max,
            clients_move=self.search.goal.clients_move,
        )

    @property
    def _most_after(self) -> float:
        """Score after a loss that the search takes for one above the ceiling."""
        return self.ceiling * (1 + 2 * TIE)

    @property
    def _most_normal(self) -> float:
        """Score that is not to be reached without a loss."""
        least = self._below(self.kernel.best()[0])
        return min(least, self._most_after) if self.goal == "bounded" else least

    def _bound_leaders(self) -> list[int]:
        """Bound the normal score of everyone who may vote; leaders by it."""
        may_vote = np.nonzero(self.rules.may_vote)[0].tolist()
        candidates = np.nonzero(self.rules.may_lead)[0].tolist()
        for leader in candidates:
            self.open_bounds[leader] = self.search.bound
        for site in may_vote:
            seconds = self.search.seconds_left
            self.floors[site] = self.kernel.floor(
                site, tuning.LOSS_FLOOR_STEPS, self.u[site], seconds, rules=False
            )
            if site in self.open_bounds:
                least = self.share * max(0.0, self.floors[site])
                self.open_bounds[site] = max(self.open_bounds[site], least)
            if seconds <= 0:
                self._report()
        return sorted(candidates, key=self.floors.__getitem__)

    def _below(self, value: float) -> float:
        """Return the threshold below which a score is better than `value`; as in the kernel."""
        if not math.isfinite(value):
            return value
        return value - 0.5 * self.step if self.step else value - 5e-10 * abs(value)

    def _out_as_successor(self, site: int) -> bool:
        if self.goal == "weighted" or self.search.goal.clients_move:
            return False  # clients that turn to another site may come closer to the remaining sites
        most = self._below(self.kernel.best()[0])
        if self.goal == "bounded":
            most = self._most_after
        return bool(self.floors[site] >= most)

    def _successors(self, leader: int) -> BoolArray | None:
        """Return the possible successors of a leader, or None if the leader is eliminated."""
        if self.goal != "weighted" and self.floors[leader] >= self._most_normal:
            self.open_bounds.pop(leader, None)
            return None
        out = [self._out_as_successor(site) for site in range(len(self.floors))]
        successors: BoolArray = self.rules.may_vote & ~np.array(out)
        if self.loss_of[leader] >= 0:
            successors &= self.loss_of != self.loss_of[leader]
        return successors

    def _has_pairs(self, leader: int) -> bool:
        return bool(self.loss_of[leader] >= 0) and not self.search.goal.leader_may_move

    def _tree(self, leader: int, successors: BoolArray, successor: int, nodes: int) -> bool:
        """Run a tree; return whether it was closed. If not, its bound bounds the leader."""
        kernel, stats = self.kernel, self.search.stats
        kernel.open(leader, successors, self.u[leader], successor=successor, record=self.trees.left)
        done = 0
        while True:
            outcome = kernel.run(nodes - done, min(_SLICE, self.search.seconds_left))
            counters = kernel.counters()
            done = counters.nodes
            self._take()
            if outcome is not TreeOutcome.PAUSED:
                break
            if successor < 0:
                self._raise_bound(leader, self._tree_bound())
            self._report()
        if outcome is TreeOutcome.LIMIT:
            self._raise_bound(leader, self._tree_bound())
        for name in ("nodes", "bounds", "leaves"):
            stats[name] = int(stats[name]) + int(getattr(counters, name))
        if outcome is TreeOutcome.CLOSED and self.trees.complete:
            self.trees.keep(leader, successor, kernel.record())
        self._report()
        return outcome is TreeOutcome.CLOSED

    def _tree_bound(self) -> float:
        """Lower bound of everything under the leader of the open tree, for all failover leaders."""
        counters, value = self.kernel.counters(), self.kernel.best()[0]
        if self.goal != "bounded":
            return min(counters.least, self._below(value))
        least = self._most_normal + counters.least_normal
        return least if math.isfinite(value) and math.isfinite(least) else -math.inf

    def _raise_bound(self, leader: int, bound: float) -> None:
        if bound > self.open_bounds[leader]:
            self.open_bounds[leader] = bound

    def _take(self) -> None:
        """Hand an improvement on to the search."""
        value, _, found = self.kernel.best()
        if not self.ties and found is not None and value < self.search.value:
            self.search.offer(found, objective_value(self.search.problem, found))

    def _report(self) -> None:
        if not self.ties:
            self.search.report(self.proven() if self.open_bounds else -math.inf)
        else:
            self.search.report()
