"""Leads of time stamps that are tuned to the farthest replica: by formula, by every method."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import placement
from placement import Diversity, InputError, Problem, UnsupportedError
from placement.analysis.sensitivity import next_best_plans, rtt_range, safe_rtt_range
from placement.evaluation.objective import score_of
from placement.io import load_plan, save_plan
from placement.model.configuration import Configuration
from placement.overtime.replay.deployments import refuse_roles_of_replays
from placement.proof.certificate_check import check_certificate
from placement.tail import Distributions, Percentile
from tests.effort import seeds
from tests.protocols.parts.test_sensitivity import check_range
from tests.protocols.worlds import world

TUNED = "crdb-global:rho=auto"


def lead(offset: float, rtt: float) -> float:
    """Return the lead of closedts/policy.go, ms, for an RTT to the farthest replica."""
    return offset + 25 + max(1.5 * rtt + 20, 0.5 * rtt + 200)


def by_formula(one: placement.Instance, chosen: Configuration, offset: float) -> float:
    """Return the score of a configuration: reads nearby, writes through the leader, then a lead."""
    total = 0.0
    wait = lead(offset, max(one.site_rtt[chosen.leader, r] for r in chosen.replicas))
    for c in range(len(one.clients)):
        near = min(one.client_rtt[c, r] for r in chosen.replicas)
        reads, writes = one.counts[0, c, :3].sum(), one.counts[0, c, 3:].sum()
        total += reads * near + writes * (one.client_rtt[c, chosen.leader] + wait)
    return float(total)


def question(seed: int) -> tuple[Problem, float]:
    """Return a random question, and the largest offset of its clocks."""
    rng = np.random.default_rng([seed, 13])
    one = world(seed, sites=7, clients=4, ties=bool(rng.integers(2)))
    between = one.site_rtt * float(rng.choice([0.5, 1.0, 4.0]))  # on both sides of the knee
    if rng.integers(2):
        between = between * rng.uniform(0.8, 1.2, between.shape)
    offset = float(rng.choice([0.0, 250.0, 500.0]))
    size = int(rng.integers(2, 5))
    asked: dict[str, object] = {"replicas": size, "voters": int(rng.integers(1, size + 1))}
    kind = rng.integers(5)
    if kind == 0:
        asked["replicas"] = (size, size + 1)
    elif kind == 1:
        asked["diversity"] = Diversity("region", "replicas", min_domains=2)
    elif kind == 2:
        asked["pinned"] = ["s5"]
        asked["forbidden"] = ["s1"]
    protocol = f"{TUNED},max_offset={offset:g}"
    return Problem(one.replace(site_rtt=between), **asked, protocol=protocol), offset  # type: ignore[arg-type]


def test_a_fixed_lead_is_that_of_the_documentation() -> None:
    one = world(1)
    for offset, expected in ((500, 800.0), (250, 550.0)):
        problem = Problem(one, replicas=3, voters=3, protocol=f"crdb-global:max_offset={offset}")
        assert problem.operations[3].constant == expected == lead(offset, 150)
        assert problem.operations[3].waits == ()


@pytest.mark.parametrize("part", seeds(4, 100))
def test_the_score_is_that_of_the_formula(part: int) -> None:
    for seed in range(10 * part, 10 * part + 10):
        problem, offset = question(seed)
        rng = np.random.default_rng(seed)
        for _ in range(3):
            group = rng.permutation(7)[: problem.rules.replicas_max].tolist()
            chosen = Configuration.of(group[0], group[: problem.rules.voters], group)
            expected = by_formula(problem.instance, chosen, offset)
            assert score_of(problem, chosen) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("part", seeds(4, 250))
def test_every_method_finds_what_enumeration_finds(part: int) -> None:
    for seed in range(4 * part, 4 * part + 4):
        problem, offset = question(seed)
        best = placement.solve(problem, "exhaustive")
        methods = ["exact"] + (["milp", "cp-sat"] if seed % 4 == 0 else [])
        methods += ["sets"] if problem.rules.replicas_min == problem.rules.replicas_max else []
        for method in methods:
            plan = placement.solve(problem, method)
            assert plan.status is best.status, (seed, method)
            if plan.configuration is None:
                continue
            assert plan.score == pytest.approx(best.score, rel=1e-9), (seed, method)
            expected = by_formula(problem.instance, plan.configuration, offset)
            assert plan.score == pytest.approx(expected, rel=1e-12)
            if plan.certificate is not None:
                check_certificate(plan)


def test_the_engine_proves_it_and_the_file_holds_it(tmp_path: Path) -> None:
    one = placement.load("world27", mix="ycsb-b")
    plan = placement.solve(Problem(one, replicas=5, voters=3, protocol=TUNED))
    assert plan.certificate is not None
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json", check=True)
    assert str(again.problem.protocol) == TUNED
    assert again.score == plan.score
    check_certificate(again)
    text = (tmp_path / "plan.json").read_text()
    (tmp_path / "other.json").write_text(text.replace(TUNED, "crdb-global"))
    with pytest.raises(InputError):
        load_plan(tmp_path / "other.json", check=True)
    assert plan.configuration is not None
    # the RTTs that are shown are those that were measured, not the leads
    for member in plan.quorum_members:
        voter = one.sites.index(member.voter)
        assert member.rtt == one.site_rtt[plan.configuration.leader, voter]
    row = plan.parts[3]
    farthest = max(one.site_rtt[plan.configuration.leader, r] for r in plan.configuration.replicas)
    assert row.waiting + row.constant == pytest.approx(lead(500, farthest))


def test_witnesses_kinds_and_losses_take_it() -> None:
    one = world(5, ties=False)
    problem = Problem(one, replicas=3, voters=3, witnesses=1, protocol=TUNED)
    best = placement.solve(problem, "exhaustive")
    plan = placement.solve(problem, "exact")
    assert plan.score == pytest.approx(best.score, rel=1e-9)
    kinds = {"write": TUNED, "strong_read": TUNED, "bounded_read": TUNED, "weak_read": "raft"}
    mixed = Problem(one, replicas=3, voters=3, protocol=kinds)
    whole = Problem(one, replicas=3, voters=3, protocol=TUNED)
    assert placement.solve(mixed).score == placement.solve(whole).score
    lossy = whole.replace(objective=placement.Contingency(), voters=3)
    assert placement.solve(lossy, "exact").objective == pytest.approx(
        placement.solve(lossy, "exhaustive").objective, rel=1e-9
    )
    again = Problem(one, replicas=3, voters=3, protocol="crdb-global")
    assert placement.solve(again).score != placement.solve(whole).score  # no demand is shared


@pytest.mark.parametrize("seed", seeds(6, 60))
def test_ranges_of_rtts_know_the_knee_of_the_lead(seed: int) -> None:
    one = world(seed, sites=6, clients=3, ties=False)
    one = one.replace(site_rtt=one.site_rtt * 1.5)
    problem = Problem(one, replicas=3, voters=2, protocol=TUNED)
    plan = placement.solve(problem)
    following = next_best_plans(plan, 1)
    rng = np.random.default_rng(seed)
    end = 2 * float(max(one.client_rtt.max(), one.site_rtt.max()))
    other = str(rng.choice([name for name in one.sites if name != plan.leader]))
    where = ("site_rtt", one.sites.index(str(plan.leader)), one.sites.index(other))
    exact = rtt_range(plan, str(plan.leader), other)
    check_range(
        plan, exact, safe_rtt_range(plan, following[0], str(plan.leader), other), where, end
    )


def test_what_does_not_follow_the_lead_refuses_it() -> None:
    one = world(6)
    with pytest.raises(InputError, match=r"bounded_read waits .* rho=… as a number"):
        Problem(one, replicas=3, voters=3, protocol={"write": TUNED, "strong_read": TUNED})
    problem = Problem(one, replicas=3, voters=3, protocol=TUNED)
    spread = Distributions.parametric(one, variation=0.2, width=10.0)
    with pytest.raises(InputError, match="tuned to the farthest replica"):
        problem.replace(objective=Percentile(95, spread))
    with pytest.raises(UnsupportedError, match="rho=… as a number"):
        refuse_roles_of_replays(problem)
    with pytest.raises(InputError, match=r"rho.*'auto'"):
        Problem(one, replicas=3, voters=3, protocol="crdb-global:rho=often")
    with pytest.raises(InputError, match="differ in rho"):
        placement.Protocol({"write": TUNED, "strong_read": "crdb-global"})
