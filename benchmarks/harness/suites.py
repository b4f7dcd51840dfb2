"""Cells: one question put to one method, with its limits; and the suites, as data."""

from __future__ import annotations

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
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

    The source is a bundled data set or :data:`DRAWN`. Without a mix a
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
        else:
            instance = datasets.load(self.source, mix=self.mix, seed=seed)
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
        instance, replicas=cell.replicas, voters=cell.voters, survive=survive, objective=objective
    )


def _digest(data: object) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()[:20]


# --- suites ---------------------------------------------------------------------------------------


BASELINES = (
    "best-mean",
    "best-cov",
    "nearest-centroid",
    "most-writes",
    "max-diversity",
    "p-median-first",
    "closest-to-writes",
    "smallest-quorum",
)
"""Rules that people use today."""


_DEFAULT = CellLimits()


@dataclass(frozen=True, slots=True)
class Grid:
    """Every combination of its axes; combinations with more voters than replicas are left out.

    The methods are put to each question one after the other, so that what disturbs the machine for
    a while disturbs them alike.
    """

    worlds: tuple[InstanceRecipe, ...]
    methods: tuple[str, ...]
    replicas: tuple[int, ...]
    voters: tuple[int, ...]
    failures: tuple[LossRule, ...] = (LossRule.NONE,)
    seeds: tuple[int, ...] = (0,)
    limits: CellLimits = _DEFAULT
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)

    def cells(self) -> Iterator[SolveCell]:
        """Yield the cells, question by question."""
        for world, replicas, voters, failures, seed in itertools.product(
            self.worlds, self.replicas, self.voters, self.failures, self.seeds
        ):
            if voters > replicas or (world.sites is not None and replicas > world.sites):
                continue
            for method in self.methods:
                yield SolveCell(
                    world,
                    replicas,
                    voters,
                    failures,
                    method,
                    seed,
                    self.limits,
                    self.settings.get(method, {}),
                )


@dataclass(frozen=True, slots=True)
class Suite:
    """A named set of cells.

    The time of the reference method on the same question, in the same run, is the unit of time in a
    comparison of two runs.
    """

    name: str
    purpose: str
    reference: str
    grids: tuple[Grid, ...] = ()
    on_page: bool = False

    def cells(self) -> tuple[SolveCell, ...]:
        """Return every cell once, in the order in which they are run."""
        cells: dict[str, SolveCell] = {}
        for grid in self.grids:
            for cell in grid.cells():
                cells.setdefault(cell.key, cell)
        return tuple(cells.values())


_WORLD27, _AWS, _GCP, _AZURE = (InstanceRecipe(name) for name in ("world27", "aws", "gcp", "azure"))

_QUICK = CellLimits(time=5.0, wall=20.0, memory=2048, repeats=5, again=0.3)

_SMOKE = Suite(
    name="smoke",
    purpose="every kind of cell once, in about a minute; run by `make smoke` and in CI",
    reference="best-of",
    grids=(
        Grid((_WORLD27,), ("best-of", "exact", "local-search", "kq", "qk", "milp"), (5,), (3,),
             (LossRule.NONE, LossRule.REGION), limits=_QUICK),
        Grid((_WORLD27,), ("best-of", "exact", "local-search"), (5,), (3,),
             (LossRule.CONTINENT, LossRule.N_1), limits=_QUICK),
        Grid((InstanceRecipe("world27", mix="ledger"), _AWS), ("best-of", "exact", "local-search"),
             (7,), (5,), limits=_QUICK),
        Grid((InstanceRecipe(DRAWN, sites=60, clients=120),), ("best-of", "exact"), (5,), (3,),
             limits=_QUICK),
        Grid((InstanceRecipe("world27", sites=8),), ("best-of", "exhaustive", "exact", "cp-sat"),
             (3,), (3,), (LossRule.NONE, LossRule.N_1), limits=_QUICK),
    ),
)  # fmt: skip

_GAP_LIMITS = CellLimits(time=60.0, wall=150.0)

_GAP = Suite(
    name="gap",
    purpose="every method on every bundled data set, |R| from 3 to 13, all failure constraints",
    reference="best-of",
    on_page=True,
    grids=(
        Grid(
            (_WORLD27, _AWS, _GCP, _AZURE),
            ("best-of", "exact", "local-search", "kq", "qk", *BASELINES),
            (3, 5, 7, 9, 11, 13), (3, 5), (LossRule.NONE, LossRule.REGION, LossRule.CONTINENT),
            limits=_GAP_LIMITS,
        ),
        Grid((_WORLD27, _AWS, _GCP, _AZURE), ("best-of", "exact", "local-search"),
             (3, 5, 7, 9, 11, 13), (3, 5), (LossRule.N_1,), limits=_GAP_LIMITS),
        Grid((_WORLD27, _AWS, _GCP, _AZURE), ("best-of", "exact", "milp", "cp-sat"),
             (3, 7, 13), (3,), (LossRule.NONE, LossRule.REGION), limits=_GAP_LIMITS),
        # best-of, kq and qk minimise the mean only: under N-1 they are to be seen to say so
        Grid((_WORLD27,), ("best-of", "exact", "local-search", "kq", "qk", "milp", "cp-sat"),
             (3, 5, 7, 9, 11, 13), (3,), tuple(LossRule), limits=_GAP_LIMITS),
        Grid(
            tuple(
                InstanceRecipe("world27", mix=mix)
                for mix in ("cache", "oltp", "sessions", "configuration", "ledger", "logging",
                            "ycsb-a", "ycsb-b")
            ),
            ("best-of", "exact", "local-search", "kq", "qk"),
            (3, 5, 7),
            (3,),
            seeds=(0, 1),
            limits=_GAP_LIMITS,
        ),
    ),
)  # fmt: skip

_PEER_LIMITS = CellLimits(time=60.0, wall=120.0, repeats=3)

_PEERS = Suite(
    name="peers",
    purpose="the same questions through what a user would pick instead",
    reference="exact",
    on_page=True,
    grids=(
        # p-median: weak reads only, one voter
        Grid(
            tuple(
                InstanceRecipe(name, demand="reads") for name in ("world27", "azure", "aws", "gcp")
            )
            + tuple(
                InstanceRecipe(DRAWN, sites=n, clients=n, demand="reads") for n in (100, 200, 400)
            ),
            ("exact", "peer/pbp-pmedian", "peer/spopt"),
            (5, 9),
            (1,),
            limits=_PEER_LIMITS,
        ),
        # majority commits, every replica votes: as many sites as quoracle can take
        Grid(
            tuple(InstanceRecipe("world27", sites=n) for n in (6, 8, 10, 12)),
            ("exact", "peer/quoracle"),
            (3, 5),
            (3, 5),
            limits=_PEER_LIMITS,
        ),
        # the whole problem
        Grid(
            (_WORLD27, _AWS, _GCP, _AZURE),
            ("exact", "milp", "peer/monolithic-milp"),
            (3, 5, 9),
            (3,),
            (LossRule.NONE, LossRule.REGION),
            limits=_PEER_LIMITS,
        ),
    ),
)

_AGREEMENT = Suite(
    name="agreement",
    purpose="four exact methods against each other on every bundled data set; hours",
    reference="exact",
    grids=(
        Grid(
            (_WORLD27, _AZURE, _AWS, _GCP),
            ("exact", "exhaustive", "cp-sat", "milp"),
            (3, 4, 5, 6, 7),
            (1, 3, 5),
            limits=CellLimits(time=900.0, wall=1200.0, memory=8192, repeats=1),
            settings={"exhaustive": {"limit": 100_000_000}},
        ),
        Grid(
            tuple(InstanceRecipe(name, sites=9) for name in ("world27", "azure", "aws", "gcp")),
            ("exact", "exhaustive", "cp-sat", "milp"),
            (3, 4, 5),
            (3,),
            (LossRule.N_1,),
            limits=CellLimits(time=120.0, wall=180.0, repeats=1),
        ),
    ),
)

SUITES: Mapping[str, Suite] = MappingProxyType(
    {suite.name: suite for suite in (_SMOKE, _GAP, _PEERS, _AGREEMENT)}
)
"""All suites by name."""
