"""The compiled search over losses (``csrc/scenarios`` of the exact engine) as a Python object."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from formulations.exact.kernel_types import family_arrays
from formulations.exact.reduced_problem import ReducedProblem
from formulations.exact.threshold_search import TreeOutcome
from placement.contingency.objective import Contingency, Goal
from placement.evaluation.losses import demand_after, moving_clients
from placement.model.configuration import Configuration
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray, IntArray

__all__ = [
    "MOST_HITS",
    "MOST_REPLICAS",
    "LossKernel",
    "MovedClients",
    "TreeCounters",
    "loss_of_sites",
]

_GOALS: Mapping[Goal, int] = {"worst": 0, "bounded": 1, "weighted": 2}
_BIG = 1e299
_PAD = 8
MOST_REPLICAS = 64
"""Largest number of replicas: bits of a mask (MOST_REPLICAS of losses.h)."""
MOST_HITS = 192
"""Most replicas and losses that move clients together (MOST_HITS of losses.h)."""


@dataclass(frozen=True, slots=True)
class TreeCounters:
    """State of the open tree.

    Attributes
    ----------
    least
        Lower bound on the value of every configuration of the tree that is neither evaluated nor
        closed, for the goals "worst" and "weighted"; +∞ when there is none.
    least_normal
        The same for the normal score less the best one, for the goal "bounded".
    nodes, bounds, leaves, evaluations
        How much was done: nodes, bounds and sets of this tree; sets of the whole search.
    """

    least: float
    least_normal: float
    nodes: int
    bounds: int
    leaves: int
    evaluations: int


def loss_of_sites(problem: Problem, contingency: Contingency) -> IntArray:
    """Return the number of the loss that takes each site, -1 if none does, shape (sites,).

    For single domains, which are disjoint.
    """
    loss_of: IntArray = np.full(len(problem.instance.sites), -1, dtype=np.int32)
    for number, loss in enumerate(contingency.losses(problem)):
        loss_of[list(loss.sites)] = number
    return loss_of


@dataclass(frozen=True, eq=False)
class MovedClients:
    """Costs and orders after each loss where clients of lost sites move; see losses.h.

    Attributes
    ----------
    moves
        Whether a loss moves clients, shape (losses,).
    start
        First row of each loss and the number of rows, shape (losses + 1,).
    clients
        Client of each row, as an index into the active ones: where RTTs vary, those of an interval.
    rtt
        To every site afterwards, shape (rows, sites).
    direct
        Σ G d(c, leader) afterwards, shape (losses, sites).
    """

    moves: BoolArray
    start: IntArray
    clients: IntArray
    rtt: FloatArray
    direct: FloatArray

    @classmethod
    def of(cls, problem: Problem, core: ReducedProblem) -> MovedClients | None:
        """Collect the moved clients; None where no client moves. O(losses · clients · sites)."""
        contingency = problem.objective
        assert isinstance(contingency, Contingency)
        losses = contingency.losses(problem)
        moves = np.array([contingency.moves_clients(problem, loss) for loss in losses], dtype=bool)
        if not moves.any():
            return None
        place = {int(client): row for row, client in enumerate(core.active)}
        start, clients, rows = [0], [], []
        direct, weights = np.tile(core.direct, (len(losses), 1)), core.demand.direct.reshape(-1)
        for number, loss in enumerate(losses):
            moved = moving_clients(problem, loss.sites) if moves[number] else ()
            if moved:
                after = demand_after(problem, loss.sites).client_rtt
                issued, after = after.shape[1], after.reshape(-1, core.sites)
                for row in itertools.chain(*(range(c, len(after), issued) for c in moved)):
                    direct[number] += weights[row] * (after[row] - core.client_rtt[row])
                    if row in place:
                        clients.append(place[row])
                        rows.append(after[row])
            start.append(len(clients))
        return cls(
            moves,
            np.array(start, dtype=np.int32),
            np.array(clients, dtype=np.int32),
            np.array(rows, dtype=np.float64).reshape(len(rows), core.sites),
            direct,
        )

    @property
    def handle(self) -> tuple[BoolArray, IntArray, IntArray, FloatArray, IntArray, FloatArray]:
        """Return the arrays as the compiled search takes them."""
        order: IntArray = np.argsort(self.rtt, axis=1, kind="stable").astype(np.int32)
        return self.moves, self.start, self.clients, self.rtt, order, self.direct


def _finite(value: float) -> float:
    return value if abs(value) < _BIG else math.copysign(math.inf, value)


class LossKernel:
    """Best configuration so far, and the tree of one leader at a time.

    Parameters
    ----------
    problem
        A question about losses of single sites or domains.
    core
        The same without its objective.
    goal
        "worst", "bounded" or "weighted".
    ceiling
        Largest score after a loss that the goal "bounded" allows; else +∞.

    Attributes
    ----------
    sites, padded
        Number of sites, and length of a row of multipliers.
    step
        Every score is a multiple of it; 0: not known.
    """

    def __init__(
        self, problem: Problem, core: ReducedProblem, goal: Goal, ceiling: float = math.inf
    ) -> None:
        import formulations.exact._scenarios as compiled

        contingency = problem.objective
        assert isinstance(contingency, Contingency)
        rules, demand, active = core.rules, core.demand, core.active
        of_interval = np.searchsorted(core.scenario, np.arange(demand.scenarios + 1))
        rtt = np.ascontiguousarray(core.client_rtt[active])
        order = np.argsort(rtt, axis=1, kind="stable").astype(np.int32)
        probability = np.array(contingency.probabilities(problem))
        flags = (rules.may_hold, rules.must_hold, rules.may_vote, rules.must_vote, rules.may_lead)
        moved = MovedClients.of(problem, core)
        self._compiled = compiled
        self.step = 0.0 if goal == "weighted" or moved is not None else core.granularity
        self.sites = rtt.shape[1]
        self.padded = -(-len(active) // _PAD) * _PAD
        self.goal = goal
        self._context = compiled.losses(
            rtt,
            np.ascontiguousarray(order),
            core.near[active],
            core.relay[active],
            (
                of_interval.astype(np.int32),
                np.ascontiguousarray(demand.site_rtt),
                np.ascontiguousarray(demand.quorum),
            ),
            np.ascontiguousarray(core.direct),
            loss_of_sites(problem, contingency),
            probability,
            None if moved is None else moved.handle,
            np.ascontiguousarray(np.stack(flags)),
            family_arrays(core.families["replicas"]),
            family_arrays(core.families["voters"]),
            (
                len(active),
                self.sites,
                demand.scenarios,
                len(probability),
                rules.replicas_min,
                rules.replicas_max,
                rules.voters,
                rules.quorum,
                int(contingency.leader_may_move),
                _GOALS[goal],
            ),
            (
                self.step,
                min(ceiling, 1e300),
            ),
        )

    def start(self, value: float) -> None:
        """Set the value that is to be undercut, and forget the configuration."""
        self._compiled.start(self._context, min(value, 1e300))

    def offer(self, replicas: tuple[int, ...], seconds: float) -> None:
        """Take the best leader and voters of a set of replicas if they are the best so far."""
        self._compiled.descend(self._context, replicas, -1, 0, seconds)

    def descend(self, replicas: tuple[int, ...], kicks: int, seed: int, seconds: float) -> None:
        """Descend by swaps of a replica, then from the best after `kicks` random changes."""
        self._compiled.descend(self._context, replicas, kicks, seed & 0x7FFFFFFF, seconds)

    def floor(
        self, leader: int, steps: int, u: FloatArray, seconds: float, *, rules: bool
    ) -> float:
        """Lower bound on the normal score under a leader; its multipliers are written to `u`.

        With `rules` false no site must hold a replica: then the bound holds for what the leader
        costs after any loss as well.
        """
        value = self._compiled.floor(self._context, leader, int(rules), steps, u, seconds)
        return _finite(value)

    def open(
        self,
        leader: int,
        successors: BoolArray,
        u: FloatArray,
        *,
        successor: int = -1,
        record: int = 0,
    ) -> None:
        """Begin the tree of a leader and of those who may lead when its site is lost.

        `successor` holds a replica in all of the tree; `record` is the most numbers of a
        certificate.
        """
        group = np.ascontiguousarray(successors, dtype=np.bool_)
        self._compiled.open(self._context, leader, group, successor, u, record)

    def run(self, nodes: int, seconds: float) -> TreeOutcome:
        """Go on with the tree for so many nodes, or seconds."""
        return TreeOutcome(self._compiled.run(self._context, nodes, seconds))

    def best(self) -> tuple[float, float, Configuration | None]:
        """Return the value to undercut, the normal score with it, and the configuration."""
        value, normal, leader, voters, replicas = self._compiled.best(self._context)
        found = Configuration.of(leader, voters, replicas) if leader >= 0 else None
        return _finite(value), _finite(normal), found

    def counters(self) -> TreeCounters:
        """Return the state of the open tree."""
        least, normal, *counts = self._compiled.state(self._context)
        return TreeCounters(_finite(least), _finite(normal), *counts)

    def record(self) -> FloatArray | None:
        """Return the numbers that were recorded of the open tree; None: too many."""
        data = self._compiled.record(self._context)
        return None if data is None else np.frombuffer(data, dtype=np.float64)
