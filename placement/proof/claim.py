"""Problem and claim of a certificate, on an exact and a rounded grid."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from placement.evaluation.cost_model import LinearCost
from placement.evaluation.waits.wait_cases import WaitCases, case_rounds, case_wait, no_cases
from placement.evaluation.waits.wait_floors import floor_costs, nearest_voters, wait_order
from placement.model.constraints import Rules
from placement.model.demand import Demand
from placement.proof.costs.multipliers import SharedMultipliers
from placement.support.checks import FloatArray, IntArray

Integers = Any  # object arrays of Python integers, which NumPy's types cannot name

_GUARD_BITS = 64
_PARTS = 10**12  # 1 / placement.evaluation.score.TIE
_ROUNDED_BITS = 60
_MOST_SHIFT = 500  # beyond, products of doubles may leave their range


def integers(values: npt.ArrayLike, bits: int) -> Integers:
    """x·2^bits for doubles x: exact where they lie on that grid, rounded down elsewhere."""
    array = np.asarray(values, dtype=np.float64)
    ratios = (float(x).as_integer_ratio() for x in array.ravel())
    whole = [(top << bits) // bottom for top, bottom in ratios]
    return np.array(whole, dtype=object).reshape(array.shape)


def wait_columns(radii: FloatArray) -> FloatArray:
    """Return the waits of each case of a leader, shape (cases, waits); there may be no case."""
    return radii if radii.ndim == 2 else radii[:, np.newaxis]


def finest_bit(*arrays: FloatArray) -> int:
    """Bits behind the binary point of the finest of some finite doubles."""
    return max((_finest_bit(array) for array in arrays if array.size), default=0)


def _finest_bit(values: FloatArray) -> int:
    mantissa, exponent = np.frexp(values)
    whole = np.abs(np.ldexp(mantissa, 53)).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # of the bits that are set
    behind = np.where(whole > 0, 53 - exponent - lowest, 0)
    return max(int(behind.max()), 0)


@dataclass(frozen=True)
class ExactGrid:
    """All data in integers, as in the claim; their products are multiples of 2^-bits."""

    client_rtt: Integers
    site_rtt: Integers
    near: Integers
    relay: Integers
    direct: Integers
    quorum: Integers
    nearest_price: Integers | None


@dataclass(frozen=True)
class Scale:
    """A grid of multiples of 2^-shift for costs in int64.

    `total` is T, scaled: no client's costs and no multipliers sum to more than twice as much.
    """

    shift: int
    total: float

    def up(self, exact: int, bits: int) -> int:
        """Return a number of the exact grid of so many bits, rounded up to this one."""
        drop = bits - self.shift
        return -(-exact >> drop) if drop >= 0 else exact << -drop

    def scaled(self, values: FloatArray) -> FloatArray:
        """x·2^g; infinite where that is beyond the doubles."""
        with np.errstate(over="ignore"):
            return np.asarray(np.ldexp(values, self.shift))

    def whole(self, values: FloatArray) -> Integers:
        """x·2^g rounded down, of finite numbers that are not too large."""
        return np.floor(self.scaled(values)).astype(np.int64)

    def holds(self, times: int, *values: FloatArray) -> bool:
        """Return whether the absolute values of all sum to so many times T at most."""
        with np.errstate(over="ignore"):
            return bool(sum(self.scaled(np.abs(x)).sum() for x in values) <= times * self.total)


@dataclass(frozen=True)
class ExactScale(Scale):
    """The exact grid, in Python's integers: nothing is too large for it."""

    total: float = math.inf

    def whole(self, values: FloatArray) -> Integers:
        """x·2^g; numbers that are not on the grid are rounded down."""
        return integers(values, self.shift)

    def holds(self, times: int, *values: FloatArray) -> bool:
        """Return True."""
        return True


@dataclass(frozen=True)
class RoundedGrid(Scale):
    """Data of the claim scaled by 2^shift, so that costs rounded down are int64.

    T is that of :mod:`placement.proof.costs.rounded_costs`. `near_costs` are fl(fl(A_c·d(c,j)) +
    n_cj) of the active clients, shape (active clients, sites); n_cj is `nearest_price` of the
    claim.
    """

    near_costs: FloatArray
    relay: FloatArray
    direct: FloatArray
    quorum: FloatArray


class MeanQuestion(Protocol):
    """A question that a proof of the mean reads: a problem, or a problem with other prices."""

    @property
    def demand(self) -> Demand:
        """RTTs and weights of Eq. 1."""

    @property
    def rules(self) -> Rules:
        """Sites that may and must hold replicas, vote and lead."""

    def added_cost(self, leader: int) -> LinearCost | None:
        """Return the term that the objective adds to the score under a leader; None: nothing."""


class Claim:
    """The problem, without a budget, and a bound that is claimed of it.

    Where RTTs vary by interval, every client counts once for each scenario, scenario by scenario.
    `clients` are the active ones, A > 0 or B > 0, and `scenario` has the scenario of each.
    `scenario_rtt` has the shape (scenarios, sites, sites). `quorum` is D of each scenario; where
    waits are taken `by_cases`, of each distinct wait of the leaders. `constant` is what every
    configuration costs. `nearest_price` >= 0, shape (active clients, sites), is the price of each
    site as the nearest replica; None: all 0. With a granularity of 1 the claim rests on objectives
    being whole numbers. `leader_matters`: the proofs of two leaders differ.

    ValueError when the bound is not finite, the objectives are not multiples of the granularity,
    the leaders have waits that are not taken by cases, or the objective has prices of nearest
    replicas where RTTs vary, or of clients that are not active.
    """

    def __init__(self, problem: MeanQuestion, bound: float, granularity: float) -> None:
        if not math.isfinite(bound):
            raise ValueError(f"the claimed bound {bound!r} is no number")
        demand, self.rules = problem.demand, problem.rules
        if self.rules.witnesses:
            raise ValueError("certificates of this kind do not take witnesses")
        self.bound = bound
        near, relay = demand.near.reshape(-1), demand.relay.reshape(-1)
        self.clients: IntArray = np.nonzero((near > 0) | (relay > 0))[0]
        self.scenario: IntArray = self.clients // demand.client_rtt.shape[1]
        self.client_rtt: FloatArray = demand.client_rtt.reshape(-1, demand.client_rtt.shape[2])
        self.scenario_rtt: FloatArray = demand.site_rtt
        self.near: FloatArray = near[self.clients]
        self.relay: FloatArray = relay[self.clients]
        self.direct: FloatArray = demand.direct.reshape(-1)
        self.quorum: FloatArray = demand.quorum
        self.constant = demand.constant if demand.has_waits else 0.0
        self._demand, self.by_cases = demand, case_wait(demand)
        if self.by_cases:
            reason = no_cases(demand, self.rules)
            if reason is not None:
                raise ValueError(f"certificates of this kind do not take such waits: {reason}")
            self.quorum = case_rounds(demand, self.rules)
        self._prices = _prices(problem)
        self.nearest_price = self._nearest_price(problem)
        self.whole = False
        if granularity:
            weights = (self.near, self.relay, self.direct, self.quorum, np.array(self.constant))
            data = (*weights, self.client_rtt, self.scenario_rtt, *self._prices)
            data = data if self.nearest_price is None else (*data, self.nearest_price)
            self.whole = granularity == 1 and all((array % 1 == 0).all() for array in data)
            if not self.whole:
                raise ValueError(
                    f"the claim rests on objectives being multiples of {granularity:g}, and they "
                    "are not"
                )
        self.leader_matters = bool(
            self.relay.any()
            or self.direct.any()
            or self.quorum.any()
            or any((row != self._prices[0]).any() for row in self._prices)
        )

    def _nearest_price(self, problem: MeanQuestion) -> FloatArray | None:
        added = problem.added_cost(0)
        if added is None or added.nearest is None:
            return None
        if self.varies:
            raise ValueError(
                "certificates of this kind take no near reads with prices and RTTs that vary"
            )
        if np.delete(added.nearest, self.clients, axis=0).any():
            raise ValueError("near reads of a client have prices, but no round trips")
        return added.nearest[self.clients]

    def cases(self, leader: int) -> WaitCases | None:
        """Return the cases of the waits of a leader; None where it waits for m votes alone."""
        return WaitCases.of(self._demand, self.rules, [leader]) if self.by_cases else None

    def price(self, leader: int | None) -> FloatArray:
        """Price of a replica at each site under a leader."""
        return self._prices[0 if leader is None or len(self._prices) == 1 else leader]

    @property
    def varies(self) -> bool:
        """True where there are several scenarios."""
        return len(self.scenario_rtt) > 1

    @property
    def site_rtt(self) -> FloatArray:
        """RTTs between sites in the only scenario, shape (sites, sites)."""
        if self.varies:
            raise ValueError("certificates of this kind prove questions of one RTT matrix only")
        return np.asarray(self.scenario_rtt[0])

    def moved(self, shared: SharedMultipliers, leader: int) -> FloatArray:
        """Return multipliers that leaders share, moved to one of them."""
        fixed = self.near * self.client_rtt[self.clients, leader]
        return shared.under(leader, self.relay, fixed, self.site_rtt)

    def to_leader(self, leader: int) -> FloatArray:
        """RTT from each site to a leader, shape (scenarios, sites)."""
        return np.ascontiguousarray(self.scenario_rtt[:, :, leader])

    def wait_places(self, leader: int) -> FloatArray:
        """Waits of the sites as far as their order counts: RTTs, or places in a common order."""
        waits = self.scenario_rtt[:, leader]
        if not self.varies:
            return np.asarray(waits[0])
        places = np.empty(waits.shape[1])
        places[wait_order(waits, self.quorum)] = np.arange(waits.shape[1])
        return places

    def floor_costs(
        self, waits: npt.NDArray[Any], leader: int, outside: Collection[int] = ()
    ) -> list[int]:
        """Floors of the waits of a leader, by place in the order of its sites: costs of its radii.

        `waits` are D_k·d_k(ℓ, ·) in whole numbers, shape (scenarios, sites). No site of `outside`
        votes.
        """
        order, rules = self.wait_places(leader).argsort(), self.rules
        able = rules.may_vote.copy()
        able[list(outside)] = False
        nearest = nearest_voters(self.scenario_rtt[:, leader], rules.quorum, able)
        # a site that does not vote is nobody's nearest voter: as far as the farthest
        waits = np.where(able, waits, waits.max(axis=1, keepdims=True))
        floors = floor_costs(waits, order, nearest, rules.quorum, rules.voters)
        return [int(cost) for cost in floors]

    @cached_property
    def rank(self) -> IntArray:
        """Place of each site in the order of each active client; ties in site order."""
        sites = self.client_rtt.shape[1]
        order = np.argsort(self.client_rtt[self.clients], axis=1, kind="stable")
        rank = np.empty(order.shape, dtype=np.int16 if sites < 2**15 else np.int32)
        places = np.arange(sites, dtype=rank.dtype)[np.newaxis, :]
        np.put_along_axis(rank, order, places, axis=1)
        return rank

    @cached_property
    def bits(self) -> int:
        """Bits behind the binary point of the exact grid."""
        nearest = () if self.nearest_price is None else (self.nearest_price,)
        prices = finest_bit(*self._prices, *nearest, np.array([self.constant]))
        return max(self._rtt_bits + self._weight_bits, prices) + _GUARD_BITS

    @cached_property
    def needed(self) -> int:
        """The value that proves the claim, on the exact grid."""
        if self.whole:
            # Objectives are whole numbers: anything above bound − 1 is as good as the bound.
            return ((math.ceil(self.bound) - 1) << self.bits) + 1
        top, bottom = self.bound.as_integer_ratio()
        needed = -((-top << self.bits) // bottom)  # rounded up
        return needed - abs(needed) // _PARTS

    @cached_property
    def exact(self) -> ExactGrid:
        """The data in exact integers; made when they are first asked for."""
        rest = self.bits - self._rtt_bits  # weights carry what the RTTs do not
        return ExactGrid(
            client_rtt=integers(self.client_rtt, self._rtt_bits),
            site_rtt=integers(self.scenario_rtt, self._rtt_bits),
            near=integers(self.near, rest),
            relay=integers(self.relay, rest),
            direct=integers(self.direct, rest),
            quorum=integers(self.quorum, rest),
            nearest_price=(
                None if self.nearest_price is None else integers(self.nearest_price, self.bits)
            ),
        )

    @cached_property
    def rounded(self) -> RoundedGrid | None:
        """The data for bounds in int64; None where the numbers are too large or too small."""
        farthest = self.client_rtt.max(axis=1)
        apart = float(self.scenario_rtt.max())
        reads = (self.near * farthest[self.clients] + self.relay * apart).sum()
        total = float(reads + (self.direct * farthest).sum() + self.quorum.sum() * apart)
        total += float(np.abs(self._prices).max(axis=0).sum()) + self.constant
        if self.nearest_price is not None:
            total += float(self.nearest_price.max(axis=1).sum())
        if not math.isfinite(total):
            return None
        shift = _ROUNDED_BITS - math.frexp(2 * (self.rules.replicas_max + 4) * total)[1]
        if abs(shift) > _MOST_SHIFT:
            return None
        near_costs = np.ldexp(self.near, shift)[:, np.newaxis] * self.client_rtt[self.clients]
        if self.nearest_price is not None:
            near_costs += np.ldexp(self.nearest_price, shift)
        return RoundedGrid(
            shift=shift,
            near_costs=near_costs,
            relay=np.ldexp(self.relay, shift),
            direct=np.ldexp(self.direct, shift),
            quorum=np.ldexp(self.quorum, shift),
            total=math.ldexp(total, shift),
        )

    @cached_property
    def _rtt_bits(self) -> int:
        return finest_bit(self.client_rtt, self.scenario_rtt)

    @cached_property
    def _weight_bits(self) -> int:
        return finest_bit(self.near, self.relay, self.direct, self.quorum)

    def exact_rtt(self, rtt: FloatArray) -> Integers:
        """RTTs of the problem on the part of the exact grid that RTTs have."""
        return integers(rtt, self._rtt_bits)


def _prices(problem: MeanQuestion) -> list[FloatArray]:
    """Return the price of a replica at each site under each leader in the objective, signed.

    In the doubles that make the objective. The leader's entry has what is paid under it anyway,
    with its vote; where all replicas vote, every entry has the vote.
    """
    rules, sites = problem.rules, problem.demand.site_rtt.shape[-1]
    rows = []
    for leader in range(sites):
        added = problem.added_cost(leader)
        if added is None:
            return [np.zeros(sites)]
        costs = added.replica.copy()
        costs[leader] += added.constant
        if added.voter is not None:
            votes = slice(None) if rules.replicas_max == rules.data_voters else leader
            costs[votes] += added.voter[votes]
        rows.append(costs)
    return rows
