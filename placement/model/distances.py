"""Distances on the globe, and the time that light in fibre takes for them."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placement.errors import InputError
from placement.io.formats.frame_axes import is_frame, values_by_name
from placement.support.checks import FloatArray, frozen

__all__ = [
    "EARTH_RADIUS_KM",
    "FIBRE_MS_PER_1000_KM",
    "checked_coordinates",
    "great_circle_km",
    "places_on_globe",
]

_DEGREES = ("column", ("lat", "lon"))

EARTH_RADIUS_KM = 6371.0088
"""Mean radius of the Earth (IUGG), km."""

FIBRE_MS_PER_1000_KM = 10.0
"""Round trip of light in fibre, at two thirds of c, over 1,000 km of great circle, in ms."""


def great_circle_km(origin: npt.ArrayLike, destination: npt.ArrayLike) -> FloatArray:
    """Return the great-circle distance between every two of two lists of points, by haversines.

    d = 2 R asin √( sin²(Δφ/2) + cos φ₁ cos φ₂ sin²(Δλ/2) )

    Parameters
    ----------
    origin, destination
        Latitude and longitude in degrees, shapes (n, 2) and (m, 2).

    Returns
    -------
    FloatArray
        Kilometres, shape (n, m).

    Raises
    ------
    InputError
        For another shape, or coordinates that are not on the globe (NaN included).
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
    """Return points as an array of latitudes and longitudes in degrees, shape (n, 2).

    Raises
    ------
    InputError
        For another shape, or coordinates that are not on the globe (NaN included).
    """
    points = np.asarray(values, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2:
        raise InputError("wrong shape", field=field, value=points.shape, expected="(n, 2)")
    outside = ~(np.abs(points) <= np.array([90.0, 180.0]))  # NaN is outside, too
    if outside.any():
        row = int(np.nonzero(outside)[0][0])
        raise InputError(
            f"point {row} is not on the globe",
            field=field,
            value=tuple(map(float, points[row])),
            expected="latitude within ±90 and longitude within ±180 degrees",
        )
    return points


def checked_coordinates(
    values: FloatArray | None, field: str, names: tuple[str, ...]
) -> FloatArray | None:
    """Return latitudes and longitudes as an array, shape (names, 2), or refuse them.

    Parameters
    ----------
    values
        Degrees, NaN where unknown; a pandas table goes by name. None: there are none.
    field
        Name for messages; its first word names the rows.
    names
        Of the places.

    Raises
    ------
    InputError
        For no numbers, another shape, and a place that is not on the globe.
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
    limits = np.array([90.0, 180.0])
    outside = np.abs(array) > limits  # NaN, "unknown", compares false
    if outside.any():
        row = int(np.nonzero(outside)[0][0])
        raise InputError(
            f"coordinates of {names[row]!r} are not on the globe",
            field=field,
            value=tuple(map(float, array[row])),
            expected="latitude within ±90 and longitude within ±180 degrees",
        )
    return array
