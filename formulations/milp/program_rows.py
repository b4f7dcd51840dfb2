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

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from formulations.milp.program_data import Client, FlowClass, ProgramData
from formulations.milp.recipes import Forwarding, Nearest, Quorum, Rows
from formulations.solvers.linear_program import Affine, Columns, LinearRow
from placement.evaluation.score import nearest, quorum_latency
from placement.evaluation.waits.wait_latency import wait_latency
from placement.evaluation.waits.wait_rows import RoleRow
from placement.model.configuration import Configuration
from placement.support.checks import FloatArray

Two = tuple[int, int]
Three = tuple[int, int, int]


@dataclass(frozen=True, eq=False)
class ProgramVariables:
    """The columns of a program by key (none where the recipe does without), and their data.

    `u` exists for quorums split by leader, `w` when prices of replicas depend on the leader.
    """

    terms: ProgramData
    rows: Rows
    columns: Columns
    E: Mapping[tuple[int, int, int, int], int]
    F: Mapping[Three, int]
    T: Mapping[Three, int]
    Z: Mapping[Two, int]
    e: Mapping[Two, int]
    f: Mapping[Three, int]
    g: Mapping[Three, int]
    q: Mapping[int, int]
    t: Mapping[Three, int]
    u: Mapping[Two, int]
    v: Mapping[int, int]
    w: Mapping[Two, int]
    x: Mapping[int, int]
    y: Mapping[int, int]
    z: Mapping[Two, int]

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


def declare(terms: ProgramData, rows: Rows) -> ProgramVariables:
    """Return the columns of a recipe; pinned sites have their binaries bounded below by 1.

    O(number of columns).
    """
    rules, leaders, quorum = terms.problem.rules, terms.leaders, rows.quorum
    chain = rows.nearest is Nearest.CHAIN
    flows = rows.forwarding is Forwarding.AGGREGATED
    clients = list(enumerate(terms.clients))
    slots = [(k, ell, j) for (k, ell), waits in terms.radii.items() for j in range(len(waits))]
    # The last radius is certain as soon as ℓ leads; T needs to be integer from quorums of three on.
    inner = [(k, ell, j) for k, ell, j in slots if j < len(terms.radii[k, ell]) - 1]
    nested = quorum in (Quorum.NESTED, Quorum.PER_LEADER)
    split = quorum is Quorum.PER_LEADER and bool(terms.radii)
    joint = quorum is Quorum.MEMBERSHIP
    columns = Columns()
    add = columns.add
    return ProgramVariables(
        terms=terms,
        rows=rows,
        columns=columns,
        E=add(
            "E",
            [(*key, i) for key, wait in terms.led.items() for i in range(len(wait.radii) - 1)],
            binary=True,
        ),
        F=add(
            "F",
            [
                (b, r, ell)
                for b, group in enumerate(terms.classes)
                for r in _servers(terms, group)
                for ell in leaders
                if flows
            ],
        ),
        T=add("T", inner if nested else [], binary=rules.quorum > 2),
        Z=add("Z", [(i, r) for i, row in clients for r in row.serving[:-1] if chain]),
        e=add(
            "e",
            [
                (n, d)
                for n, group in enumerate(rules.groups)
                if group.min_domains is not None
                for d in range(len(group.names))
            ],
        ),
        f=add(
            "f",
            [
                (i, r, ell)
                for i, row in clients
                if row.relay > 0 and not flows
                for ell in leaders
                for r in _not_beyond(row, ell)
            ],
        ),
        g=add("g", [(*key, r) for key in terms.radii for r in terms.voters if joint], binary=True),
        q=add("q", sorted({k for k, _ in terms.radii}) if joint else []),
        t=add("t", slots if quorum is Quorum.RADIUS else [], binary=True),
        u=add("u", [(ell, r) for ell in leaders for r in terms.voters if split]),
        v=add("v", terms.voters, binary=True, ones=np.flatnonzero(rules.must_vote)),
        w=add("w", [(ell, r) for ell in leaders for r in terms.holders if terms.prices_vary]),
        x=add("x", terms.holders, binary=True, ones=np.flatnonzero(rules.must_hold)),
        y=add("y", leaders, binary=True),
        z=add("z", [(i, r) for i, row in clients for r in row.serving if not chain]),
    )


def _servers(terms: ProgramData, group: FlowClass) -> list[int]:
    """Return the sites that may serve a member of a class."""
    return sorted({r for i in group.members for r in terms.clients[i].serving})


def _not_beyond(row: Client, leader: int) -> tuple[int, ...]:
    """Return the sites that may serve a client and are not farther than the leader."""
    if leader not in row.order:
        return row.serving
    ball = set(row.order[: row.order.index(leader) + 1])
    return tuple(r for r in row.serving if r in ball)


def values_at(variables: ProgramVariables, configuration: Configuration) -> FloatArray:
    """Return the value of every column at a configuration, for warm starts and for checks.

    The configuration need not be feasible; one that uses what `ProgramData` left out cannot be
    expressed and is recognised by rows that do not hold.
    """
    terms = variables.terms
    demand, rules = terms.demand, terms.problem.rules
    leader, voters, replicas = configuration.leader, configuration.voters, configuration.replicas
    values = np.zeros(len(variables.columns.names))
    for columns, chosen in (
        (variables.x, replicas),
        (variables.v, voters),
        (variables.y, (leader,)),
    ):
        values[[columns[site] for site in chosen if site in columns]] = 1
    near = nearest(demand.client_rtt, replicas)
    server = [int(near[row.scenario, row.client]) for row in terms.clients]
    for (i, r), column in variables.z.items():
        values[column] = r == server[i]
    for (i, r), column in variables.Z.items():
        order = terms.clients[i].order
        values[column] = server[i] in order and order.index(server[i]) <= order.index(r)
    for (b, r, ell), column in variables.F.items():
        group = terms.classes[b]
        share = sum(terms.clients[i].relay for i in group.members if server[i] == r)
        # the members of a class may sum to a rounding error more than its weight
        values[column] = min(1.0, share / group.weight) if ell == leader else 0.0
    for (i, r, ell), column in variables.f.items():
        values[column] = server[i] == r and ell == leader
    # with fewer voters than votes no wait is right: the row that counts voters breaks then
    votes = min(rules.quorum, len(voters))
    waits = {
        k: float(quorum_latency(demand.site_rtt[k], leader, voters, votes))
        for k in {k for k, _ in terms.radii}
    }
    for (k, ell, j), column in variables.t.items():
        values[column] = ell == leader and terms.radii[k, ell][j] == waits[k]
    for (k, ell, j), column in variables.T.items():
        values[column] = ell == leader and terms.radii[k, ell][j] >= waits[k]
    ended = _ends(variables, configuration, leader)
    for (n, k, ell, i), column in variables.E.items():
        values[column] = ell == leader and terms.led[n, k, ell].radii[i] >= ended[n, k]
    for (ell, r), column in variables.u.items():
        values[column] = ell == leader and r in voters
    for k, column in variables.q.items():
        values[column] = waits[k] / variables.longest_wait(k)
    heard: dict[int, set[int]] = {}
    for k in waits:
        # the leader hears itself first, whatever other sites lie at distance 0
        others = np.array(sorted(set(voters) - {leader}), dtype=np.intp)
        order_of_votes = np.argsort(demand.site_rtt[k, leader, others], kind="stable")
        heard[k] = {leader, *others[order_of_votes[: rules.quorum - 1]].tolist()}
    for (k, ell, r), column in variables.g.items():
        values[column] = ell == leader and r in heard[k]
    for (ell, r), column in variables.w.items():
        values[column] = ell == leader and r in replicas
    for (n, d), column in variables.e.items():
        group_rule = rules.groups[n]
        members = voters if group_rule.role == "voters" else replicas
        values[column] = d in group_rule.labels[list(members)]
    return values


def _ends(
    variables: ProgramVariables, configuration: Configuration, leads: int
) -> dict[tuple[int, int], float]:
    """Return how long each wait beside the rounds of votes lasts, by (wait, scenario)."""
    demand, rules = variables.terms.demand, variables.terms.problem.rules
    leader = np.array([leads], dtype=np.intp)
    lasts = {}
    for j, k in {key[:2] for key in variables.terms.led}:
        world = (demand.waits[j], demand.client_rtt[k], demand.site_rtt[k])
        voters, replicas = np.array([configuration.voters]), np.array([configuration.replicas])
        near = leader[np.newaxis]  # no part of a leader's wait
        long = wait_latency(*world, leader, voters, replicas, near, rules.quorum)
        lasts[j, k] = float(long[0, 0])
    return lasts


def _difference(column: int, other: int) -> Affine:
    return Affine(((1.0, column), (-1.0, other)))


def role_rows(variables: ProgramVariables) -> Iterator[LinearRow]:
    """y_r ≤ v_r ≤ x_r: the leader votes, and who votes holds a replica."""
    x, v, y = variables.x, variables.v, variables.y
    for r in y:
        yield _difference(y[r], v[r]).at_most(0)
    for r in v:
        yield _difference(v[r], x[r]).at_most(0)


def count_rows(variables: ProgramVariables) -> Iterator[LinearRow]:
    """n_min ≤ Σ x ≤ n_max,  Σ v = v,  Σ y = 1."""
    rules = variables.terms.problem.rules
    yield LinearRow(Affine.of(variables.x.values()), rules.replicas_min, rules.replicas_max)
    yield Affine.of(variables.v.values()).equals(rules.voters)
    yield Affine.of(variables.y.values()).equals(1)


def diversity_rows(variables: ProgramVariables) -> list[LinearRow]:
    """Caps and minimums, level by level, so that crossing levels are no harder.

    With s the chosen role (v or x), for every rule and domain δ:

        Σ_{r ∈ δ} s_r ≤ cap,   Σ_{r ∈ δ} s_r ≥ least  (the named domain),
        e_δ ≤ Σ_{r ∈ δ} s_r,   0 ≤ e_δ ≤ 1,   Σ_δ e_δ ≥ min_domains.

    e may be continuous: the largest e_δ that integer s allows is 0 or 1. Survival of the loss of a
    domain is a cap on voters, put there by placement.problem.
    """
    caps, covered, enough_domains, enough_sites = [], [], [], []
    for n, group in enumerate(variables.terms.problem.rules.groups):
        chosen = variables.v if group.role == "voters" else variables.x
        members: list[list[int]] = [[] for _ in group.names]
        for site, column in chosen.items():
            members[group.labels[site]].append(column)
        for d, sites in enumerate(members):
            if group.cap is not None and len(sites) > group.cap:
                caps.append(Affine.of(sites).at_most(group.cap))
            if group.min_domains is not None:
                here = Affine.of([variables.e[n, d]])
                covered.append(Affine.of(sites).minus(here).at_least(0))
        if group.least:
            enough_sites.append(Affine.of(members[group.domain]).at_least(group.least))
        if group.min_domains is not None:
            every = Affine.of(variables.e[n, d] for d in range(len(group.names)))
            enough_domains.append(every.at_least(group.min_domains))
    return [*caps, *covered, *enough_domains, *enough_sites]


def leader_price_rows(variables: ProgramVariables) -> Iterator[LinearRow]:
    """w_ℓr = y_ℓ·x_r without a big M: Σ_ℓ w_ℓr = x_r,  w_ℓr ≤ y_ℓ.

    Exact at integer y: w vanishes for everyone but the leader, whose share is then all of x_r.
    Needed because the leader ships what is written to every replica, at prices that depend on both
    ends.
    """
    w, x, y = variables.w, variables.x, variables.y
    if not w:
        return
    for r in x:
        yield Affine.of(w[ell, r] for ell in y).minus(Affine.of([x[r]])).equals(0)
    for (ell, _), column in w.items():
        yield _difference(column, y[ell]).at_most(0)


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


def budget_rows(variables: ProgramVariables) -> Iterator[LinearRow]:
    """cost(ℓ, R) ≤ budget, with the slack of placement.feasibility, scaled to entries ≤ 1.

    Members of the cost that alone exceed the budget are forbidden one by one first; what remains
    has entries of at most 1, so that the solver's absolute tolerance means the same at any price
    level.
    """
    budget = variables.terms.problem.rules.budget
    if budget is None:
        return
    allowed = budget + 1e-9 * (1 + abs(budget))
    cost = money(variables)
    affordable = []
    # shares that are differences of two variables have negative entries, which offset others
    offsets = any(price < 0 for price, _ in cost.pairs) or cost.constant > 0
    for price, column in cost.pairs:
        if price > allowed and not offsets:
            yield Affine.of([column]).at_most(0)
        elif price:
            affordable.append((price, column))
    largest = max((abs(price) for price, _ in affordable), default=0.0)
    if largest > 0:
        scale = 1 / max(largest, float(np.finfo(float).tiny))
        yield Affine(tuple(affordable)).times(scale).at_most((allowed - cost.constant) * scale)


def nearest_rows(variables: ProgramVariables) -> Iterator[LinearRow]:
    """Σ_r z_cr = 1, z_cr ≤ x_r, and the closest-assignment rows of the recipe.

    Reads from lease holders have L_r in the place of x_r. The closest-assignment rows only for
    sites where they are not implied (see `terms.guarded`).
    """
    terms = variables.terms
    clients = list(enumerate(terms.clients))
    for i, row in clients:
        if variables.rows.nearest is Nearest.CHAIN:
            # 0 ≤ Z(r) − Z(r⁻) ≤ x_r; the sum to one is built into the last Z.
            yield from (variables.serves(i, r).at_least(0) for r in row.serving)
        else:
            yield Affine.of(variables.z[i, r] for r in row.serving).equals(1)
    for i, row in clients:
        for r in row.serving:
            yield variables.serves(i, r).minus(Affine.of([variables.x[r]])).at_most(0)
    for i, row in clients:
        for r in row.guarded:
            yield from (closest.at_least(0) for closest in _closest(variables, i, r))
    if variables.rows.leader_rows:
        yield from _leader_rows(variables)


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


def _leader_rows(variables: ProgramVariables) -> Iterator[LinearRow]:
    """Σ_{s ⪯_c r} z_cs ≥ Σ_{ℓ ⪯_c r} y_ℓ: the nearest replica is no farther than the leader."""
    y = variables.y
    for i, row in enumerate(variables.terms.clients):
        guards = set(row.guarded)
        ball: list[int] = []
        for r in row.order:
            if r in y:
                ball.append(y[r])
            # With one leader in the ball the row is the weaker copy of Church–Cohon's.
            if r in guards and len(ball) > 1:
                yield variables.within(i, r).minus(Affine.of(ball)).at_least(0)


def forwarding_rows(variables: ProgramVariables) -> Iterator[LinearRow]:
    """Tie the flows to who serves and who leads."""
    if variables.rows.forwarding is Forwarding.AGGREGATED:
        return _aggregated_flows(variables)
    return _client_flows(variables)


def _aggregated_flows(variables: ProgramVariables) -> Iterator[LinearRow]:
    """Σ_ℓ F_rℓ = Σ_c b_c z_cr and Σ_r F_rℓ = y_ℓ, per class, with b_c = B_c/ΣB."""
    terms, F = variables.terms, variables.F
    for b, group in enumerate(terms.classes):
        for r in _servers(terms, group):
            served = Affine.total(
                variables.serves(i, r).times(terms.clients[i].relay / group.weight)
                for i in group.members
                if r in terms.clients[i].serving
            )
            yield Affine.of(F[b, r, ell] for ell in terms.leaders).minus(served).equals(0)
    for b, group in enumerate(terms.classes):
        for ell in terms.leaders:
            into = Affine.of(F[b, r, ell] for r in _servers(terms, group))
            yield into.minus(Affine.of([variables.y[ell]])).equals(0)


def _client_flows(variables: ProgramVariables) -> Iterator[LinearRow]:
    """Σ_ℓ f_crℓ = z_cr and Σ_r f_crℓ = y_ℓ for every forwarding client."""
    terms = variables.terms
    out: dict[Two, list[int]] = {}
    into: dict[Two, list[int]] = {}
    for (i, r, ell), column in variables.f.items():
        out.setdefault((i, r), []).append(column)
        into.setdefault((i, ell), []).append(column)
    forwarding = [(i, row) for i, row in enumerate(terms.clients) if row.relay > 0]
    for i, row in forwarding:
        for r in row.serving:
            yield Affine.of(out.get((i, r), ())).minus(variables.serves(i, r)).equals(0)
    for i, _ in forwarding:
        for ell, leads in variables.y.items():
            yield Affine.of(into.get((i, ell), ())).minus(Affine.of([leads])).equals(0)


def quorum_rows(variables: ProgramVariables) -> Iterator[LinearRow]:
    """Tie the waits to the voters."""
    kind = variables.rows.quorum
    if not variables.terms.radii:
        return
    if kind is Quorum.RADIUS:
        yield from _radii(variables)
    elif kind is Quorum.MEMBERSHIP:
        yield from _members(variables)
    else:
        if kind is Quorum.PER_LEADER:
            yield from _leader_votes(variables)
        yield from _nested_radii(variables)


def _radii(variables: ProgramVariables) -> Iterator[LinearRow]:
    """Σ_j t_ℓj = y_ℓ and Σ_{r: d(ℓ,r) ≤ ρ_ℓj} v_r ≥ m t_ℓj."""
    terms, t, v = variables.terms, variables.t, variables.v
    quorum, rtt = terms.problem.rules.quorum, terms.demand.site_rtt
    for (k, ell), waits in terms.radii.items():
        chosen = Affine.of(t[k, ell, j] for j in range(len(waits)))
        yield chosen.minus(Affine.of([variables.y[ell]])).equals(0)
    for (k, ell, j), column in t.items():
        ball = Affine.of(v[r] for r in v if rtt[k, ell, r] <= terms.radii[k, ell][j])
        yield ball.minus(Affine.of([column], quorum)).at_least(0)


def _nested_radii(variables: ProgramVariables) -> Iterator[LinearRow]:
    """T_ℓj ≤ y_ℓ and Σ_{r ≠ ℓ: d(ℓ,r) ≤ ρ_ℓj} v_r ≥ (m − 1) T_ℓj, for all radii but the last.

    The last radius holds T = y_ℓ: after reductions that is a restriction, so it has a row as well.
    """
    terms, T, y = variables.terms, variables.T, variables.y
    quorum, rtt = terms.problem.rules.quorum, terms.demand.site_rtt
    split = variables.rows.quorum is Quorum.PER_LEADER
    for (_, ell, _), column in T.items():
        yield _difference(column, y[ell]).at_most(0)
    for (k, ell), waits in terms.radii.items():
        for j, wait in enumerate(waits):
            sites = [r for r in terms.voters if r != ell and rtt[k, ell, r] <= wait]
            ball = Affine.of((variables.u[ell, r] if split else variables.v[r]) for r in sites)
            reached = T.get((k, ell, j), y[ell])
            yield ball.minus(Affine.of([reached], quorum - 1)).at_least(0)


def _leader_votes(variables: ProgramVariables) -> Iterator[LinearRow]:
    """Σ_ℓ u_ℓr = v_r, Σ_r u_ℓr = v y_ℓ, u_ℓr ≤ y_ℓ, u_ℓℓ = y_ℓ: the product u_ℓr = y_ℓ v_r."""
    u, v, y = variables.u, variables.v, variables.y
    voters = variables.terms.problem.rules.voters
    for r in v:
        yield Affine.of(u[ell, r] for ell in y).minus(Affine.of([v[r]])).equals(0)
    for ell in y:
        yield Affine.of(u[ell, r] for r in v).minus(Affine.of([y[ell]], voters)).equals(0)
    for (ell, r), column in u.items():
        vote = _difference(column, y[ell])
        yield vote.equals(0) if ell == r else vote.at_most(0)


def _members(variables: ProgramVariables) -> Iterator[LinearRow]:
    """Σ_r g_ℓr = m y_ℓ, g_ℓr ≤ v_r, g_ℓℓ = y_ℓ, and q ≥ Σ_ℓ d(ℓ,r) g_ℓr for every voter r.

    q is counted in units of the longest possible wait, and votes beyond it are never waited for.
    """
    terms, g, v, y = variables.terms, variables.g, variables.v, variables.y
    quorum, rtt = terms.problem.rules.quorum, terms.demand.site_rtt
    for (k, ell), waits in terms.radii.items():
        heard = Affine.of(g[k, ell, r] for r in v if rtt[k, ell, r] <= waits[-1])
        yield heard.minus(Affine.of([y[ell]], quorum)).equals(0)
    for k, column in variables.q.items():
        leaders = [ell for kk, ell in terms.radii if kk == k]
        unit = variables.longest_wait(k)
        for r in v:
            delay = Affine(
                tuple(
                    (float(rtt[k, ell, r]) / unit, g[k, ell, r])
                    for ell in leaders
                    if 0 < rtt[k, ell, r] <= unit
                )
            )
            if delay.pairs:
                yield Affine.of([column]).minus(delay).at_least(0)
    for (_, ell, r), column in g.items():
        if ell == r:
            yield _difference(column, y[ell]).equals(0)
        else:
            yield _difference(column, v[r]).at_most(0)


def leader_wait_rows(variables: ProgramVariables) -> Iterator[LinearRow]:
    """E_ℓi ≤ y_ℓ, and what the roles hold when the wait of ℓ ends within its i-th radius.

    A row Σ a_r v_r + Σ b_r x_r + Σ c_r L_r ≥ n of :mod:`placement.evaluation.waits.wait_rows`
    becomes

        Σ_{r ≠ ℓ} (a_r v_r + b_r x_r + c_r L_r)  ≥  (n − a_ℓ − b_ℓ − c_ℓ) E_ℓi − N (1 − E_ℓi):

    the leader's own part is set aside, as in `NESTED`, and N is what the negative coefficients can
    come to. The last radius holds whenever ℓ leads: no configuration waits longer.
    """
    E, y = variables.E, variables.y
    for (*_, ell, _), column in E.items():
        yield _difference(column, y[ell]).at_most(0)
    for (j, k, ell), wait in variables.terms.led.items():
        for i, rows in enumerate(wait.rows):
            ended = E.get((j, k, ell, i), y[ell])
            yield from (_answered(variables, row, ell, ended).at_least(0) for row in rows)


def _answered(variables: ProgramVariables, row: RoleRow, leader: int, ended: int) -> Affine:
    """Return the expression that is >= 0 once the wait of a leader has ended."""
    rules = variables.terms.problem.rules
    need, slack = row.least, 0
    pairs: list[tuple[float, int]] = []
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
