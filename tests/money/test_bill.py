"""Bills: the sum is the cost, items by hand, volume tiers, text, JSON, page, and today's bill."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from placement import Configuration, InputError, Prices, solve
from placement.cli.dispatch import main
from placement.evaluation.bill import bill_of
from placement.io import load_plan, save_instance, save_plan
from placement.report import report_html, write_report
from tests.effort import seeds
from tests.money.by_hand import paid_instance, small_problem
from tests.money.test_cost import PRICES, two_sites
from tests.reference import configurations


@pytest.mark.parametrize("seed", seeds(2, 40))
@pytest.mark.parametrize("kind", ["plain", "gateway", "non-voting", "varying"])
def test_items_sum_to_the_cost(seed: int, kind: str) -> None:
    instance = paid_instance(
        seed,
        gateway=kind == "gateway",
        non_voting=kind == "non-voting",
        intervals=2,
        varying=kind == "varying",
    )
    for leader, voters, replicas in list(configurations(small_problem(instance, seed)))[::5]:
        bill = bill_of(instance, Configuration.of(leader, voters, replicas))
        items = [row.amount for row in bill.rows]
        assert math.fsum(items) == pytest.approx(bill.total, rel=1e-12)
        for parts in (bill.by_term, bill.by_site):
            assert sum(parts.values()) == pytest.approx(bill.total, rel=1e-12)
        prices = instance.prices
        assert prices is not None
        assert prices.transfer is not None
        for row in bill.rows:
            if row.sender:  # every item of traffic is its GB at the price of its pair
                ends = [prices.client_sites.get(end, end) for end in (row.sender, row.receiver)]
                price = prices.transfer[
                    instance.sites.index(ends[0]), instance.sites.index(ends[1])
                ]
                assert row.amount == pytest.approx(row.gb * price, rel=1e-12, abs=1e-12)


def test_a_bill_by_hand() -> None:
    bill = bill_of(two_sites(PRICES), Configuration(1, (1,), (0, 1)))
    assert bill.by_term == pytest.approx(
        {
            "storage": 30,
            "replication": 10,
            "machines": 260,
            "writes": 0,
            "reads from the leader": 40,
            "migration": 2,
            "requests": 1300,
        }
    )
    assert bill.by_pair == pytest.approx({("B", "A"): 50, ("A", "B"): 2, ("b", "B"): 0})
    assert bill.by_site == pytest.approx({"B": 20 + 200 + 10 + 40 + 300 + 2, "A": 10 + 60 + 1000})


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


def test_todays_bill_beside(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert main([*asked, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    today = document["bill_today"]
    assert today["by_term"]["storage"] == 7.0 * len(before.replicas)
    assert "migration" not in today["by_term"]
    new = set(document["replicas"]) - set(before.replicas)
    assert document["bill"]["by_term"].get("migration", 0.0) == pytest.approx(4.0 * len(new))
    assert main(asked) == 0
    text = capsys.readouterr().out
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
    assert main([*asked, "--json", "--tiers", str(tmp_path / "tiers.csv")]) == 0
    document = json.loads(capsys.readouterr().out)
    items = [row for row in document["bill_tiers"]["rows"] if row["sender"] == document["leader"]]
    sent = sum(row["gb"] for row in items)
    assert sent >= 20.0
    assert sum(row["amount"] for row in items) == pytest.approx(5 + 0.25 * (sent - 5))
    assert main([*asked, "--tiers", str(tmp_path / "tiers.csv")]) == 0
    assert "With volume tiers" in capsys.readouterr().out
