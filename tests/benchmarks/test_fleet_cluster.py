"""The bookkeeping of a simulated cluster, by hand and by its invariants."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.fleet.cluster import Pass, Record, plan_line, record, simulate


def test_two_workers_and_a_master_by_hand() -> None:
    """Batches of 3, 1 and 1 s; an answer takes the master 0.5 s, the program before 2 s."""
    one = Pass(batches=[3.0, 1.0, 1.0], answer=0.5, before=2.0)
    found = simulate(Record(750, [one], 4.0, 0.0), 750, 2)
    # worker 1 ends at 5; worker 2 at 3 and 4; the master takes in 3 -> 3.5, 4 -> 4.5, 5 -> 5.5
    assert found.wall == pytest.approx(5.5 + 4.0)
    assert found.workers == pytest.approx(5.0)
    assert found.master == pytest.approx(2.0 + 3 * 0.5 + 4.0)
    assert found.share == pytest.approx(7.5 / 12.5)


def test_the_plan_at_the_end_may_take_a_time_of_its_own() -> None:
    one = Record(1000, [Pass(batches=[0.1] * 4)], 8.0, 0.0)
    assert simulate(one, 2000, 1).master == pytest.approx(16.0)
    assert simulate(one, 2000, 1, after=9.0).master == pytest.approx(9.0)


def test_the_time_of_the_plan_is_a_line_only_where_it_rises() -> None:
    def line(*seconds: float) -> tuple[float, float]:
        return plan_line([Record(1000 * 2**i, [], each, 0.0) for i, each in enumerate(seconds)])

    assert line(3.0, 4.0) == pytest.approx((2.0, 0.001))
    assert line(4.0, 3.0) == pytest.approx((0.0, 0.0015))
    assert line(1.0, 4.0) == pytest.approx((0.0, 0.002))
    assert line(2.0) == pytest.approx((0.0, 0.002))


def test_a_slow_master_is_waited_for() -> None:
    one = Pass(batches=[0.1] * 4, answer=1.0, before=0.0)
    assert simulate(Record(1000, [one], 0.0, 0.0), 1000, 8).wall == pytest.approx(0.1 + 4.0)


@pytest.mark.parametrize("workers", [1, 2, 4, 8])
def test_work_grows_with_the_databases_and_no_schedule_beats_it(workers: int) -> None:
    rng = np.random.default_rng(workers)
    passes = [
        Pass(rng.uniform(0.1, 0.3, 4).tolist(), 0.01, 0.2, sample=True),
        Pass(rng.uniform(0.1, 0.3, 16).tolist(), 0.01, 0.5),
    ]
    recorded = Record(4000, passes, 1.0, 0.0)
    small, large = (simulate(recorded, n, workers) for n in (4000, 400_000))
    full = sum(passes[1].batches)
    assert large.workers == pytest.approx(small.workers + 99 * full)
    assert large.master == pytest.approx(0.24 + 0.5 * 100 + 16 * 100 * 0.01 + 100.0)
    for each in (small, large):
        assert each.wall >= each.workers / workers
        assert each.wall <= each.workers + each.master


@pytest.mark.slow
def test_a_recorded_search_has_every_batch_of_every_pass() -> None:
    found = record(300, seed=2, gap=0.2)
    assert found.databases == 300
    assert found.gap >= 0
    assert all(len(one.batches) == 2 and min(one.batches) > 0 for one in found.passes)
    assert not any(one.sample for one in found.passes)
