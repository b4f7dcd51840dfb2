"""The results of the study of tails hold what they must."""

import json
import math

from benchmarks.tail.study import RESULTS


def test_results_hold_what_they_must():
    """Finite numbers, bounds below what was found, and the best never above the search."""

    def refuse(constant):
        raise AssertionError(constant)

    results = json.loads(RESULTS.read_text(encoding="utf-8"), parse_constant=refuse)
    for row in results["gaps"]:
        assert row["bound_ms"] <= row["best_ms"] <= row["found_ms"] <= row["mean_plan_ms"]
    for row in results["plans"]:
        assert row["bound_ms"] <= row["tail_plan_ms"] <= row["mean_plan_ms"]
        assert row["mean_plan_mean_ms"] <= row["tail_plan_mean_ms"] + 0.001
    for row in results["leaders"]:
        for before, after in zip(row["mean_leader_ms"], row["tail_leader_ms"], strict=True):
            assert after <= before < math.inf
        assert row["mean_leader_mean_ms"] <= min(row["tail_leader_mean_ms"]) + 0.001
    assert all(row["proven"] for row in results["proofs"])
    assert all(row["cpu_ms"] <= (row["target"] or math.inf) for row in results["speed"])
