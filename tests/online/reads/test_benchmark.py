"""The benchmark runs in every suite, and the published page is what its results say."""

import pytest

from benchmarks.online.reads import report as online_reads_report
from benchmarks.online.reads import study as online_reads


@pytest.mark.parametrize("suite", sorted(online_reads.SUITES))
def test_a_cell_of_every_suite(suite):
    cell = online_reads.cells([suite])[-1]
    row = cell.run(0, 300)
    assert tuple(row) == online_reads.COLUMNS
    assert float(row["throughput"]) > 0
    assert row["suite"] == suite


def test_common_random_numbers():
    """Two rules of a suite see the same operations."""
    first, second = online_reads.cells(["clients"])[:2]
    assert first.run(1, 300)["reads"] == second.run(1, 300)["reads"]


def test_the_page_says_what_was_measured(capsys):
    assert online_reads_report.report(write_docs=False) == 0
    page = online_reads_report.PAGE.read_text(encoding="utf-8")
    assert capsys.readouterr().out.rstrip("\n") == page.rstrip("\n")
