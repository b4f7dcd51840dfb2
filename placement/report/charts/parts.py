"""Pieces that every page is put together from."""

from __future__ import annotations

from collections.abc import Sequence

from placement.report.charts.markup import Child, Markup, join, tag

__all__ = ["facts", "reasons", "section"]


def section(identifier: str, title: str, *content: Child) -> Markup:
    """Build a section with a heading that it is named by."""
    return tag(
        "section",
        {"id": identifier, "aria-labelledby": f"{identifier}-h"},
        tag("h2", {"id": f"{identifier}-h"}, title),
        *content,
    )


def facts(pairs: Sequence[tuple[str, str, str]]) -> Markup:
    """Build the row of figures at the top: name, value, and a word of explanation."""
    return tag(
        "dl",
        {"class": "facts"},
        [
            tag(
                "div",
                None,
                tag("dt", None, name),
                tag("dd", None, tag("strong", None, tag("bdi", None, value)),
                    tag("small", None, note) if note else None),
            )
            for name, value, note in pairs
        ],
    )  # fmt: skip


def reasons(title: str, sentences: Sequence[str]) -> Markup | None:
    """Build a list of sentences, or nothing."""
    if not sentences:
        return None
    items = [tag("li", None, sentence) for sentence in sentences]
    return join([tag("h3", None, title), tag("ul", None, items)])
