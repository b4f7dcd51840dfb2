"""The program in Pyomo: variables, rows and objective, and the way back to a configuration.

Each family of rows follows the choice of :mod:`formulations.milp.recipes`, where the formulas are
derived. The decision variables:

==========  ===========================  =====================================================
name        index                        meaning
==========  ===========================  =====================================================
x           site                         holds a replica (binary)
v           site                         votes (binary)
y           site                         leads (binary)
z           client i, site               serves row i of ProgramData.clients, in [0, 1]
Z           client i, site               client i is served from here or closer, in [0, 1]
F           class, site, leader          share of the class' forwarded operations, in [0, 1]
f           client i, site, leader       client i is served here and ℓ leads, in [0, 1]
t           scenario, leader, j          ℓ leads and waits its j-th radius (binary)
T           scenario, leader, j          ℓ leads and waits its j-th radius or less (binary)
E           wait, scenario, leader, i    ℓ leads and its wait ends within its i-th radius (binary)
u           leader, site                 ℓ leads and the site votes, in [0, 1]
g           scenario, leader, site       ℓ leads and waits for the site's vote (binary)
q           scenario                     quorum wait, in units of the longest possible one
w           leader, site                 ℓ leads and the site holds a replica, in [0, 1]
e           rule, domain                 the domain counts as covered, in [0, 1]
==========  ===========================  =====================================================

Which of them have members depends on the recipe and on the question.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from formulations.milp.program_data import ProgramData
from formulations.milp.recipes import Forwarding, Nearest, Quorum, Rows
from formulations.solvers.linear_program import LinearProgram, compile_program
from placement.evaluation.waits.wait_rows import RoleRow
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray

_TARGET = 1e6
"""Objective of a program that is scaled for a value: far above the tolerances of HiGHS."""


def no_step() -> None:
    """Do nothing: for programs that are built without a search."""


def total(terms: Iterable[Any]) -> Any:
    """Return the sum of terms as a Pyomo expression, also where there is no term."""
    from pyomo.core.expr import LinearExpression

    return sum(terms, LinearExpression([]))


@dataclass(frozen=True, eq=False)
class PlacementProgram:
    """A program, from its variables on."""

    terms: ProgramData
    rows: Rows
    typical: float  #: a value that the objective may have; 0: none is known, and nothing is scaled
    model: Any  #: the Pyomo ConcreteModel, with a component for each variable of the module's table

    def add(self, name: str, rows: Iterable[Any]) -> None:
        """Add a family of rows: relations of Pyomo."""
        import pyomo.environ as pyo

        family = pyo.ConstraintList()
        self.model.add_component(name, family)
        for row in rows:
            family.add(row)

    def serves(self, client: int, site: int) -> Any:
        """z_cr: the share of client i that a site of its `serving` list serves."""
        if self.rows.nearest is not Nearest.CHAIN:
            return self.model.z[client, site]
        place = self.terms.clients[client].serving.index(site)
        return self._cumulative(client, place) - self._cumulative(client, place - 1)

    def within(self, client: int, site: int) -> Any:
        """Σ_{s ⪯_c r} z_cs: the share of client i served from `site` or closer."""
        row = self.terms.clients[client]
        ball = set(row.order[: row.order.index(site) + 1])
        count = sum(1 for r in row.serving if r in ball)  # `serving` follows `order`: a prefix
        if self.rows.nearest is Nearest.CHAIN:
            return self._cumulative(client, count - 1)
        return total(self.model.z[client, r] for r in row.serving[:count])

    def _cumulative(self, client: int, place: int) -> Any:
        serving = self.terms.clients[client].serving
        if 0 <= place < len(serving) - 1:
            return self.model.Z[client, serving[place]]
        return total([float(place >= 0)])

    @cached_property
    def mass(self) -> float:
        """Upper bound on the sum of all variables: the factor of dual tolerances.

        If no reduced cost is below −ε, the optimum of the exact LP is at least the computed one
        less ε times this sum.
        """
        terms, rules = self.terms, self.terms.problem.rules
        chain = self.rows.nearest is Nearest.CHAIN
        served = sum(len(row.serving) if chain else 1 for row in terms.clients)
        radii = sum(len(waits) for waits in terms.radii.values())
        radii += sum(len(wait.radii) for wait in terms.led.values())
        domains = sum(len(group.names) for group in rules.groups)
        flows = len(terms.clients) + len(terms.classes)
        roles = 2 * rules.replicas_max + 2 * rules.voters + 1
        return float(
            served + flows + radii + domains + roles + (rules.quorum + 1) * terms.demand.scenarios
        )

    @cached_property
    def scale(self) -> float:
        """Objective of the program over that of the problem."""
        return self.scale_for(self.typical)

    def scale_for(self, value: float) -> float:
        """Return the factor that puts `value` high enough above the solver's tolerances."""
        return _TARGET * max(1.0, self.mass / 5000) / value if value > 0 else 1.0

    def program(self, step: Callable[[], None] = no_step) -> LinearProgram:
        """Return the arrays of the model as it is now; `step` is called now and then."""
        return compile_program(self.model, step)

    def start(self, program: LinearProgram, configuration: Configuration) -> FloatArray:
        """Return the columns' values at a configuration: those of the roles, NaN for the others."""
        m, chosen = self.model, configuration
        value = {
            id(var): float(site in sites)
            for role, sites in (
                (m.x, chosen.replicas),
                (m.v, chosen.voters),
                (m.y, (chosen.leader,)),
            )
            for site, var in role.items()
        }
        return np.array([value.get(id(var), np.nan) for var in program.columns])

    def configuration(self, program: LinearProgram, x: FloatArray) -> Configuration:
        """Read the configuration off a solution: binaries rounded, the leader by its largest y."""
        value = {id(var): float(x[j]) for j, var in enumerate(program.columns)}
        replicas, voters = (
            [site for site, var in role.items() if value[id(var)] > 0.5]
            for role in (self.model.x, self.model.v)
        )
        y = {site: value[id(var)] for site, var in self.model.y.items()}
        return Configuration.of(max(y, key=lambda site: y[site]), voters, replicas)

    def forbid(self, configuration: Configuration) -> None:
        """Cut off the leader with any superset of the replicas: y_ℓ + Σ_{r ∈ R} x_r ≤ |R|.

        For configurations over budget: prices are non-negative, so that more replicas under the
        same leader are over budget as well. Not so where near reads are paid for, which another
        replica may make cheaper, and where votes are, of which others may be cheaper: then only
        this configuration is cut off.
        """
        m, parts = self.model, self.terms.problem.cost_parts
        members = [m.y[configuration.leader], *(m.x[r] for r in configuration.replicas)]
        if "votes" in parts:
            members.extend(m.v[r] for r in configuration.voters)
        others = [x for r, x in m.x.items() if parts and r not in configuration.replicas]
        m.forbidden.add(total(members) - total(others) <= len(members) - 1)


def build(
    terms: ProgramData, rows: Rows, typical: float = 0.0, step: Callable[[], None] = no_step
) -> PlacementProgram:
    """Build the model of a recipe, scaled for a typical value, with a step between the families.

    |S| = |C| = 60 gives some ten thousand columns and rows; see docs/formulations.md for sizes.
    """
    import pyomo.environ as pyo

    program = PlacementProgram(terms, rows, typical, pyo.ConcreteModel("replica placement"))
    _declare(program)
    for add in (
        add_roles,
        add_diversity,
        add_money,
        add_nearest,
        add_forwarding,
        add_quorum,
        add_leader_waits,
    ):
        step()
        add(program)
    step()
    program.add("forbidden", ())
    value = total(program.scale * term for term in _objective(program))
    program.model.objective = pyo.Objective(expr=value, sense=pyo.minimize)
    return program


def _declare(p: PlacementProgram) -> None:
    """Add the variables; pinned sites have their binaries bounded below by 1."""
    import pyomo.environ as pyo

    terms, rules, leaders, kind = p.terms, p.terms.problem.rules, p.terms.leaders, p.rows.quorum
    clients = list(enumerate(terms.clients))
    slots = [(k, ell, j) for (k, ell), waits in terms.radii.items() for j in range(len(waits))]

    def var(name: str, index: Iterable[Any], domain: Any = pyo.UnitInterval) -> None:
        p.model.add_component(name, pyo.Var(list(index), domain=domain))

    var("x", terms.holders, pyo.Binary)
    var("v", terms.voters, pyo.Binary)
    for role, must in ((p.model.x, rules.must_hold), (p.model.v, rules.must_vote)):
        for site, held in role.items():
            held.setlb(int(must[site]))
    var("y", leaders, pyo.Binary)
    chain, flows = p.rows.nearest is Nearest.CHAIN, p.rows.forwarding is Forwarding.AGGREGATED
    var("z", ((i, r) for i, row in clients for r in row.serving if not chain))
    var("Z", ((i, r) for i, row in clients for r in row.serving[:-1] if chain))
    senders = [(b, r) for b, group in enumerate(terms.classes) for r in terms.senders(group)]
    var("F", ((b, r, ell) for b, r in senders for ell in leaders if flows))
    var(
        "f",
        (
            (i, r, ell)
            for i, row in clients
            if row.relay > 0 and not flows
            for ell in leaders
            for r in row.not_beyond(ell)
        ),
    )
    var("t", slots if kind is Quorum.RADIUS else (), pyo.Binary)
    # The last radius is certain as soon as ℓ leads; T needs to be integer from quorums of three on.
    nested = kind in (Quorum.NESTED, Quorum.PER_LEADER)
    inner = [(k, ell, j) for k, ell, j in slots if nested and j < len(terms.radii[k, ell]) - 1]
    var("T", inner, pyo.Binary if rules.quorum > 2 else pyo.UnitInterval)
    ends = ((*key, i) for key, wait in terms.led.items() for i in range(len(wait.radii) - 1))
    var("E", ends, pyo.Binary)
    split = leaders if kind is Quorum.PER_LEADER and terms.radii else ()
    var("u", ((ell, r) for ell in split for r in terms.voters))
    waiting = terms.radii if kind is Quorum.MEMBERSHIP else {}
    var("g", ((k, ell, r) for k, ell in waiting for r in terms.voters), pyo.Binary)
    var("q", sorted({k for k, _ in waiting}))
    var("w", ((ell, r) for ell in leaders for r in terms.holders if terms.prices_vary))
    var(
        "e",
        (
            (n, d)
            for n, group in enumerate(rules.groups)
            if group.min_domains is not None
            for d in range(len(group.names))
        ),
    )


def add_roles(p: PlacementProgram) -> None:
    """y_r ≤ v_r ≤ x_r,  n_min ≤ Σ x ≤ n_max,  Σ v = v,  Σ y = 1."""
    m, rules = p.model, p.terms.problem.rules
    p.add("leader_votes", (m.y[r] <= m.v[r] for r in m.y))
    p.add("voter_holds", (m.v[r] <= m.x[r] for r in m.v))
    p.add("replica_count", [(rules.replicas_min, total(m.x.values()), rules.replicas_max)])
    p.add("voter_count", [total(m.v.values()) == rules.voters])
    p.add("one_leader", [total(m.y.values()) == 1])


def add_diversity(p: PlacementProgram) -> None:
    """Caps and minimums, level by level, so that crossing levels are no harder.

    With s the chosen role (v or x), for every rule and domain δ:

        Σ_{r ∈ δ} s_r ≤ cap,   Σ_{r ∈ δ} s_r ≥ least  (the named domain),
        e_δ ≤ Σ_{r ∈ δ} s_r,   0 ≤ e_δ ≤ 1,   Σ_δ e_δ ≥ min_domains.

    e may be continuous: the largest e_δ that integer s allows is 0 or 1. Survival of the loss of a
    domain is a cap on voters, put there by placement.problem.
    """
    e = p.model.e

    def rows() -> Iterator[Any]:
        for n, group in enumerate(p.terms.problem.rules.groups):
            chosen = p.model.v if group.role == "voters" else p.model.x
            members: list[list[Any]] = [[] for _ in group.names]
            for site, one in chosen.items():
                members[group.labels[site]].append(one)
            if group.cap is not None:
                yield from (total(s) <= group.cap for s in members if len(s) > group.cap)
            if group.least:
                yield total(members[group.domain]) >= group.least
            if group.min_domains is not None:
                yield from (e[n, d] <= total(s) for d, s in enumerate(members))
                yield total(e[n, d] for d in range(len(members))) >= group.min_domains

    p.add("diversity", rows())


def add_money(p: PlacementProgram) -> None:
    """w_ℓr = y_ℓ·x_r without a big M, and cost(ℓ, R) ≤ budget.

    Σ_ℓ w_ℓr = x_r,  w_ℓr ≤ y_ℓ: exact at integer y, where w vanishes for everyone but the leader,
    whose share is then all of x_r. Needed because the leader ships what is written to every
    replica, at prices that depend on both ends.

    The budget has the slack of placement.feasibility. Members of the cost that alone exceed it are
    forbidden one by one; what remains has entries of at most 1, so that the solver's absolute
    tolerance means the same at any price level.
    """
    from pyomo.repn import generate_standard_repn

    m, budget = p.model, p.terms.problem.rules.budget
    if len(m.w):
        p.add("priced", (total(m.w[ell, r] for ell in m.y) == m.x[r] for r in m.x))
        p.add("priced_leader", (m.w[ell, r] <= m.y[ell] for ell, r in m.w))
    if budget is None:
        return
    allowed = budget + 1e-9 * (1 + abs(budget))
    cost = generate_standard_repn(total(_money(p)), quadratic=False)
    prices = list(zip(cost.linear_coefs, cost.linear_vars, strict=True))
    # shares that are differences of two variables have negative entries, which offset others
    alone = cost.constant <= 0 and all(price >= 0 for price, _ in prices)
    p.add("too_dear", (var <= 0 for price, var in prices if alone and price > allowed))
    kept = [(price, var) for price, var in prices if not (alone and price > allowed)]
    largest = max((abs(price) for price, _ in kept), default=0.0)
    if largest > 0:
        scale = 1 / max(largest, float(np.finfo(float).tiny))
        row = total(price * scale * var for price, var in kept)
        p.add("budget", [row <= (allowed - cost.constant) * scale])


def _money(p: PlacementProgram) -> Iterator[Any]:
    """Yield the terms of the cost per month.

    With m_r the least price of a replica at r over the leaders,

        Σ_r m_r x_r + Σ_ℓr (a^ℓ_r − m_r) w_ℓr + Σ_ℓ K_ℓ y_ℓ + Σ_r b_r v_r + Σ_cr n_cr z_cr.
    """
    m, terms = p.model, p.terms
    if not terms.costs:
        return
    least = terms.least_prices.tolist()
    yield from (least[r] * m.x[r] for r in terms.holders)
    yield from ((float(terms.costs[ell].replica[r]) - least[r]) * m.w[ell, r] for ell, r in m.w)
    yield from (cost.constant * m.y[ell] for ell, cost in terms.costs.items())
    votes = next(iter(terms.costs.values())).voter
    if votes is not None:
        yield from (float(votes[r]) * m.v[r] for r in m.v)
    for i, row in enumerate(terms.clients):
        if row.paid is not None:
            yield from (float(row.paid[r]) * p.serves(i, r) for r in row.serving)


def add_nearest(p: PlacementProgram) -> None:
    """Σ_r z_cr = 1, z_cr ≤ x_r, and the closest-assignment rows of the recipe.

    The last only for sites where they are not implied (`program_data.guarded_sites`).
    """
    clients = list(enumerate(p.terms.clients))
    pairs = [(i, r) for i, row in clients for r in row.serving]
    if p.rows.nearest is Nearest.CHAIN:
        # 0 ≤ Z(r) − Z(r⁻) ≤ x_r; the sum to one is built into the last Z.
        p.add("served", (p.serves(i, r) >= 0 for i, r in pairs))
    else:
        p.add("served", (total(p.serves(i, r) for r in row.serving) == 1 for i, row in clients))
    p.add("open", (p.serves(i, r) <= p.model.x[r] for i, r in pairs))
    p.add(
        "closest", (row for i, each in clients for r in each.guarded for row in _closest(p, i, r))
    )
    if p.rows.leader_rows:
        p.add("leader_in_ball", _leader_rows(p))


def _closest(p: PlacementProgram, i: int, r: int) -> Iterator[Any]:
    """Yield the rows that keep sites farther than r from serving client i while r is open."""
    row, x, kind = p.terms.clients[i], p.model.x, p.rows.nearest
    place = row.order.index(r)
    if kind in (Nearest.CHAIN, Nearest.CHURCH_COHON):
        yield p.within(i, r) >= x[r]
    elif kind is Nearest.PAIRWISE or r not in row.serving:
        # r that may not serve at all (it would cost too much) has no z of its own to push up
        farther = set(row.order[place + 1 :])
        yield from (p.serves(i, s) + x[r] <= 1 for s in row.serving if s in farther)
    else:
        yield p.serves(i, r) + total(x[s] for s in row.order[:place]) >= x[r]


def _leader_rows(p: PlacementProgram) -> Iterator[Any]:
    """Σ_{s ⪯_c r} z_cs ≥ Σ_{ℓ ⪯_c r} y_ℓ: the nearest replica is no farther than the leader."""
    for i, row in enumerate(p.terms.clients):
        ball: list[Any] = []
        for r in row.order:
            if r in p.model.y:
                ball.append(p.model.y[r])
            # With one leader in the ball the row is the weaker copy of Church–Cohon's.
            if r in row.guarded and len(ball) > 1:
                yield p.within(i, r) >= total(ball)


def add_forwarding(p: PlacementProgram) -> None:
    """Tie the flows to who serves and who leads.

    Per class Σ_ℓ F_rℓ = Σ_c b_c z_cr and Σ_r F_rℓ = y_ℓ, with b_c = B_c/ΣB; or for every forwarding
    client Σ_ℓ f_crℓ = z_cr and Σ_r f_crℓ = y_ℓ.
    """
    terms, y = p.terms, p.model.y
    flows: Any = p.model.f
    sources = [
        (i, {r: p.serves(i, r) for r in row.serving})
        for i, row in enumerate(terms.clients)
        if row.relay > 0
    ]
    if p.rows.forwarding is Forwarding.AGGREGATED:
        flows = p.model.F
        sources = [(b, _shares(p, b)) for b in range(len(terms.classes))]
    out, into = defaultdict[Any, list[Any]](list), defaultdict[Any, list[Any]](list)
    for (source, r, ell), flow in flows.items():
        out[source, r].append(flow)
        into[source, ell].append(flow)
    p.add(
        "flow_out", (total(out[n, r]) == part for n, parts in sources for r, part in parts.items())
    )
    p.add("flow_in", (total(into[n, ell]) == y[ell] for n, _ in sources for ell in terms.leaders))


def _shares(p: PlacementProgram, b: int) -> dict[int, Any]:
    """Return Σ_c b_c z_cr of a class for every site."""
    group, clients = p.terms.classes[b], p.terms.clients
    return {
        r: total(
            clients[i].relay / group.weight * p.serves(i, r)
            for i in group.members
            if r in clients[i].serving
        )
        for r in p.terms.senders(group)
    }


def add_quorum(p: PlacementProgram) -> None:
    """Tie the waits to the voters, as the recipe says."""
    if p.terms.radii:
        {
            Quorum.RADIUS: _add_radii,
            Quorum.NESTED: _add_nested_radii,
            Quorum.PER_LEADER: _add_leader_votes,
            Quorum.MEMBERSHIP: _add_members,
        }[p.rows.quorum](p)


def _add_radii(p: PlacementProgram) -> None:
    """Σ_j t_ℓj = y_ℓ and Σ_{r: d(ℓ,r) ≤ ρ_ℓj} v_r ≥ m t_ℓj."""
    m, terms, radii = p.model, p.terms, p.terms.radii
    quorum, rtt = terms.problem.rules.quorum, terms.demand.site_rtt
    p.add(
        "one_radius",
        (
            total(m.t[k, ell, j] for j in range(len(waits))) == m.y[ell]
            for (k, ell), waits in radii.items()
        ),
    )
    p.add(
        "heard",
        (
            total(m.v[r] for r in m.v if rtt[k, ell, r] <= radii[k, ell][j]) >= quorum * t
            for (k, ell, j), t in m.t.items()
        ),
    )


def _add_nested_radii(p: PlacementProgram) -> None:
    """T_ℓj ≤ y_ℓ and Σ_{r ≠ ℓ: d(ℓ,r) ≤ ρ_ℓj} v_r ≥ (m − 1) T_ℓj, for all radii but the last.

    The last radius holds T = y_ℓ: after reductions that is a restriction, so it has a row as well.
    """
    m, terms = p.model, p.terms
    quorum, rtt = terms.problem.rules.quorum, terms.demand.site_rtt
    p.add("leads", (reached <= m.y[ell] for (_, ell, _), reached in m.T.items()))

    def rows() -> Iterator[Any]:
        for (k, ell), waits in terms.radii.items():
            for j, wait in enumerate(waits):
                reached = m.T[k, ell, j] if j < len(waits) - 1 else m.y[ell]
                ball = [r for r in m.v if r != ell and rtt[k, ell, r] <= wait]
                votes = total(m.u[ell, r] if len(m.u) else m.v[r] for r in ball)
                yield votes >= (quorum - 1) * reached

    p.add("heard", rows())


def _add_leader_votes(p: PlacementProgram) -> None:
    """Σ_ℓ u_ℓr = v_r, Σ_r u_ℓr = v y_ℓ, u_ℓr ≤ y_ℓ, u_ℓℓ = y_ℓ, u in place of v in nested radii."""
    u, v, y, voters = p.model.u, p.model.v, p.model.y, p.terms.problem.rules.voters
    p.add("votes_of_site", (total(u[ell, r] for ell in y) == v[r] for r in v))
    p.add("votes_for_leader", (total(u[ell, r] for r in v) == voters * y[ell] for ell in y))
    p.add(
        "vote_for_leader",
        (one == y[ell] if ell == r else one <= y[ell] for (ell, r), one in u.items()),
    )
    _add_nested_radii(p)


def _add_members(p: PlacementProgram) -> None:
    """Σ_r g_ℓr = m y_ℓ, g_ℓr ≤ v_r, g_ℓℓ = y_ℓ, and q ≥ Σ_ℓ d(ℓ,r) g_ℓr for every voter r.

    q is counted in units of the longest possible wait, and votes beyond it are never waited for.
    """
    m, terms, g = p.model, p.terms, p.model.g
    quorum, rtt = terms.problem.rules.quorum, terms.demand.site_rtt
    p.add(
        "members",
        (
            total(g[k, ell, r] for r in m.v if rtt[k, ell, r] <= waits[-1]) == quorum * m.y[ell]
            for (k, ell), waits in terms.radii.items()
        ),
    )
    p.add(
        "member_votes",
        (one == m.y[ell] if ell == r else one <= m.v[r] for (_, ell, r), one in g.items()),
    )

    def waits() -> Iterator[Any]:
        for k, wait in m.q.items():
            unit = terms.longest_wait(k)
            leaders = [ell for kk, ell in terms.radii if kk == k]
            for r in m.v:
                shares = {ell: float(rtt[k, ell, r]) / unit for ell in leaders}
                delays = [d * g[k, ell, r] for ell, d in shares.items() if 0 < d <= 1]
                if delays:
                    yield wait >= total(delays)

    p.add("waits", waits())


def add_leader_waits(p: PlacementProgram) -> None:
    """E_ℓi ≤ y_ℓ, and what the roles hold when the wait of ℓ ends within its i-th radius.

    A row Σ a_r v_r + Σ b_r x_r ≥ n of :mod:`placement.evaluation.waits.wait_rows` becomes

        Σ_{r ≠ ℓ} (a_r v_r + b_r x_r)  ≥  (n − a_ℓ − b_ℓ) E_ℓi − N (1 − E_ℓi):

    the leader's own part is set aside, as in `NESTED`, and N is what the negative coefficients can
    come to. The last radius holds whenever ℓ leads: no configuration waits longer.
    """
    E, y = p.model.E, p.model.y
    p.add("ends_leads", (ended <= y[ell] for (_, _, ell, _), ended in E.items()))
    p.add(
        "answered",
        (
            _answered(p, row, ell, E[j, k, ell, i] if i < len(wait.rows) - 1 else y[ell])
            for (j, k, ell), wait in p.terms.led.items()
            for i, rows in enumerate(wait.rows)
            for row in rows
        ),
    )


def _answered(p: PlacementProgram, row: RoleRow, leader: int, ended: Any) -> Any:
    """Return the row that holds once the wait of a leader has ended."""
    rules = p.terms.problem.rules
    need, spare, terms = row.least, 0, list[Any]()
    for given, role, most in (
        (row.voters, p.model.v, rules.voters),
        (row.replicas, p.model.x, rules.replicas_max),
    ):
        need -= given.get(leader, 0)
        others = {site: factor for site, factor in given.items() if site != leader}
        terms.extend(factor * role[site] for site, factor in others.items())
        spare += -sum(sorted(min(factor, 0) for factor in others.values())[:most])
    return total(terms) >= (need + spare) * ended - spare


def _objective(p: PlacementProgram) -> Iterator[Any]:
    """Yield the terms of the objective.

    Σ_kc A d(c, r) z_cr  +  Σ B d(r, ℓ) F_rℓ  +  Σ_ℓ (Σ_kc G d(c, ℓ)) y_ℓ  +  Σ_k D_k q_k
    +  cost_weight · cost(ℓ, R)

    with the second and fourth term in the variables of the recipe, and further waits of the leader
    like the fourth: ρ_I y − Σ_{i<I} (ρ_{i+1} − ρ_i) E_i.
    """
    m, terms = p.model, p.terms
    demand, weight = terms.demand, terms.problem.rules.cost_weight
    for i, row in enumerate(terms.clients):
        rtt = demand.client_rtt[row.scenario, row.client]
        yield from (row.near * float(rtt[r]) * p.serves(i, r) for r in row.serving if row.near > 0)
    for sources, flows in (
        ([(group.scenario, group.weight) for group in terms.classes], m.F),
        ([(row.scenario, row.relay) for row in terms.clients], m.f),
    ):
        for (n, r, ell), flow in flows.items():
            yield sources[n][1] * float(demand.site_rtt[sources[n][0], r, ell]) * flow
    yield from (terms.direct[ell] * y for ell, y in m.y.items())
    rounds = demand.quorum.tolist()
    yield from (rounds[k] * terms.longest_wait(k) * q for k, q in m.q.items())
    yield from (rounds[k] * terms.radii[k, ell][j] * t for (k, ell, j), t in m.t.items())
    if p.rows.quorum in (Quorum.NESTED, Quorum.PER_LEADER):
        yield from (rounds[k] * waits[-1] * m.y[ell] for (k, ell), waits in terms.radii.items())
    for (k, ell, j), reached in m.T.items():
        waits = terms.radii[k, ell]
        yield -rounds[k] * (waits[j + 1] - waits[j]) * reached
    yield from (one.rounds * one.radii[-1] * m.y[ell] for (*_, ell), one in terms.led.items())
    for (*key, i), ended in m.E.items():
        led = terms.led[tuple(key)]
        yield -led.rounds * (led.radii[i + 1] - led.radii[i]) * ended
    if weight:
        yield from (weight * term for term in _money(p))
