"""Real etcd under the emulated network: the model's latencies, ranking and losses hold.

The machine may be busy, so these limits are wide; the page of the documentation has the figures.
"""

import numpy as np
import pytest

from benchmarks.live.etcd.latency import mean_latencies
from benchmarks.live.etcd.losses import losses
from benchmarks.live.etcd.page import NAMES
from benchmarks.live.latency_tables import software_share
from placement.errors import UnsupportedError

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def rows():
    try:
        return list(mean_latencies(quick=True))
    except UnsupportedError as error:
        pytest.skip(str(error))


def test_mean_latencies_are_those_of_the_evaluator(rows):
    share = software_share(rows, NAMES)
    assert all(-5 < ms < 25 for ms in share.values()), share
    tested = [row for row in rows if row["part"] == "test"]
    assert len(tested) == 3 * 5 * 4
    errors = np.array([r["measured"] - r["predicted"] - share[r["operation"]] for r in tested])
    asked = np.array([row["predicted"] for row in tested])
    # three in four within 5 % or 5 ms; the slowest cases are those a busy machine held up
    assert np.mean(np.abs(errors) <= np.maximum(0.05 * asked, 5)) >= 0.75, errors
    assert np.median(np.abs(errors)) < 5


def test_better_leaders_are_better(rows):
    puts = [row for row in rows if row["part"] == "test" and row["operation"] == "put"]
    leaders = {row["leader"] for row in puts}
    assert len(leaders) == 3
    means = {
        leader: [
            np.mean([row[key] for row in puts if row["leader"] == leader])
            for key in ("predicted", "measured")
        ]
        for leader in leaders
    }
    compared = 0
    for first, (model, real) in means.items():
        for second, (other_model, other_real) in means.items():
            if model < 0.8 * other_model:
                compared += 1
                assert real < other_real, (first, second, means)
    assert compared >= 2


def test_a_lost_leader_loses_no_write_and_its_successor_is_as_fast_as_predicted(rows):
    for row in losses(quick=True):
        assert row["failed"] == 0
        assert row["after"] != row["before"]
        assert row["gap"] < 30
        # the elected leader is one that the model has, and its latency lies in the model's range
        assert row["best ms"] <= row["predicted"] <= row["worst ms"]
        assert abs(row["measured"] - row["predicted"]) < max(0.08 * row["predicted"], 15)
