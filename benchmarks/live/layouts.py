"""Sites, clients and configurations of the experiments, equal for all systems."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

import placement
from benchmarks.live.live_world import OPERATIONS, live_instance
from placement import Instance, Operation, Problem
from placement.databases import Deployment

__all__ = ["CLIENTS", "SITES", "Layout", "azure_part", "drawn", "planned"]

SITES = (
    "East US", "West US 2", "North Europe", "Germany West Central", "Brazil South",
    "Southeast Asia", "Japan East", "Australia East", "Central India", "UK South",
)  # fmt: skip
CLIENTS = ("Central US", "West Europe", "Brazil South", "Southeast Asia", "Australia East")


@dataclass(frozen=True, slots=True)
class Layout:
    """Voters and learners of a configuration; the leader changes.

    Attributes
    ----------
    name
        What tables call it.
    voters, learners
        Names of sites.
    leaders
        Voters that are tried as leaders, best first by the model where it was planned.
    """

    name: str
    voters: tuple[str, ...]
    learners: tuple[str, ...]
    leaders: tuple[str, ...]

    @property
    def replicas(self) -> tuple[str, ...]:
        """Voters and learners."""
        return self.voters + self.learners

    def deployment(self, leader: str) -> Deployment:
        """Return the layout as the target of a runbook, under one leader."""
        return Deployment.of(
            "live",
            dict.fromkeys(self.voters, 1),
            dict.fromkeys(self.learners, 1),
            leaders=(leader,),
        )


def azure_part(
    sites: Sequence[str] = SITES,
    clients: Sequence[str] = CLIENTS,
    operations: Sequence[Operation] = OPERATIONS,
) -> Instance:
    """Return measured RTTs of Azure regions, one operation of each kind per client."""
    return live_instance(placement.load("azure"), sites, clients, operations)


def planned(instance: Instance, replicas: int, voters: int) -> Layout:
    """Return the proven optimum, with every voter as a leader, the plan's first."""
    plan = placement.solve(Problem(instance, replicas=replicas, voters=voters), "exact")
    assert plan.leader is not None
    others = sorted(set(plan.voters) - {plan.leader})
    return Layout(
        f"planned {voters}/{replicas}",
        tuple(plan.voters),
        tuple(name for name in plan.replicas if name not in plan.voters),
        (plan.leader, *others),
    )


def drawn(instance: Instance, replicas: int, voters: int, seed: int) -> Layout:
    """Return a layout without any thought, with every voter as a leader."""
    names = random.Random(seed).sample(instance.sites, replicas)
    return Layout(
        f"drawn {voters}/{replicas}", tuple(names[:voters]), tuple(names[voters:]),
        tuple(names[:voters]),
    )  # fmt: skip
