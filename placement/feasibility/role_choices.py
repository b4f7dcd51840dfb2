"""Every choice of roles on given replicas: voters, witnesses and leader."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placement.model.configuration import Configuration

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["role_choices"]


def role_choices(problem: Problem, replicas: tuple[int, ...]) -> Iterator[Configuration]:
    """Yield every configuration on given replicas; not all obey the rules about domains.

    Parameters
    ----------
    problem
        The question. Where no operation needs a leader, one leader stands for all.
    replicas
        Site indices of R, ascending.
    """
    rules = problem.rules
    votes = {int(s) for s in np.nonzero(rules.must_vote)[0]}
    voting = [s for s in replicas if rules.may_vote[s]]
    free = rules.witness_sites(replicas).tolist()
    for voters in itertools.combinations(voting, rules.data_voters):
        if not votes <= set(voters):
            continue
        leaders = [site for site in voters if rules.may_lead[site]]
        for witnesses in itertools.combinations(free, rules.witnesses):
            for leader in leaders[:1] if problem.demand.leaderless else leaders:
                yield Configuration(leader, (*voters, *witnesses), replicas)
