"""Real PostgreSQL under the emulated network: the model's latencies hold."""

import numpy as np
import pytest

from benchmarks.live.latency_tables import software_share
from benchmarks.live.postgresql.study import NAMES, load, measure
from placement.errors import UnsupportedError

pytestmark = pytest.mark.live


def test_mean_latencies_are_those_of_the_evaluator():
    try:
        rows = list(measure(quick=True))
    except UnsupportedError as error:
        pytest.skip(str(error))
    share = software_share(rows, NAMES)
    assert all(-5 < ms < 25 for ms in share.values()), share
    tested = [row for row in rows if row["part"] == "test"]
    assert len(tested) == 2 * 5 * 3
    errors = np.array([r["measured"] - r["predicted"] - share[r["operation"]] for r in tested])
    asked = np.array([row["predicted"] for row in tested])
    assert np.mean(np.abs(errors) <= np.maximum(0.05 * asked, 5)) >= 0.75, errors
    assert np.median(np.abs(errors)) < 5


def test_few_writes_at_a_time_take_what_the_evaluator_says():
    try:
        few, more = load(quick=True)
    except UnsupportedError as error:
        pytest.skip(str(error))
    assert -5 < few["excess"] < 25
    assert more["workers"] == 16 * few["workers"]
    assert more["rate"] > 4 * few["rate"]
