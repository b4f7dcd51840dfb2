"""Algorithms 4 and 5 and the better of them, against the pseudo-code and by hand."""

from __future__ import annotations

from types import ModuleType

import numpy as np
import pytest
from hypothesis import given

from heuristics.baselines import BEST_OF
from heuristics.rules import kq, qk
from placement import Instance, Problem, Status
from placement.methods.options import Options
from placement.methods.registry import run
from placement.plan import objective_value
from placement.testing import random_instance
from tests.heuristics import paper
from tests.strategies import ALL, problems


@given(problems(kinds=(), integral=True))
def test_kq_is_algorithm_4(problem: Problem) -> None:
    plan = run(kq.METHOD, problem, Options())
    expected = paper.kq(problem, problem.rules.replicas_min, problem.rules.voters)
    assert plan.objective == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(problems(kinds=(), integral=True))
def test_qk_is_algorithm_5(problem: Problem) -> None:
    plan = run(qk.METHOD, problem, Options())
    expected = paper.qk(problem, problem.rules.replicas_min, problem.rules.voters)
    assert plan.objective == pytest.approx(expected, rel=1e-9, abs=1e-9)


@given(problems(kinds=ALL))
def test_best_of_is_the_better_one(problem: Problem) -> None:
    one, other, best = (
        run(method, problem, Options()) for method in (kq.METHOD, qk.METHOD, BEST_OF)
    )
    assert best.objective == min(one.objective, other.objective)
    assert best.status is one.status is other.status
    if best.found:
        winner = {"kq": one, "qk": other}[str(best.stats["winner"])]
        assert winner.objective == best.objective


def two_continents(far_reads: float, transactions: float) -> Instance:
    """Three sites close together, from one of which all writes come, and one far away."""
    site_rtt = np.array(
        [[0, 2, 3, 100], [2, 0, 2, 100], [3, 2, 0, 100], [100, 100, 100, 0]], dtype=float
    )
    counts = np.zeros((4, 5))
    counts[:3, 0] = 1
    counts[3, 0] = far_reads
    counts[0, 3] = transactions
    return Instance(
        sites=("a", "b", "c", "far"),
        clients=("at a", "at b", "at c", "at far"),
        client_rtt=site_rtt + np.eye(4),
        site_rtt=site_rtt,
        counts=counts,
    )


def test_quorum_first_pays_for_transactions() -> None:
    """KQ serves the two heaviest clients and votes across the ocean; QK keeps the quorum close."""
    problem = Problem(two_continents(far_reads=10, transactions=50), replicas=2, voters=2)
    by_quorum, by_means = (run(m.METHOD, problem, Options()) for m in (qk, kq))
    assert by_means.replicas == ("a", "far")
    assert by_means.objective == pytest.approx(50 * (1 + 100) + (1 + 2 + 3) + 10)
    assert by_quorum.replicas == ("a", "b")
    assert by_quorum.objective == pytest.approx(50 * (1 + 2) + (1 + 1 + 2) + 10 * 100)


def test_replicas_first_pays_for_weak_reads() -> None:
    problem = Problem(two_continents(far_reads=1000, transactions=0), replicas=2, voters=2)
    by_quorum, by_means = (run(m.METHOD, problem, Options()) for m in (qk, kq))
    assert "far" in by_means.replicas
    assert by_means.objective <= by_quorum.objective


def test_a_heuristic_claims_nothing_it_has_not_proven() -> None:
    problem = Problem(two_continents(far_reads=5, transactions=5), replicas=3, voters=3)
    for method in (kq.METHOD, qk.METHOD, BEST_OF):
        plan = run(method, problem, Options())
        assert plan.status is Status.FEASIBLE
        assert plan.gap == np.inf


def test_ctrl_c_gives_the_best_leader_so_far() -> None:
    """Interrupted after two leaders, QK and best-of return what they have."""
    problem = Problem(two_continents(far_reads=5, transactions=5), replicas=3, voters=3)
    calls = 0

    def interrupt(_: object) -> None:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise KeyboardInterrupt

    plan = run(qk.METHOD, problem, Options(progress=interrupt))
    assert plan.termination == "interrupted"
    assert plan.configuration is not None
    assert plan.configuration.leader in (0, 1)
    calls = 0
    best = run(BEST_OF, problem, Options(progress=interrupt))
    assert best.termination == "interrupted"
    assert best.configuration is not None
    first = run(kq.METHOD, problem, Options()).configuration
    assert first is not None
    assert best.objective <= objective_value(problem, first)


def test_time_limit_stops_between_leaders() -> None:
    problem = Problem(two_continents(far_reads=5, transactions=5), replicas=3, voters=3)
    plan = run(qk.METHOD, problem, Options(time_limit=0.0))
    assert plan.termination == "time limit"
    assert plan.found


@pytest.mark.parametrize(("module", "name"), [(kq, "kmeans"), (qk, "kmeans_of_each")])
def test_what_breaks_a_rule_is_completed(
    module: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan comes out also when K-means returns too few sites, or too many voters in a region."""
    problem = Problem(random_instance(0), replicas=3, voters=3, survive="region")
    for bad in ((), (0, 1), (0, 1, 2), (0, 1, 4)):
        each = [bad] * len(problem.instance.sites)
        monkeypatch.setattr(module, name, lambda *_, r=bad if module is kq else each: r)
        plan = run(module.METHOD, problem, Options())
        assert plan.found
        assert plan.configuration is not None
        regions = {site // 2 for site in plan.configuration.voters}
        assert len(regions) == 3


def test_kq_ends_at_ctrl_c_without_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(kq, "kmeans", interrupted)
    problem = Problem(random_instance(3), replicas=3, voters=3)
    plan = run(kq.METHOD, problem, Options())
    assert (plan.status, plan.termination) == (Status.UNKNOWN, "interrupted")
