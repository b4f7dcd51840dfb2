"""Worlds and files that a page must survive."""

from __future__ import annotations

import numpy as np

from placement import Configuration, Contingency, Instance, Problem
from placement.plan import Plan, evaluate
from placement.report.fleet_page import FleetDocument
from placement.support.status import Termination
from placement.testing import random_instance

__all__ = ["HOSTILE", "hostile_plan", "infeasible_plan", "one_site_plan", "plan_of_size"]

HOSTILE = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "</title></style><b>bold",
    '" onmouseover="alert(3)',
    "line\u2028separator\u2029here",
    "法兰克福数据中心",
    "مركز بيانات دبي",
    "flip\u202eeht\u202c & bell\x07",
    "$\\frac{1}{0}$ %s {0} &amp; &lt;",
    "a very long name of a site " * 12,
    "e\u0301" * 60,
    "𝔘𝔫𝔦 👩‍💻 \ud83d",
)
"""Names that break pages which do not escape."""


def world(
    sites: tuple[str, ...], clients: tuple[str, ...], seed: int = 0, *, coordinates: bool = True
) -> Instance:
    drawn = random_instance(seed, sites=len(sites), clients=len(clients))
    return drawn.replace(
        sites=sites,
        clients=clients,
        domains={"<i>zone</i>": tuple(f"zone {s % 5} <&>" for s in range(len(sites)))},
        site_coordinates=drawn.site_coordinates if coordinates else None,
        client_coordinates=drawn.client_coordinates if coordinates else None,
        name="world of " + sites[0],
        provenance=("Made up <for> a test.",),
    )


def plan_of_size(sites: int, clients: int, replicas: int = 5, *, coordinates: bool = True) -> Plan:
    """A plan with so many sites and clients; not a good one."""
    instance = world(
        tuple(f"site {s}" for s in range(sites)),
        tuple(f"client {c}" for c in range(clients)),
        coordinates=coordinates,
    )
    problem = Problem(instance, replicas=replicas, voters=min(3, replicas))
    chosen = list(range(0, sites, max(1, sites // replicas)))[:replicas]
    return evaluate(problem, Configuration.of(chosen[0], chosen[: min(3, replicas)], chosen))


def hostile_plan() -> Plan:
    """Every name is an attack or a script of its own, sites and clients alike."""
    names = tuple(name.encode("utf-8", "replace").decode() for name in HOSTILE)
    instance = world(names, tuple(f"client {name}" for name in names))
    problem = Problem(instance, replicas=len(names), voters=3)
    everywhere = tuple(range(len(names)))
    plan = evaluate(problem, Configuration.of(0, (0, 1, 5), everywhere))
    return plan.replace(
        method="<b>method</b>", notes=("a note with </script> in it",), stats={"<u>": "</script>"}
    )


def one_site_plan() -> Plan:
    instance = world(("only",), ("somebody",))
    return evaluate(Problem(instance, replicas=1, voters=1), Configuration.of(0, (0,), (0,)))


def infeasible_plan() -> Plan:
    """No plan, with a reason that needs escaping."""
    problem = plan_of_size(6, 4).problem
    return Plan.infeasible(problem, method="exact", reasons=("only 2 < 3 zones <&>",))


def unknown_plan() -> Plan:
    """Nothing found in time."""
    problem = plan_of_size(6, 4).problem
    return Plan.of(problem, None, method="milp", termination=Termination.TIME_LIMIT)


def contingency_plan() -> Plan:
    """The objective is the worst loss of a site, and the gap is known."""
    plan = plan_of_size(9, 7)
    problem = plan.problem.replace(objective=Contingency())
    assert plan.configuration is not None
    priced = evaluate(problem, plan.configuration)
    return priced.replace(bound=0.8 * priced.objective, certificate={"leaves": [1, 2]})


def violating_plan() -> Plan:
    """An evaluated configuration that breaks a constraint."""
    plan = plan_of_size(9, 7)
    problem = plan.problem.replace(forbidden=(plan.replicas[-1],))
    assert plan.configuration is not None
    return evaluate(problem, plan.configuration)


def no_demand_client_plan() -> Plan:
    """A client that issued nothing has no latency; one has no coordinates."""
    plan = plan_of_size(6, 5)
    instance = plan.problem.instance
    counts = instance.counts.copy()
    counts[:, 2] = 0
    around = np.array(instance.client_coordinates)
    around[3] = np.nan
    at = np.array(instance.site_coordinates)
    at[0] = np.nan  # the leader's own place is unknown
    quiet = instance.replace(counts=counts, client_coordinates=around, site_coordinates=at)
    problem = plan.problem.replace(instance=quiet)
    assert plan.configuration is not None
    return evaluate(problem, plan.configuration)


def hostile_fleet() -> FleetDocument:
    """Plan of a fleet whose databases and sites have hostile names."""
    names = tuple(name.encode("utf-8", "replace").decode() for name in HOSTILE)
    limits = [
        {"name": f"storage GB at {names[0]}", "limit": 10.0, "load": 10.0,
         "today": 14.0, "price": 2.5},
        {"name": "new replicas", "limit": 0.0, "load": 0.0, "today": None, "price": 0.0},
    ]  # fmt: skip
    plans = [
        {
            "database": f"{names[number % len(names)]} {number}", "copies": 1 + number,
            "leader": names[0],
            "voters": [names[0]], "replicas": [names[0], "b" * 300], "mean_ms": 10.0 + number,
            "alone_ms": 9.0, "paid": 5.0 * number, "new_replicas": 1,
        }
        for number in range(30)
    ]  # fmt: skip
    return FleetDocument(
        {
            "format": "fleet/1", "databases": 30, "value": 1000.0, "bound": 990.0, "gap": 0.01,
            "alone": 900.0, "mean_latency_ms": 12.5, "method": "column-generation",
            "stopped": "finished", "limits": limits, "plans": plans,
            "rounds": [{"bound": b, "relaxation": 1000.0} for b in (500.0, 900.0, 850.0, 990.0)],
        }
    )  # fmt: skip
