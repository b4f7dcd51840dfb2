"""Checks of arguments: each failure names the field, its value and what was expected.

Public constructors and functions check the *type* of every argument here and nowhere else, so that
a wrong argument gives :class:`~placement.errors.InputError` and never a bare ``TypeError``,
``AttributeError`` or ``OverflowError`` from the depth of a computation.
"""

from __future__ import annotations

import math
import numbers
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import numpy as np
import numpy.typing as npt

from placement.errors import InputError, nearest

if TYPE_CHECKING:
    import pandas as pd

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
BoolArray = npt.NDArray[np.bool_]

LARGEST_WHOLE = 2**63 - 1
"""Largest whole number accepted: the largest that an array of 64-bit integers can hold."""

LARGEST = 1e18
"""Largest RTT, count, price, coefficient or weight that is accepted, in its unit.

A score multiplies at most four of these (a cost weight, a price, a count, an RTT) and sums over
clients, sites and intervals. With this limit a score, and the square of one, stays below the
largest double, 1.8e308, for any instance that fits into memory.
"""

SMALLEST = 1e-9
"""Smallest number that others are divided by: hours, months, periods, ms of a bin."""

_NO_TEXT = re.compile("[\0\ud800-\udfff]")

_NUMERIC = "biufO"
"""Kinds of NumPy types that hold numbers; objects are converted one by one."""

_T = TypeVar("_T")
_Scalar = TypeVar("_Scalar", bound=np.generic)


def read_only(array: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
    """Return an array after making it read-only."""
    array.flags.writeable = False
    return array


def frozen(values: npt.ArrayLike) -> FloatArray:
    """Return a read-only, C-contiguous float64 copy of `values`."""
    return read_only(np.array(values, dtype=np.float64, order="C"))


def instance_of(value: object, kind: type[_T], field: str, expected: str) -> _T:
    """Check that `value` is an instance of `kind` and return it."""
    if not isinstance(value, kind):
        raise InputError(
            f"not {_article(kind.__name__)}", field=field, value=value, expected=expected
        )
    return value


def instances_of(values: object, kind: type[_T], field: str, expected: str) -> tuple[_T, ...]:
    """Check that every element of a list is an instance of `kind` and return them as a tuple."""
    return tuple(
        instance_of(value, kind, field, expected)
        for value in elements(values, field, f"a list, each element {expected}")
    )


def text(value: object, field: str, *, choices: Sequence[str] = ()) -> str:
    """Check that `value` is a string, not blank, and one of `choices` where they are given.

    NUL characters and halves of surrogate pairs are refused: no file can hold them.
    """
    expected = "one of " + ", ".join(map(repr, choices)) if choices else "a non-empty string"
    if not isinstance(value, str) or not value.strip():
        raise InputError("not a name", field=field, value=value, expected=expected)
    if not value.isprintable() and _NO_TEXT.search(value):
        raise InputError(
            "not a name",
            field=field,
            value=value,
            expected="text without NUL characters and without halves of surrogate pairs",
        )
    if choices and value not in choices:
        raise InputError(f"unknown {field}", field=field, value=value, expected=expected)
    return str(value)


def are_plain_names(values: tuple[object, ...]) -> TypeGuard[tuple[str, ...]]:
    """Return whether all are strings without faults at first sight; :func:`text` looks longer."""
    return all(type(one) is str and one.isprintable() and one.strip() for one in values)


def flag(value: object, field: str) -> bool:
    """Check that `value` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise InputError("not a truth value", field=field, value=value, expected="True or False")
    return bool(value)


def function(value: _T, field: str) -> _T:
    """Return `value` if it is callable, else raise InputError."""
    if not callable(value):
        raise InputError("not a function", field=field, value=value, expected="a callable object")
    return value


def mapping(value: object, field: str, expected: str = "a mapping") -> dict[str, object]:
    """Check that `value` is a mapping whose keys are strings and return it as a dictionary."""
    if not isinstance(value, Mapping):
        raise InputError("not a mapping", field=field, value=value, expected=expected)
    for key in value:
        if not isinstance(key, str):
            raise InputError("a key is not a name", field=field, value=key, expected=expected)
    return dict(value)


def elements(values: object, field: str, expected: str = "a list") -> tuple[object, ...]:
    """Check that `values` can be iterated over and return the elements as a tuple.

    Strings, bytes and mappings are refused: their elements are letters, numbers and keys.
    """
    if isinstance(values, str):
        raise InputError(
            "one string where a list was expected", field=field, value=values, expected=expected
        )
    if isinstance(values, (bytes, bytearray, Mapping)) or not isinstance(values, Iterable):
        raise InputError("not a list", field=field, value=values, expected=expected)
    try:
        iterator = iter(values)
    except TypeError:  # a NumPy array without axes says that it is iterable
        raise InputError("not a list", field=field, value=values, expected=expected) from None
    return tuple(iterator)


def suggest(name: str, known: Iterable[str], what: str) -> str:
    """Return the expected names in place of an unknown name: the closest known one, or a few."""
    known = tuple(known)
    if close := nearest(name, known):
        return f"{what}{close}"
    shown = ", ".join(map(repr, known[:8])) + (", …" if len(known) > 8 else "")
    return f"{what}: {shown}"


def unique_names(values: object, field: str) -> tuple[str, ...]:
    """Check that `values` are distinct, non-empty strings and return them as a tuple."""
    names: list[str] = []
    seen: set[str] = set()
    given = elements(values, field, "a list of names")
    if are_plain_names(given) and len(set(given)) == len(given):
        return given
    for value in given:
        name = text(value, field)
        if name in seen:
            raise InputError("duplicate name", field=field, value=value, expected="unique names")
        seen.add(name)
        names.append(name)
    return tuple(names)


def plain_number(value: _T) -> _T | float:
    """Return a NumPy scalar, which compares with a tuple element by element, as Python's number."""
    return value.item() if isinstance(value, np.number) and _is_number(value) else value


def _is_number(value: object) -> bool:
    """Return whether a value is a real number; truth values and durations of NumPy are none."""
    return isinstance(value, numbers.Real) and not isinstance(value, (bool, np.timedelta64))


def number(
    value: object,
    field: str,
    *,
    minimum: float = 0.0,
    maximum: float = math.inf,
    above: bool = False,
    infinite: bool = False,
) -> float:
    """Check one number, finite unless `infinite`, and return it as a float.

    Integers, floats, fractions and NumPy scalars are numbers; truth values and text are refused. It
    is at least `minimum`, or greater if `above`.
    """
    if type(value) is float and minimum < value <= maximum and value != math.inf:
        return value  # the usual case is quick
    if not isinstance(value, numbers.Real) or not _is_number(value):
        problem = "not a number"
    else:
        problem = "out of range"
        try:
            result = float(value)
        except OverflowError:
            result = math.inf
        in_range = minimum <= result <= maximum and not (above and result == minimum)
        if in_range and (math.isfinite(result) or (infinite and result == value)):
            return result
    raise InputError(
        problem,
        field=field,
        value=value,
        expected=("a" if infinite else "a finite")
        + " number"
        + _number_range(minimum, maximum, above),
    )


def whole(value: object, field: str, *, minimum: int | None = 0, maximum: int | None = None) -> int:
    """Check one whole number, or float without a fraction, and return it as an int.

    Truth values and text are refused. None as `minimum` and `maximum`: −`LARGEST_WHOLE` and
    `LARGEST_WHOLE`.
    """
    least = -LARGEST_WHOLE if minimum is None else minimum
    most = LARGEST_WHOLE if maximum is None else maximum
    if not isinstance(value, (int, np.integer, float, np.floating)) or not _is_number(value):
        problem = "not a number"
    elif not isinstance(value, (int, np.integer)) and not float(value).is_integer():
        problem = "not a whole number"
    elif not least <= value <= most:
        problem = "out of range"
        if value < least:
            minimum = least
        else:
            maximum = most
    else:
        return int(value)
    expected = "a whole number" + _range_words(minimum, maximum)
    raise InputError(problem, field=field, value=value, expected=expected)


def _range_words(minimum: float | None, maximum: float | None, above: bool = False) -> str:
    """Return a range of numbers in the words of an error message; None: no limit."""
    low = "" if minimum is None else f" {'>' if above else '>='} {_digits(minimum)}"
    high = "" if maximum is None else f" <= {_digits(maximum)}"
    return low + (" and" if low and high else "") + high


def _number_range(minimum: float, maximum: float, above: bool = False) -> str:
    return _range_words(
        None if minimum == -math.inf else minimum, None if maximum == math.inf else maximum, above
    )


def _digits(limit: float) -> str:
    return str(limit) if isinstance(limit, int) else f"{limit:g}"


def _article(name: str) -> str:
    return f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


def numbers_of(values: object, field: str) -> FloatArray:
    """Check that NumPy can turn `values` into floats and return a new array, whatever its shape."""
    try:
        given = np.asarray(values)
        if given.dtype.kind not in _NUMERIC:
            raise TypeError(f"they are of type {given.dtype}")
        return np.array(given, dtype=np.float64, order="C")
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(
            f"not a table of numbers ({error})", field=field, expected="numbers"
        ) from None


def nonnegative(
    values: object,
    field: str,
    axes: Sequence[tuple[str, Sequence[str]]],
    *,
    maximum: float = LARGEST,
) -> FloatArray:
    """Check an array of finite numbers >= 0 against named axes and return it frozen.

    `values` is anything that NumPy turns into an array of floats; rows and columns of a pandas
    table go by name. `axes` has the word of each axis ("client", "site", …) and the names along it,
    which give the shape. A `maximum` of ∞ accepts every finite number.
    """
    if is_frame(values):
        values = values_by_name(values, field, axes)
    array = numbers_of(values, field)
    shape = tuple(len(names) for _, names in axes)
    if array.shape != shape:
        wanted = " × ".join(f"{len(names)} {word}s" for word, names in axes)
        raise InputError("wrong shape", field=field, value=array.shape, expected=wanted)
    bad = ~(np.isfinite(array) & (array >= 0) & (array <= maximum))
    if bad.any():
        where = tuple(int(axis[0]) for axis in np.nonzero(bad))
        place = ", ".join(
            f"{word} {names[i]!r}" for (word, names), i in zip(axes, where, strict=True)
        )
        kind = "missing value" if math.isnan(array[where]) else "out of range"
        words = f"{kind} at {place}"
        expected = "a finite number" + _number_range(0.0, maximum)
        raise InputError(words, field=field, value=float(array[where]), expected=expected)
    array += 0.0  # turns -0.0 into 0.0, so that equal numbers have equal bytes
    return read_only(array)


# Values of pandas tables by the names of their rows and columns. pandas is never imported here

Axis = tuple[str, Sequence[str]]
"""Word for one element ("client", "site", …), and the names in the order wanted."""


def is_frame(values: object) -> TypeGuard[pd.DataFrame | pd.Series[Any]]:
    """Return whether `values` is a DataFrame or a Series; a program without pandas has none."""
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(values, (pandas.DataFrame, pandas.Series))


def axes_of(values: object) -> int:
    """Return the number of axes; 0 for rows of unequal length.

    A DataFrame has two axes, and one more where its index has two levels.
    """
    if is_frame(values):
        return int(values.ndim - 1 + values.index.nlevels)
    try:
        return np.ndim(values)  # type: ignore[arg-type]  # np.ndim takes anything
    except ValueError:
        return 0


def interval_labels(frame: pd.DataFrame | pd.Series[Any]) -> tuple[str, ...]:
    """Return the labels of the intervals, the first of two levels of an index, in its order."""
    if frame.index.nlevels < 2:
        return ()
    return tuple(map(str, frame.index.get_level_values(0).unique().tolist()))


def values_by_name(
    frame: pd.DataFrame | pd.Series[Any], field: str, axes: Sequence[Axis]
) -> FloatArray:
    """Return the values of a pandas table in the order of the names of `axes`; NaN for empty cells.

    `axes` are words and names, those of the columns last. A Series has one axis, a DataFrame two;
    with an index of two levels, interval and row, one axis more. A name that is given twice,
    missing or unknown is refused, and so is another number of axes.
    """
    if axes_of(frame) != len(axes):
        words = ", ".join(word for word, _ in axes)
        raise InputError(
            "a table with other axes", field=field, value=axes_of(frame), expected=f"axes: {words}"
        )
    columns = axes[-1] if frame.ndim == 2 else None
    rows = axes[-2] if columns else axes[-1]
    if frame.ndim == 2 and columns is not None:
        _same_names(frame.columns.tolist(), columns, field)
        frame = frame[list(columns[1])]
    if frame.index.nlevels == 1:
        _same_names(frame.index.tolist(), rows, field)
        return _numbers(frame.reindex(index=list(rows[1])), field)
    _same_names(interval_labels(frame), axes[0], field)
    of_row = np.array([str(label) for label in frame.index.get_level_values(0).tolist()])
    blocks = []
    for label in axes[0][1]:
        block = frame[of_row == label].droplevel(0)
        _same_names(block.index.tolist(), rows, f"{field}, interval {label!r}")
        blocks.append(_numbers(block.reindex(index=list(rows[1])), field))
    return np.stack(blocks)


def labels_by_name(
    series: pd.DataFrame | pd.Series[Any], field: str, rows: Axis
) -> tuple[str | None, ...]:
    """Return the cells of a Series of labels in the order of given names."""
    if series.ndim != 1 or series.index.nlevels != 1:
        raise InputError(
            "not a Series", field=field, value=series.shape, expected=f"a {rows[0]} per row"
        )
    _same_names(series.index.tolist(), rows, field)
    place = {name: i for i, name in enumerate(series.index.tolist())}
    cells, blank = series.to_numpy(dtype=object), series.isna().to_numpy()
    return tuple(None if blank[place[name]] else str(cells[place[name]]) for name in rows[1])


def _same_names(found: Sequence[object], wanted: Axis, field: str) -> None:
    word, names = wanted
    seen = set(unique_names(found, field))
    missing = [name for name in names if name not in seen]
    if missing:
        words = f"{len(missing)} of {len(names)} {word}s missing"
        expected = "every one of them: rows and columns of a pandas table go by name"
        raise InputError(words, field=field, value=missing[0], expected=expected)
    for name in sorted(seen - set(names)):
        expected = "one of " + ", ".join(map(repr, names[:8])) + (", …" if names[8:] else "")
        raise InputError(f"unknown {word}", field=field, value=name, expected=expected)


def _numbers(frame: pd.DataFrame | pd.Series[Any], field: str) -> FloatArray:
    try:
        return frame.to_numpy(dtype=np.float64, na_value=np.nan)
    except (TypeError, ValueError) as error:
        raise InputError(f"not numbers ({error})", field=field, expected="numbers") from None
