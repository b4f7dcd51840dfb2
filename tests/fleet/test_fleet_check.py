"""``placement check`` of a fleet: the bound again in exact integers, and files that are wrong."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formulations.fleet import FleetSearch, solve_fleet
from formulations.fleet.pricing import certify_priced
from placement import Problem
from placement.errors import CertificateError, InputError
from placement.fleet import FleetMember, FleetPlan, FleetProblem, NoFleetPlan, SharedLimits
from placement.fleet.fleet_tables import fleet_document, no_plan_document
from placement.fleet.shared_rows import PricedQuestion
from placement.io.fleet_plan_file import check_fleet_file, read_fleet_file, with_question
from placement.proof.fleet_proof import prove_fleet
from placement.support.work import WORK
from placement.testing import random_instance
from tests.cli.command import runner
from tests.effort import examples
from tests.fleet.test_fleet_search import drawn_fleet, optimum, pair


def written(found: FleetPlan | NoFleetPlan, path: Path) -> dict[str, Any]:
    document = fleet_document(found) if isinstance(found, FleetPlan) else no_plan_document(found)
    whole = with_question(document, found.fleet)
    path.write_text(json.dumps(whole))
    return whole


@pytest.mark.parametrize("seed", range(examples(20)))
def test_bounds_and_refutations_of_drawn_fleets_hold(seed: int, tmp_path: Path) -> None:
    fleet = drawn_fleet(seed)
    found = solve_fleet(fleet, FleetSearch(gap=1e-3, seed=seed))
    written(found, tmp_path / "plan.json")
    if isinstance(found, NoFleetPlan):
        if not found.proven:
            return
        proved = check_fleet_file(tmp_path / "plan.json")
        assert proved.bound == math.inf
        assert set(proved.unplaced) == set(found.oversize)
        assert optimum(fleet) == math.inf
        return
    proved = check_fleet_file(tmp_path / "plan.json")
    assert proved.value == pytest.approx(found.value, rel=1e-12)
    assert proved.bound <= optimum(fleet) * (1 + 1e-9) + 1e-9
    assert proved.databases == fleet.databases


@pytest.mark.parametrize("seed", [0, 5, 9])
def test_the_question_in_a_file_is_the_one_that_was_asked(seed: int, tmp_path: Path) -> None:
    fleet = drawn_fleet(seed)
    found = solve_fleet(fleet)
    written(found, tmp_path / "plan.json")
    (part,) = read_fleet_file(tmp_path / "plan.json").parts()
    again = part.fleet if isinstance(part, FleetPlan) else part
    assert again.sites == fleet.sites
    assert again.limits.apart == fleet.limits.apart
    for one, other in zip(again.members, fleet.members, strict=True):
        assert (one.name, one.copies) == (other.name, other.copies)
        assert (one.storage_gb, one.written_gb) == (other.storage_gb, other.written_gb)
        assert one.leader_operations == other.leader_operations
        assert one.present == other.present
        assert (one.problem.instance.counts == other.problem.instance.counts).all()
        assert one.problem.rules.replicas_max == other.problem.rules.replicas_max


def test_the_bound_of_a_search_that_finds_nothing_is_proved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three databases fit two sites in halves alone; the file held prices of another bound."""
    base = random_instance(5, sites=2, clients=2)
    problem = Problem(base, replicas=1, voters=1)
    members = [FleetMember(name, problem, storage_gb=2.0) for name in "abc"]
    found = solve_fleet(FleetProblem(members, SharedLimits(storage_gb=np.full(2, 3.0))))
    assert isinstance(found, NoFleetPlan)
    assert not found.proven
    assert found.prices is not None
    assert found.prices.any()
    written(found, tmp_path / "plan.json")
    outcome = runner(capsys)("check", tmp_path / "plan.json")
    assert outcome.code == 0, outcome.out
    assert "the search found none" in outcome.out


@pytest.mark.parametrize("bound", [True, False])
def test_a_file_without_a_plan_and_without_a_proof_is_read(
    bound: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Fault mended: the file was called malformed (voters: missing key)."""
    fleet = pair(storage_gb=np.full(4, 10.0))
    found = solve_fleet(fleet, FleetSearch(gap=0.0))
    assert isinstance(found, FleetPlan)
    least = found.bound if bound else -math.inf
    none = NoFleetPlan(fleet, False, ("nothing was found",), found.prices, bound=least)
    document = written(none, tmp_path / "plan.json")
    command = runner(capsys)
    outcome = command("check", tmp_path / "plan.json")
    assert command("report", tmp_path / "plan.json", "-o", tmp_path / "page.html").code == 0
    if not bound:
        assert outcome.code == 2
        assert "proved nothing" in outcome.out
        return
    assert outcome.code == 0
    assert "the search found none" in outcome.out
    told = command("check", tmp_path / "plan.json", "--json").document
    assert (told["status"], told["value"]) == ("unknown", None)
    assert told["bound"] == pytest.approx(least)
    document["bound"] = least * 1.01
    (tmp_path / "plan.json").write_text(json.dumps(document))
    assert command("check", tmp_path / "plan.json").code == 2
    document["status"] = "perhaps"
    (tmp_path / "plan.json").write_text(json.dumps(document))
    assert command("check", tmp_path / "plan.json").code == 1


@pytest.fixture(scope="module")
def plan() -> FleetPlan:
    """Two databases that compete for storage."""
    found = solve_fleet(pair(storage_gb=np.full(4, 10.0)), FleetSearch(gap=0.0))
    assert isinstance(found, FleetPlan)
    assert found.prices is not None
    assert found.prices.any()
    return found


Change = Callable[[dict[str, Any], np.random.Generator], None]


def raise_bound(document: dict[str, Any], rng: np.random.Generator) -> None:
    document["bound"] *= 1 + 10.0 ** rng.uniform(-8, 2)
    document["gap"] = max(0.0, 1 - document["bound"] / document["value"])


def change_price(document: dict[str, Any], rng: np.random.Generator) -> None:
    """Make a price so high that the sum over the capacities falls below the claim."""
    row = document["limits"][int(rng.integers(len(document["limits"])))]
    row["price"] = row["price"] * (2 + rng.exponential(2.0)) + document["value"]


def negative_price(document: dict[str, Any], rng: np.random.Generator) -> None:
    document["limits"][int(rng.integers(len(document["limits"])))]["price"] = -rng.exponential(1.0)


def more_capacity(document: dict[str, Any], rng: np.random.Generator) -> None:
    """Widen a limit of the list alone: the question says otherwise."""
    document["limits"][int(rng.integers(len(document["limits"])))]["limit"] *= 1 + rng.random()


def less_capacity(document: dict[str, Any], rng: np.random.Generator) -> None:
    site = int(rng.integers(4))
    document["question"]["limits"]["storage_gb"][site] *= rng.uniform(0.0, 0.9)


def other_site(document: dict[str, Any], rng: np.random.Generator) -> None:
    """Put a database onto the sites of the other, which are full then."""
    one, other = document["plans"]
    for key in ("leader", "voters", "replicas"):
        one[key] = other[key]


def other_value(document: dict[str, Any], rng: np.random.Generator) -> None:
    document["value"] *= 1 - 10.0 ** rng.uniform(-7, -1)


def other_load(document: dict[str, Any], rng: np.random.Generator) -> None:
    document["limits"][int(rng.integers(len(document["limits"])))]["load"] += rng.exponential(1.0)


def larger_database(document: dict[str, Any], rng: np.random.Generator) -> None:
    document["plans"][int(rng.integers(2))]["storage_gb"] += rng.exponential(5.0) + 0.01


def other_demand(document: dict[str, Any], rng: np.random.Generator) -> None:
    counts = document["plans"][int(rng.integers(2))]["counts"]
    place = int(rng.choice(np.flatnonzero(counts)))
    counts[place] *= 1 + rng.exponential(1.0) + 0.01


CHANGES: tuple[Change, ...] = (
    raise_bound, change_price, negative_price, more_capacity, less_capacity, other_site,
    other_value, other_load, larger_database, other_demand,
)  # fmt: skip


def refuses(change: Change, times: int, plan: FleetPlan, folder: Path) -> None:
    document = written(plan, folder / "plan.json")
    check_fleet_file(folder / "plan.json")
    for seed in range(times):
        changed = copy.deepcopy(document)
        change(changed, np.random.default_rng(seed))
        (folder / "changed.json").write_text(json.dumps(changed))
        with pytest.raises((CertificateError, InputError)):
            check_fleet_file(folder / "changed.json")


@pytest.mark.parametrize("change", CHANGES)
def test_changed_files_are_refused(change: Change, plan: FleetPlan, tmp_path: Path) -> None:
    refuses(change, examples(200, 2), plan, tmp_path)


def lies(plan: FleetPlan, times: int) -> None:
    """Prove the bound with a search whose certificates claim too much."""
    assert plan.prices is not None
    honest = prove_fleet([plan], plan.prices, certify_priced, WORK)
    assert honest.bound is not None
    for seed in range(times):
        rng = np.random.default_rng(seed)

        def lie(question: PricedQuestion, rng: np.random.Generator = rng) -> dict[str, Any]:
            certificate: dict[str, Any] = dict(certify_priced(question))
            certificate["bound"] *= 1 + 10.0 ** rng.uniform(-8, 1)
            certificate["granularity"] = 0.0
            return certificate

        with pytest.raises(CertificateError):
            prove_fleet([plan], plan.prices, lie, WORK)


def test_certificates_of_a_search_that_claims_too_much_are_refused(plan: FleetPlan) -> None:
    lies(plan, examples(1000, 2))


@pytest.mark.parametrize(
    ("path", "value", "error"),
    [
        (("plans", 0, "leader"), "Atlantis", "plan 1: leader: unknown site"),
        (("plans", 0, "copies"), 0, "plan 1: copies: too few"),
        (("plans", 1, "database"), 3, "plan 2: database: not text"),
        (("plans", 0, "counts"), [1.0], "plan 1: counts: wrong number of counts"),
        (("plans", 0, "storage_gb"), "much", "plan 1: storage_gb: not a number"),
        (("plans", 0, "constraints"), 7, "plan 1: constraints: unknown"),
        (("plans", 0), 3, "plan 1: not a row"),
        (("plans",), [], "plans: no databases"),
        (("plans",), "none", "plans: not a list"),
        (("databases",), 3, "databases: not the number of this plan"),
        (("question", "limits", "storage_gb"), [1.0], "storage_gb: not a limit for each site"),
        (("question", "limits", "apart"), "a", "apart: not groups of names"),
        (("question", "limits", "headroom"), True, "headroom: not a number"),
        (("question", "limits", "headroom"), 1.0, "headroom: out of range"),
        (("question",), None, "question: the file does not hold its question"),
        (("bound",), "low", "bound: not a number"),
        (("limits", 0, "price"), None, "price: missing key"),
    ],
)
def test_bad_files_name_row_and_field(
    path: tuple[str | int, ...], value: object, error: str, plan: FleetPlan, tmp_path: Path
) -> None:
    document: Any = written(plan, tmp_path / "plan.json")
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises((InputError, CertificateError)) as caught:
        check_fleet_file(tmp_path / "plan.json")
    assert error in str(caught.value)


def test_short_limits_are_data_and_their_prices_prove_it(tmp_path: Path) -> None:
    """Two databases of 10 GB, two replicas each, on four sites of 10, 10, 10 and 3 GB."""
    limits = np.array([10.0, 10.0, 10.0, 3.0])
    fleet = pair(storage_gb=limits)
    found = solve_fleet(fleet)
    assert isinstance(found, NoFleetPlan)
    assert found.proven
    assert not found.oversize
    assert sum(each.short_by for each in found.short) == pytest.approx(10.0)
    assert all(each.price > 0 for each in found.short)
    written(found, tmp_path / "plan.json")
    assert check_fleet_file(tmp_path / "plan.json").bound == math.inf
    roomy = FleetProblem(fleet.members, SharedLimits(storage_gb=np.full(4, 10.0)))
    document = with_question(no_plan_document(found), roomy)
    (tmp_path / "plan.json").write_text(json.dumps(document))
    with pytest.raises((CertificateError, InputError)):
        check_fleet_file(tmp_path / "plan.json")


def test_an_oversize_database_is_named_and_proven(tmp_path: Path) -> None:
    found = solve_fleet(pair(storage_gb=np.full(4, 9.0)))
    assert isinstance(found, NoFleetPlan)
    assert found.oversize == ("a", "b")
    written(found, tmp_path / "plan.json")
    assert check_fleet_file(tmp_path / "plan.json").unplaced == ("a", "b")
