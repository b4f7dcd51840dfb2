"""Cells: one question put to one method, with its limits."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

import numpy as np

from placement import Instance, Problem, datasets
from placement.errors import InputError, UnsupportedError
from placement.evaluation.objective import MEAN_LATENCY, MeanLatency
from placement.model.changed_instance import at_sites
from placement.model.operations import STANDARD_OPERATIONS, WEAK_READ
from placement.workloads import MIXES, sample_mix

# --- instances, as data: what is loaded, drawn or cut, and from which seed ----------------------

DRAWN = "drawn"
"""Source of instances with any number of sites, drawn around the bundled cities."""

_SIGMA = 1.2
_OPERATIONS = 1e6
_SPREAD_DEGREES = 2.0


@dataclass(frozen=True, slots=True)
class InstanceRecipe:
    """An instance that can be built again anywhere from its few words.

    The source is a bundled data set, the path of an instance, or :data:`DRAWN`. Without a mix a
    data set has its own, and a drawn instance ``social``. `sites` of a data set are a seeded
    choice. The demand "reads" makes a p-median problem: every operation becomes a weak read.
    """

    source: str
    mix: str | None = None
    sites: int | None = None
    clients: int | None = None
    demand: Literal["all", "reads"] = "all"

    @property
    def label(self) -> str:
        """A few words; different instances have different ones."""
        size = "" if self.sites is None else f" {self.sites}"
        size += "" if self.clients is None else f"×{self.clients}"
        mix = "" if self.mix is None else f" {self.mix}"
        return f"{self.source}{size}{mix}" + (" reads only" if self.demand == "reads" else "")

    def build(self, seed: int) -> Instance:
        """Build the instance; the seed draws the demand, and what else is drawn."""
        if self.source == DRAWN:
            instance = self._draw(seed)
        elif self.source in datasets.names():
            instance = datasets.load(self.source, mix=self.mix, seed=seed)
        else:
            from placement import load

            instance = load(Path(self.source))
        if self.sites is not None and self.sites < len(instance.sites):
            instance = _keep(instance, self.sites, seed)
        return _reads_only(instance) if self.demand == "reads" else instance

    def _draw(self, seed: int) -> Instance:
        """Sites and clients near the bundled cities, RTTs modelled from distance.

        A place is a city, drawn in proportion to its people online, moved by a normal step of
        2 degrees; demand per client is log-normal (sigma 1.2), its mix drawn around the named one.
        """
        from placement.datasets.distance_rtt import modelled_rtt

        if self.sites is None or self.clients is None:
            raise InputError(
                "a generated instance needs its size", field="sites", expected="sites and clients"
            )
        mix = "social" if self.mix is None else self.mix
        rng = np.random.default_rng([seed, self.sites, self.clients, sorted(MIXES).index(mix)])
        cities = datasets.cities()
        weight = np.array([city.users for city in cities])
        drawn = rng.choice(len(cities), size=self.sites + self.clients, p=weight / weight.sum())
        places = np.array([(cities[i].lat, cities[i].lon) for i in drawn])
        places += _SPREAD_DEGREES * rng.standard_normal(places.shape)
        places[:, 0] = np.clip(places[:, 0], -60.0, 75.0)
        places[:, 1] = (places[:, 1] + 180.0) % 360.0 - 180.0
        at, around = places[: self.sites], places[self.sites :]
        client_rtt, site_rtt = modelled_rtt(at, around, rng)
        demand = np.exp(_SIGMA * rng.standard_normal(self.clients))
        shares = np.array([sample_mix(mix, rng) for _ in range(self.clients)])
        chosen = drawn[: self.sites]
        return Instance(
            sites=tuple(f"site {i + 1} near {cities[c].city}" for i, c in enumerate(chosen)),
            clients=tuple(f"client {i + 1}" for i in range(self.clients)),
            client_rtt=client_rtt,
            site_rtt=site_rtt,
            counts=np.round(_OPERATIONS * (demand / demand.sum())[:, np.newaxis] * shares),
            operations=STANDARD_OPERATIONS,
            domains={
                "country": tuple(cities[c].country for c in chosen),
                "continent": tuple(cities[c].continent for c in chosen),
            },
            site_coordinates=at,
            client_coordinates=around,
            name=f"{self.label}, seed {seed}",
            provenance=("Drawn around the bundled cities; RTTs are modelled from distance.",),
        )


def _keep(instance: Instance, count: int, seed: int) -> Instance:
    """Keep a seeded choice of the sites, in their order, and all clients."""
    rng = np.random.default_rng([seed, count])
    keep = np.sort(rng.permutation(len(instance.sites))[:count])
    return at_sites(instance.replace(prices=None), keep).replace(
        name=f"{count} sites of {instance.name}"
    )


def _reads_only(instance: Instance) -> Instance:
    """Turn every operation into a weak read: the score is then the value of a p-median problem."""
    return instance.replace(
        counts=instance.counts.sum(axis=-1, keepdims=True),
        operations=(WEAK_READ,),
        name=f"{instance.name}, reads only",
    )


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

    A method is told to stop after `time` seconds (None: it is not told), and its process is killed
    after `wall`; `memory` is MiB of address space. A quick method is run `repeats` times again, as
    long as that takes less than `again` seconds.
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
        return {"kind": "solve", **dataclasses.asdict(self)}


def cell_from_json(data: Mapping[str, Any]) -> SolveCell:
    """Undo :meth:`SolveCell.to_json`."""
    known = {name: value for name, value in data.items() if name != "kind"}
    known["world"] = InstanceRecipe(**data["world"])
    known |= {"failures": LossRule(data["failures"]), "limits": CellLimits(**data["limits"])}
    return SolveCell(**known)


def problem_of(cell: SolveCell, instance: Instance) -> Problem:
    """Put the cell's question to its instance.

    UnsupportedError when the instance lacks the failure domains that the question is about.
    """
    survive: str | None = None
    objective: MeanLatency = MEAN_LATENCY
    if cell.failures is LossRule.N_1:
        from placement import Contingency

        objective = Contingency()
    elif cell.failures is LossRule.REGION:
        if not instance.domains:
            raise UnsupportedError(f"{instance.name!r} has no failure domains above the site")
        # the level just above the site: the one of most domains
        labels = instance.domains
        survive = max(labels, key=lambda level: len({*labels[level]} - {None}))
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


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:20]
