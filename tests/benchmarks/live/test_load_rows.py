"""Rows of load: what is counted of concurrent writes."""

import numpy as np
import pytest

from benchmarks.live.layouts import Layout
from benchmarks.live.load_rows import load_row, load_table

_LAYOUT = Layout("drawn", ("a", "b", "c"), (), ("a",))


def _writes(begin: float, end: float, ms: float) -> list[tuple[float, float]]:
    """Return writes one after the other, each of the same ms."""
    return [(float(at), ms) for at in np.arange(begin + ms / 1000, end + 1e-9, ms / 1000)]


def test_only_writes_count_that_end_while_all_places_write():
    found = {"near": _writes(100, 110, 50), "far": _writes(101, 108, 200)}
    row = load_row(_LAYOUT, 2, {"near": 40, "far": 200}, found, 0.04)
    # from 102, a second after the last place began, to 108, when the first place ended
    assert row["n"] == pytest.approx(6 / 0.05 + 6 / 0.2, abs=3)
    assert row["rate"] == pytest.approx(25, abs=0.6)
    assert row["excess"] == pytest.approx(10 * 20 / 25, abs=0.2)  # 20 of 25 writes take 10 ms more
    assert row["predicted"] == 120


def test_a_slow_start_of_connections_is_not_counted():
    slow = [(100.9, 900.0)]
    steady = {"near": slow + _writes(101, 106, 50)}
    assert load_row(_LAYOUT, 1, {"near": 50}, steady, 0.0)["excess"] == pytest.approx(0, abs=1e-6)


def test_the_table_names_what_is_concurrent():
    row = load_row(_LAYOUT, 2, {"near": 100}, {"near": _writes(0, 10, 150)}, 0.01)
    table = load_table([row], "writes in flight")
    assert "writes in flight" in table.splitlines()[0]
    assert "+50 %" in table
