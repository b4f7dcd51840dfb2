"""The driver over threshold trees: the best plan so far, the open parts, the records, the plan.

The question without its limits is answered first; its plan of least mean latency is the answer
where it keeps the limits and the mean is minimised. Else a search over threshold trees
(``csrc/scenarios/scenario.h``) starts from it. There are three:

- :mod:`formulations.exact.measures` for limits on any measures, and any measure to minimise;
- :mod:`formulations.exact.deadline_search` where a percentile is minimised;
- :mod:`formulations.exact.loss_search` for the mean after the loss of any one domain.

A *part* of a search is a leader, or a leader and the site that takes over from it. Each part has a
bound. The part of the least bound is the next: it is closed, or comes again, or is split. The least
of all bounds is what is proven. A configuration counts when the evaluator says that it is better.

Among plans of equal value the least mean is a second search of the same kind, for the first value
as a limit.
"""

from __future__ import annotations

import dataclasses
import heapq
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from formulations.exact import tuning
from formulations.exact.branch_and_bound import Stop
from formulations.exact.kernel import Incumbent, Kernel, open_kernel, seconds_until
from formulations.exact.reduced_problem import ReducedProblem, weighs_more_than_sites
from formulations.exact.threshold_certificate import (
    ANY,
    MOST_RECORDED,
    Part,
    ThresholdCertificate,
    TreeRecord,
)
from formulations.exact.threshold_search import SearchCounters
from formulations.exact.warm_start import WarmStart
from placement.contingency.loss_question import LossQuestion
from placement.evaluation.objective import MEAN_LATENCY, score_of
from placement.evaluation.score import TIE
from placement.feasibility.feasible_plans import violations
from placement.measures.measure import Measure, MeasureKind
from placement.measures.question import MeasureQuestion
from placement.methods.options import Options, Progress
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.proof.enumeration_check import certified_or_named
from placement.proof.measures_proof import FORMAT
from placement.support.checks import FloatArray, IntArray
from placement.support.status import (
    OPTIMALITY_TOLERANCE,
    Status,
    Termination,
    end_early,
    least_bound,
    relative_gap,
)

CLAIMED_LESS = 9e-10
"""Share of the best value by which the bound is below it. A smaller gap limit asks for no ties."""

SEARCHED_LESS = 5e-10
"""Share of the best value by which the search asks for less than it."""

CLAIM_SLACK = CLAIMED_LESS - SEARCHED_LESS
"""Share of the best value that a certificate leaves unclaimed, so that it can round."""

ABOVE = 1e-10
"""Relative: limits of the search are above those of the evaluator, so that rounding is safe."""

_ABOVE_NEEDED = 1e-8  # relative: where steps for a bound may stop

_PROOF = "a search within the limits under every leader"


@dataclass
class ThresholdDriver(ABC):
    """The best plan of a question, its bound, and how they came about.

    `unlimited` is the plan of the question of :func:`without_limits`, `end` a time.perf_counter()
    at which to stop. With `ties` the mean is minimised, of the plans whose minimised value is at
    most this. `best` and `value`: the best configuration within the limits, None and +∞ while none
    is known. `floor` is what no configuration is below, known without the parts or reported before.
    `records` say what closed each part; None: no certificate is kept, for the reason in
    `uncertified` where it was asked for. `open_bounds` has the bound of each part that is not
    closed; before the search there is one part, of which nothing is known. `deadline`: of a
    percentile that is minimised, what is asked about, in bins. `floors`: leaders whose mean alone
    is too high, with multipliers and the bound that they prove.
    """

    problem: Problem
    options: Options
    unlimited: Plan
    end: float
    ties: float = math.inf
    best: Configuration | None = field(init=False, default=None)
    value: float = field(init=False, default=math.inf)
    termination: Termination = field(init=False, default=Termination.FINISHED)
    counters: SearchCounters = field(init=False, default_factory=SearchCounters)
    clients: IntArray = field(init=False)
    floor: float = field(init=False, default=-math.inf)
    records: dict[Part, TreeRecord] | None = field(init=False, default=None)
    uncertified: str = field(init=False, default="")
    open_bounds: dict[Part, float] = field(init=False)
    deadline: int | None = field(init=False, default=None)
    floors: dict[int, tuple[FloatArray, float]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        self._started = time.perf_counter()
        self.open_bounds = {(ANY, ANY): -math.inf}
        if self.options.settings["certificate"]:
            self.records = {}
        if minimises_mean(self.problem) or not self.alone:
            self.floor = self.unlimited.bound / self.unit

    @property
    def alone(self) -> bool:
        """Return whether the question itself is asked, and not for ties."""
        return math.isinf(self.ties)

    @property
    def unit(self) -> float:
        """Operations where the value is a mean of them; 1: it is their sum, or something else."""
        measures = isinstance(self.problem.objective, MeasureQuestion)
        return self.problem.demand.operations if measures and self.alone else 1.0

    @property
    def breaks_ties(self) -> bool:
        """Return whether the least mean among plans of equal value is asked for."""
        return not minimises_mean(self.problem)

    # --- what a kind of question adds -------------------------------------------------------

    @abstractmethod
    def parts(self) -> Mapping[Part, float]:
        """Return the parts, with a bound each."""

    @abstractmethod
    def close(self, part: Part, nodes: int) -> Iterable[tuple[Part, int]]:
        """Close a part; return what is left of it, each with the nodes that it may take next."""

    @property
    @abstractmethod
    def slack(self) -> float:
        """By how much X of what is minimised was to be lower than what is claimed."""

    def start(self) -> None:
        """Keep the best of the plans that are known before the search and obey all."""
        first = self.unlimited.configuration
        if first is not None and self.alone:
            self.accept(first)
        for start in (self.options.start, self.problem.present):
            if start is not None and not violations(self.problem, start):
                self.accept(start)

    # --- the search -------------------------------------------------------------------------

    def run(self) -> None:
        """Search until the best plan is proven, or until a limit or Ctrl-C."""
        with end_early(self), suppress(Stop):
            self.search()
        finished = self.termination is Termination.FINISHED
        if finished and relative_gap(self.value, self.bound) > OPTIMALITY_TOLERANCE:
            self.termination = Termination.GAP_LIMIT

    def search(self) -> None:
        """Close every part, that of the least bound first."""
        self.start()
        self.open_bounds = bounds = dict(self.parts())
        parts = [(bound, *part, 0) for part, bound in bounds.items()]
        heapq.heapify(parts)
        while parts:
            _, leader, successor, nodes = heapq.heappop(parts)
            part = leader, successor
            left = dict(self.close(part, nodes))
            for one, more in left.items():  # before the part goes: Ctrl-C may come in between
                bounds[one] = bounds[part]
                heapq.heappush(parts, (bounds[part], *one, more))
            if part not in left:
                del bounds[part]
            if left:
                self.in_time()
            self.report()

    @property
    def less(self) -> float:
        """Share of the best value by which the bound is below it when all parts are closed."""
        return CLAIMED_LESS

    @property
    def bound(self) -> float:
        """Least value that any plan may still have."""
        least = least_bound(self.value * (1 - self.less), *self.open_bounds.values())
        # once all parts are closed, no more than the certificate proves
        return min(max(least, self.floor), self.value) if self.open_bounds else least

    @property
    def stop(self) -> float:
        """A time.perf_counter() at which to stop."""
        return self.end

    @property
    def seconds_left(self) -> float:
        """Seconds up to there, as a kernel takes them."""
        return seconds_until(self.stop)

    def in_time(self) -> None:
        """Raise TimeoutError at the end."""
        if time.perf_counter() > self.stop:
            raise TimeoutError

    def stop_at_gap(self) -> None:
        """Raise Stop where value and bound are as close as the gap limit asks."""
        gap = self.options.gap_limit
        if gap > 0 and relative_gap(self.value, self.bound) <= gap:
            raise Stop(Termination.GAP_LIMIT)

    def report(self) -> None:
        """Report value and bound, which never falls, to whoever listens."""
        if self.options.progress is not None:
            self.floor = max(self.floor, self.bound)
            seconds, bound = time.perf_counter() - self._started, min(self.floor, self.value)
            self.options.report(Progress(seconds, self.value, bound))

    # --- leaders by their mean alone --------------------------------------------------------

    @cached_property
    def _means(self) -> tuple[Kernel, Mapping[int, FloatArray]] | None:
        """The search for the mean without limits, and its multipliers; None: no bound for this."""
        known = WarmStart.known(self.unlimited.warm_start, self.clients)
        # the checker of this bound knows the wait of one RTT matrix alone
        if known is None or self.problem.demand.scenarios > 1:
            return None
        core = ReducedProblem(self.problem.demand, self.problem.rules, None)
        return (open_kernel(core), known) if core.leader_matters else None

    def mean_reaches(self, leader: int, needed: float) -> bool:
        """Return whether no mean under a leader is below this, ms·operations; note the proof."""
        if not 0 < needed < math.inf or self._means is None or leader not in self._means[1]:
            return False
        kernel, known = self._means
        kernel.propose(Incumbent(needed * (1 + _ABOVE_NEEDED), -2, ()))
        u = known[leader].copy()
        bound = kernel.bound_root(leader, u, tuning.SCAN_STEPS, 0, True, self.seconds_left)
        if needed <= bound < math.inf:
            self.floors[leader] = u, bound
        return leader in self.floors

    # --- plans ------------------------------------------------------------------------------

    def accept(self, *configurations: Configuration) -> bool:
        """Keep the best of some configurations that obey the rules if it is the best so far.

        They are evaluated in the order of bounds that are quick to tell, as long as these are low.
        """
        quick, better = self.quick_values(configurations), False
        for n, place in enumerate(np.argsort(quick, kind="stable").tolist()):
            if quick[place] >= self.value:
                break
            if n:
                self.in_time()
            one = configurations[place]
            value = quick[place] if self.quick_is_exact else self._values([one])[0]
            if value < self.value and not any(x.broken(one) for x in self.problem.limits):
                self.value, self.best, better = float(value), one, True
        return better

    @cached_property
    def quick_is_exact(self) -> bool:
        """Return whether :meth:`quick_values` are the values, up to limits that are broken."""
        asked = self.problem.objective
        measures = asked.measures if isinstance(asked, MeasureQuestion) and self.alone else None
        return measures is not None and not any(x.kind.of_distributions for x in measures)

    def quick_values(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Return lower bounds on the values of configurations, without distributions."""
        asked = self.problem.objective
        if not isinstance(asked, MeasureQuestion):
            return self._values(configurations)
        if not self.alone:
            return np.array([score_of(self.problem, one) for one in configurations])
        if asked.aim.kind.of_distributions:
            return np.full(len(configurations), -math.inf)
        return asked.quick_values(self.problem, configurations)

    def _values(self, configurations: Sequence[Configuration]) -> FloatArray:
        """Values by the evaluator; infinite where a limit on a measure is broken."""
        values = self.problem.objective.values(self.problem, configurations)
        if self.alone:
            if not self.problem.objective.minimises_mean:
                return values
            return np.array([objective_value(self.problem, one) for one in configurations])
        means = np.array([score_of(self.problem, one) for one in configurations])
        return np.where(values <= self.ties * (1 + TIE), means, np.inf)

    # --- the certificate --------------------------------------------------------------------

    @property
    def room(self) -> int:
        """Numbers that may still be recorded; 0: none are."""
        if self.records is None:
            return 0
        return max(MOST_RECORDED - sum(len(one.events) for one in self.records.values()), 1)

    def keep(
        self,
        part: Part,
        events: FloatArray | None,
        numbers: tuple[int, ...] = (),
        scales: tuple[float, ...] = (),
        slacks: tuple[float, ...] = (),
    ) -> None:
        """Keep the record of a closed part, as of `TreeRecord`; `events` None: it was too long."""
        if events is None:
            self.drop_records("it would hold too many numbers")
        elif self.records is not None:
            self.records[part] = TreeRecord(events, numbers, scales, slacks, self.deadline)

    def drop_records(self, why: str) -> None:
        """Keep no certificate any more."""
        if self.records is not None:
            self.records, self.uncertified = None, f": {why}"

    @property
    def certificate(self) -> ThresholdCertificate | None:
        """Certificate of the result; None: not recorded."""
        if self.records is None or self.open_bounds:
            return None
        return ThresholdCertificate(
            configuration=self.best,
            value=self.value,
            bound=self.bound,
            slack=self.slack,
            clients=self.clients,
            replicas=self.problem.rules.replicas_max,
            records=self.records,
            floors=[(one, u, x - self.bound * self.unit) for one, (u, x) in self.floors.items()],
        )


# --- questions ----------------------------------------------------------------------------------


def without_limits(problem: Problem) -> Problem:
    """Return the question of the mean without limits, prices of moves, of votes and of near reads.

    What no configuration undercuts there, none does in the problem where the mean is minimised.
    """
    weight = 0.0 if weighs_more_than_sites(problem) else problem.cost_weight
    rules = problem.rules
    implied = problem.objective.diversity(problem.instance, rules.voters, rules.quorum)
    diversity = (*problem.diversity, *implied)
    gone = {"budget": None, "current": None, "moves": None}
    return problem.replace(objective=MEAN_LATENCY, diversity=diversity, cost_weight=weight, **gone)


def minimises_mean(problem: Problem) -> bool:
    """Return whether a question with or without limits minimises the mean of all operations."""
    asked = problem.objective
    return not isinstance(asked, MeasureQuestion) or asked.aim == Measure(MeasureKind.MEAN)


def answers(problem: Problem, plan: Plan) -> bool:
    """Return whether the plan of the question without limits is the answer to the problem.

    A proof that there is no plan holds too; else a proven plan keeps the limits, at the same value.
    """
    found = plan.configuration
    if found is None:
        return plan.termination is Termination.FINISHED
    proven = plan.status is Status.OPTIMAL and minimises_mean(problem)
    if not proven or violations(problem, found):  # a start may be better than what is not proven
        return False
    measures = isinstance(problem.objective, MeasureQuestion)
    return measures or objective_value(problem, found) <= plan.objective


def plan_without_limits(problem: Problem, plan: Plan) -> Plan:
    """Return the answer to a problem from the plan of the question without limits."""
    found, certificate = plan.configuration, plan.certificate
    if found is None or not isinstance(problem.objective, MeasureQuestion):
        return plan.replace(problem=problem)
    bound = plan.bound / problem.demand.operations
    document: dict[str, object] | None = None
    if certificate is not None:
        value = objective_value(problem, found)
        document = {"format": FORMAT, "score": value, "bound": bound, **found.to_document()}
        document["mean"] = certificate
    return Plan.of(
        problem,
        found,
        method=plan.method,
        bound=bound,
        termination=plan.termination,
        notes=plan.notes,
        stats=plan.stats,
        certificate=document,
        warm_start=plan.warm_start,
    )


def solve_within_limits(problem: Problem, options: Options, unlimited: Plan, end: float) -> Plan:
    """Solve a problem within its limits, up to `end`, a time.perf_counter().

    `unlimited` is the plan of the question of :func:`without_limits`, of the same method.
    """
    search = _search_for(problem, options, unlimited, end)
    if unlimited.termination is Termination.INTERRUPTED:
        ThresholdDriver.start(search)
        search.termination = unlimited.termination
        return plan_of_search(search)
    search.run()
    wanted = search.breaks_ties and not 0 < options.gap_limit < CLAIMED_LESS
    if search.best is None or search.termination is not Termination.FINISHED or not wanted:
        return plan_of_search(search)
    quiet = dataclasses.replace(options, start=None, gap_limit=0.0, progress=None)
    ties = _search_for(problem, quiet, unlimited, end, search.value)
    ties.best, ties.value = search.best, score_of(problem, search.best)
    if unlimited.status is not Status.OPTIMAL or ties.value > unlimited.objective * (1 + TIE):
        ties.run()
        if ties.termination is Termination.INTERRUPTED:  # who asks for many plans stops here
            search.termination = ties.termination
        return plan_of_search(search, ties)
    return plan_of_search(search, ties, unlimited.certificate)


def _search_for(
    problem: Problem, options: Options, unlimited: Plan, end: float, ties: float = math.inf
) -> ThresholdDriver:
    from formulations.exact.deadline_search import DeadlineSearch
    from formulations.exact.loss_search import LossSearch, refuses_losses
    from formulations.exact.measures import MeasuresSearch

    question = LossQuestion.of(problem)
    if question is not None and refuses_losses(problem, question) is None:
        return LossSearch(problem, options, unlimited, end, ties)
    asked, kind = problem.objective, MeasuresSearch
    if isinstance(asked, MeasureQuestion) and math.isinf(ties):
        kind = DeadlineSearch if asked.aim.kind is MeasureKind.PERCENTILE else kind
    return kind(problem, options, unlimited, end, ties)


def plan_of_search(
    search: ThresholdDriver,
    ties: ThresholdDriver | None = None,
    least_mean: Mapping[str, object] | None = None,
) -> Plan:
    """Return the plan of a search, or that there is none, or that time ran out.

    `ties`: the search for the least mean among the plans of the least value; `least_mean`: the
    certificate that no configuration at all has a lower mean.
    """
    certificate = search.certificate

    def document() -> Mapping[str, object]:
        assert certificate is not None
        found = dict(certificate.to_json())
        if ties is not None and ties.best is not None:
            found |= ties.best.to_document()
            of_ties = ties.certificate if least_mean is None else None
            second = least_mean if of_ties is None else of_ties.to_json()
            if second is not None:
                found["ties"] = second
        return found

    # an interrupted search may have closed the last part before it saw the interrupt
    closed = search.termination is Termination.FINISHED or search.bound == math.inf
    proven = search.best is None and closed
    notes = []
    if ties is not None and least_mean is None and ties.termination is not Termination.FINISHED:
        notes.append("whether another plan of this value has a lower mean was not decided")
    each = [search] if ties is None else [search, ties]
    plan = Plan.of(
        search.problem,
        search.best if ties is None else ties.best,
        method=search.unlimited.method,
        bound=math.inf if proven else search.bound,
        termination=search.termination,
        reasons=(_nothing_kept(search.problem),) if proven else (),
        notes=notes,
        stats={
            "nodes": sum(one.counters.nodes for one in each),
            "leaves": sum(one.counters.leaves for one in each),
            "bounds": sum(one.counters.bounds for one in each),
        },
        certificate=None if certificate is None else document,
    )
    wanted = bool(search.options.settings["certificate"])
    return certified_or_named(plan, _PROOF, search.uncertified, wanted=wanted)


def _nothing_kept(problem: Problem) -> str:
    """Say that no plan keeps all that is asked."""
    asked, leaders = problem.objective, int(problem.rules.may_lead.sum())
    limits = [f"{limit.name} {limit.most:g}" for limit in problem.limits]
    if isinstance(asked, MeasureQuestion):
        limits += map(str, asked.keep)
        if asked.aim.kind is MeasureKind.PERCENTILE:
            limits.append(f"{asked.aim} within the horizon of the distributions")
    what = f"the limit ({' and '.join(limits)})" if limits else "a quorum after every loss"
    return (
        f"no configuration keeps {what}, under any of the {leaders} possible leaders "
        "(proved by a search)"
    )
