"""The search for questions about the mean after the loss of any one domain.

The normal case and every loss are separate assignment problems over the same replicas. The compiled
search (``csrc/scenarios``, losses.h) asks whether some configuration is below a threshold in all of
them. It closes a part of the search if a weighted sum of the Lagrangean bounds of the scenarios
says that none is. It does more than the trees of :mod:`formulations.exact.measures` do for any
rows: it evaluates sets of replicas itself, and branches on votes. The order of the questions is:

1. A start: the plan of least mean, and a swap descent from it on the goal.
2. A bound of the mean for every leader, which holds after a loss too: where each plan loses one of
   its replicas while its leader stays, with one replica less. If it reaches the threshold, the
   leader is eliminated, as leader and as successor.
3. For every other leader, a tree for all that may take over when its site is lost, and where that
   becomes large a tree for each of them. The part of the least bound is the next.
4. Where the worst case is minimised: of the plans of that worst case, the one of least mean.

The records become a certificate of the format of all measures
(:mod:`placement.proof.measures_proof`).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from formulations.exact import tuning
from formulations.exact.kernel import family_arrays
from formulations.exact.reduced_problem import ReducedProblem
from formulations.exact.threshold_certificate import ANY, Part, ThresholdCertificate, TreeRecord
from formulations.exact.threshold_driver import (
    ABOVE,
    CLAIM_SLACK,
    SEARCHED_LESS,
    ThresholdDriver,
)
from formulations.exact.threshold_search import SearchCounters, TreeOutcome
from placement.contingency.loss_question import LossGoal, LossQuestion
from placement.evaluation.losses import demand_after, moving_clients
from placement.evaluation.score import TIE
from placement.model.configuration import Configuration
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray, IntArray

_GOALS: Mapping[LossGoal, int] = {"worst": 0, "bounded": 1, "weighted": 2}
_BIG = 1e299
_PAD = 8
MOST_REPLICAS = 64
"""Largest number of replicas: bits of a mask (MOST_REPLICAS of losses.h)."""
MOST_HITS = 192
"""Most replicas and losses that move clients together (MOST_HITS of losses.h)."""


@dataclass(frozen=True, eq=False)
class MovedClients:
    """Costs and orders after each loss where clients of lost sites move; see losses.h.

    Loss k, which moves clients where `moves`, has the rows start[k] to start[k + 1]. A row has its
    client (an index into the active ones; where RTTs vary, those of an interval) and the RTT to
    every site afterwards, shape (rows, sites). `direct` is Σ G d(c, leader) afterwards, shape
    (losses, sites).
    """

    moves: BoolArray
    start: IntArray
    clients: IntArray
    rtt: FloatArray
    direct: FloatArray

    @classmethod
    def of(
        cls, problem: Problem, question: LossQuestion, core: ReducedProblem
    ) -> MovedClients | None:
        """Collect the moved clients; None where no client moves. O(losses · clients · sites)."""
        losses = question.losses
        moves = np.array([question.moves_clients(problem, loss) for loss in losses], dtype=bool)
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

    `core` is the problem without its objective. `padded` is the length of a row of multipliers;
    `loss_of` the number of the loss that takes each site, −1 if none does.
    """

    def __init__(self, problem: Problem, question: LossQuestion, core: ReducedProblem) -> None:
        import formulations.exact._scenarios as compiled

        rules, demand, active = core.rules, core.demand, core.active
        of_interval = np.searchsorted(core.scenario, np.arange(demand.scenarios + 1))
        rtt = np.ascontiguousarray(core.client_rtt[active])
        order = np.argsort(rtt, axis=1, kind="stable").astype(np.int32)
        flags = (rules.may_hold, rules.must_hold, rules.may_vote, rules.must_vote, rules.may_lead)
        moved = MovedClients.of(problem, question, core)
        self._compiled = compiled
        self.sites = rtt.shape[1]
        self.padded = -(-len(active) // _PAD) * _PAD
        self.loss_of: IntArray = np.full(self.sites, -1, dtype=np.int32)
        for number, loss in enumerate(question.losses):
            self.loss_of[list(loss.sites)] = number
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
            self.loss_of,
            np.array(question.probabilities),
            None if moved is None else moved.handle,
            np.ascontiguousarray(np.stack(flags)),
            family_arrays(core.families["replicas"]),
            family_arrays(core.families["voters"]),
            (
                len(active),
                self.sites,
                demand.scenarios,
                len(question.losses),
                rules.replicas_min,
                rules.replicas_max,
                rules.voters,
                rules.quorum,
                int(question.leader_moves),
                _GOALS[question.goal],
            ),
            min(question.ceiling, 1e300),
        )

    def start(self, value: float) -> None:
        """Set the value that is to be undercut, and forget the configuration."""
        self._compiled.start(self._context, min(value, 1e300))

    def descend(self, replicas: tuple[int, ...], kicks: int, seed: int, seconds: float) -> None:
        """Descend by swaps of a replica, then from the best after `kicks` random changes."""
        self._compiled.descend(self._context, replicas, kicks, seed & 0x7FFFFFFF, seconds)

    def floor(self, leader: int, most: int, steps: int, u: FloatArray, seconds: float) -> float:
        """Lower bound on the mean under a leader with `most` replicas; multipliers go to `u`."""
        return _finite(self._compiled.floor(self._context, leader, most, steps, u, seconds))

    def open(
        self,
        leader: int,
        successors: BoolArray,
        u: FloatArray,
        *,
        successor: int = -1,
        record: int = 0,
    ) -> None:
        """Begin the tree of a leader and its successors; `successor` always holds a replica."""
        group = np.ascontiguousarray(successors, dtype=np.bool_)
        self._compiled.open(self._context, leader, group, successor, u, record)

    def run(self, nodes: int, seconds: float) -> TreeOutcome:
        """Go on with the tree for so many nodes, or seconds."""
        return TreeOutcome(self._compiled.run(self._context, nodes, seconds))

    def best(self) -> tuple[float, Configuration | None]:
        """Return the value to undercut, and the configuration."""
        value, leader, voters, replicas = self._compiled.best(self._context)
        found = Configuration.of(leader, sorted(voters), replicas) if leader >= 0 else None
        return _finite(value), found

    def least(self) -> tuple[float, float]:
        """Bound all that is neither evaluated nor closed in the open tree; +∞: nothing is open.

        The first is on the value; the other, for "bounded", on the normal score less the best one.
        """
        least, normal, *_ = self._compiled.state(self._context)
        return _finite(least), _finite(normal)

    def counters(self) -> SearchCounters:
        """Return the work in the open tree."""
        return SearchCounters(*self._compiled.state(self._context)[2:])

    def record(self) -> FloatArray | None:
        """Return the numbers that were recorded of the open tree; None: too many."""
        data = self._compiled.record(self._context)
        return None if data is None else np.frombuffer(data, dtype=np.float64)


_MOST_VOTER_SETS = 20_000
_NODES_PER_SUCCESSOR, _NODES_AT_LEAST, _MORE_NODES = 1, 150, 10
_SLICE = 0.25  # seconds between two reports


def refuses_losses(problem: Problem, question: LossQuestion) -> str | None:
    """Return why the search over losses does not take a question, or None."""
    rules = problem.rules
    moving = sum(question.moves_clients(problem, loss) for loss in question.losses)
    if moving and moving + rules.replicas_max > MOST_HITS:
        return f"clients of more than {MOST_HITS - rules.replicas_max} lost sites move"
    if rules.replicas_max > MOST_REPLICAS:
        return f"there are more than {MOST_REPLICAS} replicas"
    if math.comb(rules.replicas_max, rules.voters) > _MOST_VOTER_SETS:
        return "there are too many sets of voters"
    return ReducedProblem.refuses(problem.demand, rules)


@dataclass
class LossSearch(ThresholdDriver):
    """The search for one question about losses, which :func:`refuses_losses` lets pass.

    A part is a leader with all who may take over from it, or with one of them. Values of the kernel
    are ms·operations. Of each site as the leader, normally or after a loss, `means` is a bound of
    the mean, shape (sites,), and `multipliers` prove it, shape (sites, clients).
    """

    question: LossQuestion = field(init=False)
    kernel: LossKernel = field(init=False)
    multipliers: FloatArray = field(init=False)
    means: FloatArray = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        question = LossQuestion.of(self.problem)
        assert question is not None
        if self.alone:
            least = question.normal_share * self.unlimited.bound / self.unit
            self.floor = max(0.0, least) if math.isfinite(least) else -math.inf
        else:
            question = question.among_ties(self.ties * self.problem.demand.operations)
        self.question, self.core = question, ReducedProblem.of(self.problem)
        self.clients, self.rules = self.core.active, self.core.rules
        self.kernel = LossKernel(self.problem, question, self.core)
        self.multipliers = np.zeros((self.core.sites, self.kernel.padded))
        self.means = np.full(self.core.sites, -math.inf)
        self._loss_of = self.kernel.loss_of
        self._taken: Configuration | None = None

    @property
    def breaks_ties(self) -> bool:
        """Return whether the least mean among plans of equal value is asked for."""
        return self.question.goal == "worst"

    @property
    def slack(self) -> float:
        """By how much X of what is minimised was to be lower than what is claimed."""
        return CLAIM_SLACK * abs(self.value) * self.unit if self.best is not None else 0.0

    # --- plans ------------------------------------------------------------------------------

    def start(self) -> None:
        """Descend from the plans that are known."""
        found = self.unlimited.configuration
        known = self.options.start if self.alone else self.best
        if known is not None:
            self._descend(known)
        if found is not None and self.alone:
            if self.question.goal == "bounded":  # a set that keeps the ceiling
                worst = replace(self.question, goal="worst", ceiling=math.inf)
                kernel = LossKernel(self.problem, worst, self.core)
                kernel.descend(found.replicas, tuning.LOSS_KICKS, 0, min(self.seconds_left, 5.0))
                if (kept := kernel.best()[1]) is not None:
                    self._descend(kept)
            self._descend(found)

    def _descend(self, configuration: Configuration) -> None:
        seconds, seed = min(self.seconds_left, 5.0), self.options.seed
        self.kernel.descend(configuration.replicas, tuning.LOSS_KICKS, seed, seconds)
        self._take()

    def _take(self) -> None:
        """Take over what the kernel has found."""
        found = self.kernel.best()[1]
        if found is not None and found != self._taken:
            self._taken = found
            if self.accept(found):
                self.report()

    # --- leaders ----------------------------------------------------------------------------

    def parts(self) -> Mapping[Part, float]:
        """Return the leaders, each with a bound from the mean under everyone who may vote."""
        rules, most = self.rules, max(1, self.rules.replicas_max - int(self._always_hit))
        for site in np.nonzero(rules.may_vote)[0].tolist():
            self.in_time()
            self.means[site] = self.kernel.floor(
                site, most, tuning.LOSS_FLOOR_STEPS, self.multipliers[site], self.seconds_left
            )
        least = max(0.0, float(self.means[rules.may_vote].min(initial=math.inf)))
        bounds = {}
        for leader in np.nonzero(rules.may_lead)[0].tolist():
            bound, loss = max(0.0, float(self.means[leader])), self._loss_of[leader]
            if self.question.goal == "weighted" and loss >= 0:
                # another voter leads after it
                bound += self.question.probabilities[loss] * min(0.0, least - bound)
            bounds[leader, ANY] = max(self.floor, bound / self.unit)
        return bounds

    @property
    def _always_hit(self) -> bool:
        """Return whether every plan loses a replica while its leader stays.

        So it is where each site has a loss: of several domains, one is another's. But what is left
        may break rules that all replicas obey.
        """
        question = self.question
        stays = question.goal == "worst" and not (question.leader_moves or question.clients_move)
        every = bool((self._loss_of[self.rules.may_hold] >= 0).all())
        return stays and every and not self.rules.of("replicas")

    def close(self, part: Part, nodes: int) -> Iterable[tuple[Part, int]]:
        """Close a part; one that grows large is left with more nodes, or for each successor."""
        leader, successor = part
        successors = self._successors(leader, successor)
        if successors is None or (nodes == 0 and successor == ANY and self._mean_reaches(leader)):
            return []
        count = int(successors.sum())
        nodes = max(nodes, _NODES_PER_SUCCESSOR * count + _NODES_AT_LEAST)
        if self._tree(part, successors, nodes):
            return []
        if successor == ANY and self._loss_of[leader] >= 0 and not self.question.leader_moves:
            return [((leader, one), 0) for one in np.nonzero(successors)[0].tolist()]
        return [(part, _MORE_NODES * nodes)]

    def _mean_reaches(self, leader: int) -> bool:
        """Return whether the mean without a loss rules out a leader."""
        weighted = self.question.goal == "weighted"
        return not weighted and self.mean_reaches(leader, self._most_normal)

    @property
    def _most_after(self) -> float:
        """Mean after a loss that is not to be reached."""
        if self.question.goal == "bounded":
            return self.question.ceiling * (1 + ABOVE)  # as in losses_thresholds of losses.c
        return _below(self.kernel.best()[0])

    @property
    def _most_normal(self) -> float:
        """Mean that is not to be reached without a loss."""
        return min(_below(self.kernel.best()[0]), self._most_after)

    def _out(self, most: float) -> BoolArray:
        """Return the voters under whom no mean is below this."""
        weighted = self.question.goal == "weighted"
        return self.rules.may_vote & (self.means >= most) & (not weighted)

    def _out_as_successors(self) -> BoolArray:
        """Return the voters who need not take over.

        Clients that turn to another site may come closer to the remaining sites.
        """
        return self._out(self._most_after) & (not self.question.clients_move)

    def _successors(self, leader: int, successor: int) -> BoolArray | None:
        """Return the possible successors of a part, or None if it is eliminated."""
        if self._out(self._most_normal)[leader]:
            return None
        successors: BoolArray = self.rules.may_vote & ~self._out_as_successors()
        if self._loss_of[leader] >= 0:
            successors &= self._loss_of != self._loss_of[leader]
        if successor == ANY:
            return successors
        one = np.zeros_like(successors)
        one[successor] = successors[successor]
        return one if one.any() else None

    def _tree(self, part: Part, successors: BoolArray, nodes: int) -> bool:
        """Run a tree; return whether it was closed. If not, its bound bounds the part."""
        kernel, (leader, successor) = self.kernel, part
        kernel.open(
            leader, successors, self.multipliers[leader], successor=successor, record=self.room
        )
        done, seconds, outcome = 0, _SLICE, TreeOutcome.PAUSED
        while outcome is TreeOutcome.PAUSED:
            self.in_time()
            self.stop_at_gap()
            outcome = kernel.run(nodes - done, min(seconds, self.seconds_left))
            counters = kernel.counters()
            if counters.nodes == done:  # a node that is stopped begins again
                seconds *= 2
            done = counters.nodes
            self._take()
            if outcome is not TreeOutcome.CLOSED:
                self._raise_bound(part)
                self.report()
        self.counters.add(counters)
        if outcome is TreeOutcome.CLOSED:
            self.keep(part, kernel.record())
        return outcome is TreeOutcome.CLOSED

    def _raise_bound(self, part: Part) -> None:
        """Raise the bound of a part to that of its open tree."""
        (least, normal), value = self.kernel.least(), self.kernel.best()[0]
        least = min(least, _below(value))
        if self.question.goal == "bounded":
            least = self._most_normal + normal
            least = least if math.isfinite(value) and math.isfinite(least) else -math.inf
        self.open_bounds[part] = max(self.open_bounds[part], least / self.unit)

    # --- the certificate --------------------------------------------------------------------

    @property
    def certificate(self) -> ThresholdCertificate | None:
        """Certificate of the result; None: not recorded."""
        found = super().certificate
        if found is None:
            return None
        question, losses = self.question, len(self.question.losses)
        claimed = found.bound * self.unit
        after, aim, normal = math.nan, math.nan, 0
        required = [claimed]
        if question.goal == "bounded":
            kept = question.ceiling * (1 + 2 * TIE)
            after = self._most_after - kept
            required.append(kept)
            # of a limit and the mean, the rows of the limit come first
            aim, normal = (math.nan, 1 + losses) if self.best is not None else (after, 0)
        scenarios = range(2 * losses)  # the normal one comes first
        form = TreeRecord(
            np.zeros(0),
            (normal, *(1 + scenario % losses for scenario in scenarios)),
            (1.0, *(1.0 for _ in scenarios)),
            (aim, *(after for _ in scenarios)),
        )
        leaders, successors = self._out(self._most_normal), self._out_as_successors()
        floors = list(found.floors)
        for site in np.nonzero(leaders | successors)[0].tolist():
            met = max(most for most in required if most <= self.means[site])
            u = self.multipliers[site][: len(self.clients)]
            floors.append((site, u, self.means[site] - met))
        return replace(
            found,
            records={
                (leader, successor): replace(form, events=record.events)
                for (leader, successor), record in found.records.items()
                if not leaders[leader] and not (successor != ANY and successors[successor])
            },
            floors=floors,
            weighted=question.goal == "weighted",
        )


def _below(value: float) -> float:
    """Return the threshold below which a mean is better than `value`; as in the kernel."""
    return value - SEARCHED_LESS * abs(value) if math.isfinite(value) else value
