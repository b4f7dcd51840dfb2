r"""HTML and SVG from Python values, where whatever is not markup is escaped.

Names of sites and clients are data from files. Every string that is not a :class:`Markup` is
escaped on its way into an element or an attribute, so that there is one place to get it right.
Characters that can't be seen, or that turn the direction of the text around them, are shown as
escapes, as on the terminal.
"""

from __future__ import annotations

import html
import json
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TypeAlias


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


Child: TypeAlias = "str | float | Iterable[Child] | None"
"""Content of an element: markup, text, numbers, nothing, or several of these."""

_VOID = frozenset(("br", "circle", "col", "hr", "input", "line", "meta", "path", "rect", "polygon"))


def text(value: str) -> Markup:
    r"""Escape text for an element or an attribute.

    Letters and marks of every script stay; control, format, private and unassigned characters
    become visible escapes, except for the joiners that some scripts spell with.

    Examples
    --------
    >>> text("<script>"), text("a\u202eb")
    ('&lt;script&gt;', 'a\\u202eb')
    """
    if isinstance(value, Markup):
        return value
    if value.isascii() and value.isprintable():  # most of what pages have: nothing to look up
        return Markup(html.escape(value, quote=True))
    shown = "".join(
        character.encode("unicode_escape").decode("ascii")
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
        and character not in "\u200c\u200d\n"
        else character
        for character in value
    )
    return Markup(html.escape(shown, quote=True))


def join(children: Child) -> Markup:
    """Escape and concatenate."""
    if children is None:
        return Markup("")
    if isinstance(children, str):
        return text(children)
    if isinstance(children, (int, float)):
        return Markup(f"{children:.10g}")
    return Markup("".join(join(child) for child in children))


def tag(
    name: str, attributes: Mapping[str, str | float | None] | None = None, *children: Child
) -> Markup:
    """Build an element; an attribute that is None is left out, and its name is never data.

    >>> tag("b", {"title": '"'}, "1 < 2", tag("br"))
    '<b title="&quot;">1 &lt; 2<br/></b>'
    """
    inside = "".join(
        f' {key}="{join(value)}"' for key, value in (attributes or {}).items() if value is not None
    )
    if name in _VOID:
        content = join(children)
        if content:  # a title inside a shape
            return Markup(f"<{name}{inside}>{content}</{name}>")
        return Markup(f"<{name}{inside}/>")
    return Markup(f"<{name}{inside}>{join(children)}</{name}>")


def clipped(value: str, most: int) -> str:
    """Cut text at `most` characters, the last of them an ellipsis, without halving a letter."""
    if len(value) <= most:
        return value
    end = most - 1
    while end > 1 and unicodedata.combining(value[end]):
        end -= 1
    return value[:end] + "…"


def json_script(identifier: str, value: object) -> Markup:
    r"""Embed data as JSON that no name can break out of: \uXXXX for ``<``, ``>``, ``&``."""
    data = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        data = data.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json" id="{text(identifier)}">{data}</script>')
