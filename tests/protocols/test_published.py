"""Numbers that the authors of protocols published, reproduced by the evaluator.

- The ring of 24 places of josehu07/summerset (the authors of Bodega, arXiv 2509.07158).
- The RTTs of EPaxos Revisited, NSDI 2021, page 7.
- Five European regions in vitorenesduarte/fantoch (the authors of Atlas, EuroSys 2020; Apache or
  MIT): RTTs in whole ms, 0 within a region, as the tests in ``fantoch_bote/src/lib.rs`` state them.
"""

from __future__ import annotations

import numpy as np
import pytest

from placement import STANDARD_OPERATIONS, Configuration, Instance, Operation, Problem
from placement.evaluation.score import operation_latency
from placement.feasibility.feasible_plans import violations
from tests.effort import seeds
from tests.protocols.messages import Network
from tests.protocols.worlds import world

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
    problem = Problem(world, replicas=len(group), voters=len(group), protocol=protocol)
    quorum = problem.rules.quorum
    found = operation_latency(problem.demand, Configuration.of(leader, group, group), quorum)
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


def test_means_on_the_ring_of_bodega() -> None:
    """Over the 13 clients; a client that reads from a majority may as well ask the leader."""
    servers = [0, 3, 12, 14, 18]
    world = ring()
    found = {
        protocol: latencies(world, protocol, 12, servers)
        for protocol in ("raft", "epaxos", "leases", "pqr")
    }
    means = {protocol: one.mean(axis=0).round(1).tolist() for protocol, one in found.items()}
    assert means["raft"] == [22.9, 10.9]
    assert means["epaxos"] == [13.4, 13.4]
    assert means["leases"] == [34.9, 1.4]
    either = np.minimum(found["pqr"][:, 1], found["raft"][:, 1])
    assert either.mean().round(1) == 8.8


WEST = np.array([
    [0.0, 10, 8, 7, 14], [10, 0, 13, 9, 19], [8, 13, 0, 7, 7], [7, 9, 7, 0, 14], [14, 19, 7, 14, 0],
])  # fmt: skip
"""europe-west1, 2, 3, 4 and 6."""


def test_quorums_of_five_regions_in_europe() -> None:
    group = list(range(5))
    world = places(WEST, WEST)
    for quorum, waits in ((2, [7, 9, 7, 7, 7]), (3, [8, 10, 7, 7, 14])):
        for leader, wait in enumerate(waits):
            found = latencies(world, f"flexible:quorum={quorum}", leader, group)
            assert found[leader, 0] == wait
    # without a leader: three answers of five, and four
    for protocol, mean in (("epaxos", 9.2), ("atlas:f=1", 9.2), ("atlas:f=2", 10.8)):
        assert latencies(world, protocol, 0, group)[:, 0].mean() == pytest.approx(mean)
    for leader, mean in enumerate((14.8, 19.2, 14.0)):
        found = latencies(world, "flexible:quorum=2", leader, group)[:, 0]
        assert found.mean() == pytest.approx(mean)


@pytest.mark.parametrize(("offset", "wait"), [(500, 800.0), (250, 550.0)])
def test_global_tables_wait_out_their_lead(offset: int, wait: float) -> None:
    rtt = np.array([[0.0, 66, 64], [66, 0, 146], [64, 146, 0]])
    found = latencies(places(rtt, rtt), f"crdb-global:max_offset={offset}", 0, [0, 1, 2])
    assert found[0].tolist() == [wait, 0.0]


MANY = 10  # worlds of a test; 40 tests make the 400 of the long form


def simulated(shape: str, one: Instance, client: int, leader: int, group: list[int]) -> float:
    net, end = Network(), [np.nan]
    client_rtt, site_rtt = one.client_rtt[client].tolist(), one.site_rtt.tolist()
    near = min(group, key=lambda s: (client_rtt[s], s))
    v = len(group)
    most, fast = v // 2 + 1, -(-3 * v // 4)
    outside = [s for s in group if one.domains["region"][s] != one.domains["region"][leader]]

    def finish(now: float) -> None:
        end[0] = now

    def ask(origin: int, *clauses, twice: bool = False):
        def work(now, reply):
            again = reply
            if twice:
                again = lambda t: net.gather(t, site_rtt[origin], [(most, group)], reply)  # noqa: E731
            net.gather(now, site_rtt[origin], clauses, again)

        return work

    if shape == "multipaxos":
        net.trip(0, client_rtt[leader], ask(leader, (most, group)), finish)
    elif shape == "leases":
        net.trip(0, client_rtt[leader], ask(leader, (most, group), (v, group)), finish)
    elif shape == "outside":
        net.trip(0, client_rtt[leader], ask(leader, (most, group), (1, outside)), finish)
    elif shape == "epaxos":
        need = v // 2 + (v // 2 + 1) // 2
        net.trip(0, client_rtt[near], ask(near, (need, group)), finish)
    elif shape == "epaxos slow":
        need = v // 2 + (v // 2 + 1) // 2
        net.trip(0, client_rtt[near], ask(near, (need, group), twice=True), finish)
    elif shape == "mencius":
        net.trip(0, client_rtt[near], ask(near, (v, group)), finish)
    elif shape == "fast-paxos":
        net.gather(0, client_rtt, [(fast, group)], finish)
    elif shape == "pqr":
        net.gather(0, client_rtt, [(most, group)], finish)
    elif shape == "abd":
        net.gather(
            0,
            client_rtt,
            [(most, group)],
            lambda t: net.gather(t, client_rtt, [(most, group)], finish),
        )
    net.run()
    return end[0]


SHAPES = {
    "multipaxos": ("multipaxos", "single_group"),
    "leases": ("leases", "single_group"),
    "outside": (None, "by hand"),
    "epaxos": ("epaxos:multi=2", "single_group"),
    "epaxos slow": ("epaxos:slow=1,multi=2", "single_group"),
    "mencius": ("mencius:multi=2", "single_group"),
    "fast-paxos": ("fast-paxos:multi=2", "strong_read"),
    "pqr": ("pqr", "strong_read"),
    "abd": ("abd:multi=2", "single_group"),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("part", seeds(2, 40))
def test_the_formula_is_what_the_messages_take(shape: str, part: int) -> None:
    protocol, name = SHAPES[shape]
    for seed in range(MANY * part, MANY * (part + 1)):
        rng = np.random.default_rng([seed, 1])
        voters = int(rng.choice([3, 5, 7]))
        operations = [Operation(n, direct=1, quorum=1) for n in ("single_group",)]
        operations.append(Operation("strong_read", direct=1))
        if shape == "outside":
            wait = "leader: majority of voters + 1 of voters outside region"
            operations = [Operation("by hand", direct=1, waits=[wait])]
        one = world(seed, operations=operations, ties=seed % 2 == 0)
        group = sorted(rng.choice(7, voters, replace=False).tolist())
        leader = int(rng.choice(group))
        problem = Problem(one, replicas=voters, voters=voters, protocol=protocol)
        placed = Configuration.of(leader, group, group)
        found = operation_latency(problem.demand, placed, problem.rules.quorum)
        row = [o.name for o in one.operations].index(name)
        for client in range(len(one.clients)):
            seen = simulated(shape, one, client, leader, group)
            if np.isnan(seen):  # nobody outside the region of the leader: it waits forever
                seen = np.inf
            assert found[0, client, row] == pytest.approx(seen, rel=1e-12), (seed, client)


@pytest.mark.parametrize("protocol", [None, "leases"])
@pytest.mark.parametrize("part", seeds(2, 40))
def test_who_serves_reads_and_who_hears_of_a_write(part: int, protocol: str | None) -> None:
    """Witnesses vote and answer no client; with leases each replica serves strong reads.

    A write is done when a quorum has voted and, with leases, every replica has it.
    """
    for seed in range(MANY * part, MANY * (part + 1)):
        rng = np.random.default_rng([seed, 2])
        voters, witnesses = int(rng.choice([3, 5])), 0 if protocol else int(rng.choice([1, 2]))
        one = world(seed, operations=STANDARD_OPERATIONS, ties=seed % 2 == 0)
        chosen = rng.permutation(7).tolist()
        group, replicas = chosen[:voters], sorted(chosen[witnesses : voters + 1])
        leader = group[witnesses]
        problem = Problem(
            one, replicas=len(replicas), voters=voters, witnesses=witnesses, protocol=protocol
        )
        configuration = Configuration.of(leader, group, replicas)
        assert violations(problem, configuration) == ()
        found = operation_latency(problem.demand, configuration, problem.rules.quorum)
        between = one.site_rtt.tolist()
        needed = [(voters // 2 + 1, group)]
        if protocol:
            needed.append((len(replicas), replicas))
        for client, rtts in enumerate(one.client_rtt.tolist()):
            near = min(replicas, key=lambda s, rtts=rtts: (rtts[s], s))
            places = {"weak_read": near, "bounded_read": near, "single_group": leader}
            places["strong_read"] = near if protocol else leader
            for row, operation in enumerate(one.operations):
                name = operation.name
                if name not in places or (protocol and name == "bounded_read"):
                    continue
                net, end = Network(), []

                def work(now, reply, net=net, near=near, name=name):
                    if name == "single_group":
                        net.gather(now, between[leader], needed, reply)
                    elif name == "bounded_read":
                        net.trip(now, between[near][leader], lambda t, back: back(t), reply)
                    else:
                        reply(now)

                net.trip(0, rtts[places[name]], work, end.append)
                net.run()
                expected = pytest.approx(end[0], rel=1e-12)
                assert found[0, client, row] == expected, (seed, client, name)
