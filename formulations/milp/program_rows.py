"""Variables and rows of the program: roles, counts, rules, money, and what stands behind Eq. 1.

Each family follows the choice of :mod:`formulations.milp.recipes`, where the formulas are derived.

The decision variables:

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

Which of them exist depends on the recipe and on the question.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from formulations.milp.program_data import ProgramData
from formulations.milp.recipes import Forwarding, Nearest, Quorum, Rows
from placement.evaluation.waits.wait_rows import RoleRow


@dataclass(frozen=True, slots=True)
class Affine:
    """A linear expression: constant plus (coefficient, variable) pairs."""

    pairs: tuple[tuple[float, Any], ...] = ()
    constant: float = 0.0

    def times(self, factor: float) -> Affine:
        """Return the expression scaled."""
        return Affine(tuple((factor * a, var) for a, var in self.pairs), factor * self.constant)

    @staticmethod
    def total(parts: Iterable[Affine]) -> Affine:
        """Return the sum of expressions."""
        pairs: list[tuple[float, Any]] = []
        constant = 0.0
        for part in parts:
            pairs.extend(part.pairs)
            constant += part.constant
        return Affine(tuple(pairs), constant)

    @staticmethod
    def of(variables: Iterable[Any], factor: float = 1.0) -> Affine:
        """Return factor times the sum of variables."""
        return Affine(tuple((factor, var) for var in variables))

    def minus(self, other: Affine) -> Affine:
        """Return the difference of two expressions."""
        return Affine.total((self, other.times(-1.0)))

    def expression(self) -> Any:
        """Return the terms as a Pyomo expression."""
        from pyomo.core.expr import LinearExpression

        return LinearExpression(
            constant=self.constant,
            linear_coefs=[a for a, _ in self.pairs],
            linear_vars=[var for _, var in self.pairs],
        )


@dataclass(frozen=True, eq=False)
class ProgramVariables:
    """The Pyomo variables (indexed; empty where the recipe does without), and the data they index.

    `u` exists for quorums split by leader, `w` when prices of replicas depend on the leader.
    """

    terms: ProgramData
    rows: Rows
    x: Any
    v: Any
    y: Any
    z: Any
    Z: Any
    F: Any
    f: Any
    t: Any
    T: Any
    E: Any
    u: Any
    g: Any
    q: Any
    w: Any
    e: Any

    def serves(self, client: int, site: int) -> Affine:
        """z_cr: the share of client i that a site of its `serving` list serves."""
        if self.rows.nearest is not Nearest.CHAIN:
            return Affine(((1.0, self.z[client, site]),))
        serving = self.terms.clients[client].serving
        position = serving.index(site)
        here = self._cumulative(client, position)
        return here.minus(self._cumulative(client, position - 1))

    def within(self, client: int, site: int) -> Affine:
        """Σ_{s ⪯_c r} z_cs: the share of client i served from `site` or closer."""
        row = self.terms.clients[client]
        ball = set(row.order[: row.order.index(site) + 1])
        count = sum(1 for r in row.serving if r in ball)  # `serving` follows `order`: a prefix
        if self.rows.nearest is Nearest.CHAIN:
            return self._cumulative(client, count - 1)
        return Affine.of(self.z[client, r] for r in row.serving[:count])

    def longest_wait(self, scenario: int) -> float:
        """Longest quorum wait of a scenario that any leader can have, in ms; 1 when all are 0."""
        waits = (waits[-1] for (k, _), waits in self.terms.radii.items() if k == scenario)
        return max(waits) or 1.0

    def _cumulative(self, client: int, position: int) -> Affine:
        serving = self.terms.clients[client].serving
        if position < 0:
            return Affine()
        if position == len(serving) - 1:
            return Affine(constant=1.0)
        return Affine(((1.0, self.Z[client, serving[position]]),))


def declare(model: Any, terms: ProgramData, rows: Rows) -> ProgramVariables:
    """Add the variables of a recipe to a Pyomo model.

    Pinned sites have their binaries bounded below by 1. O(number of variables).
    """
    import pyomo.environ as pyo

    rules, leaders = terms.problem.rules, terms.leaders
    chain = rows.nearest is Nearest.CHAIN
    flows = rows.forwarding is Forwarding.AGGREGATED
    clients = list(enumerate(terms.clients))
    quorum = rows.quorum
    slots = [(k, ell, j) for (k, ell), waits in terms.radii.items() for j in range(len(waits))]
    nested = quorum in (Quorum.NESTED, Quorum.PER_LEADER)
    # The last radius is certain as soon as ℓ leads; T needs to be integer from quorums of three on.
    inner = [(k, ell, j) for k, ell, j in slots if j < len(terms.radii[k, ell]) - 1]
    step = pyo.Binary if rules.quorum > 2 else pyo.UnitInterval

    def pinned(must: Any) -> Any:
        return lambda _, site: (int(must[site]), 1)

    def add(name: str, index: Iterable[Any], domain: Any, bounds: Any = None) -> Any:
        component = pyo.Var(list(index), domain=domain, bounds=bounds)
        model.add_component(name, component)
        return component

    unit = pyo.UnitInterval
    return ProgramVariables(
        terms=terms,
        rows=rows,
        x=add("x", terms.holders, pyo.Binary, pinned(rules.must_hold)),
        v=add("v", terms.voters, pyo.Binary, pinned(rules.must_vote)),
        y=add("y", leaders, pyo.Binary),
        z=add("z", [(i, r) for i, row in clients for r in row.serving if not chain], unit),
        Z=add("Z", [(i, r) for i, row in clients for r in row.serving[:-1] if chain], unit),
        F=add(
            "F",
            [
                (b, r, ell)
                for b, group in enumerate(terms.classes)
                for r in sorted({r for i in group.members for r in terms.clients[i].serving})
                for ell in leaders
                if flows
            ],
            unit,
        ),
        f=add(
            "f",
            [
                (i, r, ell)
                for i, row in clients
                if row.relay > 0 and not flows
                for ell in leaders
                for r in _not_beyond(row.order, row.serving, ell)
            ],
            unit,
        ),
        t=add("t", slots if quorum is Quorum.RADIUS else [], pyo.Binary),
        T=add("T", inner if nested else [], step),
        E=add(
            "E",
            [(*key, i) for key, wait in terms.led.items() for i in range(len(wait.radii) - 1)],
            pyo.Binary,
        ),
        u=add(
            "u",
            [
                (ell, r)
                for ell in leaders
                for r in terms.voters
                if quorum is Quorum.PER_LEADER and terms.radii
            ],
            unit,
        ),
        g=add(
            "g",
            [
                (k, ell, r)
                for k, ell in terms.radii
                for r in terms.voters
                if quorum is Quorum.MEMBERSHIP
            ],
            pyo.Binary,
        ),
        q=add(
            "q",
            sorted({k for k, _ in terms.radii}) if quorum is Quorum.MEMBERSHIP else [],
            unit,
        ),
        w=add(
            "w",
            [(ell, r) for ell in leaders for r in terms.holders if terms.prices_vary],
            unit,
        ),
        e=add(
            "e",
            [
                (n, d)
                for n, group in enumerate(rules.groups)
                if group.min_domains is not None
                for d in range(len(group.names))
            ],
            unit,
        ),
    )


def _not_beyond(order: tuple[int, ...], serving: tuple[int, ...], leader: int) -> tuple[int, ...]:
    """Return the sites of `serving` that are not farther than the leader in the client's order."""
    if leader not in order:
        return serving
    ball = set(order[: order.index(leader) + 1])
    return tuple(r for r in serving if r in ball)


def add_roles(model: Any, variables: ProgramVariables) -> None:
    """y_r ≤ v_r ≤ x_r: the leader votes, and who votes holds a replica."""
    import pyomo.environ as pyo

    x, v, y = variables.x, variables.v, variables.y
    model.leader_votes = pyo.Constraint(list(y), rule=lambda _, r: y[r] <= v[r])
    model.voter_holds = pyo.Constraint(list(v), rule=lambda _, r: v[r] <= x[r])


def add_counts(model: Any, variables: ProgramVariables) -> None:
    """n_min ≤ Σ x ≤ n_max,  Σ v = v,  Σ y = 1."""
    import pyomo.environ as pyo

    rules = variables.terms.problem.rules
    model.replica_count = pyo.Constraint(
        expr=(
            rules.replicas_min,
            Affine.of(variables.x.values()).expression(),
            rules.replicas_max,
        )
    )
    model.voter_count = pyo.Constraint(
        expr=Affine.of(variables.v.values()).expression() == rules.voters
    )
    model.one_leader = pyo.Constraint(expr=Affine.of(variables.y.values()).expression() == 1)


def add_diversity(model: Any, variables: ProgramVariables) -> None:
    """Caps and minimums, level by level, so that crossing levels are no harder.

    With s the chosen role (v or x), for every rule and domain δ:

        Σ_{r ∈ δ} s_r ≤ cap,   Σ_{r ∈ δ} s_r ≥ least  (the named domain),
        e_δ ≤ Σ_{r ∈ δ} s_r,   0 ≤ e_δ ≤ 1,   Σ_δ e_δ ≥ min_domains.

    e may be continuous: the largest e_δ that integer s allows is 0 or 1. Survival of the loss of a
    domain is a cap on voters, put there by placement.problem.
    """
    import pyomo.environ as pyo

    model.caps = pyo.ConstraintList()
    model.covered = pyo.ConstraintList()
    model.enough_domains = pyo.ConstraintList()
    model.enough_sites = pyo.ConstraintList()
    for n, group in enumerate(variables.terms.problem.rules.groups):
        chosen = variables.v if group.role == "voters" else variables.x
        members: list[list[Any]] = [[] for _ in group.names]
        for site in chosen:
            members[group.labels[site]].append(chosen[site])
        for d, sites in enumerate(members):
            if group.cap is not None and len(sites) > group.cap:
                model.caps.add(Affine.of(sites).expression() <= group.cap)
            if group.min_domains is not None:
                covered = Affine.of(sites).minus(Affine.of([variables.e[n, d]]))
                model.covered.add(covered.expression() >= 0)
        if group.least:
            model.enough_sites.add(Affine.of(members[group.domain]).expression() >= group.least)
        if group.min_domains is not None:
            every = Affine.of(variables.e[n, d] for d in range(len(group.names)))
            model.enough_domains.add(every.expression() >= group.min_domains)


def add_leader_prices(model: Any, variables: ProgramVariables) -> None:
    """w_ℓr = y_ℓ·x_r without a big M: Σ_ℓ w_ℓr = x_r,  w_ℓr ≤ y_ℓ.

    Exact at integer y: w vanishes for everyone but the leader, whose share is then all of x_r.
    Needed because the leader ships what is written to every replica, at prices that depend on both
    ends.
    """
    import pyomo.environ as pyo

    w, x, y = variables.w, variables.x, variables.y
    if not len(w):
        return
    leaders = list(y)
    model.priced = pyo.Constraint(
        list(x),
        rule=lambda _, r: (
            Affine.of(w[ell, r] for ell in leaders).minus(Affine.of([x[r]])).expression() == 0
        ),
    )
    model.priced_leader = pyo.Constraint(list(w), rule=lambda _, ell, r: w[ell, r] <= y[ell])


def money(variables: ProgramVariables) -> Affine:
    """Return the cost per month as a linear expression.

    With m_r the least price of a replica at r over the leaders,

        Σ_r m_r x_r + Σ_ℓr (a^ℓ_r − m_r) w_ℓr + Σ_ℓ K_ℓ y_ℓ + Σ_r b_r (v_r − h_r) + Σ_cr n_cr z_cr.
    """
    terms = variables.terms
    if not terms.costs:
        return Affine()
    least, y, v = terms.least_prices, variables.y, variables.v
    pairs = [(float(least[r]), variables.x[r]) for r in terms.holders]
    for ell, r in variables.w:
        extra = float(terms.costs[ell].replica[r] - least[r])
        if extra:
            pairs.append((extra, variables.w[ell, r]))
    for ell, cost in terms.costs.items():
        if cost.constant:
            pairs.append((cost.constant, y[ell]))
    votes = next(iter(terms.costs.values())).voter
    if votes is not None:
        pairs.extend((float(votes[r]), v[r]) for r in v if votes[r])
    near = [
        variables.serves(i, r).times(float(row.paid[r]))
        for i, row in enumerate(terms.clients)
        if row.paid is not None
        for r in row.serving
        if row.paid[r]
    ]
    return Affine.total((Affine(tuple(pairs)), *near))


def add_budget(model: Any, variables: ProgramVariables) -> None:
    """cost(ℓ, R) ≤ budget, with the slack of placement.feasibility, scaled to entries ≤ 1.

    Members of the cost that alone exceed the budget are forbidden one by one first; what remains
    has entries of at most 1, so that the solver's absolute tolerance means the same at any price
    level.
    """
    import pyomo.environ as pyo

    budget = variables.terms.problem.rules.budget
    if budget is None:
        return
    allowed = budget + 1e-9 * (1 + abs(budget))
    cost = money(variables)
    model.too_dear = pyo.ConstraintList()
    affordable = []
    # shares that are differences of two variables have negative entries, which offset others
    offsets = any(price < 0 for price, _ in cost.pairs) or cost.constant > 0
    for price, var in cost.pairs:
        if price > allowed and not offsets:
            model.too_dear.add(var <= 0)
        elif price:
            affordable.append((price, var))
    largest = max((abs(price) for price, _ in affordable), default=0.0)
    if largest > 0:
        scale = 1 / max(largest, float(np.finfo(float).tiny))
        row = Affine(tuple(affordable)).times(scale)
        model.budget = pyo.Constraint(expr=row.expression() <= (allowed - cost.constant) * scale)


def add_nearest(model: Any, variables: ProgramVariables) -> None:
    """Σ_r z_cr = 1, z_cr ≤ x_r, and the closest-assignment rows of the recipe.

    Reads from lease holders have L_r in the place of x_r. The closest-assignment rows only for
    sites where they are not implied (see `terms.guarded`).
    """
    import pyomo.environ as pyo

    terms, rows = variables.terms, variables.rows
    pairs = [(i, r) for i, row in enumerate(terms.clients) for r in row.serving]
    if rows.nearest is Nearest.CHAIN:
        # 0 ≤ Z(r) − Z(r⁻) ≤ x_r; the sum to one is built into the last Z.
        model.served = pyo.Constraint(
            pairs, rule=lambda _, i, r: variables.serves(i, r).expression() >= 0
        )
    else:
        model.served = pyo.Constraint(
            range(len(terms.clients)),
            rule=lambda _, i: (
                Affine.of(variables.z[i, r] for r in terms.clients[i].serving).expression() == 1
            ),
        )
    model.open = pyo.Constraint(
        pairs,
        rule=lambda _, i, r: (
            variables.serves(i, r).minus(Affine.of([variables.x[r]])).expression() <= 0
        ),
    )
    model.closest = pyo.ConstraintList()
    for i, row in enumerate(terms.clients):
        for r in row.guarded:
            for constraint in _closest(variables, i, r):
                model.closest.add(constraint.expression() >= 0)
    if rows.leader_rows:
        _add_leader_rows(model, variables)


def _closest(variables: ProgramVariables, i: int, r: int) -> list[Affine]:
    """Expressions that must be >= 0 for r to keep farther sites from serving client i."""
    row, x = variables.terms.clients[i], variables.x
    kind = variables.rows.nearest
    here = Affine.of([x[r]])
    position = row.order.index(r)
    if kind in (Nearest.CHAIN, Nearest.CHURCH_COHON):
        return [variables.within(i, r).minus(here)]
    farther = set(row.order[position + 1 :])
    if kind is Nearest.PAIRWISE or r not in row.serving:
        # r that may not serve at all (it would cost too much) has no z of its own to push up
        return [
            Affine(constant=1.0).minus(Affine.total((variables.serves(i, s), here)))
            for s in row.serving
            if s in farther
        ]
    closer = Affine.of(x[s] for s in row.order[:position])
    return [Affine.total((variables.serves(i, r), closer)).minus(here)]


def _add_leader_rows(model: Any, variables: ProgramVariables) -> None:
    """Σ_{s ⪯_c r} z_cs ≥ Σ_{ℓ ⪯_c r} y_ℓ: the nearest replica is no farther than the leader."""
    import pyomo.environ as pyo

    y, leaders = variables.y, set(variables.terms.leaders)
    model.leader_in_ball = pyo.ConstraintList()
    for i, row in enumerate(variables.terms.clients):
        guards = set(row.guarded)
        ball: list[Any] = []
        for r in row.order:
            if r in leaders:
                ball.append(y[r])
            # With one leader in the ball the row is the weaker copy of Church–Cohon's.
            if r in guards and len(ball) > 1:
                inside = variables.within(i, r).minus(Affine.of(ball))
                model.leader_in_ball.add(inside.expression() >= 0)


def add_forwarding(model: Any, variables: ProgramVariables) -> None:
    """Tie the flows to who serves and who leads."""
    if variables.rows.forwarding is Forwarding.AGGREGATED:
        _add_aggregated_flows(model, variables)
    else:
        _add_client_flows(model, variables)


def _add_aggregated_flows(model: Any, variables: ProgramVariables) -> None:
    """Σ_ℓ F_rℓ = Σ_c b_c z_cr and Σ_r F_rℓ = y_ℓ, per class, with b_c = B_c/ΣB."""
    import pyomo.environ as pyo

    terms, F = variables.terms, variables.F
    model.flow_out, model.flow_in = pyo.ConstraintList(), pyo.ConstraintList()
    for b, group in enumerate(terms.classes):
        sites = sorted({r for i in group.members for r in terms.clients[i].serving})
        for r in sites:
            served = Affine.total(
                variables.serves(i, r).times(terms.clients[i].relay / group.weight)
                for i in group.members
                if r in terms.clients[i].serving
            )
            out = Affine.of(F[b, r, ell] for ell in terms.leaders)
            model.flow_out.add(out.minus(served).expression() == 0)
        for ell in terms.leaders:
            into = Affine.of(F[b, r, ell] for r in sites)
            model.flow_in.add(into.minus(Affine.of([variables.y[ell]])).expression() == 0)


def _add_client_flows(model: Any, variables: ProgramVariables) -> None:
    """Σ_ℓ f_crℓ = z_cr and Σ_r f_crℓ = y_ℓ for every forwarding client."""
    import pyomo.environ as pyo

    f, terms = variables.f, variables.terms
    out: dict[tuple[int, int], list[Any]] = {}
    into: dict[tuple[int, int], list[Any]] = {}
    for (i, r, ell), flow in f.items():
        out.setdefault((i, r), []).append(flow)
        into.setdefault((i, ell), []).append(flow)
    forwarding = [i for i, row in enumerate(terms.clients) if row.relay > 0]
    model.flow_out = pyo.Constraint(
        [(i, r) for i in forwarding for r in terms.clients[i].serving],
        rule=lambda _, i, r: (
            Affine.of(out.get((i, r), ())).minus(variables.serves(i, r)).expression() == 0
        ),
    )
    model.flow_in = pyo.Constraint(
        [(i, ell) for i in forwarding for ell in terms.leaders],
        rule=lambda _, i, ell: (
            Affine.of(into.get((i, ell), ())).minus(Affine.of([variables.y[ell]])).expression() == 0
        ),
    )


def add_quorum(model: Any, variables: ProgramVariables) -> None:
    """Tie the waits to the voters."""
    if not variables.terms.radii:
        return
    kind = variables.rows.quorum
    if kind is Quorum.RADIUS:
        _add_radii(model, variables)
    elif kind is Quorum.MEMBERSHIP:
        _add_members(model, variables)
    else:
        if kind is Quorum.PER_LEADER:
            _add_leader_votes(model, variables)
        _add_nested_radii(model, variables)


def _add_radii(model: Any, variables: ProgramVariables) -> None:
    """Σ_j t_ℓj = y_ℓ and Σ_{r: d(ℓ,r) ≤ ρ_ℓj} v_r ≥ m t_ℓj."""
    import pyomo.environ as pyo

    terms, t, v = variables.terms, variables.t, variables.v
    quorum, rtt = terms.problem.rules.quorum, terms.demand.site_rtt
    model.one_radius, model.heard = pyo.ConstraintList(), pyo.ConstraintList()
    for (k, ell), waits in terms.radii.items():
        chosen = Affine.of(t[k, ell, j] for j in range(len(waits)))
        model.one_radius.add(chosen.minus(Affine.of([variables.y[ell]])).expression() == 0)
        for j, wait in enumerate(waits):
            ball = Affine.of(v[r] for r in terms.voters if rtt[k, ell, r] <= wait)
            model.heard.add(ball.minus(Affine.of([t[k, ell, j]], quorum)).expression() >= 0)


def _add_nested_radii(model: Any, variables: ProgramVariables) -> None:
    """T_ℓj ≤ y_ℓ and Σ_{r ≠ ℓ: d(ℓ,r) ≤ ρ_ℓj} v_r ≥ (m − 1) T_ℓj, for all radii but the last.

    The last radius holds T = y_ℓ: after reductions that is a restriction, so it has a row as well.
    """
    import pyomo.environ as pyo

    terms, T = variables.terms, variables.T
    quorum, rtt = terms.problem.rules.quorum, terms.demand.site_rtt
    split = variables.rows.quorum is Quorum.PER_LEADER
    model.leads, model.heard = pyo.ConstraintList(), pyo.ConstraintList()
    for (k, ell), waits in terms.radii.items():
        for j, wait in enumerate(waits):
            last = j == len(waits) - 1
            reached = variables.y[ell] if last else T[k, ell, j]
            if not last:
                model.leads.add(reached <= variables.y[ell])
            sites = [r for r in terms.voters if r != ell and rtt[k, ell, r] <= wait]
            ball = Affine.of((variables.u[ell, r] if split else variables.v[r]) for r in sites)
            row = ball.minus(Affine.of([reached], quorum - 1))
            model.heard.add(row.expression() >= 0)


def _add_leader_votes(model: Any, variables: ProgramVariables) -> None:
    """Σ_ℓ u_ℓr = v_r, Σ_r u_ℓr = v y_ℓ, u_ℓr ≤ y_ℓ, u_ℓℓ = y_ℓ: the product u_ℓr = y_ℓ v_r."""
    import pyomo.environ as pyo

    terms, u, v, y = variables.terms, variables.u, variables.v, variables.y
    voters = terms.problem.rules.voters
    model.votes_of_site = pyo.Constraint(
        list(terms.voters),
        rule=lambda _, r: (
            Affine.of(u[ell, r] for ell in terms.leaders).minus(Affine.of([v[r]])).expression() == 0
        ),
    )
    model.votes_for_leader = pyo.Constraint(
        list(terms.leaders),
        rule=lambda _, ell: (
            Affine.of(u[ell, r] for r in terms.voters)
            .minus(Affine.of([y[ell]], voters))
            .expression()
            == 0
        ),
    )
    model.vote_for_leader = pyo.Constraint(
        list(u), rule=lambda _, ell, r: u[ell, r] == y[ell] if ell == r else u[ell, r] <= y[ell]
    )


def _add_members(model: Any, variables: ProgramVariables) -> None:
    """Σ_r g_ℓr = m y_ℓ, g_ℓr ≤ v_r, g_ℓℓ = y_ℓ, and q ≥ Σ_ℓ d(ℓ,r) g_ℓr for every voter r.

    q is counted in units of the longest possible wait, and votes beyond it are never waited for.
    """
    import pyomo.environ as pyo

    terms, g, q = variables.terms, variables.g, variables.q
    quorum, rtt = terms.problem.rules.quorum, terms.demand.site_rtt
    model.members, model.waits = pyo.ConstraintList(), pyo.ConstraintList()
    for k, ell in terms.radii:
        heard = Affine.of(
            g[k, ell, r] for r in terms.voters if rtt[k, ell, r] <= terms.radii[k, ell][-1]
        )
        model.members.add(heard.minus(Affine.of([variables.y[ell]], quorum)).expression() == 0)
    model.member_votes = pyo.Constraint(
        list(g),
        rule=lambda _, k, ell, r: (
            g[k, ell, r] == variables.y[ell] if ell == r else g[k, ell, r] <= variables.v[r]
        ),
    )
    for k in q:
        leaders = [ell for kk, ell in terms.radii if kk == k]
        unit = variables.longest_wait(k)
        for r in terms.voters:
            delay = Affine(
                tuple(
                    (float(rtt[k, ell, r]) / unit, g[k, ell, r])
                    for ell in leaders
                    if 0 < rtt[k, ell, r] <= unit
                )
            )
            if delay.pairs:
                model.waits.add(Affine.of([q[k]]).minus(delay).expression() >= 0)


def add_leader_waits(model: Any, variables: ProgramVariables) -> None:
    """E_ℓi ≤ y_ℓ, and what the roles hold when the wait of ℓ ends within its i-th radius.

    A row Σ a_r v_r + Σ b_r x_r + Σ c_r L_r ≥ n of :mod:`placement.evaluation.waits.wait_rows`
    becomes

        Σ_{r ≠ ℓ} (a_r v_r + b_r x_r + c_r L_r)  ≥  (n − a_ℓ − b_ℓ − c_ℓ) E_ℓi − N (1 − E_ℓi):

    the leader's own part is set aside, as in `NESTED`, and N is what the negative coefficients can
    come to. The last radius holds whenever ℓ leads: no configuration waits longer.
    """
    import pyomo.environ as pyo

    terms, E, y = variables.terms, variables.E, variables.y
    model.ends_leads, model.answered = pyo.ConstraintList(), pyo.ConstraintList()
    for (j, k, ell), wait in terms.led.items():
        for i, rows in enumerate(wait.rows):
            last = i == len(wait.rows) - 1
            ended = y[ell] if last else E[j, k, ell, i]
            if not last:
                model.ends_leads.add(ended <= y[ell])
            for row in rows:
                model.answered.add(_answered(variables, row, ell, ended).expression() >= 0)


def _answered(variables: ProgramVariables, row: RoleRow, leader: int, ended: Any) -> Affine:
    """Return the expression that is >= 0 once the wait of a leader has ended."""
    rules = variables.terms.problem.rules
    need, slack = row.least, 0
    pairs: list[tuple[float, Any]] = []
    for given, role, most in (
        (row.voters, variables.v, rules.voters),
        (row.replicas, variables.x, rules.replicas_max),
    ):
        need -= given.get(leader, 0)
        others = {site: factor for site, factor in given.items() if site != leader}
        pairs.extend((factor, role[site]) for site, factor in others.items())
        slack += -sum(sorted(min(factor, 0) for factor in others.values())[:most])
    return Affine((*pairs, (-(need + slack), ended)), slack)


def objective(variables: ProgramVariables, scale: float = 1.0) -> Affine:
    """Return the objective, times `scale`.

    Σ_kc A d(c, r) z_cr  +  Σ B d(r, ℓ) F_rℓ  +  Σ_ℓ (Σ_kc G d(c, ℓ)) y_ℓ  +  Σ_k D_k q_k
    +  cost_weight · cost(ℓ, R)

    with the second and fourth term in the variables of the recipe, and further waits of the leader
    like the fourth.
    """
    weight = variables.terms.problem.rules.cost_weight
    parts = [_near(variables), _relay(variables), _direct(variables), _quorum(variables)]
    parts.append(_leader_waits(variables))
    if weight:
        parts.append(money(variables).times(weight))
    return Affine.total(parts).times(scale)


def _near(variables: ProgramVariables) -> Affine:
    demand = variables.terms.demand
    return Affine.total(
        variables.serves(i, r).times(
            row.near * float(demand.client_rtt[row.scenario, row.client, r])
        )
        for i, row in enumerate(variables.terms.clients)
        if row.near > 0
        for r in row.serving
    )


def _relay(variables: ProgramVariables) -> Affine:
    terms = variables.terms
    rtt = terms.demand.site_rtt
    if variables.rows.forwarding is Forwarding.AGGREGATED:
        return Affine(
            tuple(
                (terms.classes[b].weight * float(rtt[terms.classes[b].scenario, r, ell]), flow)
                for (b, r, ell), flow in variables.F.items()
            )
        )
    return Affine(
        tuple(
            (terms.clients[i].relay * float(rtt[terms.clients[i].scenario, r, ell]), flow)
            for (i, r, ell), flow in variables.f.items()
        )
    )


def _direct(variables: ProgramVariables) -> Affine:
    return Affine(tuple((variables.terms.direct[ell], y) for ell, y in variables.y.items()))


def _quorum(variables: ProgramVariables) -> Affine:
    terms, kind = variables.terms, variables.rows.quorum
    rounds = terms.demand.quorum
    if kind is Quorum.MEMBERSHIP:
        return Affine(
            tuple((float(rounds[k]) * variables.longest_wait(k), q) for k, q in variables.q.items())
        )
    if kind is Quorum.RADIUS:
        return Affine(
            tuple(
                (float(rounds[k]) * terms.radii[k, ell][j], t)
                for (k, ell, j), t in variables.t.items()
            )
        )
    # ρ_J y − Σ_{j<J} (ρ_{j+1} − ρ_j) T_j
    last = tuple(
        (float(rounds[k]) * waits[-1], variables.y[ell]) for (k, ell), waits in terms.radii.items()
    )
    saved = tuple(
        (-float(rounds[k]) * (terms.radii[k, ell][j + 1] - terms.radii[k, ell][j]), reached)
        for (k, ell, j), reached in variables.T.items()
    )
    return Affine(last + saved)


def _leader_waits(variables: ProgramVariables) -> Affine:
    """ρ_I y − Σ_{i<I} (ρ_{i+1} − ρ_i) E_i, each with the rounds of its wait."""
    led = variables.terms.led
    last = tuple(
        (wait.rounds * wait.radii[-1], variables.y[ell]) for (_, _, ell), wait in led.items()
    )
    saved = []
    for (j, k, ell, i), ended in variables.E.items():
        wait = led[j, k, ell]
        saved.append((-wait.rounds * (wait.radii[i + 1] - wait.radii[i]), ended))
    return Affine(last + tuple(saved))
