"""The closed form of the share: exact fractions, by hand, by counting quorums, by the slides."""

from fractions import Fraction
from itertools import combinations

import pytest

from placement.errors import InputError
from placement.online.reads.leader_share import (
    follower_load,
    inclusion_probability,
    leader_load,
    leader_served,
    majority,
    peak_reduction,
    slide_share,
    uniform_share,
)

TABLE = [
    (3, "1", "1/4", "1/2", "2"),
    (4, "1", "1/3", "1/2", "2"),
    (5, "2/3", "2/7", "3/7", "7/3"),
    (6, "3/4", "1/3", "4/9", "9/4"),
    (7, "3/5", "3/10", "2/5", "5/2"),
    (9, "4/7", "4/13", "5/13", "13/5"),
    (11, "5/9", "5/16", "3/8", "8/3"),
]


@pytest.mark.parametrize(("nodes", "p", "x", "served", "reduction"), TABLE)
def test_table(nodes, p, x, served, reduction):
    """Every entry, worked by hand, as an exact fraction."""
    share = uniform_share(nodes)
    assert inclusion_probability(nodes) == Fraction(p)
    assert share == slide_share(nodes) == Fraction(x)
    assert leader_served(nodes, share) == Fraction(served)
    assert peak_reduction(nodes, share) == Fraction(reduction)


def test_the_28_percent_of_the_talk_is_two_sevenths():
    assert int(100 * uniform_share(5)) == 28
    assert leader_load(5, Fraction(2, 7)) == follower_load(5, Fraction(2, 7)) == Fraction(15, 7)


@pytest.mark.parametrize("nodes", range(3, 10))
def test_loads_by_counting_every_quorum(nodes):
    """Count, over all gateways and quorums, how often each node is read."""
    m, share = nodes // 2, Fraction(1, 5)
    reads = [Fraction(0)] * nodes
    reads[0] += 1  # L reads its own copy
    for gateway in range(1, nodes):
        reads[0] += share
        quorums = list(combinations([v for v in range(1, nodes) if v != gateway], m))
        for quorum in quorums:
            for node in (gateway, *quorum):
                reads[node] += (1 - share) / len(quorums)
    assert reads[0] == leader_load(nodes, share)
    assert set(reads[1:]) == {follower_load(nodes, share)}


def test_with_writes():
    assert uniform_share(5, Fraction(5, 95), 2) == Fraction(4, 19)
    assert float(uniform_share(5, 5 / 95, 2)) == pytest.approx(0.2105, abs=5e-5)
    assert uniform_share(5, 10, 2) == 0  # writes alone load L more than all reads could
    assert uniform_share(5, 10, -2) == 1
    assert uniform_share(5, 0, 2) == uniform_share(5)


@pytest.mark.parametrize("nodes", [0, 2, 5.0, True, "5"])
def test_too_few_nodes(nodes):
    with pytest.raises(InputError, match="nodes"):
        majority(nodes)


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), float("inf"), "a"])
def test_no_share(share):
    with pytest.raises(InputError, match="share"):
        leader_load(5, share)


def test_bad_writes():
    for writes in (-1, float("nan")):
        with pytest.raises(InputError, match="writes_per_read"):
            uniform_share(5, writes)
