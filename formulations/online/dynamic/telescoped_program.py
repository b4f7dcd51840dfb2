"""G2: savings telescoped over distance.

For a client site i and an object o let j_1, j_2, …, j_L be its preferred sites that are closer than
any static copy, in its order, at distances d_1 <= … <= d_L, and d_{L+1} the distance of the closest
static copy. A copy among the first t saves the step d_{t+1} − d_t:

    y[j, o] ∈ {0, 1}, u[i, o, t] ∈ [0, 1]

    max  Σ reads[i, o]·(d_{t+1} − d_t)·u[i, o, t] − costs of writes as in G1
    s.t. u[i, o, t] <= Σ_{q <= t} y[j_q, o]
         Σ_o y[j, o] <= C_j

Why it equals G1: for 0/1 y, u[i, o, t] = 1 exactly when the serving copy is among the first t, and
the steps beyond it add up to its saving. For fractional y the two relaxations are equal too: G1
fills x from the closest site on, x_q = min(y_q, 1 − Σ_{p<q} x_p), which makes
Σ_{q<=t} x_q = min(1, Σ_{q<=t} y_q).

The relaxation is often integral, but not always: three sites in a triangle, each preferring itself
and the next, with two objects and room for one copy each, have the relaxed optimum y = 1/2
everywhere (tests/online/dynamic/test_exact.py keeps it).
"""

from __future__ import annotations

import numpy as np

from formulations.online.dynamic.copy_model import (
    CopyModel,
    add_copies,
    add_waits,
    finished,
    reach,
    unit,
    worthwhile,
)
from formulations.solvers.program_builder import Builder
from placement.online.dynamic.problem import ReplicationProblem
from placement.support.checks import IntArray

__all__ = ["add_savings", "build_telescoped"]


def build_telescoped(problem: ReplicationProblem) -> CopyModel:
    """Return the program G2; O(Σ_i |P_i|² · objects) non-zeros, steps of length 0 left out."""
    builder, scale = Builder(), unit(problem)
    column = add_copies(problem, builder, scale, worthwhile(problem))
    add_savings(problem, builder, column, scale)
    add_waits(problem, builder, column, scale)
    return finished(problem, builder, column, scale)


def add_savings(
    problem: ReplicationProblem, builder: Builder, column: IntArray, scale: float
) -> None:
    """Add u[i, o, t] with its row for every step of positive length."""
    within_reach = reach(problem)
    rtt = problem.geography.rtt
    for site, row in enumerate(problem.geography.preferred):
        for place, j in enumerate(row):
            after = rtt[site, row[place + 1]] if place + 1 < len(row) else np.inf
            step = np.minimum(after, problem.static_rtt[site]) - rtt[site, j]
            gains = problem.reads[site] * step > 0
            things = np.flatnonzero((within_reach[site] > place) & gains)
            copies = column[list(row[: place + 1])][:, things]
            covered = (copies >= 0).any(axis=0)
            things, copies = things[covered], copies[:, covered]
            saved = builder.add_columns(-problem.reads[site, things] * step[things] * scale)
            rows = builder.add_rows(-np.inf, 0.0, len(things))
            builder.put(rows, saved, 1.0)
            for some in copies:
                builder.put(rows[some >= 0], some[some >= 0], -1.0)
