"""Reading JSON and TOML by key, with errors that name file and key."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import re
import sys
import tomllib
import typing
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType, NoneType, SimpleNamespace, UnionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from placement.errors import InputError, refused
from placement.io.formats.files import read_text

if TYPE_CHECKING:
    from placement.support.checks import FloatArray

_SEVERAL = (Mapping, Sequence, tuple)
_FLOAT = "$float"
_FLOATS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}
_DEPTH = 200
_PATH = 80
_BITS = 1024  # of the largest double
_DIGITS = 310  # of the largest double, with a sign
_NODES = (dict, list)

# Text in which a number may be beyond the doubles, or a character may be half of one.
_SUSPECT = re.compile(r"[0-9]{309}|[eE]\+?[0-9]{3}|\\u[dD][89a-fA-F]")
_LONG = re.compile(r"[0-9]{1000,}")


def read_json(path: str | os.PathLike[str], expected: str = "") -> object:
    """Return the value of a JSON file, as :func:`parse_json` does for its text."""
    return parse_json(read_text(path), os.fspath(path), expected)


def parse_json(text: str, source: str, expected: str = "") -> object:
    """Return the value of a JSON text: the one place where this package reads JSON of others.

    `source` is the file (and row) it came from, and `expected` what the text should have been, for
    messages. What other readers of JSON would take differently is refused by its key: NaN and
    infinity, numbers that no double holds, a key given twice, half of a surrogate pair, more than
    200 levels of nesting. Linear in the text.
    """

    def refuse(constant: str) -> NoReturn:
        raise InputError("not JSON", source=source, value=constant, expected="finite numbers only")

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        table = dict(pairs)
        if len(table) != len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise InputError("a key given twice", source=source, field=twice, expected="once")
        return table

    suspect = _SUSPECT.search(text) is not None
    try:
        value: object = json.loads(
            text,
            parse_constant=refuse,
            object_pairs_hook=once,
            # calls for every number cost time, and few texts have a number that long
            parse_int=_whole if suspect else None,
            parse_float=_double if suspect else None,
        )
    except json.JSONDecodeError as error:
        where = f"row {error.lineno}"
        where = source if f", {where}" in source else f"{source}, {where}"
        message = f"not JSON ({error.msg}, column {error.colno})"
        raise InputError(message, source=where, expected=expected) from None
    except RecursionError:
        raise InputError("nested too deeply", source=source) from None
    _check_tree(value, source, None, 0, suspect=suspect)
    return value


def _parse_toml(text: str, source: str, expected: str) -> dict[str, object]:
    try:
        try:
            value = tomllib.loads(text, parse_float=_double)
        except tomllib.TOMLDecodeError:
            raise
        except ValueError:  # more digits than Python reads: an infinity shows where
            value = tomllib.loads(_LONG.sub("inf", text), parse_float=_double)
    except ValueError as error:
        raise InputError(f"not TOML ({error})", source=source, expected=expected) from None
    except RecursionError:
        raise InputError("nested too deeply", source=source) from None
    _check_tree(value, source, None, 0, suspect=True)
    return value


class _TooLarge:
    """A number that no double holds, until the key that holds it is known."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        if len(self.text) <= 20:
            return self.text
        return f"{self.text[:20]}… ({len(self.text):,} characters)"


def _whole(text: str) -> object:
    """Return an integer of JSON; one beyond the largest double as a mark."""
    return _TooLarge(text) if len(text) > _DIGITS or math.isinf(float(text)) else int(text)


def _double(text: str) -> object:
    """Return a number of JSON or TOML; one beyond the largest double, or NaN, as a mark."""
    value = float(text)
    return value if math.isfinite(value) else _TooLarge(text)


_At = tuple["_At | None", str | int]  # a place: the one around it, and its key or position


def _check_tree(value: object, source: str, at: _At | None, depth: int, *, suspect: bool) -> None:
    """Refuse deep nesting and, in a suspect tree, what the marks and half characters stand for."""
    if depth > _DEPTH:
        expected = f"at most {_DEPTH} levels"
        raise InputError("nested too deeply", source=source, field=_path(at), expected=expected)
    if isinstance(value, dict):
        for key, item in value.items():
            if suspect:
                _check_tree(key, source, at, depth, suspect=True)
            if suspect or isinstance(item, _NODES):
                _check_tree(item, source, (at, key), depth + 1, suspect=suspect)
    elif isinstance(value, list):
        for i, item in enumerate(value):
            if suspect or isinstance(item, _NODES):
                _check_tree(item, source, (at, i), depth + 1, suspect=suspect)
    elif isinstance(value, _TooLarge) or (isinstance(value, int) and value.bit_length() > _BITS):
        number = value if isinstance(value, _TooLarge) else _TooLarge(hex(value))
        words, expected = "a number out of range", "a finite number that a double holds"
        raise refused(source, _path(at), words, number, expected)
    elif isinstance(value, str):
        try:
            encode_text(value)
        except InputError as error:
            raise refused(source, _path(at), error.message, error.value, error.expected) from None


def _path(at: _At | None) -> str:
    """Return the dotted path of a place, its end left out where it is long."""
    path = ""
    while at is not None:
        at, key = at
        path = (f"[{key}]" if isinstance(key, int) else f".{key[:_PATH]}") + path
    path = path.removeprefix(".")
    return path if len(path) <= _PATH else f"{path[:_PATH]}…"


def read_document(path: str | os.PathLike[str], expected: str = "") -> Document:
    """Read a JSON or (by its suffix) TOML file whose top level is a table of keys.

    `expected` says what the file should be, in the error about a file that is neither.
    """
    source, text = os.fspath(path), read_text(path)
    toml = Path(path).suffix.lower() == ".toml"
    value = (_parse_toml if toml else parse_json)(text, source, expected)
    if not isinstance(value, dict):
        raise InputError("not an object", source=source, expected="a JSON object with named keys")
    return Document(source, "", value)


def encode_json(value: object) -> bytes:
    """Return `value` as indented UTF-8 JSON with a final newline; floats read back exactly."""
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
    what they were through :func:`unjsonable`. Anything else is refused with its place.
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
    words = "cannot be written as JSON"
    expected = "numbers, text, lists and mappings"
    raise InputError(words, field=field, value=type(value).__name__, expected=expected)


def _plain(value: bool | str | int) -> bool | str | int:
    """Strip a subclass (an enumeration, say) down to the built-in type."""
    return str(value) if isinstance(value, str) else int(value)


def unjsonable(value: object) -> object:
    """Undo :func:`jsonable` (sequences come back as lists).

    ValueError for ``{"$float": …}`` with anything but "nan", "inf" or "-inf".
    """
    if isinstance(value, dict):
        if set(value) == {_FLOAT}:
            name = value[_FLOAT]
            if not isinstance(name, str) or name not in _FLOATS:
                raise ValueError(name)
            return _FLOATS[name]
        return {key: unjsonable(item) for key, item in value.items()}
    if isinstance(value, list):
        return [unjsonable(item) for item in value]
    return value


def finite(value: float) -> float | None:
    """Return a number, or None where it is not finite, which JSON does not know."""
    return float(value) if math.isfinite(value) else None


_Choice = TypeVar("_Choice", bound=Enum)
_Record = TypeVar("_Record")


def record_document(value: object) -> Any:
    """Return the fields of a dataclass as JSON: texts, numbers, enumerations, arrays, dataclasses.

    Infinity becomes ``"inf"``, as :meth:`Document.number` reads it; :meth:`Document.record` reads
    the whole back.
    """
    if dataclasses.is_dataclass(value):
        fields = dataclasses.fields(value)
        return {field.name: record_document(getattr(value, field.name)) for field in fields}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, tuple):
        return [record_document(item) for item in value]
    if isinstance(value, float):
        return "inf" if math.isinf(value) else float(value)
    return value.tolist() if hasattr(value, "tolist") else value


@dataclass(frozen=True)
class Document:
    """A table of keys from a file."""

    source: str  #: the file, for messages
    place: str  #: dotted path of this table in the file; empty at the top
    values: Mapping[str, object]  #: the keys and what they hold

    def key(self, key: str) -> str:
        """Return the dotted path of a key, for messages."""
        return f"{self.place}.{key}" if self.place else key

    def refuse(self, key: str, message: str, expected: str = "") -> InputError:
        """Return the error for a key whose value is no good."""
        given = {"value": self.values[key]} if self.has(key) else {}
        field = self.key(key)
        return InputError(message, source=self.source, field=field, expected=expected, **given)

    def need(self, holds: object, key: str, message: str, expected: str = "") -> None:
        """Refuse the value of a key unless the condition holds."""
        if not holds:
            raise self.refuse(key, message, expected)

    def only(
        self, known: Iterable[str], gone: Mapping[str, tuple[str, str]] = MappingProxyType({})
    ) -> None:
        """Refuse unknown keys, which are most often typing mistakes.

        Of keys that are `gone`: the message, and what took their place.
        """
        import difflib

        known = tuple(known)
        for key in self.values:
            if key in gone:
                raise self.refuse(key, *gone[key])
            if key not in known:
                close = difflib.get_close_matches(key, known, n=1)
                words = "unknown key"
                expected = f"{close[0]!r}?" if close else "one of " + ", ".join(known)
                raise InputError(words, source=self.source, field=self.key(key), expected=expected)

    def without(self, keys: Collection[str]) -> Document:
        """Return the table without some keys."""
        kept = {key: value for key, value in self.values.items() if key not in keys}
        return dataclasses.replace(self, values=kept)

    def has(self, key: str) -> bool:
        """Return whether a key is there and not null."""
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

    def truth(self, key: str, default: bool | None = None) -> bool:
        """Return a truth value; `default` when the key is absent."""
        value = self._given(key) if default is None or self.has(key) else default
        if not isinstance(value, bool):
            raise self.refuse(key, "not a truth value", "true or false")
        return value

    def number(self, key: str, default: float | None = None, *, infinite: bool = False) -> float:
        """Return a finite number; with `infinite` also infinity, which JSON writes as ``"inf"``."""
        if default is not None and not self.has(key):
            return default
        value = self._given(key)
        if infinite and value == "inf":
            return math.inf
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.refuse(key, "not a number", "a number")
        return float(value)

    def choice(self, key: str, kind: type[_Choice]) -> _Choice:
        """Return a member of an enumeration, by its value."""
        try:
            return kind(self.text(key))
        except ValueError:
            known = ", ".join(str(one.value) for one in kind)
            raise self.refuse(key, f"not a {key}", f"one of {known}") from None

    def record(self, kind: type[_Record]) -> _Record:
        """Return the dataclass whose fields :func:`record_document` wrote into this table.

        Every field must be there, except one whose default is None; other keys are refused.
        """
        for field in dataclasses.fields(kind):  # type: ignore[arg-type]  # a dataclass
            if field.default is not None:
                self._given(field.name)
        return kind(**self.fields(kind))

    def fields(self, kind: type, names: Iterable[str] = ()) -> dict[str, Any]:
        """Return fields of a dataclass that are there, each read as its type says.

        `names` are the fields to read: numbers, truth values, texts, enumerations, sequences of
        text, mappings from text to one of them, and unions. Without any it is all: other keys are
        refused, and so is a table without a field that has no default.
        """
        every = {field.name: field for field in dataclasses.fields(kind)}
        if not names:
            self.only(every)
            for name, field in every.items():
                if field.default is field.default_factory:  # neither is there
                    self._given(name)
        # types of other fields may be imported for type checkers only
        types = {name: every[name].type for name in names or every}
        asked = SimpleNamespace(__annotations__=types)
        hints = typing.get_type_hints(asked, vars(sys.modules[kind.__module__]))
        return {name: _typed(self, name, hints[name]) for name in hints if self.has(name)}

    def array(self, key: str) -> FloatArray:
        """Return numbers in rows of equal length; null is NaN."""
        import numpy as np

        try:
            return np.array(self.values.get(key), dtype=np.float64)
        except (TypeError, ValueError):
            raise self.refuse(key, "not a table of numbers", "rows of equal length") from None

    def plain(self, key: str) -> object:
        """Return a value of any type that :func:`jsonable` wrote."""
        try:
            return unjsonable(self._given(key))
        except ValueError as error:
            words = 'not a number of the form {"$float": …}'
            expected = " or ".join(map(repr, _FLOATS))
            raise refused(self.source, self.key(key), words, error.args[0], expected) from None

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

    def wholes(self, key: str) -> tuple[int, ...]:
        """Return a list of whole numbers."""
        value = self._given(key)
        if not isinstance(value, list) or any(type(item) is not int for item in value):
            raise self.refuse(key, "not a list of whole numbers", "a list of whole numbers")
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

    def check_format(self, expected: str, version: int, what: str = "") -> None:
        """Refuse files of another kind or of a later version; `what` says the kind in words."""
        if self.values.get("format") != expected:
            words = "a file of another kind" if self.has("format") else "the file names no format"
            raise self.refuse(
                "format", words, f"{what} (format {expected!r})" if what else repr(expected)
            )
        found = self.whole("version")
        if found > version or found < 1:
            raise self.refuse("version", "a version this release cannot read", f"1 to {version}")


def _args(hint: Any) -> tuple[Any, ...]:
    """Return the types of a union; none of any other type."""
    return typing.get_args(hint) if typing.get_origin(hint) in (typing.Union, UnionType) else ()


def _typed(document: Document, key: str, hint: Any) -> object:
    """Return a value, read as a type says."""
    if kinds := [part for part in _args(hint) if part is not NoneType]:
        several = isinstance(document.values.get(key), dict | list)
        fitting = [one for one in kinds if several == (typing.get_origin(one) in _SEVERAL)]
        return _typed(document, key, (fitting or kinds)[0])
    origin = typing.get_origin(hint)
    if origin is Mapping:
        table, (_, inner) = document.table(key), typing.get_args(hint)
        return {name: _typed(table, name, inner) for name in table.values}
    if origin in (tuple, Sequence):
        inner, *_ = typing.get_args(hint)
        if dataclasses.is_dataclass(inner):
            return tuple(
                one.record(typing.cast("type[object]", inner)) for one in document.tables(key)
            )
        return document.wholes(key) if inner is int else document.names(key)
    if hint is float:
        return document.number(key, infinite=True)
    if hint in (int, bool):
        return document.whole(key) if hint is int else document.truth(key)
    if hint is str or origin is typing.Literal:
        return document.text(key)
    if origin is not None:
        return document.array(key)
    if dataclasses.is_dataclass(hint):
        return document.table(key).record(typing.cast("type[object]", hint))
    return document.choice(key, hint)
