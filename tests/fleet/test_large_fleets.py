"""Plans of large fleets: prices by a weighted sample, and blocks in place of one linear program."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import placement
from formulations.fleet import (
    FleetSearch,
    column_generation,
    large_fleet,
    pricing,
    pricing_workers,
    solve_fleet,
    tuning,
)
from formulations.fleet.large_fleet import weighted_sample
from placement import Termination
from placement.errors import InputError
from placement.fleet import FleetPlan, FleetProblem, synthetic_fleet
from placement.overtime.replay.generated_fleets import client_ground
from placement.workloads import Clients
from tests.effort import examples
from tests.fleet.test_fleet_checkpoints import content
from tests.fleet.test_fleet_search import assert_proved, drawn_fleet, optimum


@pytest.fixture
def small_is_large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fleets of four databases be large: samples of two, batches of two, blocks of four."""
    monkeypatch.setattr(tuning, "LARGE_FLEET", 4)
    monkeypatch.setattr(tuning, "SAMPLE_DATABASES", 2)
    monkeypatch.setattr(tuning, "BLOCK_BATCHES", 2)
    monkeypatch.setattr(tuning, "LARGE_DATABASES", 3)
    monkeypatch.setattr(pricing_workers, "BATCH", 2)


def crowded_fleet(databases: int, slack: float = 1.3) -> FleetProblem:
    """Return a fleet whose limits bind."""
    instance = placement.load("world27")
    ground = client_ground(instance)
    return synthetic_fleet(
        instance, ground.clients, databases, seed=5, slack=slack, owner=ground.owner
    )


@pytest.mark.usefixtures("small_is_large")
def test_bounds_and_plans_hold_whatever_the_sample() -> None:
    solved = feasible = 0
    for seed in range(400, 400 + examples(40)):
        fleet = drawn_fleet(seed, most_databases=12)
        if len(fleet.members) >= 4:
            feasible += optimum(fleet) < math.inf
            solved += assert_proved(fleet, seed)
    assert feasible >= 3
    assert solved >= 0.7 * feasible


@pytest.mark.usefixtures("small_is_large")
def test_blocks_alone_reach_the_wanted_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    """No linear program over all databases is solved on the way."""
    monkeypatch.setattr(tuning, "SAMPLE_DATABASES", 40)
    monkeypatch.setattr(tuning, "BLOCK_BATCHES", 30)

    fleet = crowded_fleet(120, 1.8)
    masters: list[int] = []
    original = column_generation.Generation.solve_master

    def counted(search: column_generation.Generation, *given: float) -> object:
        masters.append(len(search.copies))
        return original(search, *given)

    monkeypatch.setattr(column_generation.Generation, "solve_master", counted)
    found = solve_fleet(fleet, FleetSearch(gap=0.1))
    assert isinstance(found, FleetPlan)
    assert not found.violations
    assert found.gap <= 0.1
    assert found.value_alone < found.bound
    assert max(masters) < 60


@pytest.mark.usefixtures("small_is_large")
def test_a_large_fleet_goes_on_from_its_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet = crowded_fleet(24)
    whole = content(solve_fleet(fleet, FleetSearch(gap=0.2)))
    search = FleetSearch(gap=0.2, checkpoint=tmp_path / "kept")
    assert content(solve_fleet(fleet, search)) == whole
    answers = sorted((tmp_path / "kept").glob("pass-*-*.json"))
    passes = {each.name.split("-")[1] for each in answers}
    assert len(passes) > 5  # alone, corrections, passes at prices of batches
    for each in answers[len(answers) // 2 :]:
        each.unlink()
    assert content(solve_fleet(fleet, search)) == whole

    def refuse(*_: object) -> None:
        raise AssertionError("priced again")

    monkeypatch.setattr(pricing, "price_member", refuse)
    assert content(solve_fleet(fleet, search)) == whole


@pytest.mark.parametrize(
    ("step", "error"),
    [
        ("vary_prices", KeyboardInterrupt),
        ("place", TimeoutError),
        *(
            pytest.param(step, error, marks=pytest.mark.slow)
            for step, error in (
                ("vary_prices", TimeoutError),
                ("balance", KeyboardInterrupt),
                ("balance", TimeoutError),
                ("place", KeyboardInterrupt),
            )
        ),
    ],
)
@pytest.mark.usefixtures("small_is_large")
def test_a_search_that_is_stopped_has_a_plan(
    step: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once prices are known, columns that were found already place a fleet whose limits bind."""
    monkeypatch.setattr(tuning, "SAMPLE_DATABASES", 40)
    monkeypatch.setattr(tuning, "BLOCK_BATCHES", 30)

    def stopped(_: large_fleet.LargeFleet) -> None:
        raise error

    monkeypatch.setattr(large_fleet.LargeFleet, step, stopped)
    found = solve_fleet(crowded_fleet(120), FleetSearch(gap=1e-3))
    assert isinstance(found, FleetPlan)
    assert found.termination is not Termination.FINISHED
    assert not found.violations
    assert 0 < found.gap <= 0.08
    assert found.value_alone < found.bound


@pytest.mark.slow
@pytest.mark.usefixtures("small_is_large")
def test_workers_get_the_prices_of_their_batches() -> None:
    fleet = crowded_fleet(12)
    alone = content(solve_fleet(fleet, FleetSearch(gap=0.05)))
    assert content(solve_fleet(fleet, FleetSearch(gap=0.05, processes=2))) == alone


@pytest.mark.usefixtures("small_is_large")
def test_without_binding_limits_no_sample_is_needed() -> None:
    instance = placement.load("world27")
    ground = client_ground(instance)
    fleet = synthetic_fleet(instance, ground.clients, 8, seed=1, slack=100.0, owner=ground.owner)
    found = solve_fleet(fleet)
    assert isinstance(found, FleetPlan)
    assert found.gap == pytest.approx(0.0, abs=1e-9)
    assert found.value == pytest.approx(found.value_alone)


@pytest.mark.parametrize("seed", range(examples(20)))
def test_a_weighted_sample_stands_for_all(seed: int) -> None:
    rng = np.random.default_rng(seed)
    databases = int(rng.integers(50, 3000))
    copies = rng.integers(1, 4, databases).astype(float)
    size = copies * rng.lognormal(0, float(rng.uniform(0.1, 2.5)), databases)
    certain = rng.random(databases) < 0.01
    count = int(rng.integers(20, databases))
    chosen, weights = weighted_sample(size, copies, certain, count)
    assert (np.diff(chosen) > 0).all()
    assert certain[chosen].sum() == certain.sum()
    assert abs(len(chosen) - max(count, certain.sum())) <= 1
    assert (weights >= copies[chosen] * (1 - 1e-12)).all()
    assert weights.sum() == pytest.approx(copies.sum(), rel=0.5)
    total = (weights * size[chosen] / copies[chosen]).sum()
    assert total == pytest.approx(size.sum(), rel=max(0.05, 10 / count))
    largest = int(size.argmax())
    if size[largest] * count > 2 * size.sum() + 2 * copies[largest]:
        assert largest in chosen


def test_a_sample_of_all_is_all() -> None:
    copies = np.array([1.0, 2.0, 3.0])
    chosen, weights = weighted_sample(np.zeros(3), copies, np.zeros(3, dtype=np.bool_), 3)
    assert chosen.tolist() == [0, 1, 2]
    assert weights.tolist() == copies.tolist()


def drawn(databases: int, seed: int, **more: float | None) -> FleetProblem:
    world = placement.load("world27")
    return synthetic_fleet(
        world,
        client_ground(world).clients,
        databases,
        seed=seed,
        **more,  # type: ignore[arg-type]
    )


def test_drawn_fleets_repeat_and_hold_their_slack() -> None:
    one, two = (drawn(40, 7, groups=8, slack=2.0) for _ in range(2))
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
    assert [m.name for m in drawn(5, 7).members] == [m.name for m in drawn(9, 7).members[:5]]


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
