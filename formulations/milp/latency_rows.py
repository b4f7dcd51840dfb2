"""The rows behind Eq. 1: who serves whom, what is forwarded where, and how long a quorum takes.

Each family follows the choice of :mod:`formulations.milp.recipes`, where the formulas are derived.
"""

from __future__ import annotations

from typing import Any

from formulations.milp.recipes import Forwarding, Nearest, Quorum
from formulations.milp.variables import Affine, ProgramVariables
from placement.evaluation.waits.wait_rows import RoleRow

__all__ = ["add_forwarding", "add_leader_waits", "add_nearest", "add_quorum"]


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
