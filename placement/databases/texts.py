"""Texts of configurations: JSON, keys that readers know, and comments with a meaning.

Consistency levels belong to requests, and the primary of PostgreSQL is in no setting. The writer
puts them into one comment, as JSON, and the reader takes them from there. A statement that may only
run after another step is a comment that begins with ``later:``, so that a file that is run at once
does no harm; the reader takes it as a statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping

from placement.databases.system import Texts
from placement.errors import refused
from placement.io.formats.document import Document, parse_json

_LINE = re.compile(r"^\s*(?:--|#)\s*placement:\s*(\{.*\})\s*$", re.MULTILINE)
_LATER = re.compile(r"^-- later: ", re.MULTILINE)


def json_text(value: object) -> str:
    """Return a value as JSON text with one key per line, in ASCII."""
    return json.dumps(value, indent=1) + "\n"


def json_values(texts: Texts) -> list[tuple[str, object]]:
    """Return the JSON value of every text, with the name of its file."""
    return [(source, parse_json(text, source)) for source, text in texts]


def one_document(source: str, value: object, expected: str, place: str = "") -> Document:
    """Return a value as a table of keys, or raise an InputError when it is none."""
    if not isinstance(value, dict):
        raise refused(source, place, "not a table of keys", value, expected)
    return Document(source, place, value)


def check_keys(
    table: Document,
    used: Iterable[str],
    ignored: Iterable[str] = (),
    without_effect: Mapping[str, Collection[object]] | None = None,
) -> None:
    """Refuse the keys of a table that may change what it means: every reader calls this.

    Keys that are `ignored`, a list in the module of the reader, change neither where replicas are
    nor what they do; those `without_effect` change nothing at some values, as null does.
    """
    for key, good in (without_effect or {}).items():
        value = table.values.get(key)
        if value is not None and (type(value), value) not in [(type(one), one) for one in good]:
            expected = " or ".join([*map(json.dumps, good), "no such key"])
            raise table.refuse(key, "a key that changes what the rest means", expected)
    table.only((*used, *ignored, *(without_effect or ())))


def later(statement: str) -> str:
    """Return a statement of one line as a comment that :func:`with_later` takes for one."""
    return f"-- later: {statement}"


def with_later(text: str) -> str:
    """Return a text with the statements that wait as statements."""
    return _LATER.sub("", text)


def remark(values: Mapping[str, object], mark: str = "--") -> str:
    """Return the comment; JSON in ASCII, so that no name leaves the line."""
    return f"{mark} placement: {json.dumps(dict(values))}"


def remarked(text: str, source: str) -> Document:
    """Return the values of the last such comment of a text; empty without one."""
    found = _LINE.findall(text)
    if not found:
        return Document(source, "", {})
    value = parse_json(found[-1], f"{source}, comment 'placement:'")
    return one_document(source, value, "a JSON object", "placement")
