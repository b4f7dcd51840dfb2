"""Instances with all terms of the cost, and the cost again by plain loops over operations."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from placement import Instance, Plan, Prices, Problem
from placement.proof.certificate_check import CertificateError, check_certificate
from placement.testing.small_worlds import random_instance

__all__ = ["cost", "paid_instance", "small_problem"]


def paid_instance(
    seed: int,
    *,
    sites: int = 5,
    gateway: bool = False,
    non_voting: bool = False,
    near: bool = True,
    intervals: int = 1,
    varying: bool = False,
) -> Instance:
    """Random instance in which every term of the cost has a price; clients have sites' prices."""
    world = random_instance(seed, sites=sites, clients=6, intervals=intervals, varying=varying)
    rng = np.random.default_rng(seed)
    machines = rng.integers(1, 9, sites).astype(float)
    gb: dict[str, float] = {"write": 0.25, "strong_read": 0.5}
    if near:
        gb |= {"weak_read": 0.125, "bounded_read": 0.75}
    prices = Prices(
        storage=rng.integers(0, 9, sites).astype(float),
        transfer=np.where(np.eye(sites), 0, rng.integers(0, 20, (sites, sites)) / 16),
        machines=machines,
        machines_non_voting=machines * rng.choice([0.25, 1.0], sites) if non_voting else None,
        requests=rng.integers(0, 100, sites) * 1e4 if near else None,
        gb_per_op=gb,
        replication="gateway" if gateway else "leader",
        client_sites={c: world.sites[int(rng.integers(sites))] for c in world.clients},
        stored_gb=3.0,
        present=tuple(rng.choice(world.sites, 2, replace=False).tolist()),
        migration_months=2.0,
        interval_hours=365.0 if seed % 2 else None,
    )
    return world.replace(prices=prices)


def small_problem(instance: Instance, seed: int) -> Problem:
    voters = 1 + seed % 3
    replicas = (voters, min(4, len(instance.sites)))
    return Problem(instance, replicas=replicas, voters=voters)


def cost(instance: Instance, leader: int, voters: Iterable[int], replicas: Iterable[int]) -> float:
    """Cost per month, operation by operation."""
    prices = instance.prices
    assert prices is not None
    assert prices.transfer is not None
    assert prices.machines is not None
    chosen, voting, total = sorted(replicas), set(voters), 0.0
    here = [instance.sites.index(name) for name in prices.present]
    for r in chosen:
        price = prices.machines[r]
        if prices.machines_non_voting is not None and r not in voting:
            price = prices.machines_non_voting[r]
        total += prices.storage[r] + price
        if r not in here:
            copy = min(prices.transfer[q][r] for q in here)
            total += prices.stored_gb * copy / prices.migration_months
    hours = prices.interval_hours
    months = 1.0 if hours is None else len(instance.intervals) * hours / 730
    for k, counts in enumerate(instance.counts):
        rtt = instance.client_rtt[k] if instance.client_rtt.ndim == 3 else instance.client_rtt
        for c, issued in enumerate(counts):
            home = instance.sites.index(prices.client_sites[instance.clients[c]])
            near = min(chosen, key=lambda r: (rtt[c][r], r))
            for n, operation in zip(issued / months, instance.operations, strict=True):
                gb = prices.gb_per_op.get(operation.name, prices.gb_per_op.get(operation.kind, 0))
                server = near if operation.near else leader
                if prices.requests is not None:
                    total += n / 1e6 * prices.requests[server]
                if operation.kind == "read":
                    total += n * gb * prices.transfer[server][home]
                elif prices.replication == "gateway":
                    total += n * gb * sum(prices.transfer[home][r] for r in chosen)
                else:
                    total += n * gb * prices.transfer[home][leader]
                    total += n * gb * sum(prices.transfer[leader][r] for r in chosen)
    return float(total)


def check_that_parts_prove_nothing(plan: Plan) -> None:
    """A higher bound, or a proof without its last step, is refused."""
    assert plan.certificate is not None
    proofs: list[dict[str, list[object]]] = plan.certificate["proofs"]  # type: ignore[assignment]  # of JSON
    broken: list[dict[str, object]] = [{"bound": plan.objective * (1 + 1e-6)}]
    for proof in proofs:
        rest = [other for other in proofs if other is not proof]
        broken.append({"proofs": [{**proof, "events": proof["events"][:-1]}, *rest]})
    for change in broken:
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(certificate={**plan.certificate, **change}))
