"""The enumeration of sets: equal to enumeration, its bounds below every set, its limits honest."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import placement
from formulations.waits import _kernel
from formulations.waits.sets import _Search, compiled_available, why_not
from placement import Diversity, LimitError, Operation, Problem
from placement.evaluation.objective import score_of
from placement.evaluation.score import score_many
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Options
from placement.model.configuration import Configuration
from placement.support.status import Status, Termination
from tests.effort import seeds
from tests.protocols.worlds import world

needs_kernel = pytest.mark.skipif(not compiled_available(), reason="the kernel was not built")

LED = (
    "raft", "leases:interference=0.2", "flexiraft:level=region", "semi-sync:level=region",
    "mongodb:linearizable=0.4", "crdb-global", "tidb:follower=0.5",
)  # fmt: skip
EVERYONE = (
    "epaxos:slow=0.1,multi=2", "atlas:slow=0.2,multi=2", "mencius:multi=2", "hermes:multi=2",
    "abd:multi=2", "pqr:interference=0.1", "fast-paxos:slow=0.3,multi=2",
    "coordinated:r=2,w=2,multi=2",
)  # fmt: skip
HAND = (
    "leader: majority of voters + 1 of voters outside region",
    "leader: all of replicas inside region",
    "leader: 2 of replicas outside region + majority of voters inside region",
    "near: majority of voters inside region + 1 of voters outside region",
    "near: all of voters outside region",
    "client: 2 of replicas + all of voters",
)


def questions(seed: int) -> Problem:
    """Return a random question: a protocol or waits by hand, ties, rules, pins."""
    rng = np.random.default_rng([seed, 7])
    clients = (5, 19)[seed % 2]  # fewer and more than the kernel adds up at a time
    one = world(seed, sites=8, clients=clients, ties=bool(rng.integers(2)))
    size = int(rng.integers(2, 6))
    asked: dict[str, object] = {"replicas": size, "voters": size}
    kind = rng.integers(3)
    if kind == 0:
        asked["voters"] = int(rng.integers(2, size + 1))
        asked["protocol"] = str(rng.choice(LED))
    elif kind == 1:
        asked["replicas"] = asked["voters"] = size = max(3, size)
        asked["protocol"] = str(rng.choice(EVERYONE))
    else:
        wait = str(rng.choice(HAND))
        one = placement.with_waits(one, {"single_group": [wait]})
        if wait.startswith("leader"):
            asked["voters"] = int(rng.integers(2, size + 1))
    rules = rng.integers(6)
    if rules == 0:
        asked["diversity"] = Diversity("region", cap=2)
    elif rules == 1:
        asked["diversity"] = Diversity("region", "replicas", min_domains=2)
    elif rules == 2:
        asked["pinned"] = ["s5"]
        asked["forbidden"] = ["s1"]
    elif rules == 3:
        asked["pinned_voters"] = ["s2"]
    elif rules == 4:
        asked["non_voters"] = ["s0", "s4"]
    return Problem(one, **asked)  # type: ignore[arg-type]


@needs_kernel
@pytest.mark.parametrize("seed", seeds(12, 120))
def test_no_set_is_below_the_bound_of_its_beginning(seed: int) -> None:
    problem = questions(seed)
    if why_not(problem) is not None:
        return
    search, size = _Search(problem, Options()), problem.rules.voters
    if search.kernel is None:
        return
    demand = problem.demand
    direct = search.by_site @ demand.direct[0][demand.counts[0].any(axis=1)] + demand.constant
    leaders = np.nonzero(problem.rules.may_lead[search.order])[0].tolist()
    for leader in [-1] if demand.leaderless else leaders:
        constant = demand.constant if leader < 0 else float(direct[leader])
        root = tuple(dict.fromkeys((*search.forced, *((leader,) if leader >= 0 else ()))))
        if len(root) > size:
            continue
        values = {}
        free = [s for s in range(len(search.order)) if s not in root]
        for rest in itertools.combinations(free, size - len(root)):
            replicas = search.order[list(root + rest)].tolist()
            leads = min(replicas) if leader < 0 else int(search.order[leader])
            one = Configuration.of(leads, replicas, replicas)
            if not violations(problem, one):
                values[rest] = score_of(problem, one)
        for rest in values:
            for length in range(len(rest) + 1):
                begin = rest[:length]
                first = begin[-1] + 1 if begin else 0
                prefix = np.array((*root, *begin), dtype=np.int32)
                bound = _kernel.bound(search.kernel, leader, constant, prefix, first)
                below = min(v for one, v in values.items() if one[:length] == begin)
                assert bound <= below * (1 + 1e-12), (seed, leader, begin)


def writes_only(
    one: placement.Instance, near: str | None, client: str | None
) -> placement.Instance:
    """Return the instance with every operation as the write of a protocol without a leader."""
    waits = [wait for wait in (near, client) if wait]
    return one.replace(
        operations=tuple(
            Operation(o.name, near=1 if near else 0, waits=waits) for o in one.operations
        )
    )


def test_sets_that_tie_under_a_leader_differ_without_one() -> None:
    """Among the 900 sets that tie for the leader's optimum EPaxos takes 157.7 to 232.5 ms."""
    world27 = placement.load("world27")
    led = world27.replace(
        operations=tuple(Operation(o.name, direct=1, quorum=1) for o in world27.operations)
    )
    cap = Diversity("continent", cap=2)
    problem = Problem(led, replicas=5, voters=5, diversity=cap)
    best = placement.solve(problem)
    assert best.mean_latency == pytest.approx(192.8, abs=0.05)
    assert best.configuration is not None
    leader = best.configuration.leader
    sets = np.array(list(itertools.combinations(range(27), 5)))
    sets = sets[problem.rules.obeyed("voters", sets) & (sets == leader).any(axis=1)]
    scores = score_many(problem.demand, np.full(len(sets), leader), sets, sets, 3)
    ties = sets[scores <= best.score * (1 + 1e-9)]
    assert len(ties) > 100
    epaxos = Problem(writes_only(world27, "near: 3 of voters", None), replicas=5, voters=5)
    values = score_many(epaxos.demand, ties[:, 0], ties, ties, 3) / epaxos.demand.operations
    assert values.max() > 1.4 * values.min()


@needs_kernel
def test_a_limit_leaves_a_valid_bound() -> None:
    problem = Problem(placement.load("world27", mix="ycsb-a"), replicas=5, voters=5, protocol="abd")
    best = placement.solve(problem, "sets")
    for seconds in (0.0, 0.005, 0.02):
        plan = placement.solve(problem, "sets", time_limit=seconds)
        assert plan.bound <= best.score * (1 + 1e-12)
        assert plan.found
        assert plan.score >= best.score
        if plan.termination is Termination.FINISHED:
            assert plan.status is Status.OPTIMAL
    plan = placement.solve(problem, "sets", gap_limit=0.2)
    assert plan.gap <= 0.2


@needs_kernel
def test_an_interrupt_keeps_what_was_found() -> None:
    problem = Problem(placement.load("world27", mix="ycsb-a"), replicas=5, voters=5, protocol="abd")

    def stop(_: placement.Progress) -> None:
        raise KeyboardInterrupt

    plan = placement.solve(problem, "sets", progress=stop)
    assert plan.termination is Termination.INTERRUPTED
    assert plan.found
    assert plan.bound <= placement.solve(problem, "sets").score


@needs_kernel
@pytest.mark.parametrize("opened", range(4))
def test_an_interrupt_before_every_part_is_bounded_proves_nothing_of_the_others(
    opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = Problem(world(opened), replicas=3, voters=3, protocol="abd:multi=2")
    best = placement.solve(problem, "sets").objective
    calls, honest = itertools.count(), _Search._add

    def interrupted(self: _Search, *part: object) -> None:
        if next(calls) == opened:
            raise KeyboardInterrupt
        honest(self, *part)  # type: ignore[arg-type]

    monkeypatch.setattr(_Search, "_add", interrupted)
    plan = placement.solve(problem, "sets")
    assert plan.termination is Termination.INTERRUPTED
    assert plan.status is not Status.OPTIMAL
    assert plan.bound <= best


def test_what_the_search_does_not_take_is_refused_with_the_way_out() -> None:
    prices = placement.Prices(np.ones(7))
    one = world(1).replace(prices=prices)
    for asked in (
        {"replicas": 3, "voters": 3, "budget": 9.0},
        {"replicas": 3, "voters": 3, "cost_weight": 1.0},
    ):
        with pytest.raises(placement.UnsupportedError, match="does not support money"):
            placement.solve(Problem(one, **asked), "sets")  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", ["caesar:multi=2", "hermes:multi=2", "pqr", "leases"])
def test_a_pinned_site_without_a_vote_leaves_no_plan_where_every_replica_votes(
    protocol: str,
) -> None:
    problem = Problem(world(1), replicas=3, protocol=protocol, pinned=["s1"], non_voters=["s1"])
    for method in ("exhaustive", "sets", "exact"):
        plan = placement.solve(problem, method)
        assert plan.status is Status.INFEASIBLE
        # the reasons name the rules that conflict; the number of replicas is no choice here
        assert "without a vote s1" in plan.reasons[0]
        assert "pinned s1" in plan.reasons[0]
        assert ("at most 3 replicas" in plan.reasons[0]) == (protocol == "leases")


def test_reasons_without_a_plan_keep_the_replicas_that_waits_ask_for() -> None:
    """A question with fewer replicas than a wait asks for is no question."""
    wait = "leader: 3 of replicas + quorum of voters"
    one = placement.with_waits(world(1), {"single_group": [wait]})
    rules = Diversity("region", "voters", cap=1), Diversity("region", "replicas", cap=1)
    asked = {"replicas": 4, "voters": 3, "pinned_voters": ["s0"], "forbidden": ["s1", "s4"]}
    plan = placement.solve(Problem(one, **asked, diversity=rules))  # type: ignore[arg-type]
    assert plan.status is Status.INFEASIBLE
    assert plan.reasons


def test_without_the_kernel_enumeration_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("formulations.waits.sets.compiled_available", lambda: False)
    problem = Problem(world(3), replicas=3, voters=3, protocol="epaxos:multi=2")
    plan = placement.solve(problem, "sets")
    assert plan.status is Status.OPTIMAL
    assert plan.method == "sets"


def test_the_referee_knows_its_limit() -> None:
    problem = Problem(world(1), replicas=3, voters=3, protocol="leases")
    with pytest.raises(LimitError, match="'sets'"):
        placement.solve(problem, "exhaustive", settings={"limit": 2})
