"""A reduced problem cut to some of its sites, with other clients, for a kernel to bound."""

from __future__ import annotations

import dataclasses

import numpy as np

from formulations.exact.reduced_problem import ReducedProblem
from placement.model.constraints import Rules
from placement.support.checks import FloatArray, IntArray

__all__ = ["partial_problem"]


def partial_problem(
    core: ReducedProblem,
    rtt: FloatArray,
    weights: tuple[FloatArray, FloatArray],
    keep: IntArray,
    rules: Rules,
) -> ReducedProblem:
    """Return a problem with other clients and fewer sites.

    Direct demand stays that of all clients, so that its bounds have the scale of `core`.

    Parameters
    ----------
    core
        The problem on all sites.
    rtt
        ms, shape (clients, kept sites).
    weights
        A and B of these clients.
    keep
        The kept sites, ascending.
    rules
        The rules on all sites; they are cut to the kept sites.
    """
    pairs = np.ix_(keep, keep)
    demand = dataclasses.replace(
        core.demand,
        client_rtt=rtt[np.newaxis],
        site_rtt=(core.site_rtt if core.relay_rtt is None else core.relay_rtt)[pairs][np.newaxis],
        counts=np.zeros((1, len(rtt), 0)),
        near=weights[0][np.newaxis],
        relay=weights[1][np.newaxis],
        direct=np.zeros((1, len(rtt))),
    )
    price = None if core.price is None else core.price[pairs]
    floors = None if core.wait_floors is None else core.wait_floors[keep]
    part = ReducedProblem(demand, _rules_of_sites(rules, keep), price, wait_floors=floors)
    part.__dict__.update(
        active=np.arange(len(rtt)),
        direct=core.direct[keep],
        leader_matters=core.leader_matters,
        granularity=core.granularity,
    )
    return part


def _rules_of_sites(rules: Rules, keep: IntArray) -> Rules:
    """Return the rules cut to the kept sites; domains without a kept site are dropped."""
    groups = []
    for group in rules.groups:
        named = [group.domain] if group.least else []
        names = np.unique(np.append(group.labels[keep], named).astype(np.intp))
        labels = np.searchsorted(names, group.labels[keep])
        domain = int(np.searchsorted(names, group.domain)) if group.least else -1
        kept = tuple(group.names[name] for name in names.tolist())
        groups.append(dataclasses.replace(group, labels=labels, names=kept, domain=domain))
    return dataclasses.replace(
        rules,
        may_hold=rules.may_hold[keep],
        must_hold=rules.must_hold[keep],
        may_vote=rules.may_vote[keep],
        must_vote=rules.must_vote[keep],
        may_lead=rules.may_lead[keep],
        groups=tuple(groups),
    )
