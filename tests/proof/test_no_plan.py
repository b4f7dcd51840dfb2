"""Proofs without a plan and by enumeration, and ``placement check``: true ones alone hold."""

import copy
import dataclasses
import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import placement
from placement import Contingency, Diversity, Instance, Operation, Problem
from placement.cli import main
from placement.errors import CertificateError, LimitError
from placement.feasibility.feasible_plans import find_feasible
from placement.io import load_plan, save_plan
from placement.io.plan_file import plan_document
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.prices import Prices
from placement.plan import Plan
from placement.proof.certificate_check import check_certificate
from placement.proof.no_plan_check import FORMAT, check_no_plan
from placement.report import report_html
from placement.support.status import Status, Termination
from placement.testing import every_configuration, random_instance, worlds
from tests.effort import seeds
from tests.exact.worlds import random_core
from tests.strategies import ALL, NESTED, problems

EXACT = load_method("exact")
TAKEN = NESTED | {"range", "replica_caps", "cost_weight"}


def asked(problem):
    """The answer of `exact` itself, without the checks that `run` makes before."""
    settings = {name: setting.default for name, setting in EXACT.settings.items()}
    return EXACT.call(problem, Options(settings=settings))


def in_conflict():
    """Five sites that may vote: of three no two, by one level, of the other two one, by another.

    By the caps on voters alone three sites may vote, by those on replicas alone four.
    """
    instance = random_instance(12).replace(
        domains={"grid": tuple("aaabcd"), "sea": tuple("xyzuuv")}
    )
    return Problem(
        instance,
        replicas=4,
        voters=3,
        non_voters=instance.sites[5:],
        diversity=[Diversity("grid", cap=1), Diversity("sea", "replicas", cap=1)],
    )


def claim(problem, certificate):
    return Plan.of(problem, None, method="claim", bound=math.inf, certificate=certificate)


@given(problems(kinds=TAKEN, min_kinds=2, max_kinds=6))
def test_exact_is_proved_where_there_is_no_plan(problem):
    plan = asked(problem)
    none = next(every_configuration(problem), None) is None
    assert (plan.status is Status.INFEASIBLE) is none
    if none:
        checked = check_certificate(plan)
        assert checked.bound == checked.score == math.inf
        assert checked.leaders == problem.rules.may_lead.sum()


def splits(leaders, sites):
    """Statements that a certificate could hold: for every leader, which sites count as voters."""
    some = st.lists(st.integers(0, sites - 1), unique=True)
    return st.tuples(*(st.builds(lambda p, s=s: {"leaders": [s], "by_votes": p}, some)
                       for s in leaders))  # fmt: skip


@given(problems(kinds=ALL, max_kinds=6), st.data())
def test_no_certificate_proves_that_a_problem_with_a_plan_has_none(problem, data):
    assume(next(every_configuration(problem), None) is not None)
    leaders = np.nonzero(problem.rules.may_lead)[0].tolist()
    proofs = list(data.draw(splits(leaders, len(problem.instance.sites))))
    for certificate in (None, {"format": FORMAT, "proofs": proofs}):
        with pytest.raises(CertificateError):
            check_certificate(claim(problem, certificate))


@pytest.mark.parametrize("block", seeds(4, 4))
def test_a_leader_has_no_plan_just_where_a_split_is_short(block):
    """All splits are tried: none is short for a leader with a plan, one is for each without."""
    with_plan = without = 0
    for seed in range(60 * block, 60 * block + 60):
        core = random_core(seed, max_sites=6, max_clients=2)
        rules, names = core.rules, tuple(map(str, range(core.sites)))
        can = led(core)
        for leader in np.nonzero(rules.may_lead)[0].tolist():
            alone = dataclasses.replace(rules, may_lead=np.arange(core.sites) == leader)
            shown = any(
                proves(alone, names, [{"leaders": [leader], "by_votes": split}])
                for size in range(core.sites + 1)
                for split in itertools.combinations(range(core.sites), size)
            )
            assert shown is (leader not in can), (seed, leader)
            with_plan, without = with_plan + (leader in can), without + (leader not in can)
    assert with_plan > 50
    assert without > 20


def led(core):
    """Return the sites that lead some configuration, by enumeration."""
    rules = core.rules
    sets = (
        (voters, replicas)
        for size in range(rules.replicas_min, rules.replicas_max + 1)
        for replicas in itertools.combinations(range(core.sites), size)
        for voters in itertools.combinations(replicas, rules.voters)
    )
    can = set()
    for voters, replicas in sets:
        held, cast = list(replicas), list(voters)
        if (
            rules.may_hold[held].all()
            and rules.may_vote[cast].all()
            and rules.must_hold.sum() == rules.must_hold[held].sum()
            and rules.must_vote.sum() == rules.must_vote[cast].sum()
            and all(g.satisfied(cast if g.role == "voters" else held) for g in rules.groups)
        ):
            can |= {s for s in cast if rules.may_lead[s]}
    return can


def proves(rules, names, proofs):
    try:
        check_no_plan(rules, names, {"format": FORMAT, "proofs": proofs})
    except CertificateError:
        return False
    return True


# --- what is refused ---------------------------------------------------------------------------


@pytest.fixture
def counting_only(monkeypatch):
    """Let no question be small enough to look at all configurations."""
    monkeypatch.setattr("placement.proof.certificate_check._FEW_STEPS", 0)


def test_the_proof_of_a_conflict_needs_its_split(counting_only):
    problem = in_conflict()
    plan = asked(problem)
    assert check_certificate(plan).leaders == 5
    with pytest.raises(CertificateError, match="does not rule out a plan"):
        check_certificate(plan.replace(certificate=None))
    bare = copy.deepcopy(dict(plan.certificate))
    for split in ([], [0, 1, 2, 3, 4], [3, 4]):
        for proof in bare["proofs"]:
            proof["by_votes"] = split
        with pytest.raises(CertificateError, match="does not rule out a plan"):
            check_certificate(plan.replace(certificate=bare))


def test_a_certificate_of_a_stricter_problem():
    problem = in_conflict()
    plan = asked(problem)
    easier = problem.replace(voters=2)
    assert next(every_configuration(easier), None) is not None
    with pytest.raises(CertificateError, match="does not rule out a plan"):
        check_certificate(plan.replace(problem=easier))


def test_every_leader_is_proved_once():
    plan = asked(in_conflict())
    for change in ("drop", "twice", "other"):
        certificate = copy.deepcopy(dict(plan.certificate))
        leaders = certificate["proofs"][0]["leaders"]
        if change == "drop":
            leaders.pop()
        elif change == "twice":
            leaders.append(leaders[0])
        else:
            leaders[0] = 5
        with pytest.raises(CertificateError, match="not exactly one proof"):
            check_certificate(plan.replace(certificate=certificate))


@pytest.mark.parametrize(
    "nonsense", [None, 3, "x", [], [{}], [{"leaders": [0]}], [{"leaders": 0, "by_votes": []}]]
)
def test_nonsense_is_refused_not_a_traceback(nonsense):
    plan = asked(in_conflict())
    for key in plan.certificate:
        with pytest.raises(CertificateError):
            check_certificate(plan.replace(certificate={**plan.certificate, key: nonsense}))
    with pytest.raises(CertificateError):
        check_certificate(plan.replace(certificate={}))


def test_a_search_that_ended_early_proves_nothing():
    plan = Plan.of(in_conflict(), None, method="m", termination=Termination.TIME_LIMIT)
    with pytest.raises(CertificateError, match="carries no certificate"):
        check_certificate(plan)
    with pytest.raises(CertificateError, match="no configuration to prove"):
        check_certificate(plan.replace(certificate={"format": FORMAT, "proofs": []}))


def test_a_plan_is_no_proof_that_there_is_none():
    plan = run(EXACT, Problem(random_instance(12), replicas=3, voters=3), Options())
    with pytest.raises(CertificateError, match="unknown format"):
        check_certificate(plan.replace(certificate={"format": FORMAT, "proofs": []}))
    with pytest.raises(CertificateError, match="does not say that there is no plan"):
        check_certificate(claim(plan.problem, plan.certificate))


def test_what_counting_cannot_see_is_refused(counting_only):
    """Rules that only both roles make impossible: infeasible, but not shown here."""
    found = {w.name: w.problem for w in worlds() if w.name.startswith("infeasible")}
    with pytest.raises(CertificateError, match="does not rule out a plan"):
        check_certificate(claim(found["infeasible: rules in conflict"], None))


def test_a_budget_below_the_cheapest_replicas_needs_no_certificate(counting_only):
    found = {w.name: w.problem for w in worlds()}
    assert check_certificate(claim(found["infeasible: budget"], None)).bound == math.inf


@pytest.mark.parametrize(
    "rules",
    [
        [Diversity("region", cap=2), Diversity("provider", cap=2)],
        [Diversity("region", min_domains=4)],
        [Diversity("region", "replicas", domain="region-0", least=3)],
        [Diversity("region", "replicas", min_domains=3), Diversity("region", "replicas", cap=1)],
    ],
)
def test_minimums_and_crossing_levels_are_counted_role_by_role(rules, counting_only):
    problem = Problem(random_instance(12), replicas=5, voters=5, diversity=rules)
    assert check_certificate(claim(problem, None)).leaders == 6
    feasible = Problem(random_instance(12), replicas=5, voters=3, diversity=rules[-1:])
    if find_feasible(feasible) is not None:
        with pytest.raises(CertificateError, match="does not rule out a plan"):
            check_certificate(claim(feasible, None))


# --- where no search was needed ------------------------------------------------------------------


@pytest.mark.parametrize("method", ["exact", "kq", "exhaustive"])
def test_numbers_that_speak_for_themselves_need_no_certificate(method):
    instance = random_instance(12)
    asks = (
        {"replicas": 3, "voters": 3, "survive": "region", "forbidden": instance.sites[4:]},
        {"replicas": 4, "voters": 3, "diversity": Diversity("region", "replicas", cap=1)},
        {"replicas": 4, "voters": 1, "forbidden": instance.sites[1:4]},
        {"replicas": 4, "voters": 3, "non_voters": instance.sites[:4]},
        {"replicas": 3, "voters": 3, "pinned_voters": instance.sites[:2], "survive": "region"},
    )
    for ask in asks:
        plan = run(load_method(method), Problem(instance, **ask), Options())
        assert plan.status is Status.INFEASIBLE
        assert plan.certificate is None
        assert check_certificate(plan).leaders == plan.problem.rules.may_lead.sum()


# --- files and the command line ------------------------------------------------------------------


def test_it_survives_a_file(tmp_path):
    plan = asked(in_conflict())
    save_plan(plan, tmp_path / "plan.json")
    again = load_plan(tmp_path / "plan.json")
    assert again.certificate == plan.certificate
    assert check_certificate(again) == check_certificate(plan)


def test_the_command_proves_and_refuses(tmp_path, capsys, command):
    world = placement.load("azure")
    country = world.labels("country")
    two = [s for s, c in zip(world.sites, country, strict=True) if c in ("US", "AU")]
    others = ",".join(set(world.sites) - set(two))
    ask = ("--replicas", "7", "--voters", "3", "--no-vote", others, "--cap", "country=1:replicas")
    assert main(["solve", "azure", *ask, "--json"]) == 2
    path = tmp_path / "plan.json"
    path.write_text(capsys.readouterr().out)
    said = command("check", path, code=0).out
    assert said.startswith("proved: no configuration obeys all constraints\n")
    answer = json.loads(command("check", path, "--json", code=0).out)
    assert answer == {"proved": True, "status": "infeasible", "leaders": len(two)}

    document = json.loads(path.read_text())
    document["certificate"]["proofs"][0]["leaders"].pop()
    path.write_text(json.dumps(document))
    assert "refused: not exactly one proof" in command("check", path, code=2).out


def small(**extra):
    instance = random_instance(5, sites=6, clients=5)
    return placement.Problem(instance, **{"replicas": 4, "voters": 3, **extra})


QUESTIONS = {
    "pairs": {"objective": Contingency(together=2), "quorum": 1},
    "outages that overlap": {
        "minimise": "mean over outages",
        "outages": {"site-1": 0.01, "any region": 0.01},
    },
}


@pytest.mark.parametrize("kind", QUESTIONS)
def test_small_questions_of_other_methods_are_evaluated_again(kind):
    plan = run(EXACT, small(**QUESTIONS[kind]), Options())
    assert plan.status is Status.OPTIMAL
    checked = check_certificate(plan)
    assert checked.score == plan.objective
    enumerated = plan.certificate["format"].startswith("replica-placement/enumeration")
    assert checked.events >= (100 if enumerated else 5)
    if enumerated:
        assert checked.normal_bound == pytest.approx(plan.score)
    raised = {**plan.certificate, "bound": plan.bound * 1.01}
    believer = plan.replace(certificate=raised, bound=raised["bound"], status=Status.FEASIBLE)
    with pytest.raises(CertificateError):
        check_certificate(believer)


def enumerated(plan, **changes):
    best = plan.configuration
    document = {
        "format": "replica-placement/enumeration/1",
        "leader": best.leader,
        "voters": list(best.voters),
        "replicas": list(best.replicas),
        "score": plan.objective,
        "bound": plan.bound,
    }
    return plan.replace(certificate={**document, **changes})


def test_an_enumeration_has_a_limit_and_finds_what_is_better():
    plan = run(EXACT, small(), Options())
    assert check_certificate(enumerated(plan)).score == plan.objective
    with pytest.raises(LimitError):
        check_certificate(enumerated(plan), work=10_000)
    worse = run(load_method("most-writes"), small(), Options())
    assert worse.objective > plan.objective
    claimed = worse.replace(bound=worse.objective, status=Status.OPTIMAL)
    few = run(EXACT, small(replicas=2, voters=2), Options())
    less = few.replace(problem=small(replicas=(2, 3), voters=2))
    for claim, more in ((claimed, 1.0), (less, 1.0), (plan, 1 + 1e-6)):
        with pytest.raises(CertificateError, match="has the objective"):
            check_certificate(enumerated(claim, bound=more * claim.objective))


def test_that_there_is_no_plan_can_be_seen_by_looking_at_everything():
    instance = random_instance(5, sites=6, clients=5).replace(prices=Prices(np.full(6, 10.0)))
    problem = placement.Problem(instance, replicas=4, voters=3, budget=20)
    document = {"format": "replica-placement/enumeration/1", "bound": np.inf, "score": np.inf}
    plan = run(EXACT, problem, Options())
    assert plan.status is Status.INFEASIBLE
    assert check_certificate(plan.replace(certificate=document)).bound == np.inf
    found = run(EXACT, problem.replace(budget=50), Options())
    none = found.replace(configuration=None, status=Status.INFEASIBLE, certificate=document)
    with pytest.raises(CertificateError, match="has the objective"):
        check_certificate(none)


def test_a_proof_without_a_certificate_says_so_in_text_json_and_report(tmp_path, command):
    plan = run(load_method("milp"), small(), Options())
    assert plan.status is Status.OPTIMAL
    assert not plan.certified
    assert "optimal (proved by milp; no certificate)" in str(plan)
    assert plan_document(plan)["proof"] == "proved by milp; no certificate"
    with_one = run(EXACT, small(), Options())
    assert "no certificate" not in str(with_one)
    assert plan_document(with_one)["proof"] is None
    page = tmp_path / "plan.html"
    page.write_text(report_html(plan), encoding="utf-8")
    assert "(proved by milp; no certificate)" in page.read_text(encoding="utf-8")
    save_plan(plan, tmp_path / "plan.json")
    shown = json.loads(command("show", tmp_path / "plan.json", "--json", code=0).out)
    assert shown["certificate"] is None


@pytest.mark.parametrize("clients_move", [False, True])
def test_no_plan_keeps_a_limit_after_the_loss_of_two_sites(clients_move):
    """A quorum of one survives every pair: it is the limit that rules all plans out."""
    rtt = np.array([[0.0, 195.0, 273.0], [151.0, 0.0, 291.0], [219.0, 190.0, 0.0]])
    instance = Instance(
        sites=("a", "b", "c"),
        clients=("x", "y", "z"),
        client_rtt=rtt,
        site_rtt=rtt,
        counts=np.array([[[1.0, 11.0], [0.0, 11.0], [1.0, 10.0]]]),
        operations=(Operation("relay only", relay=1), Operation("votes only", quorum=1)),
    )
    goal = Contingency("site", "bounded", together=2, limit=5.0, clients_move=clients_move)
    problem = Problem(instance, replicas=3, voters=3, quorum=1, objective=goal)
    for name in ("exhaustive", "exact"):
        plan = run(load_method(name), problem, Options())
        assert plan.status is Status.INFEASIBLE
    assert check_certificate(plan).bound == math.inf


def solve(tmp_path, *more):
    plan = tmp_path / "plan.json"
    assert (
        main(["solve", "world27", "--replicas", "5", "--voters", "3", "-o", str(plan), *more]) == 0
    )
    return plan


def test_a_plan_is_proved(tmp_path, command):
    plan = solve(tmp_path)
    said = command("check", plan, code=0).out
    assert said.startswith("proved: no configuration has a mean latency below")
    answer = json.loads(command("check", plan, "--json", code=0).out)
    assert answer["proved"] is True
    assert answer["leaders"] == 27


def test_a_corrupted_certificate_is_refused(tmp_path, command):
    plan = solve(tmp_path)
    document = json.loads(plan.read_text())
    document["certificate"]["proofs"].pop()
    plan.write_text(json.dumps(document))
    assert "refused: not exactly one proof" in command("check", plan, code=2).out
    assert json.loads(command("check", plan, "--json", code=2).out)["proved"] is False


def test_a_plan_without_a_proof_is_refused(tmp_path, command):
    plan = solve(tmp_path, "--method", "kq")
    assert "carries no certificate" in command("check", plan, code=2).out


def test_a_search_is_repeated(tmp_path, command):
    plan = solve(tmp_path, "--set", "certificate=false")
    command("check", plan, code=2)
    said = command("check", plan, "--again", code=0).out
    assert said.startswith("searched again: no configuration has a mean latency below 84.33")
    answer = json.loads(command("check", plan, "--again", "--json", code=0).out)
    assert answer["holds"] is True
    assert answer["bound"] <= answer["score"] * (1 + 1e-9)
    worse = solve(tmp_path, "--method", "nearest-centroid", "--force")
    assert (
        "not proved: a second search finds 84.33" in command("check", worse, "--again", code=2).out
    )
    assert json.loads(command("check", worse, "--again", "--json", code=2).out)["holds"] is False


def test_no_plan_is_found_again(tmp_path, command):
    path = tmp_path / "none.json"
    words = ["solve", "world27", "--replicas", "3", "--voters", "3", "--json"]
    path.write_text(command(*words, "--distinct", "continent=4", code=2).out)
    again = command("check", path, "--again", code=0).out
    assert "searched again: no configuration obeys all constraints" in again


def test_a_missing_file_is_bad_input(tmp_path, command):
    assert "none.json" in command("check", tmp_path / "none.json", code=1).err


def test_a_field_that_was_edited_is_bad_input(tmp_path, command):
    plan = solve(tmp_path)
    text = plan.read_text()
    for key, value in (
        ("voters", ["Mars", "Venus", "Pluto"]),
        ("mean_latency_ms", 1),
        ("failures", {}),
    ):
        plan.write_text(json.dumps({**json.loads(text), key: value}))
        for verb in ("check", "show"):
            outcome = command(verb, plan, code=1)
            assert f"{plan}: {key}" in outcome.err
            assert "proved" not in outcome.out


def test_the_work_is_limited(tmp_path, command):
    plan = solve(tmp_path)
    document = json.loads(plan.read_text())
    for proof in document["certificate"]["proofs"]:
        proof["events"] = [["enumerate"]]
    plan.write_text(json.dumps(document))
    assert "more than 1,000,000 steps" in command("check", plan, "--work", "1000000", code=1).err
    assert "--work: out of range: got '-1'" in command("check", plan, "--work", "-1", code=1).err


def test_what_was_not_checked_says_so(tmp_path, command):
    plan = solve(tmp_path)
    assert "optimal, bound claimed by exact, not checked" in command("show", plan, code=0).out
    shown = json.loads(command("show", plan, "--json", code=0).out)
    assert shown["claim"] == "bound claimed by exact, not checked"
    page = tmp_path / "plan.html"
    assert main(["report", str(plan), "-o", str(page)]) == 0  # checks a short certificate itself
    assert "not checked" not in page.read_text()
    document = json.loads(plan.read_text())
    document["certificate"] = None
    plan.write_text(json.dumps(document))
    assert main(["report", str(plan), "-o", str(page), "--force"]) == 0
    assert "bound claimed by exact, not checked" in page.read_text()
    assert "no plan is better" not in page.read_text()
