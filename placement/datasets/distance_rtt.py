"""Distances on the globe, and round-trip times modelled from them where no measurement exists.

A modelled RTT between two points x thousand km apart is built in four steps:

1. **Distance.** ``min(local + near·x, a + b·x)`` ms. The long line is a least-squares fit to a
   measured cloud (:data:`AWS_2025`). Because of its intercept, such a fit overrates RTTs below
   about 2,500 km; there a steeper line through the intra-region figure takes over.
2. **Route inflation.** A lognormal factor per pair, of log standard deviation `spread`. The normal
   scores are those of a Gaussian random field on pairs of places: what two routes have in common
   falls off as exp(−km/`correlation_km`) at either end, because neighbours share their cables.
3. **Physics.** Never below `floor` times light in fibre (10 ms per 1,000 km and round trip).
4. **Relaying.** Most pairs are routed well: where a path through other sites is quicker than the
   pair's own draw, it is taken. A share `detours` of the pairs keeps its own draw whatever the way
   round would cost; these are the triples that break the triangle inequality, as in real networks.

On the regions of AWS and Azure (2025), the median error of one draw against the measured matrix is
about 19 % (16 to 23 % over 30 seeds). 2 to 5 % of ordered triples (i, j, k) have RTT(i, k) > RTT(i,
j) + RTT(j, k), compared with 2.6 % and 1.6 % in the measurements.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.model.distances import (
    FIBRE_MS_PER_1000_KM,
    great_circle_km,
    places_on_globe,
)
from placement.support.checks import FloatArray, number


@dataclass(frozen=True, slots=True)
class DistanceFit:
    """A straight line through measured RTTs: RTT = intercept + slope · (1,000 km)."""

    intercept_ms: float  #: a, ms
    slope_ms_per_1000_km: float  #: b, ms per 1,000 km of great circle
    source: str  #: the measurement behind it

    def __call__(self, km: npt.ArrayLike) -> FloatArray:
        """Return the fitted RTT (ms) at each distance (km)."""
        distance = np.asarray(km, dtype=np.float64)
        return self.intercept_ms + self.slope_ms_per_1000_km * distance / 1000.0


AWS_2025 = DistanceFit(25.1, 15.52, "cloudping.co, TCP medians of 32 AWS regions, 2025-05")
"""Least-squares fit to a measured cloud."""


@dataclass(frozen=True, slots=True)
class RouteModel:
    """Model of the RTT as a function of distance, with the defaults of the bundled data sets."""

    fit: DistanceFit = AWS_2025  #: the long line, a + b·x
    local_ms: float = 1.0  #: RTT within a region, ms
    #: slope of the short line: the median slope, from 1 ms, of measured pairs of regions closer
    #: than 1,500 km is 24.7 (AWS 2025) and 24.6 (Azure 2025). It meets the default fit at about
    #: 2,500 km
    near_ms_per_1000_km: float = 25.0
    spread: float = 0.25  #: standard deviation of the log of the route inflation
    #: distance over which the inflation of neighbouring routes falls to 1/e in common
    correlation_km: float = 2000.0
    own: float = 0.1  #: share of the variance at each end that a place has for itself alone
    floor: float = 1.2  #: least RTT, as a multiple of light in fibre
    detours: float = 0.2  #: share of pairs that are not relayed over a quicker path
    #: decimals (of a ms) the result is rounded to, so that the last bits of the linear algebra of
    #: one machine or another do not show
    decimals: int = 2

    def __post_init__(self) -> None:
        for field in ("local_ms", "near_ms_per_1000_km", "spread", "floor"):
            number(getattr(self, field), field)
        number(self.correlation_km, "correlation_km", above=True)
        for field in ("own", "detours"):
            number(getattr(self, field), field, maximum=1.0)

    def expected_ms(self, km: npt.ArrayLike) -> FloatArray:
        """Return the RTT (ms) at each distance (km) before inflation: step 1 of the module."""
        distance = np.asarray(km, dtype=np.float64)
        short = self.local_ms + self.near_ms_per_1000_km * distance / 1000.0
        return np.minimum(short, self.fit(distance))


def modelled_rtt(
    sites: npt.ArrayLike,
    clients: npt.ArrayLike,
    rng: np.random.Generator,
    model: RouteModel | None = None,
) -> tuple[FloatArray, FloatArray]:
    """Draw consistent RTTs in ms from clients to sites, shape (c, s), and between sites, (s, s).

    Places are latitude and longitude in degrees, shapes (s, 2) and (c, 2). A client in a site's own
    place sees the intra-region figure; the RTTs between sites are symmetric with a zero diagonal.
    O((s + c)³) for the Cholesky factor of the field and O(s³ + c·s²) for relaying. Only sites
    relay. The draw belongs to the points in their order: adding one changes all the others.
    """
    route = RouteModel() if model is None else model
    places = np.concatenate([places_on_globe(sites, "sites"), places_on_globe(clients, "clients")])
    s = len(np.asarray(sites))
    km = great_circle_km(places, places)
    scores = _route_scores(km, rng, route)
    draw = route.expected_ms(km) * np.exp(route.spread * scores)
    draw = np.maximum(draw, route.floor * FIBRE_MS_PER_1000_KM * km / 1000.0)
    detour = np.triu(rng.random(km.shape) < route.detours)
    detour |= detour.T

    direct = draw[:s, :s].copy()
    np.fill_diagonal(direct, 0.0)
    relayed = _shortest_paths(direct)
    site_rtt = np.where(detour[:s, :s], direct, relayed)
    ashore = draw[s:, :s]
    through = ashore.copy()
    for relay in range(s):
        np.minimum(through, ashore[:, [relay]] + relayed[[relay], :], out=through)
    client_rtt = np.where(detour[s:, :s], ashore, through)
    client_rtt.round(route.decimals, out=client_rtt)
    site_rtt.round(route.decimals, out=site_rtt)
    return client_rtt, site_rtt


def triangle_violations(rtt: npt.ArrayLike) -> float:
    """Return the share of ordered triples of distinct sites with d(i, k) > d(i, j) + d(j, k).

    The diagonal of the RTTs is ignored; the share is 0 for fewer than three sites. O(n³).
    """
    matrix = np.array(rtt, dtype=np.float64)
    n = len(matrix)
    if n < 3:
        return 0.0
    np.fill_diagonal(matrix, 0.0)  # so that i = j and j = k can never count
    broken = sum(
        int(np.count_nonzero(matrix > matrix[:, [j]] + matrix[[j], :] + 1e-9)) for j in range(n)
    )
    return broken / (n * (n - 1) * (n - 2))


def _route_scores(km: FloatArray, rng: np.random.Generator, model: RouteModel) -> FloatArray:
    """Draw symmetric standard normal scores z[i, j] of which neighbouring routes share a part.

    With K = L Lᵀ the correlation of places, W symmetric of independent standard normals (variance
    2 on the diagonal) and F = L W Lᵀ,  Cov(F[i, j], F[k, l]) = K[i, k] K[j, l] + K[i, l] K[j, k].
    """
    n = len(km)
    # the exponential of geodesic distance is positive definite on the sphere (Gneiting 2013)
    places = (1.0 - model.own) * np.exp(-km / model.correlation_km) + model.own * np.eye(n)
    factor = np.linalg.cholesky(places + 1e-9 * np.eye(n))
    square = rng.standard_normal((n, n))
    field = factor @ ((square + square.T) / np.sqrt(2.0)) @ factor.T
    scores = field / np.sqrt(1.0 + places**2)
    symmetric: FloatArray = 0.5 * (scores + scores.T)  # exactly, whatever the rounding
    return symmetric


def _shortest_paths(direct: FloatArray) -> FloatArray:
    """Return all-pairs shortest paths (Floyd and Warshall), O(n³)."""
    paths = direct.copy()
    for relay in range(len(paths)):
        np.minimum(paths, paths[:, [relay]] + paths[[relay], :], out=paths)
    return paths
