"""``placement fleet``: tables in, tables out, the proof again, files that are wrong."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from formulations.fleet import FleetSearch, solve_fleet
from formulations.fleet.pricing import certify_priced
from placement import Problem
from placement.errors import CertificateError, InputError
from placement.fleet import FleetMember, FleetPlan, FleetProblem, NoFleetPlan, SharedLimits
from placement.fleet.fleet_plan import PricedQuestion
from placement.fleet.fleet_tables import (
    fleet_document,
    limits_table,
    no_plan_document,
    payers_table,
    read_fleet_document,
)
from placement.io import save_instance
from placement.io.fleet_plan_file import check_fleet_file, read_fleet_file, with_question
from placement.io.formats.document import Document
from placement.proof.fleet_proof import prove_fleet
from placement.support.work import WORK
from placement.testing import random_instance
from tests.cli.command import Run
from tests.effort import examples
from tests.fleet.test_fleet_search import drawn_fleet, optimum, pair
from tests.io.worlds import small

QUESTION = ("--replicas", "2", "--voters", "1")
DEMAND = """database,client,operation,count
a,Oslo,weak_read,5
a,Lagos,single_group,2
b,Bern,strong_read,9
c,Oslo,weak_read,1
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_instance(small(), tmp_path / "world")
    (tmp_path / "demand.csv").write_text(DEMAND)
    (tmp_path / "databases.csv").write_text("database,storage_gb,copies\na,10,\nb,20,1\nc,5,2\n")
    (tmp_path / "limits.csv").write_text("site,storage_gb\nOslo,30\nRome,\n")
    (tmp_path / "today.csv").write_text(
        "database,site,role\n"
        "a,Oslo,leader\na,Rome,replica\nb,Rome,leader\nb,Oslo,replica\n"
        "c,Oslo,leader\nc,Rome,replica\n"
    )
    return tmp_path


def call(folder: Path, *more: object) -> list[object]:
    tables = ("--demand", folder / "demand.csv", "--databases", folder / "databases.csv")
    return ["fleet", folder / "world", *tables, *QUESTION, *more]


def test_a_plan_within_the_limits_with_its_proof(command: Run, folder: Path) -> None:
    limits = ("--limits", folder / "limits.csv")
    out = command(*call(folder, *limits, "--gap", 0, "-o", folder / "plan.json"), code=0)
    assert "4 databases on 3 sites, 1 shared limits" in out.out
    assert "storage GB at Oslo" in out.out
    assert "left free" not in out.out
    document = json.loads((folder / "plan.json").read_text())
    (limit,) = document["limits"]
    assert limit["load"] <= limit["limit"] == 30
    assert document["bound"] <= document["value"] * (1 + 1e-12)
    assert sum(each["copies"] for each in document["plans"]) == 4


def test_csv_has_a_row_for_each_database(command: Run, folder: Path) -> None:
    out = command(*call(folder, "--csv"), code=0)
    lines = out.out.strip().split("\n")
    assert lines[0].startswith("database,copies,leader,voters,replicas,mean_ms,alone_ms")
    assert [line.split(",")[0] for line in lines[1:]] == ["a", "b", "c"]


def test_check_and_report_know_a_plan_of_a_fleet(command: Run, folder: Path) -> None:
    limits = ("--limits", folder / "limits.csv")
    (folder / "databases.csv").write_text("database,storage_gb,copies\na,10,\nb,20,1\n")
    (folder / "limits.csv").write_text("site,storage_gb,leader_operations\nOslo,30,9\nRome,,\n")
    for name in ("plan.json", "plan.parquet"):
        command(*call(folder, *limits, "-o", folder / name), code=0)
        out = command("check", folder / name, code=0)
        assert out.out.startswith("proved: no plan of the fleet is below")
        out = command("check", folder / name, "--json")
        assert json.loads(out.out)["limits"] == 2
        command("report", folder / name, "-o", folder / f"{name}.html", code=0)
        assert '"constraints"' not in (folder / f"{name}.html").read_text()
    document = json.loads((folder / "plan.json").read_text())
    document["bound"] = document["value"] * 1.01
    document["gap"] = 0.0
    (folder / "plan.json").write_text(json.dumps(document))
    out = command("check", folder / "plan.json", code=2)
    assert out.out.startswith("refused: the prices prove")
    (folder / "plan.parquet").write_bytes((folder / "plan.parquet").read_bytes()[:-9])
    out = command("check", folder / "plan.parquet", code=1)
    assert "not a Parquet file" in out.err


@pytest.mark.parametrize("suffix", ["json", "parquet", "csv"])
def test_files_say_which_limits_are_short(suffix: str, command: Run, folder: Path) -> None:
    (folder / "limits.csv").write_text('site,storage_gb\nOslo,20\nRome,25\n"Washington, DC",20\n')
    (folder / "databases.csv").write_text("database,storage_gb,copies\na,10,3\nb,20,1\nc,5,\n")
    file = folder / f"none.{suffix}"
    out = command(*call(folder, "--limits", folder / "limits.csv", "-o", file), code=2)
    assert "short by" in out.out
    if suffix == "csv":
        assert file.read_text().startswith("limit,short_by,of,price\nstorage GB at")
        return
    proved = command("check", file, code=0)
    assert proved.out.startswith("proved: no plan of the fleet is within all limits")
    command("report", file, "-o", folder / "none.html", code=0)
    assert "Limits that are short" in (folder / "none.html").read_text()


def test_headroom_leaves_a_part_of_every_limit_free(command: Run, folder: Path) -> None:
    """A plan with headroom is the plan of smaller limits, and its file proves it."""
    (folder / "less.csv").write_text("site,storage_gb\nOslo,22.5\nRome,\n")
    files = folder / "asked.json", folder / "less.json"
    asked = ("--limits", folder / "limits.csv", "--headroom", 0.25)
    out = command(*call(folder, *asked, "--gap", 0, "-o", files[0]), code=0)
    assert "1 shared limits, 25 % of each left free" in out.out
    command(*call(folder, "--limits", folder / "less.csv", "--gap", 0, "-o", files[1]), code=0)
    found, other = (json.loads(file.read_text()) for file in files)
    assert found["question"]["limits"]["headroom"] == 0.25
    assert found["limits"] == other["limits"]
    assert found["plans"] == other["plans"]
    assert command("check", files[0]).code == 0
    found["question"]["limits"]["headroom"] = 0.75
    files[0].write_text(json.dumps(found))
    assert command("check", files[0]).code != 0
    assert "--headroom" in command(*call(folder, *asked[:3], 1)).err


def test_databases_apart_need_sites_of_their_own(command: Run, folder: Path) -> None:
    out = command(*call(folder, "--apart", "a,b"))
    assert out.code in (2, 3)  # two databases of two replicas each do not fit three sites apart
    assert "databases of group 1 at" in out.out


@pytest.mark.parametrize(
    ("file", "text", "error"),
    [
        ("limits.csv", "site,storage_gb\nParis,3\n", "limits.csv, row 2: site: unknown site"),
        ("limits.csv", "site,storage_gb\nOslo,-3\n", "limits.csv, row 2: storage_gb: negative"),
        ("limits.csv", "site,gb\nOslo,3\n", "limits.csv: header: no limits"),
        ("limits.csv", "site,reads_served\nOslo,3\n", "reads_served: this limit is gone"),
        ("limits.csv", "site,storage_gb\nOslo,3\nOslo,4\n", "row 3: site: site given twice"),
        ("databases.csv", "database,copies\na,1.5\n", "row 2: copies: no number of copies"),
        ("databases.csv", "database,copies\nz,1\n", "row 2: database: unknown database"),
        ("demand.csv", "client,operation,count\nOslo,weak_read,5\n", "database: no such column"),
        ("demand.csv", "database,client,operation,count\na,Oslo,weak_read,0\n",
         "a database without operations: got 'a'"),
    ],
)  # fmt: skip
def test_bad_tables_name_file_row_and_field(
    file: str, text: str, error: str, command: Run, folder: Path
) -> None:
    (folder / file).write_text(text)
    out = command(*call(folder, "--limits", folder / "limits.csv"), code=1)
    assert error in out.err


def test_a_generated_fleet_reports_its_rounds(command: Run) -> None:
    out = command("fleet", "world27", "--fleet", 5, *QUESTION, "--progress", code=0)
    assert "round 1  relaxation" in out.err


def test_parquet_has_the_table_and_the_proof(command: Run, folder: Path) -> None:
    limits = ("--limits", folder / "limits.csv")
    for suffix in ("json", "parquet"):
        command(*call(folder, *limits, "--gap", 0, "-o", folder / f"plan.{suffix}"), code=0)
        again = command("check", folder / f"plan.{suffix}")
        assert again.out.startswith("proved: no plan of the fleet is below")
    one, other = (read_fleet_document(folder / f"plan.{suffix}") for suffix in ("json", "parquet"))
    assert one == other
    (folder / "plan.parquet").write_bytes(b"PAR1 and more")
    refused = command("check", folder / "plan.parquet", code=1)
    assert "not a Parquet file" in refused.err


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_the_page_shows_limits_and_databases(command: Run, folder: Path, suffix: str) -> None:
    (folder / "few.csv").write_text("site,storage_gb\nOslo,30\nRome,22\n")
    question = call(
        folder, "--limits", folder / "few.csv", "--deployments", folder / "today.csv", "-o"
    )
    plan, page = folder / f"plan.{suffix}", folder / "page.html"
    assert command(*question, plan).code == 0
    command("report", plan, "-o", page, code=0)
    text = page.read_text(encoding="utf-8")
    document = read_fleet_document(plan)
    for limit in document["limits"]:
        assert limit["name"] in text
        assert f"{limit['load']:,.0f}" in text
    assert document["limits"][0]["today"] is not None
    assert "Databases that pay most for sharing" in text
    assert "Gap of the whole fleet" in text
    assert "<script src" not in text


def test_demand_in_parts(command: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of Parquet files, read two rows at a time, is the table in one file."""
    from placement.io.formats import column_reader

    whole = command(*call(folder, "--csv"))
    rows = pd.read_csv(folder / "demand.csv")
    parts = folder / "parts"
    parts.mkdir()
    more = pd.concat([rows, rows.assign(count=0)]).sample(frac=1, random_state=1)
    wide = rows.pivot(index=["database", "client"], columns="operation", values="count").fillna(0)
    monkeypatch.setattr(column_reader, "_BATCH", 2)
    for name, table in (("long", more), ("wide", wide.reset_index())):
        for file in parts.iterdir():
            file.unlink()
        table.iloc[:2].to_parquet(parts / "a.parquet")
        table.iloc[2:].to_parquet(parts / "b.parquet")
        question = call(folder, "--csv")
        question[question.index("--demand") + 1] = parts
        found = command(*question, code=0)
        assert sorted(found.out.split("\n")) == sorted(whole.out.split("\n")), name
    rows.assign(client=["Oslo", "Lagos", "Bern", "Nowhere"]).to_parquet(parts / "b.parquet")
    refused = command(*question, code=1)
    assert "b.parquet, row 4: client: no client of the instance: got 'Nowhere'" in refused.err
    for file in parts.iterdir():
        file.unlink()
    assert "no Parquet files" in command(*question).err


def test_generated_fleets_have_sizes_and_hours(command: Run, tmp_path: Path) -> None:
    asked = ("fleet", "world27", "--fleet", 6, *QUESTION)
    plans = {}
    for hour in (None, 2, 14):
        more = () if hour is None else ("--fleet-hour", hour)
        command(*asked, *more, "-o", tmp_path / f"{hour}.json", code=0)
        plans[hour] = json.loads((tmp_path / f"{hour}.json").read_text())["plans"]
    sizes = [[one["storage_gb"] for one in rows] for rows in plans.values()]
    assert sizes[0] == sizes[1] == sizes[2]
    assert len(set(sizes[0])) == 6
    early, late = ([one["counts"] for one in plans[hour]] for hour in (2, 14))
    assert early != late
    out = command("fleet", "world27", "--demand", "none.csv", "--fleet-hour", 3, *QUESTION, code=1)
    assert "--fleet-hour" in out.err


def test_generated_databases_that_draw_no_operation_keep_what_they_expect(
    command: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a fleet of thousands the smallest may issue nothing in the day that is drawn."""
    from placement.overtime.replay import generated_fleets

    drawn = generated_fleets.fleet_trace

    def quiet(*args: object, **named: object) -> object:
        trace, leaders = drawn(*args, **named)  # type: ignore[arg-type]
        trace.counts[1] = 0.0
        return trace, leaders

    monkeypatch.setattr(generated_fleets, "fleet_trace", quiet)
    out = command("fleet", "world27", "--fleet", 3, "--replicas", 3, "--voters", 3,
                    "-o", folder / "plan.json")  # fmt: skip
    assert out.code == 0, out.err
    assert len(json.loads((folder / "plan.json").read_text())["plans"]) == 3


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


def test_the_bound_of_a_search_that_finds_nothing_is_proved(tmp_path: Path, command: Run) -> None:
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
    outcome = command("check", tmp_path / "plan.json", code=0)
    assert "the search found none" in outcome.out


@pytest.mark.parametrize("bound", [True, False])
def test_a_file_without_a_plan_and_without_a_proof_is_read(
    bound: bool, tmp_path: Path, command: Run
) -> None:
    """Fault mended: the file was called malformed (voters: missing key)."""
    fleet = pair(storage_gb=np.full(4, 10.0))
    found = solve_fleet(fleet, FleetSearch(gap=0.0))
    assert isinstance(found, FleetPlan)
    least = found.bound if bound else -math.inf
    none = NoFleetPlan(fleet, False, ("nothing was found",), found.prices, bound=least)
    document = written(none, tmp_path / "plan.json")
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


def test_tables_of_a_fleet_take_rows_without_payments_and_show_small_numbers() -> None:
    for document in ({"value": 1.0}, {"value": 1.0, "plans": [{"database": "a"}, {"paid": None}]}):
        assert payers_table(Document("", "", document), 5).rows == ()
    limits = [{"name": "x", "load": 0.04, "limit": 20.0, "price": 3e-5}]
    columns = limits_table(Document("", "", {"limits": limits})).columns
    assert [column.decimals for column in columns] == [None, 4, 4, 1, 7]
