"""Numbers that the authors of protocols published, reproduced by the evaluator.

- The ring of 24 places of josehu07/summerset (the authors of Bodega, arXiv 2509.07158).
- The RTTs of EPaxos Revisited, NSDI 2021, page 7.
"""

from __future__ import annotations

import numpy as np
import pytest

from placement import Instance, Operation, Problem
from placement.evaluation.score import operation_latency

EPAXOS = {
    (0, 1): 77, (0, 2): 129, (0, 3): 137, (0, 4): 221, (1, 2): 59, (1, 3): 64, (1, 4): 146,
    (2, 3): 26, (2, 4): 91, (3, 4): 98,
}  # fmt: skip
WRITE = Operation("put", direct=1, quorum=1)
READ = Operation("get", direct=1)
STALE = Operation("stale", near=1)


def places(rtt: np.ndarray, clients: np.ndarray) -> Instance:
    """Return a world in which every client issues each operation once."""
    size = len(rtt)
    return Instance(
        sites=tuple(f"s{i}" for i in range(size)),
        clients=tuple(f"c{i}" for i in range(len(clients))),
        client_rtt=clients,
        site_rtt=rtt,
        counts=np.ones((len(clients), 3)),
        operations=(WRITE, READ, STALE),
    )


def latencies(world: Instance, protocol: str, leader: int, group: list[int]) -> np.ndarray:
    """Return the latency of put and get by client under a protocol."""
    problem = Problem(world, replicas=len(group), voters=len(group), protocol=protocol)
    found = operation_latency(problem.demand, leader, group, group, problem.rules.quorum)
    return found[0, :, :2]


def test_epaxos_revisited_by_site() -> None:
    rtt = np.zeros((5, 5))
    for (a, b), value in EPAXOS.items():
        rtt[a, b] = rtt[b, a] = value
    world = places(rtt, rtt)  # a client at every site
    group = list(range(5))
    assert latencies(world, "epaxos", 0, group)[:, 0].tolist() == [129, 64, 59, 64, 98]
    assert latencies(world, "leases", 1, group)[:, 0].tolist() == [223, 146, 205, 210, 292]
    # the symbols of the paper: c = 2, l = M = 64 ms to a quorum, N = 146 to all
    raft = latencies(world, "raft", 1, group)
    assert raft[3].tolist() == [64 + 64, 64]


def ring() -> Instance:
    """Return the ring of 24 places of Bodega's model, with its 13 clients."""
    place = np.arange(24)
    apart = np.abs(place[:, None] - place[None, :])
    rtt = 2.0 * np.minimum(apart, 24 - apart)
    clients = [0, 1, 2, 3, *range(11, 20)]
    return places(rtt, rtt[clients])


def test_hops_on_the_ring_of_bodega_by_hand() -> None:
    """One client, at place 3: 6 to the server at 0, 18 to the leader at 12, which is 24 from 0."""
    servers = [0, 3, 12, 14, 18]
    world = ring()
    write = latencies(world, "raft", 12, servers)[3, 0]
    assert write == 18 + 12  # the third of 0, 4, 12, 18, 24
    assert latencies(world, "leases", 12, servers)[3].tolist() == [18 + 24, 0]
    assert latencies(world, "pqr", 12, servers)[3, 1] == 18  # the third of 0, 6, 18, 18, 22


@pytest.mark.parametrize(
    ("leader", "wait"),
    [("us-east1", 64.0), ("us-west1", 66.0), ("europe-west1", 64.0)],
)
def test_two_of_three_sites_of_the_cockroach_demo(leader: str, wait: float) -> None:
    rtt = np.array([[0.0, 66, 64], [66, 0, 146], [64, 146, 0]])
    sites = ["us-east1", "us-west1", "europe-west1"]
    world = places(rtt, rtt)
    found = latencies(world, "raft", sites.index(leader), [0, 1, 2])
    assert found[sites.index(leader), 0] == wait


@pytest.mark.parametrize(("offset", "wait"), [(500, 800.0), (250, 550.0)])
def test_global_tables_wait_out_their_lead(offset: int, wait: float) -> None:
    rtt = np.array([[0.0, 66, 64], [66, 0, 146], [64, 146, 0]])
    found = latencies(places(rtt, rtt), f"crdb-global:max_offset={offset}", 0, [0, 1, 2])
    assert found[0].tolist() == [wait, 0.0]
