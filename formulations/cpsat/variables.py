"""The decisions of the model of one leader."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from formulations.cpsat.integer_costs import LeaderCosts
from placement.model.configuration import Configuration
from placement.problem import Problem

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

__all__ = ["LeaderVariables", "create"]


@dataclass
class LeaderVariables:
    """Literals of one leader's model.

    Attributes
    ----------
    replica, voter
        By site index; sites that may not hold a replica, or vote, have none.
    empty
        By set of sites: true when none of them holds a replica.
    slow
        Per wait of the leader: element i is true when its answers do not all lie within the i-th
        radius.
    """

    replica: dict[int, cp_model.IntVar]
    voter: dict[int, cp_model.IntVar]
    empty: dict[frozenset[int], cp_model.IntVar] = field(default_factory=dict)
    slow: list[list[cp_model.IntVar]] = field(default_factory=list)

    def configuration(self, leader: int, value: Callable[[cp_model.IntVar], bool]) -> Configuration:
        """Read a configuration out of a solution."""
        return Configuration.of(
            leader,
            [site for site, literal in self.voter.items() if value(literal)],
            [site for site, literal in self.replica.items() if value(literal)],
        )

    def hint(self, model: cp_model.CpModel, configuration: Configuration) -> None:
        """Tell the search where a good configuration lies; it need not be led by this leader."""
        replicas = frozenset(configuration.replicas)
        voters = frozenset(configuration.voters)
        for site, literal in self.replica.items():
            model.add_hint(literal, site in replicas)
        for site, literal in self.voter.items():
            model.add_hint(literal, site in voters)
        for sites, literal in self.empty.items():
            model.add_hint(literal, not sites & replicas)


def create(model: cp_model.CpModel, problem: Problem, costs: LeaderCosts) -> LeaderVariables:
    """Add the decisions on replicas, votes and waits; chains add theirs as they are walked.

    Solver variables are numbered, never named after sites: names can't clash.
    """
    rules = problem.rules
    return LeaderVariables(
        replica={
            site: model.new_bool_var(f"replica{site}")
            for site in range(len(rules.may_hold))
            if rules.may_hold[site]
        },
        voter={
            site: model.new_bool_var(f"voter{site}")
            for site in range(len(rules.may_vote))
            if rules.may_vote[site]
        },
        slow=[
            [model.new_bool_var(f"slow{k}_{i}") for i in range(len(wait.rows))]
            for k, wait in enumerate(costs.waits)
        ],
    )
