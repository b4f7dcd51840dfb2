"""Every configuration of the databases of a small fleet, each leader and replica set once."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import chain, combinations

import numpy as np

from placement.evaluation.voter_choice import best_voters
from placement.feasibility.feasible_plans import violations
from placement.fleet.fleet_problem import FleetMember
from placement.fleet.shared_rows import SharedRows
from placement.model.configuration import Configuration

__all__ = ["count_configurations", "every_configuration"]


def count_configurations(rows: SharedRows) -> int:
    """Return how many pairs of a leader and a replica set the databases of a fleet have at most."""
    total = 0
    for member in rows.fleet.members:
        rules, free = member.problem.rules, int(rows.fitting_sites(member)[0].sum())
        sizes = range(rules.replicas_min, rules.replicas_max + 1)
        total += sum(size * math.comb(free, size) for size in sizes)
    return total


def every_configuration(rows: SharedRows, member: FleetMember) -> Iterator[Configuration]:
    """Yield each leader and replica set of one database, with the voters that answer soonest.

    Sites that cannot hold or lead the database alone are left out. O(C(sites, |R|) · |R|) calls of
    :func:`placement.evaluation.voter_choice.best_voters`.
    """
    problem, rules = member.problem, member.problem.rules
    hold, lead = rows.fitting_sites(member)
    sites = np.flatnonzero(hold & rules.may_hold).tolist()
    sizes = range(rules.replicas_min, rules.replicas_max + 1)
    for replicas in chain.from_iterable(combinations(sites, size) for size in sizes):
        for leader in replicas:
            voters = best_voters(problem.demand, rules, leader, replicas) if lead[leader] else None
            if voters is None:
                continue
            found = Configuration.of(leader, voters, replicas)
            if not violations(problem, found):
                yield found
