"""The results of the study of tails hold what they must."""

import json
import math

from benchmarks.tail import EXPERIMENTS


def test_results_hold_what_they_must():
    """Finite numbers, bounds below what was found, and the best never above the search."""

    def refuse(constant):
        raise AssertionError(constant)

    results = json.loads(EXPERIMENTS.path.read_text(encoding="utf-8"), parse_constant=refuse)
    for row in results["plans"]:
        assert row["bound_ms"] <= row["tail_plan_ms"] <= row["mean_plan_ms"]
        assert row["mean_plan_mean_ms"] <= row["tail_plan_mean_ms"] + 0.001
    for row in results["leaders"]:
        assert row["tail_leader_ms"] <= row["mean_leader_ms"] < math.inf
        assert row["mean_leader_mean_ms"] <= row["tail_leader_mean_ms"] + 0.001
    assert all(row["proven"] for row in results["proofs"])
