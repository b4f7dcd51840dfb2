"""Readers and writers of the JSON of databases."""

from __future__ import annotations

import json

from placement.databases.system import Texts
from placement.errors import InputError
from placement.io.formats.document import Document, parse_json

__all__ = ["json_text", "json_values", "one_document"]


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
