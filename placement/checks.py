"""Checks of what users hand in: each failure names the element, its value and what was expected."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from placement.errors import InputError

__all__ = ["BoolArray", "FloatArray", "IntArray", "frozen", "nonnegative", "number", "unique_names"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]


def frozen(values: npt.ArrayLike) -> FloatArray:
    """Return a read-only, C-contiguous float64 copy of `values`."""
    array = np.array(values, dtype=np.float64, order="C")
    array.flags.writeable = False
    return array


def unique_names(values: Iterable[object], field: str) -> tuple[str, ...]:
    """Check that `values` are distinct, non-empty strings and return them as a tuple."""
    if isinstance(values, str):
        raise InputError(
            "one string where a list of names was expected",
            field=field,
            value=values,
            expected="a list of names",
        )
    names = []
    seen = set()
    for value in values:
        if not isinstance(value, str) or not value.strip():
            raise InputError("not a name", field=field, value=value, expected="a non-empty string")
        if value in seen:
            raise InputError("duplicate name", field=field, value=value, expected="unique names")
        seen.add(value)
        names.append(str(value))
    return tuple(names)


def number(value: object, field: str, *, minimum: float = 0.0, above: bool = False) -> float:
    """Check one finite number that is at least (`above`: greater than) `minimum`."""
    relation = ">" if above else ">="
    expected = f"a finite number {relation} {minimum:g}"
    try:
        result = float(value)  # type: ignore[arg-type]  # a bad type is what is caught here
    except (TypeError, ValueError):
        raise InputError("not a number", field=field, value=value, expected=expected) from None
    if not math.isfinite(result) or result < minimum or (above and result <= minimum):
        raise InputError("out of range", field=field, value=value, expected=expected)
    return result


def nonnegative(
    values: object,
    field: str,
    axes: Sequence[tuple[str, Sequence[str]]],
) -> FloatArray:
    """Check an array of finite numbers >= 0 against named axes and return it frozen.

    Parameters
    ----------
    values
        Anything NumPy turns into an array of floats.
    field
        Name for the error messages.
    axes
        Per axis its word ("client", "site", …) and the names along it, which give the shape.

    Raises
    ------
    InputError
        With the wrong shape, or naming the first element that is NaN, infinite or negative.
    """
    try:
        array = np.array(values, dtype=np.float64, order="C")
    except (TypeError, ValueError) as error:
        raise InputError(
            f"not a table of numbers ({error})", field=field, expected="numbers"
        ) from None
    shape = tuple(len(names) for _, names in axes)
    if array.shape != shape:
        wanted = " × ".join(f"{len(names)} {word}s" for word, names in axes)
        raise InputError("wrong shape", field=field, value=array.shape, expected=wanted)
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        where = tuple(int(axis[0]) for axis in np.nonzero(bad))
        place = ", ".join(
            f"{word} {names[i]!r}" for (word, names), i in zip(axes, where, strict=True)
        )
        kind = "missing value" if np.isnan(array[where]) else "out of range"
        raise InputError(
            f"{kind} at {place}",
            field=field,
            value=float(array[where]),
            expected="a finite number >= 0",
        )
    array += 0.0  # turns -0.0 into 0.0, so that equal numbers have equal bytes
    array.flags.writeable = False
    return array
