"""Shared part of the compiled threshold search: questions about losses and about percentiles.

The search and its mathematics: ``csrc/scenarios/scenario.h``. There is no second version of it in
NumPy: where it was not built, both kinds of questions go to other methods, which the plan names.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["TreeOutcome", "missing"]


class TreeOutcome(IntEnum):
    """Ends of a call of the search; the numbers of ``tree_outcome`` in scenario.h."""

    CLOSED = 1
    STOPPED = 2
    LIMIT = 3
    PAUSED = 4


def missing() -> str | None:
    """Return why the compiled search cannot be used, or None."""
    try:
        # its newest name: a checkout may hold a kernel that was built before it
        from formulations.exact._scenarios import search_thresholds  # noqa: F401
    except ImportError:
        return "its compiled kernel was not built"
    return None
