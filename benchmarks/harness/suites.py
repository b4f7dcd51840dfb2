"""The suites, as data: which instances are given to which methods, under which limits."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from benchmarks.harness.cells import (
    DRAWN,
    CellLimits,
    InstanceRecipe,
    LossRule,
    SolveCell,
)

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
