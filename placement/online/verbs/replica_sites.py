"""Replica sites of a question, and the reads of clients from them."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from placement.cli.options import instance_from, names
from placement.errors import InputError
from placement.model.instance import Instance
from placement.support.checks import FloatArray, IntArray

__all__ = ["ReplicaSites", "client_rtt", "replicas_of", "site_rtt"]


@dataclass(frozen=True)
class ReplicaSites:
    """Replica sites of the question.

    Attributes
    ----------
    instance
        The sites, RTTs and demand.
    sites
        Indices of the replica sites.
    leader
        Position of the leader in `sites`; None without a leader.
    """

    instance: Instance
    sites: IntArray
    leader: int | None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the replica sites."""
        return tuple(self.instance.sites[site] for site in self.sites)


def replicas_of(args: argparse.Namespace, *, required: bool = True) -> ReplicaSites:
    """Load the instance, and the replicas from the plan or by name.

    Raises
    ------
    InputError
        For a plan of another instance, a plan without a configuration, both or neither of
        ``--plan`` and ``--replicas``, an unknown site, or a leader that holds no replica.
    """
    instance = instance_from(args)
    chosen: tuple[str, ...] = ()
    leader: str | None = getattr(args, "leader", None)
    if args.plan is not None and args.replicas:
        raise InputError(
            "the replicas are given twice", field="--replicas", value=args.replicas[0],
            expected="--plan or --replicas",
        )  # fmt: skip
    if args.plan is not None:
        from placement.io.plan_file import load_plan

        plan = load_plan(args.plan, instance)
        if plan.configuration is None:
            raise InputError(
                "a plan without a configuration",
                source=args.plan,
                field="status",
                value=str(plan.status),
                expected="a plan with replicas",
            )
        chosen = plan.replicas
        leader = plan.leader if leader is None else leader
    elif args.replicas:
        chosen = names(args.replicas, instance.sites)
    elif required:
        raise InputError("no replicas", field="--plan", expected="--plan FILE or --replicas SITES")
    sites = instance.site_indices(chosen, "--replicas")
    if leader is not None and leader not in chosen:
        raise InputError(
            "the leader holds no replica", field="--leader", value=leader,
            expected="one of " + ", ".join(map(repr, chosen)),
        )  # fmt: skip
    return ReplicaSites(instance, sites, None if leader is None else chosen.index(leader))


def client_rtt(instance: Instance) -> FloatArray:
    """Return the RTTs of clients to sites, the mean over intervals; shape (clients, sites)."""
    table = instance.client_rtt
    return np.asarray(table.mean(axis=0) if table.ndim == 3 else table)


def site_rtt(instance: Instance, sites: IntArray) -> FloatArray:
    """Return the RTTs between some sites, the mean over intervals; shape (sites, sites)."""
    table = instance.site_rtt
    mean = table.mean(axis=0) if table.ndim == 3 else table
    return np.asarray(mean[np.ix_(sites, sites)])
