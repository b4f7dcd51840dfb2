"""``placement fleet``: tables in, tables out, the proof again."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from placement.fleet.fleet_tables import read_fleet_document
from placement.io import save_instance
from tests.cli.command import Run, runner
from tests.io.worlds import small

QUESTION = ("--replicas", "2", "--voters", "1")
DEMAND = """database,client,operation,count
a,Oslo,weak_read,5
a,Lagos,single_group,2
b,Bern,strong_read,9
c,Oslo,weak_read,1
"""


@pytest.fixture
def placement(capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the command line in this process."""
    return runner(capsys)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Folder with an instance and the tables of a fleet."""
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


def test_a_plan_within_the_limits_with_its_proof(placement: Run, folder: Path) -> None:
    limits = ("--limits", folder / "limits.csv")
    out = placement(*call(folder, *limits, "--gap", 0, "-o", folder / "plan.json"))
    assert out.code == 0, out.err
    assert "4 databases on 3 sites, 1 shared limits" in out.out
    assert "storage GB at Oslo" in out.out
    assert "left free" not in out.out
    document = json.loads((folder / "plan.json").read_text())
    (limit,) = document["limits"]
    assert limit["load"] <= limit["limit"] == 30
    assert document["bound"] <= document["value"] * (1 + 1e-12)
    assert sum(each["copies"] for each in document["plans"]) == 4


def test_csv_has_a_row_for_each_database(placement: Run, folder: Path) -> None:
    out = placement(*call(folder, "--csv"))
    assert out.code == 0
    lines = out.out.strip().split("\n")
    assert lines[0].startswith("database,copies,leader,voters,replicas,mean_ms,alone_ms")
    assert [line.split(",")[0] for line in lines[1:]] == ["a", "b", "c"]


def test_check_and_report_know_a_plan_of_a_fleet(placement: Run, folder: Path) -> None:
    limits = ("--limits", folder / "limits.csv")
    (folder / "databases.csv").write_text("database,storage_gb,copies\na,10,\nb,20,1\n")
    (folder / "limits.csv").write_text("site,storage_gb,leader_operations\nOslo,30,9\nRome,,\n")
    for name in ("plan.json", "plan.parquet"):
        out = placement(*call(folder, *limits, "-o", folder / name))
        assert out.code == 0, out.err
        out = placement("check", folder / name)
        assert out.code == 0, out.err
        assert out.out.startswith("proved: no plan of the fleet is below")
        out = placement("check", folder / name, "--json")
        assert json.loads(out.out)["limits"] == 2
        out = placement("report", folder / name, "-o", folder / f"{name}.html")
        assert out.code == 0, out.err
        assert '"constraints"' not in (folder / f"{name}.html").read_text()
    document = json.loads((folder / "plan.json").read_text())
    document["bound"] = document["value"] * 1.01
    document["gap"] = 0.0
    (folder / "plan.json").write_text(json.dumps(document))
    out = placement("check", folder / "plan.json")
    assert out.code == 2
    assert out.out.startswith("refused: the prices prove")
    (folder / "plan.parquet").write_bytes((folder / "plan.parquet").read_bytes()[:-9])
    out = placement("check", folder / "plan.parquet")
    assert out.code == 1
    assert "not a Parquet file" in out.err


@pytest.mark.parametrize("suffix", ["json", "parquet", "csv"])
def test_files_say_which_limits_are_short(suffix: str, placement: Run, folder: Path) -> None:
    (folder / "limits.csv").write_text('site,storage_gb\nOslo,20\nRome,25\n"Washington, DC",20\n')
    (folder / "databases.csv").write_text("database,storage_gb,copies\na,10,3\nb,20,1\nc,5,\n")
    file = folder / f"none.{suffix}"
    out = placement(*call(folder, "--limits", folder / "limits.csv", "-o", file))
    assert out.code == 2
    assert "short by" in out.out
    if suffix == "csv":
        assert file.read_text().startswith("limit,short_by,of,price\nstorage GB at")
        return
    proved = placement("check", file)
    assert proved.code == 0, proved.err
    assert proved.out.startswith("proved: no plan of the fleet is within all limits")
    out = placement("report", file, "-o", folder / "none.html")
    assert out.code == 0, out.err
    assert "Limits that are short" in (folder / "none.html").read_text()


def test_headroom_leaves_a_part_of_every_limit_free(placement: Run, folder: Path) -> None:
    """A plan with headroom is the plan of smaller limits, and its file proves it."""
    (folder / "less.csv").write_text("site,storage_gb\nOslo,22.5\nRome,\n")
    files = folder / "asked.json", folder / "less.json"
    asked = ("--limits", folder / "limits.csv", "--headroom", 0.25)
    out = placement(*call(folder, *asked, "--gap", 0, "-o", files[0]))
    assert out.code == 0, out.err
    assert "1 shared limits, 25 % of each left free" in out.out
    less = placement(*call(folder, "--limits", folder / "less.csv", "--gap", 0, "-o", files[1]))
    assert less.code == 0, less.err
    found, other = (json.loads(file.read_text()) for file in files)
    assert found["question"]["limits"]["headroom"] == 0.25
    assert found["limits"] == other["limits"]
    assert found["plans"] == other["plans"]
    assert placement("check", files[0]).code == 0
    found["question"]["limits"]["headroom"] = 0.75
    files[0].write_text(json.dumps(found))
    assert placement("check", files[0]).code != 0
    assert "--headroom" in placement(*call(folder, *asked[:3], 1)).err


def test_databases_apart_need_sites_of_their_own(placement: Run, folder: Path) -> None:
    out = placement(*call(folder, "--apart", "a,b"))
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
    file: str, text: str, error: str, placement: Run, folder: Path
) -> None:
    (folder / file).write_text(text)
    out = placement(*call(folder, "--limits", folder / "limits.csv"))
    assert out.code == 1
    assert error in out.err


def test_a_generated_fleet_reports_its_rounds(placement: Run) -> None:
    out = placement("fleet", "world27", "--fleet", 5, *QUESTION, "--progress")
    assert out.code == 0
    assert "round 1  relaxation" in out.err


def test_parquet_has_the_table_and_the_proof(placement: Run, folder: Path) -> None:
    limits = ("--limits", folder / "limits.csv")
    for suffix in ("json", "parquet"):
        out = placement(*call(folder, *limits, "--gap", 0, "-o", folder / f"plan.{suffix}"))
        assert out.code == 0, out.err
        again = placement("check", folder / f"plan.{suffix}")
        assert again.out.startswith("proved: no plan of the fleet is below")
    one, other = (read_fleet_document(folder / f"plan.{suffix}") for suffix in ("json", "parquet"))
    assert one == other
    (folder / "plan.parquet").write_bytes(b"PAR1 and more")
    refused = placement("check", folder / "plan.parquet")
    assert refused.code == 1
    assert "not a Parquet file" in refused.err


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_the_page_shows_limits_and_databases(placement: Run, folder: Path, suffix: str) -> None:
    (folder / "few.csv").write_text("site,storage_gb\nOslo,30\nRome,22\n")
    question = call(
        folder, "--limits", folder / "few.csv", "--deployments", folder / "today.csv", "-o"
    )
    plan, page = folder / f"plan.{suffix}", folder / "page.html"
    assert placement(*question, plan).code == 0
    out = placement("report", plan, "-o", page)
    assert out.code == 0, out.err
    text = page.read_text(encoding="utf-8")
    document = read_fleet_document(plan)
    for limit in document["limits"]:
        assert limit["name"] in text
        assert f"{limit['load']:,.0f}" in text
    assert document["limits"][0]["today"] is not None
    assert "Databases that pay most for sharing" in text
    assert "Gap of the whole fleet" in text
    assert "<script src" not in text


def test_demand_in_parts(placement: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder of Parquet files, read two rows at a time, is the table in one file."""
    from placement.io.formats import column_reader

    whole = placement(*call(folder, "--csv"))
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
        found = placement(*question)
        assert found.code == 0, found.err
        assert sorted(found.out.split("\n")) == sorted(whole.out.split("\n")), name
    rows.assign(client=["Oslo", "Lagos", "Bern", "Nowhere"]).to_parquet(parts / "b.parquet")
    refused = placement(*question)
    assert refused.code == 1
    assert "b.parquet, row 4: client: no client of the instance: got 'Nowhere'" in refused.err
    for file in parts.iterdir():
        file.unlink()
    assert "no Parquet files" in placement(*question).err


def test_generated_fleets_have_sizes_and_hours(placement: Run, tmp_path: Path) -> None:
    asked = ("fleet", "world27", "--fleet", 6, *QUESTION)
    plans = {}
    for hour in (None, 2, 14):
        more = () if hour is None else ("--fleet-hour", hour)
        out = placement(*asked, *more, "-o", tmp_path / f"{hour}.json")
        assert out.code == 0, out.err
        plans[hour] = json.loads((tmp_path / f"{hour}.json").read_text())["plans"]
    sizes = [[one["storage_gb"] for one in rows] for rows in plans.values()]
    assert sizes[0] == sizes[1] == sizes[2]
    assert len(set(sizes[0])) == 6
    early, late = ([one["counts"] for one in plans[hour]] for hour in (2, 14))
    assert early != late
    out = placement("fleet", "world27", "--demand", "none.csv", "--fleet-hour", 3, *QUESTION)
    assert out.code == 1
    assert "--fleet-hour" in out.err


def test_generated_databases_that_draw_no_operation_keep_what_they_expect(
    placement: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a fleet of thousands the smallest may issue nothing in the day that is drawn."""
    from placement.overtime.replay import generated_fleets

    drawn = generated_fleets.fleet_trace

    def quiet(*args: object, **named: object) -> object:
        trace, leaders = drawn(*args, **named)  # type: ignore[arg-type]
        trace.counts[1] = 0.0
        return trace, leaders

    monkeypatch.setattr(generated_fleets, "fleet_trace", quiet)
    out = placement("fleet", "world27", "--fleet", 3, "--replicas", 3, "--voters", 3,
                    "-o", folder / "plan.json")  # fmt: skip
    assert out.code == 0, out.err
    assert len(json.loads((folder / "plan.json").read_text())["plans"]) == 3


def test_options_that_are_gone_name_what_took_their_place(placement: Run, folder: Path) -> None:
    for option, place in (
        ("--check", "placement check FILE"),
        ("--moves", "lists the new"),
    ):
        out = placement(*call(folder, option, folder / "plan.json"))
        assert out.code == 1
        assert f"{option}: this option is gone: expected " in out.err
        assert place in " ".join(out.err.split())
