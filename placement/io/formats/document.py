"""Reading JSON and TOML by key, with errors that name file and key."""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from placement.errors import InputError

__all__ = ["Document", "encode_json", "jsonable", "read_document", "read_text", "unjsonable"]

_FLOAT = "$float"
_DEPTH = 200


def read_text(path: str | os.PathLike[str]) -> str:
    """Return a file's text (UTF-8, byte-order mark allowed).

    Raises
    ------
    InputError
        When there is no such file, it cannot be read, or it is not UTF-8.
    """
    source = os.fspath(path)
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        raise InputError("no such file", source=source) from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", source=source) from None
    except UnicodeDecodeError as error:
        raise InputError(
            f"not text: byte {error.start} is not UTF-8",
            source=source,
            value=error.object[error.start : error.start + 1],
            expected="UTF-8",
        ) from None


def read_json(path: str | os.PathLike[str]) -> object:
    """Return the value of a JSON file; NaN and infinity, which JSON does not have, are refused."""
    source = os.fspath(path)

    def refuse(constant: str) -> NoReturn:
        raise InputError("not JSON", source=source, value=constant, expected="finite numbers only")

    try:
        value: object = json.loads(read_text(path), parse_constant=refuse)
    except json.JSONDecodeError as error:
        raise InputError(
            f"not JSON ({error.msg}, column {error.colno})", source=f"{source}, row {error.lineno}"
        ) from None
    except RecursionError:
        raise InputError("nested too deeply", source=source) from None
    return value


def read_document(path: str | os.PathLike[str]) -> Document:
    """Read a JSON or (by its suffix) TOML file whose top level is a table of keys."""
    source = os.fspath(path)
    value: object
    if Path(path).suffix.lower() == ".toml":
        try:
            value = tomllib.loads(read_text(path))
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"not TOML ({error})", source=source) from None
    else:
        value = read_json(path)
    if not isinstance(value, dict):
        raise InputError("not an object", source=source, expected="a JSON object with named keys")
    return Document(source, "", value)


def encode_json(value: object) -> bytes:
    """Return `value` as indented UTF-8 JSON with a final newline; floats read back exactly.

    Raises
    ------
    InputError
        For text that UTF-8 cannot write (half of a surrogate pair).
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1) + "\n"
    return encode_text(text)


def encode_text(text: str) -> bytes:
    """Return UTF-8, or raise an InputError that shows the piece that is not text."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        piece = text[max(0, error.start - 10) : error.end + 10]
        raise InputError("not text", value=piece, expected="text that UTF-8 can write") from None


def jsonable(value: object, field: str, depth: int = 0) -> object:
    """Turn a JSON-like value (NumPy numbers and arrays allowed) into plain JSON.

    Tuples and arrays become lists; NaN and infinities become ``{"$float": "nan"}`` and read back as
    what they were through :func:`unjsonable`.

    Raises
    ------
    InputError
        For anything else, naming where it stands.
    """
    if depth > _DEPTH:
        raise InputError("nested too deeply", field=field)
    if value is None or isinstance(value, (bool, str, int)):
        return value if value is None or type(value) in (bool, str, int) else _plain(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {_FLOAT: repr(float(value))}
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str) or key == _FLOAT:
                raise InputError("not a key", field=field, value=key, expected="a string")
        return {key: jsonable(item, f"{field}.{key}", depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        items: Sequence[object] = (
            sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
        )
        return [jsonable(item, f"{field}[{i}]", depth + 1) for i, item in enumerate(items)]
    import numpy as np

    if isinstance(value, np.generic):
        return jsonable(value.item(), field, depth + 1)
    if isinstance(value, np.ndarray):
        return jsonable(value.tolist(), field, depth + 1)
    raise InputError(
        "cannot be written as JSON",
        field=field,
        value=type(value).__name__,
        expected="numbers, text, lists and mappings",
    )


def _plain(value: bool | str | int) -> bool | str | int:
    """Strip a subclass (an enumeration, say) down to the built-in type."""
    return str(value) if isinstance(value, str) else int(value)


def unjsonable(value: object) -> object:
    """Undo :func:`jsonable` (sequences come back as lists)."""
    if isinstance(value, dict):
        if set(value) == {_FLOAT}:
            return float(value[_FLOAT])
        return {key: unjsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unjsonable(item) for item in value]
    return value


@dataclass(frozen=True)
class Document:
    """A table of keys from a file.

    Attributes
    ----------
    source
        The file, for messages.
    place
        Dotted path of this table in the file; empty at the top.
    values
        The keys and what they hold.
    """

    source: str
    place: str
    values: Mapping[str, object]

    def key(self, key: str) -> str:
        """Return the dotted path of a key, for messages."""
        return f"{self.place}.{key}" if self.place else key

    def refuse(self, key: str, message: str, expected: str = "") -> InputError:
        """Return the error for a key whose value is no good."""
        return InputError(
            message,
            source=self.source,
            field=self.key(key),
            value=self.values.get(key),
            expected=expected,
        )

    def only(self, known: Iterable[str]) -> None:
        """Refuse keys that nobody knows, which are most often typing mistakes."""
        import difflib

        known = tuple(known)
        for key in self.values:
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                raise InputError(
                    "unknown key",
                    source=self.source,
                    field=self.key(key),
                    expected=f"{close[0]!r}?" if close else "one of " + ", ".join(known),
                )

    def has(self, key: str) -> bool:
        """Whether a key is there and not null."""
        return self.values.get(key) is not None

    def _given(self, key: str) -> object:
        if not self.has(key):
            raise InputError("missing key", source=self.source, field=self.key(key))
        return self.values[key]

    def text(self, key: str, default: str | None = None) -> str:
        """Return a string; `default` when the key is absent."""
        if default is not None and not self.has(key):
            return default
        value = self._given(key)
        if not isinstance(value, str):
            raise self.refuse(key, "not text", "a string")
        return value

    def number(self, key: str, default: float | None = None) -> float:
        """Return a number; ``"inf"`` stands for infinity, which JSON does not have."""
        if default is not None and not self.has(key):
            return default
        value = self._given(key)
        if value == "inf":
            return math.inf
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.refuse(key, "not a number", "a number")
        return float(value)

    def whole(self, key: str) -> int:
        """Return a whole number."""
        value = self._given(key)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self.refuse(key, "not a whole number", "a whole number")
        return value

    def names(self, key: str, default: tuple[str, ...] | None = None) -> tuple[str, ...]:
        """Return a list of strings."""
        if default is not None and not self.has(key):
            return default
        value = self._given(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.refuse(key, "not a list of names", "a list of strings")
        return tuple(value)

    def table(self, key: str) -> Document:
        """Return a table inside this one; an empty one when the key is absent."""
        value = self.values.get(key)
        if value is None:
            value = {}
        if not isinstance(value, dict):
            raise self.refuse(key, "not a table of keys", "named keys")
        return Document(self.source, self.key(key), value)

    def tables(self, key: str) -> tuple[Document, ...]:
        """Return a list of tables; empty when the key is absent."""
        value = self.values.get(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.refuse(key, "not a list of tables", "a list of objects with named keys")
        return tuple(
            Document(self.source, f"{self.key(key)}[{i}]", item) for i, item in enumerate(value)
        )

    def check_format(self, expected: str, version: int) -> None:
        """Refuse files of another kind or of a later version."""
        if self.values.get("format") != expected:
            raise self.refuse("format", "a file of another kind", repr(expected))
        found = self.whole("version")
        if found > version or found < 1:
            raise self.refuse("version", "a version this release cannot read", f"1 to {version}")
