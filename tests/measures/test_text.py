"""Measures and limits as text, on the command line, in plan files and in reports."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement.errors import InputError
from placement.io.instance_folder import save_instance
from placement.measures import (
    After,
    Limit,
    Measure,
    MeasureKind,
    mean,
    percentile,
    read_limit,
    read_measure,
    slowest_client,
    within,
)
from placement.testing.small_worlds import random_instance
from tests.cli.command import Run
from tests.effort import examples
from tests.expected import refused

TEXTS = {
    "mean": mean(),
    "p99(writes)": percentile(99, "writes"),
    "p99.9": Measure(MeasureKind.PERCENTILE, 0.999),
    "mean(reads, clients in continent:EU)": mean("reads", "continent:EU"),
    "p99(client frankfurt)": percentile(99, clients="frankfurt"),
    "mean after the loss of any region": mean(after="any region"),
    "mean after the loss of any two sites": Measure(MeasureKind.MEAN, after=After("site", 2)),
    "mean after the loss of any two countries": Measure(
        MeasureKind.MEAN, after=After("country", 2)
    ),
    "mean after the loss of any two bays": Measure(MeasureKind.MEAN, after=After("bay", 2)),
    'mean after the loss of any two "movie"': Measure(MeasureKind.MEAN, after=After("movie", 2)),
    "mean after the loss of eu-west-1": mean(after="eu-west-1"),
    "mean over outages": Measure(MeasureKind.MEAN, over_outages=True),
    "within 100 ms": within(100),
    "slowest client": slowest_client(),
    "slowest client(single_group)": slowest_client("single_group"),
    "cost": Measure(MeasureKind.COST),
    "changes": Measure(MeasureKind.CHANGES),
    "copied GB": Measure(MeasureKind.COPIED),
    "replicas": Measure(MeasureKind.REPLICAS),
    'mean(client "New York")': mean(clients="New York"),
    "mean after the loss of any region, the leader may move, clients move": Measure(
        MeasureKind.MEAN, after=After("region", leader_moves=True, clients_move=True)
    ),
    "p50 after the loss of any region, the leader may move": Measure(
        MeasureKind.PERCENTILE, 0.5, after=After("region", leader_moves=True)
    ),
}


@pytest.mark.parametrize("text", TEXTS)
def test_texts_are_read_and_printed(text: str) -> None:
    assert read_measure(text) == TEXTS[text]
    assert str(TEXTS[text]) == text


@pytest.mark.parametrize(
    ("text", "bound", "said"),
    [
        ("p99(writes)<=150ms", 150.0, "p99(writes) <= 150 ms"),
        ("mean <= 1,000.5 ms", 1000.5, "mean <= 1000.5 ms"),
        ("within 100 ms >= 95 %", 0.95, "within 100 ms >= 95 %"),
        ("within 1,500 ms ≥ 0.999", 0.999, "within 1,500 ms >= 99.9 %"),
        ("cost <= 4000", 4000.0, "cost <= 4,000"),
        ("copied GB <= 50 GB", 50.0, "copied GB <= 50"),
        ("replicas ≤ 5", 5.0, "replicas <= 5"),
    ],
)
def test_limits_are_read_and_printed(text: str, bound: float, said: str) -> None:
    limit = read_limit(text)
    assert limit.bound == bound
    assert str(limit) == said
    assert read_limit(said) == limit


LETTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0") | st.sampled_from(
    '"\\,()<='
)
NAMES = st.text(LETTERS, min_size=1, max_size=6).filter(lambda name: bool(name.strip()))
DOMAINS = st.tuples(NAMES, NAMES).map(":".join)
LOSSES = st.one_of(
    st.builds(
        After, NAMES, st.integers(1, 2), leader_moves=st.booleans(), clients_move=st.booleans()
    ),
    st.builds(After, named=NAMES, leader_moves=st.booleans()),
)
STAY = LOSSES.filter(lambda loss: not loss.clients_move)
PARTS = {
    "operations": st.lists(NAMES, max_size=2).map(tuple),
    "clients": st.lists(NAMES | DOMAINS, max_size=2).map(tuple),
}
MEASURES = st.one_of(
    st.builds(Measure, st.just(MeasureKind.MEAN), after=st.none() | LOSSES, **PARTS),
    st.builds(Measure, st.just(MeasureKind.MEAN), over_outages=st.booleans(), **PARTS),
    st.builds(
        Measure,
        st.just(MeasureKind.PERCENTILE),
        st.floats(0, 1, exclude_min=True),
        after=st.none() | STAY,
        **PARTS,
    ),
    st.builds(
        Measure,
        st.just(MeasureKind.WITHIN),
        st.floats(0, 1e12, exclude_min=True),
        after=st.none() | STAY,
        **PARTS,
    ),
    st.builds(Measure, st.just(MeasureKind.SLOWEST), **PARTS),
    st.sampled_from(["cost", "changes", "copied", "replicas"]).map(
        lambda kind: Measure(MeasureKind(kind))
    ),
)


@settings(max_examples=examples(300), deadline=None)
@given(MEASURES, st.floats(0, 1), st.floats(0, 1e9))
def test_every_measure_and_limit_prints_the_text_that_reads_as_it(
    measure: Measure, share: float, most: float
) -> None:
    assert read_measure(str(measure)) == measure
    limit = Limit(measure, least=share) if measure.share else Limit(measure, most=most)
    assert read_limit(str(limit)) == limit


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("p99 <= 150", "150 ms"),
        ("p99 <= 1.5 s", "1,500 ms"),
        ("mean <= 95 %", "95 ms"),
        ("within 100 ms >= 150 ms", "a share"),
        ("within 100 ms >= 95", "95 %"),
        ("within 100 ms >= 101 %", "<= 1"),
        ("within 100 >= 95 %", "within 100 ms"),
        ("within 100 ms <= 95 %", "other way"),
        ("mean >= 5 ms", "other way"),
        ("cost <= 5 ms", "unit 'ms'"),
        ("cost <= ", "no number"),
        ("cost < 5", "no limit"),
        ("", "keep"),
        ("maen <= 5 ms", "'mean'"),
        ("p0 <= 5 ms", "p above 0"),
        ("p101 <= 5 ms", "at most 100"),
        ("mean(reads <= 5 ms", ","),
        ("mean() <= 5 ms", "reads, writes"),
        ("mean(clients in EU) <= 5 ms", "LEVEL:DOMAIN"),
        ("mean after the loss <= 5 ms", "cannot be read"),
        ("mean soon <= 5 ms", "'soon'"),
        ("cost(reads) <= 5", "is not about some operations"),
        ("cost after the loss of any region <= 5", "not taken after a loss"),
        ("slowest client after the loss of any site <= 5 ms", "not taken after a loss"),
        ("p99 over outages <= 5 ms", "not weighted"),
        ("p99 after the loss of any site, clients move <= 5 ms", "where clients move"),
        ("mean <= -5 ms", "no number"),
        ("mean <= nan ms", "no number"),
    ],
)
def test_what_cannot_be_read_is_named(text: str, part: str) -> None:
    with refused(part):
        read_limit(text)


def test_limits_from_python() -> None:
    assert (mean("reads") <= 40) == read_limit("mean(reads) <= 40 ms")
    assert (within(100) >= 0.95) == read_limit("within 100 ms >= 95 %")
    with pytest.raises(InputError, match="largest value"):
        _ = mean() >= 3
    with pytest.raises(InputError, match="least share"):
        _ = within(100) <= 0.95


QUESTION = ["--replicas", "3..4", "--voters", "3", "--method", "exhaustive"]
LIMITS = [
    "--keep",
    "p90(writes) <= 500 ms",
    "--keep",
    "mean after the loss of any region <= 250 ms",
]


@pytest.fixture
def folder(tmp_path: Path) -> str:
    save_instance(random_instance(1, sites=6, clients=4, prices=True), tmp_path / "six")
    return str(tmp_path / "six")


def _json(command: Run, arguments: list[str], code: int = 0) -> Any:
    return command(*arguments, "--json", code=code).document


def test_solve_shows_limits_values_slack_and_prices(folder: str, command: Run) -> None:
    asked = ["solve", folder, *QUESTION, "--minimise", "cost", *LIMITS, "--spread", "0.2"]
    document = _json(command, [*asked, "--price-limits"])
    rows = document["tail"]["measures"]
    measures = [row["measure"] for row in rows]
    assert measures == ["cost", "p90(writes)", "mean after the loss of any region"]
    assert all(row["slack"] >= 0 for row in rows[1:])
    assert rows[1]["slack"] == 500 - rows[1]["value"]
    assert document["headline"]["unit"] == "USD"
    assert document["headline"]["value"] == rows[0]["value"] == document["cost"]
    assert sum(note.startswith("without the limit") for note in document["notes"]) == 2
    said = command(*asked).out
    assert "What was asked for" in said
    assert "p90(writes)" in said


def test_a_plan_file_holds_the_question_and_its_report_the_table(
    folder: str, tmp_path: Path, command: Run
) -> None:
    plan, page = str(tmp_path / "plan.json"), tmp_path / "page.html"
    asked = ["solve", folder, *QUESTION, "--minimise", "replicas", *LIMITS, "--spread", "0.2"]
    asked += ["--outage", "site-1=0.01", "--keep", "mean over outages <= 200 ms"]
    command(*asked, "--output", plan, code=0)
    assert "mean over outages" in command("show", plan, code=0).out
    command("report", plan, "--output", page, code=0)
    assert "mean after the loss of any region" in page.read_text(encoding="utf-8")
    text = Path(plan).read_text(encoding="utf-8").replace("500 ms", "499 s")
    Path(plan).write_text(text, encoding="utf-8")
    assert "499,000 ms" in command("show", plan, code=1).err


def test_old_options_join_limits(folder: str, command: Run) -> None:
    spread = ["--spread", "0.2"]
    for old, new in (
        (["--percentile", "90"], ["--minimise", "p90"]),
        (["--budget", "30"], ["--keep", "cost <= 30"]),
    ):
        tail = spread if "90" in old else []
        first = _json(command, ["solve", folder, *QUESTION, *old, *tail])
        second = _json(command, ["solve", folder, *QUESTION, *new, *tail])
        assert first["objective"] == second["objective"]
    joined = ["--budget", "30", "--keep", "slowest client <= 300 ms"]
    both = _json(command, ["solve", folder, *QUESTION, *joined])
    assert [row["limit"] for row in both["tail"]["measures"]] == ["", "<= 300 ms", "<= 30"]


def test_compare_evaluate_and_sweep_take_measures(folder: str, command: Run) -> None:
    keep = ["--keep", "slowest client <= 300 ms"]
    asked = ["compare", folder, "--replicas", "3", "--voters", "3", *keep]
    table = _json(command, [*asked, "--methods", "exhaustive"])
    assert table["methods"][0]["status"] == "optimal"
    slow = ["--minimise", "slowest client", "--methods", "exact,kq"]
    said = command("compare", folder, *QUESTION[:4], *slow).out
    assert "slowest client ms" in said
    assert "kq: it takes no measures" in said
    sizes = ["compare", "sizes", folder, *QUESTION, *keep]
    swept = _json(command, sizes)
    assert len(swept["cells"]) == 2
    sites = ["--leader", "site-0", "--voters", "site-0,site-1,site-2"]
    made = ["check", "configuration", folder, *sites, "--replicas", "site-0,site-1,site-2"]
    found = _json(command, [*made, "--keep", "slowest client <= 1 ms"], code=2)
    assert "slowest client is" in found["reasons"][0]


def test_the_front_of_two_measures(folder: str, command: Run) -> None:
    asked = ["compare", "fronts", folder, *QUESTION]
    document = _json(command, [*asked, "--of", "cost", "slowest client"])
    points = document["points"]
    assert document["complete"]
    assert len(points) > 1
    costs = [point["cost"] for point in points]
    assert costs == sorted(costs)
    waits = [point["slowest client"] for point in points]
    assert waits == sorted(waits, reverse=True)
    late = _json(command, [*asked, "--of", "mean", "p90(writes)", "--spread", "0.2"])
    assert late["points"][0]["mean"] == late["points"][0]["mean_latency"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--keep", "p99 <= 100 ms"], "--spread"),
        (["--keep", "mean <= 100"], "100 ms"),
        (["--minimise", "p99"], "--distributions"),
        (["--keep", "mean <= 100 ms", "--spread", "0.2"], "--spread"),
        (["--outage", "site-1=0.1"], "--keep"),
        (["--keep", "changes <= 1"], "--today"),
        (["--minimise", "latency"], "no such measure"),
        (["--minimise", "cost", "--percentile", "99", "--spread", "0.2"], "one of --percentile"),
    ],
)
def test_bad_options_are_named(folder: str, options: list[str], said: str, command: Run) -> None:
    assert said in command("solve", folder, *QUESTION, *options, code=1).err


def test_sweep_and_compare_take_losses(command: Run) -> None:
    asked = ["world27", "--replicas", "3", "--voters", "3"]
    lost = "mean after the loss of any site, clients move"
    worst = _json(command, ["solve", *asked, "--minimise", lost])
    swept = _json(command, ["compare", "sizes", *asked, "--minimise", lost])
    (row,) = swept["cells"]
    assert row["value"] == pytest.approx(worst["headline"]["ms"])
    outages = ["--minimise", "mean over outages", "--outage", "any site=0.001"]
    compared = _json(command, ["compare", *asked, *outages, "--methods", "exact,local-search"])
    weighted = _json(command, ["solve", *asked, *outages])
    assert "\nMinimised    mean over outages: " in command("solve", *asked, *outages).out
    best = compared["methods"][0]
    assert best["status"] == "optimal"
    assert best["objective"] == pytest.approx(weighted["headline"]["ms"])
    worst = command("compare", "sizes", *asked, "--worst", code=1)
    assert "mean after the loss of any site" in worst.err


def test_every_solve_reports_failures(command: Run) -> None:
    document = _json(command, ["solve", "world27", "--replicas", "3", "--voters", "3"])
    found = document["failures"]
    assert {row["lost"] for row in found["each"]} == set(document["replicas"])
    assert found["worst_ms"] == max(row["mean_latency"] for row in found["each"])
    assert {step["leader"] for step in found["failover"]} == set(document["voters"]) - {
        document["leader"]
    }
