"""Distances on the globe, the time of light in fibre, and RTTs that cannot be milliseconds."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, UnitsWarning
from placement.support.checks import BoolArray, FloatArray, frozen, is_frame, values_by_name

_DEGREES = ("column", ("lat", "lon"))
_MOST_DEGREES = np.array([90.0, 180.0])

EARTH_RADIUS_KM = 6371.0088
"""Mean radius of the Earth (IUGG), km."""

FIBRE_MS_PER_1000_KM = 10.0
"""Round trip of light in fibre, at two thirds of c, over 1,000 km of great circle, in ms."""


def great_circle_km(origin: npt.ArrayLike, destination: npt.ArrayLike) -> FloatArray:
    """Return the great-circle distance in km, shape (n, m), by haversines.

        d = 2 R asin √( sin²(Δφ/2) + cos φ₁ cos φ₂ sin²(Δλ/2) )

    Points are latitude and longitude in degrees, shapes (n, 2) and (m, 2), as in
    :func:`places_on_globe`.
    """
    start, end = places_on_globe(origin, "origin"), places_on_globe(destination, "destination")
    first, second = np.radians(start), np.radians(end)
    half = 0.5 * (first[:, np.newaxis, :] - second[np.newaxis, :, :])
    cosines = np.cos(first[:, 0])[:, np.newaxis] * np.cos(second[:, 0])[np.newaxis, :]
    haversine = np.sin(half[..., 0]) ** 2 + cosines * np.sin(half[..., 1]) ** 2
    # antipodes may come out a rounding error above 1
    distance: FloatArray = 2.0 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.minimum(haversine, 1.0)))
    return distance


def places_on_globe(values: npt.ArrayLike, field: str) -> FloatArray:
    """Return points as latitudes and longitudes in degrees, shape (n, 2), or raise InputError."""
    points = np.asarray(values, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise InputError("wrong shape", field=field, value=points.shape, expected="(n, 2)")
    inside = np.abs(points) <= _MOST_DEGREES  # NaN is outside, too
    _refuse_outside(points, ~inside, field, "point {} is")
    return points


def _refuse_outside(
    points: FloatArray, outside: BoolArray, field: str, words: str, names: Sequence[str] = ()
) -> None:
    """Refuse the first point with a coordinate outside; `words` name it by its name or number."""
    if outside.any():
        row = int(np.nonzero(outside)[0][0])
        which = words.format(repr(names[row]) if names else row)
        raise InputError(
            f"{which} not on the globe",
            field=field,
            value=tuple(map(float, points[row])),
            expected="latitude within ±90 and longitude within ±180 degrees",
        )


def checked_coordinates(
    values: FloatArray | None, field: str, names: tuple[str, ...]
) -> FloatArray | None:
    """Return latitudes and longitudes in degrees, shape (n, 2), NaN where unknown.

    `values` are an array or a pandas table. InputError, with the `field`, for another shape, what
    is no number, and coordinates off the globe.
    """
    if values is None:
        return None
    try:
        if is_frame(values):
            array = frozen(values_by_name(values, field, [(field.split("_")[0], names), _DEGREES]))
        else:
            array = frozen(values)
    except InputError:
        raise
    except (TypeError, ValueError, OverflowError):
        raise InputError(
            "not a table of numbers", field=field, value=values, expected="degrees, NaN if unknown"
        ) from None
    if array.shape != (len(names), 2):
        raise InputError(
            "wrong shape", field=field, value=array.shape, expected=f"({len(names)}, 2)"
        )
    outside = np.abs(array) > _MOST_DEGREES  # NaN, "unknown", compares false
    _refuse_outside(array, outside, field, "coordinates of {} are", names)
    return array


# Warnings about RTTs that look as if they were not milliseconds

NEARBY_KM = 100.0
"""Tolerance of the distance between two places: coordinates are often those of a city."""

_LOWEST = {"site_rtt": 1.0, "client_rtt": 0.01}
"""Smallest median, in ms, that gives no warning. Clients may sit in the data centre of a site."""

_HIGHEST = 10_000.0


@dataclass(frozen=True, eq=False)
class RttMatrix:
    """RTTs with the names and places of the rows."""

    field: str  #: `site_rtt` or `client_rtt`
    values: FloatArray  #: RTTs in ms, shape (rows, sites), or with a leading axis of intervals
    #: `rows`, `sites`: names
    rows: Sequence[str]
    sites: Sequence[str]
    #: latitude and longitude of the rows in degrees, shape (rows, 2), NaN where unknown; or None
    places: FloatArray | None


def warn_of_units(rtt: RttMatrix, sites: FloatArray | None) -> None:
    """Warn (UnitsWarning) when RTTs are no milliseconds of a real network.

    When the median lies below 1 ms between distinct sites, below 0.01 ms from clients, or above
    10,000 ms; and when an RTT is below what light in fibre needs over the great circle, less
    :data:`NEARBY_KM`. The second warning names the pair with the largest difference. O(intervals ·
    rows · sites).
    """
    values, square = rtt.values, rtt.field == "site_rtt"
    outside = np.count_nonzero((values < _LOWEST[rtt.field]) | (values > _HIGHEST))
    others = values.size // len(rtt.sites) if square else 0  # on the diagonal
    if values.size > others and 2 * outside >= values.size - others:  # else no median is outside
        if square:
            values = values[..., ~np.eye(len(rtt.sites), dtype=bool)]
        median = _median(values)
        fix = ""
        if 0 < median < _LOWEST[rtt.field]:
            fix = "seconds? multiply by 1000"
        elif median > _HIGHEST:
            fix = "microseconds? divide by 1000"
        if fix:
            between = "between distinct sites" if square else "from clients"
            warnings.warn(
                f"{rtt.field}: the median RTT {between} is {median:g} ms; are these {fix}",
                UnitsWarning,
                stacklevel=5,
            )
    if rtt.places is not None and sites is not None:
        _compare_with_light(rtt, rtt.places, sites)


def _median(values: FloatArray) -> float:
    """Return the median of finite values; ``np.median`` would import ``numpy.ma``."""
    high = values.size // 2
    low = (values.size - 1) // 2
    parted = np.partition(values, (low, high), axis=None)
    return float((parted[low] + parted[high]) / 2)


def _compare_with_light(rtt: RttMatrix, places: FloatArray, sites: FloatArray) -> None:
    """Warn when an RTT is shorter than the round trip of light in fibre between the two places."""
    shortest = rtt.values if rtt.values.ndim == 2 else rtt.values.min(axis=0)
    # The squared chord of the arc that light can cover, compared with the arc between the places:
    # one product of matrices, where great circles would need three functions per pair. In place,
    # because new arrays of this size cost as much as the arithmetic.
    reach = shortest * (1000.0 / FIBRE_MS_PER_1000_KM)
    reach += NEARBY_KM
    reach /= 2.0 * EARTH_RADIUS_KM
    covered = np.sin(np.minimum(reach, np.pi / 2.0, out=reach), out=reach)
    covered *= 2.0
    covered *= covered
    chord = _unit_vectors(places) @ (-2.0 * _unit_vectors(sites).T)
    chord += 2.0
    with np.errstate(invalid="ignore"):  # unknown places are NaN, and compare false
        fast = chord > covered
    if rtt.field == "site_rtt":
        np.fill_diagonal(fast, val=False)
    if not fast.any():
        return
    index = np.argwhere(fast)
    missing = chord[fast] - covered[fast]
    row, site = index[int(missing.argmax())].tolist()
    km = float(great_circle_km(places[row : row + 1], sites[site : site + 1])[0, 0])
    light = km * FIBRE_MS_PER_1000_KM / 1000.0
    compared = np.isfinite(chord)
    if rtt.field == "site_rtt":
        np.fill_diagonal(compared, val=False)
    pairs = int(compared.sum())
    hint = (
        "are these seconds? multiply by 1000"
        if len(index) * 2 > pairs
        else ("are the units and the coordinates right?")
    )
    warnings.warn(
        f"{rtt.field}: {len(index)} of {pairs} RTTs are below the time of light in fibre: from "
        f"{rtt.rows[row]!r} to {rtt.sites[site]!r} it is {float(shortest[row, site]):g} ms, and "
        f"light in fibre needs {light:.3g} ms for {km:,.0f} km; {hint}",
        UnitsWarning,
        stacklevel=6,
    )


def _unit_vectors(places: FloatArray) -> FloatArray:
    latitude, longitude = np.radians(places).T
    vectors: FloatArray = np.stack(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
        ],
        axis=1,
    )
    return vectors
