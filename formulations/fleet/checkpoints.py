"""Checkpoints of a search for a plan of a fleet: the answers of pricing, batch by batch.

A search depends only on its question and settings: the master, the smoothing and the rounding give
the same in every run. Pricing takes the time. The checkpoint therefore holds the answers of
pricing, and a restarted search reads them instead of pricing. It takes the same way, and ends with
the same plan to the last bit.

==============================  ====================================================================
``search.json``                 the question and settings, as a digest, and versions
``pass-0007-00250.json``        answers from database 250 on, of the pass at the prices of a digest
``pass-0007.json``              the prices of a pass, one row or one for each batch, written when
                                all of its answers are there
``sample/``                     the same of the sample that gives the first prices
==============================  ====================================================================

Every file is written whole or not at all: a search that is killed leaves those that it completed.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from formulations.fleet.price_member import PricedMember
from placement.errors import InputError
from placement.fleet.fleet_problem import SITE_LIMITS, FleetProblem
from placement.io.formats.files import check_folder, write_file
from placement.io.problem_document import problem_document
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray

__all__ = ["Checkpoint", "fleet_digest"]

_FORMAT = "fleet-search/1"
_HEAD = "search.json"


class Checkpoint:
    """Folder with the answers of pricing of one search.

    Parameters
    ----------
    folder
        Where; made when it is not there.
    fleet
        The question.
    settings
        What else the answers depend on, as JSON values.

    Raises
    ------
    InputError
        When the folder holds another search, or something else.
    """

    def __init__(
        self, folder: str | os.PathLike[str], fleet: FleetProblem, settings: dict[str, object]
    ) -> None:
        self._folder = Path(folder)
        self._settings = settings
        head = {
            "format": _FORMAT,
            "fleet": fleet_digest(fleet),
            **settings,
            "replica-placement": version("replica-placement"),
            "highspy": version("highspy"),
        }
        if self._folder.is_dir():
            for unfinished in self._folder.glob(".*.tmp"):  # of a search that was killed
                unfinished.unlink(missing_ok=True)
        if (self._folder / _HEAD).exists():
            self._compare(head)
            return
        check_folder(self._folder)
        self._folder.mkdir(exist_ok=True)
        self._write(_HEAD, head)

    def _compare(self, head: dict[str, object]) -> None:
        path = self._folder / _HEAD
        found = self._read(path)
        for field, value in head.items():
            if found.get(field) != value:
                what = "another fleet" if field == "fleet" else "another search"
                raise InputError(
                    f"the checkpoint is of {what}",
                    source=os.fspath(path),
                    field=field,
                    value=found.get(field),
                    expected=f"{value}, or a new folder",
                )

    def of_sample(self, fleet: FleetProblem) -> Checkpoint:
        """Return the checkpoint of the search for first prices."""
        return Checkpoint(self._folder / "sample", fleet, self._settings)

    def load(self, number: int, first: int, last: int, prices: FloatArray) -> list[PricedMember]:
        """Return the answers for some databases of a pass; none: they are not there.

        Parameters
        ----------
        number
            Of the pass.
        first, last
            Numbers of the first database and of the one behind the last.
        prices
            Of the pass: answers at other prices are not used.
        """
        path = self._folder / _batch_name(number, first)
        if not path.exists():
            return []
        found = self._read(path)
        if found.get("prices") != _digest(prices):
            return []
        try:
            answers = [_answer(*each) for each in found["priced"]]
        except (KeyError, TypeError, ValueError) as error:
            raise _broken(path, error) from None
        return answers if len(answers) == last - first else []

    def save(
        self, number: int, first: int, prices: FloatArray, priced: Sequence[PricedMember]
    ) -> None:
        """Keep the answers for databases from `first` on."""
        answers = [_written(each) for each in priced]
        self._write(_batch_name(number, first), {"prices": _digest(prices), "priced": answers})

    def finish(self, number: int, prices: FloatArray) -> None:
        """Keep the prices of a pass all of whose answers are kept."""
        name = f"pass-{number:04}.json"
        if not (self._folder / name).exists():
            rows = np.atleast_2d(prices).tolist()  # one, or one for each batch
            self._write(name, {"prices": [[each.hex() for each in row] for row in rows]})

    def _write(self, name: str, document: dict[str, object]) -> None:
        write_file(self._folder / name, json.dumps(document).encode(), force=True)

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            found = json.loads(path.read_bytes())
        except ValueError as error:
            raise _broken(path, error) from None
        if not isinstance(found, dict):
            raise _broken(path, TypeError("no object"))
        return found


def _broken(path: Path, error: Exception) -> InputError:
    return InputError(
        f"not a file of a checkpoint ({error})",
        source=os.fspath(path),
        expected="a file that placement fleet wrote, or a new folder",
    )


def _batch_name(number: int, first: int) -> str:
    return f"pass-{number:04}-{first:07}.json"


def _written(each: PricedMember) -> list[object]:
    found = each.configuration
    return [None if found is None else _sites(found), each.least.hex()]


def _answer(chosen: Sequence[object] | None, least: str) -> PricedMember:
    found = None if chosen is None else Configuration.of(*chosen)  # type: ignore[arg-type]
    return PricedMember(found, float.fromhex(least))


def _digest(prices: FloatArray) -> str:
    return hashlib.sha256(np.ascontiguousarray(prices, dtype="<f8").tobytes()).hexdigest()


def fleet_digest(fleet: FleetProblem) -> str:
    """Return the SHA-256 (hex) of a question: databases, what they ask, and shared limits."""
    digest = hashlib.sha256()

    def add(*values: object) -> None:
        digest.update(json.dumps(values, sort_keys=True).encode())

    limits = fleet.limits
    for field in SITE_LIMITS:
        given = getattr(limits, field)
        add(field, None if given is None else [each.hex() for each in given.tolist()])
    add(limits.most_moves, limits.most_moved_gb, limits.apart, limits.headroom)
    for member in fleet.members:
        own = (member.storage_gb, member.written_gb, member.leader_load)
        add(member.name, member.copies, [float(each).hex() for each in own])
        add(None if member.present is None else _sites(member.present))
        add(member.problem.instance.fingerprint, problem_document(member.problem))
    return digest.hexdigest()


def _sites(chosen: Configuration) -> list[object]:
    return [chosen.leader, chosen.voters, chosen.replicas]
