"""The linear relaxation of the p-median problem, for its multipliers.

Where no leader matters (weak reads only) the best Lagrangean bound equals the bound of the linear
relaxation, but subgradient steps come close to it slowly when there are many replicas. Then the
relaxation itself is cheaper, in the form with one variable per client (Cornuéjols, Nemhauser and
Wolsey 1980; Duran-Mateluna, Ales and Elloumi, EJOR 308, 2023, call it compact Benders):

    min  Σ_r price_r y_r + Σ_c θ_c
         θ_c + Σ_{r: w_cr < t} (t − w_cr) y_r >= t       for every client c and every cost t = w_cs
         θ_c >= min_r w_cr,   n_min <= Σ_r y_r <= n_max,   0 <= y <= 1

Rows are made as they are violated. The first come from the multipliers of a short subgradient
descent: for client c the cost just above u_c. A few rounds of the dual simplex of HiGHS then end
at the optimum, and its duals π give back multipliers,

    u_c = Σ_t π_ct t + (1 − Σ_t π_ct) min_r w_cr

for which, because min(0, ·) is concave, the Lagrangean bound is at least that of the relaxation.

Nothing here needs to be right for a proof to be right: any multipliers give a valid bound, which
the kernel recomputes, and a set of sites is only a proposal for the evaluator. A failure of the
solver therefore costs time and nothing else.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from formulations.exact import tuning
from formulations.exact.reduced_problem import ReducedProblem
from formulations.solvers.highs import silent_highs
from placement.support.checks import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, slots=True)
class Round:
    """The result of one round of row generation: u of the active clients, and y, by site.

    `replicas` are the sites of largest y, ascending; `value` is the optimum of the rows so far, ms
    times operations, as HiGHS has it: for people. The last round, where no row is violated any
    more, is `final`.
    """

    multipliers: FloatArray
    share: FloatArray
    replicas: tuple[int, ...]
    value: float
    final: bool


@dataclass(eq=False)
class PMedianRelaxation:
    """The relaxation of a core whose leader does not matter, with replicas at the sites of `keep`.

    Costs are divided by the largest, so that the tolerances of HiGHS fit. Memory: three matrices of
    clients × kept sites. A round costs one linear program and O(clients · kept sites).
    """

    core: ReducedProblem
    keep: BoolArray
    _solver: Any = field(init=False)
    _sites: IntArray = field(init=False)
    _scale: float = field(init=False)
    _cost: FloatArray = field(init=False)
    _order: IntArray = field(init=False)
    _made: set[tuple[int, int]] = field(init=False, default_factory=set)
    _rows: list[tuple[int, int]] = field(init=False, default_factory=list)
    pivots: float = field(init=False, default=0.0)
    """Pivots of the simplex so far, each counted once per row, and more when there are many."""

    def __post_init__(self) -> None:
        core, rules = self.core, self.core.rules
        self._sites = np.nonzero(self.keep | rules.must_hold)[0]
        near = core.near[core.active]
        cost = near[:, np.newaxis] * core.client_rtt[np.ix_(core.active, self._sites)]
        self._scale = float(cost.max()) or 1.0
        cost /= self._scale
        self._order = np.argsort(cost, axis=1, kind="stable")
        self._cost = np.take_along_axis(cost, self._order, axis=1)
        self._solver = self._model()

    @staticmethod
    def applies_to(core: ReducedProblem) -> bool:
        """Return whether the relaxation describes the problem: no leader matters, and no rules."""
        rules = core.rules
        plain = not rules.groups and bool((rules.may_vote | ~rules.may_hold).all())
        return not core.leader_matters and len(core.active) > 0 and plain

    def _model(self) -> Any:
        """Return HiGHS with columns y and θ and one row: the number of replicas."""
        import highspy

        rules, sites, clients = self.core.rules, self._sites, len(self._cost)
        price = np.zeros(len(sites)) if self.core.price is None else self.core.price[0, sites]
        must = rules.must_hold[sites].astype(np.float64)
        model = highspy.HighsLp()
        model.num_col_ = len(sites) + clients
        model.num_row_ = 1
        model.col_cost_ = np.concatenate([price / self._scale, np.ones(clients)])
        model.col_lower_ = np.concatenate([must, self._cost[:, 0]])
        model.col_upper_ = np.concatenate([np.ones(len(sites)), np.full(clients, np.inf)])
        model.row_lower_ = np.array([rules.replicas_min], dtype=np.float64)
        model.row_upper_ = np.array([rules.replicas_max], dtype=np.float64)
        model.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
        model.a_matrix_.start_ = np.array([0, len(sites)])
        model.a_matrix_.index_ = np.arange(len(sites))
        model.a_matrix_.value_ = np.ones(len(sites))
        solver = silent_highs()
        for name, value in (("presolve", "off"), ("solver", "simplex")):
            solver.setOptionValue(name, value)
        solver.passModel(model)
        return solver

    def seed(self, multipliers: FloatArray) -> None:
        """Make the first rows, from multipliers of shape (clients,)."""
        scaled = multipliers / self._scale
        level = (self._cost < scaled[:, np.newaxis]).sum(axis=1)
        clients, first = np.arange(len(self._cost)), np.maximum(level, 1)
        self._add(clients, first)
        self._add(clients, np.maximum(level - 1, 1))
        self._start(first)

    def _start(self, level: IntArray) -> None:
        """Start the simplex where the Lagrangean bound stands when u_c is the cost at `level`.

        Its duals are the basis in which that row holds up every θ_c, and sites of least reduced
        cost hold replicas. Without this basis the simplex would need at least one pivot for each
        client to get there.
        """
        import highspy

        state, size = highspy.HighsBasisStatus, self.core.rules.replicas_min
        width, clients = len(self._sites), np.arange(len(self._cost))
        if not 0 < size <= width:
            return
        u = self._cost[clients, np.minimum(level, width - 1)]
        saving = np.minimum(self._cost - u[:, np.newaxis], 0.0)
        reduced = np.bincount(self._order.ravel(), saving.ravel(), width)
        if self.core.price is not None:
            reduced += self.core.price[0, self._sites] / self._scale
        must = self.core.rules.must_hold[self._sites]
        held = np.lexsort((reduced, ~must))[:size]
        columns = [state.kLower] * (width + len(clients))
        for site in held[:-1].tolist():
            columns[site] = state.kLower if must[site] else state.kUpper
        columns[held[-1]] = state.kBasic
        rows = [state.kLower]
        for client, rank in self._rows:
            tight = rank == level[client]
            rows.append(state.kLower if tight else state.kBasic)
            if tight:
                columns[width + client] = state.kBasic
        basis = highspy.HighsBasis()
        basis.col_status, basis.row_status, basis.valid = columns, rows, True
        self._solver.setBasis(basis)

    def restrict(self, held: Sequence[int], free: IntArray) -> None:
        """Ask about the part of the problem with replicas at `held` and none but at `free`."""
        low = np.isin(self._sites, held).astype(np.float64)
        high = np.maximum(low, np.isin(self._sites, free))
        columns = np.arange(len(self._sites), dtype=np.int32)
        self._solver.changeColsBounds(len(columns), columns, low, high)

    def rounds(self, deadline: float) -> Iterator[Round]:
        """Solve, add violated rows, and repeat; each round's multipliers are usable.

        No round begins after `deadline`, a time.perf_counter(). Nothing is yielded if the part
        asked about has no solution.
        """
        clients = np.arange(len(self._cost))
        while self._solve(deadline):
            solution = self._solver.getSolution()
            value = float(self._solver.getInfo().objective_function_value)
            y = np.array(solution.col_value[: len(self._sites)])
            theta = np.array(solution.col_value[len(self._sites) :])
            violated, at = self._violated(y, theta)
            added = self._add(clients[violated], at[violated])
            share = np.zeros(self.core.sites)
            share[self._sites] = y
            yield Round(
                multipliers=self._scale * self._multipliers(np.array(solution.row_dual)),
                share=share,
                replicas=self._rounded(y),
                value=self._scale * value,
                final=not added,
            )
            if not added:
                return

    def _solve(self, deadline: float) -> bool:
        """Run HiGHS slice by slice; False when time is up or it fails."""
        import highspy

        duration = tuning.SOLVER_SLICE
        while time.perf_counter() < deadline:
            left = deadline - time.perf_counter()
            # the limit counts all the time this object has run
            limit = self._solver.getRunTime() + min(duration, max(left, 0.0))
            self._solver.setOptionValue("time_limit", limit)
            duration *= 2
            self._solver.run()
            pivots = self._solver.getInfo().simplex_iteration_count
            rows = 1.0 + len(self._rows)
            self.pivots += max(pivots, 1) * rows * (1.0 + rows / tuning.MANY_ROWS)
            status = self._solver.getModelStatus()
            if status == highspy.HighsModelStatus.kOptimal:
                return True
            if status != highspy.HighsModelStatus.kTimeLimit:
                return False
        return False

    def _add(self, clients: IntArray, level: IntArray) -> int:
        """Add the rows with t = the cost of rank `level` for each client; return how many."""
        width = len(self._sites)
        starts, columns, values, sides = [], [], [], []
        entries = 0
        for client, rank in zip(clients.tolist(), level.tolist(), strict=True):
            if not 0 < rank < width or (client, rank) in self._made:
                continue
            self._made.add((client, rank))
            self._rows.append((client, rank))
            side = self._cost[client, rank]
            saving = side - self._cost[client, :rank]
            saves = saving > 0
            starts.append(entries)
            columns.append(np.append(self._order[client, :rank][saves], width + client))
            values.append(np.append(saving[saves], 1.0))
            sides.append(side)
            entries += int(saves.sum()) + 1
        if starts:
            self._solver.addRows(
                len(starts),
                np.array(sides),
                np.full(len(starts), np.inf),
                entries,
                np.array(starts, dtype=np.int32),
                np.concatenate(columns).astype(np.int32),
                np.concatenate(values),
            )
        return len(starts)

    def _violated(self, y: FloatArray, theta: FloatArray) -> tuple[BoolArray, IntArray]:
        """Return the clients whose deepest row is violated, and its rank for all clients.

        Along a client's order the row of the site that completes Σ y = 1 is the deepest.
        """
        share = y[self._order]
        before = np.cumsum(share, axis=1) < 1.0 - 1e-9
        rank = np.minimum(before.sum(axis=1), len(self._sites) - 1)
        inside = np.where(before, share, 0.0)
        side = np.take_along_axis(self._cost, rank[:, np.newaxis], axis=1)[:, 0]
        cost = (inside * self._cost).sum(axis=1) + side * (1.0 - inside.sum(axis=1))
        return cost > theta + tuning.VIOLATION * (1.0 + np.abs(cost)), rank

    def _multipliers(self, duals: FloatArray) -> FloatArray:
        duals = duals[1:]
        client, rank = np.array(self._rows[: len(duals)], dtype=np.intp).reshape(-1, 2).T
        weight = np.bincount(client, duals, len(self._cost))
        result = np.bincount(client, duals * self._cost[client, rank], len(self._cost))
        return np.asarray(result + (1.0 - weight) * self._cost[:, 0])

    def _rounded(self, y: FloatArray) -> tuple[int, ...]:
        """Return sites by descending y, forced sites first."""
        rules = self.core.rules
        chosen: list[int] = []
        for place in np.lexsort((-y, ~rules.must_hold[self._sites])).tolist():
            site = int(self._sites[place])
            if len(chosen) == rules.replicas_max:
                break
            if len(chosen) >= rules.replicas_min and y[place] < 0.5:
                break
            chosen.append(site)
        return tuple(sorted(chosen))
