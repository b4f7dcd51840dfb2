"""Certificates that have every configuration evaluated again, and plans without any certificate."""

import json
import math

import numpy as np
import pytest

import placement
from placement import Contingency, Instance, Operation, Problem
from placement.cli import main
from placement.errors import CertificateError, LimitError
from placement.io import save_plan
from placement.io.leader_plan_document import plan_document
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.prices import Prices
from placement.proof.certificate_check import check_certificate
from placement.report.page import page_of
from placement.support.status import Status
from placement.testing import random_instance

EXACT = load_method("exact")


def small(**extra):
    instance = random_instance(5, sites=6, clients=5)
    return placement.Problem(instance, replicas=4, voters=3, **extra)


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
    with pytest.raises(CertificateError, match="has the objective"):
        check_certificate(enumerated(claimed, bound=worse.objective))


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


def test_a_proof_without_a_certificate_says_so_in_text_json_and_report(tmp_path, capsys):
    plan = run(load_method("milp"), small(), Options())
    assert plan.status is Status.OPTIMAL
    assert not plan.certified
    assert "optimal (proved by milp; no certificate)" in str(plan)
    assert plan_document(plan)["proof"] == "proved by milp; no certificate"
    with_one = run(EXACT, small(), Options())
    assert "no certificate" not in str(with_one)
    assert plan_document(with_one)["proof"] is None
    page = tmp_path / "plan.html"
    page.write_text(page_of(plan), encoding="utf-8")
    assert "(proved by milp; no certificate)" in page.read_text(encoding="utf-8")
    save_plan(plan, tmp_path / "plan.json")
    assert main(["show", str(tmp_path / "plan.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["certificate"] is None


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
