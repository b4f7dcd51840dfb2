"""Prices in instance folders and inside plan files, to the last bit."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from placement import InputError, Prices, load
from placement.io import load_plan, save_instance, save_plan
from placement.methods.registry import solve
from tests.effort import seeds
from tests.money.by_hand import paid_instance, small_problem


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
    """Prices of older versions give the same keys, tables and fingerprint."""
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
