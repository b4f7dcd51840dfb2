"""Values of pandas tables by the names of their rows and columns. pandas is never imported here."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

import numpy as np

from placement.errors import InputError
from placement.support.checks import FloatArray, unique_names

if TYPE_CHECKING:
    import pandas as pd

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
    """Return the values of a pandas table in the order of given names.

    Parameters
    ----------
    frame
        A Series for one axis, a DataFrame for two; with an index of two levels, interval and row,
        one axis more.
    field
        Name for the error messages.
    axes
        Words and names: those of the columns last, those of the rows before them.

    Returns
    -------
    FloatArray
        As many axes as `axes`; NaN where a cell is empty.

    Raises
    ------
    InputError
        When rows or columns have no names, a name is given twice, missing or unknown, or the number
        of axes is another.
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
    """Return the cells of a Series of labels in the order of given names.

    Raises
    ------
    InputError
        As :func:`values_by_name`.
    """
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
