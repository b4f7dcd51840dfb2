"""The objective: Eq. 1 plus weighted cost, as one linear expression."""

from __future__ import annotations

from formulations.milp.constraints import money
from formulations.milp.recipes import Forwarding, Quorum
from formulations.milp.variables import Affine, ProgramVariables

__all__ = ["objective"]


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
