"""Parts of PromQL that come from users: label names, matchers, windows; all checked or escaped."""

from __future__ import annotations

import re
from collections.abc import Sequence

from placement.errors import InputError

__all__ = ["label_name", "matchers", "quoted", "window_of"]

_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_WINDOW = re.compile(r"(?:[1-9]\d{0,5}(?:ms|[smhdwy]))+")
_MATCHER = re.compile(r"([^=!~]+)(=~|!~|!=|=)(.*)", re.DOTALL)


def quoted(text: str) -> str:
    r"""Return a text as a string of PromQL: quotes, backslashes and line ends are escaped.

    >>> print(quoted('a"} or up{x="'))
    "a\"} or up{x=\""
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + escaped.replace("\n", "\\n").replace("\r", "\\r").replace("\0", "\\x00") + '"'


def label_name(text: str, field: str) -> str:
    """Return a label's name.

    Raises
    ------
    InputError
        For a text that is no name of a label.
    """
    if not _NAME.fullmatch(text):
        raise InputError(
            "not the name of a label",
            field=field,
            value=text,
            expected="letters, digits and underscores, such as region",
        )
    return text


def matchers(texts: Sequence[str], field: str) -> str:
    """Return matchers such as ``job=etcd`` or ``cluster=~eu-.*`` as the inside of a selector.

    Raises
    ------
    InputError
        For a text that is no matcher.
    """
    parts = []
    for text in texts:
        match = _MATCHER.fullmatch(text)
        if match is None:
            raise InputError(
                "not a matcher", field=field, value=text, expected="LABEL=VALUE or LABEL=~REGEX"
            )
        parts.append(label_name(match[1].strip(), field) + match[2] + quoted(match[3]))
    return ", ".join(parts)


def window_of(text: str, field: str) -> str:
    """Return a duration of PromQL, such as ``1d`` or ``1h30m``.

    Raises
    ------
    InputError
        For any other text.
    """
    if not _WINDOW.fullmatch(text):
        raise InputError(
            "not a duration", field=field, value=text, expected="a duration such as 30m, 6h or 7d"
        )
    return text
