"""The compiled search over replica sets (csrc/), where it was built; NumPy does the same elsewhere.

The kernel walks the tree of :mod:`formulations.quorumstore.enumeration.prefix_tree` under the
conditions of
:mod:`formulations.quorumstore.enumeration.screening`, but depth first, set by set: the incumbent
falls as soon as a better set is met, and what passes the conditions is tested exactly on the spot,
in every scenario of whatever may be lost. Latencies are ranks in one grid of all values a threshold
can take, so a limit is a number of allowed grid values and nothing is rounded.

The search visits all sets twice: first for any set better than the best so far, until none is left,
which proves the optimum; then for the configurations of this value, of which it keeps the first
under the tie rule (:func:`placement.quorumstore.tie_order_of_equals`), so that thousands of ties
cost no memory. The evaluator computes the value of the result.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from formulations.quorumstore.enumeration.compiled_store import CompiledStore
from formulations.quorumstore.enumeration.set_search import Ties
from placement.errors import InputError
from placement.quorumstore import Goal, QuorumConfiguration, QuorumProblem, ThresholdLimits
from placement.support.checks import IntArray

if TYPE_CHECKING:
    from formulations.quorumstore._kernel import _Search

__all__ = ["CompiledSearch", "Kernel", "compiled_available", "wants_compiled"]

Kernel = Literal["auto", "compiled", "numpy"]


def compiled_available() -> bool:
    """Return whether the compiled kernel was built and can be imported."""
    try:
        import formulations.quorumstore._kernel  # noqa: F401 - only whether it imports matters
    except ImportError:
        return False
    return True


def wants_compiled(kernel: Kernel) -> bool:
    """Return whether this choice means the compiled kernel.

    Raises
    ------
    InputError
        For another name, or when the kernel is asked for and was not built.
    """
    if kernel not in get_args(Kernel):
        raise InputError(
            "unknown kernel", field="kernel", value=kernel, expected=" or ".join(get_args(Kernel))
        )
    if kernel == "numpy":
        return False
    built = compiled_available()
    if kernel == "compiled" and not built:
        raise InputError(
            "the compiled kernel was not built",
            field="kernel",
            value=kernel,
            expected="'auto' or 'numpy', or an installation that was built with a C compiler",
        )
    return built


@dataclass(eq=False)
class CompiledSearch:
    """Search for one key and one goal: the incumbent and the first of the optima.

    Parameters
    ----------
    store
        Tables of the store under the rules of `problem`.
    problem
        The key. Its own goal is not used.
    goal
        What to minimise. :meth:`run` and :meth:`choose` take goals that are
        :meth:`~placement.quorumstore.goal.Goal.monotone` without a budget; :meth:`sets` any.
    caps
        Limits besides those of the goal.

    Notes
    -----
    Signals are handled about fifty times a second; a ``KeyboardInterrupt`` leaves the incumbent as
    it is. The interpreter lock is released while the kernel runs.
    """

    store: CompiledStore
    problem: QuorumProblem
    goal: Goal
    caps: ThresholdLimits = field(default_factory=ThresholdLimits)
    _search: _Search = field(init=False)

    def __post_init__(self) -> None:
        from formulations.quorumstore import _kernel

        problem, store = self.problem, self.store
        contingency = problem.rules.contingency
        loosest = self.goal.limits(math.inf, contingency).tightened(self.caps)
        tightest = self.goal.limits(0.0, contingency).tightened(self.caps)
        moving = (
            tightest.normal_read < loosest.normal_read,
            tightest.normal_write < loosest.normal_write,
            tightest.worst_read < loosest.worst_read,
            tightest.worst_write < loosest.worst_write,
        )
        self._search = _kernel.open(
            store.handle,
            problem.reads,
            problem.writes,
            (problem.needed_reads, problem.needed_writes),
            contingency and bool(problem.losses),
            moving,
            store.allowed(loosest),
            len(store.pairs),
            store.shapes,
            store.ways,
            store.steps,
        )

    def probe(self, sets: IntArray, read: int, write: int) -> None:
        """Lower the incumbent with some sets, rows of increasing site indices."""
        from formulations.quorumstore import _kernel

        pair = self.store.pairs.index((sets.shape[1], read, write))
        _kernel.probe(self._search, pair, np.ascontiguousarray(sets, dtype=np.int32))

    def run(self) -> None:
        """Lower the incumbent to the optimum. O(n^N) in the worst case."""
        from formulations.quorumstore import _kernel

        _kernel.find(self._search)

    def choose(self) -> QuorumConfiguration | None:
        """First configuration under the tie rule of all that reach the incumbent value."""
        from formulations.quorumstore import _kernel

        return self._named(_kernel.choose(self._search))

    @property
    def value(self) -> float:
        """Incumbent value; +∞ when nothing was found."""
        from formulations.quorumstore import _kernel

        allowed, _, _ = _kernel.incumbent(self._search)
        if allowed > len(self.store.grid):
            return math.inf
        return self.store.values[allowed - 1] if allowed else 0.0

    @property
    def incumbent(self) -> QuorumConfiguration | None:
        """Return a configuration with the incumbent value; None when nothing was found."""
        from formulations.quorumstore import _kernel

        return self._named(_kernel.incumbent(self._search))

    def _named(self, found: tuple[int, int, tuple[int, ...]]) -> QuorumConfiguration | None:
        _, pair, replicas = found
        if pair < 0:
            return None
        _, read, write = self.store.pairs[pair]
        return QuorumConfiguration(replicas, read, write)

    def sets(self, pair: tuple[int, int, int], first: int, limits: ThresholdLimits) -> IntArray:
        """All sets of a pair within the limits whose first site is `first`, lexicographically.

        Parameters
        ----------
        pair
            (N, R, W), one of the problem's.
        first
            Smallest site index of the sets.
        limits
            Thresholds not to be exceeded, in whatever the problem's rules let be lost.

        Returns
        -------
        Shape (m, N).
        """
        from formulations.quorumstore import _kernel

        found = _kernel.list(
            self._search, self.store.pairs.index(pair), first, self.store.allowed(limits)
        )
        sets: IntArray = np.frombuffer(found, dtype=np.uint16).reshape(-1, pair[0]).astype(np.intp)
        return sets

    def every(self, pair: tuple[int, int, int], limits: ThresholdLimits) -> Iterator[IntArray]:
        """All sets of a pair within the limits, in runs that are not empty."""
        for first in range(len(self.problem.sites) - pair[0] + 1):
            found = self.sets(pair, first, limits)
            if len(found):
                yield found

    def ties(self, limits: ThresholdLimits) -> list[Ties]:
        """All configurations within the limits of the incumbent value."""
        caught = limits.tightened(self.caps)
        return [
            Ties(sets, pair[1], pair[2])
            for pair in self.store.pairs
            for sets in self.every(pair, caught)
        ]

    @property
    def nodes(self) -> int:
        """Number of prefixes visited so far."""
        from formulations.quorumstore import _kernel

        return _kernel.nodes(self._search)
