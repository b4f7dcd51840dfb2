"""Comments with a meaning: what statements have no place for, and statements that must wait.

Consistency levels belong to requests, and the primary of PostgreSQL is in no setting. The writer
puts them into one comment, as JSON, and the reader takes them from there. A statement that may only
run after another step is a comment that begins with ``later:``, so that a file that is run at once
does no harm; the reader takes it as a statement.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from placement.errors import InputError
from placement.io.formats.document import Document, parse_json

__all__ = ["later", "remark", "remarked", "with_later"]

_LINE = re.compile(r"^\s*(?:--|#)\s*placement:\s*(\{.*\})\s*$", re.MULTILINE)


_LATER = re.compile(r"^-- later: ", re.MULTILINE)


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
    if not isinstance(value, dict):
        raise InputError("not a table of keys", source=source, field="placement")
    return Document(source, "placement", value)
