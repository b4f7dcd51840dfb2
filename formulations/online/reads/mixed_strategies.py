"""Optimal read strategies by linear programs: enumerated (Q1), compact (Q2), columns (Q3).

How a strategy is written (enumerated, compact, generated columns) is the caller's: columns x >= 0
with the time they add to the mean latency and the reads they put on nodes, and rows among them.
Here the rest is built. Sets: scenarios k, nodes v. Variables: x, ρ_kv, t_k, n_kv.

    min  Σ_k load_weight·w_k·t_k + latency_weight·Σ_j a_j x_j + Σ_kv queue_weight·w_k·n_kv
    ρ_kv − volume_k/capacity_v·Σ_j visits_vj x_j  = base_kv
    t_k − ρ_kv                                   >= 0             prices π_kv
    n_kv − f'(r)·ρ_kv                            >= f(r) − r·f'(r)   for tangents r,  f = ρ/(1 − ρ)
    Σ_j a_j x_j                                  <= latency_budget   price μ
    t_k <= load_limit

HiGHS works with absolute tolerances, so that loads are handed over in units of the largest possible
one and the objective in units of its largest coefficient; prices are turned back.

A tangent lies below the convex f, so that the program is a relaxation, and its duals are good
prices for :func:`placement.online.reads.lower_bound`, which gives the proof.

When nothing obeys the limits, the same program with both limits raised by e (in units of the
largest possible load and in parts of the budget) and objective e gives prices that refute them.

The compact program (Q2): O(n³) variables, exact for majorities and other thresholds.

Gateway i orders the eligible nodes by RTT. A read that does not go to the leaseholder has a
`size`-th fastest node l, whose RTT is its latency; given l, the other nodes asked are any size − 1
before l and any `spare` after it. Variables, for a gateway i:

    s_i0    probability of the leaseholder alone
    s_il    probability of a quorum whose size-th fastest member is l
    y_ilv   probability of such a quorum with v in it (v ≠ l)

    s_i0 + Σ_l s_il = 1
    Σ_{v before l} y_ilv = (size − 1)·s_il       Σ_{v after l} y_ilv = spare·s_il
    0 <= y_ilv <= s_il                           y_ilv = s_il where v is the gateway and must be in

Exact: for fixed l with s_il > 0 the point y_il·/s_il lies in a product of two hypersimplices, whose
corners are the sets themselves, so it is a mixture of them, which
:func:`spread` finds. Latency and loads are linear in s and y.

Program with a column for each gateway and quorum: all (Q1), or those that prices ask for (Q3).

Variables p_iA: probability that gateway i asks the set A.

    Σ_A p_iA = 1    for every gateway i,    p >= 0

with a_iA = g_i/Σ g·(time until A has answered) and g_i visits to each member of A, in the program
above. Q1 has C(n − 2, m)·(n − 1) + n columns for
majorities around a leaseholder. Q3 begins with the leaseholder alone and the nearest quorum per
gateway and adds, at the prices of the last program, the cheapest set of each gateway (exact
pricing by the quorum system: O(n² log n) for majorities) until no reduced cost is negative; the
Lagrangean bound of :mod:`placement.online.reads.read_problem` is computed by the same pricing and
proves it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from formulations.solvers.highs import Relaxation
from formulations.solvers.linear_program import LinearProgram
from formulations.solvers.statuses import Verdict
from placement.errors import LimitError, SolverError, UnsupportedError
from placement.online.reads import (
    NodePrices,
    Quorum,
    ReadGoal,
    ReadPlan,
    ReadProblem,
    ReadStrategy,
    ThresholdQuorums,
    cheapest_choice,
    evaluate,
    infeasible_by,
    lower_bound,
    node_prices,
    subsets_of,
)
from placement.online.reads.read_problem import TOLERANCE
from placement.support.checks import BoolArray, FloatArray
from placement.support.status import relative_gap

__all__ = [
    "NOTHING",
    "LoadAnswer",
    "Master",
    "Part",
    "optimise",
    "solve_columns",
    "solve_compact",
    "solve_enumerated",
    "spread",
]

_FIRST_TANGENTS = (0.0, 0.3, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98)
_SATURATED = 1.0 - 1e-6
"""With a queueing term no node is used more than this; f is a million there."""

_LP_TOLERANCE = 1e-10
"""The least HiGHS takes; prices at its default of 1e-7 leave gaps of some 1e-9."""

_REFUTED = 1e-12
"""Limits count as refuted when the prices exceed them by this, in parts of the largest possible
load and of the budget; they are sums of some hundred terms, off by 1e-14."""


@dataclass(frozen=True, eq=False)
class LoadAnswer:
    """Values of the columns x, shape (columns,), and the prices; `excess` is e where it exists."""

    values: FloatArray
    prices: NodePrices
    excess: float = 0.0


@dataclass(eq=False)
class Master:
    """Columns and rows of one way to write strategies; grows, never shrinks."""

    problem: ReadProblem
    latency: list[float] = field(default_factory=list)
    visits: list[Mapping[int, float]] = field(default_factory=list)
    rows: list[tuple[dict[int, float], float, float]] = field(default_factory=list)
    tangents: list[tuple[int, int, float]] = field(default_factory=list)

    def column(self, latency: float, visits: Mapping[int, float]) -> int:
        """Add x_j with its a_j in ms and its reads per node; return j."""
        self.latency.append(latency)
        self.visits.append(visits)
        return len(self.latency) - 1

    def row(self, terms: dict[int, float], low: float, high: float) -> int:
        """Add low <= Σ terms·x <= high; return its number."""
        self.rows.append((terms, low, high))
        return len(self.rows) - 1

    def add_tangents(self, load: FloatArray) -> bool:
        """Add a tangent of f at every load; False when all were there."""
        known = {(k, v): set[float]() for k, v in np.ndindex(load.shape)}
        for k, v, point in self.tangents:
            known[k, v].add(point)
        before = len(self.tangents)
        for k, v in np.ndindex(load.shape):
            point = min(float(load[k, v]), _SATURATED)
            if all(abs(point - other) > 1e-13 for other in known[k, v]):
                self.tangents.append((k, v, point))
        return len(self.tangents) > before

    def solve(self, goal: ReadGoal, *, elastic: bool = False) -> LoadAnswer | None:
        """Solve with HiGHS; None when it says that nothing obeys the limits.

        Raises
        ------
        SolverError
            When HiGHS ends in any other way than optimal or infeasible.
        """
        layout = _ProgramLayout(self, goal, elastic)
        relaxation = Relaxation(layout.program(), tolerance=_LP_TOLERANCE)
        verdict = relaxation.solve()
        if verdict is Verdict.INFEASIBLE and not elastic:
            return None
        values, duals = relaxation.values, relaxation.duals
        if verdict is not Verdict.OPTIMAL or values is None or duals is None:
            raise SolverError(f"HiGHS ended with {verdict.value!r}")
        return layout.answer(values, duals)


class _ProgramLayout:
    """Positions of columns and rows of the whole program: x, ρ, t, n, e; own rows first."""

    def __init__(self, master: Master, goal: ReadGoal, elastic: bool) -> None:
        self.master, self.goal, self.elastic = master, goal, elastic
        problem = master.problem
        self.scenarios, self.nodes = len(problem.volumes), problem.nodes
        size = self.scenarios * self.nodes
        self.load0 = len(master.latency)
        self.peak0 = self.load0 + size
        self.queue0 = self.peak0 + self.scenarios
        self.queued = goal.queue_weight > 0 and not elastic
        self.excess = self.queue0 + (size if self.queued else 0)
        self.columns = self.excess + 1
        most = problem.base_load.max(axis=1) + problem.volumes * float(
            problem.reads.sum() / problem.capacities.min()
        )
        self.unit = float(most.max()) or 1.0
        limit = min(goal.load_limit, _SATURATED) if goal.queue_weight > 0 else goal.load_limit
        self.price = 1.0
        self.lines: list[tuple[dict[int, float], float, float]] = [*master.rows]
        self._balance()
        self.peak_row = len(self.lines)
        for k in range(self.scenarios):
            for v in range(self.nodes):
                self.lines.append(({self.peak0 + k: 1.0, self._load(k, v): -1.0}, 0.0, math.inf))
        self.tangent_row = len(self.lines)
        if self.queued:
            for k, v, point in master.tangents:
                slope = 1.0 / (1.0 - point) ** 2
                low = point / (1.0 - point) - point * slope
                queue = self.queue0 + k * self.nodes + v
                terms = {queue: 1.0, self._load(k, v): -slope * self.unit}
                self.lines.append((terms, low, math.inf))
        self.budget_row = len(self.lines)
        if math.isfinite(goal.latency_budget):
            terms = {j: a for j, a in enumerate(master.latency) if a}
            terms[self.excess] = -(goal.latency_budget or 1.0)
            self.lines.append((terms, -math.inf, goal.latency_budget))
        if math.isfinite(limit):
            for k in range(self.scenarios):
                terms = {self.peak0 + k: 1.0, self.excess: -1.0}
                self.lines.append((terms, -math.inf, limit / self.unit))

    def _load(self, k: int, v: int) -> int:
        return self.load0 + k * self.nodes + v

    def _balance(self) -> None:
        problem = self.master.problem
        on: list[dict[int, float]] = [{} for _ in range(self.nodes)]
        for j, visits in enumerate(self.master.visits):
            for v, rate in visits.items():
                on[v][j] = rate
        for k in range(self.scenarios):
            for v in range(self.nodes):
                factor = float(problem.volumes[k] / problem.capacities[v]) / self.unit
                terms = {j: -factor * rate for j, rate in on[v].items() if rate and factor}
                terms[self._load(k, v)] = 1.0
                base = float(problem.base_load[k, v]) / self.unit
                self.lines.append((terms, base, base))

    def program(self) -> LinearProgram:
        """The arrays."""
        goal, problem = self.goal, self.master.problem
        cost = np.zeros(self.columns)
        upper = np.full(self.columns, np.inf)
        if self.elastic:
            cost[self.excess] = 1.0
        else:
            upper[self.excess] = 0.0
            cost[: self.load0] = goal.latency_weight * np.array(self.master.latency)
            weights = goal.load_weight * problem.scenario_weights
            cost[self.peak0 : self.queue0] = weights * self.unit
            if self.queued:
                weights = goal.queue_weight * problem.scenario_weights
                cost[self.queue0 : self.excess] = np.repeat(weights, self.nodes)
            self.price = float(cost.max()) or 1.0
            cost /= self.price
        counts = [len(terms) for terms, _, _ in self.lines]
        integer: BoolArray = np.zeros(self.columns, dtype=bool)
        return LinearProgram(
            cost=cost,
            offset=0.0,
            lower=np.zeros(self.columns),
            upper=upper,
            integer=integer,
            start=np.concatenate([[0], np.cumsum(counts)]).astype(np.intp),
            index=np.array([j for terms, _, _ in self.lines for j in terms], dtype=np.intp),
            value=np.array([a for terms, _, _ in self.lines for a in terms.values()]),
            row_lower=np.array([low for _, low, _ in self.lines]),
            row_upper=np.array([high for _, _, high in self.lines]),
            columns=(),
        )

    def answer(self, values: FloatArray, duals: FloatArray) -> LoadAnswer:
        """Read values and prices."""
        shape = (self.scenarios, self.nodes)
        size = self.scenarios * self.nodes
        duals = duals * self.price
        peak = duals[self.peak_row : self.peak_row + size].reshape(shape) / self.unit
        queue = np.zeros(shape)
        if self.queued:
            for (k, v, point), dual in zip(
                self.master.tangents, duals[self.tangent_row : self.budget_row], strict=True
            ):
                queue[k, v] += max(0.0, float(dual)) / (1.0 - point) ** 2
        finite = math.isfinite(self.goal.latency_budget)
        latency = max(0.0, -float(duals[self.budget_row])) if finite else 0.0
        prices = NodePrices(np.maximum(peak, 0.0), queue, latency)
        return LoadAnswer(values[: self.load0], prices, float(values[self.excess]))


def optimise(
    master: Master,
    goal: ReadGoal,
    *,
    method: str,
    strategy_of: Callable[[FloatArray], ReadStrategy],
    extend: Callable[[NodePrices, float], bool],
    most_rounds: int = 2000,
) -> ReadPlan:
    """Solve, evaluate, bound; add columns and tangents until value and bound meet.

    Parameters
    ----------
    master
        Columns and rows to begin with.
    strategy_of
        Turns values of x into a strategy.
    extend
        Adds columns that are worth it at some prices (the second argument: price of a ms of mean
        latency); False when there is none. Programs with all their columns return False.

    Returns
    -------
    Optimal, or infeasible with limits refuted by prices; feasible when the rounds ran out.

    Raises
    ------
    SolverError
        When HiGHS fails, or calls infeasible what the prices do not refute.
    """
    problem = master.problem
    if goal.queue_weight > 0:
        shape = problem.base_load.shape
        for point in _FIRST_TANGENTS:
            master.add_tangents(np.full(shape, point))
    best, value, bound = None, math.inf, 0.0  # no term of the objective is negative
    rounds = 0
    for rounds in range(1, most_rounds + 1):  # noqa: B007  the number is told below
        answer = master.solve(goal)
        if answer is None:
            answer = master.solve(goal, elastic=True)
            assert answer is not None  # elastic programs have solutions, or raise
            limit = min(goal.load_limit, 1.0) if goal.queue_weight > 0 else goal.load_limit
            refuted = infeasible_by(
                problem, dataclasses.replace(goal, load_limit=limit), answer.prices
            )
            if refuted > _REFUTED:
                alone = functools.partial(
                    optimise, master, method=method, strategy_of=strategy_of, extend=extend
                )
                reasons = _reasons(problem, dataclasses.replace(goal, load_limit=limit), alone)
                return ReadPlan.of(
                    problem, goal, None, method=method, bound=math.inf, notes=reasons
                )
            if extend(answer.prices, answer.prices.latency):
                continue
            # A limit at the very edge of what is possible: within the tolerance of the evaluator.
            excess, answer = answer.excess, master.solve(_eased(goal))
            if answer is None:
                raise SolverError(
                    f"HiGHS finds nothing within the limits of {goal}, but the prices do not "
                    f"refute them (excess {excess:.3g})"
                )
        strategy = strategy_of(answer.values)
        figures = evaluate(problem, strategy)
        reached = figures.objective(goal)
        if reached < value and not figures.broken(goal):
            best, value = strategy, reached
        bound = max(bound, lower_bound(problem, goal, answer.prices))
        if relative_gap(value, bound) <= 1e-10:
            break
        grew = extend(answer.prices, goal.latency_weight + answer.prices.latency)
        if goal.queue_weight > 0:
            grew = master.add_tangents(figures.load) or grew
        if not grew:
            break
    if best is None:
        raise SolverError(f"{method}: no strategy within the limits came out of {rounds} rounds")
    note = f"{rounds} linear programs, {len(master.latency)} columns in the last"
    return ReadPlan.of(problem, goal, best, method=method, bound=min(bound, value), notes=[note])


def _reasons(
    problem: ReadProblem, goal: ReadGoal, solve: Callable[[ReadGoal], ReadPlan]
) -> list[str]:
    """Name the limit that is impossible even alone, with the least possible; or their conflict."""
    found = []
    if math.isfinite(goal.load_limit) and len(problem.volumes) == 1:
        least = solve(ReadGoal.least_load()).bound
        if least > goal.load_limit:
            found.append(
                f"the busiest node is used at least {least:.6g}, the limit is {goal.load_limit:.6g}"
            )
    if math.isfinite(goal.latency_budget):
        least = solve(ReadGoal.least_latency()).bound
        if least > goal.latency_budget:
            found.append(
                f"the mean latency is at least {least:.6g} ms, the budget is "
                f"{goal.latency_budget:.6g} ms"
            )
    return found or ["no strategy obeys all limits at once"]


def _eased(goal: ReadGoal) -> ReadGoal:
    """Return the goal with its limits raised by half of the evaluator's tolerance."""
    return dataclasses.replace(
        goal,
        load_limit=goal.load_limit * (1.0 + TOLERANCE / 2),
        latency_budget=goal.latency_budget * (1.0 + TOLERANCE / 2),
    )


NOTHING = 1e-11
"""Probabilities of a last node below this are dropped: they are the solver's tolerance."""


@dataclass(frozen=True)
class Part:
    """Columns of one gateway and one last node l.

    Attributes
    ----------
    whole
        Column of s_l.
    forced
        Members of every such quorum: l, and the gateway where it must be in.
    sides
        Per side of l, the columns of its free nodes' y_lv and how many of them are in a quorum.
    """

    whole: int
    forced: tuple[int, ...]
    sides: tuple[tuple[Mapping[int, int], int], ...]


def spread(part: Part, values: FloatArray, without: int | None = None) -> dict[Quorum, float]:
    """Quorums of a part with their probabilities, which add up to s_l; empty where s_l is 0.

    Parameters
    ----------
    part, values
        Which columns, and the values of all.
    without
        A node that is in no quorum, whatever its y: the solver's tolerance may leave it a little.

    Notes
    -----
    Dividing by a small s magnifies the solver's tolerance, so that a side may miss its whole sum by
    more than rounding; the missing part is taken from the remaining room, in proportion.
    """
    weight = float(values[part.whole])
    if weight <= NOTHING or without in part.forced:
        return {}
    members: list[int] = []
    p: list[float] = []
    for columns, count in part.sides:
        nodes = [v for v in columns if v != without] if count else []
        here = [min(1.0, max(0.0, float(values[columns[v]]) / weight)) for v in nodes]
        members.extend(nodes)
        p.extend(_mended(here, count))
    found = subsets_of(members, p, sum(count for _, count in part.sides))
    return {tuple(sorted((*free, *part.forced))): weight * share for free, share in found}


def _mended(p: Sequence[float], count: int) -> list[float]:
    """The probabilities moved, within 0 and 1, to the sum `count`."""
    lack = count - sum(p)
    room = [1.0 - q if lack > 0 else q for q in p]
    if lack == 0 or sum(room) == 0:
        return list(p)
    moved = (q + lack * r / sum(room) for q, r in zip(p, room, strict=True))
    return [min(1.0, max(0.0, q)) for q in moved]


def solve_compact(problem: ReadProblem, goal: ReadGoal) -> ReadPlan:
    """Return the optimal strategy of a problem whose quorums are thresholds.

    Raises
    ------
    UnsupportedError
        For another quorum system.
    SolverError
        See :func:`formulations.online.reads.mixed_strategies.optimise`.

    Examples
    --------
    >>> plan = solve_compact(ReadProblem.uniform(5), ReadGoal.least_load())
    >>> str(plan.status), round(plan.value, 6)
    ('optimal', 0.428571)
    """
    system = problem.quorums
    if not isinstance(system, ThresholdQuorums):
        raise UnsupportedError(
            f"the compact program takes threshold quorums, not {type(system).__name__}; "
            "solve_columns takes any"
        )
    master = Master(problem)
    alone: list[int | None] = []
    parts: list[list[Part]] = []
    for gateway in range(problem.nodes):
        share, rate = float(problem.shares[gateway]), float(problem.reads[gateway])
        total: dict[int, float] = {}
        lease = None
        if problem.leader is not None:
            wait = share * float(problem.rtt[gateway, problem.leader])
            lease = master.column(wait, {problem.leader: rate})
            total[lease] = 1.0
        found = _parts(master, problem, system, gateway, share, rate)
        total.update((part.whole, 1.0) for part in found)
        master.row(total, 1.0, 1.0)
        alone.append(lease)
        parts.append(found)
    return optimise(
        master,
        goal,
        method="compact",
        strategy_of=lambda values: _strategy(problem, alone, parts, values),
        extend=lambda prices, per_ms: False,
    )


def _parts(
    master: Master,
    problem: ReadProblem,
    system: ThresholdQuorums,
    gateway: int,
    share: float,
    rate: float,
) -> list[Part]:
    """Add the columns and rows of one gateway; one part per node that can be the last."""
    order = system.order(gateway, problem.rtt[gateway])
    found = []
    for place, last in enumerate(order):
        own = order.index(gateway) if system.include_self else place
        needed = system.size - 1 - int(own < place)
        spare = system.spare - int(own > place)
        before = [v for v in order[:place] if not (system.include_self and v == gateway)]
        after = [v for v in order[place + 1 :] if not (system.include_self and v == gateway)]
        if not (0 <= needed <= len(before) and 0 <= spare <= len(after)):
            continue
        forced = (last,) if own == place else (last, gateway)
        whole = master.column(
            share * float(problem.rtt[gateway, last]), dict.fromkeys(forced, rate)
        )
        sides: list[tuple[dict[int, int], int]] = []
        for nodes, count in ((before, needed), (after, spare)):
            side = {v: master.column(0.0, {v: rate}) for v in nodes} if count else {}
            if side:
                master.row({**dict.fromkeys(side.values(), 1.0), whole: -float(count)}, 0.0, 0.0)
            for j in side.values():
                master.row({whole: 1.0, j: -1.0}, 0.0, float("inf"))
            sides.append((side, count))
        found.append(Part(whole, forced, tuple(sides)))
    return found


def _strategy(
    problem: ReadProblem,
    alone: list[int | None],
    parts: list[list[Part]],
    values: FloatArray,
) -> ReadStrategy:
    """Turn s and y into mixtures of sets."""
    mixtures: list[dict[Quorum, float]] = []
    for gateway in range(problem.nodes):
        mixture: dict[Quorum, float] = {}
        lease = alone[gateway]
        if lease is not None and problem.leader is not None and values[lease] > NOTHING:
            mixture[problem.leader,] = float(values[lease])
        for part in parts[gateway]:
            for quorum, probability in spread(part, values).items():
                mixture[quorum] = mixture.get(quorum, 0.0) + probability
        total = sum(mixture.values())
        mixtures.append({quorum: p / total for quorum, p in mixture.items()})
    return ReadStrategy.of(problem, mixtures)


_MOST_COLUMNS = 200_000


class _QuorumColumns:
    """The columns there are, by gateway and set."""

    def __init__(self, problem: ReadProblem) -> None:
        self.problem = problem
        self.master = Master(problem)
        self.sets: list[tuple[int, Quorum]] = []
        self.known: set[tuple[int, Quorum]] = set()
        for _ in range(problem.nodes):
            self.master.row({}, 1.0, 1.0)

    def add(self, gateway: int, quorum: Quorum) -> bool:
        """Add p_iA; False when it is there."""
        if (gateway, quorum) in self.known:
            return False
        problem = self.problem
        wait = float(problem.shares[gateway]) * problem.latency(gateway, quorum)
        rate = float(problem.reads[gateway])
        j = self.master.column(wait, dict.fromkeys(quorum, rate))
        self.master.rows[gateway][0][j] = 1.0
        self.sets.append((gateway, quorum))
        self.known.add((gateway, quorum))
        return True

    def strategy(self, values: FloatArray) -> ReadStrategy:
        """Read the probabilities."""
        mixtures: list[dict[Quorum, float]] = [{} for _ in range(self.problem.nodes)]
        for (gateway, quorum), value in zip(self.sets, values, strict=True):
            if value > 1e-12:
                mixtures[gateway][quorum] = float(value)
        return ReadStrategy.of(self.problem, mixtures)

    def price(self, prices: NodePrices, per_ms: float) -> bool:
        """Add the cheapest set of every gateway at these prices; False when all were there."""
        problem = self.problem
        per_node = node_prices(problem, prices)
        total = float(problem.reads.sum())
        grew = False
        for gateway in range(problem.nodes):
            # Per read: a ms at this gateway counts g_i/Σ g of a ms of the mean, over g_i reads.
            _, quorum = cheapest_choice(problem, gateway, per_node, per_ms / total)
            grew = self.add(gateway, quorum) or grew
        return grew


def solve_enumerated(problem: ReadProblem, goal: ReadGoal) -> ReadPlan:
    """Q1: the optimal strategy from the program with every set of every gateway.

    Raises
    ------
    LimitError
        Beyond 200,000 columns.
    """
    count = sum(problem.quorums.count(gateway) + 1 for gateway in range(problem.nodes))
    if count > _MOST_COLUMNS:
        raise LimitError(
            f"{count:,} gateways and quorums, the limit of the enumerated program is "
            f"{_MOST_COLUMNS:,}; solve_columns or solve_compact take it"
        )
    columns = _QuorumColumns(problem)
    for gateway in range(problem.nodes):
        for quorum in problem.choices(gateway):
            columns.add(gateway, quorum)
    return optimise(
        columns.master,
        goal,
        method="enumerated",
        strategy_of=columns.strategy,
        extend=lambda prices, per_ms: False,
    )


def solve_columns(problem: ReadProblem, goal: ReadGoal) -> ReadPlan:
    """Q3: the same optimum with columns added as prices ask for them; any quorum system."""
    columns = _QuorumColumns(problem)
    nothing = np.zeros(problem.nodes)
    for gateway in range(problem.nodes):
        if problem.leader is not None:
            columns.add(gateway, (problem.leader,))
        nearest = problem.quorums.cheapest(gateway, problem.rtt[gateway], nothing, 1.0)
        if nearest is not None:
            columns.add(gateway, nearest[1])
    return optimise(
        columns.master,
        goal,
        method="column generation",
        strategy_of=columns.strategy,
        extend=columns.price,
    )
