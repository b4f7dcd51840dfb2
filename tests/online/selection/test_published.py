"""The published setting: ratios against reference values, and what the papers do not say.

Full tables: `python -m benchmarks run online.selection`. Here fewer seeds and, in the ordinary
run, fewer reads.
"""

import numpy as np
import pytest

from heuristics.online.selection import (
    C3,
    EarliestCompletion,
    LeastOutstanding,
    LimiterRules,
    Oracle,
    RoundRobin,
    run,
)
from placement.online.selection import ServerCluster, draw
from tests.effort import seeds

C3_RING, LOR, ORA = C3(tie="ring"), LeastOutstanding(tie="ring"), Oracle(tie="ring")


def test_latencies_at_10_ms():
    """Here 10 ms average out: ± 8 % of the reference (10 seeds, 600,000 reads, 2000 ms dropped)."""
    sample = draw(ServerCluster(epoch_ms=10.0, requests=400_000, arrivals="grid"), 1)
    clairvoyant = EarliestCompletion(future=True, tie="ring")
    expected = {clairvoyant: 13.6, ORA: 19.7, C3_RING: 39.4, LOR: 47.0}
    for policy, p99 in expected.items():
        found = run(sample, policy).latencies(2000.0).p99
        assert found == pytest.approx(p99, rel=0.08), policy.name


def test_rate_control_does_nothing_in_the_published_setting():
    """A bucket is refused less than once in a thousand tries; C3 without it is as good."""
    sample = draw(ServerCluster(requests=300_000, arrivals="grid"), 1)
    limited, free = run(sample, C3_RING), run(sample, C3(tie="ring", limiter=None))
    assert limited.tries > 0
    assert limited.refused_share < 0.001
    assert limited.latencies().mean == pytest.approx(free.latencies().mean, rel=0.02)
    assert limited.latencies().p99 == pytest.approx(free.latencies().p99, rel=0.03)
    walk = run(sample, RoundRobin())
    assert walk.refused_share < 0.001
    assert walk.latencies().p99 == pytest.approx(
        run(sample, RoundRobin(limiter=None)).latencies().p99, rel=0.02
    )


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_rate_control_with_ten_clients(seed):
    """The original at this length: mean 35.3, p99 179 ms, 67.7 % refused; strict 71 to 96 ms."""
    sample = draw(ServerCluster(clients=10, requests=150_000, arrivals="grid"), seed)
    limited, free = run(sample, C3_RING), run(sample, C3(tie="ring", limiter=None))
    strict = run(sample, C3(tie="ring", limiter=LimiterRules(wake="strict")))
    assert 0.66 <= limited.refused_share <= 0.70
    assert 29 <= limited.latencies().mean <= 37
    assert 165 <= limited.latencies().p99 <= 215
    assert 71 <= strict.latencies().mean <= 96
    assert limited.latencies().p99 > 2 * free.latencies().p99


@pytest.mark.parametrize(
    ("clients", "mean"),
    [
        pytest.param(5, 49.5, marks=pytest.mark.slow),
        pytest.param(10, 25.9, marks=pytest.mark.slow),
        (20, 14.9),
    ],
)
def test_rate_control_of_few_clients_at_300_000_reads(clients, mean):
    """Means of another implementation of the original's bucket, on other seeds."""
    cluster = ServerCluster(clients=clients, requests=300_000, arrivals="grid")
    means = [run(draw(cluster, seed), C3_RING).latencies().mean for seed in (1, 2)]
    assert np.mean(means) == pytest.approx(mean, rel=0.1)


def test_least_outstanding_beats_c3_when_few_clients_make_the_demand():
    """3 of 150 clients make 95 % of the demand: rate control holds them back."""
    cluster = ServerCluster(
        heavy_clients=0.02, heavy_demand=0.95, requests=150_000, arrivals="grid", epoch_ms=500.0
    )
    for seed in (1, 2):
        sample = draw(cluster, seed)
        assert run(sample, LOR).latencies().p99 < 0.7 * run(sample, C3_RING).latencies().p99
