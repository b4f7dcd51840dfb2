"""Operations at the nearest voter or lease holder: by formula, by every method, in files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import placement
from placement import InputError, Instance, Operation, Problem
from placement.evaluation.objective import score_of
from placement.io import load_instance, load_plan, save_instance, save_plan
from placement.model.configuration import Configuration
from placement.proof.certificate_check import check_certificate
from tests.effort import seeds
from tests.protocols.worlds import world

OWN = (
    Operation("get", near=1),
    Operation("fresh get", near=1, at="lease holders"),
    Operation("scan", near=2, constant=3, at="lease holders"),
    Operation("put", direct=1, quorum=1),
)


def question(seed: int) -> Problem:
    """Return a random question whose reads go to lease holders, chosen, voters or all replicas."""
    rng = np.random.default_rng([seed, 17])
    one = world(seed, sites=6, clients=4, operations=OWN, ties=bool(rng.integers(2)))
    size = int(rng.integers(2, 5))
    holders = str(rng.choice([str(rng.integers(1, size + 1)), "voters", "replicas"]))
    asked: dict[str, object] = {"replicas": size, "voters": int(rng.integers(1, size + 1))}
    if rng.integers(3) == 0:
        asked["pinned"] = ["s4"]
    return Problem(one, **asked, protocol=f"leases:holders={holders}")  # type: ignore[arg-type]


def by_formula(problem: Problem, chosen: Configuration) -> float:
    """Return the score of a configuration from the RTTs."""
    one, total = problem.instance, 0.0
    held = chosen.lease_holders or chosen.replicas
    voters = sorted(one.site_rtt[chosen.leader, v] for v in chosen.voters)
    wait = voters[len(voters) // 2]  # the leader is the first of a majority
    wait = max(wait, *(one.site_rtt[chosen.leader, r] for r in held))
    for c in range(len(one.clients)):
        near = min(one.client_rtt[c, r] for r in chosen.replicas)
        leased = min(one.client_rtt[c, r] for r in held)
        times = (near, leased, 2 * leased + 3, one.client_rtt[c, chosen.leader] + wait)
        total += sum(n * t for n, t in zip(one.counts[0, c], times, strict=True))
    return float(total)


@pytest.mark.parametrize("part", seeds(4, 250))
def test_every_method_finds_what_enumeration_finds(part: int) -> None:
    for seed in range(4 * part, 4 * part + 4):
        problem = question(seed)
        best = placement.solve(problem, "exhaustive")
        for method in ("exact", *(("milp", "cp-sat") if seed % 8 == 0 else ())):
            plan = placement.solve(problem, method)
            assert plan.status is best.status, (seed, method)
            if plan.configuration is None:
                continue
            assert plan.score == pytest.approx(best.score, rel=1e-9), (seed, method)
            assert plan.score == score_of(problem, plan.configuration)
            expected = by_formula(problem, plan.configuration)
            assert plan.score == pytest.approx(expected, rel=1e-12), (seed, method)
            if plan.certificate is not None:
                check_certificate(plan)


def test_milp_does_not_rename_voters_that_hold_the_leases() -> None:
    problem = question(504)  # equal waits: other voters would do, and would hold no lease
    assert problem.rules.voters_hold_leases
    plan = placement.solve(problem, "milp")
    assert plan.score == pytest.approx(placement.solve(problem, "exhaustive").score, rel=1e-9)


def test_where_all_replicas_have_the_role_it_is_the_nearest_replica() -> None:
    voting = world(3, operations=[Operation("get", near=1, relay=0.5, at="voters"), OWN[3]])
    plain = world(3, operations=[Operation("get", near=1, relay=0.5), OWN[3]])
    for protocol in (None, "raft"):
        mine = Problem(voting, replicas=4, voters=4, protocol=protocol)
        theirs = Problem(plain, replicas=4, voters=4, protocol=protocol)
        assert mine.operations == theirs.operations
        assert placement.solve(mine).score == placement.solve(theirs).score
    near = Operation("put", near=1, waits=["near: 2 of voters"], at="voters")
    asked = Problem(world(3, operations=[near]), replicas=3, voters=3)
    assert placement.solve(asked).score == pytest.approx(
        placement.solve(asked, "exhaustive").score, rel=1e-12
    )


def test_what_no_method_takes_is_refused() -> None:
    voting = world(4, operations=[Operation("get", near=1, at="voters"), OWN[3]])
    with pytest.raises(
        InputError, match=r"at: .*nearest voter, and not every replica votes"
    ) as error:
        Problem(voting, replicas=4, voters=3)
    assert "leases:holders=voters" in str(error.value)
    Problem(voting, replicas=4, voters=3, protocol="leases:holders=voters")
    with pytest.raises(InputError, match="the lease holders are not given"):
        Problem(world(4, operations=OWN), replicas=4, voters=3, protocol="raft")
    with pytest.raises(InputError, match="the lease holders are not given"):
        Problem(world(4, operations=OWN), replicas=4, voters=3)
    odd = world(4, operations=[Operation("get", near=1, relay=1, at="lease holders"), OWN[3]])
    with pytest.raises(InputError, match=r"at: .*goes on from the nearest of the lease holders"):
        Problem(odd, replicas=4, voters=3, protocol="leases:holders=2")
    Problem(odd, replicas=4, voters=3, protocol="leases")
    with pytest.raises(InputError, match="at: unknown role at operation 'get'"):
        Operation("get", near=1, at="witnesses")  # type: ignore[arg-type]


def test_files_hold_the_role(tmp_path: Path) -> None:
    one = world(5, operations=OWN)
    assert "at='lease holders'" in repr(OWN[1])
    assert "at=" not in repr(OWN[0])
    save_instance(one, tmp_path / "one")
    manifest = json.loads((tmp_path / "one" / "instance.json").read_text())
    assert manifest["version"] == 2
    assert [row.get("at") for row in manifest["operations"]] == [
        None, "lease holders", "lease holders", None,
    ]  # fmt: skip
    assert load_instance(tmp_path / "one") == one
    plain = one.replace(operations=(OWN[0], Operation("fresh get", near=1), *OWN[2:]))
    assert plain.fingerprint != one.fingerprint
    assert Instance.from_frames(**one.to_frames()).operations == OWN
    plan = placement.solve(Problem(one, replicas=3, voters=3, protocol="leases:holders=2"))
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json", check=True)
    assert again.score == plan.score
    assert again.problem.instance == one
    assert again.certificate is not None
    check_certificate(again)
    manifest["operations"][1]["at"] = "leaders"
    (tmp_path / "one" / "instance.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match="at: unknown role"):
        load_instance(tmp_path / "one")
