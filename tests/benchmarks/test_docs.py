"""The generated pages and tables are those of the results in the repository."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from benchmarks.__main__ import _study
from benchmarks.exact import speed
from benchmarks.harness.doc_pages import tables_of, with_tables
from benchmarks.harness.result_files import RESULTS, read_json, read_rows
from benchmarks.harness.study import MODULES
from benchmarks.harness.suites import SUITES
from placement.errors import InputError
from placement.report.result_file import contradictions, read_results

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


def test_every_group_of_questions_was_measured() -> None:
    measured = {row["group"] for row in read_rows(RESULTS / "exact_speed.csv")}
    assert measured == set(read_json(RESULTS / "exact_speed.json"))
    assert measured == {group.name for group in speed.groups(keep=False)}
