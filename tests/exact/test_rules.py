"""Minimums, crossing levels and RTTs that vary in the engine, against enumeration."""

from __future__ import annotations

import copy
import dataclasses
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from formulations.exact.kernel import Incumbent, compiled_available, open_kernel
from formulations.exact.reduced_problem import ReducedProblem
from placement import Diversity, Problem, check_certificate, datasets, solve
from placement.errors import PlacementError
from placement.evaluation.waits.wait_floors import (
    floor_costs,
    nearest_voters,
    wait_floors,
    wait_order,
)
from placement.model.constraints import GroupRule, Role
from placement.model.site_families import FamilyCount, SiteFamily
from placement.proof.event_tree import CertificateError
from placement.testing.small_worlds import optimum, random_instance
from tests.effort import examples, seeds
from tests.exact.worlds import brute_force, equals_enumeration, random_core, varying_core

pytestmark = pytest.mark.filterwarnings("ignore::placement.errors.UnitsWarning")


def ruled_core(seed: int) -> ReducedProblem:
    """Return a problem with one to three rules drawn on it, of either role and any kind."""
    core = random_core(seed, plain=seed % 3 > 0)
    rng = np.random.default_rng([seed, 7])
    groups = list(core.rules.groups)
    for _ in range(int(rng.integers(1, 4))):
        role: Role = "voters" if rng.random() < 0.5 else "replicas"
        domains = int(rng.integers(2, 4))
        labels, names = rng.integers(0, domains, core.sites), tuple(map(str, range(domains)))
        cap, distinct, domain, least = None, None, -1, 0
        kind = int(rng.integers(3))
        if kind == 0:
            distinct = int(rng.integers(1, 4))
        elif kind == 1:
            domain, least = int(rng.integers(domains)), int(rng.choice([1, 1, 2]))
        else:
            cap = int(rng.integers(1, 4))
            distinct = int(rng.integers(1, 4)) if rng.random() < 0.4 else None
        groups.append(GroupRule("level", role, labels, names, cap, distinct, "", domain, least))
    rules = dataclasses.replace(core.rules, groups=tuple(groups))
    return ReducedProblem(core.demand, rules, core.price)


@pytest.mark.parametrize("block", seeds(1, 40))
def test_equals_enumeration_on_hundreds(block: int) -> None:
    for seed in range(100 * block, 100 * block + 100):
        equals_enumeration(ruled_core(seed), "compiled", seed)


@pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
@pytest.mark.parametrize(
    ("rule", "most"),
    [
        (Diversity("continent", "replicas", min_domains=3), 5000),
        (Diversity("continent", "voters", min_domains=3), 5000),
        (Diversity("continent", "replicas", domain="South America", least=1), 800),
    ],
)
def test_sites_that_a_minimum_needs_are_decided_first(rule: Diversity, most: int) -> None:
    """Trees of 9,886, 12,434 and 972 nodes without that order; 2,212, 2,336 and 601 with it."""
    instance = datasets.load("gcp", mix="oltp")
    plan = solve(Problem(instance, replicas=5, voters=3, diversity=[rule]), "exact")
    assert plan.status == "optimal"
    assert plan.stats["nodes"] < most


def ruled_problem(seed: int) -> Problem:
    """Return a problem in the user's words."""
    rng = np.random.default_rng(seed)
    sites = int(rng.integers(4, 8))
    instance = random_instance(
        seed, ties=bool(seed % 2), sites=sites, clients=int(rng.integers(2, 9))
    )
    rules = []
    for _ in range(int(rng.integers(1, 4))):
        role: Role = "voters" if rng.random() < 0.5 else "replicas"
        level, kind = str(rng.choice(("region", "continent", "provider"))), int(rng.integers(3))
        if kind == 0:
            rules.append(Diversity(level, role, min_domains=int(rng.integers(1, 4))))
        elif kind == 1:
            domain = str(rng.choice(sorted({str(name) for name in instance.labels(level)})))
            rules.append(Diversity(level, role, domain=domain, least=int(rng.integers(1, 3))))
        else:
            rules.append(Diversity(level, role, cap=int(rng.integers(1, 4))))
    replicas = int(rng.integers(2, sites))
    voters = int(rng.integers(1, replicas + 1))
    return Problem(instance, replicas=replicas, voters=voters, diversity=rules)


@pytest.mark.parametrize("block", seeds(2, 30))
def test_every_answer_has_a_proof_that_holds(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        try:
            problem = ruled_problem(seed)
        except PlacementError:  # the draw asks for more than there is
            continue
        best, plan = optimum(problem), solve(problem, "exact")
        assert plan.notes == ()
        if not np.isfinite(best):
            assert plan.status == "infeasible"
            continue
        assert plan.objective == pytest.approx(best, rel=1e-9)
        assert plan.status == "optimal"
        check_certificate(plan)


@pytest.mark.parametrize("seed", seeds(30, 300))
def test_the_greedy_of_a_family_finds_the_cheapest_set(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sites = 7
    outer = rng.integers(0, 3, sites)
    inner = outer * 2 + rng.integers(0, 2, sites)
    bounds: dict[frozenset[int], tuple[int, int]] = {}
    for labels in (outer, inner):
        for label in np.unique(labels):
            block = frozenset(np.nonzero(labels == label)[0].tolist())
            low = int(rng.random() < 0.3)
            bounds[block] = low, int(rng.integers(low, len(block) + 1))
    spread = [frozenset(np.nonzero(outer == k)[0].tolist()) for k in np.unique(outer)]
    distinct = int(rng.integers(1, len(spread) + 1))
    family = SiteFamily.of_blocks(sites, bounds, spread, distinct)
    least = int(rng.integers(1, 4))
    most = int(rng.integers(least, 6))
    costs = rng.integers(-3, 4, sites)

    def obeys(chosen: frozenset[int]) -> bool:
        return (
            all(low <= len(chosen & block) <= high for block, (low, high) in bounds.items())
            and sum(bool(chosen & block) for block in spread) >= distinct
        )

    sets = (
        frozenset(chosen)
        for size in range(least, most + 1)
        for chosen in itertools.combinations(range(sites), size)
    )
    best = min((int(costs[[*s]].sum()) for s in sets if obeys(s)), default=None)
    count = FamilyCount(family, least, most)
    total = 0
    for site in np.argsort(costs, kind="stable").tolist() if count.feasible else ():
        if count.take(site) if costs[site] < 0 else count.missing > 0 and count.take_needed(site):
            total += int(costs[site])
    complete = count.feasible and count.missing <= 0
    assert (total if complete else None) == best


def test_a_site_that_has_no_room_proves_nothing_by_being_left_out() -> None:
    """Blocked sites once raised the bound of the sets without them, and closed open states."""
    problem = Problem(
        datasets.load("world27", mix="cache"),
        replicas=7,
        voters=5,
        diversity=[
            Diversity("continent", "replicas", cap=2),
            Diversity("country", "replicas", min_domains=4),
            Diversity("continent", "voters", min_domains=2),
        ],
    )
    plan = solve(problem, "exact")
    assert plan.status == "optimal"
    check_certificate(plan)


@pytest.mark.parametrize("kernel", ["compiled", "tight", "sparse"])
@pytest.mark.parametrize("block", seeds(1, 8))
def test_every_kernel_equals_enumeration(kernel: str, block: int) -> None:
    for seed in (26, 59, 91, *range(20 * block + 5000, 20 * block + 5020)):
        equals_enumeration(varying_core(seed), kernel, seed)


@pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
def test_the_kernel_refuses_clients_out_of_the_order_of_scenarios() -> None:
    core = next(core for core in map(varying_core, range(100)) if len(set(core.scenario)) > 1)
    vars(core)["scenario"] = core.scenario[::-1]
    with pytest.raises(ValueError, match="order of scenarios"):
        open_kernel(core, "compiled")


@pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
@pytest.mark.parametrize("drawn", [varying_core, random_core])
def test_leaves_score_every_set_that_may_win(drawn: Callable[[int], ReducedProblem]) -> None:
    """No descent has found the optimum, and hardly another set is below the incumbent."""
    found = 0
    for seed in range(examples(60, 20)):
        core = drawn(seed)
        best = brute_force(core)
        if not 0 < best < np.inf or not core.leader_matters:
            continue
        kernel, leaders = open_kernel(core, "compiled"), core.leaders.tolist()
        # a better score is at least a grain below the incumbent
        kernel.propose(Incumbent(best * (1 + 1e-6) + core.granularity, -2, ()))
        shape = len(leaders), len(core.active)
        kernel.open_trees(leaders, np.zeros(shape), np.zeros(len(leaders)))
        assert kernel.run(np.inf, 60.0)
        incumbent = kernel.incumbent()
        assert incumbent is not None
        assert incumbent.score == pytest.approx(best, rel=1e-9), seed
        found += 1
    assert found > examples(60, 20) // 3


def _drawn(seed: int, **more: object) -> Problem:
    instance = random_instance(
        seed, sites=7, clients=6, intervals=2 + seed % 3, varying=True, ties=seed % 3 == 0
    )
    return Problem(instance, replicas=3 + seed % 4, voters=3, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("block", seeds(1, 40))
def test_certificates_are_proved_again(block: int) -> None:
    for seed in range(10 * block, 10 * block + 10):
        problem = _drawn(seed)
        plan = solve(problem)
        assert plan.score == pytest.approx(optimum(problem), rel=1e-9)
        assert plan.notes == ()
        assert check_certificate(plan).bound >= plan.score * (1 - 1e-9)


def test_mutated_certificates_are_refused() -> None:
    plan, refused = solve(_drawn(4)), 0
    document = plan.certificate
    assert document is not None
    for leader, proof in enumerate(document["proofs"]):  # type: ignore[arg-type, var-annotated]
        for number, event in enumerate(proof["events"]):
            if event[0] != "close" or not event[1]:
                continue
            changed = copy.deepcopy(dict(document))
            changed["proofs"][leader]["events"][number][1] = [0.0] * len(event[1])  # type: ignore[index]
            with pytest.raises(CertificateError):
                check_certificate(plan.replace(certificate=changed))
            refused += 1
    assert refused
    higher = dict(document, bound=plan.score * (1 + 1e-6))
    with pytest.raises(CertificateError):
        check_certificate(plan.replace(certificate=higher, bound=plan.score * (1 + 1e-6)))


def test_floors_never_exceed_the_wait_of_any_voters() -> None:
    rng = np.random.default_rng(3)
    for _ in range(100):
        scenarios, sites = int(rng.integers(1, 4)), int(rng.integers(2, 7))
        waits = rng.integers(0, 5, (scenarios, sites)) * float(rng.choice([1.0, 0.1]))
        weights = rng.integers(0, 3, scenarios).astype(float)
        may_vote = rng.random(sites) < 0.8
        able = int(may_vote.sum())
        for quorum, most in itertools.combinations_with_replacement(range(1, able + 1), 2):
            floors = wait_floors(waits, weights, quorum=quorum, voters=most, may_vote=may_vote)
            for size in range(quorum, most + 1):
                for voters in itertools.combinations(np.nonzero(may_vote)[0].tolist(), size):
                    wait = weights @ np.sort(waits[:, voters], axis=1)[:, quorum - 1]
                    assert np.sort(floors[list(voters)])[quorum - 1] <= wait * (1 + 1e-15)


def test_floors_are_the_waits_where_all_scenarios_rank_sites_alike() -> None:
    waits = np.array([[0.0, 4.0, 2.0], [0.0, 9.0, 3.0]])
    assert wait_order(waits, np.ones(2)).tolist() == [0, 2, 1]
    for quorum in (1, 2, 3):
        floors = wait_floors(
            waits, np.array([1.0, 2.0]), quorum=quorum, voters=3, may_vote=np.ones(3, dtype=bool)
        )
        assert floors.tolist() == [0.0, 22.0, 8.0]


def test_no_floor_of_a_quorum_is_less_than_that_of_all_voters() -> None:
    """Two sites, each near in one interval alone: any quorum of three waits for a third."""
    waits = np.array([[0.0, 1.0, 6.0, 9.0], [0.0, 6.0, 1.0, 9.0]])
    every = np.ones(4, dtype=bool)
    floors = wait_floors(waits, np.ones(2), quorum=3, voters=4, may_vote=every)
    assert floors.tolist() == [0.0, 2.0, 12.0, 18.0]
    near = wait_floors(waits, np.ones(2), quorum=2, voters=3, may_vote=every)
    assert near.tolist() == [0.0, 2.0, 7.0, 18.0]
    without = wait_floors(
        waits, np.ones(2), quorum=3, voters=3, may_vote=np.array([True, True, False, True])
    )
    assert without[2] == 18.0
    assert without[3] == 18.0


def test_floors_are_the_same_in_integers_of_any_size() -> None:
    rng = np.random.default_rng(8)
    for _ in range(50):
        waits = rng.integers(0, 9, (3, 6))
        may_vote = rng.random(6) < 0.8
        order = wait_order(waits.astype(float), np.ones(3))
        nearest = nearest_voters(waits.astype(float), 2, may_vote)
        forms = [floor_costs(w, order, nearest, 2, 3) for w in (waits, waits.astype(object))]
        assert forms[0].tolist() == forms[1].tolist()


def test_voters_who_cannot_hold_every_nearest_site_wait_for_a_later_one() -> None:
    """Two voters: a leader, and one of two sites that are each near in one interval alone."""
    waits = np.array([[0.0, 1.0, 6.0], [0.0, 6.0, 1.0]])
    every = np.ones(3, dtype=bool)
    for voters, least in ((2, 7.0), (3, 2.0)):
        floors = wait_floors(waits, np.ones(2), quorum=2, voters=voters, may_vote=every)
        assert floors.tolist() == [0.0, least, 7.0]
