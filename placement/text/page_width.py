"""The number of columns that text for people is laid out in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["page_width", "use_page_width"]

_USUAL = 80
_NARROWEST = 40
_WIDEST = 120

_columns: ContextVar[int] = ContextVar("page_width", default=_USUAL)


def page_width() -> int:
    """Return the columns of the page: 80, unless :func:`use_page_width` says otherwise.

    Examples
    --------
    >>> page_width()
    80
    """
    return _columns.get()


@contextmanager
def use_page_width(columns: int) -> Iterator[None]:
    """Lay text out in other columns, in this thread and until the block ends.

    Parameters
    ----------
    columns
        Columns of the terminal. A page has at least 40, since numbers are never cut, and at most
        120, since longer lines are hard to read.

    Examples
    --------
    >>> with use_page_width(100):
    ...     page_width()
    100
    """
    token = _columns.set(min(max(columns, _NARROWEST), _WIDEST))
    try:
        yield
    finally:
        _columns.reset(token)
