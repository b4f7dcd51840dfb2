"""Files of plans of fleets that hold their question: JSON, and Parquet read in batches.

Each row is a database in one configuration, with the numbers of its question: what it stores and
writes, what runs today, its demand. The file also has what all rows share: the instance, the
constraints, the limits with their prices, the bound. A reader needs no other file.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from placement.errors import CertificateError, InputError, located, refused, require
from placement.fleet.fleet_plan import FleetPlan, Placed
from placement.fleet.fleet_problem import SITE_LIMITS, FleetMember, FleetProblem, SharedLimits
from placement.fleet.fleet_tables import read_whole_document
from placement.io.formats.document import Document, finite
from placement.io.formats.tables import parquet_rows
from placement.io.instance_folder import instance_document, instance_from_document, prices_embedded
from placement.io.problem_document import problem_document, problem_from
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.problem import Problem
from placement.proof.fleet_proof import CERTIFIERS, FleetProof, prove_fleet
from placement.support.status import Status
from placement.support.work import WORK

if TYPE_CHECKING:
    import pandas as pd

_BATCH = 1000
"""Databases that are in memory at a time."""


def question_document(fleet: FleetProblem) -> dict[str, object]:
    """Return the shared question of the databases of a fleet, as JSON values.

    Instances of two databases that differ in more than their counts are refused.
    """
    first = fleet.members[0].problem.instance
    for member in fleet.members[1:]:
        own = member.problem.instance
        words = "a file holds one instance for all databases"
        expected = "clients, operations, RTTs and prices of the other databases"
        require(_alike(own, first), f"{member.name}: instance", words, own.name, expected)
    limits = fleet.limits
    sites = {field: getattr(limits, field) for field in SITE_LIMITS}  # null: no limit
    return {
        "instance": instance_document(first),
        "constraints": [json.loads(each) for each in _constraints(fleet)],
        "limits": {
            **{
                field: None if given is None else [finite(x) for x in np.asarray(given).tolist()]
                for field, given in sites.items()
            },
            "most_moves": limits.most_moves,
            "most_moved_gb": limits.most_moved_gb,
            "apart": [list(group) for group in limits.apart],
            "headroom": limits.headroom,
        },
    }


def _alike(one: Instance, other: Instance) -> bool:
    """Return whether two instances have everything but counts in common."""
    prices = [
        None if each.prices is None else prices_embedded(each.prices) for each in (one, other)
    ]
    return (
        one.clients == other.clients
        and one.operations == other.operations
        and one.intervals == other.intervals
        and one.domains == other.domains
        and prices[0] == prices[1]
        and (one.client_rtt is other.client_rtt or np.array_equal(one.client_rtt, other.client_rtt))
        and (one.site_rtt is other.site_rtt or np.array_equal(one.site_rtt, other.site_rtt))
    )


def _constraint(problem: Problem) -> str:
    return json.dumps(problem_document(problem), sort_keys=True)


def _constraints(fleet: FleetProblem) -> dict[str, int]:
    """Return the different constraints of the databases, and the number of each."""
    found: dict[str, int] = {}
    for member in fleet.members:
        found.setdefault(_constraint(member.problem), len(found))
    return found


def with_question(document: Mapping[str, object], fleet: FleetProblem) -> dict[str, object]:
    """Return the document of a plan, or of none, with its question: the file needs no other.

    The document is that of :mod:`placement.fleet.fleet_tables`; each of its rows gets the cells of
    its database. Instances of two databases that differ in more than their counts are refused.
    """
    number, sites = _constraints(fleet), fleet.sites
    cells: dict[str, dict[str, object]] = {}
    for member in fleet.members:
        here = member.present
        cells[member.name] = {
            "storage_gb": float(member.storage_gb),
            "written_gb": float(member.written_gb),
            "leader_operations": (
                None if member.leader_operations is None else float(member.leader_operations)
            ),
            "present_leader": None if here is None else sites[here.leader],
            "present_voters": None if here is None else [sites[site] for site in here.voters],
            "present_replicas": None if here is None else [sites[site] for site in here.replicas],
            "constraints": number[_constraint(member.problem)],
            "counts": member.problem.instance.counts.ravel().tolist(),
        }
    plans = document["plans"]
    assert isinstance(plans, list)
    return {
        **document,
        "question": question_document(fleet),
        "plans": [{**row, **cells[row["database"]]} for row in plans],
    }


def wide_frame(frame: pd.DataFrame, document: Mapping[str, object]) -> pd.DataFrame:
    """Return a table of plans with the cells of :func:`with_question`, row by row, for Parquet."""
    plans = document["plans"]
    assert isinstance(plans, list)
    return frame.assign(**{key: [row[key] for row in plans] for key in _QUESTION})


class FleetFile:
    """A file of a plan of a fleet: its path, and the document that it holds beside its rows.

    `about` is the document, to be read by key; `limits` are what the databases share.
    """

    def __init__(self, path: str | os.PathLike[str], document: Mapping[str, Any]) -> None:
        self.source = os.fspath(path)
        self.about = Document(self.source, "", document)
        question = self.about.table("question")
        words = "the file does not hold its question"
        expected = "a file that placement fleet wrote with -o"
        require(question.values, "question", words, expected=expected, source=self.source)
        self._instance = instance_from_document(question.table("instance"))
        self._problems = [problem_from(each, self._instance) for each in
                          question.tables("constraints")]  # fmt: skip
        self._site = {name: number for number, name in enumerate(self._instance.sites)}
        self.limits = self._read_limits(question.table("limits"))

    @property
    def status(self) -> Status:
        """FEASIBLE with a plan; INFEASIBLE: there is none; UNKNOWN: none was found."""
        status = self.about.text("status", "feasible")
        if status not in (Status.FEASIBLE, Status.INFEASIBLE, Status.UNKNOWN):
            raise self.about.refuse("status", "unknown", "'feasible', 'infeasible' or 'unknown'")
        return Status(status)

    def _read_limits(self, given: Document) -> SharedLimits:
        given_sites = [field for field in SITE_LIMITS if given.has(field)]
        sites: dict[str, Any] = {field: given.array(field) for field in given_sites}
        for field, numbers in sites.items():
            if numbers.shape != (len(self._site),):
                raise given.refuse(field, "not a limit for each site", "a number or null per site")
            numbers[np.isnan(numbers)] = math.inf
        if given.values.get("reads_served"):  # of older files
            raise given.refuse("reads_served", "this limit is gone", "a new plan of the fleet")
        groups = given.values.get("apart") or []
        if not isinstance(groups, list) or not all(isinstance(each, list) for each in groups):
            raise given.refuse("apart", "not groups of names", "lists of names")
        with located(f"{self.source}, question.limits"):
            return SharedLimits(
                **sites,
                **given.fields(SharedLimits, ("most_moves", "most_moved_gb")),
                apart=groups,
                # older files have a truth value: True was a promise for the loss of any one site
                headroom=given.number("headroom") if given.values.get("headroom") else 0.0,
            )

    def parts(self) -> Iterator[FleetPlan | FleetProblem]:
        """Yield the databases, some at a time, with the limits of all.

        Those of a file without a plan come without configurations. Groups that must not share a
        site have the databases of the part alone. Errors name file, row and field.
        """
        seen: set[str] = set()
        grouped = itertools.groupby(self._rows(), key=lambda row: row.text("database"))
        databases = (self._database(name, list(rows), seen) for name, rows in grouped)
        while batch := list(itertools.islice(databases, _BATCH)):
            members = [member for member, _ in batch]
            here = {member.name for member in members}
            apart = [[name for name in group if name in here] for group in self.limits.apart]
            limits = dataclasses.replace(self.limits, apart=apart)
            fleet = FleetProblem(members, limits)
            planned = self.status is Status.FEASIBLE
            yield FleetPlan(fleet, [placed for _, placed in batch]) if planned else fleet
        unknown = [name for group in self.limits.apart for name in group if name not in seen]
        if unknown:
            field, expected = "question.limits.apart", "a database of the file"
            raise refused(self.source, field, "unknown database", unknown[0], expected)
        require(seen, "plans", "no databases", None, "at least one", source=self.source)

    def _rows(self) -> Iterator[Document]:
        given = self.about.values.get("plans")
        if given is not None and not isinstance(given, list):
            raise self.about.refuse("plans", "not a list", "a row for each database")
        rows: Iterable[object] = parquet_rows(self.source, _BATCH) if given is None else given
        for number, row in enumerate(rows, 1):
            if not isinstance(row, dict):
                raise InputError("not a row", source=f"{self.source}, plan {number}")
            yield Document(f"{self.source}, plan {number}", "", row)

    def _database(
        self, name: str, rows: list[Document], seen: set[str]
    ) -> tuple[FleetMember, tuple[Placed, ...]]:
        first = rows[0]
        if name in seen:
            raise first.refuse("database", "database given twice", "its rows one after another")
        seen.add(name)
        copies = [row.whole("copies") for row in rows]
        if min(copies) < 1:
            raise rows[copies.index(min(copies))].refuse("copies", "too few", "at least 1")
        for row in rows[1:]:
            if {key: row.values.get(key) for key in _QUESTION} != {
                key: first.values.get(key) for key in _QUESTION
            }:
                raise row.refuse("database", "two questions of one database", "the same in each")
        present = None
        if first.has("present_leader"):
            present = self._configuration(first, "present_")
        with located(first.source):
            member = FleetMember(
                name,
                self._problem(first),
                storage_gb=first.number("storage_gb"),
                written_gb=first.number("written_gb"),
                **first.fields(FleetMember, ("leader_operations",)),
                present=present,
                copies=sum(copies),
            )
        if self.status is not Status.FEASIBLE:
            return member, ()
        chosen = (self._configuration(row, "") for row in rows)
        return member, tuple(map(Placed, chosen, copies))

    def _problem(self, row: Document) -> Problem:
        which = row.whole("constraints")
        if not 0 <= which < len(self._problems):
            raise row.refuse("constraints", "unknown", f"0 to {len(self._problems) - 1}")
        shape = self._instance.counts.shape
        counts = row.array("counts")
        if counts.shape != (math.prod(shape),):
            raise row.refuse("counts", "wrong number of counts", f"{math.prod(shape)} numbers")
        table = self._instance.replace(counts=counts.reshape(shape))
        return self._problems[which].replace(instance=table)

    def _configuration(self, row: Document, which: str) -> Configuration:
        def number(name: str, key: str) -> int:
            row.need(name in self._site, key, "unknown site", "a site of the instance")
            return self._site[name]

        key = f"{which}leader"
        voters, replicas = (
            [number(name, f"{which}{part}") for name in row.names(f"{which}{part}")]
            for part in ("voters", "replicas")
        )
        with located(row.source):
            return Configuration.of(number(row.text(key), key), voters, replicas)


_QUESTION = (
    "storage_gb",
    "written_gb",
    "leader_operations",
    "present_leader",
    "present_voters",
    "present_replicas",
    "constraints",
    "counts",
)
"""Keys of a row that say the question of its database."""


def read_fleet_file(path: str | os.PathLike[str]) -> FleetFile:
    """Read the document of a fleet file, without its rows."""
    return FleetFile(path, read_whole_document(path))


# The check of a file of a fleet: its bound is proven again, its numbers are computed again

_AGREE = 1e-9
"""Largest relative difference of a number of the file and the one computed again."""


@dataclass(frozen=True, eq=False)
class FleetCheck:
    """Proven statements about a file."""

    #: no plan of the fleet has a smaller value, ms·operations; +∞: there is no plan. −∞: the file
    #: proves nothing.
    bound: float
    #: of the plan in the file; NaN: the file says that there is none, or that none was found
    value: float
    databases: int  #: copies counted
    rows: int  #: shared limits
    events: int  #: steps of the certificates of single databases
    bounds: int  #: bounds computed again
    unplaced: tuple[str, ...] = ()  #: databases that have no configuration even alone
    #: bound of an integer program over all configurations, as the file has it, not proven again
    whole_bound: float = -math.inf

    @property
    def gap(self) -> float:
        """(value − bound) / value, at least 0."""
        return max(0.0, (self.value - self.bound) / self.value) if self.value else 0.0


def check_fleet_file(path: str | os.PathLike[str], *, work: int = WORK) -> FleetCheck:
    """Prove the bound in a file of ``placement fleet`` again, and every limit of its plan.

    Parquet is read in batches. `work` is the most steps to take, as
    :func:`placement.check_certificate` counts them: one call of the exact search, and a replay of
    its certificate, for each database. A file or a number of it that is not what is computed again
    is an InputError; a bound that is not proven, or a plan that breaks a rule or a limit, a
    CertificateError; more steps than `work` a LimitError.
    """
    file = read_fleet_file(path)
    limits = file.about.tables("limits")
    names = [row.text("name") for row in limits]
    prices = np.array([row.number("price") for row in limits])
    certify = CERTIFIERS.load("exact")
    proof = prove_fleet(file.parts(), prices, certify, work)
    words = "the limits of the file are not those of its question"
    expected = f"the {len(proof.names)} limits of the question"
    require(list(proof.names) == names, "limits", words, len(names), expected, source=file.source)
    _agree(file.about, "databases", proof.databases)
    bound = None if proof.bound is None else float(proof.bound)
    if bound is not None and proof.bound is not None and Fraction(bound) > proof.bound:
        bound = math.nextafter(bound, -math.inf)  # rounded down
    nothing = (proof.databases, len(names), proof.events, proof.bounds)
    if file.status is Status.UNKNOWN:
        if not file.about.has("bound"):
            return FleetCheck(-math.inf, math.nan, *nothing)
        return FleetCheck(_proven(file.about, proof, bound), math.nan, *nothing)
    if file.status is Status.INFEASIBLE:
        if bound is not None and not bound > proof.worst:
            raise CertificateError(
                f"the prices prove {bound:.9g} ms·operations, which a plan may have: none is above "
                f"{proof.worst:.9g}"
            )
        return FleetCheck(math.inf, math.nan, *nothing, proof.unplaced)
    whole_bound, value = _check_plan(file.about, proof), float(proof.value)
    proven = min(_proven(file.about, proof, bound), value)
    return FleetCheck(proven, value, *nothing, whole_bound=whole_bound)


def _proven(about: Document, proof: FleetProof, bound: float | None) -> float:
    """Return the bound that the prices prove, which the file does not exceed."""
    if bound is None:
        raise CertificateError(f"{proof.unplaced[0]}: it has no configuration, even alone")
    claimed = about.number("bound")
    if Fraction(claimed) > Fraction(bound) + proof.rounding:
        raise CertificateError(
            f"the prices prove {bound:.12g} ms·operations, and the file says {claimed:.12g}"
        )
    return bound


def _check_plan(about: Document, proof: FleetProof) -> float:
    """Compare the plan in the file with recomputed values; return its bound without a proof."""
    if proof.overloads:
        raise CertificateError("the plan breaks " + "; ".join(proof.overloads))
    value = float(proof.value)
    _agree(about, "value", value)
    _agree(about, "mean_latency_ms", float(proof.value / proof.operations))
    told = about.values.get("whole_bound")
    whole_bound = -math.inf if told is None else about.number("whole_bound")
    if whole_bound > value * (1 + _AGREE):
        raise CertificateError(f"a bound of {whole_bound:.12g} is above the plan, {value:.12g}")
    bound = max(about.number("bound"), whole_bound)
    _agree(about, "gap", max(0.0, 1.0 - bound / value) if value else 0.0)
    for row, limit, load in zip(about.tables("limits"), proof.capacity, proof.load, strict=True):
        _agree(row, "limit", limit)
        _agree(row, "load", float(load))
    return whole_bound


def _agree(about: Document, key: str, computed: float) -> None:
    given = about.number(key)
    if not abs(given - computed) <= _AGREE * max(abs(computed), 1.0):
        raise about.refuse(key, "not the number of this plan", repr(computed))
