"""The engine against enumeration, and its proofs against rational arithmetic."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from formulations.exact import tuning
from formulations.exact.branch_and_bound import SearchReport, search
from formulations.exact.kernel import compiled_available
from formulations.exact.reduced_problem import ReducedProblem
from placement.errors import InputError
from placement.support.status import Status, Termination
from tests import pmed
from tests.effort import examples
from tests.exact.rational import Checker
from tests.exact.worlds import brute_force, random_core

_BUILT = pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
KERNELS = [
    pytest.param("compiled", marks=_BUILT),
    pytest.param("tight", marks=_BUILT),
    pytest.param("sparse", marks=_BUILT),
]

each_kernel = pytest.mark.parametrize("kernel", KERNELS)


def assert_proven(core: ReducedProblem, kernel: str, *, inflated: bool) -> None:
    """The optimum is found and proven, and the proof holds in rational arithmetic.

    With an inflated start nothing is known of the optimum: a wrong pruning rule then loses it.
    """
    best = brute_force(core)
    pretend = best * 1.5 + 1 if inflated and math.isfinite(best) else None
    result = search(core, kernel=kernel, pretend=pretend)
    if math.isinf(best):
        assert result.status is Status.INFEASIBLE
        assert result.bound == math.inf
        return
    assert result.status is Status.OPTIMAL
    assert result.score == pytest.approx(best, rel=1e-9, abs=0)
    assert result.bound <= result.score
    assert result.configuration is not None
    assert core.score(result.configuration) == result.score
    assert result.certificate is not None
    Checker(core, result.certificate).check()


@each_kernel
@given(st.integers(0, 10**9), st.booleans())
def test_equals_enumeration_under_every_rule(kernel, seed, inflated):
    assert_proven(random_core(seed), kernel, inflated=inflated)


@each_kernel
@settings(max_examples=examples(16))
@given(st.integers(0, 10**9), st.booleans())
def test_equals_enumeration_where_trees_grow(kernel, seed, inflated):
    # enough sites that leaves are closed by bounds and fixing, not by enumeration
    core = random_core(seed, max_sites=12, max_clients=40, plain=seed % 2 == 0)
    assert_proven(core, kernel, inflated=inflated)


@each_kernel
@pytest.mark.parametrize("seed", [100, 184, 266])
def test_worlds_that_once_failed(kernel, seed):
    # 100: scores near 3e12, where score − 1 is all that whole numbers leave between bound and
    # score, and where a bound that needs no multipliers was claimed without a proof
    assert_proven(
        random_core(seed, max_sites=12, max_clients=12, plain=True), kernel, inflated=False
    )
    assert_proven(random_core(seed), kernel, inflated=True)


def spread_out(sites: int, clients: int, seed: int, size: int, voters: int) -> ReducedProblem:
    """Modelled network with every kind of demand; relayed reads heavy enough to need branching."""
    rng = np.random.default_rng(seed)
    points, homes = rng.normal(size=(sites, 2)), rng.normal(size=(clients, 2))
    rtt = 5 + 60 * np.linalg.norm(homes[:, None] - points, axis=-1)
    between = 5 + 60 * np.linalg.norm(points[:, None] - points, axis=-1)
    rtt *= rng.lognormal(0, 0.2, rtt.shape)
    between *= rng.lognormal(0, 0.2, between.shape)
    np.fill_diagonal(between, 0)
    load = rng.lognormal(0, 1, clients)
    weights = (load, 0.9 * load, 0.5 * load, 0.2 * float(load.sum()))
    return ReducedProblem.of_arrays(rtt, between, weights, replicas=(size, size), voters=voters)


@each_kernel
def test_reports_never_pass_the_optimum(kernel, monkeypatch):
    core = spread_out(24, 30, seed=3, size=6, voters=3)
    optimum = search(core).score
    monkeypatch.setattr(tuning, "CHUNK_WORK", 1.0)
    monkeypatch.setattr(tuning, "REPORT_EVERY", 0.0)
    result = search(core, kernel=kernel, pretend=optimum * 1.2)
    assert len(result.trace) > 10
    for report in result.trace:
        assert report.bound <= optimum <= report.incumbent * (1 + 1e-12)
    for one, two in zip(result.trace, result.trace[1:], strict=False):
        assert one.bound <= two.bound
        assert one.incumbent >= two.incumbent
    assert result.score == pytest.approx(optimum, rel=1e-9)
    assert result.status is Status.OPTIMAL


@settings(max_examples=examples(30))
@given(st.integers(0, 10**9))
@example(8340)  # the tree of leader 5 evaluates its best, and bounds the rest
def test_leader_bounds_hold_for_each_leader(seed):
    core = random_core(seed, plain=True)
    result = search(core)
    for leader, bound in result.leader_bounds.items():
        if leader < 0:
            continue
        only = np.zeros(core.sites, dtype=bool)
        only[leader] = True
        rules = core.rules
        alone = ReducedProblem.of_arrays(
            core.client_rtt,
            core.site_rtt,
            (
                *(w[0] for w in (core.demand.near, core.demand.relay, core.demand.direct)),
                core.quorum_weight,
            ),
            replicas=(rules.replicas_min, rules.replicas_max),
            voters=rules.voters,
            quorum=rules.quorum,
            may_lead=only,
        )
        best = brute_force(alone)
        # what a tree has evaluated its bound leaves out, and that is no better than the incumbent
        assert min(bound, result.score) <= best * (1 + 1e-12)


def test_interrupt_in_a_report_keeps_what_is_known():
    core = spread_out(24, 30, seed=3, size=6, voters=3)
    optimum = search(core).score

    def stop(report: SearchReport) -> None:
        if report.incumbent < math.inf:
            raise KeyboardInterrupt

    result = search(core, listen=stop)
    assert result.termination is Termination.INTERRUPTED
    assert result.configuration is not None
    assert result.bound <= optimum <= result.score * (1 + 1e-12)


INTERRUPTED = """
import json, os, signal, sys, threading
from formulations.exact.branch_and_bound import SearchLimits, search
from tests.exact.test_engine import spread_out

core = spread_out(300, 300, seed=7, size=12, voters=5)
reports = []

def listen(report):
    # The first report comes from the middle of the search.
    if not reports:
        threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGINT)).start()
    reports.append(report)

result = search(core, limits=SearchLimits(seconds=120.0), listen=listen)
json.dump([result.termination, result.bound, result.score], sys.stdout)
"""


@_BUILT
def test_signal_reaches_the_compiled_kernel():
    """In a process of its own, so that a signal that came late would interrupt nothing else."""
    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED], capture_output=True, text=True, timeout=300, cwd=root
    )
    assert done.returncode == 0, done.stderr
    termination, bound, score = json.loads(done.stdout)
    assert termination == Termination.INTERRUPTED
    assert 0 < bound <= score < math.inf


@each_kernel
@settings(max_examples=examples(30))
@given(st.integers(0, 10**9), st.integers(0, 10**9))
def test_any_start_gives_the_same_optimum(kernel, seed, other):
    core = random_core(seed)
    cold = search(core, kernel=kernel)
    rng = np.random.default_rng(other)
    noise = {
        leader: rng.random(len(core.active)) * 10.0 ** rng.integers(-3, 5)
        for leader in range(-1, core.sites)
    }
    warm = search(core, kernel=kernel, multipliers=noise, start=cold.configuration)
    assert warm.status is cold.status
    assert warm.score == pytest.approx(cold.score, rel=1e-9, abs=0)


def uniform(value: float, sites: int = 9, clients: int = 9, **changes: object) -> ReducedProblem:
    rtt = np.full((clients, sites), value)
    between = np.where(np.eye(sites, dtype=bool), 0.0, value)
    ask: dict = {"replicas": (4, 4), "voters": 3}
    weights = changes.pop("weights", (np.ones(clients), np.ones(clients), np.ones(clients), 5.0))
    return ReducedProblem.of_arrays(rtt, between, weights, **(ask | changes))


DEGENERATE = {
    "all RTTs equal": uniform(7.0),
    "all RTTs zero": uniform(0.0),
    "one client": uniform(3.0, clients=1),
    "one site": uniform(3.0, sites=1, replicas=(1, 1), voters=1),
    "every site a replica": uniform(5.0, replicas=(9, 9)),
    "tiny RTTs, huge counts": uniform(1e-3, weights=(*(np.full(9, 1e12),) * 3, 9e12)),
    "idle clients": uniform(4.0, weights=(*(np.eye(9)[0],) * 3, 1.0)),
    "only quorum": uniform(4.0, weights=(*(np.zeros(9),) * 3, 1.0)),
    "only relays": uniform(4.0, weights=(np.zeros(9), np.ones(9), np.zeros(9), 0.0)),
    "only reads": uniform(4.0, weights=(np.ones(9), np.zeros(9), np.zeros(9), 0.0)),
    "only the leader": uniform(4.0, weights=(np.zeros(9), np.zeros(9), np.ones(9), 0.0)),
}


@each_kernel
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_worlds(kernel, name):
    assert_proven(DEGENERATE[name], kernel, inflated=False)


@each_kernel
@pytest.mark.parametrize(("nodes", "medians"), [(40, 4), (60, 12), (70, 5)])
def test_p_median(kernel, nodes, medians):
    drawn = pmed.draw(nodes, medians, seed=nodes)
    weights = (np.ones(nodes), np.zeros(nodes), np.zeros(nodes), 0.0)
    core = ReducedProblem.of_arrays(
        drawn.distances, drawn.distances, weights, replicas=(medians, medians), voters=1
    )
    result = search(core, kernel=kernel)
    assert result.status is Status.OPTIMAL
    assert result.score == result.bound == pmed.by_integer_program(drawn.distances, medians)


def test_whole_numbers_are_proven_without_tolerance():
    rng = np.random.default_rng(11)
    rtt = rng.integers(1, 50, (20, 15)).astype(float)
    between = rng.integers(1, 50, (15, 15)).astype(float)
    np.fill_diagonal(between, 0)
    weights = (*(rng.integers(0, 9, 20).astype(float) for _ in range(3)), 4.0)
    core = ReducedProblem.of_arrays(rtt, between, weights, replicas=(5, 5), voters=3)
    assert core.granularity == 1.0
    result = search(core)
    assert result.bound == result.score
    Checker(core, result.certificate).check()


@pytest.mark.parametrize("event", ["drop", "lower", "claim", "branch"])
def test_the_checker_refutes_tampered_certificates(event):
    import dataclasses

    from formulations.exact.certificate_events import Close, LeaderEvents

    core = spread_out(12, 14, seed=2, size=4, voters=3)
    certificate = search(core).certificate
    Checker(core, certificate).check()
    proofs = list(certificate.leaders)
    if event == "drop":
        proofs.pop()
    elif event == "lower":
        proofs[0] = LeaderEvents(proofs[0].leader, (Close((0.0,) * len(certificate.clients)),))
    elif event == "branch":
        proofs[0] = LeaderEvents(proofs[0].leader, proofs[0].events[:-1])
    bound = certificate.bound * (1.001 if event == "claim" else 1)
    tampered = dataclasses.replace(certificate, leaders=tuple(proofs), bound=bound)
    with pytest.raises(AssertionError):
        Checker(core, tampered).check()


def test_unknown_kernel():
    with pytest.raises(InputError, match="unknown kernel"):
        search(uniform(1.0), kernel="fortran")
