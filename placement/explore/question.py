"""Question of the browser: that of a question file, and what the page alone can change.

The document of the page has keys of a question file (:mod:`placement.question`), but none that
names a file or changes the instance of the server. ``minimise`` may be a share, which is maximised;
``spread`` is 0.2 where it is absent. The keys of the page alone are

    interval     label of one interval, whose demand counts alone; absent: all intervals
    shares       operation -> share (:func:`placement.model.changed_instance.with_mix`)
    counts       {name, text}: table of demand that takes the place of the instance's
    sites        list of {name, lat, lon}: added sites
    lost         sites that are lost while the plan runs
    current      {leader, voters, replicas}: the configuration that runs today
"""

from __future__ import annotations

import argparse
import dataclasses
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from placement.cli.options import read_named_numbers
from placement.cli.problem_options import present_configuration, problem_from, read_moves
from placement.errors import InputError, refused
from placement.evaluation.moves import CurrentSites, Moves
from placement.io.demand_tables import demand_of
from placement.io.formats.column_reader import ColumnTable
from placement.io.formats.document import Document
from placement.io.formats.tables import parse_csv
from placement.io.problem_document import current_from
from placement.measures import MeasureKind, read_limit, read_measure
from placement.model.changed_instance import scale_demand, with_mix, with_site
from placement.model.instance import Instance
from placement.problem import Problem
from placement.question import KEYS, Key, Question, file_value, question_from, toml_text
from placement.support.checks import FloatArray, number
from placement.tail.objective import Percentile, percentile_of_spread

DEFAULT_SPREAD = 0.2
"""Relative standard deviation of RTTs where none is given: a fifth of the RTT."""

MOST_ADDED = 20
"""Most sites that a question may add."""

MOST_SPREAD = 3.0
"""Largest spread: distributions of RTTs grow with it."""

_OF_PAGE = ("interval", "shares", "counts", "sites", "lost", "current")


@dataclass(frozen=True, slots=True)
class AddedSite:
    """Site that a question adds: name, and latitude and longitude in degrees."""

    name: str
    latitude: float
    longitude: float


@dataclass(frozen=True)
class PageQuestion:
    """Question of the browser."""

    instance: Instance  #: that of the server, unchanged
    asked: Question  #: the keys of a question file
    # the keys of the page alone, see the module
    shares: Mapping[str, float]
    added: tuple[AddedSite, ...]
    counts: tuple[str, str] | None = None
    current: CurrentSites | None = None
    interval: str | None = None
    lost: tuple[str, ...] = ()

    @property
    def spread(self) -> float:
        """Relative standard deviation of RTTs, for percentiles."""
        return DEFAULT_SPREAD if self.asked.spread is None else self.asked.spread

    @cached_property
    def demand(self) -> dict[str, float]:
        """Client -> factor of its demand."""
        return read_named_numbers(self.asked.scale_demand, "scale_demand", "CLIENT=F")

    @cached_property
    def changed(self) -> Instance:
        """Instance with the changes of the question: table, sites, interval, mix, then factors."""
        instance = self.instance
        if self.counts is not None:
            name, content = self.counts
            kinds = [operation.name for operation in instance.operations]
            rows = ColumnTable.of(parse_csv(content, name))
            found = demand_of(rows, clients=instance.clients, operations=kinds)
            summed: FloatArray = found.counts.sum(axis=(0, 1))
            instance = instance.replace(counts=summed, intervals=())
        for site in self.added:
            instance = with_site(instance, site.name, site.latitude, site.longitude)
        if self.interval is not None:
            if self.interval not in instance.intervals:
                words = "unknown interval"
                expected = "one of the intervals of the instance"
                raise InputError(words, field="interval", value=self.interval, expected=expected)
            instance = instance.at_interval(instance.intervals.index(self.interval))
        if self.shares:
            instance = with_mix(instance, self.shares)
        return scale_demand(instance, self.demand) if self.demand else instance

    @cached_property
    def problem(self) -> Problem:
        """The problem: what the plan minimises and must obey."""
        here = {} if self.current is None else {"current": self.current, "moves": self.moves}
        return problem_from(_arguments(self.asked), self.changed).replace(**here, **self.measures)

    @property
    def moves(self) -> Moves | None:
        """Limits and prices of moves; None without any."""
        return read_moves(_arguments(self.asked))

    @cached_property
    def measures(self) -> dict[str, object]:
        """Measures as fields of a problem, with distributions where they need them."""
        asked = self.asked
        measures = [read_limit(text).measure for text in asked.keep]
        found: dict[str, object] = {"keep": asked.keep} if asked.keep else {}
        for name, text in (("minimise", asked.minimise), ("maximise", asked.maximise)):
            if text is not None:
                found[name] = text
                measures.append(read_measure(text))
        if any(m.kind in {MeasureKind.PERCENTILE, MeasureKind.WITHIN} for m in measures):
            tail = self.tail(99.0)
            found["distributions"] = tail.by_interval or tail.distributions
        return found

    def tail(self, percent: float) -> Percentile:
        """Return a percentile of all operations with the spread of the question."""
        known = _percentile(_NetworkKey(self.changed), percent, self.spread)
        # an objective remembers values of problems: one that outlives a question would keep them
        return dataclasses.replace(known)


def _arguments(asked: Question) -> argparse.Namespace:
    """Return a question as the arguments of a verb."""
    values = {name: getattr(asked, name) for name in KEYS}
    return argparse.Namespace(
        **{name: list(v) if isinstance(v, tuple) else v for name, v in values.items()}
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


def _of_file(key: Key) -> bool:
    """Return whether a key names a file, or belongs to the instance of the server."""
    mine = key.name == "scale_demand"
    return (key.group in ("instance", "prices", "today") or key.file) and not mine


def read_question(value: object, instance: Instance) -> PageQuestion:
    """Read a question of the browser, a JSON value, about the instance of the server.

    Unknown keys and values of the wrong kind are refused. The content of the question is checked
    when :attr:`PageQuestion.problem` is first read.
    """
    if not isinstance(value, dict):
        raise InputError("not an object", field="question", expected="named keys")
    asked = question_from({name: one for name, one in value.items() if name not in _OF_PAGE})
    for key, given in asked.given():
        if _of_file(key):
            raise _not_of_page(asked, key, given)
    if asked.minimise is not None and read_measure(asked.minimise).share:
        asked = dataclasses.replace(asked, minimise=None, maximise=asked.minimise)
    document = Document("question", "", value)
    added = tuple(
        AddedSite(site.text("name"), site.number("lat"), site.number("lon"))
        for site in document.tables("sites")
    )
    if len(added) > MOST_ADDED:
        raise document.refuse("sites", "too many added sites", f"at most {MOST_ADDED}")
    number(document.number("spread", DEFAULT_SPREAD), "spread", maximum=MOST_SPREAD)
    mix, counts, current = document.table("shares"), None, None
    if document.has("counts"):
        table = document.table("counts")
        counts = table.text("name"), table.text("text")
    if document.has("current"):
        current = current_from(document.table("current"))
    return PageQuestion(
        instance, asked, {name: mix.number(name) for name in mix.values}, added, counts, current,
        **document.fields(PageQuestion, ("interval", "lost")),
    )  # fmt: skip


def _not_of_page(asked: Question, key: Key, value: object) -> InputError:
    words = "not a key that the page can change"
    expected = "a question without it, or placement explore FILE"
    return refused(asked.at(key.name), key.name, words, value, expected)


# --- the same question elsewhere ---------------------------------------------------------------


def asked_question(question: PageQuestion, origin: Question) -> tuple[Question, tuple[str, ...]]:
    """Return the question as a file or a command line has it, and the parts that it lacks.

    `origin` has the keys of the instance of the server.
    """
    late = "distributions" in question.measures
    changes = {key.name: value for key, value in origin.given()}
    changes["scale_demand"] = (*origin.scale_demand, *question.asked.scale_demand)
    changes["spread"] = question.spread if late else None
    if question.current is not None:  # moves from a configuration that no file names
        changes |= {key.name: key.default for key in KEYS.values() if key.group == "moves"}
    lacking = (
        ("added sites", question.added),
        ("the table of demand", question.counts),
        ("one interval alone", question.interval is not None),
        ("the operation mix", question.shares),
        ("the present configuration", question.current is not None),
    )
    lacks = tuple(name for name, used in lacking if used)
    return dataclasses.replace(question.asked, **changes), lacks


def question_file(question: PageQuestion, origin: Question) -> str:
    """Return the text of the question file; what it lacks stands in a comment."""
    asked, lacks = asked_question(question, origin)
    return "".join(f"# without {part}\n" for part in lacks) + toml_text(asked)


def page_question(asked: Question, instance: Instance, *, files: bool) -> dict[str, object]:
    """Return the document of the browser for the question of a file.

    A question without replicas and voters gets five and three. The instance is that of the server,
    with the changes of the file if `files` that the question names may be read; a question of the
    browser reads none. A key that the page does not have is refused; other errors are those of a
    command line with these options.
    """
    found: dict[str, object] = {}
    for key, value in asked.given():
        of_instance = _of_file(key) or (key.name == "scale_demand" and files)
        never = key.name in ("distributions", "client_distributions", "outage", "keep_diversity")
        allowed = files or key.name in ("instance", "mix", "workload_seed")
        if never or (of_instance and not allowed):
            raise _not_of_page(asked, key, value)
        if not of_instance and key.name not in ("maximise", "percentile"):
            found[key.name] = file_value(key, value)
    if asked.percentile is not None:
        found["minimise"] = f"p{asked.percentile:.12g}"
    elif asked.maximise is not None:
        found["minimise"] = asked.maximise
    most = len(instance.sites)
    if not asked.replicas:
        found |= {"voters": min(3, most)} if not asked.voters else {}
        found["replicas"] = min(5, most)
    if asked.today is not None:
        here = present_configuration(instance, asked.today, asked.database)
        found["current"] = CurrentSites.of(here, instance).document()
    problem_from(_arguments(read_question(found, instance).asked), instance)
    return found


def python_lines(question: PageQuestion, origin: Question) -> str:
    """Return lines of Python that ask the question; the last one makes the plan."""
    problem = question.problem
    made: list[str] = []  # lines that make the instance
    changes = dataclasses.replace(origin, instance=None, mix=None, workload_seed=0).words()
    if changes:
        made.append(f"# the command line changed it further: {shlex.join(changes)}")
    if question.counts is not None:
        made += [
            "kinds = [operation.name for operation in instance.operations]",
            f"demand = read_demand({question.counts[0]!r}, clients=instance.clients, "
            "operations=kinds)",
            "counts = demand.counts.sum(axis=(0, 1))",
            "instance = instance.replace(counts=counts, intervals=())",
        ]
    for site in question.added:
        made.append(
            f"instance = with_site(instance, {site.name!r}, {site.latitude!r}, {site.longitude!r})"
        )
    if question.interval is not None:
        at = f"instance.intervals.index({question.interval!r})"
        made.append(f"instance = instance.at_interval({at})")
    if question.shares:
        made.append(f"instance = with_mix(instance, {dict(question.shares)!r})")
    if question.demand:
        made.append(f"instance = placement.scale_demand(instance, {dict(question.demand)!r})")
    values: dict[str, str] = {}
    for each in dataclasses.fields(problem)[1:]:
        value = getattr(problem, each.name)
        if value == each.default or each.name == "objective":
            continue
        is_list = isinstance(value, tuple) and not isinstance(value[0], int)  # else a span
        shown = list(value) if is_list else value
        values[each.name] = repr(shown if each.name != "protocol" else str(value))
    if isinstance(problem.current, CurrentSites):
        values["current"] = repr(problem.current.document())
    if question.current is not None and question.moves is not None:
        values["moves"] = f"placement.Moves(**{dict(question.moves.given)!r})"
    for field, value in question.measures.items():
        values[field] = repr(list(question.asked.keep) if field == "keep" else value)
    late = "distributions" in question.measures
    if late:
        values["distributions"] = f"spread_distributions(instance, {question.spread!r})"
    rules = {type(rule).__name__ for rule in problem.diversity}
    imports = (
        ("from placement.tail.rtt_distributions import spread_distributions", late),
        ("from placement.io.demand_tables import read_demand", question.counts),
        ("from placement.model.changed_instance import with_mix", question.shares),
        ("from placement.model.changed_instance import with_site", question.added),
        *((f"from placement import {name}", True) for name in sorted(rules)),
    )
    options = {"mix": origin.mix, "seed": origin.workload_seed or None}
    load = [repr(origin.instance), *(f"{k}={v!r}" for k, v in options.items() if v is not None)]
    solve = ["problem"] + (
        [] if question.asked.method == "exact" else [repr(question.asked.method)]
    )
    if question.asked.time_limit is not None:
        solve.append(f"time_limit={question.asked.time_limit!r}")
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
