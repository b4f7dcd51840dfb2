"""Cells: one question put to one method, or one script to run, each with its limits."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, TypeAlias

from benchmarks.harness.suite_worlds import InstanceRecipe
from placement import Instance, Problem
from placement.errors import UnsupportedError
from placement.evaluation.objective import MEAN_LATENCY

__all__ = [
    "Cell",
    "CellLimits",
    "LossRule",
    "ScriptCell",
    "SolveCell",
    "cell_from_json",
    "problem_of",
]


class LossRule(StrEnum):
    """Losses that a plan must withstand."""

    NONE = "none"
    """Nothing beside the quorum itself."""
    REGION = "region-diverse"
    """The loss of any one domain of the lowest level above the site."""
    CONTINENT = "continent-diverse"
    """The loss of any one continent."""
    N_1 = "N-1"
    """The objective is the worst mean latency after the loss of any one site."""


@dataclass(frozen=True, slots=True)
class CellLimits:
    """Resources that a cell may use.

    Attributes
    ----------
    time
        Seconds that a method is told to stop after; None: it is not told.
    wall
        Seconds after which the process is killed.
    memory
        MiB of address space of the process.
    threads
        Threads a method may use.
    repeats
        Times a quick method is run again, as long as that takes less than `again` seconds.
    again
        Seconds for repeats.
    """

    time: float | None = 60.0
    wall: float = 120.0
    memory: int = 4096
    threads: int = 1
    repeats: int = 5
    again: float = 1.0


@dataclass(frozen=True, slots=True)
class SolveCell:
    """A question for a method."""

    world: InstanceRecipe
    replicas: int
    voters: int
    failures: LossRule
    method: str
    seed: int
    limits: CellLimits = CellLimits()
    settings: Mapping[str, object] = field(default_factory=dict)

    @property
    def group(self) -> str:
        """The question, without the method."""
        return (
            f"{self.world.label} · |R|={self.replicas} |V|={self.voters} · {self.failures} · "
            f"seed {self.seed}"
        )

    @property
    def label(self) -> str:
        """The question and the method."""
        return f"{self.group} · {self.method}"

    @property
    def key(self) -> str:
        """Digest of all that can change the outcome."""
        return _digest(self.to_json())

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        return {
            "kind": "solve",
            "world": self.world.to_json(),
            "replicas": self.replicas,
            "voters": self.voters,
            "failures": self.failures.value,
            "method": self.method,
            "seed": self.seed,
            "limits": dataclasses.asdict(self.limits),
            "settings": dict(self.settings),
        }


@dataclass(frozen=True, slots=True)
class ScriptCell:
    """A benchmark that is a separate program: a module and its arguments."""

    module: str
    arguments: tuple[str, ...] = ()
    limits: CellLimits = CellLimits(time=None, wall=3600.0)

    @property
    def group(self) -> str:
        """The command line."""
        return " ".join((self.module, *self.arguments))

    @property
    def label(self) -> str:
        """The command line."""
        return self.group

    @property
    def method(self) -> str:
        """The module."""
        return self.module

    @property
    def key(self) -> str:
        """Digest of all that can change the outcome."""
        return _digest(self.to_json())

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        return {
            "kind": "script",
            "module": self.module,
            "arguments": list(self.arguments),
            "limits": dataclasses.asdict(self.limits),
        }


Cell: TypeAlias = SolveCell | ScriptCell


def cell_from_json(data: Mapping[str, Any]) -> Cell:
    """Undo ``to_json`` of either kind."""
    limits = CellLimits(**data["limits"])
    if data["kind"] == "script":
        return ScriptCell(data["module"], tuple(data["arguments"]), limits)
    return SolveCell(
        world=InstanceRecipe.from_json(data["world"]),
        replicas=data["replicas"],
        voters=data["voters"],
        failures=LossRule(data["failures"]),
        method=data["method"],
        seed=data["seed"],
        limits=limits,
        settings=data["settings"],
    )


def problem_of(cell: SolveCell, instance: Instance) -> Problem:
    """Put the cell's question to its instance.

    Raises
    ------
    UnsupportedError
        When the instance lacks the failure domains that the question is about.
    InputError
        When the question contradicts itself (more replicas than sites).
    """
    survive: str | None = None
    objective = MEAN_LATENCY
    if cell.failures is LossRule.N_1:
        from placement.contingency.objective import Contingency

        objective = Contingency()  # type: ignore[assignment]  # another Objective
    elif cell.failures is LossRule.REGION:
        survive = lowest_level(instance)
    elif cell.failures is LossRule.CONTINENT:
        survive = "continent"
    if survive is not None and survive not in instance.domains:
        raise UnsupportedError(f"{instance.name!r} has no failure domains of the level {survive!r}")
    return Problem(
        instance,
        replicas=cell.replicas,
        voters=cell.voters,
        survive=survive,
        objective=objective,
    )


def lowest_level(instance: Instance) -> str:
    """Return the failure-domain level just above the site: the one of most domains.

    Raises
    ------
    UnsupportedError
        When the instance knows no level but the site.
    """
    if not instance.domains:
        raise UnsupportedError(f"{instance.name!r} has no failure domains above the site")
    return max(instance.domains, key=lambda level: len({*instance.domains[level]} - {None}))


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:20]
