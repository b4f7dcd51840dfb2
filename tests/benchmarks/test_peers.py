"""Peers answer the questions they take as enumeration does, and refuse the rest."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.harness.suites import CellLimits, InstanceRecipe, LossRule, SolveCell, problem_of
from benchmarks.peers import CAPTIONS, commit_latency, find_method, resilience
from placement import Configuration, Problem
from placement.errors import InputError, MissingDependencyError, UnsupportedError
from placement.evaluation.score import quorum_latency
from placement.methods.options import Options
from placement.methods.registry import load_method, run
from placement.model.constraints import majority
from placement.support.status import Status
from tests.effort import examples

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of PuLP


def needs(*packages: str) -> pytest.MarkDecorator:
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    return pytest.mark.skipif(bool(missing), reason=f"needs {', '.join(missing)} (extra 'peers')")


def asked(sites: int, replicas: int, voters: int, seed: int, demand: str = "all") -> Problem:
    world = InstanceRecipe("world27", sites=sites, demand=demand)  # type: ignore[arg-type]  # one of two words
    cell = SolveCell(world, replicas, voters, LossRule.NONE, "x", seed, CellLimits())
    return problem_of(cell, world.build(seed))


def agrees(name: str, problem: Problem) -> None:
    truth = run(load_method("exhaustive"), problem, Options())
    plan = run(find_method(name), problem, Options(time_limit=60.0))
    assert plan.status is Status.OPTIMAL
    assert plan.objective == pytest.approx(truth.objective, rel=1e-9)
    assert plan.method == name


@needs("quoracle")
@pytest.mark.parametrize("seed", [0, 1])
def test_quoracle(seed: int) -> None:
    agrees("peer/quoracle", asked(5, 3, 3, seed))


@needs("quoracle")
@settings(max_examples=examples(25))
@given(st.lists(st.floats(0.01, 400.0), min_size=0, max_size=5))
def test_quoracle_and_we_mean_the_same_wait(others: list[float]) -> None:
    """A latency-optimal majority strategy of quoracle waits for the m-th smallest RTT."""
    rtt = np.array([0.0, *others])
    site_rtt = np.zeros((len(rtt), len(rtt)))
    site_rtt[0] = rtt
    wait = quorum_latency(site_rtt, 0, range(len(rtt)), majority(len(rtt)))
    assert commit_latency(rtt.tolist()) == pytest.approx(float(wait), abs=1e-6)


@needs("quoracle")
@pytest.mark.parametrize("voters", [1, 3, 4, 5, 7])
def test_quoracle_and_we_mean_the_same_resilience(voters: int) -> None:
    """By quoracle, too, v voters survive the loss of v minus a majority."""
    assert resilience(voters) == voters - majority(voters)


@needs("quoracle")
def test_quoracle_keeps_its_best_at_the_limit() -> None:
    """At a time limit of nothing there is no plan, and no proof of anything."""
    plan = run(find_method("peer/quoracle"), asked(6, 3, 3, 0), Options(time_limit=0.0))
    assert plan.status in (Status.UNKNOWN, Status.FEASIBLE)


@needs("spopt", "pulp")
@pytest.mark.parametrize("seed", [0, 1])
def test_spopt(seed: int) -> None:
    agrees("peer/spopt", asked(9, 3, 1, seed, "reads"))


@needs("pbp_pmedian")
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pbp(seed: int) -> None:
    agrees("peer/pbp-pmedian", asked(9, 3, 1, seed, "reads"))


def test_the_monolithic_program() -> None:
    agrees("peer/monolithic-milp", asked(6, 3, 3, 0))


@needs("quoracle", "spopt", "pulp", "pbp_pmedian")
def test_peers_refuse_what_they_cannot_take() -> None:
    whole = asked(6, 3, 3, 0)
    for name in ("peer/spopt", "peer/pbp-pmedian"):
        with pytest.raises(UnsupportedError, match="leader"):
            run(find_method(name), whole, Options())
    for problem in (asked(6, 4, 3, 0), whole.replace(survive="continent")):
        with pytest.raises(UnsupportedError):
            run(find_method("peer/quoracle"), problem, Options())


def test_p_median_is_the_special_case_of_reads() -> None:
    """Without operations that involve the leader, the value is the same whoever leads."""
    problem = asked(6, 3, 1, 0, "reads")
    values = {
        problem.objective.value(problem, Configuration.of(leader, [leader], [0, 2, 5]))
        for leader in (0, 2, 5)
    }
    assert len(values) == 1


def test_every_peer_has_a_caption() -> None:
    for name, caption in CAPTIONS.items():
        assert len(caption) > 60
        try:
            assert find_method(name).name == name
        except MissingDependencyError as error:
            assert "replica-placement[peers]" in str(error)  # noqa: PT017 - either is right
    with pytest.raises(InputError, match="unknown peer"):
        find_method("peer/none")
