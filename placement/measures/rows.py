r"""The form that every measure has under a leader: rows, and the statistic over them.

Under a leader ℓ, with R the replicas and V the voters, a row is

    X(R, V) = K + Σ_c w[near(c, R \ F), c] + Σ_k m-th least of q[k, V \ F] + late(V \ F)
                + Σ_r p_r x_r + Σ_v b_v

with F the lost sites, most often none, and the quorum size m of the question. The clients of a row
are those of every interval one after another, as everywhere in the engine: (interval, client). A
measure is a statistic over its rows: one row, their maximum, their weighted sum, or the smallest
deadline at which all of them keep the share of late operations that the percentile allows.

Where a loss takes the leader, or may move it, another voter leads. The row then has `successors`,
the row of every site that may lead after the loss: X is the least of those whose leader is one of
V \ F (of the candidates of the question, where one of them is left). The numbers of such a row
itself are lower bounds that hold whoever leads.

:func:`row_value` evaluates a row; the values that are shown come from
:mod:`placement.measures.values`, and tests hold one against the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, overload

import numpy as np

from placement.errors import UnsupportedError
from placement.evaluation.cost_model import LinearCost, cost_model
from placement.evaluation.losses import demand_after, survivors, unnoticed
from placement.evaluation.objective import quorum_size
from placement.evaluation.score import closest_first
from placement.measures.measure import Measure, MeasureKind
from placement.measures.values import (
    deadline_bins,
    focused,
    losses_of,
    move_function,
    outages_of,
    percentile_of,
)
from placement.model.configuration import Configuration
from placement.model.demand import Demand
from placement.support.checks import BoolArray, FloatArray, IntArray
from placement.tail.objective import LateOperations

if TYPE_CHECKING:
    from placement.problem import Problem


class Statistic(Enum):
    """Statistics over the rows of a measure."""

    MAXIMUM = "maximum"
    WEIGHTED = "weighted sum"
    DEADLINE = "smallest deadline"


@dataclass(frozen=True, eq=False)
class LatePart:
    """Late operations at the leader, as a function of the voters."""

    #: of every interval of the demand, as shares of all that count
    intervals: tuple[LateOperations, ...]
    leader: int
    deadline: int  #: in bins

    def of(self, voters: Sequence[int], quorum: int) -> float:
        """Return the share of late operations for the voters that are left."""
        known = tuple(voters)
        return math.fsum(
            one.led_late(self.leader, known, self.deadline, quorum) for one in self.intervals
        )


@dataclass(frozen=True, eq=False)
class Row:
    """Row of a measure under a leader; arrays that are None are 0."""

    leader: int
    constant: float = 0.0  #: K
    costs: FloatArray | None = None  #: w, >= 0, shape (sites, intervals · clients)
    #: q, weighted RTTs from the leader to the voters, shape (intervals, sites)
    waits: FloatArray | None = None
    late: LatePart | None = None
    prices: FloatArray | None = None  #: p, shape (sites,), of either sign; a witness has none
    votes: FloatArray | None = None  #: b, shape (sites,), of either sign
    lost: BoolArray | None = None  #: F, shape (sites,)
    #: sites as each client prefers them after the loss, shape (intervals · clients, sites); None:
    #: by the RTTs of the question
    orders: IntArray | None = None
    #: those of the sites that may lead after the loss, none where the leader stays
    successors: tuple[Row, ...] = ()

    @property
    def deadline(self) -> int | None:
        """Deadline of the late operations that it counts, in bins; None: it counts none."""
        late = self.successors[0].late if self.successors else self.late
        return None if late is None else late.deadline


@dataclass(frozen=True, eq=False)
class ClientRows(Sequence[Row]):
    """Rows of the mean latency in ms of every client with operations, made when asked for."""

    leader: int
    clients: IntArray  #: of each row
    constants: FloatArray  #: K of each row
    costs: FloatArray  #: w of the client of each column, shape (sites, intervals · clients)
    waits: FloatArray  #: q of each row, shape (rows, intervals, sites)

    def __len__(self) -> int:
        return len(self.clients)

    @overload
    def __getitem__(self, number: int) -> Row: ...
    @overload
    def __getitem__(self, number: slice) -> tuple[Row, ...]: ...
    def __getitem__(self, number: int | slice) -> Row | tuple[Row, ...]:
        if isinstance(number, slice):
            return tuple(self[one] for one in range(len(self))[number])
        columns = self._columns[number]
        costs = np.zeros_like(self.costs)
        costs[:, columns] = self.costs[:, columns]
        return Row(self.leader, float(self.constants[number]), costs, self.waits[number])

    @property
    def _columns(self) -> IntArray:
        """Columns of the client of each row, shape (rows, intervals)."""
        intervals = self.waits.shape[1]
        count = self.costs.shape[1] // intervals
        return np.asarray(self.clients[:, np.newaxis] + count * np.arange(intervals))

    def values(self, assigned: FloatArray, voters: Sequence[int], quorum: int) -> FloatArray:
        """Return X of each row, its clients' costs given, shape (intervals · clients,)."""
        waits = np.partition(self.waits[:, :, voters], quorum - 1)[:, :, quorum - 1]
        return np.asarray(self.constants + assigned[self._columns].sum(axis=1) + waits.sum(axis=1))


@dataclass(frozen=True, eq=False)
class MeasureRows:
    """A measure under a leader: its value is offset + statistic(X) / scale."""

    rows: Sequence[Row]  #: at least one
    statistic: Statistic  #: over X of the rows
    scale: float = 1.0  #: negative for a share in time, whose rows count late operations
    offset: float = 0.0  #: 1 for a share in time
    weights: FloatArray | None = None  #: of the rows, for a weighted sum
    allowed: float = math.inf  #: largest share of late operations, 1 − p, for the smallest deadline


def why_no_rows(problem: Problem, measure: Measure) -> str | None:
    """Return why a measure has no rows, so that only enumeration takes it; or None."""
    if measure.kind.of_latency and problem.demand.waits:
        return "operations have waits"
    late = measure.kind in {MeasureKind.PERCENTILE, MeasureKind.WITHIN}
    if late and not all(one.exact for one in late_operations(problem, measure)):
        return "an operation asks a replica nearby and the leader or a quorum besides"
    if measure.kind is MeasureKind.COST:
        model = cost_model(problem.instance)
        assert model is not None
        if model.nearest is not None and problem.instance.varying_rtt:
            return "near reads have prices, and RTTs vary by interval"
    return None


def rows(
    problem: Problem, measure: Measure, leader: int, *, deadline: int | None = None
) -> MeasureRows:
    """Return a measure as rows under a leader, O(sites · clients) for each row.

    `deadline` is that of a percentile, in bins, whose late operations are counted. The successors
    of all losses share the costs of their leader. UnsupportedError for a measure without rows
    (:func:`why_no_rows`).
    """
    reason = why_no_rows(problem, measure)
    if reason is not None:
        raise UnsupportedError(f"the measure {measure} has no rows: {reason}")
    if not measure.kind.of_latency:
        return MeasureRows((_of_sites(problem, measure.kind, leader),), Statistic.MAXIMUM)
    part = focused(problem, measure.operations, measure.clients)
    if measure.kind is MeasureKind.SLOWEST:
        return MeasureRows(_by_client(part, leader), Statistic.MAXIMUM)
    normal, scale, offset = _normal(problem, measure, leader, deadline), 1.0, 0.0
    if measure.kind is MeasureKind.MEAN:
        scale = part.demand.operations
    elif measure.kind is MeasureKind.WITHIN:
        scale, offset = -1.0, 1.0
    after = [
        _lost_row(problem, measure, gone, normal, deadline)
        for gone in _lost_sites(problem, measure)
    ]
    named = measure.after is not None and bool(measure.after.named)
    found = tuple(after) if named else (normal, *after)
    if measure.kind is MeasureKind.PERCENTILE:
        assert measure.level is not None
        return MeasureRows(found, Statistic.DEADLINE, allowed=1 - measure.level)
    if measure.over_outages:
        chances = list(outages_of(problem).values())
        weights = np.array([1 - sum(chances), *chances])
        return MeasureRows(found, Statistic.WEIGHTED, scale, offset, weights)
    return MeasureRows(found, Statistic.MAXIMUM, scale, offset)


def mean_row(problem: Problem, leader: int) -> Row:
    """Return the row of the mean of all operations; waits beside those for votes are left out."""
    return _normal(problem, Measure(MeasureKind.MEAN), leader, None)


def _of_sites(problem: Problem, kind: MeasureKind, leader: int) -> Row:
    if kind is MeasureKind.REPLICAS:
        return Row(leader, prices=np.ones(len(problem.instance.sites)))
    if kind is MeasureKind.COST:
        model = cost_model(problem.instance)
        assert model is not None
        linear = model.linear(leader)
    else:
        linear = move_function(problem, kind).linear(leader)
    assert linear.nearest is None or problem.demand.scenarios == 1  # see why_no_rows
    return cost_row(leader, linear)


def cost_row(leader: int, linear: LinearCost) -> Row:
    """Return a linear function of the placement as a row."""
    near = None if linear.nearest is None else np.ascontiguousarray(linear.nearest.T)
    return Row(leader, linear.constant, near, prices=linear.replica, votes=linear.voter)


@lru_cache(maxsize=256)
def _normal(problem: Problem, measure: Measure, leader: int, deadline: int | None) -> Row:
    """Row of normal operation; kept, since every loss of another leader asks for it again."""
    part = focused(problem, measure.operations, measure.clients)
    if measure.kind is MeasureKind.MEAN:
        return _mean_row(part, leader)
    late = late_operations(problem, measure)
    bins = deadline_bins(problem, measure) if measure.kind is MeasureKind.WITHIN else deadline
    assert bins is not None, "rows of a percentile are those of a deadline"
    costs = np.hstack([one.table(leader, bins) for one in late])
    return Row(leader, 0.0, costs, late=LatePart(late, leader, bins))


def _mean_row(part: Problem, leader: int, lost: frozenset[int] | None = None) -> Row:
    """Row of the mean, ms·operations; with `lost`, its clients turn to another site."""
    demand = part.demand if lost is None else demand_after(part, lost)
    direct = float((demand.direct * demand.client_rtt[:, :, leader]).sum())
    return Row(
        leader,
        direct + demand.constant,
        mean_costs(demand, demand.site_rtt[:, :, [leader]])[0],
        demand.quorum[:, np.newaxis] * demand.site_rtt[:, leader, :],
        orders=None if lost is None else _orders(demand.client_rtt),
    )


def mean_costs(demand: Demand, hops: FloatArray) -> FloatArray:
    """Return w of the mean, ms·operations, shape (leaders, sites, intervals · clients)."""
    near = demand.near[..., np.newaxis] * demand.client_rtt
    relay = hops.transpose(2, 1, 0)[..., np.newaxis] * demand.relay
    return np.asarray(near.reshape(-1, near.shape[2]).T + relay.reshape(*relay.shape[:2], -1))


def _by_client(part: Problem, leader: int) -> ClientRows:
    demand = part.demand
    issued = demand.counts.sum(axis=(0, 2))
    votes = demand.counts @ demand.coefficients[:, 3]
    fixed = (demand.direct * demand.client_rtt[:, :, leader]).sum(axis=0)
    if demand.has_waits:
        fixed += (demand.counts @ demand.constants).sum(axis=0)
    clients = np.nonzero(issued)[0]
    each = np.tile(np.where(issued > 0, issued, 1.0), demand.scenarios)
    waits = (votes / np.where(issued > 0, issued, 1.0))[:, :, np.newaxis]
    waits = waits * demand.site_rtt[:, np.newaxis, leader, :]
    return ClientRows(
        leader,
        clients,
        fixed[clients] / issued[clients],
        mean_costs(demand, demand.site_rtt[:, :, [leader]])[0] / each,
        np.ascontiguousarray(waits.transpose(1, 0, 2)[clients]),
    )


@lru_cache(maxsize=16)
def late_operations(problem: Problem, measure: Measure) -> tuple[LateOperations, ...]:
    """Return the late operations of a percentile or a share in time, by interval of the demand."""
    part = focused(problem, measure.operations, measure.clients)
    each = percentile_of(problem, measure).by_scenario(part)
    return tuple(LateOperations(part, one, interval) for interval, one in enumerate(each))


@lru_cache(maxsize=16)
def _lost_sites(problem: Problem, measure: Measure) -> tuple[BoolArray, ...]:
    """Return the sites that each loss takes, shape (sites,)."""
    found = []
    for loss in losses_of(problem, measure):
        gone = np.zeros(len(problem.instance.sites), dtype=bool)
        gone[list(loss.sites)] = True
        gone.setflags(write=False)
        found.append(gone)
    return tuple(found)


def _lost_row(
    problem: Problem, measure: Measure, gone: BoolArray, normal: Row, deadline: int | None
) -> Row:
    """Row of a loss, with a row for each site that may lead then where the leader may change."""
    after, leader = measure.after, normal.leader
    hop = after is not None and after.clients_move
    part = focused(problem, measure.operations, measure.clients)
    lost = frozenset(np.flatnonzero(gone).tolist()) if hop else frozenset()

    def led_by(site: int) -> Row:
        if hop:
            row = _mean_row(part, site, lost)
        else:
            row = normal if site == leader else _normal(problem, measure, site, deadline)
        rest = row.constant, row.costs, row.waits, row.late
        return Row(site, *rest, lost=gone, orders=row.orders)

    if not gone[leader] and (after is None or not after.leader_moves):
        return led_by(leader)
    rules = problem.rules
    able = np.nonzero(rules.may_vote & rules.may_hold & ~gone)[0].tolist()
    rows_of = tuple(led_by(site) for site in able)
    if not rows_of:  # nobody is left to lead: the service stops
        return Row(leader, math.inf, lost=gone)
    costs = None
    if measure.kind is MeasureKind.MEAN:  # that of the closest: roundings keep the order
        demand = demand_after(part, lost) if hop else part.demand
        costs = mean_costs(demand, demand.site_rtt[:, :, able].min(axis=2, keepdims=True))[0]
    return led_by_any(Row(leader, costs=costs, lost=gone, orders=rows_of[0].orders), rows_of)


def led_by_any(row: Row, successors: tuple[Row, ...]) -> Row:
    """Return the row of a loss after which one of some sites leads: constant and costs at least."""
    costs = row.costs
    if costs is None:  # not in one call: it would copy the costs of all into one array
        for one in successors:
            if one.costs is not None:
                costs = np.minimum(one.costs, one.costs if costs is None else costs, out=costs)
    constant = min(one.constant for one in successors)
    return replace(row, constant=constant, costs=costs, successors=successors)


def _orders(client_rtt: FloatArray) -> IntArray:
    return closest_first(client_rtt.reshape(-1, client_rtt.shape[-1])).astype(np.int32)


# --- rows of a configuration ------------------------------------------------------------------


def row_value(problem: Problem, row: Row, configuration: Configuration) -> float:
    """Return X of a row for a configuration of its leader; infinite where the service stops."""
    lost = frozenset() if row.lost is None else frozenset(np.nonzero(row.lost)[0].tolist())
    if row.successors:
        hop = row.orders is not None
        if unnoticed(problem, configuration, lost, clients_move=hop):
            able: tuple[int, ...] = (configuration.leader,)
        else:
            left = survivors(problem, configuration, lost, leader_may_move=True)
            able = () if left is None else left.leaders
        values = [
            row_value(problem, one, configuration) for one in row.successors if one.leader in able
        ]
        return min(values, default=math.inf)
    replicas = [site for site in configuration.replicas if site not in lost]
    voters = [site for site in configuration.voters if site not in lost]
    quorum = quorum_size(problem, configuration)
    if lost and (len(voters) < quorum or not set(voters) & set(replicas)):
        return math.inf
    total = row.constant
    if row.costs is not None:
        orders = _orders(problem.demand.client_rtt) if row.orders is None else row.orders
        total += float(_assigned(row.costs, orders, replicas).sum())
    if row.waits is not None:
        total += float(np.partition(row.waits[:, voters], quorum - 1)[:, quorum - 1].sum())
    if row.late is not None:
        total += row.late.of(voters, quorum)
    if row.prices is not None:
        total += float(row.prices[replicas].sum())
    if row.votes is not None:
        total += float(row.votes[[site for site in voters if site in replicas]].sum())
    return total


def _assigned(costs: FloatArray, orders: IntArray, replicas: Sequence[int]) -> FloatArray:
    """Return the cost of each client at its first replica."""
    kept = np.zeros(orders.shape[1], dtype=bool)
    kept[list(replicas)] = True
    near = np.take_along_axis(orders, kept[orders].argmax(axis=1)[:, np.newaxis], axis=1)[:, 0]
    return np.asarray(costs[near, np.arange(len(near))])


def row_values(problem: Problem, each: Sequence[Row], configuration: Configuration) -> FloatArray:
    """Return X of rows for a configuration of their leader, as :func:`row_value` does."""
    if not isinstance(each, ClientRows):
        return np.array([row_value(problem, row, configuration) for row in each])
    orders = _orders(problem.demand.client_rtt)
    assigned = _assigned(each.costs, orders, configuration.replicas)
    return each.values(assigned, configuration.voters, quorum_size(problem, configuration))
