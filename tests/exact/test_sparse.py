"""Sparse frames, open parts of trees and arrays that do not fit: optima, proofs, refusals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formulations.exact.branch_and_bound import search
from formulations.exact.certificate_events import decode_trees
from formulations.exact.kernel import Incumbent, Kernel, compiled_available, open_kernel
from formulations.exact.reduced_problem import ReducedProblem
from placement.support.status import Status
from tests.effort import examples
from tests.exact.test_engine import spread_out
from tests.exact.worlds import assert_proved

pytestmark = pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")


def relayed(seed: int, sites: int, clients: int, replicas: int, weak: float) -> ReducedProblem:
    """Points in a square; reads are relayed but for the share `weak`: closest assignment binds."""
    rng = np.random.default_rng(seed)
    points, homes = 100 * rng.random((sites, 2)), 100 * rng.random((clients, 2))
    between = np.linalg.norm(points[:, None] - points, axis=-1)
    noise = 1 + 0.2 * rng.random((clients, sites))
    rtt = noise * np.linalg.norm(homes[:, None] - points, axis=-1)
    reads = rng.integers(1, 50, clients).astype(float)
    relay = np.rint((1 - weak) * reads)
    direct = rng.integers(0, 9, clients)
    return ReducedProblem.of_arrays(
        rtt, between, (reads, relay, direct, 40.0), replicas=(replicas, replicas), voters=3
    )


@settings(max_examples=examples(12), deadline=None)
@given(st.integers(0, 10**6), st.integers(4, 7), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_same_optimum_with_a_proof(seed, replicas, weak):
    core = relayed(seed, 16, 25, replicas, weak)
    dense = search(core, kernel="compiled", certify=False)
    sparse = search(core, kernel="sparse")
    assert sparse.status is dense.status is Status.OPTIMAL
    assert sparse.score == pytest.approx(dense.score, rel=1e-9)
    assert_proved(core, sparse.certificate)


def test_bounds_under_one_leader_never_pass_the_optimum():
    core = relayed(3, 30, 50, 6, 0.0)
    optimum = search(core, kernel="compiled", certify=False)
    assert optimum.configuration is not None
    kernel = open_kernel(core, "sparse")
    leader = optimum.configuration.leader
    kernel.open_trees([leader], np.zeros((1, len(core.active))), np.zeros(1))
    last, finished, found = 0.0, False, None
    while not finished:
        finished = kernel.run(1e4, 60.0)
        found = kernel.incumbent()
        bound = (
            float(kernel.tree_bounds([leader])[0])
            if found is None
            else min(float(kernel.tree_bounds([leader])[0]), found.score)
        )
        assert last - 1e-9 * abs(last) <= bound <= optimum.score * (1 + 1e-9)
        last = bound
    assert found is not None
    assert found.score == pytest.approx(optimum.score, rel=1e-9)


@pytest.mark.parametrize(("cells", "share"), [(-1.0, 0.5), (float("nan"), 0.5), (0.0, 1.5)])
def test_a_wrong_threshold_is_refused(cells, share):
    import formulations.exact._kernel as compiled

    context = open_kernel(relayed(1, 5, 5, 3, 0.0), "compiled").context
    with pytest.raises(ValueError, match="not a number of cells"):
        compiled.set_size_limits(context, cells, share, 1, 1, 0.0, 0)


@settings(max_examples=examples(10, 4), deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["compiled", "tight", "sparse"]),
    st.sampled_from([1.0, 1e4, 3e5]),
    st.booleans(),
)
def test_bounds_rise_and_never_pass_the_optimum(seed, which, work, inflated):
    core = relayed(seed, 18, 25, 5, 0.1)
    optimum = search(core, kernel="compiled", certify=False).score
    kernel = open_kernel(core, which)
    kernel.propose(Incumbent(optimum * (1.02 if inflated else 1.0), -2, ()))
    leaders, clients = core.leaders.tolist(), len(core.active)
    kernel.open_trees(leaders, np.zeros((len(leaders), clients)), np.zeros(len(leaders)))
    before, finished = np.zeros(len(leaders)), False
    while not finished:
        finished = kernel.run(work, 60.0)
        bounds = kernel.tree_bounds(leaders)
        assert (np.minimum(bounds, optimum) >= np.minimum(before, optimum) * (1 - 1e-9)).all()
        found = kernel.incumbent()
        assert found is not None
        assert min(bounds.min(), found.score) <= optimum * (1 + 1e-9)
        before = bounds
    assert found.score == pytest.approx(optimum, rel=1e-9)
    assert bounds.min() >= optimum * (1 - 1e-9)


@pytest.mark.parametrize("which", ["tight", "sparse"])
def test_every_leader_begins_before_one_gets_many_nodes(which):
    core = relayed(2, 18, 25, 5, 0.1)
    kernel = open_kernel(core, which)  # two nodes at a time
    leaders, clients = core.leaders.tolist(), len(core.active)
    kernel.open_trees(leaders, np.zeros((len(leaders), clients)), np.zeros(len(leaders)))
    while not kernel.run(1.0, 60.0):
        if kernel.tree_bounds(leaders).min() > 0.0:
            break
    assert 0 < kernel.counters().nodes <= 3 * len(leaders)


def opened(core: ReducedProblem, leaders: list[int], restart: int) -> Kernel:
    """A kernel with the trees of leaders open, in turns of five nodes, which restart after some."""
    kernel = Kernel(core)
    kernel.compiled.set_size_limits(kernel.context, 1e18, 1.0, restart, 5, 1e18, 0)
    kernel.open_trees(leaders, np.zeros((len(leaders), len(core.active))), np.zeros(len(leaders)))
    return kernel


def learned(kernel: Kernel, leaders: list[int]) -> np.ndarray:
    return np.array([kernel.compiled.decisions_learned(kernel.context, one) for one in leaders])


def test_a_tree_keeps_what_it_has_learned_while_others_are_worked_on():
    core = relayed(0, 24, 40, 5, 0.1)
    leaders = core.leaders.tolist()
    kernel = opened(core, leaders, restart=10**9)
    before, finished = learned(kernel, leaders), False
    while not finished:
        finished = kernel.run(1.0, 60.0)
        now = learned(kernel, leaders)
        assert (now >= before).all()
        before = now
    assert np.count_nonzero(before > 5) > 1
    assert before.sum() < kernel.counters().nodes


@pytest.mark.parametrize(("sites", "clients", "keeps"), [(60, 90, True), (160, 640, False)])
def test_a_tree_that_begins_anew_forgets_what_it_has_learned_only_of_large_questions(
    sites, clients, keeps
):
    core = relayed(2, sites, clients, 5, 0.1)
    leader = int(core.leaders[0])
    kernel = opened(core, [leader], restart=12)
    most = 0.0
    while not kernel.run(1.0, 60.0) and kernel.counters().nodes < 16:
        now = float(learned(kernel, [leader])[0])
        if now < most:
            break
        most = now
    assert kernel.counters().nodes > 12
    assert (float(learned(kernel, [leader])[0]) >= most) is keeps


def test_what_was_recorded_last_of_a_part_counts():
    log = np.array([7, 1, 6, 9, 7, 9, 3, 0, 7, 1, 4, 2, 6, 10, 3, 0, 7, 10, 2, 0, 0.5], dtype=float)
    events = decode_trees(log, [1, 2], 1)[1]
    assert events == [["branch", 2], ["close", [0.5]], ["enumerate"]]


SITES, CLIENTS = 6, 4


def columns(leaders: list[int], rows: tuple[int, ...]) -> list[bytearray]:
    """Leaders and zeros, an array per number of bytes in a row; a bytearray knows who holds it."""
    return [bytearray(np.array(leaders, dtype=np.int32).tobytes())] + [
        bytearray(row * len(leaders)) for row in rows
    ]


def call(verb: str, arrays: list[bytearray]) -> int:
    import formulations.exact._kernel as compiled

    core = spread_out(SITES, CLIENTS, seed=1, size=3, voters=2)
    context = open_kernel(core, "compiled").context
    if verb == "quick_bounds":
        return compiled.quick_bounds(context, *arrays, 1e12, 60.0)
    return compiled.bound_roots(context, *arrays, 5, 1, len(arrays[0]) // 4, 1e12, 60.0)


ROWS = {"bound_roots": (8 * CLIENTS, 1, 8, 8), "quick_bounds": (8 * CLIENTS, 8)}
each_verb = pytest.mark.parametrize("verb", ROWS)


def assert_released(arrays: list[bytearray]) -> None:
    for array in arrays:
        array.append(0)  # BufferError while anyone holds it


@each_verb
def test_fitting_arrays_are_filled_and_released(verb):
    arrays = columns([0, 3], ROWS[verb])
    assert call(verb, arrays) == 2
    bounds = np.frombuffer(bytes(arrays[-1 if verb == "quick_bounds" else 3]), dtype=float)
    assert (bounds > 0).all()
    assert_released(arrays)


@each_verb
@pytest.mark.parametrize("change", [-1, 1])
def test_every_array_must_fit(verb, change):
    for wrong in range(len(ROWS[verb]) + 1):
        arrays = columns([0, 3], ROWS[verb])
        if change < 0:
            del arrays[wrong][-1]
        else:
            arrays[wrong].append(0)
        with pytest.raises(ValueError, match="do not fit"):
            call(verb, arrays)
        assert_released(arrays)


@each_verb
@pytest.mark.parametrize("leader", [-2, SITES])
def test_leaders_must_exist(verb, leader):
    arrays = columns([0, leader], ROWS[verb])
    with pytest.raises(ValueError, match="do not fit"):
        call(verb, arrays)
    assert_released(arrays)


@each_verb
def test_results_must_be_writable(verb):
    arrays = columns([0, 3], ROWS[verb])
    with pytest.raises(BufferError):
        call(verb, [*arrays[:-1], bytes(arrays[-1])])
    assert_released(arrays)
