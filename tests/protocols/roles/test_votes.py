"""Votes given per site: against configurations and messages counted one by one, by every method."""

from __future__ import annotations

import copy
import itertools
import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from placement import Configuration, Diversity, InputError, Instance, Problem
from placement.cli import main
from placement.errors import CertificateError
from placement.evaluation.losses import score_after
from placement.evaluation.objective import score_of
from placement.evaluation.score import operation_latency
from placement.evaluation.waits.vote_cases import vote_blocks
from placement.evaluation.waits.wait_notes import wait_notes
from placement.feasibility.feasible_plans import violations
from placement.io import load_plan, save_plan
from placement.methods.registry import load_method, refusal
from placement.model.waits import Clause, Wait
from placement.support.status import Status
from tests.effort import seeds
from tests.protocols.messages import Network
from tests.protocols.test_losses import uneven
from tests.protocols.worlds import world

PROTOCOLS = (None, None, None, "leases", "leases:interference=0.2", "semi-sync:level=region",
             "spanner", "leases:holders=2")  # fmt: skip


def drawn(rng: np.random.Generator) -> Problem | None:
    """Return a question with votes, rules and a protocol; None where they contradict each other."""
    sites = int(rng.integers(1, 8))
    maker = world if rng.random() < 0.6 else uneven
    one = maker(int(rng.integers(10**6)), sites=max(sites, 4) if maker is uneven else sites)
    names = one.sites
    replicas = int(rng.integers(1, min(len(names), 5) + 1))
    voters = int(rng.integers(1, replicas + 1)) if rng.random() < 0.6 else replicas
    most = int(rng.choice([2, 2, 3, 5]))
    votes = {name: int(rng.integers(1, most + 1)) for name in names if rng.random() < 0.6}
    votes = votes if max(votes.values(), default=1) > 1 else {names[0]: 2}
    asked: dict[str, object] = {"replicas": replicas, "voters": voters, "votes": votes}
    if rng.random() < 0.35:
        asked["quorum"] = int(rng.integers(1, most * voters + 1))
    if rng.random() < 0.3:
        asked["survive"] = "region" if rng.random() < 0.5 else "site"
    if rng.random() < 0.2:
        asked["pinned"] = [names[-1]]
    if rng.random() < 0.2:
        role = "replicas" if rng.random() < 0.6 else "voters"
        asked["diversity"] = [Diversity("region", role, cap=int(rng.integers(1, 3)))]
    if rng.random() < 0.2:
        asked["leader"] = names[len(names) // 2]
    if rng.random() < 0.2:
        asked["non_voters"] = [names[0]]
    asked["protocol"] = PROTOCOLS[int(rng.integers(len(PROTOCOLS)))]
    try:
        return Problem(one, **asked)  # type: ignore[arg-type]
    except InputError:
        return None


def questions(part: int, count: int) -> list[Problem]:
    """Return as many questions as there are that contradict nothing."""
    rng = np.random.default_rng([part, 21])
    found: list[Problem] = []
    while len(found) < count:
        problem = drawn(rng)
        if problem is not None:
            found.append(problem)
    return found


def heard(times: dict[int, float], votes: dict[int, int], need: int) -> float:
    """Return when so many votes have arrived, answer by answer."""
    arrived = 0
    for time, site in sorted((time, site) for site, time in times.items()):
        arrived += votes[site]
        if arrived >= need:
            return time
    return math.inf


def least_of_all(problem: Problem) -> float:
    """Return the least score of a plain question, each configuration counted by itself."""
    one, rules = problem.instance, problem.rules
    votes = [problem.votes.get(name, 1) for name in one.sites]  # type: ignore[union-attr]
    regions = one.sites if problem.survive == "site" else one.domains["region"]
    best = math.inf
    for replicas in itertools.combinations(range(len(one.sites)), rules.replicas_min):
        for voters in itertools.combinations(replicas, rules.voters):
            total = sum(votes[v] for v in voters)
            need = total // 2 + 1 if problem.quorum is None else problem.quorum
            if problem.survive is not None:
                lost = [
                    sum(votes[v] for v in voters if regions[v] == region) for region in set(regions)
                ]
                if any(total - gone < max(need, total - need + 1) for gone in lost):
                    continue
            for leader in voters:
                times = {v: float(one.site_rtt[leader, v]) for v in voters}
                wait = heard(times, dict(enumerate(votes)), need)
                if math.isinf(wait):
                    continue
                score = 0.0
                for c in range(len(one.clients)):
                    near = min(replicas, key=lambda r: (one.client_rtt[c, r], r))
                    to_near = one.client_rtt[c, near]
                    for o, operation in enumerate(one.operations):
                        alpha, beta, gamma, delta = operation.coefficients
                        score += one.counts[0, c, o] * (
                            alpha * to_near
                            + beta * one.site_rtt[near, leader]
                            + gamma * one.client_rtt[c, leader]
                            + delta * wait
                        )
                best = min(best, score)
    return best


@pytest.mark.parametrize("part", seeds(2, 20))
def test_the_reference_method_finds_the_best_of_all_configurations(part: int) -> None:
    rng = np.random.default_rng([part, 5])
    for _ in range(5):
        sites = int(rng.integers(3, 7))
        voters = int(rng.integers(1, min(sites, 4) + 1))
        votes = rng.integers(1, 4, sites)
        votes[0] = max(votes[0], 1 + (votes == 1).all())
        problem = Problem(
            world(int(rng.integers(10**6)), sites=sites),
            replicas=int(rng.integers(voters, min(sites, 4) + 1)),
            voters=voters,
            votes={f"s{i}": int(n) for i, n in enumerate(votes)},
            survive=[None, "region", "site"][int(rng.integers(3))],
        )
        plan = placement.solve(problem, "exhaustive")
        best = least_of_all(problem)
        assert plan.found == math.isfinite(best)
        if plan.found:
            assert plan.score == pytest.approx(best, rel=1e-12)


@pytest.mark.parametrize("part", seeds(2, 60))
def test_methods_agree_and_certificates_hold(part: int) -> None:
    """The long form makes 1,200 questions; exact by the engine, by copies or as another method."""
    for problem in questions(part, 20 if part % 4 else 6 if part else 4):
        best = placement.solve(problem, "exhaustive")
        methods = ("exact", "milp", "cp-sat") if part % 4 == 0 else ("exact",)
        for method in methods:
            plan = placement.solve(problem, method)
            assert plan.found == best.found, (method, problem)
            if not plan.found:
                continue
            assert plan.status is Status.OPTIMAL
            assert plan.score == pytest.approx(best.score, rel=1e-9), (method, problem)
            if method == "exact":
                checked = placement.check_certificate(plan)
                assert checked.bound == pytest.approx(best.score, rel=1e-9)


@pytest.mark.parametrize("part", seeds(1, 10))
def test_a_bad_start_changes_no_answer(part: int) -> None:
    for problem in questions(100 + part, 12 if part else 8):
        best = placement.solve(problem, "exhaustive")
        if not best.found:
            continue
        rules = problem.rules
        all_sets = itertools.combinations(range(len(rules.may_hold)), len(best.replicas))
        every = (
            Configuration.of(voters[-1], voters, replicas)
            for replicas in all_sets
            for voters in itertools.combinations(replicas, rules.voters)
        )
        start = next((one for one in every if not violations(problem, one)), None)
        plan = placement.solve(problem, "exact", start=start)
        assert plan.score == pytest.approx(best.score, rel=1e-9)


@pytest.mark.parametrize("part", seeds(1, 40))
def test_the_formula_is_what_the_messages_take(part: int) -> None:
    """Ten worlds a part: the votes of each answer are counted as it arrives at the leader."""
    rng = np.random.default_rng([part, 9])
    for seed in range(10 * part, 10 * part + 10):
        one = world(seed, sites=6, ties=seed % 2 == 0)
        group = sorted(rng.choice(6, int(rng.integers(1, 6)), replace=False).tolist())
        votes = {f"s{i}": int(n) for i, n in enumerate(rng.integers(1, 5, 6))}
        total = sum(votes[f"s{s}"] for s in group)
        quorum = None if seed % 3 else int(rng.integers(1, total + 1))
        problem = Problem(
            one, replicas=len(group), voters=len(group), votes=votes, quorum=quorum,
            protocol="leases" if seed % 2 else None,
        )  # fmt: skip
        leader = group[int(rng.integers(len(group)))]
        plan = Configuration.of(leader, group, group)
        quick = operation_latency(problem.demand, leader, group, group, problem.rules.quorum)[0]
        write = [operation.name for operation in one.operations].index("single_group")
        need = total // 2 + 1 if quorum is None else quorum
        # a member with three votes answers with three messages, and each counts for one
        doubled = [s for s in group for _ in range(votes[f"s{s}"])]
        rtt = [float(one.site_rtt[leader, s]) for s in doubled]
        for client in range(len(one.clients)):
            net, end = Network(), [math.nan]

            def finish(now: float, end: list[float] = end) -> None:
                end[0] = now

            clauses = [(need, range(len(doubled)))]
            if problem.protocol is not None:
                clauses.append((len(doubled), range(len(doubled))))
            net.trip(
                0,
                float(one.client_rtt[client, leader]),
                lambda now, reply, net=net, clauses=clauses: net.gather(now, rtt, clauses, reply),
                finish,
            )
            net.run()
            assert quick[client, write] == pytest.approx(end[0], rel=1e-12)
        assert not violations(problem, plan)


def test_one_vote_each_is_no_question_about_votes() -> None:
    for protocol in (None, "leases"):
        plain = Problem(world(3), replicas=5, voters=4, protocol=protocol)
        even = plain.replace(votes={"s1": 1, "s5": 1})
        assert even.votes is None
        assert even.demand is plain.demand
        one, other = (placement.solve(problem, "exact") for problem in (plain, even))
        assert (one.configuration, one.score, one.bound) == (
            other.configuration, other.score, other.bound,
        )  # fmt: skip
        assert one.quorum_members == other.quorum_members


@given(data=st.data())
def test_what_must_hold(data: st.DataObject) -> None:
    """As many times the votes change nothing; one vote needed more never helps, nor fewer sites.

    For a fixed number of votes, more votes of a site never make the best plan worse. For a majority
    they may: the next test has an example.
    """
    # without ties: whom a client reads from would depend on the order of the sites
    one = world(data.draw(st.integers(0, 10**6)), sites=5, ties=False)
    few = st.lists(st.integers(1, 3), min_size=5, max_size=5)
    votes = dict(zip(one.sites, data.draw(few), strict=True))
    size = data.draw(st.integers(1, 4))
    voters = data.draw(st.integers(1, size))

    def best(instance: Instance = one, **asked: object) -> float:
        problem = Problem(instance, replicas=size, voters=voters, **asked)  # type: ignore[arg-type]
        return placement.solve(problem, "exact").score

    score = best(votes=votes)
    times = data.draw(st.integers(2, 4))
    assert best(votes={s: times * n for s, n in votes.items()}) == pytest.approx(score, rel=1e-12)
    order = data.draw(st.permutations(range(5)))
    turned = one.replace(
        sites=[one.sites[i] for i in order],
        client_rtt=one.client_rtt[:, order],
        site_rtt=one.site_rtt[np.ix_(order, order)],
        domains={"region": [one.domains["region"][i] for i in order]},
    )
    assert best(turned, votes=votes) == pytest.approx(score, rel=1e-12)
    longer = one.replace(client_rtt=3 * one.client_rtt, site_rtt=3 * one.site_rtt)
    assert best(longer, votes=votes) == pytest.approx(3 * score, rel=1e-12)
    most = sum(sorted(votes.values())[-voters:])
    quorum = data.draw(st.integers(1, most))
    fixed = best(votes=votes, quorum=quorum)
    if quorum < most:
        assert best(votes=votes, quorum=quorum + 1) >= fixed * (1 - 1e-12)
    heavier = {**votes, "s2": votes["s2"] + data.draw(st.integers(1, 2))}
    assert best(votes=heavier, quorum=quorum) <= fixed * (1 + 1e-12)


def test_a_heavier_site_may_make_a_majority_slower() -> None:
    """The leader a has b at 10 ms and c at 50 ms: with one vote each it waits for b alone.

    If c must vote and has three votes of five, every majority has c.
    """
    rtt = np.array([[0.0, 10.0, 50.0], [10.0, 0.0, 50.0], [50.0, 50.0, 0.0]])
    write = placement.Operation("write", direct=1, quorum=1)
    three = Instance(["a", "b", "c"], ["x"], np.array([[0.0, 60.0, 60.0]]), rtt,
                     operations=[write], counts=np.ones((1, 1)))  # fmt: skip
    plan = placement.solve(Problem(three, replicas=3, voters=3))
    assert (plan.leader, plan.mean_latency) == ("a", 10.0)
    heavy = placement.solve(Problem(three, replicas=3, voters=3, votes={"c": 3}))
    assert (heavy.leader, heavy.mean_latency) == ("a", 50.0)
    (wait,) = heavy.waits
    assert (wait.wait, wait.last, wait.latency) == ("leader: majority of voters", "c", 50.0)
    assert wait.one_fewer == 10.0  # a and b have the two votes by then
    assert [(m.voter, m.counted) for m in heavy.quorum_members] == [
        ("a", True), ("b", True), ("c", True),
    ]  # fmt: skip
    assert heavy.votes == {"a": 1, "b": 1, "c": 3}
    assert "waits 50.00 ms for 3 of 5 votes" in str(heavy)
    assert "voter, 3 votes" in str(heavy)
    two = placement.solve(Problem(three, replicas=3, voters=3, votes={"b": 2}, quorum=3))
    assert (two.leader, two.mean_latency, two.commits) == ("a", 10.0, True)
    assert two.waits[0].wait == "leader: 3 votes of voters"


@given(data=st.data())
def test_rows_are_met_where_the_votes_are_reached(data: st.DataObject) -> None:
    """A choice of voters by distance meets a row if and only if their wait ends within it."""
    votes = data.draw(st.lists(st.integers(1, 4), min_size=2, max_size=7))
    voters = data.draw(st.integers(1, len(votes)))
    names = [f"s{i}" for i in range(len(votes))]
    if max(votes) == 1:
        votes[0] = 2
    clause = Clause("majority")
    if data.draw(st.booleans()):
        most = sum(sorted(votes)[-voters:])
        clause = Clause(data.draw(st.integers(1, most)), of_votes=True)
    problem = Problem(
        world(1, sites=len(votes)), replicas=len(votes), voters=voters,
        votes=dict(zip(names, votes, strict=True)),
    )  # fmt: skip
    blocks = vote_blocks(clause, problem.rules)
    assert blocks is not None
    near = set(data.draw(st.sets(st.integers(0, len(votes) - 1))))
    held = set(data.draw(st.sets(st.integers(0, len(votes) - 1), min_size=voters)))
    reached = False
    for chosen in itertools.combinations(sorted(held), voters):
        need = sum(votes[s] for s in chosen) // 2 + 1
        need = clause.need if isinstance(clause.need, int) else need
        reached |= sum(votes[s] for s in chosen if s in near) >= need
    count = [
        sum(bool(part[s]) for s in (held & near if ball else held))
        for part, ball in zip(blocks.classes, blocks.near, strict=True)
    ]
    assert bool((np.array(count) >= blocks.least).all(axis=1).any()) is reached


def test_a_changed_certificate_or_other_votes_are_refused(tmp_path: Path) -> None:
    problem = Problem(
        world(11, ties=False), replicas=4, voters=4, votes={"s1": 2, "s3": 3, "s4": 2},
        protocol="leases:interference=0.3",
    )  # fmt: skip
    plan = placement.solve(problem, "exact")
    bound = placement.check_certificate(plan).bound
    save_plan(plan, tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text())
    assert document["version"] == 2
    again = load_plan(tmp_path / "plan.json", problem.instance)
    assert again.problem.votes == problem.votes
    assert again.score == plan.score
    assert placement.check_certificate(again).bound == bound

    higher = copy.deepcopy(dict(plan.certificate))  # type: ignore[arg-type]
    higher["bound"] = plan.score * 1.01
    with pytest.raises(CertificateError):
        placement.check_certificate(plan.replace(certificate=higher, bound=plan.score * 1.01))
    fewer = copy.deepcopy(dict(plan.certificate))  # type: ignore[arg-type]
    for trees in [value for value in fewer.values() if isinstance(value, list) and value]:
        trees.pop()
    with pytest.raises(CertificateError):
        placement.check_certificate(plan.replace(certificate=fewer))
    document["problem"]["votes"] = {"s0": 5}
    (tmp_path / "other.json").write_text(json.dumps(document))
    with pytest.raises((InputError, CertificateError)):
        placement.check_certificate(load_plan(tmp_path / "other.json", problem.instance))


def test_a_certificate_of_the_plain_question_proves_nothing_about_votes() -> None:
    """With votes where clients are, a leader waits less than the bound of the plain question."""
    rng = np.random.default_rng(4)
    shown = 0
    for _ in range(30):
        one = world(int(rng.integers(10**6)), ties=False)
        plain = Problem(one, replicas=5, voters=5)
        heavy = plain.replace(votes={f"s{i}": int(n) for i, n in enumerate(rng.integers(1, 6, 7))})
        without, plan = placement.solve(plain), placement.solve(heavy)
        if heavy.votes is None or without.score <= plan.score * (1 + 1e-9):
            continue
        shown += 1
        with pytest.raises(CertificateError):
            placement.check_certificate(
                plan.replace(certificate=without.certificate, bound=without.bound)
            )
    assert shown > 2


@pytest.mark.parametrize(
    ("field", "asked"),
    [
        ("votes", {"votes": {"nowhere": 2}}),
        ("votes['s1']", {"votes": {"s1": 0}}),
        ("votes['s1']", {"votes": {"s1": 1.5}}),
        ("votes['s1']", {"votes": {"s1": "2"}}),
        ("votes['s1']", {"votes": {"s1": True}}),
        ("votes", {"votes": [2, 1]}),
        ("vote_layout", {"votes": {"s1": 2}, "vote_layout": (2, 1, 1)}),
        ("votes", {"votes": {"s1": 2}, "protocol": "epaxos:multi=2"}),
        ("votes", {"votes": {"s1": 2}, "protocol": "abd:multi=2"}),
        ("votes", {"votes": {"s1": 2}, "protocol": "coordinated:r=1,w=2,multi=2"}),
        ("protocol", {"votes": {"s1": 2}, "protocol": "flexible:quorum=2"}),
        ("quorum", {"votes": {"s1": 2}, "quorum": 5}),
        ("quorum", {"votes": {"s1": 2}, "quorum": 2.5}),
        ("current", {"votes": {"s1": 2},
                     "current": {"leader": "s0", "voters": ["s0"], "replicas": ["s0"]}}),
    ],
)  # fmt: skip
def test_what_votes_cannot_be_asked_with_is_refused(field: str, asked: dict[str, object]) -> None:
    with pytest.raises(InputError) as caught:
        Problem(world(2), replicas=3, voters=3, **asked)  # type: ignore[arg-type]
    assert caught.value.field == field
    assert caught.value.expected


def test_a_quorum_counts_votes_up_to_the_most_that_voters_may_have() -> None:
    one = world(2)
    most = Problem(one, replicas=3, voters=3, votes={"s1": 2, "s2": 3}, quorum=6)
    assert placement.solve(most).found
    with pytest.raises(InputError, match="<= 6"):
        most.replace(quorum=7)
    assert most.replace(forbidden=["s2"], quorum=4).rules.votes is not None
    with pytest.raises(InputError, match="<= 4"):
        most.replace(forbidden=["s2"], quorum=5)
    assert any("need not share" in note for note in wait_notes(most.replace(quorum=2)))
    assert "votes s1=2, s2=3, quorum 6 votes" in repr(most)


def test_a_leader_without_enough_votes_is_none_where_it_alone_votes() -> None:
    """One voter of two or three replicas: the site with two votes leads, where two are needed."""
    for seed in range(8):
        problem = Problem(
            world(seed, sites=3), replicas=2 + seed % 2, voters=1, votes={"s0": 2}, quorum=2
        )
        plan = placement.solve(problem)
        assert (plan.status, plan.leader) == (Status.OPTIMAL, "s0")
        assert plan.score == placement.solve(problem, "exhaustive").score


def test_waits_may_name_a_number_of_votes() -> None:
    wait = Wait("leader: 4 votes of voters + 2 of voters outside region")
    assert str(wait) == "leader: 4 votes of voters + 2 of voters outside region"
    assert Wait(str(wait)) == wait
    assert str(Wait("leader: 1 votes of voters")) == "leader: 1 vote of voters"
    for odd in ("leader: all votes of voters", "leader: 2 votes of replicas"):
        with pytest.raises(InputError):
            Wait(odd)
    asked = placement.with_waits(world(5), {"single_group": ["leader: 4 votes of voters"]})
    one_each = Problem(asked, replicas=5, voters=5)
    plain = placement.with_waits(world(5), {"single_group": ["leader: 4 of voters"]})
    assert (
        placement.solve(one_each).score == placement.solve(one_each.replace(instance=plain)).score
    )
    heavy = one_each.replace(votes={"s1": 3, "s2": 3})
    assert placement.solve(heavy).score == pytest.approx(placement.solve(heavy, "exhaustive").score)
    with pytest.raises(InputError, match="more votes than voters have"):
        Problem(asked, replicas=1, voters=1, votes={"s1": 3})


def test_methods_that_count_voters_refuse_votes_by_field() -> None:
    problem = Problem(world(2), replicas=3, voters=3, votes={"s1": 2})
    for name in ("local-search", "best-of", "kq", "sets"):
        reason = refusal(load_method(name), problem)
        assert reason is not None
        assert "votes" in reason
        assert "use 'exact'" in reason


@pytest.mark.parametrize("seed", seeds(2, 6))
def test_rtts_that_vary_by_interval_are_taken(seed: int) -> None:
    rng = np.random.default_rng(seed)
    one = world(seed, sites=5)
    counts = rng.integers(1, 5, (2, *one.counts.shape[1:])).astype(float)
    between = np.stack([one.site_rtt, rng.permuted(one.site_rtt, axis=1)])
    between[1] = (between[1] + between[1].T) / 2
    between[:, range(5), range(5)] = 0
    varying = one.replace(
        counts=counts, intervals=("night", "day"), site_rtt=between,
        client_rtt=np.stack([one.client_rtt, one.client_rtt[:, ::-1]]),
    )  # fmt: skip
    problem = Problem(varying, replicas=4, voters=3, votes={"s0": 2, "s3": 3})
    best = placement.solve(problem, "exhaustive").score
    for method in ("exact", "milp", "cp-sat"):
        assert placement.solve(problem, method).score == pytest.approx(best, rel=1e-9), seed


@pytest.mark.parametrize("seed", seeds(2, 4))
def test_witnesses_have_votes_too(seed: int) -> None:
    problem = Problem(
        world(seed, sites=6), replicas=3, voters=3, witnesses=1, votes={"s0": 2, "s3": 3}
    )
    best = placement.solve(problem, "exhaustive").score
    for method in ("exact", "milp", "cp-sat"):
        assert placement.solve(problem, method).score == pytest.approx(best, rel=1e-9), seed


@pytest.mark.parametrize("part", seeds(1, 12))
def test_many_voters_and_a_choice_of_numbers_are_proven(part: int) -> None:
    """18 of 20 sites, more than rows are priced for, and ranges of numbers of replicas."""
    rng = np.random.default_rng([part, 31])
    for size, voters, sites in ((18, 18, 20), ((3, 5), 3, 9), ((2, 4), 2, 8)):
        one = world(int(rng.integers(10**6)), sites=sites, ties=bool(rng.random() < 0.5))
        votes = {s: int(n) for s, n in zip(one.sites, rng.integers(1, 4, sites), strict=True)}
        problem = Problem(one, replicas=size, voters=voters, votes={**votes, "s0": 3})
        plan = placement.solve(problem, "exact")
        assert plan.score == pytest.approx(placement.solve(problem, "exhaustive").score, rel=1e-9)
        assert placement.check_certificate(plan).bound == pytest.approx(plan.score, rel=1e-9)


def test_the_command_line_reads_votes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from placement.io import save_instance

    save_instance(world(4), tmp_path / "mine")
    solve = ["solve", str(tmp_path / "mine"), "--replicas", "4", "--voters", "3"]
    out = tmp_path / "plan.json"
    assert main([*solve, "--votes", "s1=2, s3=3", "--votes", "s4=2", "-o", str(out)]) == 0
    assert "votes s1=2, s3=3, s4=2" in capsys.readouterr().out
    plan = load_plan(out)
    assert plan.problem.votes == {"s1": 2, "s3": 3, "s4": 2}
    assert json.loads(out.read_text())["votes"] == plan.votes
    for odd in ("s1", "s1=0", "s1=x", "s9=2", "s1=2,s1=3", "s1=2,,s3=2"):
        assert main([*solve, "--votes", odd]) == 1
        assert "votes: " in capsys.readouterr().err


def test_losses_keep_the_votes_that_a_commit_needed_by_hand() -> None:
    """Five sites in a row, 10 ms apart, one client at a; a, b and c vote."""
    rtt = np.abs(np.subtract.outer(np.arange(5), np.arange(5))) * 10.0
    write = placement.Operation("put", direct=1, quorum=1)
    row = Instance(tuple("abcde"), ("x",), rtt[:1], rtt, operations=[write], counts=[[1.0]])
    plan = Configuration.of(0, range(3), range(3))
    even = Problem(row, replicas=3, voters=3, votes={"b": 2, "c": 2})  # 3 of 5 votes
    assert score_of(even, plan) == 10.0
    assert score_after(even, plan, [1]) == {0: 20.0}  # a and c
    assert score_after(even, plan, [0]) == {1: 10.0 + 10.0, 2: 20.0 + 10.0}
    assert score_after(even, plan, [1, 2]) == {}
    heavy = Problem(row, replicas=3, voters=3, votes={"a": 3})  # a alone has 3 of 5 votes
    assert score_of(heavy, plan) == 0.0
    assert score_after(heavy, plan, [1, 2]) == {0: 0.0}
    assert score_after(heavy, plan, [0]) == {}
    # survival counts votes: no site may hold 3 of 5, and two of them may be lost
    assert violations(heavy.replace(survive="site"), plan)
    assert not violations(even.replace(survive="site"), plan)
    worst = placement.solve(even.replace(objective=placement.Contingency()))
    assert worst.status is Status.OPTIMAL
    assert placement.check_certificate(worst).bound == pytest.approx(worst.objective)


def test_an_instance_holds_votes_for_all_questions(tmp_path: Path) -> None:
    from placement.io import load_instance, save_instance

    plain = world(8)
    one = plain.replace(votes={"s1": 2, "s3": 3, "s4": 1})
    assert one.votes == {"s1": 2, "s3": 3}
    assert one.fingerprint != plain.fingerprint
    assert plain.replace(votes={"s1": 1}).fingerprint == plain.fingerprint
    save_instance(one, tmp_path / "mine")
    manifest = next((tmp_path / "mine").glob("*.toml"), None) or next(
        (tmp_path / "mine").glob("*.json")
    )
    assert "votes" in manifest.read_text()
    again = load_instance(tmp_path / "mine")
    assert again == one
    assert again.votes == one.votes
    manifest.write_text(manifest.read_text().replace("votes", "voices", 1))
    with pytest.raises(InputError):
        load_instance(tmp_path / "mine")

    asked = Problem(one, replicas=4, voters=3)
    assert asked.votes == one.votes
    even = Problem(one, replicas=4, voters=3, votes={})
    assert even.votes == {}
    assert even.replace(replicas=3).rules.votes is None
    assert even.replace(pinned=["s1"]).rules.votes is None
    for number, problem in enumerate((asked, even)):
        plan = placement.solve(problem)
        save_plan(plan, tmp_path / f"{number}.json")
        loaded = load_plan(tmp_path / f"{number}.json")  # with the instance inside
        assert loaded.problem.votes == problem.votes
        assert loaded.score == plan.score
    assert placement.solve(even).score == placement.solve(even.replace(instance=plain)).score
    assert placement.without_sites(one, ["s3"]).votes == {"s1": 2}
    with pytest.raises(InputError, match=r"votes\['s1'\]"):
        plain.replace(votes={"s1": -1})
