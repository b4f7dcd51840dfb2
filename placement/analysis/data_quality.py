"""Quality of measured RTTs: asymmetry, detours, light; and what doubtful pairs change in a plan."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from placement.analysis.sensitivity import require_optimal
from placement.errors import InputError
from placement.evaluation.breakdown import objective_value
from placement.methods.registry import prove
from placement.model.distances import FIBRE_MS_PER_1000_KM, NEARBY_KM, great_circle_km
from placement.model.instance import Instance
from placement.plan import Plan
from placement.support.checks import BoolArray, FloatArray, number

_RATIO = 1.1
_LEAST_MS = 5.0
_SAME = 1e-9
_MOST_SITES = 1000

_Reason = Callable[[int, int], str]


@dataclass(frozen=True, slots=True)
class DoubtfulPair:
    """RTT of one pair of sites that disagrees with the RTTs of other pairs."""

    #: `source`, `destination`: sites; the source waits for the destination
    source: str
    destination: str
    rtt: float  #: ms; with several intervals, their median
    #: RTT in ms that it is compared with: of the other direction, of the detour, of light
    against: float
    reason: str  #: the comparison in words


@dataclass(frozen=True, slots=True)
class DataQuality:
    """Doubtful RTTs between the sites of an instance."""

    pairs: int  #: number of ordered pairs of distinct sites
    #: pairs whose two directions differ by more than 10 % and 5 ms; the slower direction
    asymmetric: tuple[DoubtfulPair, ...]
    #: pairs for which the way over a third site is shorter by more than 10 % and 5 ms; not looked
    #: for among more than 1,000 sites
    detours: tuple[DoubtfulPair, ...]
    #: pairs below the round trip of light in fibre over the great circle less 100 km
    faster_than_light: tuple[DoubtfulPair, ...]
    located: bool  #: whether the coordinates of two sites or more are known
    #: pairs of 0 ms in an interval: two sites, or a client and a site of another name
    zero: tuple[tuple[str, str], ...] = ()

    @property
    def doubtful(self) -> tuple[tuple[str, str], ...]:
        """Pairs of sites with a finding, each pair once in either direction."""
        found = (*self.faster_than_light, *self.asymmetric, *self.detours)
        ends = ((pair.source, pair.destination) for pair in found)
        return _once(ends)


def _once(pairs: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    seen: dict[frozenset[str], tuple[str, str]] = {}
    for pair in pairs:
        seen.setdefault(frozenset(pair), pair)
    return tuple(seen.values())


def data_quality(instance: Instance) -> DataQuality:
    """Return the doubtful RTTs between the sites of an instance, the largest difference first.

    Of RTTs that vary by interval the median over the intervals counts. O(n³) for n sites, one row
    of n² numbers at a time.
    """
    rtt = instance.site_rtt if instance.site_rtt.ndim == 2 else np.median(instance.site_rtt, axis=0)
    sites = instance.sites
    light = np.zeros((len(sites), len(sites)))  # its round trip in ms, 0 where it is not known
    known = np.zeros(0, dtype=np.intp)
    if instance.site_coordinates is not None:
        known = np.flatnonzero(np.isfinite(instance.site_coordinates).all(axis=1))
    located = len(known) >= 2
    if instance.site_coordinates is not None and located:
        places = instance.site_coordinates[known]
        km = np.maximum(0.0, great_circle_km(places, places) - NEARBY_KM)
        light[np.ix_(known, known)] = km * FIBRE_MS_PER_1000_KM / 1000.0
    via = np.full(rtt.shape, -1, dtype=np.intp)
    shortest = np.full(rtt.shape, np.inf)
    for k in range(len(sites) if len(sites) <= _MOST_SITES else 0):
        way = rtt[:, k, np.newaxis] + rtt[np.newaxis, k, :]
        way[k, :] = way[:, k] = np.inf
        shorter = way < shortest
        shortest[shorter], via[shorter] = way[shorter], k
    np.fill_diagonal(shortest, np.inf)
    ways: tuple[tuple[FloatArray, _Reason], ...] = (
        (rtt.T, lambda i, j: "the other direction"),
        (shortest, lambda i, j: f"the way over {sites[via[i, j]]}"),
    )
    found = [
        _doubtful(sites, rtt, way, (rtt > way * _RATIO) & (rtt > way + _LEAST_MS), -1.0, reason)
        for way, reason in ways
    ]
    words = "light in fibre over the great circle"
    fastest = _doubtful(sites, rtt, light, rtt < light, 1.0, lambda i, j: words)
    zero = _zero(sites, sites, instance.site_rtt) + _zero(
        instance.clients, sites, instance.client_rtt
    )
    pairs = len(sites) * (len(sites) - 1)
    return DataQuality(pairs, found[0], found[1], fastest, located, tuple(dict.fromkeys(zero)))


def _zero(rows: Sequence[str], sites: Sequence[str], rtt: FloatArray) -> list[tuple[str, str]]:
    """Pairs of different names with an RTT of 0 ms."""
    found = np.argwhere((rtt == 0).any(axis=0) if rtt.ndim == 3 else rtt == 0).tolist()
    return [(rows[i], sites[j]) for i, j in found if rows[i] != sites[j]]


def _doubtful(
    sites: Sequence[str], rtt: FloatArray, other: FloatArray, odd: BoolArray, sign: float,
    reason: _Reason,
) -> tuple[DoubtfulPair, ...]:  # fmt: skip
    """Pairs whose RTT is odd beside another one, the least sign · difference first."""
    difference = sign * (rtt - other)
    order = sorted(np.argwhere(odd).tolist(), key=lambda at: float(difference[at[0], at[1]]))
    return tuple(
        DoubtfulPair(sites[i], sites[j], float(rtt[i, j]), float(other[i, j]), reason(i, j))
        for i, j in order
    )


@dataclass(frozen=True, slots=True)
class RttChange:
    """Effect of another RTT on a plan."""

    pairs: tuple[tuple[str, str], ...]  #: pairs of sites whose RTTs change, in both directions
    factor: float  #: factor of their RTTs, also of clients that sit in these sites
    plan: Plan  #: proven optimum with the changed RTTs
    #: relative excess of the objective of the given plan over that optimum; 0: it stays optimal
    regret: float


def effects_of_doubt(
    plan: Plan, pairs: Sequence[tuple[str, str]], *, off: float = 0.2
) -> tuple[RttChange, ...]:
    """Return the effect on an optimal plan of doubtful RTTs that are wrong by the share `off`.

    Each pair is changed alone, and all together: two proven solves each. `off` is in (0, 1).
    """
    require_optimal(plan)
    if not 0 < number(off, "off") < 1:
        raise InputError("not a share", field="off", value=off, expected="a number in (0, 1)")
    wanted = _once(pairs)
    groups = [(pair,) for pair in wanted] + ([wanted] if len(wanted) > 1 else [])
    return tuple(_changed(plan, group, factor) for group in groups for factor in (1 - off, 1 + off))


def _changed(plan: Plan, pairs: tuple[tuple[str, str], ...], factor: float) -> RttChange:
    instance = plan.problem.instance
    site_rtt, client_rtt = instance.site_rtt.copy(), instance.client_rtt.copy()
    clients = {name: i for i, name in enumerate(instance.clients)}
    for pair in pairs:
        ends = instance.site_indices(list(pair), "site").tolist()
        if ends[0] == ends[1]:
            raise InputError("a site reaches itself for free", field="site", value=pair[0])
        for a, b, name in ((*ends, pair[0]), (*ends[::-1], pair[1])):
            site_rtt[..., a, b] *= factor
            if name in clients:
                client_rtt[..., clients[name], b] *= factor
    problem = plan.problem.replace(
        instance=instance.replace(site_rtt=site_rtt, client_rtt=client_rtt)
    )
    best = prove(problem)
    assert plan.configuration is not None  # the plan is optimal
    own = objective_value(problem, plan.configuration)
    regret = own / best.objective - 1 if best.objective > 0 else 0.0
    return RttChange(pairs, factor, best, regret if regret > _SAME else 0.0)
