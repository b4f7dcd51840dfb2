"""Settings of a watch, and from state and counts the next state with a recommendation.

Pure: the same settings, state and counts give the same recommendation, on any day and after any
restart. The demand that is predicted for the next interval is the decayed mean of what was seen
(:class:`placement.overtime.decayed_counts.DecayedCounts`). The rule of
:mod:`placement.overtime.moves.move_prices` takes the configuration of least H·value + move price
(the value in ms: the mean latency, or another objective, such as a percentile) over all
configurations (:mod:`placement.overtime.moves.move_search`). Beside it stand, for the reader, the
present configuration and, as far as the question leaves them free, the configurations of least
value with the present replicas and voters (another leader), with the present replicas (other
roles), and of all. A recommendation is taken as carried out.

Default prices of moves come from the variability of the instance itself. The mean latency of one
configuration rises and falls with the demand. Let σ be its standard deviation over the intervals of
the instance, under the configuration that is best for all of them together. A gain that is small
against 2σ is within what the demand does by itself. So a change of the leader and a copy to a new
site cost 2σ ms each, and a vote given or taken σ: with a horizon of H intervals, a change has to
bring 2σ/H ms in each of them. Where no operation needs a leader, none is handed over.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from placement.errors import InputError, UnitsWarning, require
from placement.evaluation.moves import changes
from placement.evaluation.objective import score_of
from placement.evaluation.score import TIE
from placement.evaluation.waits.wait_checks import refuse_waits
from placement.feasibility.feasible_plans import violations
from placement.io.problem_document import problem_document
from placement.methods.options import Options
from placement.methods.registry import load_method, refusal, run
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.overtime.decayed_counts import Decay, DecayedCounts
from placement.overtime.moves.move_prices import Hysteresis, MovePrices, choose
from placement.overtime.moves.move_search import best_move
from placement.overtime.moves.move_steps import MoveStep, step_document, steps_between
from placement.plan import Plan, objective_value
from placement.problem import Problem
from placement.support.checks import FloatArray, whole
from placement.support.status import Status, Termination


@dataclass(frozen=True, eq=False)
class WatchSettings:
    """The question, and how much a move must promise.

    An instance whose RTTs vary by interval, and a weight of money in the objective, are refused;
    UnsupportedError for operations with waits, and for witnesses.
    """

    #: constraints, objective, and the instance with its sites, RTTs and operations; demand arrives
    #: later. The demand of the instance and the decay of the problem do not count
    problem: Problem
    decay: Decay  #: how fast past intervals are forgotten in the prediction
    rule: Hysteresis  #: horizon and confirmation
    prices: MovePrices  #: of moves, in ms: see :class:`placement.overtime.moves.MovePrices`
    #: that finds configurations, with its settings; deterministic, so that a restart changes
    #: nothing
    method: str = "exact"
    method_settings: Mapping[str, object] = field(default_factory=dict)
    #: the configuration that runs now; None: the best for the first interval is where to begin
    start: Configuration | None = None
    #: intervals that must have arrived after one before it is taken, so that what arrives in the
    #: wrong order is put right
    grace: int = 0

    def __post_init__(self) -> None:
        instance, weight = self.problem.instance, self.problem.rules.cost_weight
        refuse_waits(self.problem, "a watch")
        constant, words = not instance.varying_rtt, "RTTs that vary by interval"
        require(constant, "instance", words, instance.name, "one RTT matrix")
        words = "a watch supports the prices of moves, not the cost of replicas"
        expected = "no weight of the cost (a budget is allowed: it is a constraint)"
        require(not weight, "cost_weight", words, weight, expected)
        object.__setattr__(self, "grace", whole(self.grace, "grace"))

    @property
    def instance(self) -> Instance:
        """The instance of the problem."""
        return self.problem.instance

    def document(self) -> dict[str, object]:
        """Return all that can change a recommendation, as JSON values by name."""
        problem = problem_document(self.problem.replace(decay=1.0))
        shape = (1, *self.instance.counts.shape[1:])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnitsWarning)
            plain = self.instance.replace(counts=np.zeros(shape), intervals=())
        names = self.instance.sites
        start = self.start
        return {
            "instance": plain.fingerprint,  # without its demand
            "problem": problem,
            "decay": _json(self.decay.factor),
            "horizon": _json(self.rule.horizon),
            "confirm": self.rule.confirm,
            "prices": {k: _json(value) for k, value in dataclasses.asdict(self.prices).items()},
            "method": self.method,
            "method_settings": {k: str(v) for k, v in sorted(self.method_settings.items())},
            "start": None
            if start is None
            else {
                "leader": names[start.leader],
                "voters": sorted(names[v] for v in start.voters),
                "replicas": [names[r] for r in start.replicas],
            },
            "grace": self.grace,
        }

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of :meth:`document`."""
        text = json.dumps(self.document(), sort_keys=True)
        return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()

    def question(self, rates: FloatArray) -> Problem:
        """Return the problem for predicted operations per interval, (clients, operations)."""
        with warnings.catch_warnings():
            # said once, when the instance was made; not again after every interval
            warnings.simplefilter("ignore", UnitsWarning)
            instance = self.instance.replace(counts=rates, intervals=())
        return self.problem.replace(instance=instance, decay=1.0)


# Default prices of moves, from the variability of the instance itself

_DEVIATIONS = 2.0


def default_prices(problem: Problem, method: str = "exact") -> MovePrices:
    """Return prices of moves from the demand of an instance; 0 with fewer than two intervals.

    The demand is one row of counts for each interval; those without operations do not count. One
    search by `method` for the best configuration of all intervals together, and the score of each
    interval.
    """
    instance = problem.instance
    counts = instance.counts[instance.counts.sum(axis=(1, 2)) > 0]
    if len(counts) < 2 or instance.varying_rtt:
        return MovePrices()
    together = problem.replace(instance=instance.replace(counts=counts.sum(axis=0), intervals=()))
    best = run(load_method(method), together, Options()).configuration
    if best is None:
        return MovePrices()
    means = []
    for one in counts:
        alone = problem.replace(instance=instance.replace(counts=one, intervals=()), decay=1.0)
        if alone.demand.operations > 0:
            means.append(score_of(alone, best) / alone.demand.operations)
    price = _DEVIATIONS * float(np.std(means)) if means else 0.0
    return MovePrices(leader=price, voter=price / 2, add=price)


# --- the recommendation -------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class WatchState:
    """All that a restart needs."""

    #: decayed counts, shape (clients, operations); how many intervals were seen
    demand: DecayedCounts
    #: the configuration that is taken to run; None before the first operation was issued
    current: Configuration | None
    streak: int = 0  #: intervals in a row in which a move paid


def initial_state(settings: WatchSettings) -> WatchState:
    """Return the state before the first interval."""
    instance = settings.instance
    shape = (len(instance.clients), len(instance.operations))
    return WatchState(DecayedCounts.empty(shape, settings.decay), settings.start)


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that was weighed."""

    kind: str  #: "keep", or what may change: "leader", "roles", "replicas"
    configuration: Configuration  #: site indices
    mean: float  #: predicted mean latency in ms
    value: float  #: predicted objective in ms: the mean latency, or a percentile, or a worst case
    price: float  #: of the move there, in ms of mean latency of one interval
    #: how sure it is to be the best of its kind: the status of the plan, or of the search over
    #: H·value + price
    note: str


@dataclass(frozen=True, eq=False)
class Recommendation:
    """Recommended action after an interval."""

    #: "start" (the first configuration), "keep" or "move"; "wait" while nothing was issued
    action: str
    configuration: Configuration | None  #: what to run in the next interval; None to wait
    candidates: tuple[Candidate, ...]  #: what was weighed, the current configuration first
    chosen: int  #: which of them; −1 to wait
    operations: float  #: predicted per interval
    streak: int  #: intervals in a row in which a move paid, this one included
    reasons: tuple[str, ...]  #: why, in sentences
    document: Mapping[str, object]  #: all of it as JSON values, by name


def advise(
    settings: WatchSettings, state: WatchState, label: str, counts: FloatArray
) -> tuple[WatchState, Recommendation]:
    """Take the counts of one interval, (clients, operations), into the state, and give advice.

    The advice is for the next interval. InputError when no configuration obeys the constraints, or
    the method found none.
    """
    demand = state.demand.after(counts)
    operations = float(demand.rates.sum())
    candidates: tuple[Candidate, ...] = ()
    action, after, pick, paid, streak, proven = "wait", state.current, -1, 0, 0, False
    reasons: tuple[str, ...] = ("Nothing was issued yet: there is nothing to go by.",)
    steps: tuple[MoveStep, ...] = ()
    if not operations > 0:
        pass
    elif after is None:
        problem = settings.question(demand.rates)
        plan = _best(settings, problem, None)
        candidates = (_candidate("replicas", problem, _found(plan), 0.0, plan.status),)
        reasons = ("The first interval with operations: begin with the best for it.",)
        action, after, pick = "start", candidates[0].configuration, 0
        proven = plan.status is Status.OPTIMAL
    else:
        problem = settings.question(demand.rates)
        broken = violations(problem, after)
        candidates, least, proven = _candidates(settings, problem, after, not broken)
        values = np.array([each.value for each in candidates])
        if broken:
            values[0] = math.inf  # it has to be left whatever that gains
        prices = np.array([each.price for each in candidates])
        chosen, count = choose(settings.rule, values, prices, 0, state.streak)
        pick, streak = int(chosen), int(count)
        paid = state.streak + 1 if pick else streak
        reasons = _reasons(settings, candidates, pick, paid, broken, least, proven)
        action, after = "move" if pick else "keep", candidates[pick].configuration
        steps = steps_between(problem, state.current, after) if pick and state.current else ()
    names = settings.instance.sites

    def by_name(configuration: Configuration | None) -> dict[str, object]:
        if configuration is None:
            return {"leader": None, "voters": [], "replicas": []}
        return {
            "leader": names[configuration.leader],
            "voters": [names[v] for v in configuration.voters],
            "replicas": [names[r] for r in configuration.replicas],
        }

    def weighed(each: Candidate) -> dict[str, object]:
        # what it saves; infinite where the present one has no value
        gain = 0.0 if each is candidates[0] else candidates[0].value - each.value
        share = 100.0 if math.isinf(gain) else 100 * gain / (candidates[0].value or 1.0)
        return {
            "kind": each.kind,
            **by_name(each.configuration),
            "mean_ms": each.mean,
            "value_ms": _json(each.value),
            "gain_ms": _json(gain),
            "gain_percent": share if candidates[0].value else 0.0,
            "price_ms": _json(each.price),
            "even_after_intervals": _json(each.price / gain) if gain > 0 else None,
            "status": each.note,
        }

    here = candidates[0].value if candidates else math.inf
    taken = weighed(candidates[pick]) if candidates else {}
    document: dict[str, object] = {
        "sequence": demand.intervals,
        "interval": label,
        "action": action,
        **by_name(after),
        "operations": operations,
        "objective": settings.problem.objective.describe() or "mean latency",
        "now_ms": None if math.isinf(here) else here,
        "then_ms": candidates[pick].value if candidates else None,
        **{name: taken.get(name, 0.0) for name in ("gain_ms", "gain_percent", "price_ms")},
        "horizon": _json(settings.rule.horizon),
        "streak": paid,
        "confirm": settings.rule.confirm,
        "proven": proven,
        "reasons": list(reasons),
        "candidates": [weighed(each) for each in candidates],
        "steps": [step_document(step, names) for step in steps],
    }
    advice = Recommendation(action, after, candidates, pick, operations, paid, reasons, document)
    return WatchState(demand, after, streak), advice


def _candidates(
    settings: WatchSettings, problem: Problem, current: Configuration, feasible: bool
) -> tuple[tuple[Candidate, ...], bool, bool]:
    """Return the candidates, each once: the present configuration first, then the nearest first.

    And whether one of them is proven to have the least value of all configurations, and whether
    one is proven to have the least H·value + price.
    """
    names = settings.instance.sites
    replicas = [names[site] for site in current.replicas]
    voters = [names[site] for site in current.voters]
    asked: list[tuple[str, Problem]] = [("replicas", problem)]
    if feasible:  # a smaller move cannot start from a configuration that breaks the rules
        if problem.tier == 3:
            asked.insert(0, ("roles", problem.replace(replicas=replicas)))
        if problem.tier >= 2:
            asked.insert(0, ("leader", problem.replace(replicas=replicas, voters=voters)))
        asked[-1] = (("leader", "roles", "replicas")[problem.tier - 1], problem)
    found: list[Candidate] = []
    known = {_identity(current)}

    def weigh(kind: str, configuration: Configuration, note: str) -> None:
        if _identity(configuration) not in known:
            known.add(_identity(configuration))
            price = settings.prices.of(changes(current, configuration))
            found.append(_candidate(kind, problem, configuration, price, note))

    for kind, question in asked:
        plan = _best(settings, question, current)
        weigh(kind, _found(plan), plan.status)
    least = plan.status is Status.OPTIMAL  # the whole question comes last
    floor = problem.objective.in_ms(problem, plan.bound)
    seen = [each.configuration for each in found]
    move = best_move(
        problem,
        current,
        settings.prices,
        settings.rule.horizon,
        lambda part: _best(settings, part, current),
        seen,
        floor,
    )
    if move is not None:
        weigh(_kind(current, move.configuration), move.configuration, move.status)
    cheapest = move is not None and move.status is Status.OPTIMAL

    def size(each: Candidate) -> int:
        return changes(current, each.configuration).size

    found.sort(key=lambda each: (each.price, size(each)))
    keep = _candidate("keep", problem, current, 0.0, "as it is")
    return (keep, *found), least, cheapest


def _kind(current: Configuration, other: Configuration) -> str:
    """Name the largest part that changes."""
    after = changes(current, other)
    if after.added or after.removed:
        return "replicas"
    return "roles" if after.promoted or after.demoted else "leader"


def _best(settings: WatchSettings, problem: Problem, current: Configuration | None) -> Plan:
    """Ask the method of the settings, or, for a part of the question it refuses, the exact one."""
    # A search for another objective than the mean takes long enough to start from what runs.
    start = None if problem.objective.minimises_mean else current
    method = load_method(settings.method)
    options = Options(settings=settings.method_settings, start=start)
    if refusal(method, problem) is not None and problem.tier < settings.problem.tier:
        method, options = load_method("exact"), Options(start=start)
    plan = run(method, problem, options)
    if plan.termination is Termination.INTERRUPTED:
        # a method answers Ctrl-C with the best so far, which is no answer to go on from
        raise KeyboardInterrupt
    return plan


def _found(plan: Plan) -> Configuration:
    if plan.configuration is None:
        raise InputError(
            f"method {plan.method!r} finds no configuration: " + "; ".join(plan.reasons),
            field="problem",
            expected="a question with an answer",
        )
    return plan.configuration


def _candidate(
    kind: str, problem: Problem, configuration: Configuration, price: float, note: str
) -> Candidate:
    mean = score_of(problem, configuration) / problem.demand.operations
    value = problem.objective.in_ms(problem, objective_value(problem, configuration))
    return Candidate(kind, configuration, mean, value, price, str(note))


def _identity(configuration: Configuration) -> tuple[object, ...]:
    return (
        configuration.leader,
        frozenset(configuration.voters),
        frozenset(configuration.replicas),
    )


def _reasons(
    settings: WatchSettings,
    candidates: tuple[Candidate, ...],
    pick: int,
    paid: int,
    broken: tuple[str, ...],
    proven: bool,
    cheapest: bool,
) -> tuple[str, ...]:
    """Say why, for the candidate that was taken or the one that came closest."""
    if broken:
        return ("The configuration breaks the constraints: " + "; ".join(broken) + ".",)
    here, horizon, confirm = candidates[0], settings.rule.horizon, settings.rule.confirm
    best = "is the best for the predicted demand (proven)"
    if not proven:
        best = f"is the best that {settings.method} finds for the predicted demand"
    if len(candidates) == 1:
        return (f"The configuration {best}.",)
    better = [each for each in candidates[1:] if here.value - each.value > TIE * here.value]
    if not better:
        return (f"The configuration {best}, as are others.",)
    scale = min(horizon, 1e12)
    shown = min(better, key=lambda each: scale * each.value + each.price)
    shown = candidates[pick] if pick else shown
    gain = here.value - shown.value
    name = settings.instance.sites[shown.configuration.leader]
    led = f", with leader {name},"
    what = f"Leader {name}" if shown.kind == "leader" else f"Other replicas{led}"
    what = f"Other voters{led}" if shown.kind == "roles" else what
    words = settings.problem.objective.describe()
    unit = f"ms ({words})" if words else "ms"
    first = (
        f"{what} would take {shown.value:.3f} {unit} instead of {here.value:.3f}: "
        f"{gain:.3f} ms ({100 * gain / here.value:.2f} %) less."
    )
    worth = horizon * gain
    over = "for ever" if math.isinf(horizon) else f"{worth:.3f} ms over {horizon:g} intervals"
    pays = worth > shown.price * (1 + TIE) if not math.isinf(horizon) else True
    if math.isinf(shown.price):
        second = "That move is forbidden (its price is infinite)."
        pays = False
    else:
        even = shown.price / gain
        second = (
            f"The move costs {shown.price:.3f} ms and saves {over}: "
            f"{'it pays' if pays else 'it does not pay'} (break-even after {even:.1f} intervals)."
        )
    what = "Moving" if pays else "Staying"
    among = "all configurations" if cheapest else "all configurations that were found"
    known = "proven" if cheapest else "not proven"
    third = f"{what} costs least of {among}, latency and price together ({known})."
    if not pays or confirm == 1:
        return (first, second, third)
    done = "it is made" if pick else "it waits"
    return (first, second, third, f"It has paid {paid} of {confirm} times in a row: {done}.")


def _json(value: float) -> float | str:
    """Return a number, or "inf", which JSON has no number for."""
    return value if math.isfinite(value) else "inf"
