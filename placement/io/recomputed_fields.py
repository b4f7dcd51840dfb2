"""Fields of a file that can be recomputed: the written value must equal the recomputed one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from placement.errors import refused
from placement.io.formats.document import Document

_AGREE = 1e-9
"""Largest difference of two numbers that agree, relative and (for numbers near 0) absolute."""

_Difference = tuple[str, str, object, object]  # path, message, found, expected


def check_recomputed(
    document: Document, expected: Mapping[str, object], whose: str, *, defaults: bool = False
) -> None:
    """Refuse a table of a file that holds anything but recomputed values.

    Parameters
    ----------
    document
        The table; a key may be missing there, but inside the value of a key only with `defaults`.
    expected
        Every key that may be there, with its recomputed value, JSON-like.
    whose
        What the values belong to, for the message ("this configuration").
    defaults
        Whether a missing key, at any depth, stands for a default.

    Raises
    ------
    InputError
        For a key that is not expected, and for the first value that differs by more than a relative
        1e-9; the message names file, key, value and what was recomputed.

    Notes
    -----
    Linear in the table. Rows of a ranking whose numbers agree may have changed places, because two
    machines may round the values of two equals differently.
    """
    document.only(expected)
    for key, value in expected.items():
        if key not in document.values:
            continue
        different = _difference(document.values[key], value, defaults=defaults)
        if different is not None:
            path, message, found, recomputed = different
            words = message.format(whose)
            raise refused(document.source, document.key(key) + path, words, found, repr(recomputed))


def _difference(found: object, expected: object, *, defaults: bool = False) -> _Difference | None:
    """Return the first place where two JSON-like values differ, or None."""
    inner: list[tuple[str, object, object]] = []
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in (*expected, *found):
            if key in found and key not in expected:
                return f".{key}", "unknown key", found[key], None
            if key in found:
                inner.append((f".{key}", found[key], expected[key]))
            elif not defaults:
                return f".{key}", "missing key", None, expected[key]
    elif isinstance(expected, list) and isinstance(found, list) and len(found) == len(expected):
        pairs = zip(found, expected, strict=True)
        if not _swapped(found, expected):
            inner = [(f"[{i}]", one, other) for i, (one, other) in enumerate(pairs)]
    elif isinstance(expected, (int, float)) and not isinstance(expected, bool):
        number = isinstance(found, (int, float)) and not isinstance(found, bool)
        if not number or not math.isclose(found, expected, rel_tol=_AGREE, abs_tol=_AGREE):  # type: ignore[arg-type]  # a number
            return "", "not the value of {}", found, expected
    elif type(found) is not type(expected) or found != expected:
        return "", "not the value of {}", found, expected
    for place, one, other in inner:
        different = _difference(one, other, defaults=defaults)
        if different is not None:
            return (place + different[0], *different[1:])
    return None


def _swapped(found: Sequence[object], expected: Sequence[object]) -> bool:
    """Return whether two rankings have the same rows, and differ only in the order of ties."""
    rows = [*found, *expected]
    if not all(isinstance(row, dict) and isinstance(row.get("leader"), str) for row in rows):
        return False

    def order(row: object) -> str:
        return str(row["leader"]) if isinstance(row, dict) else ""

    def numbers(row: object) -> dict[str, object]:
        items = row.items() if isinstance(row, dict) else ()
        return {key: value for key, value in items if not isinstance(value, str)}

    same = zip(sorted(found, key=order), sorted(expected, key=order), strict=True)
    places = zip(map(numbers, found), map(numbers, expected), strict=True)
    return not any(_difference(a, b) for a, b in same) and not any(
        _difference(a, b) for a, b in places
    )
