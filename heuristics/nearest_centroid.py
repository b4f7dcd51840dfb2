"""Leader at the centre of gravity of the demand (method ``nearest-centroid``): a baseline.

What geo-replication tools without a latency model do: lead from the site closest, on the globe, to
the centroid of the demand, and put the other replicas into the sites closest to the leader. The
centroid is the spherical mean, the direction of

    Σ_c n_c·(cos φ_c cos λ_c, cos φ_c sin λ_c, sin φ_c)        n_c all operations of client c

and not the mean of latitudes and longitudes, which puts the centre of Fiji and Samoa into Africa.
Needs coordinates. RTTs play no part but in the roles: the voters closest to the leader vote.
O(S·(C + S)).
"""

from __future__ import annotations

import numpy as np

from heuristics.completion import complete_proposal
from placement.datasets.distance_rtt import great_circle_km
from placement.evaluation.score import closest_first
from placement.feasibility.feasible_plans import complete_configuration
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.plan import Plan
from placement.problem import Problem
from placement.support.checks import FloatArray

__all__ = ["METHOD", "demand_centroid", "refuses", "solve"]


def demand_centroid(problem: Problem) -> FloatArray | None:
    """Latitude and longitude in degrees of the demand's centroid, shape (2,).

    None when the demand is spread so evenly over the globe that its mean has no direction. Clients
    without demand need no coordinates.
    """
    coordinates = problem.instance.client_coordinates
    assert coordinates is not None  # `refuses` has seen to that
    issued = problem.demand.counts.sum(axis=(0, 2))
    busy = issued > 0
    phi, lam = np.radians(coordinates[busy]).T
    points = np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)])
    x, y, z = points @ (issued[busy] / issued.sum())
    if np.sqrt(x * x + y * y + z * z) < 1e-9:
        return None
    radians = [np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)]
    return np.asarray(np.degrees(np.array(radians)))


def refuses(problem: Problem) -> str | None:
    """Say why there is no centroid: missing coordinates, or demand without a direction."""
    instance, rules = problem.instance, problem.rules
    if instance.site_coordinates is None or instance.client_coordinates is None:
        who = "sites" if instance.site_coordinates is None else "clients"
        return f"it goes by distance on the globe, and the instance has no coordinates of its {who}"
    issued = problem.demand.counts.sum(axis=(0, 2))
    for names, coordinates, needed in (
        (instance.clients, instance.client_coordinates, issued > 0),
        (instance.sites, instance.site_coordinates, rules.may_hold),
    ):
        unknown = np.nonzero(needed & np.isnan(coordinates).any(axis=1))[0]
        if unknown.size:
            return (
                "it goes by distance on the globe, and the coordinates of "
                f"{names[int(unknown[0])]!r} are unknown"
            )
    if demand_centroid(problem) is None:
        return "the demand is spread so evenly over the globe that it has no centroid"
    return None


def solve(problem: Problem, options: Options) -> Plan:
    """Lead from the site closest to the centroid, with the replicas closest to the leader."""
    del options
    centroid = demand_centroid(problem)
    coordinates = problem.instance.site_coordinates
    assert centroid is not None  # `refuses` has seen to both
    assert coordinates is not None
    places = np.where(problem.rules.may_hold[:, np.newaxis], coordinates, 0.0)
    to_centroid = great_circle_km(places, centroid[np.newaxis])[:, 0]
    between = great_circle_km(places, places)
    leaders = closest_first(to_centroid).tolist()
    return complete_proposal(
        problem,
        METHOD.name,
        lambda size: leaders,
        lambda leader, size: complete_configuration(
            problem, leader, closest_first(between[leader]).tolist(), size
        ),
    )


METHOD = Method(
    name="nearest-centroid",
    call=solve,
    summary="baseline: leader closest to the demand's centroid, replicas closest to the leader",
    exact=False,
    refuses=refuses,
    complexity="O(|S|·(C + |S|))",
    reference="the picker of XDN (fadhilkurnia/xdn), with a spherical mean",
)
