"""The naive leaders of the source paper's comparison, on worlds small enough to check by hand."""

import math

import numpy as np
import pytest

from placement.evaluation.rules_of_thumb import rules_of_thumb
from placement.model.configuration import Configuration
from placement.model.instance import Instance
from placement.problem import Problem


def world(counts):
    # Sites a, b, c in a row: a -10- b -20- c (a to c: 30). One client in each, 1 ms away.
    site_rtt = np.array([[0, 10, 30], [10, 0, 20], [30, 20, 0]], dtype=float)
    client_rtt = site_rtt + np.eye(3)
    instance = Instance(
        sites=("a", "b", "c"),
        clients=("in a", "in b", "in c"),
        client_rtt=client_rtt,
        site_rtt=site_rtt,
        counts=counts,
    )
    return Problem(instance, replicas=3, voters=3)


def test_by_hand():
    # Strong reads 10 in a; single-group transactions 1 in a, 4 in c.
    #   leader a: reads 10·1, writes 1·(1+10) + 4·(30+10) = 171 → 181
    #   leader b: reads 10·10, writes 1·(10+10) + 4·(20+10) = 140 → 240
    #   leader c: reads 10·30, writes 1·(30+20) + 4·(1+20) = 134 → 434
    counts = np.zeros((3, 5))
    counts[0, 2] = 10
    counts[0, 3], counts[2, 3] = 1, 4
    problem = world(counts)
    writes, quorum, average = rules_of_thumb(problem, Configuration(0, (0, 1, 2), (0, 1, 2)))
    assert writes.leader == "c"
    assert writes.mean_latency == pytest.approx(434 / 15)
    assert writes.overhead == pytest.approx(100 * (434 / 181 - 1))
    assert quorum.leader == "a"  # q is 10 at a and at b: the first wins
    assert quorum.overhead == pytest.approx(0)
    assert average.leader is None
    assert average.mean_latency == pytest.approx((181 + 240 + 434) / 3 / 15)


def test_closest_to_writes_is_undefined_without_transactions():
    counts = np.zeros((3, 5))
    counts[:, 0] = 1
    writes, _, _ = rules_of_thumb(world(counts), Configuration(0, (0, 1, 2), (0, 1, 2)))
    assert writes.leader is None
    assert math.isnan(writes.mean_latency)
    assert writes.why == "no transactions in the first interval"


def test_candidates_are_the_voters_that_may_lead():
    counts = np.zeros((3, 5))
    counts[2, 3] = 1
    problem = world(counts).replace(leaders=["a", "b"])
    writes, quorum, average = rules_of_thumb(problem, Configuration(1, (0, 1, 2), (0, 1, 2)))
    assert writes.leader == "b"  # c is closest, but may not lead
    assert quorum.leader == "a"
    # leader a: 30 + 10; leader b: 20 + 10
    assert average.mean_latency == pytest.approx((40 + 30) / 2)


def test_configurations_that_break_the_problem_are_scored_too():
    counts = np.ones((3, 5))
    problem = world(counts).replace(voters=3, leaders=["c"])
    # Two voters, none of which may lead: still comparable, with their own majority.
    rows = rules_of_thumb(problem, Configuration(0, (0, 1), (0, 1)))
    assert [row.leader for row in rows] == ["a", "a", None]
    assert all(math.isfinite(row.mean_latency) for row in rows)
