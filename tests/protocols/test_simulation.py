"""The formula of each shape of protocol equals a simulation of its messages, to rounding."""

from __future__ import annotations

import numpy as np
import pytest

from placement import STANDARD_OPERATIONS, Configuration, Operation, Problem
from placement.evaluation.score import operation_latency
from placement.feasibility.feasible_plans import violations
from placement.model.instance import Instance
from tests.effort import seeds
from tests.protocols.messages import Network
from tests.protocols.worlds import world

MANY = 10  # worlds of a test; 40 tests make the 400 of the long form


def simulated(shape: str, one: Instance, client: int, leader: int, group: list[int]) -> float:
    """Return when the client of an operation has its answer."""
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
        found = operation_latency(problem.demand, leader, group, group, problem.rules.quorum)
        row = [o.name for o in one.operations].index(name)
        for client in range(len(one.clients)):
            seen = simulated(shape, one, client, leader, group)
            if np.isnan(seen):  # nobody outside the region of the leader: it waits forever
                seen = np.inf
            assert found[0, client, row] == pytest.approx(seen, rel=1e-12), (seed, client)


@pytest.mark.parametrize("part", seeds(2, 40))
def test_witnesses_answer_the_leader_and_no_client(part: int) -> None:
    """Reads go to replicas alone, commits to all voters, of which some hold no replica."""
    for seed in range(MANY * part, MANY * (part + 1)):
        rng = np.random.default_rng([seed, 2])
        voters, witnesses = int(rng.choice([3, 5])), int(rng.choice([1, 2]))
        one = world(seed, operations=STANDARD_OPERATIONS, ties=seed % 2 == 0)
        chosen = rng.permutation(7).tolist()
        group, aside = chosen[:voters], chosen[:witnesses]
        replicas = sorted(set(chosen[: voters + 1]) - set(aside))
        leader = group[witnesses]
        problem = Problem(one, replicas=len(replicas), voters=voters, witnesses=witnesses)
        configuration = Configuration.of(leader, group, replicas)
        assert violations(problem, configuration) == ()
        found = operation_latency(problem.demand, leader, group, replicas, problem.rules.quorum)
        between = one.site_rtt.tolist()
        for client, rtts in enumerate(one.client_rtt.tolist()):
            near = min(replicas, key=lambda s, rtts=rtts: (rtts[s], s))
            seen = {}
            for name in ("weak_read", "bounded_read", "strong_read", "single_group"):
                net, end = Network(), []

                def read(now, reply, net=net, near=near):
                    net.trip(now, between[near][leader], lambda t, back: back(t), reply)

                def commit(now, reply, net=net):
                    votes = [(voters // 2 + 1, group)]
                    net.gather(now, between[leader], votes, reply)

                site, work = {
                    "weak_read": (near, lambda now, reply: reply(now)),
                    "bounded_read": (near, read),
                    "strong_read": (leader, lambda now, reply: reply(now)),
                    "single_group": (leader, commit),
                }[name]
                net.trip(0, rtts[site], work, end.append)
                net.run()
                seen[name] = end[0]
            for row, operation in enumerate(one.operations):
                if operation.name in seen:
                    expected = pytest.approx(seen[operation.name], rel=1e-12)
                    assert found[0, client, row] == expected, (seed, client, operation.name)


@pytest.mark.parametrize("part", seeds(2, 40))
def test_replicas_with_leases_serve_strong_reads_and_hear_of_every_write(part: int) -> None:
    """A write is done when a quorum has voted and every replica has it."""
    for seed in range(MANY * part, MANY * (part + 1)):
        rng = np.random.default_rng([seed, 3])
        voters = int(rng.choice([3, 5]))
        one = world(seed, operations=STANDARD_OPERATIONS, ties=seed % 2 == 0)
        replicas = sorted(rng.choice(7, voters + 1, replace=False).tolist())
        group = rng.permutation(replicas)[:voters].tolist()
        leader = group[0]
        problem = Problem(one, replicas=len(replicas), voters=voters, protocol="leases")
        configuration = Configuration.of(leader, group, replicas)
        assert violations(problem, configuration) == ()
        quorum = problem.rules.quorum
        found = operation_latency(problem.demand, leader, group, replicas, quorum)
        between = one.site_rtt.tolist()
        needed = [(voters // 2 + 1, group), (len(replicas), replicas)]
        for client, rtts in enumerate(one.client_rtt.tolist()):
            near = min(replicas, key=lambda s, rtts=rtts: (rtts[s], s))
            seen = {}
            for name, site in (
                ("weak_read", near),
                ("strong_read", near),
                ("single_group", leader),
            ):
                net, end = Network(), []

                def work(now, reply, net=net, name=name):
                    if name == "single_group":
                        net.gather(now, between[leader], needed, reply)
                    else:
                        reply(now)

                net.trip(0, rtts[site], work, end.append)
                net.run()
                seen[name] = end[0]
            for row, operation in enumerate(one.operations):
                if operation.name in seen:
                    expected = pytest.approx(seen[operation.name], rel=1e-12)
                    assert found[0, client, row] == expected, (seed, client, operation.name)
