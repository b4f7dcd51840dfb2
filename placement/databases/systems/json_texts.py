"""Readers and writers of the JSON of databases, and the check of keys that all readers share."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping

from placement.databases.system import Texts
from placement.errors import InputError
from placement.io.formats.document import Document, parse_json

__all__ = ["check_keys", "json_text", "json_values", "one_document"]


def json_text(value: object) -> str:
    """Return a value as JSON text with one key per line, in ASCII."""
    return json.dumps(value, indent=1) + "\n"


def json_values(texts: Texts) -> list[tuple[str, object]]:
    """Return the JSON value of every text, with the name of its file."""
    return [(source, parse_json(text, source)) for source, text in texts]


def one_document(source: str, value: object, expected: str) -> Document:
    """Return a value as a table of keys.

    Raises
    ------
    InputError
        When it is none.
    """
    if not isinstance(value, dict):
        raise InputError("not a table of keys", source=source, expected=expected)
    return Document(source, "", value)


def check_keys(
    table: Document,
    used: Iterable[str],
    ignored: Iterable[str] = (),
    without_effect: Mapping[str, Collection[object]] | None = None,
) -> None:
    """Refuse the keys of a table that may change what it means: every reader calls this.

    Parameters
    ----------
    table
        Keys as the database wrote them.
    used
        Keys that the reader uses.
    ignored
        Keys that change neither where replicas are nor what they do, a list in its module.
    without_effect
        Key -> values at which it changes nothing, as null does; any other value is refused.
    """
    for key, good in (without_effect or {}).items():
        value = table.values.get(key)
        if value is not None and (type(value), value) not in [(type(one), one) for one in good]:
            expected = " or ".join([*map(json.dumps, good), "no such key"])
            raise table.refuse(key, "a key that changes what the rest means", expected)
    table.only((*used, *ignored, *(without_effect or ())))
