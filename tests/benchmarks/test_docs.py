"""The tables of docs/benchmarks.md are those of the results in the repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.report import report_text
from placement.report.results import contradictions, read_results

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
    from benchmarks.suites import SUITES

    text = PAGE.read_text(encoding="utf-8")
    assert all(f"| `{name}` |" in text for name in SUITES)
