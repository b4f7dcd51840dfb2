"""The tables of docs/benchmarks.md are those of the results in the repository."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import placement
from benchmarks.exact import speed as exact_speed
from benchmarks.exact import speed_table as exact_speed_table
from benchmarks.exact import sweep as exact_sweep
from benchmarks.harness.result_tables import report_text
from placement.errors import SolverError
from placement.report.result_file import contradictions, read_results
from placement.testing import random_instance

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"
BLOCK = re.compile(r"<!-- begin (\S+) -->\n(.*?)<!-- end -->", re.DOTALL)


@pytest.mark.parametrize(("name", "shown"), BLOCK.findall(PAGE.read_text(encoding="utf-8")))
def test_tables_are_those_of_the_results(name: str, shown: str) -> None:
    """Each block is what `python -m benchmarks report FILE --markdown` prints."""
    results = read_results(ROOT / "benchmarks" / "results" / name)
    assert results.rows
    assert contradictions(results.rows) == ()
    assert shown.strip() == report_text(results, markdown=True).strip()


def test_every_suite_is_described() -> None:
    """No suite is missing from the page."""
    from benchmarks.harness.suites import SUITES

    text = PAGE.read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in text for name in SUITES)


FORMULATIONS = ROOT / "docs" / "formulations.md"


@pytest.mark.parametrize(
    ("name", "shown"), BLOCK.findall(FORMULATIONS.read_text(encoding="utf-8")), ids=lambda x: x[:20]
)
def test_strength_is_that_of_the_results(name: str, shown: str) -> None:
    """Each table of recipes holds the rows of its file, with some of their columns."""
    heads, _, *body = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in shown.splitlines()
    ]
    with (ROOT / "benchmarks" / "results" / name).open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert rows
    assert body == [[row[head] for head in heads] for row in rows]


def test_the_page_on_peers_quotes_the_tables() -> None:
    """Each time that it names as measured stands in a table of the benchmarks."""
    text = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    measured = re.findall(r"\*Measured:\*(.+?)\n\n", text, re.DOTALL)
    quoted = [time for part in measured for time in re.findall(r"\d+(?:\.\d+)? m?s\b", part)]
    quoted = [time for time in quoted if time != "120 s"]  # the limit
    assert len(quoted) == 7
    cells = PAGE.read_text(encoding="utf-8")
    assert [time for time in quoted if f"| {time} |" not in cells] == []


def test_modelled_rtts_are_as_good_as_the_file_says() -> None:
    """The table of docs/datasets.md is that of results/rtt_model.json."""
    text = (ROOT / "docs" / "datasets.md").read_text(encoding="utf-8")
    results = ROOT / "benchmarks" / "results" / "rtt_model.json"
    lines = json.loads(results.read_text(encoding="utf-8"))["table"]
    assert len(lines) == 6
    rows = []
    for name, error, broken, *inflation in (line.values() for line in lines):
        known = "–" if error is None else f"{error:.1f} %"
        percentiles = " / ".join(f"{value:.2f}" for value in inflation)
        rows.append(f"| {name} | {known} | {broken:.1f} % | {percentiles} |")
    assert "\n".join(rows) in text


def test_times_of_contingency_methods_are_those_of_the_file() -> None:
    """The table of docs/contingency.md is that of results/contingency_methods.csv."""
    text = (ROOT / "docs" / "contingency.md").read_text(encoding="utf-8")
    results = ROOT / "benchmarks" / "results" / "contingency_methods.csv"
    with results.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for sites in ("11", "14", "27"):
        found = [row for row in rows if row["sites"] == sites]
        assert [row["method"] for row in found] == ["exhaustive", "local-search", "cp-sat", "milp"]
        assert {row["gap %"] for row in found} == {"0.00"}  # all of them found the optimum
        cells = [
            row["CPU s"]
            if row["status"] == "optimal" or row["method"] == "local-search"
            else f"gap {row['own gap %']} %"
            for row in found
        ]
        assert " | ".join(cells) + " |" in text


def test_the_table_of_sweeps_is_that_of_the_file() -> None:
    """The table of docs/methods.md is what `run exact.sweep --write-docs` writes."""
    text = exact_sweep.PAGE.read_text(encoding="utf-8")
    shown = text.split(exact_sweep.BEGIN)[1].split(exact_sweep.END)[0]
    with exact_sweep.RESULTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert shown.strip() == exact_sweep.table(rows)
    for row in rows:
        ratio = float(row["sweep ms"]) / float(row["slowest single ms"])
        # the quotient has two digits after the point, the times three
        rounding = 0.005 + 0.0006 * (1 + ratio) / float(row["slowest single ms"])
        assert abs(ratio - float(row["sweep / slowest"])) <= rounding
        assert float(row["median single ms"]) <= float(row["slowest single ms"])


def test_the_table_of_speed_is_that_of_the_files() -> None:
    """The table of docs/methods.md is what `run exact.speed --write-docs` writes."""
    text = exact_speed.PAGE.read_text(encoding="utf-8")
    shown = text.split(exact_speed_table.BEGIN)[1].split(exact_speed_table.END)[0]
    with (exact_speed.RESULTS / "exact_speed.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    runs = json.loads((exact_speed.RESULTS / "exact_speed.json").read_text(encoding="utf-8"))
    assert shown.strip() == exact_speed_table.table(rows, runs)
    measured = {row["group"] for row in rows}
    assert measured == set(exact_speed_table.GROUPS) == set(runs) - {exact_speed_table.FIRST}
    assert measured == {group.name for group in exact_speed.groups(keep=False)}


def test_a_sweep_is_measured_against_what_each_question_finds(monkeypatch) -> None:
    """Every size that fits is timed, and a sweep that finds something else is refused."""
    instance = random_instance(2, sites=6)
    single, together = exact_sweep.measure(instance, voters=5, repeat=1)
    assert list(single) == [5, 6]
    assert min(single.values()) > 0 < together
    true_sweep = placement.sweep

    def other(*args, **kwargs):
        table = true_sweep(*args, **kwargs)
        table["score"] *= 1.001
        return table

    monkeypatch.setattr(placement, "sweep", other)
    with pytest.raises(SolverError, match=r"\|R\| = 5 of the sweep"):
        exact_sweep.measure(instance, voters=5, repeat=1)
