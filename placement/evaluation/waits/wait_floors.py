"""Floors of the wait for votes: where RTTs vary by interval, and where voters are witnesses.

With one RTT matrix a leader waits for one order statistic of the distances to its voters. With
several scenarios it waits Σ_k D_k·q_k(V), where q_k(V) is the m-th smallest RTT of scenario k.

**Lemma 1.** Let the sites be in any order s_1, s_2, … and

    e(s_r) = Σ_k D_k · min { d_k(ℓ, s_i) : i >= r }.

For every set V, the m-th smallest of { e(x) : x ∈ V } is at most Σ_k D_k·q_k(V).

*Proof.* e rises along the order. Let s_r be the m-th site of V in the order. At most m − 1 sites of
V come before it, so in every scenario one of the m nearest voters is s_r or comes after it, and
q_k(V) >= min { d_k(ℓ, s_i) : i >= r }. The weighted sum over k is e(s_r).

Where all scenarios rank the sites alike, that order makes e(s_r) = Σ_k D_k·d_k(ℓ, s_r), and nothing
is lost. The order by the weighted sum of RTTs is the one used here.

**Witnesses.** Of v voters w are witnesses, at sites without a replica, and a commit waits for m
votes. Let E_V be the sites where a replica may vote, E_W those that may be witnesses, and

    f_ℓ  =  the m-th smallest of { d(ℓ, x) : x ∈ E_V ∪ E_W }.

**Lemma 2.** Let m ≤ v − w, let every site of E_W that may hold a replica be in E_V, let every site
of E_V outside E_W hold a replica, let no voter be pinned but the leader, and let no rule bind the
voters. Then the best voters of a leader ℓ and replicas R, with w sites of E_W left outside R, wait

    max( f_ℓ,  the max(1, m − w)-th smallest of { d(ℓ, x) : x ∈ R ∩ E_V } ).

*Proof.* Within a radius t let i replicas lie that may vote, ℓ among them, and e sites of E_W that
are not in R. Up to v − w of the i vote, and up to w of the e. So m votes lie within t if and only
if min(i, v − w) + min(e, w) ≥ m. Sites of E_W in R are in E_V, and sites of E_V outside E_W are in
R: i + e is the number of sites of E_V ∪ E_W within t. If i ≥ m, then m replicas vote, as m ≤ v − w,
and t is at least both terms of the claim. If i < m ≤ v − w, then m votes lie within t if and only
if w ≥ m − i and i + e ≥ m: at least m − w replicas and at least m sites lie within t.

So a question with witnesses is one of v − w voters and max(1, m − w) votes, with the RTT that a
leader waits raised to f_ℓ. A bound on the one is a bound on the other.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from placement.checks import FloatArray, IntArray
from placement.model.constraints import Rules
from placement.model.demand import Demand

__all__ = ["no_floors", "voters_with_replicas", "wait_floors", "wait_order", "witness_floors"]

_ROUNDING = 2.0 * float(np.finfo(np.float64).eps)


def wait_order(waits: FloatArray, weights: FloatArray) -> IntArray:
    """Return the sites by Σ_k D_k·d_k(ℓ, ·), ties in site order, shape (sites,).

    Parameters
    ----------
    waits
        RTT from the leader to every site in each scenario, ms, shape (scenarios, sites).
    weights
        D of each scenario, shape (scenarios,).
    """
    total = np.zeros(waits.shape[1])
    for weight, row in zip(weights.tolist(), waits, strict=True):
        total += weight * row
    return np.asarray(np.argsort(total, kind="stable"))


def wait_floors(waits: FloatArray, weights: FloatArray) -> FloatArray:
    """Return e of every site, rounded down, in ms times rounds of votes, shape (sites,).

    Parameters
    ----------
    waits, weights
        As in :func:`wait_order`.

    Notes
    -----
    O(scenarios · sites + sites log sites). Where products and sums are whole numbers below 2^52,
    nothing is rounded.

    Examples
    --------
    >>> wait_floors(np.array([[0.0, 1.0, 9.0], [0.0, 9.0, 1.0]]), np.ones(2))
    array([ 0.,  2., 10.])
    """
    order = wait_order(waits, weights)
    out = np.zeros(waits.shape[1])
    for weight, row in zip(weights.tolist(), waits, strict=True):
        out[order] += weight * np.minimum.accumulate(row[order][::-1])[::-1]
    if (out == np.floor(out)).all() and float(out.max(initial=0.0)) < 2.0**52:
        whole = (waits == np.floor(waits)).all() and (weights == np.floor(weights)).all()
        if whole:
            return out
    return np.asarray(out * (1.0 - _ROUNDING * (len(weights) + 2)))


def no_floors(demand: Demand, rules: Rules) -> str | None:
    """Return why the lemma does not hold for a question with witnesses, or None."""
    if rules.may_witness is None:
        return "there are no witnesses"
    if demand.waits:
        return "some voters are witnesses, and operations have other waits than for votes"
    if demand.scenarios > 1:
        return "some voters are witnesses, and RTTs vary by interval"
    if rules.of("voters"):
        return "some voters are witnesses, and there are rules for voters"
    if rules.quorum > rules.data_voters:
        return "a commit always waits for witnesses: fewer voters hold a replica than it needs"
    may_vote, may_witness = rules.may_vote, rules.may_witness
    if (may_witness & rules.may_hold & ~may_vote).any():
        return "a site may hold a replica or be a witness, but not vote with the replica"
    if (may_vote & ~may_witness & ~rules.must_hold).any():
        return "a site may vote, but not as a witness"
    alone = int(rules.may_lead.sum()) == 1 and not (rules.must_vote & ~rules.may_lead).any()
    if rules.must_vote.any() and not alone:
        return "some voters are witnesses, and others are pinned"
    inside = rules.replicas_max - int((rules.must_hold & ~may_witness).sum())
    if int(may_witness.sum()) - inside < rules.witnesses:
        return "some replicas leave too few sites for the witnesses"
    return None


def voters_with_replicas(rules: Rules) -> Rules:
    """Return rules that the replicas and their votes obey, whatever the witnesses are.

    v − w voters and max(1, m − w) votes; of the rules for voters the caps, which bind every part of
    the voters. Configurations that the rules allow are all allowed here, without their witnesses.
    """
    if not rules.witnesses:
        return rules
    return dataclasses.replace(
        rules,
        voters=rules.data_voters,
        quorum=max(1, rules.quorum - rules.witnesses),
        groups=tuple(
            group.caps_only() if group.role == "voters" else group for group in rules.groups
        ),
        witnesses=0,
        may_witness=None,
        must_witness=None,
    )


def witness_floors(demand: Demand, rules: Rules) -> FloatArray:
    """Return f of every leader, ms, shape (sites,); of a question that the lemma holds for."""
    waits = demand.site_rtt[0][:, rules.able_voters].copy()
    places = np.cumsum(rules.able_voters) - 1
    for leader in np.nonzero(rules.able_voters)[0].tolist():
        waits[leader, places[leader]] = 0.0
    place = rules.quorum - 1
    return np.asarray(np.partition(waits, place, axis=1)[:, place])
