"""The score of C3, against the talk of its authors and by hand."""

import pytest

from heuristics.online.selection.c3 import C3, C3Selector, c3_score
from placement.errors import InputError
from placement.online.selection import ServerCluster, Servers, draw


def queue_of_equal_score(exponent):
    """Estimate q̂ at which a 4 ms server scores like a 20 ms server with q̂ = 20."""
    low, high = 1.0, 1e4

    def slow_is_better(fast_queue):
        fast = c3_score(0, fast_queue - 1, 4.0, 0.0, weight=0, exponent=exponent)
        return fast > c3_score(0, 19, 20.0, 0.0, weight=0, exponent=exponent)

    for _ in range(200):
        middle = (low + high) / 2
        low, high = (low, middle) if slow_is_better(middle) else (middle, high)
    return high


def test_servers_of_4_and_20_ms():
    assert queue_of_equal_score(1.0) == pytest.approx(100.0)
    assert queue_of_equal_score(3.0) == pytest.approx(34.2, abs=0.01)  # the talk: about 35


def test_the_score_by_hand():
    # q̂ = 1 + 2·150 + 3 = 304; (7 − 4) + 304³·4
    assert c3_score(2, 3, 4.0, 3.0, weight=150) == 3.0 + 304.0**3 * 4.0


def test_eight_requests_on_two_servers():
    """2 ms and 6 ms, one slot each: 6/2 ends at 12 ms, the best; 4/4 at 24 ms."""
    makespan = {split: max(2 * split, 6 * (8 - split)) for split in range(9)}
    assert min(makespan, key=makespan.__getitem__) == 6
    assert (makespan[6], makespan[4]) == (12, 24)


def heard(policy, samples):
    sample = draw(ServerCluster(3, 1, 3, 2, requests=1), 0)
    selector = policy.start(sample, Servers.idle(sample))
    for server, response, service, queue in samples:
        selector.sent(0, 0, 0, server, 0.0)
        selector.answered(0, server, response, service, queue, 0.0)
    assert isinstance(selector, C3Selector)
    return selector


def test_the_first_sample_replaces_the_second_blends():
    selector = heard(C3(), [(0, 10.0, 4.0, 2), (0, 20.0, 8.0, 1)])
    queue, service = 0.9 * 1 + 0.1 * 2, 0.9 * 8 + 0.1 * 4
    network = 0.9 * 12 + 0.1 * 6
    assert selector.score(0, 0) == pytest.approx(network + (1 + queue) ** 3 * service)


def test_who_was_never_heard_comes_first_and_clients_do_not_share():
    selector = heard(C3(tie="ring"), [(0, 10.0, 4.0, 0), (2, 5.0, 4.0, 0)])
    assert list(selector.rank(0, 0, [0, 1, 2], 0.0)) == [1, 2, 0]
    assert list(selector.rank(0, 1, [0, 1, 2], 0.0)) == [0, 1, 2]


def test_outstanding_requests_weigh_as_many_as_there_are_clients():
    selector = heard(C3(), [(0, 4.25, 4.0, 0)])
    selector.sent(1, 0, 0, 0, 0.0)
    assert selector.score(0, 0) == pytest.approx(0.25 + 3.0**3 * 4.0)  # two clients
    assert heard(C3(outstanding=False), [(0, 4.25, 4.0, 0)]).score(0, 0) == 4.25


def test_random_ties_use_the_shuffle_of_the_path():
    sample = draw(ServerCluster(9, 1, 3, 1, requests=200), 0)
    selector = C3().start(sample, Servers.idle(sample))
    firsts = [selector.rank(read, 0, [4, 5, 6], 0.0)[0] for read in range(200)]
    assert {firsts.count(server) > 40 for server in (4, 5, 6)} == {True}


@pytest.mark.parametrize(
    ("field", "value"), [("exponent", -1.0), ("weight", -2.0), ("smoothing", 0.0), ("tie", "none")]
)
def test_bad_parameters(field, value):
    with pytest.raises(InputError, match=field):
        C3(**{field: value})
