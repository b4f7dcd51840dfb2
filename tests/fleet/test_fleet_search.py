"""Plans of fleets against the full integer program over every configuration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import placement
from formulations.fleet import FleetSearch, pricing, solve_fleet
from formulations.fleet.pricing import Pricer, lagrangean_bound, price_member
from formulations.solvers.highs import Guard, run_highs
from formulations.solvers.linear_program import Builder
from formulations.solvers.statuses import Verdict
from placement import Diversity, Problem
from placement.errors import InputError
from placement.feasibility.feasible_plans import find_feasible
from placement.fleet import (
    FleetMember,
    FleetPlan,
    FleetProblem,
    NoFleetPlan,
    SharedLimits,
    SharedRows,
    synthetic_fleet,
)
from placement.fleet.fleet_plan import Placed
from placement.model.configuration import Configuration
from placement.model.constraints import Role
from placement.overtime.replay.generated_fleets import client_ground
from placement.support.checks import FloatArray
from placement.testing import random_instance
from placement.workloads import Clients
from tests.effort import examples, seeds
from tests.reference import configurations


def drawn_fleet(
    seed: int, *, most_sites: int = 6, most_databases: int = 6, rules: bool = False
) -> FleetProblem:
    """Return a small fleet whose limits are between too tight and loose.

    `rules`: its databases have rules of survival, pins, groups of sites, leaders and quorums too.
    """
    rng = np.random.default_rng(seed)
    sites = int(rng.integers(3, most_sites + 1))
    base = random_instance(int(rng.integers(1000)), sites=sites, clients=4, prices=True)
    members = []
    for number in range(int(rng.integers(1, most_databases + 1))):
        counts = base.counts * rng.lognormal(0, 1.5, base.counts.shape)
        if rng.random() < 0.2:
            counts[:, 1:] = 0.0
        replicas = int(rng.integers(1, min(4, sites) + 1))
        low = int(rng.integers(1, replicas + 1))
        problem = Problem(
            base.replace(counts=counts),
            replicas=(low, replicas) if rng.random() < 0.3 else replicas,
            voters=int(rng.integers(1, low + 1)),
            forbidden=base.sites[:1] if rng.random() < 0.2 and sites > 4 else (),
            cost_weight=float(rng.choice([0.0, 0.5])),
        )
        if rules:
            problem = with_drawn_rules(problem, rng)
        present = find_feasible(problem) if rng.random() < 0.6 else None
        members.append(
            FleetMember(
                f"db-{number}",
                problem,
                storage_gb=float(np.round(rng.lognormal(0, 1), 2)),
                written_gb=float(np.round(rng.lognormal(0, 1), 2)),
                leader_operations=None if rng.random() < 0.5 else float(rng.integers(0, 5)),
                present=present,
                copies=int(rng.choice([1, 1, 1, 2, 3])),
            )
        )
    held = sum(m.copies * m.storage_gb * m.problem.rules.replicas_max for m in members)
    led = sum(m.copies * m.leader_load for m in members)
    sent = sum(m.copies * m.written_gb * (m.problem.rules.replicas_max - 1) for m in members)
    number = sum(m.copies for m in members)

    def limit(total: float, given: float = 0.6) -> np.ndarray | None:
        if rng.random() > given:
            return None
        values = total / sites * rng.uniform(0.6, 3.0, sites)
        values[rng.random(sites) < 0.2] = math.inf
        return values

    singles = [m.name for m in members if m.copies == 1]
    return FleetProblem(
        members,
        SharedLimits(
            storage_gb=limit(held),
            leader_operations=limit(led),
            egress_gb=limit(sent),
            most_moves=float(rng.integers(0, 3 * number)) if rng.random() < 0.4 else None,
            most_moved_gb=float(rng.uniform(0, held)) if rng.random() < 0.3 else None,
            apart=[singles[:2]] if len(singles) >= 2 and rng.random() < 0.3 else (),
        ),
    )


def with_drawn_rules(problem: Problem, rng: np.random.Generator) -> Problem:
    """Return a problem with some more rules, those that leave a configuration."""
    sites = [site for site in problem.instance.sites if site not in problem.forbidden]
    voters = problem.voters
    assert isinstance(voters, int)
    drawn: dict[str, Any] = {}
    if rng.random() < 0.35:
        drawn["survive"] = str(rng.choice(["site", "region"]))
    if rng.random() < 0.3:
        drawn["pinned"] = (str(rng.choice(sites)),)
    if rng.random() < 0.2:
        drawn["non_voters"] = (str(rng.choice(sites)),)
    if rng.random() < 0.2:
        drawn["leaders"] = tuple(map(str, rng.choice(sites, min(3, len(sites)), replace=False)))
    if rng.random() < 0.3:
        role: Role = "voters" if rng.random() < 0.5 else "replicas"
        drawn["diversity"] = (Diversity(level="region", role=role, cap=int(rng.integers(1, 3))),)
    if rng.random() < 0.2:
        drawn["quorum"] = int(rng.integers(1, voters + 1))
    ruled = problem
    for field, value in drawn.items():
        try:
            more = ruled.replace(**{field: value})
        except InputError:
            continue
        if find_feasible(more) is not None:
            ruled = more
    return ruled


def bound_at(fleet: FleetProblem, prices: FloatArray) -> float:
    rows = SharedRows(fleet)
    with Pricer(rows) as pricer:
        return lagrangean_bound(rows, prices, list(pricer.price(prices)))


def every_configuration(problem: Problem) -> list[Configuration]:
    return [Configuration.of(*each) for each in configurations(problem)]


def optimum(fleet: FleetProblem) -> float:
    """Return the least value of any plan: an integer program over all configurations."""
    rows, builder = SharedRows(fleet), Builder()
    shared = builder.add_rows(-np.inf, rows.capacity, len(rows.capacity))
    for member in fleet.members:
        every = every_configuration(member.problem)
        if not every:
            return math.inf
        costs = [member.problem.objective.value(member.problem, one) for one in every]
        columns = builder.add_columns(costs, np.inf, integer=True)
        place = builder.add_rows(member.copies, member.copies, 1)
        builder.put(np.full(len(every), place[0]), columns, 1.0)
        for column, one in zip(columns, every, strict=True):
            use = rows.use(member, one)
            builder.put(shared, np.full(len(shared), column), use)
    found = run_highs(builder.program(), Guard())
    if found.verdict is Verdict.INFEASIBLE:
        return math.inf
    assert found.verdict is Verdict.OPTIMAL
    return found.objective


def assert_proved(fleet: FleetProblem, seed: int) -> bool:
    """Assert that bound, optimum and value are in order; return whether a plan was found."""
    best = optimum(fleet)
    found = solve_fleet(fleet, FleetSearch(gap=0.0, seed=seed))
    if isinstance(found, NoFleetPlan):
        assert not found.proven or best == math.inf
        assert found.reasons
        return False
    assert not found.violations
    slack = 1e-7 * max(abs(best), 1.0)
    assert found.bound <= best + slack
    assert found.whole_bound <= best - 1e-7 * abs(best)  # a solver may pass over plans within it
    assert found.value >= best - slack
    proven = max(found.bound, found.whole_bound)
    assert found.gap == pytest.approx(max(0.0, found.value - proven) / (found.value or 1.0))
    assert found.prices is not None
    again = bound_at(fleet, found.prices)
    assert again == pytest.approx(found.bound, rel=1e-9, abs=1e-9)
    larger = bound_at(fleet, 3.0 * found.prices + 0.1)
    assert larger <= best + slack  # any prices prove a bound
    return True


@pytest.mark.parametrize("seed", range(examples(30)))
def test_bound_optimum_and_value_are_in_order(seed: int) -> None:
    assert_proved(drawn_fleet(seed), seed)


@pytest.mark.parametrize("seed", [7, 67, 138])
def test_a_dive_at_the_bound_but_for_rounding(seed: int) -> None:
    """The value of the plan is below the least of all choices, in doubles."""
    assert assert_proved(drawn_fleet(seed, most_databases=3), seed)


@pytest.mark.parametrize("seed", seeds(3, 150))
def test_bound_optimum_and_value_are_in_order_at_twelve_databases_and_seven_sites(
    seed: int,
) -> None:
    assert_proved(drawn_fleet(seed, most_sites=7, most_databases=12, rules=True), seed)


@pytest.mark.parametrize("seed", [3, 33, 70])
def test_small_tight_fleets_get_a_plan_within_the_gap_of_the_optimum(seed: int) -> None:
    """Rounding and integer programs over the columns of pricing alone find no such plan here."""
    fleet = drawn_fleet(seed, most_sites=7, most_databases=12, rules=True)
    best = optimum(fleet)
    assert best < math.inf
    found = solve_fleet(fleet, FleetSearch(gap=1e-3, seed=seed))
    assert isinstance(found, FleetPlan)
    assert not found.violations
    assert best * (1 - 1e-9) <= found.value <= best * (1 + 1e-3)
    # the prices alone left 10 to 18 % of fleets like these open
    assert found.gap <= 1e-6 or found.value - found.bound <= 1e-3 * found.value


@pytest.mark.parametrize("seed", range(examples(20)))
def test_the_price_of_replicas_is_the_price_of_their_use(seed: int) -> None:
    fleet = drawn_fleet(seed)
    rows, rng = SharedRows(fleet), np.random.default_rng(seed)
    prices = rng.random(len(rows.capacity))
    for member in fleet.members:
        table = rows.price(member, prices)
        least = math.inf
        hold, lead = rows.fitting_sites(member)
        for one in every_configuration(member.problem):
            paid = float(prices @ rows.use(member, one))
            assert table[one.leader, list(one.replicas)].sum() == pytest.approx(paid)
            if lead[one.leader] and hold[list(one.replicas)].all():
                least = min(least, paid + member.problem.objective.value(member.problem, one))
        assert price_member(rows, member, prices).least == pytest.approx(least, rel=1e-9)


def pair(**limits: object) -> FleetProblem:
    instance = random_instance(3, sites=4, clients=3)
    problem = Problem(instance, replicas=2, voters=1)
    members = [FleetMember(name, problem, storage_gb=10.0) for name in ("a", "b")]
    return FleetProblem(members, SharedLimits(**limits))  # type: ignore[arg-type]


def test_no_moves_place_no_database_that_is_nowhere() -> None:
    instance = random_instance(3, sites=5, clients=3)
    problem = Problem(instance, replicas=2, voters=1)
    found = solve_fleet(FleetProblem([FleetMember("a", problem)], SharedLimits(most_moves=0)))
    assert isinstance(found, NoFleetPlan)
    assert found.proven
    assert "each of its replicas is a move, and 0 moves are allowed" in found.reasons[0]


def test_several_processes_give_the_same_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pricing, "BATCH", 25)
    instance = random_instance(5, sites=4, clients=3)
    rng = np.random.default_rng(0)
    members = [
        FleetMember(
            f"db-{i}",
            Problem(instance.replace(counts=instance.counts * rng.random(instance.counts.shape)),
                    replicas=2, voters=1),
            storage_gb=float(rng.random()),
        )
        for i in range(40)
    ]  # fmt: skip
    fleet = FleetProblem(members, SharedLimits(storage_gb=np.full(4, 100.0)))
    one = solve_fleet(fleet, FleetSearch(processes=1))
    two = solve_fleet(fleet, FleetSearch(processes=2))
    assert isinstance(one, FleetPlan)
    assert isinstance(two, FleetPlan)
    assert one.bound == two.bound
    assert one.rounds == two.rounds
    assert one.prices is not None
    assert two.prices is not None
    assert (one.prices == two.prices).all()
    for found in (one, two):  # the integer programs end at a gap, by a clock
        assert found.gap <= 1e-3
        assert not found.violations


def test_questions_that_a_fleet_cannot_hold_are_refused() -> None:
    priced = random_instance(0, sites=4, clients=3, prices=True)
    problem = Problem(priced, replicas=2, voters=1, budget=1e9)
    with pytest.raises(InputError, match="budget"):
        FleetMember("a", problem)
    good = Problem(priced, replicas=2, voters=1)
    with pytest.raises(InputError, match="storage_gb"):
        FleetMember("a", good, storage_gb=-1)
    with pytest.raises(InputError, match="duplicate"):
        FleetProblem([FleetMember("a", good), FleetMember("a", good)], SharedLimits())
    with pytest.raises(InputError, match="one for each of the 4 sites"):
        FleetProblem([FleetMember("a", good)], SharedLimits(storage_gb=np.ones(3)))
    with pytest.raises(InputError, match="apart"):
        FleetProblem([FleetMember("a", good)], SharedLimits(apart=[["a", "b"]]))
    with pytest.raises(InputError, match="copies"):
        FleetPlan(FleetProblem([FleetMember("a", good, copies=2)], SharedLimits()),
                  [[Placed(Configuration.of(0, (0,), (0, 1)))]])  # fmt: skip


def generated(databases: int, seed: int, **more: float | None) -> FleetProblem:
    world = placement.load("world27")
    return synthetic_fleet(
        world,
        client_ground(world).clients,
        databases,
        seed=seed,
        **more,  # type: ignore[arg-type]
    )


def test_drawn_fleets_repeat_and_hold_their_slack() -> None:
    one, two = (generated(40, 7, groups=8, slack=2.0) for _ in range(2))
    assert one.databases == 40
    assert len(one.members) == 8
    for a, b in zip(one.members, two.members, strict=True):
        assert (a.name, a.storage_gb, a.leader_load) == (b.name, b.storage_gb, b.leader_load)
        assert np.array_equal(a.problem.instance.counts, b.problem.instance.counts)
    limits = one.limits
    assert limits.storage_gb is not None
    stored = math.fsum(3 * m.copies * m.storage_gb for m in one.members)
    assert float(limits.storage_gb.sum()) >= 2.0 * stored * (1 - 1e-12)
    assert float(limits.storage_gb.min()) >= max(m.storage_gb for m in one.members)
    assert [m.name for m in generated(5, 7).members] == [
        m.name for m in generated(9, 7).members[:5]
    ]


@pytest.mark.parametrize(
    ("clients", "more", "field"),
    [
        (client_ground(placement.load("world27")).clients, {"slack": 0.5}, "slack"),
        (client_ground(placement.load("world27")).clients, {"groups": 9}, "groups"),
        (Clients.from_cities(placement.datasets.cities()[:4]), {}, "clients"),
    ],
)
def test_what_cannot_be_drawn_is_refused(
    clients: Clients, more: dict[str, float], field: str
) -> None:
    with pytest.raises(InputError, match=field):
        synthetic_fleet(placement.load("world27"), clients, 5, seed=0, **more)  # type: ignore[arg-type]
