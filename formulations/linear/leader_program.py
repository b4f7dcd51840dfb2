r"""The program of one leader: any question of measures that is made of rows, linear and whole.

Under a leader ℓ a measure is one row or several (:mod:`placement.measures.rows`), and a row is

    X(R, V) = K + Σ_c w[near(c, R \ F), c] + Σ_k (m-th least of q[k, V \ F])
                + Σ_r p_r x_r + Σ_v b_v v_v

A program takes the rows of everything that is minimised or limited, for one :class:`LeaderCase`: a
leader and, where one loss takes it, the site that leads then. Its variables, all in [0, 1]:

=========  ==============  ==================================================================
variable   index           meaning
=========  ==============  ==================================================================
x          site            holds a replica (binary)
v          site            votes (binary)
E          set of sites    none of them holds a replica
slow       set of sites    fewer than m of them vote (binary where m > 2)
g          row, site       the site leads after the loss of the row (binary)
e          rule, domain    the domain counts as covered
=========  ==============  ==================================================================

**Clients.** Let o_1, o_2, … be the sites outside F as client c prefers them, up to the first that
is sure to hold a replica, and E_i stand for the set {o_1, …, o_i}. The sum telescopes:

    w[near(c), c] = w[o_1] + Σ_i (w[o_{i+1}] − w[o_i]) E_i,    E_i >= E_{i−1} − x_{o_i},  E_0 = 1

Where a step is negative (relayed operations), E_i <= E_{i−1} and E_i <= 1 − x_{o_i} as well. With
these, E is 0 or 1 as soon as x is, so that the sum is exact. A set has one variable, whichever
clients and losses meet it: that is what makes one more loss cheap. For one client the relaxation is
that of p-median with strong inequalities, since E_{i−1} − E_i <= x_{o_i} says that a site serves no
more than it holds (Elloumi 2010).

**Quorums.** With the radii ρ_0 < ρ_1 < … of the leader and B_i the sites within ρ_i, outside F:

    wait = ρ_0 + Σ_i (ρ_{i+1} − ρ_i) slow_i,    Σ_{v ∈ B_i} v_v >= m (1 − slow_i)

where sites that are sure to vote count as constants on the left. The last radius that m voters can
need has no slow; its row says that the service goes on.

**Waits of the leader** that are no quorum have radii too. The rows of the roles that end a wait
within a radius (:mod:`placement.evaluation.waits.wait_rows`) hold, unless a binary slow says that
the wait is longer.

**Losses.** A row that a loss takes from its leader has one row for each successor h. One loss of
that kind makes cases: ℓ leads, h votes and leads after the loss, and the row is that of h. Where
several rows have successors each has literals g, Σ_h g_h = 1, g_h <= v_h, and X_h counts where
g_h = 1; X is also at least what each client pays under the leader that suits it best. A loss that
hits no replica is not noticed, so that another than ℓ needs Σ_{r∈F} x_r >= 1; a site that may not
lead normally needs that no candidate is left.

**Thresholds.** A limit is X <= B. With U the best value known, only plans of X <= U are of interest
in the rows of what is minimised. Let X̲ be the sum of every term's least. What costs a term more
than B − X̲ above its least occurs in no such plan: a chain of a client ends there, and the sites so
far hold at least one replica (a covering row); a radius ends there, and m voters lie within it.

**What is minimised** is the row itself, θ with θ >= X for several rows, or Σ_s weight_s X_s.

Rows that are not yet in the program only relax it: rows of losses and of clients enter when a plan
breaks them (:mod:`formulations.linear.leader_search`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from formulations.solvers.linear_program import Builder, LinearProgram
from placement.evaluation.score import closest_first
from placement.evaluation.waits.wait_rows import (
    LeaderWait,
    RoleRow,
    leader_waits,
    least_wait,
    no_rows,
)
from placement.measures.question import MeasureQuestion
from placement.measures.rows import Row
from placement.measures.scenarios import Function, beyond_thresholds, functions
from placement.model.configuration import Configuration
from placement.model.constraints import GroupRule
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray, IntArray

_MARGIN = 1e-9
"""Relative: what costs more than a threshold by less than this is kept."""


def beyond_rows(problem: Problem) -> str | None:
    """Return why no program of rows answers a question, or None."""
    asked = problem.objective
    if not isinstance(asked, MeasureQuestion):
        return no_rows(problem)
    for measure in asked.measures:
        if measure.kind.of_distributions:
            return f"{measure} is no linear row: use 'exact' or 'exhaustive'"
    reason = beyond_thresholds(problem)
    if reason is None and any(one.over_outages for one in asked.measures):
        leaders = np.nonzero(problem.rules.may_lead)[0].tolist()
        if any(len(led_by_others(functions(problem, one))) > 1 for one in leaders):
            reason = "two outages take the same leader"
    return None if reason is None else f"{reason}: use 'exact' or 'exhaustive'"


def led_by_others(each: Iterable[Function]) -> list[Row]:
    """Return the rows of losses after which another site may lead."""
    return [row for one in each if not one.lazy for row in one.rows if row.successors]


@dataclass(frozen=True, slots=True)
class LeaderCase:
    """The plans of a leader, with the site that leads after the loss of the leader's own."""

    #: `leader`, `heir`: site indices; no heir where no single loss takes the leader
    leader: int
    heir: int | None = None
    others: tuple[int, ...] = ()  #: sites that may lead in the leader's place, at the same cost

    @property
    def leaders(self) -> tuple[int, ...]:
        """Sites that may lead."""
        return (self.leader, *self.others)

    def row(self, row: Row) -> Row:
        """Return the row of the heir in place of one with successors, where there is an heir."""
        if self.heir is None:
            return row
        return next((one for one in row.successors if one.leader == self.heir), row)


@dataclass
class Expression:
    """A constant and coefficients of columns."""

    constant: float = 0.0
    terms: dict[int, float] = field(default_factory=dict)

    def add(self, column: int, coefficient: float) -> None:
        """Add to the coefficient of a column."""
        if coefficient:
            self.terms[column] = self.terms.get(column, 0.0) + coefficient

    def plus(self, other: Expression, factor: float = 1.0) -> None:
        """Add a multiple of another expression."""
        self.constant += factor * other.constant
        for column, coefficient in other.terms.items():
            self.add(column, factor * coefficient)

    def greatest(self) -> float:
        """Return the largest value for columns in [0, 1]."""
        return self.constant + sum(max(0.0, one) for one in self.terms.values())


@dataclass(frozen=True, eq=False)
class _ServingOrder:
    """The sites that can serve a client, nearest first, and their costs."""

    sites: IntArray
    costs: FloatArray


class LeaderProgram:
    """A program over the plans of one case.

    `functions` of the leader are the limits, and last what is minimised; `entered` numbers the rows
    in the program, over all functions one after another. Plans of interest do not exceed `most` in
    what is minimised: no row says so, but the chains are cut. Configurations in `evaluated` are
    left out.

    `integer` says of every column whether it is binary; `rows` are (least, most, coefficients) of
    roles, counts and chains, all of small whole numbers; `limits` are (expression, most): the
    expression is at most so much; of the expressions of `objective` the largest is minimised.
    """

    def __init__(
        self,
        problem: Problem,
        case: LeaderCase,
        functions: Sequence[Function],
        entered: set[int],
        most: float = math.inf,
        evaluated: Iterable[Configuration] = (),
    ) -> None:
        self.problem, self.case = problem, case
        self.integer: list[bool] = []
        self.rows: list[tuple[float, float, Mapping[int, float]]] = []
        self.limits: list[tuple[Expression, float]] = []
        self.objective: list[Expression] = []
        self._empty: dict[int, int] = {}
        self._slow: dict[int, int] = {}
        self._known: set[tuple[int, int, int]] = set()
        self._sure = _sure_sites(problem, case)
        rules = problem.rules
        sites = range(len(rules.may_hold))
        self.x = {site: self._column(True) for site in sites if rules.may_hold[site]}
        self.v = {site: self._column(True) for site in sites if rules.may_vote[site]}
        self._add_rules()
        if case.others:
            self._at_least([self.v[site] for site in case.leaders], 1.0)
        for other in evaluated:
            if other.leader in case.leaders:
                self._leave_out(other)
        number = 0
        for one in functions:
            falls, every = one is functions[-1], one.weights is not None
            inside = range(len(one.rows))
            held = [one.rows[n] for n in inside if every or number + n in entered]
            number += len(one.rows)
            self._add_function(one, held, most if falls else one.allowed, falls=falls)

    # --- columns and rows -----------------------------------------------------------------

    def _column(self, integer: bool = False) -> int:
        self.integer.append(integer)
        return len(self.integer) - 1

    def _row(self, least: float, most: float, terms: Mapping[int, float]) -> None:
        self.rows.append((least, most, terms))

    def _at_least(self, columns: Iterable[int], least: float) -> None:
        self._row(least, math.inf, dict.fromkeys(columns, 1.0))

    def _add_rules(self) -> None:
        """Counts, roles, pins, and rules of domains."""
        rules, x, v = self.problem.rules, self.x, self.v
        self._row(rules.replicas_min, rules.replicas_max, dict.fromkeys(x.values(), 1.0))
        self._row(rules.voters, rules.voters, dict.fromkeys(v.values(), 1.0))
        for site, vote in v.items():
            self._row(0.0, math.inf, {x[site]: 1.0, vote: -1.0})
        holds, votes = self._sure
        for sure, columns in ((holds, x), (votes, v)):
            for site in np.nonzero(sure)[0].tolist():
                self._at_least([columns[site]], 1.0)
        for group in rules.groups:
            self._add_group(group, v if group.role == "voters" else x)

    def _add_group(self, group: GroupRule, chosen: Mapping[int, int]) -> None:
        members: dict[int, list[int]] = {}
        for site, column in chosen.items():
            members.setdefault(int(group.labels[site]), []).append(column)
        if group.cap is not None:
            for columns in members.values():
                if len(columns) > group.cap:
                    self._row(-math.inf, group.cap, dict.fromkeys(columns, 1.0))
        if group.least:
            self._at_least(members.get(group.domain, []), group.least)
        if group.min_domains is not None:
            covered = []
            for columns in members.values():
                covered.append(self._column())
                self._row(0.0, math.inf, {**dict.fromkeys(columns, 1.0), covered[-1]: -1.0})
            self._at_least(covered, group.min_domains)

    def _leave_out(self, other: Configuration) -> None:
        terms, chosen = dict[int, float](), 0
        for columns, sites in ((self.x, other.replicas), (self.v, other.voters)):
            for site, column in columns.items():
                terms[column] = -1.0 if site in sites else 1.0
                chosen += site in sites
        self._row(1.0 - chosen, math.inf, terms)

    # --- what is minimised, and limits ------------------------------------------------------

    def _add_function(
        self, one: Function, held: Sequence[Row], most: float, *, falls: bool
    ) -> None:
        """Add the rows of a function that are in force; `most`: its threshold."""
        problem, case = self.problem, self.case
        low = max(least(problem, case, row) for row in held) if falls else most
        if one.weights is None:
            each = [part for row in held for part in self._expressions(row, most, low)]
        else:
            each = [self._weighted(one, most)]
        if not falls:
            self.limits += [(part, most) for part in each if math.isfinite(most)]
        else:
            self.most = most
            single = one.weights is not None or len(one.rows) == len(each) == 1
            self.objective = each if single else [Expression(low), *each]

    def _weighted(self, one: Function, most: float) -> Expression:
        """Return a weighted sum of rows; a term of several expressions is not supported."""
        assert one.weights is not None
        problem, case = self.problem, self.case
        lows = [max(0.0, least(problem, case, row)) for row in one.rows]
        spent = float(one.weights @ np.array(lows))
        total = Expression()
        for row, weight, low in zip(one.rows, one.weights.tolist(), lows, strict=True):
            room = (most - spent) / weight + low if weight > 0 else math.inf
            (part,) = self._expressions(row, room, low)
            total.plus(part, weight)
        return total

    def _expressions(self, row: Row, most: float, low: float) -> list[Expression]:
        """Return expressions whose largest is X of a row, as far as X is at most `most`.

        `low`: a bound below which it may count as this much.
        """
        led = self.case.row(row)
        if led.successors:
            whoever = replace(led, successors=())
            return [self._expression(whoever, most), *self._of_successors(led, low)]
        if led is not row and not self.problem.rules.may_lead[led.leader]:
            for other in row.successors:  # no candidate is left
                if self.problem.rules.may_lead[other.leader]:
                    self._row(-math.inf, 0.0, {self.v[other.leader]: 1.0})
        return [self._expression(led, most)]

    def _of_successors(self, row: Row, low: float) -> list[Expression]:
        """X_h − (its largest value − low)(1 − g_h), for every site that may lead then."""
        assert row.lost is not None
        may_lead = self.problem.rules.may_lead
        hit = [self.x[site] for site in np.nonzero(row.lost)[0].tolist() if site in self.x]
        candidates = [one.leader for one in row.successors if may_lead[one.leader]]
        leads: dict[int, int] = {}
        found = []
        for one in row.successors:
            site = one.leader
            if site not in self.v:
                continue
            chosen = leads[site] = self._column(True)
            self._row(0.0, math.inf, {self.v[site]: 1.0, chosen: -1.0})
            if site != self.case.leader and one.orders is None:
                self._row(0.0, math.inf, {**dict.fromkeys(hit, 1.0), chosen: -1.0})
            if not may_lead[site] and site != self.case.leader:
                for other in candidates:
                    self._row(-math.inf, 1.0, {chosen: 1.0, self.v[other]: 1.0})
            part = self._expression(one, math.inf)
            excess = max(0.0, part.greatest() - low)
            part.constant -= excess
            part.add(chosen, excess)
            found.append(part)
        self._row(1.0, 1.0, dict.fromkeys(leads.values(), 1.0))
        return found

    def _expression(self, row: Row, most: float) -> Expression:
        """X of a row without successors."""
        total = Expression(row.constant)
        room = (most - least(self.problem, self.case, row)) * (1 + _MARGIN) + _MARGIN * abs(most)
        for prices, columns in ((row.prices, self.x), (row.votes, self.v)):
            if prices is not None:
                for site, column in columns.items():
                    total.add(column, float(prices[site]))
        if row.costs is not None:
            for chain in _ServingOrders.of(self.problem, self.case, row):
                self._serve(chain, total, room)
        self._wait(row, total, room)
        return total

    # --- clients ------------------------------------------------------------------------------

    def _serve(self, chain: _ServingOrder, total: Expression, room: float) -> None:
        """Add the cost of a client at the first site of its chain with a replica."""
        costs = chain.costs.tolist()
        floor = min(costs)
        after = np.minimum.accumulate(chain.costs[::-1])[::-1].tolist()  # the least from here on
        exact = bool((np.diff(chain.costs) < 0).any())
        total.constant += costs[0]
        known, before = 0, -1
        for place, site in enumerate(chain.sites[:-1].tolist()):
            if after[place + 1] - floor > room:
                self._at_least([self.x[one] for one in chain.sites[: place + 1].tolist()], 1.0)
                return
            known |= 1 << site
            column = self._none_of(known, before, site, exact)
            total.add(column, costs[place + 1] - costs[place])
            before = column

    def _none_of(self, known: int, before: int, site: int, exact: bool) -> int:
        """Return E of a set (a bit mask), which is `before`'s set and a site."""
        column = self._empty.get(known)
        if column is None:
            column = self._empty[known] = self._column()
        one = column, before, site
        if one not in self._known:
            self._known.add(one)
            if before < 0:
                self._at_least([column, self.x[site]], 1.0)
            else:
                self._row(0.0, math.inf, {column: 1.0, self.x[site]: 1.0, before: -1.0})
        one = column, before, ~site
        if exact and one not in self._known:
            self._known.add(one)
            self._row(-math.inf, 1.0, {column: 1.0, self.x[site]: 1.0})
            if before >= 0:
                self._row(-math.inf, 0.0, {column: 1.0, before: -1.0})
        return column

    # --- quorums --------------------------------------------------------------------------------

    def _wait(self, row: Row, total: Expression, room: float) -> None:
        """Add the wait for a quorum; where it is a loss, the survivors are enough for one."""
        rules, votes = self.problem.rules, self._sure[1]
        able = rules.may_vote if row.lost is None else rules.may_vote & ~row.lost
        voters = np.nonzero(able)[0]
        spare = rules.voters - rules.quorum if row.lost is None else 0
        if row.lost is not None:
            self._within(voters, votes, None)
        if row.waits is not None:
            for wait in leader_waits(self.problem.demand, rules, row.leader).values():
                self._wait_for_roles(wait, total, room)
        for waits in row.waits if row.waits is not None else ():
            before, first = None, None
            for radius in np.unique(waits[voters]).tolist():
                ball = voters[waits[voters] <= radius]
                if len(ball) < rules.quorum:
                    continue
                if before is None:
                    first = radius
                    total.constant += radius
                elif radius - first > room:
                    self._within(before[1], votes, None)
                    break
                else:
                    slow = self._within(before[1], votes, self._slow_of(before[1]))
                    if slow is not None:
                        total.add(slow, radius - before[0])
                before = radius, ball
                if len(voters) - len(ball) <= spare:
                    break  # for any other voters, enough of them lie within

    def _slow_of(self, ball: IntArray) -> int:
        known = sum(1 << site for site in ball.tolist())
        if known not in self._slow:
            self._slow[known] = self._column(self.problem.rules.quorum > 2)
        return self._slow[known]

    def _within(self, ball: IntArray, votes: BoolArray, slow: int | None) -> int | None:
        """Let a quorum lie within a ball, unless `slow`; None where it always does."""
        needed = self.problem.rules.quorum - int(votes[ball].sum())
        if needed <= 0:
            return None
        mask = sum(1 << site for site in ball.tolist())
        one = -1 if slow is None else slow, mask, -1
        if one not in self._known:
            self._known.add(one)
            terms = {self.v[site]: 1.0 for site in ball.tolist() if not votes[site]}
            if slow is not None:
                terms[slow] = float(needed)
            self._row(needed, math.inf, terms)
        return slow

    def _wait_for_roles(self, wait: LeaderWait, total: Expression, room: float) -> None:
        """Add a wait of the leader beside the rounds of votes."""
        costs = [wait.rounds * radius for radius in wait.radii]
        total.constant += costs[0]
        for place, rows in enumerate(wait.rows):
            longest = place == len(costs) - 1 or costs[place + 1] - costs[0] > room
            slow = None if longest else self._column(True)
            for row in rows:
                self._answered(row, slow)
            if slow is None:
                return
            total.add(slow, costs[place + 1] - costs[place])

    def _answered(self, row: RoleRow, slow: int | None) -> None:
        """Let the roles end a wait, unless `slow`."""
        rules, least = self.problem.rules, 0
        terms: dict[int, float] = {}
        for given, columns, most in (
            (row.voters, self.v, rules.voters),
            (row.replicas, self.x, rules.replicas_max),
        ):
            terms |= {columns[site]: float(factor) for site, factor in given.items()}
            least += sum(sorted(min(factor, 0) for factor in given.values())[:most])
        if slow is not None:
            terms[slow] = float(row.least - least)
        self._row(row.least, math.inf, terms)

    # --- solutions ------------------------------------------------------------------------------

    def configuration(self, values: Sequence[float] | FloatArray) -> Configuration:
        """Read a configuration out of the values of the columns; the first that may lead does."""
        voters = [site for site, column in self.v.items() if values[column] > 0.5]
        return Configuration.of(
            next(site for site in self.case.leaders if site in voters),
            voters,
            [site for site, column in self.x.items() if values[column] > 0.5],
        )

    def values_at(self, configuration: Configuration) -> dict[int, bool]:
        """Return the values of the columns of roles and of sets of sites at a configuration."""
        held = sum(1 << site for site in configuration.replicas)
        return {
            **{column: site in configuration.replicas for site, column in self.x.items()},
            **{column: site in configuration.voters for site, column in self.v.items()},
            **{column: not known & held for known, column in self._empty.items()},
        }

    def arrays(self, scale: float, top: float) -> LinearProgram:
        """Return the linear program, its objective and thresholds times `scale`.

        `top`: the largest value of several expressions that is of interest, unscaled.
        """
        built, rows = Builder(), list(self.rows)
        costs = np.zeros(len(self.integer))
        upper = np.ones(len(self.integer) + 1)
        upper[-1] = 0.0
        for part, most in self.limits:
            size = max(abs(most - part.constant), *map(abs, part.terms.values()), 1e-300)
            terms = {column: one / size for column, one in part.terms.items()}
            rows.append((-math.inf, (most - part.constant) / size, terms))
        if len(self.objective) == 1:
            (part,) = self.objective
            built.offset = part.constant * scale
            costs[list(part.terms)] = np.array(list(part.terms.values())) * scale
        else:  # θ is what exceeds the least value
            low = max(part.constant for part in self.objective if not part.terms)
            built.offset, upper[-1] = low * scale, max(top - low, 0.0) * scale
            for part in self.objective:
                if part.terms:
                    terms = {column: -one * scale for column, one in part.terms.items()}
                    terms[len(self.integer)] = 1.0
                    rows.append(((part.constant - low) * scale, math.inf, terms))
        built.add_columns(
            np.append(costs, float(len(self.objective) > 1)), upper, [*self.integer, False]
        )
        added = built.add_rows([one[0] for one in rows], [one[1] for one in rows], len(rows))
        lengths = [len(terms) for _, _, terms in rows]
        columns = [column for _, _, terms in rows for column in terms]
        values = [one for _, _, terms in rows for one in terms.values()]
        built.put(np.repeat(added, lengths), np.array(columns, dtype=np.intp), values)
        return built.program()


def _sure_sites(problem: Problem, case: LeaderCase) -> tuple[BoolArray, BoolArray]:
    """Return the sites with a replica, and with a vote, in every plan of a case."""
    holds, votes = problem.rules.must_hold.copy(), problem.rules.must_vote.copy()
    for site in (case.leader, case.heir):
        if site is not None and not case.others:
            holds[site] = votes[site] = True
    return holds, votes


@dataclass(frozen=True, eq=False)
class _ServingOrders:
    """The sites that can serve each client in a row, and its costs there."""

    orders: IntArray
    usable: BoolArray
    costs: FloatArray

    @classmethod
    def of(cls, problem: Problem, case: LeaderCase, row: Row) -> _ServingOrders:
        """Return the chains of the clients whose costs in a row are not all 0."""
        assert row.costs is not None
        rules, (holds, _) = problem.rules, _sure_sites(problem, case)
        counted = np.nonzero(row.costs.any(axis=0))[0]
        orders = (_orders(problem) if row.orders is None else row.orders)[counted]
        allowed, lost = rules.may_hold, 0
        if row.lost is not None:
            lost = int((row.lost & allowed).sum())
            allowed = allowed & ~row.lost
        # with so many sites one of them holds a replica
        longest = int(allowed.sum()) - max(rules.quorum, rules.replicas_min - lost) + 1
        usable = allowed[orders]
        usable &= np.cumsum(usable, axis=1) <= max(1, longest)
        certain = (holds & allowed)[orders]
        usable &= np.cumsum(certain, axis=1) - certain == 0
        return cls(orders, usable, row.costs.T[counted[:, np.newaxis], orders])

    def least(self) -> float:
        """Return the sum of the least costs of all clients; +∞ where nobody can serve."""
        return float(np.where(self.usable, self.costs, math.inf).min(axis=1).sum())

    def __iter__(self) -> Iterator[_ServingOrder]:
        for sites, usable, costs in zip(self.orders, self.usable, self.costs, strict=True):
            yield _ServingOrder(sites[usable], costs[usable])


@lru_cache(maxsize=4)
def _orders(problem: Problem) -> IntArray:
    rtt = problem.demand.client_rtt
    return closest_first(rtt.reshape(-1, rtt.shape[-1]))


def least(problem: Problem, case: LeaderCase, row: Row) -> float:
    """Return a lower bound on X of a row in a case: every term at its least; +∞: no plan."""
    row = case.row(row)
    if row.successors:
        return min(
            (least(problem, LeaderCase(case.leader), one) for one in row.successors),
            default=math.inf,
        )
    rules, total = problem.rules, row.constant
    holds, votes = _sure_sites(problem, case)
    able = rules.may_vote if row.lost is None else rules.may_vote & ~row.lost
    if not able.sum() >= rules.quorum:
        return math.inf
    if row.costs is not None:
        total += _ServingOrders.of(problem, case, row).least()
    if row.waits is not None:
        total += float(np.sort(row.waits[:, able], axis=1)[:, rules.quorum - 1].sum())
        total += least_wait(list(leader_waits(problem.demand, rules, row.leader).values()))
    for prices, sure, may, fewest, most in (
        (row.prices, holds, rules.may_hold, rules.replicas_min, rules.replicas_max),
        (row.votes, votes, rules.may_vote, rules.voters, rules.voters),
    ):
        if prices is not None:
            free, held = np.sort(prices[may & ~sure]), int(sure.sum())
            free = free[: max(0, most - held)]
            taken = (np.arange(len(free)) < fewest - held) | (free < 0)
            total += float(prices[sure].sum() + free[taken].sum())
    return total
