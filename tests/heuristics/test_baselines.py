"""Rules of thumb and Algorithms 3 to 5: by hand, and against the pseudo-code."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from heuristics import baselines as nearest_centroid
from heuristics.baselines import (
    BEST_OF,
    coefficient_of_variation,
    diversity,
    greatest_writer,
    p_median,
    spread_out,
)
from heuristics.completion import AdmissibleSites
from heuristics.objective_terms import objective_terms, total_operations
from heuristics.rules import kq, qk
from heuristics.weighted_kmeans import kmeans, kmeans_of_each
from placement import Diversity, Instance, Problem, Status, UnsupportedError
from placement.errors import InputError
from placement.evaluation.breakdown import rules_of_thumb
from placement.feasibility.feasible_plans import find_feasible
from placement.io.instance_folder import (
    instance_document,
    instance_from_document,
    load_instance,
    save_instance,
)
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.operations import STANDARD_OPERATIONS, Operation
from placement.plan import Plan, objective_value
from placement.testing import random_instance
from tests.effort import examples
from tests.heuristics import paper
from tests.reference import small
from tests.strategies import ALL, problems

SITES = ("lisbon", "paris", "vienna", "tokyo", "osaka")
WHERE = np.array([[38.7, -9.1], [48.9, 2.4], [48.2, 16.4], [35.7, 139.7], [34.7, 135.5]])
RTT = np.array(
    [
        [0, 30, 50, 240, 245],
        [30, 0, 20, 220, 225],
        [50, 20, 0, 230, 235],
        [240, 220, 230, 0, 8],
        [245, 225, 235, 8, 0],
    ],
    dtype=float,
)
WEAK, STRONG, WRITE = 0, 2, 3


def world(**issued: dict[int, float]) -> Instance:
    """One client per city; counts by city and operation."""
    counts = np.zeros((5, 5))
    for city, operations in issued.items():
        for operation, count in operations.items():
            counts[SITES.index(city), operation] = count
    return Instance(
        sites=SITES,
        clients=SITES,
        client_rtt=RTT + np.eye(5),
        site_rtt=RTT,
        counts=counts,
        domains={
            "continent": ("Europe",) * 3 + ("Asia",) * 2,
            "country": ("PT", "FR", "AT", "JP", "JP"),
        },
        site_coordinates=WHERE,
        client_coordinates=WHERE,
    )


def ask(name: str, instance: Instance, **asked: object) -> Plan:
    return run(load_method(name), Problem(instance, **asked), Options())  # type: ignore[arg-type]  # by name


# --- nearest-centroid


def test_centroid_is_a_direction_not_a_mean_of_degrees() -> None:
    """Two clients at either side of the date line meet there, not at Greenwich."""
    ends = np.array([[0.0, 170.0], [0.0, -170.0]])
    instance = small(
        ("africa", "fiji"),
        [[1, 2], [1, 2]],
        1 - np.eye(2),
        np.full((2, 5), 1.0),
        site_coordinates=np.array([[0.0, 0.0], [0.0, 180.0]]),
        client_coordinates=ends,
    )
    centre = nearest_centroid.demand_centroid(Problem(instance, replicas=1, voters=1))
    assert centre is not None
    assert abs(centre[0]) < 1e-9
    assert abs(abs(centre[1]) - 180) < 1e-9
    assert ask("nearest-centroid", instance, replicas=1, voters=1).leader == "fiji"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"site_coordinates": None}, "no coordinates of its sites"),
        ({"client_coordinates": None}, "no coordinates of its clients"),
        ({"client_coordinates": np.where(WHERE == 48.9, np.nan, WHERE)}, "'paris' are unknown"),
        ({"client_coordinates": np.array([[0, 0], [0, 180], *WHERE[:3]])}, "no centroid"),
    ],
)
def test_centroid_refuses_what_has_none(change: dict[str, object], words: str) -> None:
    antipodes = {"lisbon": {WEAK: 1.0}, "paris": {WEAK: 1.0}}
    with pytest.raises(UnsupportedError, match=words):
        ask("nearest-centroid", world(**antipodes).replace(**change), replicas=2, voters=1)


# --- best-mean, best-cov


def test_best_mean_knows_no_demand() -> None:
    """All demand in Tokyo; the sites of smallest mean RTT are European all the same."""
    plan = ask("best-mean", world(tokyo={WRITE: 9}), replicas=3, voters=3)
    assert plan.replicas == ("lisbon", "paris", "vienna")
    means = (RTT + np.eye(5)).mean(axis=0)
    waits = {"lisbon": 30, "paris": 20, "vienna": 20}
    best = min(waits, key=lambda s: means[SITES.index(s)] + waits[s])
    assert plan.leader == best == "paris"


def test_best_cov_prefers_the_fair_leader() -> None:
    """Among the same three replicas the leader of least relative spread, by its definition."""
    plan = ask("best-cov", world(tokyo={WRITE: 9}), replicas=3, voters=3)
    latency = RTT[:, :3] + np.eye(5)[:, :3] + np.array([30, 20, 20])
    expected = (latency.std(axis=0) / latency.mean(axis=0)).argmin()
    assert plan.replicas == ("lisbon", "paris", "vienna")
    assert plan.leader == SITES[int(expected)]
    assert coefficient_of_variation(np.zeros((3, 2))).tolist() == [0, 0]


@given(st.integers(0, 10_000), st.sampled_from([3, 5]))
def test_best_mean_leads_as_fantoch_does(seed: int, voters: int) -> None:
    """With equal weights no leader of the same replicas has a smaller mean write latency."""
    instance = random_instance(seed, sites=7, clients=9)
    writes = np.zeros((9, 5))
    writes[:, WRITE] = 1
    problem = Problem(instance.replace(counts=writes), replicas=voters, voters=voters)
    plan = run(load_method("best-mean"), problem, Options())
    assert plan.configuration is not None
    replicas = list(plan.configuration.replicas)
    m = voters // 2 + 1
    means = []
    for leader in replicas:
        wait = np.sort(instance.site_rtt[leader, replicas])[m - 1]
        means.append(float((instance.client_rtt[:, leader] + wait).mean()))
    assert plan.mean_latency == pytest.approx(min(means))


# --- most-writes, closest-to-writes, smallest-quorum


def test_most_writes_leads_where_they_come_from() -> None:
    """Vienna writes most; its quorum partner is Paris; reads pull the third replica to Tokyo."""
    instance = world(vienna={WRITE: 5}, lisbon={WRITE: 3}, tokyo={WEAK: 100})
    plan = ask("most-writes", instance, replicas=3, voters=3)
    assert plan.leader == "vienna"
    assert plan.replicas == ("paris", "vienna", "tokyo")


def test_closest_to_writes_may_not_sit_at_the_writer() -> None:
    instance = world(vienna={WRITE: 5}, tokyo={WEAK: 50})
    plan = ask("closest-to-writes", instance, replicas=3, voters=3, non_voters=["vienna"])
    assert plan.leader == "paris"
    tier1 = ask(
        "closest-to-writes",
        instance,
        replicas=["lisbon", "tokyo", "osaka"],
        voters=["lisbon", "tokyo", "osaka"],
    )
    assert tier1.leader == "lisbon"


@pytest.mark.parametrize("name", ["most-writes", "closest-to-writes"])
def test_undefined_without_transactions(name: str) -> None:
    with pytest.raises(UnsupportedError, match="no client issues any"):
        ask(name, world(vienna={WEAK: 5, STRONG: 2}), replicas=3, voters=3)


def test_smallest_quorum_looks_at_nothing_else() -> None:
    """Tokyo and Osaka are 8 ms apart: they vote, wherever the clients are."""
    plan = ask("smallest-quorum", world(lisbon={STRONG: 99}), replicas=3, voters=3)
    assert plan.leader == "tokyo"
    assert plan.quorum_wait == 8
    fixed = ["lisbon", "paris", "tokyo"]
    assert ask("smallest-quorum", world(tokyo={WRITE: 9}), replicas=fixed, voters=fixed).leader in (
        "lisbon",
        "paris",
    )


# --- max-diversity


def test_max_diversity_spreads_and_leads_at_the_demand() -> None:
    """After busy Tokyo a European site, then another country: Osaka comes last."""
    instance = world(tokyo={WEAK: 9}, vienna={WEAK: 2}, lisbon={WEAK: 1})
    assert spread_out(diversity(instance), np.array([1.0, 0, 2, 9, 0]), 3) == (3, 2, 0, 1, 4)
    plan = ask("max-diversity", instance, replicas=3, voters=3)
    assert plan.leader == "tokyo"
    assert plan.replicas == ("lisbon", "vienna", "tokyo")


# --- p-median-first


@given(problems(kinds=(), max_sites=7))
def test_p_median_is_a_local_optimum_at_least(problem: Problem) -> None:
    size = problem.rules.replicas_min
    chosen = p_median(problem, size)
    assert chosen is not None
    rtt = problem.instance.client_rtt
    weight = problem.instance.counts.sum(axis=(0, 2))

    def cost(sites: tuple[int, ...]) -> float:
        return float(weight @ rtt[:, sites].min(axis=1))

    assert len(set(chosen)) == size
    for out, into in itertools.product(chosen, range(rtt.shape[1])):
        if into not in chosen:
            other = tuple(into if s == out else s for s in chosen)
            assert cost(chosen) <= cost(other) + 1e-9 * (1 + cost(other))


ETCD = (Operation("linearizable_read", direct=1, quorum=1), Operation("put", direct=1, quorum=1))


def reads_and_writes(operations=ETCD, writes=1.0):
    """Client a reads a lot (with votes), client b writes a little."""
    between = [[0, 50, 60], [50, 0, 40], [60, 40, 0]]
    counts = [[1000, 0], [0, writes]]
    return small("abc", [[1, 50, 60], [50, 1, 40]], between, counts, operations=operations)


def test_kinds():
    assert [o.kind for o in STANDARD_OPERATIONS] == ["read", "read", "read", "write", "write"]
    assert [o.kind for o in ETCD] == ["read", "write"]
    assert Operation("lease", direct=1, kind="write").is_transaction
    assert Operation("scan", quorum=1, kind="read").kind == "read"
    with pytest.raises(InputError, match="unknown kind of operation 'scan'"):
        Operation("scan", kind="readonly")


def test_a_linearizable_read_is_no_write():
    problem = placement.Problem(reads_and_writes(), replicas=3, voters=3)
    assert greatest_writer(problem) == 1
    for method in ("most-writes", "closest-to-writes"):
        assert placement.solve(problem, method).leader == "b"
    plan = placement.solve(problem, "exhaustive")
    (rule,) = [c for c in rules_of_thumb(problem, plan.configuration)
               if c.strategy == "closest-to-writes"]  # fmt: skip
    assert rule.leader == "b"
    # said to be a write, it decides
    said = (Operation("linearizable_read", direct=1, quorum=1, kind="write"), ETCD[1])
    problem = placement.Problem(reads_and_writes(said), replicas=3, voters=3)
    assert placement.solve(problem, "most-writes").leader == "a"


def test_nobody_writes_where_all_that_waits_for_votes_is_a_read():
    problem = placement.Problem(reads_and_writes(writes=0), replicas=3, voters=3)
    with pytest.raises(placement.UnsupportedError, match="no client issues any"):
        placement.solve(problem, "most-writes")


def test_kinds_survive_files(tmp_path):
    own = (Operation("scan", quorum=1, kind="read"), Operation("put", quorum=1))
    instance = reads_and_writes(own)
    save_instance(instance, tmp_path / "w")
    manifest = json.loads((tmp_path / "w" / "instance.json").read_text())
    assert [row.get("kind") for row in manifest["operations"]] == ["read", None]
    assert load_instance(tmp_path / "w").operations == own
    embedded = json.loads(json.dumps(instance_document(instance)))
    path = tmp_path / "e.json"
    path.write_text(json.dumps(embedded))
    from placement.io.formats.document import read_document

    assert instance_from_document(read_document(path)).operations == own


def test_kinds_in_a_frame():
    frame = pd.DataFrame(
        {"near": [0, 0], "relay": [0, 0], "direct": [1, 1], "quorum": [1, 1],
         "kind": ["read", "write"]},
        index=["scan", "put"],
    )  # fmt: skip
    counts = pd.DataFrame([[3, 4]], index=["c"], columns=["scan", "put"])
    instance = placement.Instance.from_frames(
        client_rtt=pd.DataFrame([[1.0]], index=["c"], columns=["s"]),
        site_rtt=pd.DataFrame([[0.0]], index=["s"], columns=["s"]),
        counts=counts,
        operations=frame,
    )
    assert [o.kind for o in instance.operations] == ["read", "write"]
    assert placement.Instance.from_frames(**instance.to_frames()).operations == instance.operations


READ = (Operation("read", near=1),)


def network(rtt: list[list[float]], counts: list[float], **asked: object) -> Problem:
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
    assert chosen_sites(network(rtt, [5, 4], replicas=2), 2) == (0, 1)
    assert chosen_sites(network(rtt, [5, 4], replicas=2, diversity=[one_each]), 2) == (0, 3)


def test_a_worse_round_is_undone() -> None:
    """With costs other than RTTs a round can raise the cost; then the better set is kept."""
    for seed in range(examples(200, 100)):
        rng = np.random.default_rng(seed)
        problem = network(rng.integers(1, 30, (6, 5)).tolist(), rng.integers(1, 9, 6).tolist())
        cost = rng.integers(1, 100, (6, 5)).astype(float)
        assert list(chosen_sites(problem, 3, cost=cost)) == paper.weighted_k_means(
            problem, [], 3, lambda c, s, cost=cost: cost[c][s]
        )


def total(problem: Problem, chosen: Sequence[int]) -> float:
    cost = np.array(paper.weights(problem))[:, np.newaxis] * problem.instance.client_rtt
    sites = sorted(chosen)
    return float(sum(cost[c][paper.nearest(problem, c, sites)] for c in range(len(cost))))


def test_rules_keep_room_for_domains() -> None:
    """The two heaviest clients sit in one half; the rule asks for both halves."""
    rtt = [[0, 9, 90, 90], [9, 0, 90, 90], [90, 90, 0, 9]]
    both = Diversity("half", "replicas", min_domains=2)
    problem = network(rtt, [9, 8, 1], replicas=2, diversity=[both])
    assert chosen_sites(network(rtt, [9, 8, 1], replicas=2), 2) == (0, 1)
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


@pytest.mark.parametrize(("module", "algorithm"), [(kq, paper.kq), (qk, paper.qk)])
@settings(max_examples=examples(400))
@given(problem=problems(kinds=(), integral=True))
def test_kq_is_algorithm_4_and_qk_is_algorithm_5(module, algorithm, problem: Problem) -> None:
    plan = run(module.METHOD, problem, Options())
    expected = algorithm(problem, problem.rules.replicas_min, problem.rules.voters)
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
    return small(("a", "b", "c", "far"), site_rtt + np.eye(4), site_rtt, counts)


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


@pytest.mark.parametrize("method", ["kq", "qk", "best-of", "most-writes", "max-diversity"])
def test_a_time_limit_stops_between_numbers_of_replicas(method: str) -> None:
    problem = Problem(random_instance(0), replicas=(3, 5), voters=3, leader="site-0")
    plan = run(load_method(method), problem, Options(time_limit=0.0))
    assert (plan.termination, len(plan.replicas)) == ("time limit", 3)


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
