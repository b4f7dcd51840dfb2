"""Questions of measures: minimise one, keep limits on others.

:class:`MeasureQuestion` is the objective of a problem that minimises a measure under limits. A
question that an older kind of objective says exactly (the mean within a budget and a number of
changes, a percentile, the worst latency after losses) is put in its terms by
:func:`question_fields`, so that methods and files of that kind take it. :func:`question_of` says
any problem in measures.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError, UnsupportedError
from placement.evaluation.losses import Failures, failures
from placement.evaluation.moves import Moves
from placement.evaluation.objective import MEAN_LATENCY, MeanLatency, score_of
from placement.measures.measure import After, Limit, Measure, MeasureKind
from placement.measures.text import number_words, read_limit, read_measure
from placement.measures.values import (
    MeasureData,
    check_measure,
    focused,
    largest,
    losses_of,
    mixed_mean,
    outages_of,
    percentile_of,
    value,
    values,
)
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity
from placement.support.checks import FloatArray, elements, instances_of, mapping, number
from placement.support.status import Status
from placement.tail.rtt_distributions import (
    Distributions,
    distributions_document,
    distributions_from,
)
from placement.text.text_tables import ValueColumn, ValueTable

if TYPE_CHECKING:
    from placement.io.formats.document import Document
    from placement.model.instance import Instance
    from placement.plan import Plan
    from placement.problem import Problem

MEAN = Measure(MeasureKind.MEAN)
P100 = Measure(MeasureKind.PERCENTILE, 1.0)
_COST, _CHANGES, _COPIED = (
    Measure(kind) for kind in (MeasureKind.COST, MeasureKind.CHANGES, MeasureKind.COPIED)
)


@dataclass(frozen=True, slots=True)
class MeasureRow:
    """Measure of a question, with its value in a plan."""

    measure: str  #: its text
    limit: str  #: its text without the measure; empty for the one that is minimised
    value: float  #: in `unit`; infinite where the service stops, or beyond the horizon
    slack: float  #: by how much the limit is kept; NaN for the one that is minimised
    unit: str  #: "ms", "GB", the currency, "%" for shares (`value` is from 0 to 1), or nothing


@dataclass(frozen=True)
class MeasureQuestion(MeasureData):
    """Minimise a measure, and keep limits on others."""

    aim: Measure = MEAN  #: what is minimised; a share in time is maximised
    keep: tuple[Limit, ...] = ()
    #: limits that a stricter one on the same measure stands for
    looser: tuple[Limit, ...] = field(default=(), compare=False)

    @property
    def kind(self) -> str:
        """Return "measures"."""
        return "measures"

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Return every measure that is asked for, the minimised one first, each once."""
        return tuple(dict.fromkeys((self.aim, *(limit.measure for limit in self.keep))))

    def at_once(self, problem: Problem) -> int:
        """Return how many configurations are evaluated in less than a second, about."""
        slow = 100 if any(one.kind.of_distributions for one in self.measures) else 1
        work = sum(1 + len(losses_of(problem, one)) for one in self.measures)
        return max(1, 10_000 // (slow * work))

    @property
    def minimises_mean(self) -> bool:
        """Return False: limits are no part of Eq. 1."""
        return False

    @property
    def beyond(self) -> str:
        """Return the text for an infinite value."""
        return "service stops, or beyond the horizon"

    def unit(self, problem: Problem) -> str:
        """Return the unit of the minimised value."""
        return _unit(problem, self.aim) if not self.aim.share else ""

    def check(self, problem: Problem) -> None:
        """Check every measure against the instance, and the probabilities."""
        if problem.cost_weight:
            raise InputError(
                "measures are minimised and limited as they are, without weights",
                field="cost_weight",
                value=problem.cost_weight,
                expected="0, and a limit on the cost",
            )
        for measure in self.measures:
            check_measure(problem, measure)
        total = sum(outages_of(problem).values()) if self.outages else 0.0
        if total > 1 + 1e-9:
            raise InputError(
                "outage probabilities sum to more than 1",
                field="outages",
                value=total,
                expected="a sum <= 1",
            )

    def value(self, problem: Problem, configuration: Configuration) -> float:
        """Return the minimised measure; of a share in time the late part. Broken limits: ∞."""
        return float(self.values(problem, [configuration])[0])

    def values(self, problem: Problem, configurations: Sequence[Configuration]) -> FloatArray:
        """Values of many configurations, shape (n,); limits that are quick to value come first."""
        return self._values(problem, configurations, self.keep)

    def quick_values(self, problem: Problem, configurations: Sequence[Configuration]) -> FloatArray:
        """Values under the limits that are quick to value alone, shape (n,): bounds from below."""
        return self._values(problem, configurations, [k for k in self.keep if _work(k.measure) < 3])

    def _values(
        self, problem: Problem, configurations: Sequence[Configuration], keep: Sequence[Limit]
    ) -> FloatArray:
        left = list(range(len(configurations)))
        for limit in sorted(keep, key=lambda one: _work(one.measure)):
            some = values(problem, limit.measure, [configurations[row] for row in left])
            left = [row for row, one in zip(left, some, strict=True) if limit.kept(float(one))]
        found = np.full(len(configurations), math.inf)
        aim = values(problem, self.aim, [configurations[row] for row in left])
        found[left] = 1 - aim if self.aim.share else aim
        return found

    def mixed(
        self, problem: Problem, configurations: Sequence[Configuration], shares: Sequence[float]
    ) -> float:
        """Value of groups on several configurations: a mean, or a percentile, without limits."""
        late = self.aim.kind is MeasureKind.PERCENTILE and self.aim.after is None
        if self.keep or not (late or self.aim.kind is MeasureKind.MEAN):
            raise UnsupportedError("groups with leaders of their own have means and percentiles")
        if not late:
            return mixed_mean(problem, self.aim, configurations, shares)
        goal = percentile_of(problem, self.aim)
        part = focused(problem, self.aim.operations, self.aim.clients)
        held = zip(configurations, shares, strict=True)
        return goal.of_mixture([(share, goal.latency(part, one)) for one, share in held if share])

    def of_intervals(self, intervals: int | slice) -> MeasureQuestion:
        """Return the question with the distributions of one interval, or of several."""
        if len(self.distributions) < 2:
            return self
        some = self.distributions[intervals]
        return dataclasses.replace(self, distributions=some if isinstance(some, tuple) else (some,))

    def in_ms(self, problem: Problem, value: float) -> float:
        """Return the value, in the unit of the minimised measure (a share: what is late)."""
        del problem
        return value

    def headline(self, problem: Problem) -> str:
        """Return the text of the minimised measure; empty for the mean, which is told anyway."""
        del problem
        if self.aim == MEAN:
            return ""
        return f"late, not {self.aim}" if self.aim.share else str(self.aim)

    def failures(self, problem: Problem, configuration: Configuration) -> Failures:
        """Mean latency under every loss of the first measure after losses; else of each site."""
        each = (one.after for one in self.measures if one.after is not None and one.after.level)
        after = next(each, After(self._level_of_outages))
        return failures(
            problem,
            configuration,
            after.level,
            together=after.together,
            leader_may_move=after.leader_moves,
            clients_move=after.clients_move,
        )

    @property
    def _level_of_outages(self) -> str:
        """Return the level of which any domain has outages that count; else "site"."""
        levels = (name.removeprefix("any ") for name in self.outages if name.startswith("any "))
        counted = any(one.over_outages for one in self.measures)
        return next(levels, "site") if counted else "site"

    def reasons_infeasible(self, problem: Problem) -> tuple[str, ...]:
        """Say so when the quorum cannot spare the voters that a loss takes."""
        voters, quorum = problem.rules.voters, problem.rules.quorum
        may_vote = problem.rules.may_vote.nonzero()[0].tolist()
        return tuple(
            f"{voters} voters with quorum {quorum} can spare {voters - quorum}, and {one} needs "
            f"{one.after.together} to be spared"
            for one in self.measures
            if one.after is not None
            and one.after.level
            and not one.share
            and voters - quorum < one.after.together
            and None not in [problem.instance.labels(one.after.level)[site] for site in may_vote]
        )

    def tie_break(self, problem: Problem, configuration: Configuration) -> float:
        """Mean latency: of the plans of equal value the least mean."""
        return score_of(problem, configuration)

    def violations(self, problem: Problem, configuration: Configuration) -> tuple[str, ...]:
        """Return the limits that a configuration breaks, in words."""
        broken = []
        for limit in self.keep:
            found = value(problem, limit.measure, configuration)
            if not limit.kept(found):
                broken.append(
                    f"{limit.measure} is {amount(problem, limit.measure, found)}, "
                    f"and the limit is {limit}"
                )
        if math.isinf(found := value(problem, self.aim, configuration)):
            broken.append(f"{self.aim} is {amount(problem, self.aim, found)}")
        return tuple(broken)

    def remarks(self, problem: Problem) -> tuple[str, ...]:
        """Return the limits that do not count, and those that no plan can break."""
        idle = [
            limit
            for limit in self.keep
            if limit.least == 0
            or (not limit.measure.share and limit.bound >= largest(problem, limit.measure))
        ]
        return (
            *(f"{limit} does not count: another limit is stricter" for limit in self.looser),
            *(f"no plan can break the limit {limit}" for limit in idle),
        )

    def diversity(self, instance: Instance, voters: int, quorum: int) -> tuple[Diversity, ...]:
        """Return the rules that follow from losses of any domain: enough voters are spared."""
        levels = {
            one.after.level: instance.labels(one.after.level, str(one))  # it may be unknown
            for one in self.measures
            if one.after is not None and one.after.level and not one.share
        }
        if voters == quorum:  # no voter can be spared: no plan at all
            return ()
        return tuple(Diversity(level, "voters", cap=voters - quorum) for level in levels)

    def unproven(self, plan: Plan) -> tuple[str, str] | None:
        """Return the recomputed values of a plan without a certificate; else None."""
        if plan.status is Status.INFEASIBLE or plan.certificate is not None:
            return None
        held = "the plan holds no configuration"
        if plan.configuration is not None:
            rows = measure_rows(plan.problem, plan.configuration)
            held = "the configuration was evaluated again: " + ", ".join(
                f"{row.measure} is {_shown(row.value, row.unit)}" for row in rows
            )
        return held, (
            "the plan carries no certificate, so that no other plan is ruled out here; "
            f"{plan.method!r} said {plan.status.value!r}: solve again"
        )

    def describe(self) -> str:
        """Return the question in words."""
        aim = f"{'maximise' if self.aim.share else 'minimise'} {self.aim}"
        return f"{aim}, keep {', '.join(map(str, self.keep))}" if self.keep else aim

    def tables(self, problem: Problem, configuration: Configuration) -> tuple[ValueTable, ...]:
        """Return the table of every measure asked for: limit, value and slack."""
        rows = measure_rows(problem, configuration)
        more: tuple[ValueTable, ...] = ()
        if self.distributions:
            words = [
                (f"p{one.percent:g}", _shown(one.ms, "ms"))
                for one in percentile_of(problem, P100).rows(problem, configuration)
            ]
            columns = (ValueColumn("percentile"), ValueColumn("ms"))
            more = (ValueTable("Latency of all operations", columns, tuple(words)),)
        return (
            ValueTable(
                "What was asked for",
                tuple(map(ValueColumn, ("measure", "limit", "value", "slack"))),
                tuple(
                    (
                        row.measure,
                        row.limit or ("greatest" if self.aim.share else "least"),
                        _shown(row.value, row.unit),
                        "–" if math.isnan(row.slack) else _shown(row.slack, row.unit),
                    )
                    for row in rows
                ),
            ),
            *more,
        )

    def plan_rows(
        self, problem: Problem, configuration: Configuration
    ) -> Mapping[str, Sequence[object]]:
        """Return the measures with limits, values and slack; with distributions, percentiles."""
        found: dict[str, Sequence[object]] = {"measures": measure_rows(problem, configuration)}
        if self.distributions:
            found["percentiles"] = percentile_of(problem, P100).rows(problem, configuration)
        return found

    def document(self, instance: Instance) -> dict[str, object]:
        """Return the texts of the measures, the distributions and the outages."""
        document: dict[str, object] = {"minimise": str(self.aim), "keep": list(map(str, self.keep))}
        if self.distributions:
            varying = instance.varying_rtt
            document["distributions"] = [
                distributions_document(one, instance.at_interval(k) if varying else instance)
                for k, one in enumerate(self.distributions)
            ]
        if self.outages:
            document["outages"] = {name: float(p) for name, p in self.outages.items()}
        if self.stored_gb is not None:
            document["stored_gb"] = self.stored_gb
        return document

    @classmethod
    def from_document(cls, document: Document, instance: Instance) -> MeasureQuestion:
        """Return the question that :meth:`document` wrote."""
        tables = document.tables("distributions") if document.has("distributions") else ()
        if len(tables) > 1 and len(tables) != len(instance.intervals):
            raise document.refuse("distributions", "another number of intervals", "one or each")
        varying = instance.varying_rtt
        outages = document.table("outages") if document.has("outages") else None
        return cls(
            aim=read_measure(document.text("minimise")),
            keep=tuple(map(read_limit, document.names("keep", ()))),
            distributions=tuple(
                distributions_from(one, instance.at_interval(k) if varying else instance)
                for k, one in enumerate(tables)
            ),
            outages={name: outages.number(name) for name in outages.values} if outages else {},
            stored_gb=document.number("stored_gb") if document.has("stored_gb") else None,
        )


def percentile_question(percent: float, *distributions: Distributions) -> MeasureQuestion:
    """Return the question that minimises a percentile of all operations, p in (0, 100]."""
    aim = Measure(MeasureKind.PERCENTILE, number(percent, "percentile") / 100)
    return MeasureQuestion(aim=aim, distributions=distributions)


def _work(measure: Measure) -> int:
    """Return a rank of the time that a value takes: from 3 on it is a convolution."""
    if not measure.kind.of_latency:
        return 0
    slow = measure.kind in {MeasureKind.PERCENTILE, MeasureKind.WITHIN}
    return 1 + (measure.after is not None or measure.over_outages) + 2 * slow


def _unit(problem: Problem, measure: Measure) -> str:
    if measure.kind is MeasureKind.COST and problem.instance.prices is not None:
        return problem.instance.prices.currency
    return "%" if measure.share else measure.unit


def amount(problem: Problem, measure: Measure, found: float) -> str:
    """Return a value of a measure in words, with its unit."""
    return _shown(found, _unit(problem, measure))


def _shown(found: float, unit: str) -> str:
    if math.isinf(found):
        return "beyond the horizon, or the service stops"
    digits = 100 * found if unit == "%" else found
    words = number_words(digits) if digits == int(digits) else f"{digits:,.3f}"
    return f"{words} {unit}".strip()


def measure_rows(problem: Problem, configuration: Configuration) -> tuple[MeasureRow, ...]:
    """Return the minimised measure and every limit of a problem with its value in a plan."""
    question = question_of(problem)
    nothing = (question.aim, "", math.nan)
    rows = [(*nothing, value(problem, question.aim, configuration))]
    for limit in question.keep:
        found = value(problem, limit.measure, configuration)
        words = str(limit).removeprefix(str(limit.measure)).strip()
        rows.append((limit.measure, words, limit.slack(found), found))
    return tuple(
        MeasureRow(str(measure), words, found, slack, _unit(problem, measure))
        for measure, words, slack, found in rows
    )


def value_of_plan(plan: Plan, measure: Measure) -> float:
    """Return the value of a measure in a plan; NaN when nothing was found."""
    found = plan.configuration
    return math.nan if found is None else value(plan.problem, measure, found)


# --- questions of older kinds, in measures and back -------------------------------------------


def question_of(problem: Problem) -> MeasureQuestion:
    """Return the question of any problem in measures.

    UnsupportedError for a weight of the cost and prices of moves, which are no measures.
    """
    if problem.cost_weight or (problem.moves is not None and problem.moves.priced):
        raise UnsupportedError("a weight of the cost and prices of moves are no measures")
    limits = _limits_of(problem.budget, problem.moves)
    found = _of_objective(problem.objective)
    stored = None if problem.moves is None else problem.moves.stored_gb
    return dataclasses.replace(
        found, keep=(*found.keep, *limits), stored_gb=found.stored_gb or stored
    )


def _limits_of(budget: float | None, moves: Moves | None) -> list[Limit]:
    found = [] if budget is None else [Limit(_COST, budget)]
    if moves is not None and moves.at_most is not None:
        found.append(Limit(_CHANGES, float(moves.at_most)))
    if moves is not None and moves.copy_gb is not None:
        found.append(Limit(_COPIED, moves.copy_gb))
    return found


def _of_objective(objective: MeanLatency) -> MeasureQuestion:
    return objective if isinstance(objective, MeasureQuestion) else MeasureQuestion()


def question_fields(
    asked: Mapping[str, object],
    *,
    objective: MeanLatency,
    budget: float | None,
    moves: Moves | None,
) -> dict[str, object]:
    """Return `objective`, `budget` and `moves` of a problem, with what measures ask for in them.

    `asked` has `minimise`, `maximise`, `keep`, `distributions` and `outages` as a user gives them;
    the other three are what the problem says besides. The result is of an older kind where that
    says the same. InputError for a text that is no measure or limit, a latency that is maximised,
    and a minimised measure beside an objective.
    """
    before = _of_objective(objective)
    aim, given = before.aim, asked.get("minimise")
    if asked.get("maximise") is not None:
        if given is not None:
            raise InputError("one measure is minimised or maximised", field="maximise", value=given)
        given = asked["maximise"]
    if given is not None:
        aim = read_measure(given)  # type: ignore[arg-type]  # it checks
        if aim.share != (asked.get("maximise") is not None):
            raise InputError(
                "of a share more is better" if aim.share else "of this measure less is better",
                field="minimise" if aim.share else "maximise",
                value=str(aim),
                expected="maximise" if aim.share else "minimise",
            )
        if before.aim not in (MEAN, aim):
            raise InputError(
                "an objective beside a measure that is minimised",
                field="objective",
                value=str(before.aim),
                expected="one of the two",
            )
    keep = asked.get("keep") or ()
    keep = (keep,) if isinstance(keep, (str, Limit)) else elements(keep, "keep", "a list of limits")
    every = [*before.keep, *map(read_limit, keep), *_limits_of(budget, moves)]  # type: ignore[arg-type]  # it checks
    limits = _stricter(every)
    each = asked.get("distributions") or before.distributions
    each = (each,) if isinstance(each, Distributions) else each
    question = MeasureQuestion(
        aim=aim,
        keep=limits,
        looser=tuple(one for one in every if one not in limits),
        distributions=instances_of(
            each, Distributions, "distributions", "placement.tail.Distributions"
        ),
        outages=_outages(asked.get("outages") or before.outages),
        stored_gb=before.stored_gb if moves is None else moves.stored_gb,
    )
    older = _older_kind(question, moves)
    if older is None and moves is not None and moves.priced:
        raise InputError(
            "prices of moves are no measures",
            field="moves",
            value=moves.given,
            expected="limits alone: keep=['changes <= 2', 'copied GB <= 50']",
        )
    return older or {"objective": question, "budget": None, "moves": None}


def _stricter(limits: Sequence[Limit]) -> tuple[Limit, ...]:
    """Return one limit for each measure, the stricter of two."""
    found: dict[Measure, Limit] = {}
    for limit in limits:
        known = found.get(limit.measure)
        if known is None or limit.slack(known.bound) < 0:
            found[limit.measure] = limit
    return tuple(found.values())


def _outages(given: object) -> dict[str, float]:
    """Return the probability of each outage; "any LEVEL" stands for every domain of a level."""
    return {
        name: number(p, f"outages[{name!r}]", maximum=1.0)
        for name, p in mapping(given, "outages").items()
    }


def _older_kind(question: MeasureQuestion, moves: Moves | None) -> dict[str, object] | None:
    """Return the fields of a problem of an older kind that asks the same; None: there is none."""
    sums = {
        limit.measure: limit.bound for limit in question.keep if not limit.measure.kind.of_latency
    }
    latencies = any(limit.measure.kind.of_latency for limit in question.keep)
    if question.aim != MEAN or latencies or question.distributions or question.outages:
        return None  # no older kind holds them
    if not sums.keys() <= {_COST, _CHANGES, _COPIED} or sums.get(_CHANGES, 0.0) % 1:
        return None
    at_most = int(sums[_CHANGES]) if _CHANGES in sums else None
    if moves is not None or _CHANGES in sums or _COPIED in sums:
        moves = dataclasses.replace(moves or Moves(), at_most=at_most, copy_gb=sums.get(_COPIED))
    return {"objective": MEAN_LATENCY, "budget": sums.get(_COST), "moves": moves}
