"""G1: every read is assigned to a copy.

Sets: sites S, objects O, preferred sites P_i of site i, static sites A_o.

    y[j, o] ∈ {0, 1}     dynamic copy of o at j, j ∉ A_o
    x[i, j, o] ∈ [0, 1]  share of the reads of o at i that j serves

    min  Σ reads[i, o]·rtt[i, j]·x[i, j, o] + Σ writes[o]·forward[j, o]·y[j, o] + Σ writes[o]·τ_o
    s.t. Σ_j x[i, j, o] = 1                    for all i, o
         x[i, j, o] <= y[j, o]                 j ∉ A_o
         Σ_o y[j, o] <= C_j
         τ_o >= wait[j, o]·y[j, o]             synchronous writes only

with x[i, j, o] only for j ∈ P_i ∪ A_o. Of the static copies only the closest can serve in an
optimum, and no dynamic copy further away than it; so only these have columns. For given y the best
x is integral: it need not be binary.

The program is written in savings, the constant being the cost without dynamic copies: the column of
the closest static copy has cost 0.
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

__all__ = ["build_assignment"]


def build_assignment(problem: ReplicationProblem) -> CopyModel:
    """Return the program G1; O(Σ_i |P_i| · objects) columns, rows and non-zeros."""
    builder, scale = Builder(), unit(problem)
    column = add_copies(problem, builder, scale, worthwhile(problem))
    within = reach(problem)
    rtt = problem.geography.rtt
    for site, row in enumerate(problem.geography.preferred):
        asked = np.flatnonzero((within[site] > 0) & (problem.reads[site] > 0))
        served = builder.add_rows(1.0, 1.0, len(asked))
        builder.put(served, builder.add_columns(np.zeros(len(asked))), 1.0)
        for place, j in enumerate(row):
            some = np.flatnonzero((within[site, asked] > place) & (column[j, asked] >= 0))
            things = asked[some]
            saved = problem.static_rtt[site, things] - rtt[site, j]
            share = builder.add_columns(-problem.reads[site, things] * saved * scale)
            builder.put(served[some], share, 1.0)
            linked = builder.add_rows(-np.inf, 0.0, len(things))
            builder.put(linked, share, 1.0)
            builder.put(linked, column[j, things], -1.0)
    add_waits(problem, builder, column, scale)
    return finished(problem, builder, column, scale)
