"""Question of the browser, and the command line and the lines of Python that ask the same.

The question is a document with the keys

    problem      question of a plan file (:mod:`placement.io.problem_document`), without objective
    interval     label of one interval, whose demand counts alone; absent: all intervals
    mix          operation -> share (:func:`placement.model.changed_instance.with_mix`)
    demand       client -> factor (:func:`placement.scale_demand`)
    sites        list of {name, lat, lon}: added sites
    percentile   percentile to minimise in place of the mean
    minimise     measure to minimise (a share: to maximise) in place of the mean
    keep         list of limits on measures
    spread       relative standard deviation of RTTs, for percentiles; absent: 0.2
    lost         sites that are lost while the plan runs
    time_limit   seconds; the server has a limit of its own
    method       name of the method; absent: ``exact``

The words of the command line and of Python come from the fields of :class:`placement.Problem` that
are not at their default: an option is named as its field, but for those of `_OPTIONS`.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from placement.errors import InputError
from placement.evaluation.moves import CurrentSites
from placement.io.formats.document import Document
from placement.io.problem_document import problem_from
from placement.measures import MeasureKind, read_limit, read_measure
from placement.model.changed_instance import scale_demand, with_mix, with_site
from placement.model.constraints import Diversity
from placement.model.instance import Instance
from placement.problem import Problem
from placement.support.checks import number
from placement.tail.objective import Percentile
from placement.tail.rtt_spread import percentile_of_spread

__all__ = [
    "DEFAULT_SPREAD",
    "MOST_ADDED",
    "MOST_SPREAD",
    "AddedSite",
    "Origin",
    "Question",
    "command_line",
    "python_lines",
    "read_question",
]

DEFAULT_SPREAD = 0.2
"""Relative standard deviation of RTTs where none is given: a fifth of the RTT."""

MOST_ADDED = 20
"""Most sites that a question may add."""

MOST_SPREAD = 3.0
"""Largest spread: distributions of RTTs grow with it."""

_KEYS = (
    "problem",
    "interval",
    "mix",
    "demand",
    "sites",
    "percentile",
    "minimise",
    "keep",
    "spread",
    "lost",
    "time_limit",
    "method",
)


@dataclass(frozen=True, slots=True)
class AddedSite:
    """Site that a question adds: name, and latitude and longitude in degrees."""

    name: str
    latitude: float
    longitude: float


@dataclass(frozen=True)
class Question:
    """Question of the browser.

    Attributes
    ----------
    instance
        That of the server, unchanged.
    document
        As it came, checked key by key.
    interval, mix, demand, added
        Changes of the instance; see the module.
    percentile, spread
        Percentile to minimise, None: the mean; relative standard deviation of the RTTs.
    minimise, keep
        Measure to minimise (a share: to maximise), None: none; limits on measures.
    lost
        Sites that are lost while the plan runs.
    time_limit
        Seconds; None: that of the server.
    method
        Name of the method.
    """

    instance: Instance
    document: Document
    interval: str | None
    mix: Mapping[str, float]
    demand: Mapping[str, float]
    added: tuple[AddedSite, ...]
    percentile: float | None
    minimise: str | None
    keep: tuple[str, ...]
    spread: float
    lost: tuple[str, ...]
    time_limit: float | None
    method: str

    @cached_property
    def changed(self) -> Instance:
        """Instance with the changes of the question: sites, interval, mix, then demand."""
        instance = self.instance
        for site in self.added:
            instance = with_site(instance, site.name, site.latitude, site.longitude)
        if self.interval is not None:
            if self.interval not in instance.intervals:
                raise InputError(
                    "unknown interval",
                    field="interval",
                    value=self.interval,
                    expected="one of the intervals of the instance",
                )
            instance = instance.at_interval(instance.intervals.index(self.interval))
        if self.mix:
            instance = with_mix(instance, self.mix)
        return scale_demand(instance, self.demand) if self.demand else instance

    @cached_property
    def problem(self) -> Problem:
        """The problem: what the plan minimises and must obey."""
        given = self.document.table("problem")
        if given.has("objective"):
            raise given.refuse("objective", "not a key of a question", "the key percentile")
        problem = problem_from(_in_file_order(given), self.changed)
        if self.percentile is not None:
            problem = problem.replace(objective=self.tail(self.percentile))
        return problem.replace(**self.asked)

    @cached_property
    def asked(self) -> dict[str, object]:
        """Measures as fields of a problem, with distributions where they need them."""
        measures = [read_limit(text).measure for text in self.keep]
        found: dict[str, object] = {"keep": self.keep} if self.keep else {}
        if self.minimise is not None:
            measures.append(read_measure(self.minimise))
            found["maximise" if measures[-1].share else "minimise"] = self.minimise
        if any(m.kind in {MeasureKind.PERCENTILE, MeasureKind.WITHIN} for m in measures):
            tail = self.tail(99.0)
            found["distributions"] = tail.by_interval or tail.distributions
        return found

    def tail(self, percent: float) -> Percentile:
        """Return a percentile of all operations with the spread of the question."""
        known = _percentile(_NetworkKey(self.changed), percent, self.spread)
        # an objective remembers values of problems: one that outlives a question would keep them
        return dataclasses.replace(known)


def _in_file_order(problem: Document) -> Document:
    """Return a question with the present configuration in the order of a plan file: by name."""
    if not problem.has("current"):
        return problem
    current = problem.table("current")
    names = {key: sorted(current.names(key)) for key in ("voters", "replicas")}
    return dataclasses.replace(
        problem, values={**problem.values, "current": {**current.values, **names}}
    )


class _NetworkKey:
    """Instance as a key: equal where RTTs are, whatever the demand."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self._key = instance.client_rtt.tobytes(), instance.site_rtt.tobytes()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NetworkKey) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


@lru_cache(maxsize=2)
def _percentile(network: _NetworkKey, percent: float, spread: float) -> Percentile:
    """Return the objective; building its distributions takes longer than a solve for the mean."""
    return percentile_of_spread(network.instance, percent, spread)


def read_question(value: object, instance: Instance) -> Question:
    """Read a question of the browser.

    Parameters
    ----------
    value
        JSON value.
    instance
        That of the server.

    Raises
    ------
    InputError
        For an unknown key and a value of the wrong kind. The content of the question is checked
        when :attr:`Question.problem` is first read.
    """
    if not isinstance(value, dict):
        raise InputError("not an object", field="question", expected="named keys")
    document = Document("question", "", value)
    document.only(_KEYS)
    added = tuple(
        AddedSite(site.text("name"), site.number("lat"), site.number("lon"))
        for site in document.tables("sites")
    )
    if len(added) > MOST_ADDED:
        raise document.refuse("sites", "too many added sites", f"at most {MOST_ADDED}")
    percentile = document.number("percentile") if document.has("percentile") else None
    limit = document.number("time_limit") if document.has("time_limit") else None
    return Question(
        instance,
        document,
        document.text("interval") if document.has("interval") else None,
        _numbers(document.table("mix")),
        _numbers(document.table("demand")),
        added,
        percentile,
        document.text("minimise") if document.has("minimise") else None,
        document.names("keep", ()),
        number(document.number("spread", DEFAULT_SPREAD), "spread", maximum=MOST_SPREAD),
        document.names("lost", ()),
        limit,
        document.text("method", "exact"),
    )


def _numbers(table: Document) -> dict[str, float]:
    return {key: table.number(key) for key in table.values}


# --- the same question elsewhere ---------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Origin:
    """Source of the instance of the server: a data set or a path, and its options.

    Attributes
    ----------
    source
        Name of a data set, or a path.
    mix, seed
        Of the workload of a data set; mix None: its default.
    words
        Further options of the command line that changed the instance.
    """

    source: str
    mix: str | None = None
    seed: int = 0
    words: tuple[str, ...] = ()


_OPTIONS = {
    "pinned": "--pin",
    "pinned_voters": "--pin-voter",
    "forbidden": "--forbid",
    "non_voters": "--no-vote",
}
"""Field of a problem -> option; others are named alike."""


def _given(problem: Problem) -> Iterator[tuple[str, object]]:
    """Yield the fields of a problem that are not at their default, but for the objective."""
    for field in dataclasses.fields(problem)[1:]:
        value = getattr(problem, field.name)
        if value != field.default and field.name != "objective":
            yield field.name, value


def command_line(question: Question, origin: Origin) -> tuple[str, tuple[str, ...]]:
    """Return the command, and the parts of the question without an option, in words."""
    problem = question.problem
    words = ["placement", "solve", origin.source]
    for option, text in (("--mix", origin.mix), ("--workload-seed", origin.seed or None)):
        words += [] if text is None else [option, str(text)]
    words += origin.words
    for field, value in _given(problem):
        option = _OPTIONS.get(field, "--" + field.replace("_", "-"))
        for one in value if isinstance(value, tuple) and not _is_span(value) else [value]:
            if field not in ("current", "moves"):
                words += _rule_words(one) if isinstance(one, Diversity) else [option, _text(one)]
    for client, factor in question.demand.items():
        words += ["--scale-demand", f"{client}={_text(factor)}"]
    if question.percentile is not None:
        words += ["--percentile", _text(question.percentile)]
    for field in ("minimise", "maximise"):
        words += [f"--{field}", str(question.asked[field])] if field in question.asked else []
    for text in question.keep:
        words += ["--keep", text]
    if question.percentile is not None or "distributions" in question.asked:
        words += ["--spread", _text(question.spread)]
    if question.method != "exact":
        words += ["--method", question.method]
    if question.time_limit is not None:
        words += ["--time-limit", _text(question.time_limit)]
    lacking = (
        ("added sites", question.added),
        ("one interval alone", question.interval is not None),
        ("the operation mix", question.mix),
        ("moves from the present configuration", problem.moves is not None),
    )
    return shlex.join(words), tuple(name for name, used in lacking if used)


def _is_span(value: object) -> bool:
    """Return whether a value is a pair of numbers: the least and the largest."""
    return isinstance(value, tuple) and isinstance(value[0], int)


def _text(value: object) -> str:
    """Return an option's value; a float so that it reads back as the same float."""
    if isinstance(value, range):
        return f"{min(value)}..{max(value)}"
    if isinstance(value, tuple):
        return f"{value[0]}..{value[1]}"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return repr(value) if isinstance(value, float) else str(value)


def _rule_words(rule: Diversity) -> list[str]:
    """Return the options of a diversity rule."""
    words: list[str] = []
    for option, what, limit in (
        ("--cap", rule.level, rule.cap),
        ("--distinct", rule.level, rule.min_domains),
        ("--require", f"{rule.level}:{rule.domain}", rule.least),
    ):
        if limit is not None:
            words += [option, f"{what}={limit}:{rule.role}"]
    return words


def python_lines(question: Question, origin: Origin) -> str:
    """Return lines of Python that ask the question; the last one makes the plan."""
    problem, tail = question.problem, question.percentile
    made: list[str] = []  # lines that make the instance
    if origin.words:
        made.append(f"# the command line changed it further: {shlex.join(origin.words)}")
    for site in question.added:
        made.append(
            f"instance = with_site(instance, {site.name!r}, {site.latitude!r}, {site.longitude!r})"
        )
    if question.interval is not None:
        at = f"instance.intervals.index({question.interval!r})"
        made.append(f"instance = instance.at_interval({at})")
    if question.mix:
        made.append(f"instance = with_mix(instance, {dict(question.mix)!r})")
    if question.demand:
        made.append(f"instance = placement.scale_demand(instance, {dict(question.demand)!r})")
    values: dict[str, str] = {}
    for field, value in _given(problem):
        shown = list(value) if isinstance(value, tuple) and not _is_span(value) else value
        values[field] = repr(shown if field != "protocol" else str(value))
    if isinstance(problem.current, CurrentSites):
        values["current"] = repr(problem.current.document())
    if problem.moves is not None:
        values["moves"] = f"placement.Moves(**{dict(problem.moves.given)!r})"
    if tail is not None:
        values["objective"] = f"percentile_of_spread(instance, {tail!r}, {question.spread!r})"
    for field, value in question.asked.items():
        values[field] = repr(list(question.keep) if field == "keep" else value)
    late = "distributions" in question.asked
    if late:
        values["distributions"] = f"spread_distributions(instance, {question.spread!r})"
    imports = (
        ("from placement.tail.rtt_spread import spread_distributions", late),
        ("from placement.model.changed_instance import with_mix", question.mix),
        ("from placement.model.changed_instance import with_site", question.added),
        ("from placement.tail.rtt_spread import percentile_of_spread", tail is not None),
        ("from placement import Diversity", problem.diversity),
    )
    options = {"mix": origin.mix, "seed": origin.seed or None}
    load = [repr(origin.source), *(f"{k}={v!r}" for k, v in options.items() if v is not None)]
    solve = ["problem"] + ([] if question.method == "exact" else [repr(question.method)])
    if question.time_limit is not None:
        solve.append(f"time_limit={question.time_limit!r}")
    lines = [
        "import placement",
        *(line for line, used in imports if used),
        "",
        f"instance = placement.load({', '.join(load)})",
        *made,
        "problem = placement.Problem(",
        "    instance,",
        *(f"    {field}={value}," for field, value in values.items()),
        ")",
        f"plan = placement.solve({', '.join(solve)})",
    ]
    return "\n".join(lines) + "\n"
