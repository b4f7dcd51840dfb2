"""Losses with waits: against messages that are never answered, and against every configuration."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest

import placement
from placement import Configuration, Contingency, Operation, Problem
from placement.databases.deployment import deployment_of_plan
from placement.errors import InputError, UnsupportedError
from placement.evaluation.losses import STOPS_FIRST, failures, losses, score_after
from placement.evaluation.objective import score_of
from placement.explore.answers import after_loss
from placement.feasibility.feasible_plans import violations
from placement.feasibility.holder_choice import holder_choices
from placement.io.plan_file import load_plan, save_plan
from placement.model.instance import Instance
from placement.report.plan_page import plan_sections
from placement.support.status import Status
from placement.tail import Distributions, Percentile
from tests.effort import seeds
from tests.protocols.messages import Network
from tests.protocols.worlds import world

MANY = 10

# shape -> (protocol, wait by hand, operation)
SHAPES = {
    "multipaxos": ("multipaxos", None),
    "leases": ("leases", None),
    "outside": (None, "leader: majority of voters + 1 of voters outside region"),
    "inside": ("flexiraft:level=region", None),
    "epaxos": ("epaxos:multi=2", None),
    "atlas": ("atlas:f=2,multi=2", None),
    "caesar": ("caesar:multi=2", None),
    "mencius": ("mencius:multi=2", None),
    "coordinated": ("coordinated:r=2,w=3,multi=2", None),
    "fast-paxos": ("fast-paxos:multi=2", None),
    "pqr": ("pqr", None),
    "abd": ("abd:multi=2", None),
}


def one_client(seed: int, wait: str | None) -> Instance:
    """Return a world with one client, which issues one operation: the score is its latency."""
    operation = Operation("put", direct=1, quorum=1)
    if wait is not None:
        operation = Operation("put", direct=1, waits=[wait])
    one = world(seed, clients=1, operations=[operation], ties=seed % 2 == 0)
    return one.replace(counts=np.ones((1, 1, 1)))


def simulated(shape: str, one: Instance, group: list[int], leader: int, gone: set[int]) -> float:
    """Return when the client has its answer after a loss; infinite: never."""
    net, end = Network(), [math.inf]
    client, between = one.client_rtt[0].tolist(), one.site_rtt.tolist()
    alive = [site for site in group if site not in gone]
    region = one.domains["region"]
    v, most = len(group), len(group) // 2 + 1
    near = min(alive, key=lambda s: (client[s], s))

    def finish(now: float) -> None:
        end[0] = now

    def rounds(rtts: list[float], clauses: list, then):
        """Return a handler that asks in one round after another; lost members never answer."""
        if not clauses:
            return then
        return lambda now: net.gather(now, rtts, clauses[0], rounds(rtts, clauses[1:], then))

    def at(site: int, *clauses) -> None:
        net.trip(
            0,
            client[site],
            lambda now, reply: rounds(between[site], list(clauses), reply)(now),
            finish,
        )

    def first_and_slow(fast: int, second: int) -> None:
        if len(alive) >= fast:
            at(near, [(fast, alive)])
        else:
            at(near, [(most, alive)], [(second, alive)])

    if shape == "multipaxos":
        at(leader, [(most, alive)])
    elif shape == "leases":  # those whose lease has ended are waited for no more
        at(leader, [(most, alive), (len(alive), alive)])
    elif shape == "outside":
        outside = [site for site in alive if region[site] != region[leader]]
        at(leader, [(most, alive), (1, outside)])
    elif shape == "inside":
        inside = [site for site in group if region[site] == region[leader]]
        at(leader, [(len(inside) // 2 + 1, [site for site in inside if site in alive])])
    elif shape == "epaxos":
        first_and_slow(v // 2 + (v // 2 + 1) // 2, most)
    elif shape == "atlas":
        first_and_slow(v // 2 + 2, 3)
    elif shape == "caesar":
        first_and_slow(-(-3 * v // 4), most)
    elif shape == "mencius" and len(alive) >= most:
        at(near, [(len(alive), alive)])
    elif shape == "coordinated":
        at(near, [(3, alive)])
    elif shape == "fast-paxos":
        fast = -(-3 * v // 4)
        if len(alive) >= fast:
            net.gather(0, client, [(fast, alive)], finish)
        else:  # the client learns from a majority that it is out of reach, and asks the leader

            def ask(now: float) -> None:
                net.trip(
                    now,
                    client[leader],
                    lambda t, reply: net.gather(t, between[leader], [(most, alive)], reply),
                    finish,
                )

            net.gather(0, client, [(most, alive)], ask)
    elif shape == "pqr":
        at(leader, [(most, alive)])
    elif shape == "abd":
        net.gather(
            0, client, [(most, alive)], lambda t: net.gather(t, client, [(most, alive)], finish)
        )
    net.run()
    return end[0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("part", seeds(2, 40))
def test_after_a_loss_the_formula_is_what_the_messages_take(shape: str, part: int) -> None:
    protocol, wait = SHAPES[shape]
    for seed in range(MANY * part, MANY * (part + 1)):
        rng = np.random.default_rng([seed, 4])
        voters = int(rng.choice([5] if shape in ("atlas", "coordinated") else [3, 5]))
        one = one_client(seed, wait)
        group = sorted(rng.choice(7, voters, replace=False).tolist())
        leader = int(rng.choice(group))
        gone = set(rng.choice(7, int(rng.integers(1, 4)), replace=False).tolist())
        problem = Problem(one, replicas=voters, voters=voters, protocol=protocol)
        plan = Configuration.of(leader, group, group)
        found = score_after(problem, plan, gone)
        alive = [site for site in group if site not in gone]
        led = shape not in ("epaxos", "atlas", "caesar", "mencius", "coordinated", "abd")
        slow_led = shape == "fast-paxos" and len(alive) < -(-3 * voters // 4)
        leaders = alive if slow_led or (led and leader in gone) else [leader]
        if not led:
            leaders = alive[:1]
        seen = {ell: simulated(shape, one, group, ell, gone) for ell in leaders} if alive else {}
        best = min(seen.values(), default=math.inf)
        assert min(found.values(), default=math.inf) == pytest.approx(best, rel=1e-12), seed
        if led and best < math.inf and (shape != "fast-paxos" or slow_led):
            assert found == pytest.approx(seen, rel=1e-12)


@pytest.mark.parametrize("part", seeds(2, 40))
def test_lease_holders_and_witnesses_after_a_loss_by_messages(part: int) -> None:
    """The leader that takes over holds a lease, a witness votes and serves nobody."""
    for seed in range(MANY * part, MANY * (part + 1)):
        rng = np.random.default_rng([seed, 5])
        chosen = rng.permutation(7).tolist()
        for kind in ("leases", "witnesses"):
            read = Operation("get", direct=1)
            write = Operation("put", direct=1, quorum=1)
            both = world(seed, clients=1, operations=[read, write], ties=seed % 2 == 0)
            one = both.replace(counts=np.array([[[2.0, 3.0]]]))
            gone = set(rng.choice(chosen[:6], int(rng.integers(1, 3)), replace=False).tolist())
            client, between = one.client_rtt[0].tolist(), one.site_rtt.tolist()
            if kind == "leases":
                group, replicas, holders = chosen[:3], sorted(chosen[:5]), sorted(chosen[2:5])
                leader = chosen[2]
                problem = Problem(one, replicas=5, voters=3, protocol="leases:holders=3")
                plan = Configuration.of(leader, group, replicas, holders)
            else:
                group, replicas, holders = chosen[:5], sorted(chosen[2:6]), []
                leader = chosen[3]
                problem = Problem(one, replicas=4, voters=5, witnesses=2)
                plan = Configuration.of(leader, group, replicas)
            assert violations(problem, plan) == ()
            alive = [site for site in group if site not in gone]
            expected = {}
            able = [site for site in alive if site in replicas]
            for ell in [leader] if leader in alive else able:
                if len(alive) < len(group) // 2 + 1:
                    continue
                leased = (set(holders) - gone) | {ell}
                times = []
                sites = [min(leased, key=lambda s: (client[s], s)) if holders else ell, ell]
                for site, clauses in zip(sites, (None, True), strict=True):
                    net, end = Network(), []

                    def work(now, reply, net=net, clauses=clauses, ell=ell, leased=leased):
                        votes = [(len(group) // 2 + 1, alive)]
                        votes += [(len(leased), sorted(leased))] if holders else []
                        if clauses:
                            net.gather(now, between[ell], votes, reply)
                        else:
                            reply(now)

                    net.trip(0, client[site], work, end.append)
                    net.run()
                    times.append(end[0])
                expected[ell] = 2 * times[0] + 3 * times[1]
            assert score_after(problem, plan, gone) == pytest.approx(expected, rel=1e-12), seed


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_raft_written_as_a_wait_loses_to_the_last_bit_as_votes_do(seed: int) -> None:
    plain = world(seed, operations=[Operation("get", near=1), Operation("put", direct=1, quorum=1)])
    # the second clause is met at once by the leader: the wait is not taken for plain votes
    wait = "leader: quorum of voters + 1 of voters"
    waits = placement.with_waits(plain, {"put": [wait]})
    assert Problem(waits, replicas=4, voters=3).demand.waits
    for more in ({}, {"leader_may_move": True}, {"together": 2}):
        for level in ("site", "region"):
            told = []
            for one in (plain, waits):
                problem = Problem(one, replicas=4, voters=3)
                plan = Configuration.of(2, (2, 0, 4), (0, 2, 4, 5))
                told.append(failures(problem, plan, level, **more))
            assert told[0] == told[1]
    goals = (Contingency(), Contingency(goal="weighted", probability=0.05),
             Contingency(goal="bounded", limit=90.0))  # fmt: skip
    for goal in goals:
        plans = [
            placement.solve(Problem(one, replicas=4, voters=3, objective=goal), "exhaustive")
            for one in (plain, waits)
        ]
        assert plans[0].objective == plans[1].objective or not plans[0].found
        assert plans[0].status is plans[1].status


QUESTIONS = {
    "leases": {"protocol": "leases", "replicas": 4, "voters": 3},
    "lease holders": {"protocol": "leases:holders=2", "replicas": 4, "voters": 3},
    "witnesses": {"witnesses": 1, "replicas": 3, "voters": 3},
    "witnesses that wait": {
        "witnesses": 1, "replicas": 3, "voters": 3, "protocol": "semi-sync:level=region"
    },
    "layout": {"vote_layout": (2, 1, 1), "replicas": 3, "voters": 3},
    "layout of five": {"vote_layout": (2, 2, 1, 1, 1), "replicas": 5, "voters": 5},
    "votes": {"votes": {"s0": 2, "s2": 3, "s5": 2}, "replicas": 4, "voters": 3},
    "votes of all": {"votes": {"s1": 2, "s3": 2}, "replicas": 4, "voters": 4, "protocol": "leases"},
    "votes that wait": {"votes": {"s1": 2, "s3": 3}, "replicas": 3, "voters": 3, "quorum": 4},
    "flexiraft": {"protocol": "flexiraft:level=region", "replicas": 4, "voters": 3},
    "epaxos": {"protocol": "epaxos:multi=2", "replicas": 3, "voters": 3},
    "epaxos of four": {"protocol": "epaxos:multi=2,slow=0.2", "replicas": 4, "voters": 4},
    "fast-paxos": {"protocol": "fast-paxos:multi=2", "replicas": 4, "voters": 4},
    "hermes": {"protocol": "hermes:multi=2", "replicas": 3, "voters": 3},
    "coordinated": {"protocol": "coordinated:r=1,w=1,multi=2", "replicas": 2, "voters": 2},
    "pqr": {"protocol": "pqr:interference=0.5", "replicas": 3, "voters": 3},
    "abd": {"protocol": "abd:multi=2", "replicas": 3, "voters": 3},
    "crdb-global": {"protocol": "crdb-global", "replicas": 3, "voters": 3},
}  # fmt: skip
GOALS = (
    {"goal": "worst"},
    {"goal": "worst", "leader_may_move": True, "clients_move": True},
    {"goal": "worst", "together": 2},
    {"goal": "worst", "level": "region"},
    {"goal": "weighted", "probability": {"s1": 0.3, "s3": 0.2}},
    {"goal": "bounded", "limit": 130.0},
)


def uneven(seed: int, sites: int = 6) -> Instance:
    """Return a small world of asymmetric RTTs, clients at two sites, and many zero counts."""
    one = world(seed, sites=sites, clients=4, ties=seed % 2 == 0)
    rng = np.random.default_rng([seed, 6])
    rtt = one.site_rtt + rng.integers(0, 3, one.site_rtt.shape) * 10.0
    np.fill_diagonal(rtt, 0)
    counts = one.counts * (rng.random(one.counts.shape) < 0.6)
    counts[0, 0] += 1
    names = ("s1", "s3", "c2", "c3")
    return one.replace(site_rtt=rtt, counts=counts, clients=names)


def every_configuration(problem: Problem) -> list[Configuration]:
    """Return every configuration that breaks no rule; losses are looked at by nobody."""
    rules, sites = problem.rules, range(len(problem.instance.sites))
    normal = problem.replace(objective=placement.Problem.__dataclass_fields__["objective"].default)
    found = []
    for replicas in itertools.combinations(sites, rules.replicas_min):
        outside = [site for site in sites if site not in replicas]
        for voters in itertools.combinations(replicas, rules.data_voters):
            for aside in itertools.combinations(outside, rules.witnesses):
                for leader in voters:
                    one = Configuration.of(leader, (*voters, *aside), replicas)
                    for held in holder_choices(problem, one):
                        whole = dataclasses.replace(one, lease_holders=held)
                        if not violations(normal, whole):
                            found.append(whole)
    return found


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.parametrize("part", seeds(1, 36))
def test_the_best_under_losses_is_that_of_all_configurations(name: str, part: int) -> None:
    """Each part asks for one goal; six parts in a row ask each question for all of them."""
    goal = GOALS[(part + list(QUESTIONS).index(name)) % len(GOALS)]
    for seed in (2 * part, 2 * part + 1):
        asked = QUESTIONS[name]
        given = dict(goal)
        if given["goal"] == "bounded":
            given["limit"] += 25.0 * (seed % 3)
        problem = Problem(uneven(seed), **asked, objective=Contingency(**given))
        objective = problem.objective
        assert isinstance(objective, Contingency)
        every = every_configuration(problem)
        one_by_one = [objective.value(problem, one) for one in every]
        assert objective.values(problem, every).tolist() == pytest.approx(one_by_one, rel=1e-12)
        best = min(one_by_one)
        plan = placement.solve(problem, "exhaustive")
        if math.isinf(best):
            assert plan.status is Status.INFEASIBLE, seed
            continue
        assert plan.status is Status.OPTIMAL
        assert plan.objective == pytest.approx(best, rel=1e-12), seed
        ties = [
            score_of(problem, one)
            for one, value in zip(every, one_by_one, strict=True)
            if value <= best * (1 + 1e-12)
        ]
        assert plan.configuration is not None
        assert score_of(problem, plan.configuration) == pytest.approx(min(ties), rel=1e-12)
        exact = placement.solve(problem)
        assert exact.objective == pytest.approx(best, rel=1e-12)
        assert exact.configuration is not None
        assert score_of(problem, exact.configuration) == pytest.approx(min(ties), rel=1e-12)
        if problem.rules.witnesses or problem.rules.lease_holders:
            with pytest.raises(UnsupportedError, match="use 'exact'"):
                placement.solve(problem, "local-search")
            continue
        searched = placement.solve(problem, "local-search")
        assert searched.objective >= best * (1 - 1e-12)
        assert searched.bound <= best * (1 + 1e-9)


def test_a_local_search_that_finds_no_plan_proves_nothing() -> None:
    """Every start stops after some loss: restarts look on, and without them nothing is said."""
    problem = Problem(
        uneven(13), **QUESTIONS["votes"], objective=Contingency(goal="worst", level="region")
    )
    searched = placement.solve(problem, "local-search")
    assert searched.status is Status.FEASIBLE
    assert searched.objective == placement.solve(problem).objective
    early = placement.solve(problem, "local-search", settings={"patience": 0})
    assert early.configuration is None
    assert early.status is not Status.INFEASIBLE
    assert early.bound == -math.inf


def test_losses_of_a_fast_quorum_by_hand() -> None:
    """Five sites in a row, 10 ms apart; EPaxos asks three of five, and after three losses stops."""
    rtt = np.abs(np.subtract.outer(np.arange(5), np.arange(5))) * 10.0
    names = tuple("abcde")
    write = Operation("put", direct=1, quorum=1)
    row = placement.Instance(names, ("x",), rtt[:1], rtt, operations=[write], counts=[[1.0]])
    plan = Configuration.of(0, range(5), range(5))
    asked = {"replicas": 5, "voters": 5}
    epaxos, atlas = (Problem(row, **asked, protocol=p) for p in ("epaxos", "atlas:f=2"))
    # a fast quorum of 3 is left after two losses: a waits for c, or for e and d
    assert score_after(epaxos, plan, [3, 4]) == {0: 20.0}
    assert score_after(epaxos, plan, [1, 2]) == {0: 40.0}
    assert score_after(epaxos, plan, [1, 2, 3]) == {}
    # Atlas with f = 2 needs 4: with 3 left, a majority and then f + 1 = 3 of them, one by one
    assert score_after(atlas, plan, [4]) == {0: 30.0}
    assert score_after(atlas, plan, [3, 4]) == {0: 20.0 + 20.0}
    # the nearest is lost: the client asks b, 10 ms away
    assert score_after(epaxos, plan, [0]) == {1: 10.0 + 20.0}


def test_a_layout_keeps_its_votes_where_they_lie() -> None:
    """Votes 2-2-1 on a, b, c: without c any leader waits for the other; a and c hold 3 votes."""
    rtt = np.array([[0.0, 10, 50], [10, 0, 60], [50, 60, 0]])
    write = Operation("put", direct=1, quorum=1)
    row = placement.Instance(tuple("abc"), ("x",), rtt[:1], rtt, operations=[write], counts=[[1.0]])
    problem = Problem(row, replicas=3, voters=3, vote_layout=(2, 2, 1))
    plan = Configuration.of(0, (0, 1, 2), (0, 1, 2))
    assert score_after(problem, plan, [2]) == {0: 10.0}
    assert score_after(problem, plan, [1]) == {0: 50.0}
    assert score_after(problem, plan, [0]) == {1: 10.0 + 60.0, 2: 50.0 + 60.0}
    five = Problem(row, replicas=3, voters=3, vote_layout=(3, 1, 1))
    assert score_after(five, plan, [0]) == {}  # 3 of 5 votes are lost
    assert failures(five, plan).each[0].survives is False


def test_a_plan_says_what_stops_until_roles_are_reconfigured(tmp_path: Path) -> None:
    one = world(3)
    plan = placement.solve(Problem(one, replicas=4, voters=3, protocol="leases"))
    assert all(row.stops_first and row.survives for row in plan.failures.each)
    assert plan.failures.failover
    text = str(plan)
    assert "until reconfigured" in text
    assert " ".join(STOPS_FIRST.split()[:5]) in " ".join(text.split())
    assert "Until reconfigured" in str(plan_sections(plan))
    save_plan(plan, tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text())
    assert all(row["stops_first"] for row in document["failures"]["each"])
    assert load_plan(tmp_path / "plan.json").failures == plan.failures
    holders = placement.solve(Problem(one, replicas=4, voters=3, protocol="leases:holders=2"))
    assert {row.lost for row in holders.failures.each if row.stops_first} == set(
        holders.lease_holders
    )


def test_without_a_leader_nobody_takes_over() -> None:
    one = world(3)
    plan = placement.solve(Problem(one, replicas=3, voters=3, protocol="epaxos:multi=2"))
    assert plan.failures.failover == ()
    assert [row.leader for row in plan.failures.each] == [None] * 3
    assert all(row.survives and math.isfinite(row.mean_latency) for row in plan.failures.each)
    assert "no quorum" not in str(plan)
    assert not plan.failures.stop_first
    assert failures(plan.problem, plan.configuration, together=2).worst.survives is False


def test_all_in_a_domain_stops_where_a_member_of_that_domain_is_lost() -> None:
    wait = "leader: quorum of voters + all of replicas inside region"
    one = placement.with_waits(world(4), {"single_group": [wait]})
    problem = Problem(one, replicas=4, voters=4)
    # regions by site: east, west, south, east, west, …
    plan = Configuration.of(0, (0, 1, 3, 4), (0, 1, 3, 4))
    told = failures(problem, plan).each
    assert {row.lost: row.stops_first for row in told[1:]} == {"s1": False, "s3": True, "s4": False}
    assert told[0].stops_first == (told[0].leader == "s3")  # the other one in the east
    near = placement.with_waits(world(4), {"single_group": ["near: all of voters outside region"]})
    problem = Problem(near, replicas=4, voters=4)
    assert all(row.stops_first for row in failures(problem, plan).each)


def test_losses_of_more_voters_than_a_majority_stop_only_who_asks_for_one() -> None:
    one = world(5)
    plan = Configuration.of(0, range(3), range(3))
    asked = {"replicas": 3, "voters": 3}
    cells = Problem(one, **asked, protocol="coordinated:r=1,w=1,multi=2")
    assert score_after(cells, plan, [0, 1])
    assert not score_after(Problem(one, **asked, protocol="abd:multi=2"), plan, [0, 1])
    assert not score_after(Problem(one, **asked, protocol="hermes:multi=2"), plan, [0, 1])
    both = Contingency(together=2)
    plan2 = placement.solve(cells.replace(objective=both), "exhaustive")
    assert plan2.status is Status.OPTIMAL
    assert len(losses(cells, together=2)) == 21


def test_what_remains_refused_says_so_with_its_field_and_a_way_out() -> None:
    one = world(6)
    asked = {"replicas": 3, "voters": 3}
    goal = Contingency()
    problem = Problem(one, **asked, protocol="leases", objective=goal)
    for name in placement.available():
        if name in ("exact", "exhaustive", "local-search", "milp", "cp-sat"):
            assert placement.solve(problem, name).found
            continue
        if name == "leader":
            given = problem.replace(replicas=one.sites[:3], voters=one.sites[:3])
            assert placement.solve(given, name).status is Status.OPTIMAL
            continue
        with pytest.raises(UnsupportedError, match="exhaustive"):
            placement.solve(problem, name)
    layout = Problem(one, **asked, vote_layout=(2, 2, 1), objective=goal)
    for name in ("cp-sat", "milp"):
        with pytest.raises(UnsupportedError, match="vote layout"):
            placement.solve(layout, name)
    spread = Percentile(99, Distributions.parametric(one, variation=0.2))
    late = Contingency(percentile=spread)
    with pytest.raises(InputError, match="a percentile after losses") as caught:
        Problem(one, **asked, vote_layout=(2, 2, 1), objective=late)
    assert caught.value.field == "objective"
    assert "Contingency without a percentile" in str(caught.value.expected)
    many = Problem(placement.load("azure"), replicas=4, voters=5, witnesses=1, objective=goal)
    with pytest.raises(UnsupportedError, match="forbidden"):
        placement.solve(many)
    plan = placement.solve(Problem(one, **asked, protocol="leases"))
    with pytest.raises(InputError) as caught:
        deployment_of_plan(plan)
    assert caught.value.field == "protocol"
    with pytest.raises(InputError) as caught:
        after_loss(plan, (plan.replicas[0],))
    assert caught.value.field == "lost"
