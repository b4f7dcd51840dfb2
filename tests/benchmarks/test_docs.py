"""The generated pages and tables are those of the results in the repository."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

import placement
from benchmarks.__main__ import _study
from benchmarks.exact import speed as exact_speed
from benchmarks.exact import speed_table as exact_speed_table
from benchmarks.exact import sweep as exact_sweep
from benchmarks.harness.doc_pages import tables_of, with_tables
from benchmarks.harness.result_files import RESULTS, read_json, read_rows
from benchmarks.harness.study import MODULES
from benchmarks.harness.suites import SUITES
from placement.errors import InputError, SolverError
from placement.report.result_file import contradictions, read_results
from placement.testing import random_instance

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "benchmarks.md"


REPORTED = {
    name: study
    for name, study in ((name, _study(name)) for name in (*MODULES, *SUITES))
    if study.report is not None
}


@pytest.mark.parametrize("name", REPORTED)
def test_a_page_is_what_its_results_say(name: str) -> None:
    """Each page, or each table of it, is what `--write-docs` writes."""
    study = REPORTED[name]
    assert study.new_page() == (ROOT / study.page).read_text(encoding="utf-8")


def test_every_generated_table_has_a_study() -> None:
    """No page has marks of a table that no study fills."""
    filled: dict[str, set[str]] = defaultdict(set)
    for study in REPORTED.values():
        assert study.report is not None
        found = study.report()
        filled[study.page] |= set() if isinstance(found, str) else set(found)
    for page in sorted((ROOT / "docs").rglob("*.md")):
        marked = set(tables_of(page.read_text(encoding="utf-8")))
        assert marked == filled[page.relative_to(ROOT).as_posix()], page.name


@pytest.mark.parametrize("name", [path.name for path in sorted(RESULTS.glob("*.jsonl"))])
def test_methods_do_not_contradict_each_other(name: str) -> None:
    results = read_results(RESULTS / name)
    assert results.rows
    assert contradictions(results.rows) == ()


def test_unknown_tables_are_refused() -> None:
    with pytest.raises(InputError, match="'no such'"):
        with_tables("<!-- begin some -->\nold\n<!-- end -->\n", {"no such": "new"})


def test_every_suite_is_described() -> None:
    """No suite is missing from the page."""
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in text for name in SUITES)


def test_the_page_on_peers_quotes_the_tables() -> None:
    """Each time that it names as measured stands in a table of the benchmarks."""
    text = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    measured = re.findall(r"\*Measured:\*(.+?)\n\n", text, re.DOTALL)
    quoted = [time for part in measured for time in re.findall(r"\d+(?:\.\d+)? m?s\b", part)]
    quoted = [time for time in quoted if time != "120 s"]  # the limit
    assert len(quoted) == 7
    cells = PAGE.read_text(encoding="utf-8")
    assert [time for time in quoted if f"| {time} |" not in cells] == []


def test_all_contingency_methods_found_the_optimum() -> None:
    rows = read_rows(RESULTS / "contingency_methods.csv")
    assert len(rows) == 12
    assert {row["gap %"] for row in rows} == {"0.00"}


def test_ratios_of_sweeps_are_those_of_their_times() -> None:
    for row in read_rows(RESULTS / "exact_sweep.csv"):
        ratio = float(row["sweep ms"]) / float(row["slowest single ms"])
        # the quotient has two digits after the point, the times three
        rounding = 0.005 + 0.0006 * (1 + ratio) / float(row["slowest single ms"])
        assert abs(ratio - float(row["sweep / slowest"])) <= rounding
        assert float(row["median single ms"]) <= float(row["slowest single ms"])


def test_every_group_of_questions_was_measured() -> None:
    measured = {row["group"] for row in read_rows(RESULTS / "exact_speed.csv")}
    runs = read_json(RESULTS / "exact_speed.json")
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
