"""Questions of the instance library: seeds and settings, from which each problem is built again.

All draws come from NumPy's PCG64 with the seeds of the question. RTTs are rounded to 0.1 ms and
counts to whole operations, so that the last digits of a platform's mathematical functions do not
matter. :func:`digest` says whether two platforms have built the same data.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.exact.networks import weights
from placement import Contingency, Diversity, Instance, Problem, datasets
from placement.evaluation.objective import MEAN_LATENCY, MeanLatency
from placement.measures import After
from placement.measures.question import percentile_question
from placement.model.distances import great_circle_km
from placement.model.operations import STANDARD_OPERATIONS, WEAK_READ
from placement.model.prices import Prices
from placement.support.checks import FloatArray
from placement.tail.rtt_distributions import spread_distributions
from placement.workloads import sample_mix

DRAWN = "drawn"
"""Source of worlds with any number of sites and clients near the bundled cities."""

_OPERATIONS = 1e6
_KM_PER_MS = 100.0
"""Way of light in fibre within one ms of RTT."""


@dataclass(frozen=True, slots=True)
class LibraryQuestion:
    """Seeds and settings of a question; its kind is the group in tables.

    A generated instance has `sites`, `clients` and as many RTT matrices as `intervals`; its clients
    have the demand "lognormal" (sigma 1.2), "pareto" (exponent 1.2), "half" (one client issues half
    of all) or "unit" (all the same). The loss of a level, `survive`, must leave a quorum. `budget`
    is the largest sum of prices from 1 to 9 that are drawn for the sites. `rules` are as
    :meth:`placement.Diversity.document` writes them, `loss` has the arguments of
    :class:`placement.contingency.loss_question.Contingency`. `percentile` is (p, spread of the
    log-normal RTTs); with `loss` the percentile after every loss is minimised.
    """

    name: str
    kind: str
    seed: int
    source: str
    mix: str
    replicas: int
    voters: int
    sites: int = 0
    clients: int = 0
    demand: str = "lognormal"
    reads_only: bool = False
    intervals: int = 1
    rules: tuple[Mapping[str, Any], ...] = ()
    survive: str = ""
    budget: float = 0.0
    loss: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    percentile: tuple[float, float] | tuple[()] = ()
    protocol: str = ""
    witnesses: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the settings that are not the default."""
        fields = dataclasses.fields(self)
        values = {field.name: getattr(self, field.name) for field in fields}
        return {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in values.items()
            if name in ("seed", "source", "mix") or value not in ((), {}, "", 0, False)
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> LibraryQuestion:
        """Return the question that :meth:`to_json` wrote."""
        known = dict(data)
        for name in ("rules", "percentile"):
            known[name] = tuple(known.get(name, ()))
        return cls(**known)

    @property
    def size(self) -> int:
        """Number of sites of the problem; the problem is not built."""
        return self.sites or {"world27": 27, "aws": 34, "gcp": 42, "azure": 48}[self.source]

    def problem(self) -> Problem:
        """Build the instance and the problem."""
        instance = self._drawn() if self.source == DRAWN else self._bundled()
        if self.reads_only:
            every = instance.counts.sum(axis=2)
            counts = np.zeros((*every.shape, len(instance.operations)))
            names = [operation.name for operation in instance.operations]
            counts[:, :, names.index(WEAK_READ.name)] = every
            instance = instance.replace(counts=counts)
        if self.budget:
            rng = np.random.default_rng([self.seed, 1])
            storage = rng.integers(1, 10, len(instance.sites)).astype(float)
            instance = instance.replace(prices=Prices(storage=storage))
        return Problem(
            instance,
            replicas=self.replicas,
            voters=self.voters,
            diversity=[Diversity(**rule) for rule in self.rules],
            survive=self.survive or None,
            budget=self.budget or None,
            protocol=self.protocol or None,
            witnesses=self.witnesses,
            objective=self._objective(instance),
        )

    def _objective(self, instance: Instance) -> MeanLatency:
        if not self.percentile:
            return Contingency(**self.loss) if self.loss else MEAN_LATENCY
        percent, spread = self.percentile
        asked = percentile_question(percent, spread_distributions(instance, spread))
        if not self.loss:
            return asked
        assert self.loss["goal"] == "worst"
        return dataclasses.replace(
            asked, aim=dataclasses.replace(asked.aim, after=After(self.loss["level"]))
        )

    def _bundled(self) -> Instance:
        instance = datasets.load(self.source, mix=self.mix, seed=self.seed)
        return instance.replace(
            client_rtt=np.round(instance.client_rtt, 1),
            site_rtt=np.round(instance.site_rtt, 1),
            counts=np.round(instance.counts),
        )

    def _drawn(self) -> Instance:
        """Draw sites and clients among the bundled cities, more often where more people live.

        RTT: distance by fibre, times a detour of 1.2 to 2 drawn for each pair, plus 1 to 3 ms.
        """
        rng = np.random.default_rng([self.seed, self.sites, self.clients])
        cities = datasets.cities()
        share = np.array([city.users for city in cities], dtype=float)
        count = self.sites + self.clients
        drawn = rng.choice(len(cities), size=count, p=share / share.sum())
        places = np.array([(cities[i].lat, cities[i].lon) for i in drawn])
        places += rng.integers(-200, 201, places.shape) / 100  # degrees
        np.clip(places[:, 0], -60.0, 75.0, out=places[:, 0])
        at, around = places[: self.sites], places[self.sites :]
        client_rtt = self._rtts(great_circle_km(around, at), rng)
        site_rtt = self._rtts(great_circle_km(at, at), rng)
        site_rtt = np.minimum(site_rtt, np.swapaxes(site_rtt, -1, -2))
        site_rtt[..., np.arange(self.sites), np.arange(self.sites)] = 0.0
        demand = (
            np.exp(1.2 * rng.standard_normal(self.clients))
            if self.demand == "lognormal"
            else weights(self.demand, self.clients, rng)
        )
        shares = np.array([sample_mix(self.mix, rng) for _ in range(self.clients)])
        counts = np.round(_OPERATIONS * (demand / demand.sum())[:, np.newaxis] * shares)
        chosen = [cities[i] for i in drawn[: self.sites]]
        return Instance(
            sites=tuple(f"s{i + 1}" for i in range(self.sites)),
            clients=tuple(f"c{i + 1}" for i in range(self.clients)),
            client_rtt=client_rtt,
            site_rtt=site_rtt,
            counts=np.repeat(counts[np.newaxis], self.intervals, axis=0),
            operations=STANDARD_OPERATIONS,
            domains={
                "country": tuple(city.country for city in chosen),
                "continent": tuple(city.continent for city in chosen),
            },
            name=self.name,
            provenance=("Drawn around the bundled cities; RTTs follow from distance.",),
        )

    def _rtts(self, km: FloatArray, rng: np.random.Generator) -> FloatArray:
        """Return RTTs in ms of distances, (intervals,) before their shape where they vary."""
        direct = km / _KM_PER_MS * rng.uniform(1.2, 2.0, km.shape) + rng.uniform(1, 3, km.shape)
        if self.intervals == 1:
            return np.round(direct, 1)
        return np.round(direct * rng.uniform(1.0, 1.5, (self.intervals, *km.shape)), 1)


def digest(problem: Problem) -> str:
    """Return a SHA-256 of the data of a problem: RTTs in 0.1 ms, counts and prices, as integers."""
    instance, found = problem.instance, hashlib.sha256()
    arrays = [10 * instance.client_rtt, 10 * instance.site_rtt, instance.counts]
    if instance.prices is not None:
        arrays.append(instance.prices.storage)
    for array in arrays:
        found.update(json.dumps(array.shape).encode())
        found.update(np.rint(array).astype("<i8").tobytes())
    return found.hexdigest()[:32]
