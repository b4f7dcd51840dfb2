"""A proof that does not rest on HiGHS's tolerances: branch and bound on safe LP bounds.

HiGHS closes nodes in floating point and keeps no record of them. This module closes them again, on
the same program, believing nothing but arithmetic: HiGHS solves the LP of a node, and only its row
duals π are used. For *any* π, with r = c − Aᵀπ,

    c·x  ≥  Σ_i min over the row's range of π_i·(Ax)_i  +  Σ_j min over the column's range of
    r_j·x_j

for all x within rows and bounds (weak duality; Neumaier and Shcherbina 2004, section 2). Duals
whose sign does not fit a one-sided row are set to 0, and every column here is bounded, so the
right-hand side is finite whatever HiGHS returned; a bad π makes a weak bound, never a wrong one.
The sum is rounded down by an a-priori bound on its own rounding error (Higham 2002, section 3.1:
at most n·ε/(1 − n·ε) times the sum of the absolute values of n-term products, here with room to
spare). The same expression with c = 0 proves a node empty when it is positive.

A node is closed when its safe bound reaches the objective to be proven, less a relative tolerance.
Else a binary is fixed both ways. With all binaries fixed, a node that is still open holds a
configuration that the evaluator judges.

The proof is about the program's coefficients as stored. They are products and
sums of a few double-precision numbers, which is the accuracy of the evaluator itself.
"""

from __future__ import annotations

import heapq
import itertools
import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from formulations.solvers.highs import Relaxation
from formulations.solvers.linear_program import LinearProgram
from formulations.solvers.statuses import Verdict
from placement.support.checks import FloatArray
from placement.support.status import least_bound

_EPS = float(np.finfo(np.float64).eps)
_REPORT = 0.25


@dataclass(frozen=True, slots=True)
class BoundProof:
    """Bound that the nodes of the tree add up to."""

    #: safe lower bound on the program's objective over all integer solutions, at most the cutoff; a
    #: solution that `judge` accepted below it is excepted
    bound: float
    nodes: int  #: LPs solved
    open: int  #: nodes left when time ran out, or that could not be closed
    interrupted: bool = False  #: whether Ctrl-C ended the proof
    #: the same bound where it is not cut at the cutoff: that of a node may lie above
    reached: float = -math.inf


def safe_bound(
    program: LinearProgram,
    lower: FloatArray,
    upper: FloatArray,
    dual: FloatArray,
    *,
    cost: bool = True,
) -> float:
    """Return a lower bound on the objective within rows and bounds, from any row duals.

    With `cost` false costs and offset are zero: a positive result proves that there is no solution.
    −∞ when the duals are so large that the arithmetic overflows. O(non-zeros). Every quantity
    carries a bound on its rounding error, which is subtracted.
    """
    pi = np.where(np.isfinite(dual), dual, 0.0)
    pi = np.where((pi > 0) & ~np.isfinite(program.row_lower), 0.0, pi)
    pi = np.where((pi < 0) & ~np.isfinite(program.row_upper), 0.0, pi)
    side = np.where(pi > 0, program.row_lower, program.row_upper)
    of_rows = np.where(pi == 0, 0.0, pi * np.where(np.isfinite(side), side, 0.0))

    per_entry = np.repeat(pi, np.diff(program.start)) * program.value
    columns = len(program.cost)
    combined = np.bincount(program.index, per_entry, columns)
    magnitude = np.bincount(program.index, np.abs(per_entry), columns)
    entries = np.bincount(program.index, minlength=columns)
    objective = program.cost if cost else np.zeros(columns)
    reduced = objective - combined
    # A sum of n products is off by at most (n + 2) ε Σ|products|; twice that is ample.
    doubt = 2 * (entries + 2) * _EPS * (magnitude + np.abs(objective))
    low, high = reduced - doubt, reduced + doubt
    # the least of r·x over r in [low, high] and x in [lower, upper] sits at a corner
    of_columns = np.minimum.reduce([low * lower, low * upper, high * lower, high * upper])

    if not (np.isfinite(of_rows).all() and np.isfinite(of_columns).all()):
        return -math.inf

    offset = program.offset if cost else 0.0
    terms = math.fsum(of_rows) + math.fsum(of_columns) + offset
    size = float(np.abs(of_rows).sum() + np.abs(of_columns).sum()) + abs(offset)
    return terms - 8 * _EPS * size


def prove_by_branching(
    program: LinearProgram,
    cutoff: float,
    judge: Callable[[FloatArray], bool],
    *,
    deadline: float = math.inf,
    most: int | None = None,
    report: Callable[[float], None] | None = None,
) -> BoundProof:
    """Prove that no integer solution of a program lies below the cutoff, in its units.

    Integers are binaries. `judge` is told the values of a node whose binaries are all fixed and
    which is not closed; it returns whether that is accounted for (the plan itself, or one that
    breaks the problem by less than the rows can tell). `most` is the number of LPs after which to
    stop; one is the bound of the root. `report` is called with the bound so far, now and then. The
    bound is the cutoff when all nodes are closed; else the least bound of those left.

    Best bound first, so that the bound rises as fast as it can; branches on the most fractional
    binary. One LP per node, each warm-started by HiGHS from the one before. Exponential at worst.
    """
    relaxation = Relaxation(program)
    binaries = np.nonzero(program.integer)[0]
    counter = itertools.count()
    zeros = np.zeros(len(program.row_lower))
    first = least_bound(safe_bound(program, program.lower, program.upper, zeros))
    waiting: list[tuple[float, int, FloatArray, FloatArray]] = [
        (first, next(counter), program.lower, program.upper)
    ]
    nodes, stuck, least, reached = 0, 0, cutoff, math.inf
    interrupted, reported = False, time.perf_counter()
    while waiting and waiting[0][0] < cutoff:
        node = heapq.heappop(waiting)
        parent, _, lower, upper = node
        try:
            now = time.perf_counter()
            if report is not None and now - reported > _REPORT:
                reported = now
                report(min(parent, least))
            if now > deadline or (most is not None and nodes >= most):
                heapq.heappush(waiting, node)
                break
            relaxation.set_bounds(lower, upper)
            verdict = relaxation.solve(deadline=deadline, presolve=nodes == 0)
        except KeyboardInterrupt:
            heapq.heappush(waiting, node)
            interrupted = True
            break
        nodes += 1
        values, bound = _bound_of(relaxation, verdict, program, lower, upper)
        bound = max(parent, bound)  # in this order a NaN changes nothing
        if bound >= cutoff:
            reached = min(reached, bound)
            continue
        free = binaries[lower[binaries] < upper[binaries]]
        if len(free) == 0:
            if not judge(np.where(program.integer, lower, values)):
                stuck, least = stuck + 1, min(least, bound)
            continue
        column = int(free[np.abs(values[free] - 0.5).argmin()])
        for value in (1.0, 0.0):
            low, high = lower.copy(), upper.copy()
            low[column] = high[column] = value
            heapq.heappush(waiting, (bound, next(counter), low, high))
    left = [bound for bound, *_ in waiting if bound < cutoff]
    bound = min([least, *left])
    if bound == cutoff:
        reached = min([reached, *(one for one, *_ in waiting)])
    return BoundProof(
        bound, nodes, len(left) + stuck, interrupted, reached if bound == cutoff else bound
    )


def _bound_of(
    relaxation: Relaxation,
    verdict: Verdict,
    program: LinearProgram,
    lower: FloatArray,
    upper: FloatArray,
) -> tuple[FloatArray, float]:
    """Values and safe bound of the LP just solved; +∞ when proven empty, −∞ when unknown."""
    middle = (lower + upper) / 2
    if verdict is Verdict.INFEASIBLE:
        ray = relaxation.ray
        if ray is not None:
            for sign in (1.0, -1.0):
                if safe_bound(program, lower, upper, sign * ray, cost=False) > 0:
                    return middle, math.inf
        return middle, -math.inf
    values, duals = relaxation.values, relaxation.duals
    if values is None or duals is None:
        return middle, -math.inf
    return values, safe_bound(program, lower, upper, duals)
