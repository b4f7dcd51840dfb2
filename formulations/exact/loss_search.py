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

import heapq
import itertools
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from formulations.exact import tuning
from formulations.exact.branch_and_bound import Stop
from formulations.exact.kernel import family_arrays
from formulations.exact.reduced_problem import ReducedProblem
from formulations.exact.threshold_search import MOST_RECORDED, ThresholdEvents, TreeOutcome
from placement.contingency.loss_question import LossGoal, LossQuestion
from placement.evaluation.losses import demand_after, moving_clients
from placement.evaluation.objective import score_of
from placement.evaluation.score import TIE
from placement.feasibility.feasible_plans import violations
from placement.measures.question import MeasureQuestion
from placement.methods.options import Options, Progress
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.proof.enumeration_check import certified_or_named
from placement.proof.measures_proof import FORMAT
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.support.status import Termination, least_bound, relative_gap

_GOALS: Mapping[LossGoal, int] = {"worst": 0, "bounded": 1, "weighted": 2}
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


def _loss_of_sites(question: LossQuestion, sites: int) -> IntArray:
    """Return the number of the loss that takes each site, -1 if none does, shape (sites,)."""
    loss_of: IntArray = np.full(sites, -1, dtype=np.int32)
    for number, loss in enumerate(question.losses):
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

    Parameters
    ----------
    problem, question
        What is asked.
    core
        The problem without its objective.

    Attributes
    ----------
    sites, padded
        Number of sites, and length of a row of multipliers.
    """

    def __init__(self, problem: Problem, question: LossQuestion, core: ReducedProblem) -> None:
        import formulations.exact._scenarios as compiled

        rules, demand, active = core.rules, core.demand, core.active
        of_interval = np.searchsorted(core.scenario, np.arange(demand.scenarios + 1))
        rtt = np.ascontiguousarray(core.client_rtt[active])
        order = np.argsort(rtt, axis=1, kind="stable").astype(np.int32)
        probability = np.array(question.probabilities)
        flags = (rules.may_hold, rules.must_hold, rules.may_vote, rules.must_vote, rules.may_lead)
        moved = MovedClients.of(problem, question, core)
        self._compiled = compiled
        self.sites = rtt.shape[1]
        self.padded = -(-len(active) // _PAD) * _PAD
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
            _loss_of_sites(question, self.sites),
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
                int(question.leader_moves),
                _GOALS[question.goal],
            ),
            (0.0, min(question.ceiling, 1e300)),
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

    def floor(self, leader: int, most: int, steps: int, u: FloatArray, seconds: float) -> float:
        """Lower bound on the mean under a leader with `most` replicas, normally or after a loss.

        Its multipliers are written to `u`.
        """
        value = self._compiled.floor(self._context, leader, most, steps, u, seconds)
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


_MOST_VOTER_SETS = 20_000
_PROVED = "branch and bound over the normal case and every loss"
_ANY = -1  # all successors of a leader
_NODES_PER_SUCCESSOR, _NODES_AT_LEAST, _MORE_NODES = 3, 50, 10
_SEARCHED_LESS = 5e-10  # as in losses_below of losses.c
_CLAIMED = 1 - 9e-10
"""Share of the value that a proof is claimed for: less than the search asks, so that multipliers
may be rounded to few digits, and enough to call the value optimal."""
_ABOVE = 1e-10  # as in losses_thresholds of losses.c
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


def solve_losses(
    problem: Problem, question: LossQuestion, options: Options, mean: Plan, end: float
) -> Plan:
    """Answer a question about losses with a proof; at a limit, the best so far with its bound.

    Parameters
    ----------
    problem, question, options
        What is asked, which :func:`refuses_losses` lets pass, and the options of the method.
    mean
        The plan of least mean.
    end
        A time.perf_counter() at which to stop.
    """
    search = LossSearch(problem, question, options, mean, end)
    try:
        return search.answer()
    except KeyboardInterrupt:
        return search.plan(Termination.INTERRUPTED)
    except Stop as stopped:
        return search.plan(stopped.termination)


class LossSearch:
    """The best configuration and bound of one question, and how they came about.

    Values are those of the kernel, ms·operations, save in :meth:`plan`.
    """

    def __init__(
        self, problem: Problem, question: LossQuestion, options: Options, mean: Plan, end: float
    ) -> None:
        self.problem, self.question, self.options = problem, question, options
        self.mean, self.end, self.began = mean, end, time.perf_counter()
        self.core = ReducedProblem.of(problem)
        self.best: Configuration | None = None
        self.value = math.inf
        self.bound = -math.inf
        if math.isfinite(mean.bound):
            self.bound = max(0.0, question.normal_share * mean.bound)
        self.certify = bool(options.settings.get("certificate"))
        self.claim: LossClaimRecord | None = None
        self.ties: Callable[[], Mapping[str, object]] | None = None
        self.notes: list[str] = []
        self.stats: dict[str, float | int | str] = {"nodes": 0, "bounds": 0, "leaves": 0}

    @property
    def seconds_left(self) -> float:
        """Seconds until the time limit."""
        return min(max(self.end - time.perf_counter(), 0.0), 1e9)

    def answer(self) -> Plan:
        """Run the stages."""
        found = self.mean.configuration
        if self.mean.termination is Termination.INTERRUPTED:
            if found is not None and not violations(self.problem, found):
                self.offer(found)
            return self.plan(Termination.INTERRUPTED)
        stage = _Stage(self, self.question)
        if self.options.start is not None:
            stage.start_from(self.options.start)
        if found is not None:
            if self.question.goal == "bounded":
                stage.start_from_worst(found)
            stage.start_from(found)
        self.bound = max(self.bound, stage.prove())
        self.claim = stage.claim()
        if self.question.goal == "worst" and self.best is not None:
            self._break_ties()
        return self.plan(Termination.FINISHED)

    def plan(self, termination: Termination) -> Plan:
        """Return the present state of the search as a plan."""
        rate = self.problem.demand.operations
        bound, certificate = min(self.bound, self.value), None
        reasons: tuple[str, ...] = ()
        if self.claim is not None:
            bound = min(bound, self.claim.bound)
            value = self.value / rate
            certificate = LossCertificate(self.best, value, rate, self.claim, self.ties).to_json
        if self.best is None and math.isinf(bound) and bound > 0:
            assert isinstance(self.problem.objective, MeasureQuestion)
            asked = " and ".join(map(str, self.problem.objective.keep))
            reasons = (
                f"no plan keeps {asked or 'a quorum after every loss'} (proved by {_PROVED})",
            )
        plan = Plan.of(
            self.problem,
            self.best,
            method=self.mean.method,
            bound=bound / rate,
            termination=termination,
            reasons=reasons,
            notes=self.notes,
            stats=self.stats,
            certificate=certificate,
        )
        why = ": it would hold too many numbers" if self.certify else ""
        return certified_or_named(plan, _PROVED, why, wanted=self.certify)

    def offer(self, configuration: Configuration) -> None:
        """Keep a configuration of the search and report it."""
        self.best = configuration
        self.value = objective_value(self.problem, configuration) * self.problem.demand.operations
        self.report()

    def report(self, bound: float = -math.inf) -> None:
        """Pass progress on, and stop at a limit."""
        known, rate = max(self.bound, min(bound, self.value)), self.problem.demand.operations
        self.bound = known if math.isfinite(known) else self.bound
        seconds = time.perf_counter() - self.began
        self.options.report(Progress(seconds, self.value / rate, self.bound / rate))
        if self.seconds_left <= 0:
            raise Stop(Termination.TIME_LIMIT)
        gap = self.options.gap_limit
        if gap > 0 and relative_gap(self.value, self.bound) <= gap:
            raise Stop(Termination.GAP_LIMIT)

    def _break_ties(self) -> None:
        """Find the plan of least mean among the plans of the proven worst case."""
        assert self.best is not None
        first, bound = self.best, self.bound
        if score_of(self.problem, first) <= self.mean.bound * (1 + TIE):
            certificate = self.mean.certificate
            self.ties = None if certificate is None else lambda: certificate
            return
        stage = _Stage(self, self.question.among_ties(self.value), ties=True)
        stage.start_from(first)
        try:
            stage.prove()
            tie = stage.claim()
            self.ties = None if tie is None else lambda: {"format": FORMAT, **tie.to_json(1.0)}
        except (Stop, KeyboardInterrupt):
            self.notes.append("whether another plan of this value has a lower mean was not decided")
            raise
        finally:
            self.bound = bound
            found = stage.kernel.best()[2]
            if found is not None and found != first:
                value = objective_value(self.problem, found) * self.problem.demand.operations
                if value <= self.value * (1 + 4 * TIE):
                    self.best, self.value = found, min(value, self.value)


class _Stage:
    """Search of the kernel: starts, leaders, trees, and their proofs.

    Parameters
    ----------
    search
        The question that the stage works for.
    question
        That of the stage.
    ties
        Whether plans of the best worst case are compared by their mean, so that a plan found before
        the end does not answer the question.
    """

    def __init__(self, search: LossSearch, question: LossQuestion, *, ties: bool = False) -> None:
        self.search, self.question, self.ties = search, question, ties
        self.trees = TreeRecords(MOST_RECORDED if search.certify else 0)
        core = search.core
        self.kernel = LossKernel(search.problem, question, core)
        self.rules = core.rules
        self.loss_of = _loss_of_sites(question, core.sites)
        # Every plan loses a replica while its leader stays: of several domains, one is another's.
        # But what is left may break rules that all replicas obey.
        hit = question.goal == "worst" and not (question.leader_moves or question.clients_move)
        hit = hit and not self.rules.of("replicas")
        hit = hit and bool((self.loss_of[self.rules.may_hold] >= 0).all())
        self.most = max(1, self.rules.replicas_max - int(hit))
        self.u = np.zeros((core.sites, self.kernel.padded))
        self.floors = np.full(core.sites, -math.inf)
        self.open_bounds: dict[tuple[int, int], float] = {}

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
        worst = replace(self.question, goal="worst", ceiling=math.inf)
        kernel = LossKernel(search.problem, worst, search.core)
        kernel.descend(configuration.replicas, tuning.LOSS_KICKS, 0, min(search.seconds_left, 5.0))
        found = kernel.best()[2]
        if found is not None:
            self.start_from(found)

    def prove(self) -> float:
        """Close every leader, the part of the least bound first; the bound that this proves.

        A part is a leader, with all successors or one. A tree that grows large ends: the part comes
        again when its bound is the least, with more nodes, or as a part for each successor.
        """
        self._bound_leaders()
        parts = [(bound, *part, 0) for part, bound in self.open_bounds.items()]
        heapq.heapify(parts)
        while parts:
            _, leader, successor, nodes = heapq.heappop(parts)
            successors = self._successors(leader, successor)
            if successors is not None:
                count = int(successors.sum())
                nodes = max(nodes, _NODES_PER_SUCCESSOR * count + _NODES_AT_LEAST)
                if not self._tree(leader, successors, successor, nodes):
                    bound, each = self.open_bounds[leader, successor], [successor]
                    if successor == _ANY and self._has_pairs(leader):
                        each = np.nonzero(successors)[0].tolist()
                        nodes = 0
                    for one in each:
                        self.open_bounds[leader, one] = bound
                        heapq.heappush(parts, (bound, leader, one, _MORE_NODES * nodes))
                    if each == [successor]:
                        continue
            self.open_bounds.pop((leader, successor), None)
        return self.proven()

    def proven(self) -> float:
        """Bound of the whole stage: of the leaders that are open, and the threshold elsewhere."""
        closed = _below(self.kernel.best()[0])
        return least_bound(closed, *self.open_bounds.values())

    def claim(self) -> LossClaimRecord | None:
        """Return the proofs, once all leaders are closed; None: they were not recorded."""
        if not self.trees.complete:
            return None
        value = self.kernel.best()[0]
        bound = value * _CLAIMED
        reached, required = _below(value), bound
        after = reached, required
        if self.question.goal == "bounded":
            after = self._most_after, self.question.ceiling * (1 + 2 * TIE)
            reached, required = min(reached, after[0]), min(required, after[1])
        return LossClaimRecord(
            question=self.question,
            bound=bound,
            reached=(reached, after[0]),
            required=(required, after[1]),
            floors=self.floors,
            multipliers=self.u,
            may_vote=self.rules.may_vote,
            may_lead=self.rules.may_lead,
            trees=self.trees.trees,
            clients=self.search.core.active,
            replicas=self.rules.replicas_max,
        )

    @property
    def _most_after(self) -> float:
        """Mean after a loss that the search takes for one above the ceiling."""
        return self.question.ceiling * (1 + _ABOVE)

    @property
    def _most_normal(self) -> float:
        """Mean that is not to be reached without a loss."""
        least = _below(self.kernel.best()[0])
        return min(least, self._most_after) if self.question.goal == "bounded" else least

    def _bound_leaders(self) -> None:
        """Bound the mean under everyone who may vote, normally and after a loss."""
        question, rules = self.question, self.rules
        may_lead = np.nonzero(rules.may_lead)[0].tolist()
        self.open_bounds = {(leader, _ANY): self.search.bound for leader in may_lead}
        for site in np.nonzero(rules.may_vote)[0].tolist():
            seconds = self.search.seconds_left
            self.floors[site] = self.kernel.floor(
                site, self.most, tuning.LOSS_FLOOR_STEPS, self.u[site], seconds
            )
            if seconds <= 0:
                self._report()
        least = max(0.0, float(self.floors[rules.may_vote].min(initial=math.inf)))
        for leader in may_lead:
            bound = max(0.0, self.floors[leader])
            if question.goal == "weighted" and self.loss_of[leader] >= 0:
                own = question.probabilities[self.loss_of[leader]]
                bound += own * min(0.0, least - bound)  # another voter leads after it
            self._raise_bound(leader, _ANY, bound)

    def _out_as_successor(self, site: int) -> bool:
        if self.question.goal == "weighted" or self.question.clients_move:
            return False  # clients that turn to another site may come closer to the remaining sites
        bounded = self.question.goal == "bounded"
        most = self._most_after if bounded else _below(self.kernel.best()[0])
        return bool(self.floors[site] >= most)

    def _successors(self, leader: int, successor: int) -> BoolArray | None:
        """Return the possible successors of a part, or None if it is eliminated."""
        if self.question.goal != "weighted" and self.floors[leader] >= self._most_normal:
            return None
        out = np.array([self._out_as_successor(site) for site in range(len(self.floors))])
        successors: BoolArray = self.rules.may_vote & ~out
        if self.loss_of[leader] >= 0:
            successors &= self.loss_of != self.loss_of[leader]
        if successor == _ANY:
            return successors
        one = np.zeros_like(successors)
        one[successor] = successors[successor]
        return one if one.any() else None

    def _has_pairs(self, leader: int) -> bool:
        return bool(self.loss_of[leader] >= 0) and not self.question.leader_moves

    def _tree(self, leader: int, successors: BoolArray, successor: int, nodes: int) -> bool:
        """Run a tree; return whether it was closed. If not, its bound bounds the part."""
        kernel, stats = self.kernel, self.search.stats
        kernel.open(leader, successors, self.u[leader], successor=successor, record=self.trees.left)
        done, seconds = 0, _SLICE
        while True:
            outcome = kernel.run(nodes - done, min(seconds, self.search.seconds_left))
            counters = kernel.counters()
            if counters.nodes == done:  # a node that is stopped begins again
                seconds *= 2
            done = counters.nodes
            self._take()
            if outcome is not TreeOutcome.PAUSED:
                break
            self._raise_bound(leader, successor, self._tree_bound())
            self._report()
        if outcome is TreeOutcome.LIMIT:
            self._raise_bound(leader, successor, self._tree_bound())
        for name in ("nodes", "bounds", "leaves"):
            stats[name] = int(stats[name]) + int(getattr(counters, name))
        if outcome is TreeOutcome.CLOSED and self.trees.complete:
            self.trees.keep(leader, successor, kernel.record())
        self._report()
        return outcome is TreeOutcome.CLOSED

    def _tree_bound(self) -> float:
        """Lower bound of everything in the open tree."""
        counters, value = self.kernel.counters(), self.kernel.best()[0]
        if self.question.goal != "bounded":
            return min(counters.least, _below(value))
        least = self._most_normal + counters.least_normal
        return least if math.isfinite(value) and math.isfinite(least) else -math.inf

    def _raise_bound(self, leader: int, successor: int, bound: float) -> None:
        part = leader, successor
        self.open_bounds[part] = max(self.open_bounds[part], bound)

    def _take(self) -> None:
        """Hand an improvement on to the search."""
        value, _, found = self.kernel.best()
        if not self.ties and found is not None and value < self.search.value * (1 - TIE):
            self.search.offer(found)

    def _report(self) -> None:
        self.search.report(self.proven() if self.open_bounds and not self.ties else -math.inf)


def _below(value: float) -> float:
    """Return the threshold below which a mean is better than `value`; as in the kernel."""
    return value - _SEARCHED_LESS * abs(value) if math.isfinite(value) else value


# --- certificates -----------------------------------------------------------------------------


@dataclass
class TreeRecords:
    """Records of the trees that were closed, as long as there is room.

    Attributes
    ----------
    left
        Numbers that may still be recorded; 0: nothing is kept any more.
    trees
        The record by leader and successor; −1: for all successors.
    """

    left: int
    trees: dict[tuple[int, int], FloatArray] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Return whether every tree that was closed is kept."""
        return self.left > 0

    def keep(self, leader: int, successor: int, record: FloatArray | None) -> None:
        """Keep the record of a closed tree; None: it had no room."""
        self.left -= self.left if record is None else len(record)
        if self.complete and record is not None:
            self.trees[leader, successor] = record
        else:
            self.left = 0
            self.trees.clear()


@dataclass(frozen=True, eq=False)
class LossClaimRecord:
    """Proven result of one search, with its trees.

    Attributes
    ----------
    question
        What was asked.
    bound
        The claim, ms·operations.
    reached
        What the normal mean, and that after a loss, had to stay below in the search; infinite
        without a limit.
    required
        What a checker asks of them: no more than `reached`.
    floors, multipliers
        Bound of the normal mean under each site, and its multipliers, shapes (sites,) and (sites,
        clients).
    may_vote, may_lead
        Of each site.
    trees
        Records of the kernel.
    clients
        Indices of the active clients.
    replicas
        The most replicas.
    """

    question: LossQuestion
    bound: float
    reached: tuple[float, float]
    required: tuple[float, float]
    floors: FloatArray
    multipliers: FloatArray
    may_vote: BoolArray
    may_lead: BoolArray
    trees: Mapping[tuple[int, int], FloatArray]
    clients: IntArray
    replicas: int

    def to_json(self, rate: float) -> dict[str, object]:
        """Return the claim and its proof as JSON-like data; `rate`: operations of the unit."""
        weighted = self.question.goal == "weighted"
        out = [[], []] if weighted else [self._out(case) for case in (0, 1)]
        out[1] = [] if self.question.clients_move else out[1]
        leaders = [s for s in np.nonzero(self.may_lead)[0].tolist() if s not in out[0]]
        slack = [a - b for a, b in zip(self.reached, self.required, strict=True)]
        count = len(self.clients)
        events = ThresholdEvents(
            count, np.arange(count), self.replicas,
            slack=lambda scenario: slack[int(scenario > 0)],
            scale=lambda _: 1.0,
            shared=slack[0] if weighted else None,
            number=self._number,
        )  # fmt: skip
        return {
            "bound": self.bound / rate,
            "clients": self.clients.tolist(),
            "floors": [self._floor(events, site) for site in sorted({*out[0], *out[1]})],
            "proofs": [
                {
                    "leader": leader,
                    **({} if successor < 0 else {"successor": successor}),
                    "events": list(events.of(record)),
                }
                for (leader, successor), record in self.trees.items()
                if leader in leaders and successor not in out[1]
            ],
        }

    def _number(self, scenario: int) -> int:
        """Return the row of the question that a scenario of the kernel is."""
        losses = len(self.question.losses)
        if scenario:
            return 1 + (scenario - 1) % losses
        # of a limit and the mean, the rows of the limit come first
        bounded = self.question.goal == "bounded" and math.isfinite(self.bound)
        return 1 + losses if bounded else 0

    def _out(self, case: int) -> list[int]:
        """Sites whose normal bound reaches the threshold of the normal case, or of losses."""
        reaches = self.may_vote & (self.floors >= self.reached[case])
        return [int(site) for site in np.nonzero(reaches)[0]]

    def _floor(self, events: ThresholdEvents, site: int) -> list[object]:
        met = [x for x in self.required if x <= self.floors[site]]
        return [site, *events.rounded(self.multipliers[site], self.floors[site] - max(met), 1.0)]


@dataclass(frozen=True, eq=False)
class LossCertificate:
    """The certificate of a plan about losses.

    Attributes
    ----------
    configuration, value
        The plan, and its value by the shared evaluator; None and +∞: there is none.
    rate
        Operations: the kernel's numbers are ms·operations, the value is in ms.
    claim
        The proof.
    ties
        The same of the mean among the plans of the best worst case; None: not told.
    """

    configuration: Configuration | None
    value: float
    rate: float
    claim: LossClaimRecord
    ties: Callable[[], Mapping[str, object]] | None = None

    def to_json(self) -> Mapping[str, object]:
        """Return the certificate as JSON-like data; site and client numbers are indices."""
        document: dict[str, object] = {"format": FORMAT, "score": self.value}
        if self.configuration is not None:
            document |= self.configuration.to_document()
        document |= self.claim.to_json(self.rate)
        if self.ties is not None:
            document["ties"] = self.ties()
        return document
