"""Status of an answer, and the reason why the search for a better one stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

OPTIMALITY_TOLERANCE = 1e-9
"""Largest relative gap between value and proven bound that is called optimal."""


class Status(StrEnum):
    """Status of a plan."""

    OPTIMAL = "optimal"
    """The bound proves, to a relative 1e-9, that nothing is better."""
    FEASIBLE = "feasible"
    """A plan that obeys all constraints; the gap says how much better one could be."""
    INFEASIBLE = "infeasible"
    """Proven: no configuration obeys all constraints."""
    UNKNOWN = "unknown"
    """Nothing was found and nothing proven before the search was stopped."""
    VIOLATING = "violating"
    """A configuration that was only evaluated, and that breaks constraints of the problem."""


class Termination(StrEnum):
    """Reason why a method stopped."""

    FINISHED = "finished"
    TIME_LIMIT = "time limit"
    GAP_LIMIT = "gap limit"
    WORK_LIMIT = "work limit"
    INTERRUPTED = "interrupted"


class HasTermination(Protocol):
    """Search that keeps the reason for its end."""

    termination: Termination


@dataclass
class SearchEnd:
    """Reason for the end of a search that keeps its other state in local variables."""

    termination: Termination = Termination.FINISHED


@contextmanager
def end_early(search: HasTermination) -> Iterator[None]:
    """End a ``with`` block at a time limit or at Ctrl-C without an error, and keep the reason.

    >>> end = SearchEnd()
    >>> with end_early(end):
    ...     raise TimeoutError
    >>> end.termination.value
    'time limit'
    """
    try:
        yield
    except TimeoutError:
        search.termination = Termination.TIME_LIMIT
    except KeyboardInterrupt:
        search.termination = Termination.INTERRUPTED


_end: ContextVar[float] = ContextVar("_end", default=math.inf)


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Let :func:`in_time` raise in a ``with`` block after so many seconds, or at an outer end."""
    end = math.inf if seconds is None else time.perf_counter() + seconds
    before = _end.set(min(end, _end.get()))
    try:
        yield
    finally:
        _end.reset(before)


def in_time() -> None:
    """Raise TimeoutError after the time limit of the method that runs, if there is one."""
    if time.perf_counter() > _end.get():
        raise TimeoutError


def relative_gap(value: float, bound: float) -> float:
    """(value − bound)/value, at least 0; 0 when both are 0, ∞ when either is unknown or NaN."""
    if value == bound:
        return 0.0
    if not (math.isfinite(value) and bound > -math.inf):  # NaN is above nothing
        return math.inf
    difference = max(0.0, value - bound)
    return difference / abs(value) if value else (0.0 if difference == 0 else math.inf)


def least_bound(*bounds: float) -> float:
    """Return the least bound; +∞ without any, −∞ with a NaN, which ``min`` may pass over."""
    return -math.inf if any(map(math.isnan, bounds)) else min(bounds, default=math.inf)


def status_of(found: bool, value: float, bound: float) -> Status:
    """Turn a value and its bound into a status: the one place where "optimal" is said."""
    if not found:
        return Status.INFEASIBLE if bound == math.inf else Status.UNKNOWN
    proven = math.isfinite(value) and relative_gap(value, bound) <= OPTIMALITY_TOLERANCE
    return Status.OPTIMAL if proven else Status.FEASIBLE
