"""Equal Earth projection from degrees to the plane, great circles, and the part in view.

Equal Earth (Šavrič, Patterson and Jenny, Int. J. Geogr. Inf. Sci. 33(3), 2019) keeps areas true.
With sin θ = (√3/2)·sin φ,

    x = 2√3·(λ − λ₀)·cos θ / (3·(9A₄θ⁸ + 7A₃θ⁶ + 3A₂θ² + A₁)),   y = A₄θ⁹ + A₃θ⁷ + A₂θ³ + A₁θ

The central meridian is 11° E: its opposite runs through the Bering Strait, so that no coast is cut.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from placement.support.checks import FloatArray

CENTRE = 11.0
"""Longitude of the central meridian, degrees."""

_A1, _A2, _A3, _A4 = 1.340264, -0.081106, 0.000893, 0.003796


def project(points: npt.ArrayLike, *, wrap: bool = True) -> FloatArray:
    """Project (longitude, latitude) in degrees to the plane, y upwards.

    Parameters
    ----------
    points
        Shape (n, 2).
    wrap
        Bring longitudes to within 180° of the central meridian; rings of the coast run past it a
        little and keep theirs.

    Returns
    -------
    ndarray
        Shape (n, 2); |x| <= 2.71 and |y| <= 1.32.
    """
    lonlat = np.asarray(points, dtype=np.float64).reshape(-1, 2)
    lam = lonlat[:, 0] - CENTRE
    if wrap:
        lam = (lam + 180.0) % 360.0 - 180.0
    lam = np.radians(lam)
    theta = np.arcsin(math.sqrt(3) / 2 * np.sin(np.radians(lonlat[:, 1])))
    t2 = theta * theta
    t6 = t2**3
    below = 3 * (9 * _A4 * t6 * t2 + 7 * _A3 * t6 + 3 * _A2 * t2 + _A1)
    x = 2 * math.sqrt(3) * lam * np.cos(theta) / below
    y = theta * (_A4 * t6 * t2 + _A3 * t6 + _A2 * t2 + _A1)
    return np.stack([x, y], axis=1)


def unproject(x: float, y: float) -> tuple[float, float] | None:
    """Return (latitude, longitude) in degrees of a point of the plane; None beyond the rim.

    Newton's method for θ in y = A₄θ⁹ + A₃θ⁷ + A₂θ³ + A₁θ; y grows with θ, so it converges from y.
    """
    theta = y
    for _ in range(12):
        t2 = theta * theta
        t6 = t2**3
        slope = 9 * _A4 * t6 * t2 + 7 * _A3 * t6 + 3 * _A2 * t2 + _A1
        theta -= (theta * (_A4 * t6 * t2 + _A3 * t6 + _A2 * t2 + _A1) - y) / slope
    sine = 2 * math.sin(theta) / math.sqrt(3)
    if abs(theta) > math.pi / 3 or abs(sine) > 1:
        return None
    t2 = theta * theta
    slope = 9 * _A4 * t2**4 + 7 * _A3 * t2**3 + 3 * _A2 * t2 + _A1
    lam = math.degrees(3 * x * slope / (2 * math.sqrt(3) * math.cos(theta)))
    if abs(lam) > 180:
        return None
    return math.degrees(math.asin(sine)), (lam + CENTRE + 180) % 360 - 180


def great_circle(start: Sequence[float], end: Sequence[float], steps: int = 40) -> list[FloatArray]:
    """Return the shortest way between two places as projected pieces, cut where the map ends.

    Parameters
    ----------
    start, end
        (longitude, latitude) in degrees.
    steps
        Straight pieces before cutting.

    Returns
    -------
    list of ndarray
        Each of shape (k, 2) with k >= 2, in the order of travel.
    """
    a, b = _vector(start), _vector(end)
    angle = math.acos(max(-1.0, min(1.0, float(a @ b))))
    if angle < 1e-6:
        return [np.concatenate([project([start]), project([end])])]
    if math.pi - angle < 1e-6:  # antipodes have no one shortest way; go over a pole
        b = _vector((end[0], max(-89.0, min(89.0, end[1])) * 0.999 + 1e-3))
        angle = math.acos(max(-1.0, min(1.0, float(a @ b))))
    share = np.linspace(0.0, 1.0, steps + 1)[:, np.newaxis]
    way = (np.sin((1 - share) * angle) * a + np.sin(share * angle) * b) / math.sin(angle)
    lonlat = np.stack(
        [
            np.degrees(np.arctan2(way[:, 1], way[:, 0])),
            np.degrees(np.arcsin(np.clip(way[:, 2], -1, 1))),
        ],
        axis=1,
    )
    lam = (lonlat[:, 0] - CENTRE + 180.0) % 360.0 - 180.0
    cuts = np.nonzero(np.abs(np.diff(lam)) > 180.0)[0] + 1
    pieces = np.split(project(lonlat), cuts)
    for k, cut in enumerate(cuts):  # both pieces go on to the rim
        rim = math.copysign(180.0, lam[cut - 1])
        past = 360.0 - abs(lam[cut] - lam[cut - 1])
        passed = abs(rim - lam[cut - 1]) / past if past else 0.5
        latitude = lonlat[cut - 1, 1] + passed * (lonlat[cut, 1] - lonlat[cut - 1, 1])
        left, right = project([[CENTRE + rim, latitude], [CENTRE - rim, latitude]], wrap=False)
        pieces[k] = np.vstack([pieces[k], left])
        pieces[k + 1] = np.vstack([right, pieces[k + 1]])
    return pieces


def _vector(place: Sequence[float]) -> FloatArray:
    lon, lat = math.radians(place[0]), math.radians(place[1])
    return np.array([math.cos(lat) * math.cos(lon), math.cos(lat) * math.sin(lon), math.sin(lat)])


def scaled_places(distance: FloatArray) -> FloatArray:
    """Place points in the plane so that their distances resemble those given.

    Classical multidimensional scaling (Torgerson 1952): the two leading eigenvectors of the doubly
    centred matrix of squared distances. Asymmetric distances are averaged with their transpose.

    Parameters
    ----------
    distance
        Shape (n, n).

    Returns
    -------
    ndarray
        Shape (n, 2), centred, the larger extent 1; zeros when all distances are 0.

    Notes
    -----
    O(n³).
    """
    n = len(distance)
    if n < 2:
        return np.zeros((n, 2))
    even = (distance + distance.T) / 2
    centred = np.eye(n) - 1.0 / n
    values, vectors = np.linalg.eigh(-0.5 * centred @ (even * even) @ centred)
    keep = np.argsort(values)[::-1][:2]
    places = np.zeros((n, 2))
    found = vectors[:, keep] * np.sqrt(np.maximum(values[keep], 0.0))
    places[:, : found.shape[1]] = found
    for axis in range(2):  # an eigenvector has no sign of its own: fix it
        column = places[:, axis]
        if column[np.argmax(np.abs(column))] < 0:
            places[:, axis] = -column
    extent = float(np.abs(places).max())
    return places / extent if extent > 0 else places
