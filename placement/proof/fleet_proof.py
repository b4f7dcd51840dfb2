"""The proof of a bound on all plans of a fleet from prices of its limits, in exact integers.

For any prices π >= 0 no plan of a fleet is below

    Σ_d copies_d · least_d  −  Σ_i π_i · capacity_i,

with least_d a lower bound on objective plus price of any configuration of database d. The prices
are all that a certificate holds. One pass over the databases computes the rest again: a search
(:data:`CERTIFIERS`) gives a certificate of least_d for each database, and
:mod:`placement.proof.leader_proof` proves it without the search. The sums are rational numbers.

What is taken off. A certificate proves its bound up to a relative 1e-12
(:mod:`placement.proof.certificate_check`). The price of a replica is a sum of a few products of
doubles >= 0, within a relative 2^-48 of the true one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from placement.errors import CertificateError
from placement.feasibility.feasible_plans import violations
from placement.fleet.fleet_plan import FleetPlan, PricedQuestion, SharedRows, worst_value
from placement.fleet.fleet_problem import FleetMember, FleetProblem
from placement.proof.certificate_check import MALFORMED, check_mean
from placement.proof.no_plan_check import FORMAT as NO_PLAN
from placement.proof.no_plan_check import check_no_plan
from placement.support.checks import FloatArray
from placement.support.entry_points import Group
from placement.support.work import Work

Certify = Callable[[PricedQuestion], Mapping[str, Any]]

CERTIFIERS: Group[Certify] = Group(
    "placement.fleets",
    "certifier of databases of a fleet",
    lambda found: found if callable(found) else None,
    "a function of a PricedQuestion that returns a certificate",
)
"""Searches that prove the least objective plus price of a database."""

_LOST = Fraction(1, 10**12) + Fraction(1, 2**48)
"""Part of a least objective plus price that the proof leaves open; see the module."""

_TOLERANCE = Fraction(1, 10**9)
"""Part of a limit by which a load may be beyond it, as the evaluator of plans has it."""


@dataclass(frozen=True, eq=False)
class FleetProof:
    """Result of a pass over the databases of a fleet.

    No plan has a value below `bound`; None: some database has no configuration. A claim above it by
    no more than `rounding`, the sum of the parts that were taken off, is not refuted. No plan has a
    value above `worst`: a bound above it proves that there is no plan. `value` and `load`, of each
    shared limit, are those of the plan, exactly summed. Copies of `databases` are counted, and
    `operations` are those of all copies; `unplaced` have no configuration even alone, proven.
    """

    bound: Fraction | None
    rounding: Fraction
    worst: float
    value: Fraction
    load: tuple[Fraction, ...]
    names: tuple[str, ...]
    capacity: tuple[float, ...]
    databases: int
    operations: Fraction
    unplaced: tuple[str, ...]
    events: int
    bounds: int

    @property
    def overloads(self) -> tuple[str, ...]:
        """Shared limits that the plan breaks, in words."""
        return tuple(
            f"{name}: {float(load):.9g} of {limit:.9g}"
            for name, load, limit in zip(self.names, self.load, self.capacity, strict=True)
            if load > Fraction(limit) + _TOLERANCE * max(Fraction(limit), Fraction(1))
        )


def prove_fleet(
    parts: Iterable[FleetPlan | FleetProblem], prices: FloatArray, certify: Certify, work: int
) -> FleetProof:
    """Prove a bound on all plans of a fleet, and add up the use of the limits by its plan.

    Parts are some databases at a time, with the limits of the whole fleet; one is in memory at a
    time. Any prices >= 0, shape (rows,), of the shared limits give a valid bound. `certify` returns
    a certificate of the least objective plus price of a database; it is not trusted. `work` counts
    steps as :func:`placement.proof.certificate_check.check_certificate` does; LimitError beyond
    them. CertificateError for wrong prices, a configuration that breaks the rules of its database,
    or a certificate that does not hold.
    """
    given = np.asarray(prices, dtype=np.float64)
    if not (np.isfinite(given) & (given >= 0)).all():
        raise CertificateError("a price is negative or not finite")
    one_pass = _ProofPass(given, certify, Work(work))
    for part in parts:
        one_pass.add(part)
    return one_pass.result()


class _ProofPass:
    """Sums over the databases; :func:`prove_fleet` is its only user."""

    def __init__(self, prices: FloatArray, certify: Certify, work: Work) -> None:
        self.prices, self.certify, self.work = prices, certify, work
        self.names: tuple[str, ...] = ()
        self.capacity: tuple[float, ...] = ()
        self.load = [Fraction(0)] * len(prices)
        self.total = self.size = self.value = self.operations = Fraction(0)
        self.worst = 0.0
        self.unplaced: list[str] = []
        self.databases = self.events = self.bounds = 0

    def add(self, part: FleetPlan | FleetProblem) -> None:
        """Take some databases in."""
        fleet = part.fleet if isinstance(part, FleetPlan) else part
        rows = SharedRows(fleet)
        if len(rows.names) != len(self.prices):
            raise CertificateError(
                f"{len(self.prices)} prices instead of one for each of the {len(rows.names)} "
                "shared limits"
            )
        self.names, self.capacity = rows.names, tuple(rows.capacity.tolist())
        for member in fleet.members:
            self.bound(rows, member)
        self.databases += fleet.databases
        self.worst += worst_value(fleet)
        if isinstance(part, FleetPlan):
            self.count(part, rows)

    def bound(self, rows: SharedRows, member: FleetMember) -> None:
        """Prove the least objective plus price of a database."""
        self.operations += member.copies * Fraction(float(member.problem.demand.operations))
        question = PricedQuestion.of(rows, member, self.prices)
        least = None if question is None else self.least(member, question)
        if least is None:
            self.unplaced.append(member.name)
            return
        self.total += member.copies * (least - _LOST * abs(least))
        self.size += member.copies * abs(least)

    def least(self, member: FleetMember, question: PricedQuestion) -> Fraction | None:
        """Return the bound of a certificate that holds; None: there is no configuration."""
        certificate = self.certify(question)
        try:
            if certificate["format"] == NO_PLAN:
                check_no_plan(question.rules, member.problem.instance.sites, certificate)
                return None
            bound = float(certificate["bound"])
            _, events, bounds = check_mean(question, bound, certificate, self.work)
        except MALFORMED as error:
            flaw = f"{member.name}: malformed certificate: {error!r:.200}"
            raise CertificateError(flaw) from None
        except CertificateError as refusal:
            raise CertificateError(f"{member.name}: {refusal}") from None
        self.events, self.bounds = self.events + events, self.bounds + bounds
        return Fraction(bound)

    def count(self, plan: FleetPlan, rows: SharedRows) -> None:
        """Add up value and loads of configurations, and refuse those that break their rules."""
        for member, each in plan:
            broken = violations(member.problem, each.configuration)
            if broken:
                raise CertificateError(f"{member.name}: {'; '.join(broken)}")
            value = member.problem.objective.value(member.problem, each.configuration)
            if not math.isfinite(value):
                raise CertificateError(f"{member.name}: its objective is {value!r}")
            self.value += each.copies * Fraction(value)
            use = rows.use(member, each.configuration)
            for row in np.flatnonzero(use).tolist():
                self.load[row] += each.copies * Fraction(float(use[row]))

    def result(self) -> FleetProof:
        """Return the sums."""
        paid = sum(
            (Fraction(p) * Fraction(c) for p, c in zip(self.prices.tolist(), self.capacity,
                                                       strict=True)),
            Fraction(0),
        )  # fmt: skip
        return FleetProof(
            bound=None if self.unplaced else self.total - paid,
            rounding=3 * _LOST * (self.size + paid),
            worst=self.worst,
            value=self.value,
            load=tuple(self.load),
            names=self.names,
            capacity=self.capacity,
            databases=self.databases,
            operations=self.operations,
            unplaced=tuple(self.unplaced),
            events=self.events,
            bounds=self.bounds,
        )
