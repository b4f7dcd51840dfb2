"""Dynamic snitching and the policies by response time, by hand."""

import numpy as np
import pytest

from heuristics.online.selection.dynamic_snitch import DynamicSnitch
from heuristics.online.selection.response_times import LeastResponseTime, WeightedResponseTime
from placement.errors import InputError
from placement.online.selection import ServerCluster, Servers, draw

RING = [0, 1, 2]


def started(policy):
    sample = draw(ServerCluster(3, 1, 3, 2, requests=400), 0)
    return policy.start(sample, Servers.idle(sample))


def hear(selector, server, responses, now):
    for response in responses:
        selector.answered(0, server, response, 1.0, 0, now)


def test_scores_change_every_100_ms_and_are_medians():
    snitch = started(DynamicSnitch())
    hear(snitch, 0, [10.0, 100.0, 12.0], 50.0)
    hear(snitch, 1, [5.0, 7.0], 50.0)
    assert list(snitch.rank(0, 0, RING, 99.0)) == RING
    assert list(snitch.rank(0, 0, RING, 100.0)) == [2, 1, 0]  # 2 was never heard from
    assert snitch._score[0].tolist() == [1.0, 0.5, 0.0]  # medians 12 and 6 over 12
    assert list(snitch.rank(0, 1, RING, 100.0)) == RING  # the other client heard nothing


def test_the_static_order_stands_unless_it_is_bad_enough():
    for badness, order in ((0.1, RING), (0.0, [2, 1, 0])):
        snitch = started(DynamicSnitch(badness=badness))
        for server, response in enumerate((10.0, 9.8, 9.5)):
            hear(snitch, server, [response], 1.0)
        assert list(snitch.rank(0, 0, RING, 150.0)) == order


def test_samples_are_cleared():
    snitch = started(DynamicSnitch(reset_ms=1000.0))
    hear(snitch, 0, [10.0], 1.0)
    snitch.rank(0, 0, RING, 1000.0)  # scored once more, then cleared
    assert snitch._score[0, 0] == 1.0
    snitch.rank(0, 0, RING, 1100.0)
    assert snitch._score[0, 0] == 0.0


def test_the_sample_keeps_its_size_and_prefers_what_is_recent():
    snitch = started(DynamicSnitch(size=20))
    hear(snitch, 0, [1.0] * 200, 0.0)
    assert np.isfinite(snitch._value[0, 0]).sum() == 20
    hear(snitch, 0, [2.0] * 200, 20_000.0)  # e^15 times the weight
    assert (snitch._value[0, 0] == 2.0).sum() >= 19


def test_the_last_response_decides():
    selector = started(LeastResponseTime(tie="ring"))
    hear(selector, 0, [9.0, 3.0], 0.0)
    hear(selector, 1, [2.0], 0.0)
    assert list(selector.rank(0, 0, RING, 0.0)) == [2, 1, 0]


def test_weighted_by_response_time_prefers_fast_replicas():
    selector = started(WeightedResponseTime())
    hear(selector, 0, [1.0], 0.0)
    assert selector.rank(0, 0, RING, 0.0)[0] in (1, 2)
    hear(selector, 1, [2.0], 0.0)
    hear(selector, 2, [4.0], 0.0)
    firsts = [selector.rank(read, 0, RING, 0.0)[0] for read in range(400)]
    shares = [firsts.count(server) / 400 for server in RING]
    assert shares == pytest.approx([4 / 7, 2 / 7, 1 / 7], abs=0.08)
    assert all(sorted(selector.rank(read, 0, RING, 0.0)) == RING for read in range(50))


@pytest.mark.parametrize("field", ["update_ms", "reset_ms", "size", "decay", "badness"])
def test_bad_parameters(field):
    with pytest.raises(InputError, match=field):
        DynamicSnitch(**{field: -1})
