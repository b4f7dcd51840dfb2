"""Algorithms 3 to 5: by hand, against a second writing of them, and their invariants."""

from __future__ import annotations

from collections.abc import Sequence
from types import ModuleType

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heuristics.admissible_sites import AdmissibleSites
from heuristics.baselines import BEST_OF
from heuristics.objective_terms import objective_terms, total_operations
from heuristics.rules import kq, qk
from heuristics.weighted_kmeans import kmeans, kmeans_of_each
from placement import Diversity, Instance, Operation, Problem, Status
from placement.feasibility.feasible_plans import find_feasible
from placement.methods.options import Options
from placement.methods.registry import run
from placement.plan import objective_value
from placement.testing import random_instance
from tests.effort import examples
from tests.heuristics import paper
from tests.strategies import ALL, problems

READ = (Operation("read", near=1),)


def world(rtt: list[list[float]], counts: list[float], **asked: object) -> Problem:
    """Clients with one kind of read; RTTs between sites don't matter."""
    matrix = np.array(rtt)
    sites = matrix.shape[1]
    instance = Instance(
        sites=tuple(f"s{i}" for i in range(sites)),
        clients=tuple(f"k{i}" for i in range(len(matrix))),
        client_rtt=matrix,
        site_rtt=np.where(np.eye(sites, dtype=bool), 0.0, 10.0),
        counts=np.array(counts, dtype=float)[:, np.newaxis],
        operations=READ,
        domains={"half": tuple("ab"[i * 2 // sites] for i in range(sites))},
    )
    return Problem(instance, **{"replicas": 1, "voters": 1, **asked})  # type: ignore[arg-type]  # by name


def chosen_sites(
    problem: Problem, size: int, fixed: tuple[int, ...] = (), cost: np.ndarray | None = None
) -> tuple[int, ...]:
    """K-means with the costs of KQ, or with costs of its own, as QK's differ from the RTTs."""
    terms = objective_terms(problem, everyone=True)
    weight = total_operations(problem)
    summand = weight[:, np.newaxis] * terms.rtt if cost is None else cost
    return kmeans(summand, terms.rank, terms.order, weight, fixed, AdmissibleSites(problem, size))


def test_without_clients_left_the_largest_reduction_is_added() -> None:
    """A cap shuts the second client's home out; in the other half s2 saves 10, s3 20 ms."""
    rtt = [[0, 9, 50, 60], [40, 0, 30, 20]]
    one_each = Diversity("half", "replicas", cap=1)
    assert chosen_sites(world(rtt, [5, 4], replicas=2), 2) == (0, 1)
    assert chosen_sites(world(rtt, [5, 4], replicas=2, diversity=[one_each]), 2) == (0, 3)


def test_a_worse_round_is_undone() -> None:
    """With costs other than RTTs a round can raise the cost; then the better set is kept."""
    worse = 0
    for seed in range(examples(200, 100)):
        rng = np.random.default_rng(seed)
        problem = world(rng.integers(1, 30, (6, 5)).tolist(), rng.integers(1, 9, 6).tolist())
        cost = rng.integers(1, 100, (6, 5)).astype(float)
        start = start_of(problem, 3, cost)
        after = one_round(problem, start, cost)
        chosen = chosen_sites(problem, 3, cost=cost)
        assert total(problem, chosen, cost) <= total(problem, start, cost)
        if total(problem, after, cost) > total(problem, start, cost):
            worse += 1
            assert list(chosen) == start
        assert list(chosen) == paper.weighted_k_means(
            problem, [], 3, lambda c, s, cost=cost: cost[c][s]
        )
    assert worse > 5  # the case does occur


def total(problem: Problem, chosen: Sequence[int], cost: np.ndarray | None = None) -> float:
    """cost(G) in a loop."""
    rtt = problem.instance.client_rtt
    if cost is None:
        cost = np.array(paper.weights(problem))[:, np.newaxis] * rtt
    sites = sorted(chosen)
    return float(sum(cost[c][paper.nearest(problem, c, sites)] for c in range(len(rtt))))


def start_of(problem: Problem, n: int, cost: np.ndarray) -> list[int]:
    """Lines 5 to 10 alone."""
    w = paper.weights(problem)
    sites = range(len(problem.instance.sites))
    chosen: list[int] = []
    for c in sorted(range(len(w)), key=lambda c: (-w[c], c)):
        home = paper.nearest(problem, c, sites)
        if home not in chosen and len(chosen) < n:
            chosen.append(home)
    while len(chosen) < n:
        free = [s for s in sites if s not in chosen]
        chosen.append(min(free, key=lambda s: (total(problem, [*chosen, s], cost), s)))
    return sorted(chosen)


def one_round(problem: Problem, chosen: list[int], cost: np.ndarray) -> list[int]:
    """Lines 15 to 19 alone."""
    clients = range(len(cost))
    moved = list(chosen)
    for x in chosen:
        cluster = [c for c in clients if paper.nearest(problem, c, chosen) == x]
        free = [s for s in range(cost.shape[1]) if s == x or s not in moved]
        moved[moved.index(x)] = min(free, key=lambda s: (sum(cost[c][s] for c in cluster), s))
    return sorted(moved)


def test_rules_keep_room_for_domains() -> None:
    """The two heaviest clients sit in one half; the rule asks for both halves."""
    rtt = [[0, 9, 90, 90], [9, 0, 90, 90], [90, 90, 0, 9]]
    both = Diversity("half", "replicas", min_domains=2)
    problem = world(rtt, [9, 8, 1], replicas=2, diversity=[both])
    assert chosen_sites(world(rtt, [9, 8, 1], replicas=2), 2) == (0, 1)
    assert chosen_sites(problem, 2) == (0, 2)


@pytest.mark.parametrize("integral", [True, False])
def test_same_as_the_pseudo_code(integral: bool) -> None:
    @given(problems(kinds=(), integral=integral), st.data())
    def check(problem: Problem, data: st.DataObject) -> None:
        sites = len(problem.instance.sites)
        n = data.draw(st.integers(1, sites))
        fixed = data.draw(st.sets(st.integers(0, sites - 1), max_size=n))
        w, rtt = paper.weights(problem), problem.instance.client_rtt
        mine = chosen_sites(problem, n, tuple(fixed))
        theirs = paper.weighted_k_means(problem, sorted(fixed), n, lambda c, s: w[c] * rtt[c][s])
        if integral:  # sums are exact, so ties break alike
            assert list(mine) == theirs
        assert total(problem, mine) == pytest.approx(total(problem, theirs), rel=1e-9, abs=1e-9)

    check()


@given(problems(kinds=ALL), st.data())
def test_invariants(problem: Problem, data: st.DataObject) -> None:
    """Fixed sites stay, centroids are distinct and allowed, there are at most n of them."""
    rules = problem.rules
    fixed = tuple(np.nonzero(rules.must_hold)[0].tolist())
    n = data.draw(st.integers(rules.replicas_min, rules.replicas_max))
    chosen = chosen_sites(problem, n, fixed)
    if find_feasible(problem.replace(replicas=n)) is None:
        return  # pins that leave no place for a leader: no set of n sites is admissible
    assert set(fixed) <= set(chosen)
    assert len(set(chosen)) == len(chosen) <= n
    assert rules.may_hold[list(chosen)].all()
    assert list(chosen) == sorted(chosen)
    assert chosen_sites(problem, n, fixed) == chosen


@given(problems(kinds=ALL, integral=True), st.data())
def test_runs_side_by_side_are_runs_alone(problem: Problem, data: st.DataObject) -> None:
    """Each run has costs, fixed sites, a leader and prices of its own."""
    terms, sites = objective_terms(problem, everyone=True), len(problem.instance.sites)
    weight = total_operations(problem)
    n = data.draw(st.integers(1, sites))
    leaders = np.array(data.draw(st.lists(st.integers(0, sites - 1), min_size=1, max_size=4)))
    fixed = np.zeros((len(leaders), sites), dtype=bool)
    for row, leader in enumerate(leaders.tolist()):
        more = data.draw(st.sets(st.integers(0, sites - 1), max_size=n - 1))
        fixed[row, [leader, *more]] = True
    prices = np.array([[data.draw(st.integers(0, 9)) for _ in range(sites)] for _ in leaders])
    costs = np.array([terms.summand(leader) for leader in leaders.tolist()])
    order = (terms.rank, terms.order, weight)
    together = kmeans_of_each(costs, *order, fixed, AdmissibleSites(problem, n, leaders), prices)
    for row, leader in enumerate(leaders.tolist()):
        pins = np.nonzero(fixed[row])[0]
        alone = kmeans(costs[row], *order, pins, AdmissibleSites(problem, n, leader), prices[row])
        assert together[row] == alone


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
