"""The benchmark runs in every suite."""

import pytest

from benchmarks.online import reads as online_reads


@pytest.mark.parametrize("suite", sorted(online_reads.SUITES))
def test_a_cell_of_every_suite(suite):
    *_, cell = online_reads.SUITES[suite]()
    row = cell.run(0, 300)
    assert ("suite", *row) == online_reads.COLUMNS
    assert float(row["throughput"]) > 0


def test_common_random_numbers():
    """Two rules of a suite see the same operations."""
    first, second, *_ = online_reads.clients()
    assert first.run(1, 300)["reads"] == second.run(1, 300)["reads"]
