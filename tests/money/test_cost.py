"""Cost of a configuration: by hand, operation by operation, and as a linear function."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import InputError, Instance, Operation, Prices, Problem, solve, without_sites
from placement.analysis.sensitivity import demand_range
from placement.evaluation.cost_model import configuration_cost, cost_model
from placement.model.configuration import Configuration
from placement.model.operations import STRONG_READ, WEAK_READ
from placement.model.prices import PER_SITE
from tests.effort import examples, seeds
from tests.money.by_hand import cost, paid_instance, small_problem
from tests.reference import configurations

WRITE = Operation("write", direct=1, quorum=1)


def two_sites(prices: Prices) -> Instance:
    """Two sites A and B with a client each; A reads nearby and strongly, B writes."""
    return Instance(
        sites=("A", "B"),
        clients=("A", "b"),
        client_rtt=[[1.0, 10.0], [10.0, 1.0]],
        site_rtt=[[0.0, 10.0], [10.0, 0.0]],
        counts=[[1000.0, 100.0, 0.0], [0.0, 0.0, 50.0]],
        operations=(WEAK_READ, STRONG_READ, WRITE),
        prices=prices,
    )


PRICES = Prices(
    storage=[10.0, 20.0],
    transfer=[[0.0, 0.5], [2.0, 0.0]],
    machines=[100.0, 200.0],
    machines_non_voting=[60.0, 70.0],
    requests=[1e6, 2e6],
    gb_per_op={"write": 0.1, "weak_read": 0.01, "read": 0.2},
    client_sites={"b": "B"},
    stored_gb=40.0,
    present=("A",),
    migration_months=10.0,
)


def test_a_bill_by_hand() -> None:
    """Leader B, replicas A and B, only B votes; all terms, one by one."""
    instance = two_sites(PRICES)
    expected = {
        "storage": 30.0,
        "machines": 60.0 + 200.0,
        "replication": 50 * 0.1 * 2.0,  # B ships 5 GB to A
        "writes": 0.0,  # b is at B
        "near reads": 0.0,  # A reads at A
        "reads from the leader": 100 * 0.2 * 2.0,  # B sends 20 GB to A
        "requests": 1000 * 1.0 + 150 * 2.0,
        "migration": 40 * 0.5 / 10,
    }
    total = configuration_cost(instance, Configuration(1, (1,), (0, 1)))
    assert total == pytest.approx(sum(expected.values()), rel=1e-14)
    alone = configuration_cost(instance, Configuration(1, (1,), (1,)))
    # without A: 1,000 weak reads of A are served at B, 10 GB at 2 USD
    assert alone == pytest.approx(20 + 200 + 1000 * 0.01 * 2 + 40 + 1150 * 2 + 2, rel=1e-14)


def test_the_old_prices_to_the_last_bit() -> None:
    rng = np.random.default_rng(3)
    storage, transfer = rng.random(6), rng.random((6, 6)) * (1 - np.eye(6))
    world = paid_instance(1, sites=6).replace(prices=Prices(storage, transfer, 0.3))
    for leader, replicas in ((0, (0, 2, 5)), (3, (1, 3, 4, 5))):
        old = float((storage + 0.3 * transfer[leader])[list(replicas)].sum())
        assert configuration_cost(world, Configuration(leader, (leader,), replicas)) == old


@pytest.mark.parametrize("seed", seeds(2, 60))
@pytest.mark.parametrize("kind", ["plain", "gateway", "non-voting", "intervals", "varying"])
def test_every_configuration_against_plain_loops(seed: int, kind: str) -> None:
    instance = paid_instance(
        seed,
        gateway=kind == "gateway",
        non_voting=kind == "non-voting",
        intervals=2 if kind in ("intervals", "varying") else 1,
        varying=kind == "varying",
    )
    problem = small_problem(instance, seed)
    for leader, voters, replicas in list(configurations(problem))[:: 1 + seed % 5]:
        found = configuration_cost(instance, Configuration.of(leader, voters, replicas))
        assert found == pytest.approx(cost(instance, leader, voters, replicas), rel=1e-12)


@pytest.mark.parametrize("seed", seeds(2, 40))
def test_the_linear_form(seed: int) -> None:
    """K + Σ a x + Σ b v + Σ n z at the nearest replicas is the cost; so are the sites' prices."""
    instance = paid_instance(seed, non_voting=bool(seed % 2))
    model = cost_model(instance)
    assert model is not None
    problem = small_problem(instance, seed).replace(cost_weight=1.0)
    for leader, voters, replicas in list(configurations(problem))[::7]:
        linear = model.linear(leader)
        assert linear.nearest is not None
        total = linear.constant + linear.replica[list(replicas)].sum()
        if linear.voter is not None:
            total += linear.voter[list(voters)].sum()
        near = [min(replicas, key=lambda r: (row[r], r)) for row in instance.client_rtt]
        served = sum(linear.nearest[c, r] for c, r in enumerate(near))
        exact = configuration_cost(instance, Configuration.of(leader, voters, replicas))
        assert total + served == pytest.approx(exact, rel=1e-12)
        sites = problem.site_costs(leader)
        assert sites is not None
        rest = 0.0
        if "votes" in problem.cost_parts and linear.voter is not None:
            rest = linear.voter[[v for v in voters if v != leader]].sum()
        assert sites[list(replicas)].sum() + rest + served == pytest.approx(exact, rel=1e-12)


def test_gateways_share_the_gb_that_are_written() -> None:
    """With `written_gb` alone, each client's part goes by its number of writes."""
    prices = Prices([0.0, 0.0], [[0.0, 0.5], [2.0, 0.0]], 8.0, replication="gateway")
    instance = two_sites(dataclasses.replace(prices, client_sites={"b": "B"}))
    assert configuration_cost(instance, Configuration(0, (0,), (0, 1))) == 16.0  # from B to A


def test_a_month_has_730_hours() -> None:
    instance = two_sites(dataclasses.replace(PRICES, interval_hours=73.0))
    total = configuration_cost(instance, Configuration(1, (1,), (0, 1)))
    assert total == pytest.approx(30 + 260 + 10 * (10 + 40 + 1300) + 2, rel=1e-14)


@pytest.mark.parametrize("seed", [0, 1])
def test_one_interval_stands_for_its_month(seed: int) -> None:
    """The mean over the intervals, each as a month, is the cost of all: the scale is the same."""
    instance = paid_instance(seed, intervals=3)
    chosen = Configuration(1, (1, 2), (1, 2, 4))
    each = [configuration_cost(instance.at_interval(k), chosen) for k in range(3)]
    assert sum(each) / 3 == pytest.approx(configuration_cost(instance, chosen), rel=1e-12)


@given(st.integers(0, 10_000), st.floats(0.01, 100.0))
@settings(max_examples=examples(20))
def test_prices_and_counts_scale_the_cost(seed: int, factor: float) -> None:
    """Other money for the same things, and more operations at the same hours."""
    instance = paid_instance(seed, non_voting=bool(seed % 2))
    prices = instance.prices
    assert prices is not None
    chosen = Configuration(0, (0, 3), (0, 2, 3))
    scaled = {
        name: factor * np.asarray(getattr(prices, name))
        for name in ("storage", "transfer", *PER_SITE)
        if getattr(prices, name) is not None
    }
    dearer = instance.replace(prices=dataclasses.replace(prices, **scaled))
    cost_now = configuration_cost(instance, chosen)
    assert configuration_cost(dearer, chosen) == pytest.approx(factor * cost_now, rel=1e-9)
    more = instance.replace(counts=factor * instance.counts)
    none = instance.replace(counts=1e-300 * instance.counts)
    fixed = configuration_cost(none, chosen)
    found = configuration_cost(more, chosen)
    assert found - fixed == pytest.approx(factor * (cost_now - fixed), rel=1e-9, abs=1e-9)


def test_sensitivity_refuses_costs_that_follow_the_demand() -> None:
    plain = paid_instance(2, near=False)
    problem = small_problem(plain, 2).replace(cost_weight=5.0)
    with pytest.raises(InputError, match="the cost that counts grows with the demand"):
        demand_range(solve(problem), plain.clients[0])
    problem = small_problem(paid_instance(2), 2).replace(cost_weight=5.0)
    with pytest.raises(InputError, match="sensitivity does not follow the cost of reads"):
        demand_range(solve(problem), plain.clients[0])


def test_an_operation_whose_data_go_no_known_way() -> None:
    instance = two_sites(PRICES)
    waiting = Operation("write", quorum=0, waits=["client: 2 of replicas"], kind="write")
    operations = (WEAK_READ, STRONG_READ, waiting)
    with pytest.raises(InputError, match=r"gb_per_op: the way of the data of operation 'write'"):
        Problem(instance.replace(operations=operations), replicas=2, voters=1)


def test_prices_survive_copies_and_pickles() -> None:
    instance = paid_instance(2)
    again = pickle.loads(pickle.dumps(instance))
    assert again == instance
    chosen = Configuration(0, (0,), (0, 3))
    assert configuration_cost(again, chosen) == configuration_cost(instance, chosen)
    assert instance.replace(prices=dataclasses.replace(instance.prices, stored_gb=9)) != instance
    assert instance.replace(prices=dataclasses.replace(instance.prices, source="x")) == instance


def test_without_a_site() -> None:
    instance = two_sites(dataclasses.replace(PRICES, client_sites={"b": "A"}))
    left = without_sites(instance, ["B"])
    found = configuration_cost(left, Configuration(0, (0,), (0,)))
    assert found == pytest.approx(10 + 100 + 1150)
    with pytest.raises(InputError, match="no site that holds a replica at present is left"):
        without_sites(two_sites(PRICES), ["A"])


def ask(prices: Prices) -> Problem:
    return Problem(two_sites(prices), replicas=1, voters=1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"client_sites": {}}, r"prices\.client_sites: client 'b' moves data .* got 'b'"),
        ({"client_sites": {"c": "A"}}, r"client_sites: unknown client: got 'c'"),
        ({"client_sites": {"b": "C"}}, r"client_sites: unknown site: got 'C'"),
        ({"present": ("C",)}, r"present: unknown site: got 'C'"),
        ({"gb_per_op": {"wirte": 1.0}}, r"gb_per_op: unknown operation: got 'wirte'.*'write'"),
        ({"gb_per_op": {"write": -1.0}}, r"gb_per_op\['write'\]: out of range: got -1"),
        ({"machines": [1.0, np.nan]}, r"machines: missing value at site 'B'"),
        ({"requests": [1.0, -2.0]}, r"requests: out of range at site 'B': got -2"),
        ({"machines_non_voting": [1.0, 201.0]}, r"non_voting: a replica at 'B' costs more.*201"),
        ({"transfer": None}, r"gb_per_op: GB are given, but no price of traffic"),
        ({"interval_hours": 0.0}, r"interval_hours: out of range: got 0"),
        ({"replication": "relay"}, r"replication: got 'relay'"),
        ({"to_clients": [[1.0, 2.0]]}, r"to_clients: wrong shape"),
        ({"migration_months": 0}, r"migration_months: out of range: got 0"),
    ],
)
def test_bad_prices(changes: dict[str, object], message: str) -> None:
    match = message.replace(": got", ".*: got")
    with pytest.raises(InputError, match=match):
        ask(dataclasses.replace(PRICES, **changes))  # type: ignore[arg-type]
