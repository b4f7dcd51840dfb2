"""Question of the browser: changes of the instance, and a problem on it.

The document has the keys

    problem      question of a plan file (:mod:`placement.io.problem_document`), without objective
    interval     label of one interval, whose demand counts alone; absent: all intervals
    mix          operation -> share (:func:`placement.model.changed_instance.with_mix`)
    demand       client -> factor (:func:`placement.scale_demand`)
    sites        list of {name, lat, lon}: added sites
    percentile   percentile to minimise in place of the mean
    spread       relative standard deviation of RTTs, for percentiles; absent: 0.2
    lost         sites that are lost while the plan runs
    time_limit   seconds; the server has a limit of its own
    method       name of the method; absent: ``exact``
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from placement.errors import InputError
from placement.io.formats.document import Document
from placement.io.problem_document import problem_from
from placement.model.changed_instance import scale_demand, with_mix, with_site
from placement.model.instance import Instance
from placement.problem import Problem
from placement.support.checks import number
from placement.tail.objective import Percentile
from placement.tail.rtt_spread import percentile_of_spread

__all__ = ["DEFAULT_SPREAD", "MOST_ADDED", "MOST_SPREAD", "AddedSite", "Question", "read_question"]

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
        if self.percentile is None:
            return problem
        return problem.replace(objective=self.tail(self.percentile))

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
        number(document.number("spread", DEFAULT_SPREAD), "spread", maximum=MOST_SPREAD),
        document.names("lost", ()),
        limit,
        document.text("method", "exact"),
    )


def _numbers(table: Document) -> dict[str, float]:
    return {key: table.number(key) for key in table.values}
