"""The optimal read strategy by a compact linear program, proven by prices.

Gateway i orders the nodes without the leaseholder by RTT. A read that does not go to the
leaseholder has a slowest node l, whose RTT is its latency; given l, the other nodes asked are any m
that come before l (one of them the gateway, unless l is the gateway). Variables, for a gateway i:

    s_i0    probability of the leaseholder alone
    s_il    probability of a majority whose slowest member is l
    y_ilv   probability of such a majority with v in it (v before l, not the gateway)

    s_i0 + Σ_l s_il = 1        Σ_v y_ilv = k·s_il (k free members)        0 <= y_ilv <= s_il

These are O(n³). Exact: for fixed l with s_il > 0 the point y_il·/s_il lies in a hypersimplex, whose
corners are the sets themselves, so it is a mixture of them
(:func:`placement.online.reads.subsets_of`). Latency and loads are linear in s and y. With columns
x = (s, y), a_j the time that x_j adds to the mean latency and visits_vj its reads at node v,

    min  load_weight·t + latency_weight·Σ_j a_j x_j
    ρ_v − Σ_j visits_vj x_j/capacity_v  = base_v
    t − ρ_v                            >= 0                   prices π_v
    Σ_j a_j x_j                        <= latency_budget      price μ
    t                                  <= load_limit

HiGHS works with absolute tolerances, so that loads are handed over in units of the largest possible
one and the objective in units of its largest coefficient; prices are turned back. They give the
proof (:func:`placement.online.reads.lower_bound`).

When nothing obeys the limits, the same program with both limits raised by e (in units of the
largest possible load and in parts of the budget) and objective e gives prices that refute them.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from formulations.solvers.highs import Relaxation
from formulations.solvers.linear_program import Builder
from formulations.solvers.statuses import Verdict
from placement.errors import SolverError
from placement.online.reads import (
    Quorum,
    ReadGoal,
    ReadPlan,
    ReadProblem,
    ReadStrategy,
    evaluate,
    infeasible_by,
    lower_bound,
    subsets_of,
)
from placement.online.reads.read_problem import TOLERANCE
from placement.support.checks import FloatArray

_LP_TOLERANCE = 1e-10
"""The least HiGHS takes; prices at its default of 1e-7 leave gaps of some 1e-9."""

_REFUTED = 1e-12
"""Limits count as refuted when the prices exceed them by this, in parts of the largest possible
load and of the budget; they are sums of some hundred terms, off by 1e-14."""

_NOTHING = 1e-11
"""Probabilities of a slowest node below this are dropped: they are the solver's tolerance."""


def solve_compact(problem: ReadProblem, goal: ReadGoal) -> ReadPlan:
    """Return the optimal strategy: optimal, or infeasible with limits refuted by prices.

    SolverError when HiGHS fails, or calls infeasible what the prices do not refute.
    """
    program = _StrategyProgram(problem)
    answer = program.solve(goal)
    if answer is None:
        refuted = program.solve(goal, elastic=True)
        assert refuted is not None  # elastic programs have solutions, or raise
        if infeasible_by(problem, goal, refuted.prices, refuted.budget_price) > _REFUTED:
            reasons = []  # the limit that is impossible even alone, with the least possible
            if math.isfinite(goal.load_limit):
                least = solve_compact(problem, ReadGoal.least_load()).bound
                if least > goal.load_limit:
                    reasons.append(
                        f"the busiest node is used at least {least:.6g}, the limit is "
                        f"{goal.load_limit:.6g}"
                    )
            if math.isfinite(goal.latency_budget):
                least = solve_compact(problem, ReadGoal.least_latency()).bound
                if least > goal.latency_budget:
                    reasons.append(
                        f"the mean latency is at least {least:.6g} ms, the budget is "
                        f"{goal.latency_budget:.6g} ms"
                    )
            reasons = reasons or ["no strategy obeys all limits at once"]
            return ReadPlan.of(problem, goal, None, method="compact", bound=math.inf, notes=reasons)
        # A limit at the very edge of what is possible: within the tolerance of the evaluator.
        ease = 1.0 + TOLERANCE / 2
        load, latency = goal.load_limit * ease, goal.latency_budget * ease
        eased = dataclasses.replace(goal, load_limit=load, latency_budget=latency)
        answer = program.solve(eased)
        if answer is None:
            raise SolverError(
                f"HiGHS finds nothing within the limits of {goal}, but the prices do not "
                f"refute them (excess {refuted.excess:.3g})"
            )
    bound = max(0.0, lower_bound(problem, goal, answer.prices, answer.budget_price))
    strategy = program.strategy(answer.values)
    bound = min(bound, evaluate(problem, strategy).objective(goal))
    note = f"a linear program with {len(program.latency)} columns"
    return ReadPlan.of(problem, goal, strategy, method="compact", bound=bound, notes=[note])


@dataclass(frozen=True, eq=False)
class _Answer:
    """Values of the columns x, and the prices; `excess` is e where it exists."""

    values: FloatArray
    prices: FloatArray
    budget_price: float
    excess: float


@dataclass(frozen=True)
class _Part:
    """Columns of one gateway and one slowest node: of s_l, and of the free nodes' y_lv.

    `forced` are the members of every such majority, `count` the free ones in each.
    """

    whole: int
    forced: Quorum
    free: Mapping[int, int]
    count: int

    def spread(self, values: FloatArray) -> dict[Quorum, float]:
        """Majorities with their probabilities, which add up to s_l; empty where s_l is 0.

        Dividing by a small s magnifies the solver's tolerance, so that the free nodes may miss
        their whole sum by more than rounding; what is missing is taken from the remaining room.
        """
        weight = float(values[self.whole])
        if weight <= _NOTHING:
            return {}
        p = [min(1.0, max(0.0, float(values[column]) / weight)) for column in self.free.values()]
        found = subsets_of(list(self.free), _mended(p, self.count), self.count)
        return {tuple(sorted((*some, *self.forced))): weight * share for some, share in found}


def _mended(p: Sequence[float], count: int) -> list[float]:
    """The probabilities moved, within 0 and 1, to the sum `count`."""
    lack = count - sum(p)
    room = [1.0 - q if lack > 0 else q for q in p]
    if lack == 0 or sum(room) == 0:
        return list(p)
    moved = (q + lack * r / sum(room) for q, r in zip(p, room, strict=True))
    return [min(1.0, max(0.0, q)) for q in moved]


class _StrategyProgram:
    """Columns x with their a_j and visits, and the rows that make them a strategy."""

    def __init__(self, problem: ReadProblem) -> None:
        self.problem = problem
        self.latency: list[float] = []
        self.visits: list[tuple[int, int, float]] = []  # node, column, reads
        self.rows: list[tuple[dict[int, float], float, float]] = []
        self.alone: list[int] = []
        self.parts: list[list[_Part]] = []
        for gateway in range(problem.nodes):
            lease = self._column(gateway, problem.leader, (problem.leader,))
            parts = self._parts(gateway)
            self.rows.append((dict.fromkeys([lease, *(p.whole for p in parts)], 1.0), 1.0, 1.0))
            self.alone.append(lease)
            self.parts.append(parts)

    def _column(self, gateway: int, slowest: int | None, visited: Quorum) -> int:
        """Add x_j of a gateway; without a slowest node it adds nothing to the latency."""
        problem, column = self.problem, len(self.latency)
        wait = 0.0 if slowest is None else float(problem.rtt[gateway, slowest])
        self.latency.append(float(problem.shares[gateway]) * wait)
        rate = float(problem.reads[gateway])
        self.visits += [(node, column, rate) for node in visited if rate]
        return column

    def _parts(self, gateway: int) -> list[_Part]:
        """Add the columns and rows of one gateway; one part per node that can be the slowest."""
        order, found = self.problem.order(gateway), []
        for place, last in enumerate(order):
            forced = (last,) if last == gateway else (last, gateway)
            count = self.problem.others_asked + 1 - len(forced)
            before = [node for node in order[:place] if node != gateway]
            if gateway not in order[: place + 1] or len(before) < count:
                continue
            whole = self._column(gateway, last, forced)
            free = {v: self._column(gateway, None, (v,)) for v in before} if count else {}
            if free:
                terms = {**dict.fromkeys(free.values(), 1.0), whole: -float(count)}
                self.rows.append((terms, 0.0, 0.0))
            self.rows += [({whole: 1.0, column: -1.0}, 0.0, math.inf) for column in free.values()]
            found.append(_Part(whole, forced, free, count))
        return found

    def solve(self, goal: ReadGoal, *, elastic: bool = False) -> _Answer | None:
        """Solve with HiGHS; None when it says that nothing obeys the limits."""
        problem, n = self.problem, self.problem.nodes
        unit = float(problem.base.max() + problem.reads.sum() / problem.capacity.min()) or 1.0
        latency = np.array(self.latency)
        weights = (0.0, 0.0) if elastic else (goal.latency_weight, goal.load_weight * unit)
        price = max(weights[0] * float(latency.max()), weights[1]) or 1.0
        builder = Builder()
        x = builder.add_columns(weights[0] * latency / price, upper=np.inf)
        load = builder.add_columns(np.zeros(n), upper=np.inf)
        peak = builder.add_columns(weights[1] / price, upper=np.inf)
        excess = builder.add_columns(float(elastic), upper=np.inf if elastic else 0.0)
        for terms, low, high in self.rows:
            (row,) = builder.add_rows(low, high, 1)
            columns = np.array(list(terms), dtype=np.intp)
            builder.put(np.full(len(terms), row), columns, list(terms.values()))
        balance = builder.add_rows(problem.base / unit, problem.base / unit, n)
        node, column, rate = (np.array(each) for each in zip(*self.visits, strict=True))
        builder.put(balance[node], column, -rate / problem.capacity[node] / unit)
        builder.put(balance, load, 1.0)
        below = builder.add_rows(0.0, np.inf, n)
        builder.put(below, np.repeat(peak, n), 1.0)
        builder.put(below, load, -1.0)
        within = np.zeros(0, dtype=np.intp)
        if math.isfinite(goal.latency_budget):
            within = builder.add_rows(-np.inf, goal.latency_budget, 1)
            builder.put(
                np.repeat(within, int((latency > 0).sum())), x[latency > 0], latency[latency > 0]
            )
            builder.put(within, excess, -(goal.latency_budget or 1.0))
        if math.isfinite(goal.load_limit):
            limit = builder.add_rows(-np.inf, goal.load_limit / unit, 1)
            builder.put(limit, peak, 1.0)
            builder.put(limit, excess, -1.0)
        relaxation = Relaxation(builder.program(), tolerance=_LP_TOLERANCE)
        verdict = relaxation.solve()
        if verdict is Verdict.INFEASIBLE and not elastic:
            return None
        values, duals = relaxation.values, relaxation.duals
        if verdict is not Verdict.OPTIMAL or values is None or duals is None:
            raise SolverError(f"HiGHS ended with {verdict.value!r}")
        return _Answer(
            values[: len(x)],
            np.maximum(duals[below], 0.0) * price / unit,
            price * max(0.0, -float(duals[within].sum())),
            float(values[excess[0]]),
        )

    def strategy(self, values: FloatArray) -> ReadStrategy:
        """Turn s and y into mixtures of sets."""
        mixtures: list[dict[Quorum, float]] = []
        for lease, parts in zip(self.alone, self.parts, strict=True):
            mixture: dict[Quorum, float] = {}
            if values[lease] > _NOTHING:
                mixture[self.problem.leader,] = float(values[lease])
            for part in parts:
                for quorum, probability in part.spread(values).items():
                    mixture[quorum] = mixture.get(quorum, 0.0) + probability
            total = sum(mixture.values())
            mixtures.append({quorum: p / total for quorum, p in mixture.items()})
        return ReadStrategy.of(self.problem, mixtures)
