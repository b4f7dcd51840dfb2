"""The configurations one change away from another one: the neighbourhood of local searches."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from placement.model.configuration import Configuration
from placement.problem import Problem

__all__ = ["neighbours"]


def neighbours(problem: Problem, configuration: Configuration) -> Iterator[Configuration]:
    """Yield the neighbours of a configuration that obey the masks of the rules.

    A neighbour swaps a replica with a site outside (the added site takes over the roles), moves a
    vote to a replica without one, names another leader, or, where |R| may vary, adds a replica or
    removes one that does not vote. Diversity rules and the budget are left to the caller.

    Parameters
    ----------
    problem
        The rules.
    configuration
        A configuration with the number of voters of the problem.

    Notes
    -----
    O(|R|·S) neighbours.
    """
    rules = problem.rules
    leader, voters, replicas = configuration.leader, configuration.voters, configuration.replicas
    outside = [s for s in np.nonzero(rules.may_hold)[0].tolist() if s not in replicas]
    for old in replicas:
        if rules.must_hold[old]:
            continue
        for new in outside:
            if old in voters and not rules.may_vote[new]:
                continue
            if old == leader and not rules.may_lead[new]:
                continue
            yield Configuration.of(
                new if old == leader else leader,
                [new if v == old else v for v in voters],
                [new if r == old else r for r in replicas],
            )
    for old in voters:
        if rules.must_vote[old]:
            continue
        for new in replicas:
            if new in voters or not rules.may_vote[new]:
                continue
            if old != leader:
                exchanged = [new if v == old else v for v in voters]
                yield Configuration.of(leader, exchanged, replicas)
            elif rules.may_lead[new]:
                yield Configuration.of(new, [new if v == old else v for v in voters], replicas)
    for new in voters:
        if new != leader and rules.may_lead[new]:
            yield dataclasses.replace(configuration, leader=new)
    if len(replicas) < rules.replicas_max:
        for new in outside:
            yield Configuration.of(leader, voters, [*replicas, new])
    if len(replicas) > rules.replicas_min:
        for old in replicas:
            if old not in voters and not rules.must_hold[old]:
                yield Configuration.of(leader, voters, [r for r in replicas if r != old])
