"""The check of a file of a fleet: its bound is proven again, its numbers are computed again."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from placement.errors import CertificateError, InputError
from placement.io.fleet_plan_file import FleetFile, read_fleet_file
from placement.io.formats.document import Document
from placement.proof.fleet_proof import CERTIFIERS, FleetProof, prove_fleet
from placement.support.checks import FloatArray
from placement.support.status import Status
from placement.support.work import WORK

__all__ = ["FleetCheck", "check_fleet_file"]

_AGREE = 1e-9
"""Largest relative difference of a number of the file and the one computed again."""


@dataclass(frozen=True, eq=False)
class FleetCheck:
    """Proven statements about a file.

    Attributes
    ----------
    bound
        No plan of the fleet has a smaller value, ms·operations; +∞: there is no plan. −∞: the file
        proves nothing.
    value
        Of the plan in the file; NaN: the file says that there is none, or that none was found.
    databases
        Copies counted.
    rows
        Shared limits.
    events, bounds
        Steps of the certificates of single databases, and bounds computed again.
    unplaced
        Databases that have no configuration even alone.
    """

    bound: float
    value: float
    databases: int
    rows: int
    events: int
    bounds: int
    unplaced: tuple[str, ...] = ()

    @property
    def gap(self) -> float:
        """(value − bound) / value, at least 0."""
        return max(0.0, (self.value - self.bound) / self.value) if self.value else 0.0


def check_fleet_file(path: str | os.PathLike[str], *, work: int = WORK) -> FleetCheck:
    """Prove the bound in a file of ``placement fleet`` again, and every limit of its plan.

    Parameters
    ----------
    path
        JSON or Parquet, as the verb wrote it with ``-o``. Parquet is read in batches.
    work
        Most steps to take, as :func:`placement.check_certificate` counts them.

    Raises
    ------
    InputError
        For a file that holds something else, and where a number of it is not the one computed
        again.
    CertificateError
        When the bound is not proven, or the plan breaks a rule or a limit.
    LimitError
        When the proof takes more than `work` steps.

    Notes
    -----
    One call of the exact search, and a replay of its certificate, for each database.
    """
    file = read_fleet_file(path)
    names, prices = _prices(file)
    certify = CERTIFIERS.load("exact")
    proof = prove_fleet(file.parts(), prices, certify, work)
    if list(proof.names) != names:
        raise InputError(
            "the limits of the file are not those of its question",
            source=file.source,
            field="limits",
            value=len(names),
            expected=f"the {len(proof.names)} limits of the question",
        )
    _agree(file.about, "databases", proof.databases)
    bound = None if proof.bound is None else _rounded_down(proof.bound)
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
    _check_plan(file.about, proof)
    value = float(proof.value)
    return FleetCheck(min(_proven(file.about, proof, bound), value), value, *nothing)


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


def _prices(file: FleetFile) -> tuple[list[str], FloatArray]:
    rows = file.about.tables("limits")
    return [row.text("name") for row in rows], np.array([row.number("price") for row in rows])


def _check_plan(about: Document, proof: FleetProof) -> None:
    """Compare the plan in the file with recomputed values."""
    if proof.overloads:
        raise CertificateError("the plan breaks " + "; ".join(proof.overloads))
    value = float(proof.value)
    _agree(about, "value", value)
    _agree(about, "mean_latency_ms", float(proof.value / proof.operations))
    _agree(about, "gap", max(0.0, 1.0 - about.number("bound") / value) if value else 0.0)
    for row, limit, load in zip(about.tables("limits"), proof.capacity, proof.load, strict=True):
        _agree(row, "limit", limit)
        _agree(row, "load", float(load))


def _agree(about: Document, key: str, computed: float) -> None:
    given = about.number(key)
    if not abs(given - computed) <= _AGREE * max(abs(computed), 1.0):
        raise about.refuse(key, "not the number of this plan", repr(computed))


def _rounded_down(value: Fraction) -> float:
    found = float(value)
    return found if Fraction(found) <= value else math.nextafter(found, -math.inf)
