"""Lease holders: the part of the replicas that serves strong reads, and that every write awaits."""

from __future__ import annotations

import dataclasses
import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from placement import (
    Configuration,
    InputError,
    Operation,
    Problem,
    UnsupportedError,
)
from placement.cli import main
from placement.databases.deployment import deployment_of_plan
from placement.errors import CertificateError
from placement.evaluation.objective import score_of
from placement.evaluation.waits.wait_notes import wait_notes
from placement.feasibility.feasible_plans import find_feasible, violations
from placement.feasibility.holder_choice import holder_choices, with_holders
from placement.feasibility.lease_copies import lease_copies
from placement.io import load_plan, save_instance, save_plan
from placement.model.protocols import Protocol
from placement.report import report_html, save_figures
from placement.support.status import Status
from tests.effort import examples
from tests.protocols.worlds import world

METHODS = ("exhaustive", "exact", "milp", "cp-sat")


def plain_score(problem: Problem, one: Configuration, interference: float) -> float:
    """Return the score by plain loops from what a lease does, not from waits."""
    instance, rules = problem.instance, problem.rules
    client, between = instance.client_rtt, instance.site_rtt
    answers = sorted(between[one.leader, x] for x in one.voters)
    quorum = answers[rules.quorum - 1]
    write = max(quorum, *(between[one.leader, x] for x in one.lease_holders))
    total = 0.0
    for c, counts in enumerate(instance.counts.sum(axis=0)):
        near = min(client[c, r] for r in one.replicas)
        leased = min(client[c, r] for r in one.lease_holders) + interference / 2 * quorum
        direct = client[c, one.leader]
        for operation, number in zip(instance.operations, counts, strict=True):
            total += (
                number
                * {
                    "weak_read": near,
                    "bounded_read": near,
                    "strong_read": leased,
                    "single_group": direct + write,
                    "multi_group": direct + 2 * write,
                }[operation.name]
            )
    return float(total)


def least_score(problem: Problem, interference: float) -> float:
    """Return the best score over every leader, R, V, witnesses and L."""
    rules, sites = problem.rules, range(len(problem.instance.sites))
    best = float("inf")
    for size in range(rules.replicas_min, rules.replicas_max + 1):
        for replicas in itertools.combinations(sites, size):
            rest = [s for s in sites if s not in replicas]
            for holding, witnesses, leases in itertools.product(
                itertools.combinations(replicas, rules.data_voters),
                itertools.combinations(rest, rules.witnesses),
                itertools.combinations(replicas, rules.lease_holders),
            ):
                for leader in set(holding) & set(leases):
                    one = Configuration(leader, (*holding, *witnesses), replicas, leases)
                    if not violations(problem, one):
                        best = min(best, plain_score(problem, one, interference))
    return best


@st.composite
def questions(draw: st.DrawFn) -> tuple[Problem, float]:
    """Small questions with lease holders, rules, ties, asymmetric RTTs and idle clients."""
    instance = world(draw(st.integers(0, 10_000)), 6, 3, ties=draw(st.booleans()))
    if draw(st.booleans()):  # one way costs more than the other
        skew = np.triu(np.full((6, 6), 7.0), 1)
        instance = instance.replace(site_rtt=instance.site_rtt + skew)
    if draw(st.booleans()):  # an operation that nobody issues, a client that issues nothing
        counts = instance.counts.copy()
        counts[:, :, draw(st.integers(0, 4))] = 0
        counts[:, 1] = 0
        counts[:, 0, 0] += 1
        instance = instance.replace(counts=counts)
    replicas = draw(st.integers(1, 4))
    witnesses = draw(st.sampled_from([0, 0, 0, 1]))
    voters = draw(st.integers(1, replicas)) + witnesses
    low = max(1, voters - witnesses, replicas - draw(st.integers(0, 1)))
    holders = draw(st.sampled_from(["voters", *map(str, range(1, low + 1))]))
    interference = draw(st.sampled_from([0.0, 0.25]))
    asked: dict[str, object] = {"quorum": draw(st.none() | st.integers(1, voters))}
    extra = draw(st.sampled_from(["", "forbidden", "non_voters", "pinned", "leader"]))
    if extra:
        asked[extra] = "s2" if extra == "leader" else ["s3"]
    if draw(st.booleans()):
        role = draw(st.sampled_from(["voters", "replicas"]))
        asked["diversity"] = placement.Diversity("region", role, cap=draw(st.integers(1, 2)))
    problem = Problem(
        instance, replicas=(low, replicas), voters=voters, witnesses=witnesses,
        protocol=f"leases:holders={holders},interference={interference}", **asked,
    )  # fmt: skip  # type: ignore[arg-type]
    return problem, interference


@settings(deadline=None, max_examples=examples(60))
@given(asked=questions())
@pytest.mark.parametrize("method", METHODS)
def test_methods_find_what_plain_loops_find(method: str, asked: tuple[Problem, float]) -> None:
    problem, interference = asked
    least = least_score(problem, interference)
    plan = placement.solve(problem, method=method)
    if np.isinf(least):
        assert plan.status is Status.INFEASIBLE
        return
    assert plan.status is Status.OPTIMAL
    assert plan.configuration is not None
    assert violations(problem, plan.configuration) == ()
    assert plan.score == pytest.approx(least, rel=1e-9)
    own = plain_score(problem, plan.configuration, interference)
    assert plan.score == pytest.approx(own, rel=1e-9)


@settings(deadline=None, max_examples=examples(60))
@given(asked=questions(), seed=st.integers(0, 1000))
def test_the_first_plan_obeys_and_the_choice_among_replicas_is_the_best(
    asked: tuple[Problem, float], seed: int
) -> None:
    problem, _ = asked
    prefer = np.random.default_rng(seed).permutation(6).tolist()
    found = find_feasible(problem, prefer)
    if found is None:
        assert placement.solve(problem, method="exhaustive").status is Status.INFEASIBLE
        return
    assert violations(problem, found) == ()
    values = [
        score_of(problem, Configuration(found.leader, found.voters, found.replicas, leased))
        for leased in holder_choices(problem, found)
    ]
    best = with_holders(problem, found)
    assert score_of(problem, best) == pytest.approx(min(values), rel=1e-9)


@settings(deadline=None, max_examples=examples(25))
@given(seed=st.integers(0, 10_000), holders=st.integers(1, 3), share=st.sampled_from([0, 0.3]))
def test_methods_agree_where_rtts_vary_by_interval(seed: int, holders: int, share: float) -> None:
    first, second = world(seed, 6, 3), world(seed + 1, 6, 3, ties=False)
    both = first.replace(
        client_rtt=np.stack([first.client_rtt, second.client_rtt]),
        site_rtt=np.stack([first.site_rtt, second.site_rtt]),
        counts=np.concatenate([first.counts, second.counts]),
        intervals=("a", "b"),
    )
    protocol = f"leases:holders={holders},interference={share}"
    problem = Problem(both, replicas=3, voters=2, protocol=protocol)
    best = placement.solve(problem, method="exhaustive")
    assert best.status is Status.OPTIMAL
    for method in METHODS[1:]:
        plan = placement.solve(problem, method=method)
        assert plan.status is Status.OPTIMAL
        assert plan.score == pytest.approx(best.score, rel=1e-9)


@settings(deadline=None, max_examples=examples(60))
@given(asked=questions())
def test_the_bound_of_exact_is_proved_again(asked: tuple[Problem, float]) -> None:
    problem, _ = asked
    plan = placement.solve(problem)
    if not plan.certified:  # which is said where there is no plan
        assert plan.status is Status.INFEASIBLE
        return
    proved = placement.check_certificate(plan)
    assert proved.bound == pytest.approx(plan.score, rel=1e-9)


@settings(deadline=None, max_examples=examples(60))
@given(asked=questions(), data=st.data())
def test_two_copies_of_every_site_are_the_same_question(
    asked: tuple[Problem, float], data: st.DataObject
) -> None:
    problem, interference = asked
    rules, copies = problem.rules, lease_copies(problem)
    if copies is None:
        assert rules.witnesses or rules.must_vote.any()
        return
    sites = data.draw(st.permutations(range(6)))
    size = data.draw(st.integers(max(1, rules.replicas_min - 1), rules.replicas_max))
    replicas = sites[:size]
    voters, leased = (
        data.draw(st.permutations(replicas))[: max(1, data.draw(st.integers(most - 1, most)))]
        for most in (rules.voters, rules.lease_holders)
    )
    if rules.voters_hold_leases:
        leased = voters
    found = Configuration.of(voters[0], voters, replicas, leased)
    other = copies.copied(found)
    if other is None:  # one of its sites may not hold a replica, or a lease
        assert violations(problem, found)
        return
    again = copies.original(other)
    assert set(again.voters) == set(found.voters)
    assert again == dataclasses.replace(found, voters=again.voters)
    good = violations(problem, found) == ()
    assert (violations(copies.problem, other) == ()) == good
    if good:
        score = plain_score(problem, found, interference)
        assert score_of(copies.problem, other) == pytest.approx(score, rel=1e-12)


def test_a_certificate_of_other_leases_is_refused() -> None:
    problem = Problem(world(5), replicas=4, voters=3, protocol="leases:holders=2")
    plan = placement.solve(problem)
    assert plan.certificate is not None
    assert plan.certificate["format"] == "replica-placement/leases/1"
    held = [list(plan.problem.instance.sites).index(name) for name in plan.lease_holders]
    copies = dict(plan.certificate["copies"])  # type: ignore[call-overload]
    for change in (
        {"lease_holders": held[:1]},
        {"bound": plan.score * 1.01},
        {"copies": copies | {"format": "replica-placement/sets/1"}},
        {"copies": copies | {"proofs": copies["proofs"][:-1]}},
        {"copies": None},
    ):
        with pytest.raises(CertificateError):
            placement.check_certificate(plan.replace(certificate={**plan.certificate, **change}))
    other = problem.replace(protocol="leases:holders=3")
    with pytest.raises(CertificateError):
        placement.check_certificate(plan.replace(problem=other))


@pytest.mark.parametrize("mix", ["social", "ycsb-a"])
def test_exact_proves_questions_of_a_world(mix: str) -> None:
    instance = placement.load("world27", mix=mix)
    problem = Problem(
        instance, replicas=4, voters=3, protocol="leases:holders=2,interference=0.1",
        diversity=[placement.Diversity("continent", "replicas", cap=2)], pinned=["sa-east-1"],
    )  # fmt: skip
    plan = placement.solve(problem, time_limit=60)
    assert plan.status is Status.OPTIMAL
    assert placement.check_certificate(plan).bound == pytest.approx(plan.score, rel=1e-9)
    # fixed replicas: the least of all leaders, voters and lease holders there is not below
    fixed = problem.replace(replicas=list(plan.replicas))
    again = placement.solve(fixed, method="exhaustive")
    assert again.score == pytest.approx(plan.score, rel=1e-9)
    assert placement.solve(fixed).score == pytest.approx(plan.score, rel=1e-9)


def test_copies_take_odd_names_units_and_rules_about_sites() -> None:
    plain = world(4, 6, 3)
    labels = plain.domains["region"]
    odd = plain.replace(
        client_rtt=plain.client_rtt * 20, site_rtt=plain.site_rtt * 20,
        domains={"place": labels, "lease": labels, "lease_ 0": ("leased",) * 6},
        operations=(*plain.operations[:4], Operation("lease", direct=1, quorum=2)),
    )  # fmt: skip
    problem = Problem(
        odd, replicas=(3, 4), voters=3, protocol="leases:holders=2", pinned=["s5"], leader="s1",
        diversity=[
            placement.Diversity("site", "replicas", domain="s4", least=1),
            placement.Diversity("lease", "replicas", cap=2),
        ],
    )  # fmt: skip
    assert lease_copies(problem) is not None
    best = placement.solve(problem, method="exhaustive")
    plan = placement.solve(problem)
    assert plan.score == pytest.approx(best.score, rel=1e-9)
    assert placement.check_certificate(plan).bound == pytest.approx(best.score, rel=1e-9)


def test_exact_begins_with_a_start_and_stops_in_time() -> None:
    instance = world(3, 14, 5)
    problem = Problem(instance, replicas=6, voters=3, protocol="leases:holders=3")
    plan = placement.solve(problem)
    assert plan.status is Status.OPTIMAL
    assert placement.solve(problem, start=plan).score == plan.score
    assert placement.solve(problem, method="cp-sat").score == pytest.approx(plan.score, rel=1e-9)
    hurried = placement.solve(problem, time_limit=0.0)
    assert hurried.found
    assert hurried.bound <= plan.score


def test_exact_hands_other_questions_on_and_says_so() -> None:
    instance = world(3, 14, 5)
    problem = Problem(instance, replicas=6, voters=3, witnesses=1, protocol="leases:holders=3")
    plan = placement.solve(problem)
    assert plan.status is Status.OPTIMAL
    assert any("solved by 'milp'" in note for note in plan.notes)
    assert placement.solve(problem, method="cp-sat").score == pytest.approx(plan.score, rel=1e-9)


def mean(protocol: str, **asked: object) -> float:
    problem = Problem(world(8), **{"replicas": 4, "voters": 3, "protocol": protocol} | asked)  # type: ignore[arg-type]
    return placement.solve(problem, method="exhaustive").score


def test_the_extremes_are_leases_on_all_and_raft() -> None:
    assert mean("leases:holders=4") == pytest.approx(mean("leases"), rel=1e-12)
    assert mean("leases:holders=replicas") == mean("leases")
    # a lease on the leader alone: strong reads go there, writes wait for the quorum
    raft = {"protocol": "raft", "replicas": 4, "voters": 3}
    one = world(8, operations=[Operation("put", direct=1, quorum=1), Operation("get", direct=1)])
    alone = placement.solve(Problem(one, **raft | {"protocol": "leases:holders=1"}), "exhaustive")  # type: ignore[arg-type]
    led = placement.solve(Problem(one, **raft), method="exhaustive")  # type: ignore[arg-type]
    assert alone.score == pytest.approx(led.score, rel=1e-12)
    assert alone.lease_holders == (alone.leader,)
    same = mean("leases:holders=voters", voters=4)
    assert same == pytest.approx(mean("leases", voters=4), rel=1e-12)


def test_a_plan_names_its_lease_holders_everywhere(tmp_path: Path) -> None:
    problem = Problem(world(5), replicas=4, voters=3, protocol="leases:holders=2")
    plan = placement.solve(problem, method="exhaustive")
    assert plan.configuration is not None
    assert len(plan.lease_holders) == 2
    assert plan.leader in plan.lease_holders
    assert {row.leader for row in plan.leaders} <= set(plan.lease_holders)
    names = ", ".join(plan.lease_holders)
    assert f"on {names}; strong reads go there" in " ".join(str(plan).split())
    read = next(row for row in plan.parts if row.operation == "strong_read")
    assert (read.to_leader, read.waiting) == (0, 0)
    assert read.to_nearest > 0
    other = next(name for name in plan.lease_holders if name != plan.leader)
    write = next(row for row in plan.waits if row.operation == "single_group")
    assert write.wait == "leader: quorum of voters + all of lease holders"
    assert write.one_fewer <= write.latency
    trip = next(row for row in plan.waits if row.operation == "strong_read")
    assert trip.last in (plan.leader, other)
    for row, part in zip(plan.per_operation, plan.parts, strict=True):
        total = part.to_nearest + part.to_leader + part.waiting + part.constant
        assert row.latency == pytest.approx(total, rel=1e-12)

    save_plan(plan, tmp_path / "plan.json")
    document = json.loads((tmp_path / "plan.json").read_text(encoding="utf-8"))
    assert document["version"] == 2
    assert document["lease_holders"] == list(plan.lease_holders)
    again = load_plan(tmp_path / "plan.json", problem.instance)
    assert (again.configuration, again.score) == (plan.configuration, plan.score)
    document["lease_holders"] = [plan.leader]
    (tmp_path / "plan.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(InputError):
        load_plan(tmp_path / "plan.json", problem.instance)

    page = report_html(plan)
    assert "leader, votes, holds a lease" in page
    assert 'class="mark leader leased"' in page
    assert "2 hold a lease." in page
    assert save_figures(plan, tmp_path)
    with pytest.raises(InputError, match="does not store lease holders"):
        deployment_of_plan(plan)


def test_leases_on_all_replicas_are_as_they_were() -> None:
    plan = placement.solve(Problem(world(5), replicas=3, voters=3, protocol="leases"))
    assert plan.lease_holders == ()
    assert plan.configuration is not None
    assert plan.configuration.lease_holders == ()
    assert "holds a lease" not in report_html(plan)
    assert str(Protocol("leases")) == "leases"
    assert [str(w) for o in plan.problem.operations for w in o.waits] == [
        "leader: quorum of voters + all of replicas",
        "2 × leader: quorum of voters + all of replicas",
    ]


def test_configurations_of_ones_own() -> None:
    problem = Problem(world(5), replicas=4, voters=3, protocol="leases:holders=2")
    sites = {"leader": "s0", "voters": ["s0", "s1", "s2"], "replicas": ["s0", "s1", "s2", "s3"]}
    chosen = [
        placement.evaluate(problem, lease_holders=["s0", other], **sites)  # type: ignore[arg-type]
        for other in ("s1", "s2", "s3")
    ]
    free = placement.evaluate(problem, **sites)  # type: ignore[arg-type]
    assert free.score == min(one.score for one in chosen)
    for leased, said in (
        (["s1", "s2"], "the leader s0 holds no lease"),
        (["s0"], "1 lease holders instead of 2"),
    ):
        broken = placement.evaluate(problem, lease_holders=leased, **sites)  # type: ignore[arg-type]
        assert broken.status is Status.VIOLATING
        assert said in broken.reasons
    with pytest.raises(InputError, match="lease_holders"):
        placement.evaluate(problem, lease_holders=["s0", "s5"], **sites)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="has no lease holders"):
        placement.evaluate(problem.replace(protocol="raft"), lease_holders=["s0"], **sites)  # type: ignore[arg-type]
    voting = problem.replace(protocol="leases:holders=voters")
    broken = placement.evaluate(voting, lease_holders=["s0", "s1", "s3"], **sites)  # type: ignore[arg-type]
    assert "the lease holder s3 does not vote" in broken.reasons


def test_refusals_name_the_field_and_the_way_out() -> None:
    instance = world(5)
    for protocol, said in (
        ("leases:holders=5", "more lease holders than replicas"),
        ("leases:holders=0", "bad parameter of a protocol"),
        ("leases:holders=2.5", "bad parameter of a protocol"),
        ("leases:holders=some", "'replicas', 'voters' or a whole number"),
        ("raft:holders=2", "no such parameter"),
    ):
        with pytest.raises(InputError, match=said):
            Problem(instance, replicas=4, voters=3, protocol=protocol)
    by_hand = placement.with_waits(instance, {"single_group": ["leader: all of lease holders"]})
    with pytest.raises(InputError, match="the lease holders are not given"):
        Problem(by_hand, replicas=4, voters=3)
    with pytest.raises(InputError, match="more answers than lease holders"):
        Problem(
            placement.with_waits(instance, {"single_group": ["leader: 3 of lease holders"]}),
            replicas=4, voters=3, protocol="leases:holders=2",
        )  # fmt: skip
    asked = Problem(instance, replicas=4, voters=3, protocol="leases:holders=2")
    with pytest.raises(UnsupportedError, match="holders=replicas"):
        placement.solve(asked, method="sets")


def test_a_wait_by_hand_may_name_lease_holders() -> None:
    wait = "leader: 1 of lease holders outside region + quorum of voters"
    asked = placement.with_waits(world(5), {"single_group": [wait]})
    problem = Problem(asked, replicas=4, voters=3, protocol="leases:holders=2")
    plan = placement.solve(problem, method="exhaustive")
    region = dict(zip(asked.sites, asked.domains["region"], strict=True))
    assert len({region[name] for name in plan.lease_holders}) == 2
    near = placement.with_waits(world(5), {"single_group": ["near: all of lease holders"]})
    everyone = problem.replace(instance=near, voters=4)
    best = placement.solve(everyone, method="exhaustive")
    assert placement.solve(everyone).score == pytest.approx(best.score, rel=1e-9)
    idle = placement.with_waits(
        world(5), {"single_group": ["leader: all of replicas + all of lease holders"]}
    )
    notes = wait_notes(problem.replace(instance=idle))
    assert any("'all of lease holders'" in note and "never decides" in note for note in notes)


def test_the_command_line_asks_for_lease_holders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    save_instance(world(6), tmp_path / "world")
    monkeypatch.chdir(tmp_path)
    ask = ["world", "--replicas", "4", "--voters", "3", "--protocol", "leases:holders=2"]
    assert main(["solve", *ask, "-o", "plan.json"]) == 0
    assert main(["check", "plan.json"]) == 0
    assert main(["protocols", "leases"]) == 0
    assert "(default replicas)" in capsys.readouterr().out
    document = json.loads(Path("plan.json").read_text(encoding="utf-8"))
    own = [
        "evaluate", "world", "--leader", document["leader"], "--protocol", "leases:holders=2",
        "--voters", ",".join(document["voters"]), "--replicas", ",".join(document["replicas"]),
        "--json",
    ]  # fmt: skip
    for more in ([], ["--lease-holders", ",".join(document["lease_holders"])]):
        assert main([*own, *more]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["score"] == document["score"]
        assert told["lease_holders"] == document["lease_holders"]
