"""The benchmark runs in every suite."""

import pytest

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
