"""Detours: the lemma against every set, and what they bring in both kinds of trees."""

import itertools

import numpy as np
import pytest

import placement
from formulations.exact.kernel import compiled_available
from formulations.exact.threshold_search import missing
from placement import Contingency, Operation, Problem
from placement.errors import CertificateError
from placement.proof.certificate_check import check_certificate, check_mean
from placement.proof.costs.detours import Detours
from placement.support.work import Work
from placement.testing import random_instance
from tests.effort import seeds

COMPILED = missing() is None


@pytest.mark.parametrize("seed", seeds(60, 400))
def test_no_set_costs_less_than_the_bound_with_detours(seed):
    """Ties, zero costs, sites that are out, any multipliers: the bound holds for every set."""
    rng = np.random.default_rng(seed)
    clients, sites = int(rng.integers(1, 5)), int(rng.integers(2, 7))
    rank = np.argsort(rng.random((clients, sites)), axis=1)
    costs = rng.integers(0, int(rng.choice([3, 20])), (clients, sites))
    inside = frozenset(rng.permutation(sites)[: rng.integers(1, sites)].tolist())
    free = [s for s in range(sites) if s not in inside and rng.random() < 0.8]
    first = rank[:, sorted(inside)].min(axis=1)
    home = np.array(sorted(inside))[rank[:, sorted(inside)].argmin(axis=1)]
    alone = costs[np.arange(clients), home]
    longer = Detours(rank, costs).of(first, alone, free)
    exact = Detours(rank, costs.astype(object)).of(first, alone, free)
    assert longer == exact
    assert min(longer) >= 0
    u = rng.integers(-2, 22, clients)
    for size in range(len(free) + 1):
        for added in itertools.combinations(free, size):
            chosen = sorted(inside | {*added})
            near = np.array(chosen)[rank[:, chosen].argmin(axis=1)]
            paid = int(costs[np.arange(clients), near].sum())
            bound = int(np.minimum(u, alone).sum())
            for site in added:
                before = rank[:, site] < first
                bound += longer[site] + int(np.minimum(0, costs[:, site] - u)[before].sum())
            assert bound <= paid


def test_a_site_that_every_client_prefers_has_all_of_its_detour():
    """Two clients at a fixed site 0 of cost 5; the free site 1 comes first and costs 9 and 7."""
    rank = np.array([[1, 0], [1, 0]])
    costs = np.array([[5, 9], [5, 7]])
    found = Detours(rank, costs).of(np.array([1, 1]), np.array([5, 5]), [1])
    assert found == [0, 6]


def test_the_last_of_several_preferred_sites_has_what_is_left():
    """Costs 9, 4, 7 before the fixed 5: the first rises to 9, and then 4 is below 5."""
    rank = np.array([[3, 0, 1, 2]])
    costs = np.array([[5, 9, 4, 7]])
    assert Detours(rank, costs).of(np.array([3]), np.array([5]), [1, 2, 3]) == [0, 4, 0, 0]
    assert Detours(rank, costs).of(np.array([3]), np.array([5]), [1, 3]) == [0, 2, 0, 2]


def test_without_a_fixed_replica_there_are_none():
    rank, costs = np.array([[0, 1]]), np.array([[9, 1]])
    assert Detours(rank, costs).of(np.array([2]), np.array([0]), [0, 1]) == [0, 0]


@pytest.mark.skipif(not COMPILED, reason="the search over losses is compiled")
def test_relayed_reads_are_proven_in_few_nodes():
    """Every client asks a near replica, which asks the leader: nearly every site is a detour."""
    relayed = (Operation("read", near=1, relay=1), Operation("write", direct=1, quorum=1))
    instance = random_instance(9, sites=18, clients=18)
    counts = np.ones((1, 18, 2))
    instance = instance.replace(operations=relayed, counts=counts)
    problem = Problem(instance, replicas=8, voters=3, objective=Contingency())
    plan = placement.solve(problem)
    assert plan.stats["nodes"] < 4000  # 7,964 without detours
    assert check_certificate(plan).bound <= plan.objective


def _relayed_question(seed: int) -> Problem:
    relayed = (Operation("read", near=1, relay=1), Operation("write", direct=1, quorum=1))
    instance = random_instance(seed, sites=18, clients=18)
    instance = instance.replace(operations=relayed, counts=np.ones((1, 18, 2)))
    return Problem(instance, replicas=8, voters=3)


@pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
def test_trees_of_one_leader_count_them(monkeypatch):
    """The certificate needs them: a checker that leaves them out does not get as far."""
    plan = placement.solve(_relayed_question(1))
    assert plan.status == "optimal"
    assert plan.stats["nodes"] < 40  # 8; 136 without detours
    assert check_certificate(plan).bound <= plan.objective
    monkeypatch.setattr(Detours, "of", lambda self, *_: [0] * self._sites)
    with pytest.raises(CertificateError, match=r"does not reach the claim|nothing proves site"):
        check_certificate(plan)


@pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
@pytest.mark.parametrize("seed", seeds(8, 60))
def test_a_certificate_with_detours_proves_no_more_than_it_says(seed):
    """A claim above the optimum is refused, with the multipliers that prove the optimum."""
    plan = placement.solve(_relayed_question(seed))
    certificate = plan.certificate
    assert check_certificate(plan).bound <= plan.objective
    raised = plan.objective * (1 + 1e-6)
    claimed = {**certificate, "bound": raised, "score": raised}
    with pytest.raises(CertificateError):
        check_mean(plan.problem, raised, claimed, Work(10**9))
