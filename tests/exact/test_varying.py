"""RTTs that vary by interval in the engine: against enumeration and the checker."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable

import numpy as np
import pytest

from formulations.exact.kernel import Incumbent, compiled_available, open_kernel
from formulations.exact.reduced_problem import ReducedProblem
from placement import Problem, check_certificate, solve
from placement.evaluation.waits.wait_floors import (
    floor_costs,
    nearest_voters,
    wait_floors,
    wait_order,
)
from placement.proof.event_tree import CertificateError
from placement.testing.small_worlds import optimum, random_instance
from tests.effort import examples, seeds
from tests.exact.worlds import brute_force, equals_enumeration, random_core, varying_core

pytestmark = pytest.mark.filterwarnings("ignore::placement.errors.UnitsWarning")


@pytest.mark.parametrize("block", seeds(1, 160))
def test_equals_enumeration_without_a_start(block: int) -> None:
    for seed in range(25 * block, 25 * block + 25):
        equals_enumeration(varying_core(seed), "compiled", seed)


@pytest.mark.parametrize("kernel", ["tight", "sparse"])
@pytest.mark.parametrize("block", seeds(1, 8))
def test_every_kernel_equals_enumeration(kernel: str, block: int) -> None:
    for seed in range(20 * block + 5000, 20 * block + 5020):
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
    for seed in range(examples(60, 30)):
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
    assert found > examples(60, 30) // 3


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
