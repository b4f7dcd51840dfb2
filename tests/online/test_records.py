"""The streams are independent of each other; the records say what they hold."""

import argparse
import math

import numpy as np
import pytest

from benchmarks.harness.experiments import Experiments
from benchmarks.harness.result_files import read_json, read_rows
from placement.errors import InputError
from placement.online import CAUSES, spawn_streams, summarise


def test_a_stream_does_not_depend_on_how_much_another_draws():
    plain, greedy = spawn_streams(3), spawn_streams(3)
    greedy["speeds"].random(1000)
    for cause in CAUSES[1:]:
        assert np.array_equal(plain[cause].random(50), greedy[cause].random(50))


@pytest.mark.parametrize("seed", [-1, 1.5, True, "1", None])
def test_bad_seeds(seed):
    with pytest.raises(InputError, match="seed"):
        spawn_streams(seed)


def test_bad_causes():
    with pytest.raises(InputError, match="causes"):
        spawn_streams(0, ("a", "a"))


def test_percentiles_by_hand():
    got = summarise(np.arange(1001.0))
    assert (got.n, got.mean, got.p50, got.p95, got.p99) == (1001, 500.0, 500.0, 950.0, 990.0)
    assert got.p999 == pytest.approx(999.0)


def test_no_latency_at_all():
    got = summarise([])
    assert got.n == 0
    assert math.isnan(got.mean)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -1.0])
def test_impossible_latencies(bad):
    with pytest.raises(InputError, match="latency"):
        summarise([1.0, bad])


@pytest.mark.parametrize("columns", [(), ("suite", "value")])
def test_experiments_keep_what_is_not_run_and_what_an_interrupt_leaves(tmp_path, columns):
    def stopped(options):
        yield {"value": options.seeds}
        raise KeyboardInterrupt

    parts = {"one": lambda options: [{"value": 1}], "two": stopped}
    study = Experiments("name", parts, {"seeds": 3}, columns)
    parser = argparse.ArgumentParser()
    study.add_arguments(parser)
    path = tmp_path / ("name.csv" if columns else "name.json")
    for only, code in (("one", 0), ("two", 130)):
        asked = parser.parse_args(["--only", only, "--output", str(path)])
        assert study.run(asked) == code
    document = read_json(path.with_suffix(".json"))
    assert document["seeds"] == 3
    if columns:
        assert [row["value"] for row in read_rows(path)] == ["1", "3"]
    else:
        assert (document["one"], document["two"]) == ([{"value": 1}], [{"value": 3}])
