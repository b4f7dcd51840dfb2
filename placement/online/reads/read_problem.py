"""The optimal read strategy as a problem: choices of a gateway, evaluator, plan and lower bound.

A gateway asks the leaseholder alone, or a majority without it to which it belongs itself. A linear
program gives probabilities p_v that node v is asked. Any p in [0, 1]^n with Σ p_v = k is a mixture
of subsets of exactly k nodes (the hypersimplex has integral corners). Systematic sampling finds one
with at most n + 1 subsets. Lay the nodes along a line, each p_v long; draw u from U[0, 1) and take
the nodes that contain u, u + 1, …, u + k − 1. Source: W. G. Madow, "On the theory of systematic
sampling, II", Annals of Mathematical Statistics 20 (1949).

Prices on nodes give a lower bound on every read strategy; no solver is believed. Pricing the rows
ρ_v <= t with π_v >= 0 and the latency budget with μ >= 0 relaxes the problem to independent parts,
each solved exactly:

    L(π, μ) =  Σ_i g_i·min_A [ (latency_weight + μ)/Σ g·wait_i(A) + Σ_{v ∈ A} π_v/capacity_v ]
             + Σ_v π_v·base_v + min_{0 <= t <= limit} (load_weight − Σ_v π_v)·t − μ·latency_budget

By weak duality L is a lower bound for *any* prices; good ones come from the duals of a linear
program. Prices whose t would have to be infinite are scaled down until it need not be.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from itertools import combinations
from math import comb

import numpy as np

from placement.errors import InputError, SolverError, require
from placement.support.checks import (
    FloatArray,
    elements,
    frozen,
    instance_of,
    nonnegative,
    number,
    numbers_of,
    whole,
)
from placement.support.status import (
    OPTIMALITY_TOLERANCE,
    Status,
    least_bound,
    relative_gap,
    status_of,
)

Quorum = tuple[int, ...]
"""Nodes asked, in increasing order."""


@dataclass(frozen=True, slots=True)
class ReadGoal:
    """Objective of a read strategy, and its limits.

        load_weight·max_v ρ_v + latency_weight·mean latency

    subject to ρ_v <= load_limit and mean latency <= latency_budget.

    Parameters
    ----------
    load_weight, latency_weight
        >= 0, not both zero.
    load_limit
        Largest utilisation of any node; infinite: none.
    latency_budget
        Largest mean latency in ms; infinite: none.
    """

    load_weight: float = 0.0
    latency_weight: float = 0.0
    load_limit: float = math.inf
    latency_budget: float = math.inf

    def __post_init__(self) -> None:
        for name in ("load_weight", "latency_weight"):
            number(getattr(self, name), name)
        words = "nothing to minimise"
        expected = "a positive weight"
        require(self.load_weight + self.latency_weight != 0.0, "load_weight", words, 0.0, expected)
        for name in ("load_limit", "latency_budget"):
            number(getattr(self, name), name, infinite=True)

    @classmethod
    def least_load(cls, latency_budget: float = math.inf) -> ReadGoal:
        """Smallest load of the busiest node."""
        return cls(load_weight=1.0, latency_budget=latency_budget)

    @classmethod
    def least_latency(cls, load_limit: float = math.inf) -> ReadGoal:
        """Smallest mean latency while no node carries more than the limit."""
        return cls(latency_weight=1.0, load_limit=load_limit)


@dataclass(frozen=True, eq=False)
class ReadProblem:
    """Choice of the share of reads that every gateway sends to the leaseholder and to each quorum.

    Gateway i gets a share of the reads and may send each to the leaseholder L alone, or to itself
    and m = ⌊n/2⌋ of the others without L. L as a gateway always reads its own copy. With p_iA the
    probability that i asks the set A,

        ρ_v = base_v + Σ_i g_i·Σ_{A ∋ v} p_iA/capacity_v                utilisation of v
        latency = Σ_i g_i Σ_A p_iA·(time until all of A have answered)/Σ_i g_i

    Nodes and gateways are the same n machines.

    Parameters
    ----------
    rtt
        rtt[i, v] in ms from gateway i to node v, shape (n, n), finite, >= 0.
    reads
        g: reads per unit of time that enter at each gateway, shape (n,), not all zero.
    leader
        L.
    capacity
        Reads per unit of time that a node can serve, shape (n,) or one number, > 0.
    base
        Utilisation by everything that is no read (writes), shape (n,) or one number, >= 0.

    Raises
    ------
    InputError
        Naming field, element, value and what was expected.

    Examples
    --------
    >>> problem = ReadProblem.uniform(5)
    >>> problem.count(1), problem.choices(1)[:2]
    (3, ((0,), (1, 2, 3)))
    """

    rtt: FloatArray
    reads: FloatArray
    leader: int
    _: KW_ONLY
    capacity: FloatArray = field(default_factory=lambda: np.array(1.0))
    base: FloatArray = field(default_factory=lambda: np.array(0.0))

    def __post_init__(self) -> None:
        put = object.__setattr__
        table = numbers_of(self.rtt, "rtt")
        expected = "a square table of RTTs"
        require(table.ndim == 2 and table.size, "rtt", "wrong shape", table.shape, expected)
        nodes = tuple(map(str, range(len(table))))
        axis = ("node", nodes)
        put(self, "rtt", nonnegative(self.rtt, "rtt", [("gateway", nodes), axis]))
        put(self, "reads", nonnegative(self.reads, "reads", [("gateway", nodes)]))
        if not self.reads.any():
            raise InputError("no reads", field="reads", value=0.0, expected="a positive rate")
        put(self, "leader", whole(self.leader, "leader", maximum=len(nodes) - 1))
        for name in ("capacity", "base"):
            given = numbers_of(getattr(self, name), name)
            values = np.full(len(nodes), given) if given.ndim == 0 else given
            put(self, name, nonnegative(values, name, [axis]))
        words = f"node {int(np.argmin(self.capacity))} can serve nothing"
        require(self.capacity.all(), "capacity", words, 0.0, "> 0")

    @classmethod
    def uniform(
        cls, nodes: int, *, rtt: float = 1.0, leader_cost: float = 0.0, follower_cost: float = 0.0
    ) -> ReadProblem:
        """Return the paper's setting: n equal nodes, equal gateways, node 0 holds the lease.

        Loads come out per read of the whole cluster. `leader_cost` and `follower_cost` are what
        writes cost L and each other node, per read of the cluster: W·c_L and W·c_F.
        """
        nodes = whole(nodes, "nodes", minimum=1)
        distance = frozen(number(rtt, "rtt") * (1.0 - np.eye(nodes)))
        base = np.full(nodes, number(follower_cost, "follower_cost"))
        base[0] = number(leader_cost, "leader_cost")
        return cls(distance, np.full(nodes, 1.0 / nodes), 0, base=base)

    @property
    def nodes(self) -> int:
        """Number of nodes, n."""
        return len(self.rtt)

    @property
    def others_asked(self) -> int:
        """Nodes that a majority has besides the gateway: m = ⌊n/2⌋."""
        return self.nodes // 2

    @property
    def shares(self) -> FloatArray:
        """g_i/Σ g, shape (n,)."""
        shares: FloatArray = self.reads / self.reads.sum()
        return shares

    def order(self, gateway: int) -> tuple[int, ...]:
        """Nodes that may be in a majority of `gateway`, itself too, nearest first; empty for L."""
        if gateway == self.leader or self.nodes < 3:
            return ()
        others = (node for node in range(self.nodes) if node != self.leader)
        return tuple(sorted(others, key=lambda node: (self.rtt[gateway, node], node)))

    def count(self, gateway: int) -> int:
        """Return the number of majorities of `gateway`."""
        return comb(self.nodes - 2, self.others_asked) if self.order(gateway) else 0

    def majorities(self, gateway: int) -> Iterator[Quorum]:
        """Yield all majorities of `gateway`; their number is :meth:`count`."""
        nodes = sorted(self.order(gateway))
        for quorum in combinations(nodes, self.others_asked + 1):
            if gateway in quorum:
                yield quorum

    def choices(self, gateway: int) -> tuple[Quorum, ...]:
        """Return the choices of `gateway`: the leaseholder alone first, then all majorities."""
        return ((self.leader,), *self.majorities(gateway))

    def legal(self, gateway: int, quorum: Quorum) -> bool:
        """Return whether `gateway` may ask `quorum`."""
        return quorum == (self.leader,) or (
            len(set(quorum)) == len(quorum) == self.others_asked + 1
            and gateway in quorum
            and set(quorum) <= set(self.order(gateway))
        )

    def latency(self, gateway: int, quorum: Quorum) -> float:
        """Time in ms until all of `quorum` have answered `gateway`."""
        return float(self.rtt[gateway, list(quorum)].max())

    def cheapest(self, gateway: int, prices: FloatArray, per_ms: float) -> tuple[float, Quorum]:
        """Return the least Σ_{v ∈ A} prices[v] + per_ms·latency(A), and an A of that value.

        For each possible slowest node, the cheapest nodes that are nearer; O(n² log n).
        """
        leader = self.leader
        value = float(prices[leader]) + per_ms * float(self.rtt[gateway, leader])
        best = (value, (leader,))
        order = self.order(gateway)
        for place, last in enumerate(order):
            if gateway not in order[: place + 1]:
                continue
            free = [node for node in order[:place] if node != gateway]
            forced = (last,) if last == gateway else (last, gateway)
            needed = self.others_asked + 1 - len(forced)
            if len(free) < needed:
                continue
            near = sorted(free, key=lambda node: (prices[node], node))[:needed]
            value = float(sum(prices[node] for node in (*near, *forced)))
            value += per_ms * float(self.rtt[gateway, last])
            if value < best[0]:
                best = (value, tuple(sorted((*near, *forced))))
        return best


_ROUNDING = 1e-7
"""Probabilities may miss their sums by this much; solvers work to about as much."""

_SLIVER = 1e-12
"""Intervals this short come from rounding, not from the probabilities."""


@dataclass(frozen=True)
class ReadStrategy:
    """Probabilities of the quorums that each gateway asks.

    Build one with :meth:`of`.

    Attributes
    ----------
    mixtures
        Per gateway a tuple of (quorum, probability), the probabilities positive with sum 1, in
        order of the quorums.
    """

    mixtures: tuple[tuple[tuple[Quorum, float], ...], ...]

    @classmethod
    def of(cls, problem: ReadProblem, mixtures: Sequence[Mapping[Quorum, float]]) -> ReadStrategy:
        """Check that every set is legal and normalise the probabilities.

        Raises
        ------
        InputError
            For a gateway without a mixture, a set it may not ask, a probability that is none, or a
            sum away from 1 by more than 1e-7.
        """
        instance_of(problem, ReadProblem, "problem", "a ReadProblem")
        listed = elements(mixtures, "mixtures", "one mapping of quorums for each gateway")

        def refuse(words: str, value: object, expected: str) -> InputError:
            return InputError(words, field="mixtures", value=value, expected=expected)

        if len(listed) != problem.nodes:
            raise refuse("not one mixture per gateway", len(listed), str(problem.nodes))
        kept = []
        for gateway, mixture in enumerate(listed):
            if not isinstance(mixture, Mapping):
                words = f"the mixture of gateway {gateway} is no mapping"
                raise refuse(words, mixture, "quorums with their probabilities")
            total = 0.0
            for quorum, probability in mixture.items():
                if not _is_quorum(quorum) or not problem.legal(gateway, quorum):
                    words = f"gateway {gateway} may not read from {quorum}"
                    raise refuse(words, quorum, "the leaseholder alone or a majority without it")
                name = f"mixtures[{gateway}][{quorum}]"
                number(probability, name, minimum=-_ROUNDING, maximum=1 + _ROUNDING)
                total += max(0.0, probability)
            if not abs(total - 1.0) <= _ROUNDING * max(1, len(mixture)):
                words = f"the probabilities of gateway {gateway} do not add up to 1"
                raise refuse(words, total, "1")
            kept.append(tuple((q, p / total) for q, p in sorted(mixture.items()) if p > 0.0))
        return cls(tuple(kept))

    @classmethod
    def coin(cls, problem: ReadProblem, share: float) -> ReadStrategy:
        """The paper's strategy: L with probability x, otherwise a uniform majority.

        A gateway without a majority goes to L always, and so does L itself.
        """
        mixtures: list[dict[Quorum, float]] = []
        for gateway in range(problem.nodes):
            quorums = list(problem.majorities(gateway))
            mixture = {quorum: (1.0 - share) / len(quorums) for quorum in quorums}
            mixtures.append({(problem.leader,): share if quorums else 1.0, **mixture})
        return cls.of(problem, mixtures)

    @cached_property
    def _steps(self) -> tuple[FloatArray, ...]:
        return tuple(np.cumsum([p for _, p in mixture]) for mixture in self.mixtures)

    def draw(self, gateway: int, uniform: float) -> Quorum:
        """Return the quorum of `gateway` for a number drawn from U[0, 1); O(log of the quorums)."""
        mixture = self.mixtures[gateway]
        place = int(np.searchsorted(self._steps[gateway], uniform, side="right"))
        return mixture[min(place, len(mixture) - 1)][0]


def _is_quorum(value: object) -> bool:
    return isinstance(value, tuple) and all(isinstance(node, int | np.integer) for node in value)


def subsets_of(
    members: Sequence[int], probabilities: Sequence[float], size: int
) -> list[tuple[Quorum, float]]:
    """Mix subsets of exactly `size` members so that each is included as often as asked.

    Parameters
    ----------
    members
        Distinct nodes, along the line.
    probabilities
        p, each in [0, 1], with sum `size`, both to a tolerance of 1e-7.
    size
        k.

    Returns
    -------
    Subsets in increasing order of nodes with positive probabilities of sum 1; at most one more than
    members.

    Raises
    ------
    InputError
        When the sum is not `size` or a probability is none.

    Examples
    --------
    >>> subsets_of([3, 5, 7], [0.5, 0.5, 1.0], 2)
    [((3, 7), 0.5), ((5, 7), 0.5)]
    """
    p = np.asarray(probabilities, dtype=np.float64)
    if p.shape != (len(members),) or not ((p > -_ROUNDING) & (p < 1 + _ROUNDING)).all():
        raise InputError(
            "not probabilities", field="probabilities", value=list(p), expected="each 0 to 1"
        )
    if abs(p.sum() - size) > _ROUNDING * max(1, len(members)):
        raise InputError(
            "the probabilities do not add up to the size",
            field="probabilities", value=float(p.sum()), expected=str(size),
        )  # fmt: skip
    # Positions that should be whole become whole: then nodes with p = 1 are in every subset.
    ends = np.cumsum(np.clip(p, 0.0, 1.0))
    near = np.rint(ends)
    ends = np.where(np.abs(ends - near) <= _ROUNDING * len(members), near, ends)
    ends = np.minimum(np.maximum.accumulate(ends), size) if len(ends) else ends
    cuts = np.unique(np.concatenate([[0.0, 1.0], ends % 1.0]))
    found: dict[Quorum, float] = {}
    for low, high in itertools.pairwise(cuts):
        if high - low < _SLIVER:
            continue
        points = (low + high) / 2.0 + np.arange(size)
        places = np.searchsorted(ends, points, side="right")
        subset = tuple(sorted(members[place] for place in places))
        found[subset] = found.get(subset, 0.0) + float(high - low)
    total = sum(found.values())
    return [(subset, weight / total) for subset, weight in sorted(found.items())]


TOLERANCE = 1e-9
"""Limits on load and latency may be exceeded by this part of them: a strategy of a linear programme
sits on its limits, and summing it up again rounds."""


@dataclass(frozen=True, eq=False)
class ReadFigures:
    """Figures of a strategy.

    Attributes
    ----------
    load
        ρ, utilisation of each node, shape (n,).
    latency
        Mean over the reads of the time until the quorum has answered, ms, without queueing.
    leader_served
        Part of all reads that L serves.
    """

    load: FloatArray
    latency: float
    leader_served: float

    @property
    def peak(self) -> float:
        """Largest utilisation of a node."""
        return float(self.load.max())

    def objective(self, goal: ReadGoal) -> float:
        """Value of the goal, without its limits."""
        return goal.load_weight * self.peak + goal.latency_weight * self.latency

    def broken(self, goal: ReadGoal) -> tuple[str, ...]:
        """Return the limits of the goal that do not hold, beyond :data:`TOLERANCE`."""
        found = []
        if self.peak > goal.load_limit * (1.0 + TOLERANCE):
            found.append(f"a node is used {self.peak:.9g}, the limit is {goal.load_limit:g}")
        if self.latency > goal.latency_budget * (1.0 + TOLERANCE):
            found.append(
                f"the mean latency is {self.latency:.9g} ms, the budget {goal.latency_budget:g} ms"
            )
        return tuple(found)


def evaluate(problem: ReadProblem, strategy: ReadStrategy) -> ReadFigures:
    """Compute the figures of a strategy; O(members of all its quorums)."""
    visits = np.zeros(problem.nodes)
    waits = np.zeros(problem.nodes)
    for gateway, mixture in enumerate(strategy.mixtures):
        for quorum, probability in mixture:
            visits[list(quorum)] += problem.reads[gateway] * probability
            waits[gateway] += probability * problem.latency(gateway, quorum)
    return ReadFigures(
        problem.base + visits / problem.capacity,
        float(problem.shares @ waits),
        float(visits[problem.leader] / problem.reads.sum()),
    )


@dataclass(frozen=True, eq=False)
class ReadPlan:
    """A read strategy with its figures and a proven bound.

    Build one with :meth:`of`: every figure is then the evaluator's, and the status follows from
    value and bound.

    Attributes
    ----------
    strategy, figures
        None when no strategy obeys the limits, or none was found.
    value, bound
        Of the goal; both +∞ when infeasible.
    status, method, notes
        Proof state, method, and remarks for the reader.
    """

    strategy: ReadStrategy | None
    figures: ReadFigures | None
    value: float
    bound: float
    status: Status
    method: str
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        problem: ReadProblem,
        goal: ReadGoal,
        strategy: ReadStrategy | None,
        *,
        method: str,
        bound: float = -math.inf,
        notes: Sequence[str] = (),
    ) -> ReadPlan:
        """Return the plan of an evaluated `strategy`, with its status.

        Raises
        ------
        SolverError
            When the strategy breaks the limits of the goal, or its value lies below `bound`: then
            the method that produced them is wrong.
        """
        figures, value, bound = None, math.inf, least_bound(bound)
        if strategy is not None:
            figures = evaluate(problem, strategy)
            value = figures.objective(goal)
            broken = figures.broken(goal)
            if broken:
                raise SolverError(f"{method} returned a strategy that breaks limits: {broken[0]}")
            # A strategy may exceed limits by the tolerance of the evaluator, and gain by it.
            if bound - value > 10 * OPTIMALITY_TOLERANCE * abs(value):
                raise SolverError(f"{method} claims the bound {bound} above the value {value}")
        status = status_of(strategy is not None, value, bound)
        return cls(strategy, figures, value, bound, status, method, tuple(notes))

    @property
    def gap(self) -> float:
        """(value − bound)/value."""
        return relative_gap(self.value, self.bound)


def lower_bound(
    problem: ReadProblem, goal: ReadGoal, prices: FloatArray, budget_price: float = 0.0
) -> float:
    """Return L(π, μ): no strategy within the limits of the goal has a smaller objective.

    Parameters
    ----------
    problem, goal
        The question.
    prices
        π of the loads, shape (n,); negative ones count as 0.
    budget_price
        μ of the latency budget.
    """
    weights = (goal.load_weight, goal.latency_weight)
    return _lagrangian(problem, goal, prices, budget_price, weights)


def infeasible_by(
    problem: ReadProblem, goal: ReadGoal, prices: FloatArray, budget_price: float = 0.0
) -> float:
    """Return the amount by which the prices refute the limits; positive: no strategy obeys them."""
    return _lagrangian(problem, goal, prices, budget_price, (0.0, 0.0))


def _lagrangian(
    problem: ReadProblem,
    goal: ReadGoal,
    prices: FloatArray,
    budget_price: float,
    weights: tuple[float, float],
) -> float:
    load_weight, latency_weight = weights
    peak = np.maximum(prices, 0.0)
    budget = max(0.0, budget_price) if math.isfinite(goal.latency_budget) else 0.0
    value = 0.0
    if math.isfinite(goal.load_limit):
        value = min(0.0, load_weight - float(peak.sum())) * goal.load_limit
    elif peak.sum() > load_weight:  # t may grow without end: no price above what t costs
        peak = peak * (load_weight / peak.sum())
    value += float(peak @ problem.base) - (budget * goal.latency_budget if budget else 0.0)
    per_ms = (latency_weight + budget) / float(problem.reads.sum())
    for gateway in np.flatnonzero(problem.reads).tolist():
        rate = float(problem.reads[gateway])
        value += rate * problem.cheapest(gateway, peak / problem.capacity, per_ms)[0]
    return value
