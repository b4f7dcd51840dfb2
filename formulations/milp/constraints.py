"""Rows that do not depend on latency: roles, counts, diversity, money."""

from __future__ import annotations

from typing import Any

import numpy as np

from formulations.milp.variables import Affine, ProgramVariables

__all__ = [
    "add_budget",
    "add_counts",
    "add_diversity",
    "add_leader_prices",
    "add_roles",
]


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
