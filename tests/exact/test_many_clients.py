"""Problems of many clients and few sites: the same optima, proofs and bounds, by sweeps."""

from __future__ import annotations

import math
import signal
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import placement
from formulations.exact import tuning
from formulations.exact.branch_and_bound import SearchLimits, search
from formulations.exact.kernel import CompiledKernel, compiled_available, open_kernel
from formulations.exact.kernel_types import ClientStream
from formulations.exact.many_clients.client_groups import FREE, IN, OUT, ClientGroups
from formulations.exact.many_clients.partial_problem import partial_problem
from formulations.exact.many_clients.site_events import events_on_sites
from formulations.exact.many_clients.streamed_kernel import ManyClientsKernel
from formulations.exact.reduced_problem import ReducedProblem
from placement.errors import InputError
from placement.support.status import Status
from tests.effort import examples

pytestmark = pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")


def crowd(seed: int, clients: int, sites: int) -> ReducedProblem:
    """Clients around points of a plane: whole RTTs (ties), equal weights or no demand for some."""
    rng = np.random.default_rng(seed)
    points, homes = 100 * rng.random((sites, 2)), 100 * rng.random((clients, 2))
    noise = 1 + 0.2 * rng.random((clients, sites))
    rtt = noise * np.linalg.norm(homes[:, None] - points, axis=-1)
    between = np.linalg.norm(points[:, None] - points, axis=-1)
    if seed % 3 == 0:
        rtt, between = np.ceil(rtt / 10), np.ceil(between / 10)
    weights = [
        np.full(clients, 2.0) if rng.random() < 0.3 else np.rint(rng.pareto(1.5, clients) * 9)
        for _ in range(3)
    ]
    weights[1] *= rng.random() < 0.8
    weights[0][rng.random(clients) < 0.2] = 0.0
    voters = int(rng.integers(1, 4))
    least = int(rng.integers(voters, sites))
    return ReducedProblem.of_arrays(
        rtt,
        between,
        (*weights, float(rng.integers(0, 3) * clients)),
        replicas=(least, least + int(rng.integers(0, 2))),
        voters=voters,
        must_hold=np.arange(sites) == 0 if rng.random() < 0.3 else None,
        caps=[("replicas", np.arange(sites) % 3, 2)] if rng.random() < 0.3 else (),
    )


def rooted(core: ReducedProblem) -> tuple[CompiledKernel, ClientStream]:
    """The kernel of a problem without its clients, and these."""
    nobody = np.zeros((0, core.sites))
    empty = partial_problem(
        core, nobody, (np.zeros(0), np.zeros(0)), np.arange(core.sites), core.rules
    )
    near, relay = core.demand.near[0][core.active], core.demand.relay[0][core.active]
    rows = core.active.astype(np.int64)
    return CompiledKernel(empty), ClientStream(core.client_rtt, near, relay, rows, 1)


@settings(max_examples=examples(8), deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_same_optimum_as_the_other_kernel(seed, certify):
    core = crowd(seed, clients=1200, sites=8)
    usual = search(core, kernel="compiled", certify=False)
    streamed = search(core, kernel="streamed", certify=certify)
    assert streamed.status is usual.status
    if usual.status is Status.OPTIMAL:
        assert streamed.score == pytest.approx(usual.score, rel=1e-9)
        assert streamed.proven <= usual.score * (1 + 1e-12)
        assert all(report.bound <= usual.score * (1 + 1e-12) for report in streamed.reports)


@pytest.mark.parametrize("certify", [True, False])
@pytest.mark.parametrize("seconds", [0.0, 0.03])
def test_a_search_without_time_has_an_honest_bound(certify, seconds):
    core = crowd(1, clients=5000, sites=8)
    optimum = search(core, kernel="compiled", certify=False).score
    limits = SearchLimits(seconds=seconds)
    result = search(core, kernel="streamed", certify=certify, limits=limits)
    assert result.proven <= optimum <= result.score * (1 + 1e-12)


def test_no_result_depends_on_the_number_of_threads():
    core = crowd(2, clients=9_000, sites=8)
    nobody = np.zeros((0, core.sites))
    empty = partial_problem(
        core, nobody, (np.zeros(0), np.zeros(0)), np.arange(core.sites), core.rules
    )
    demand, found = core.demand, set()
    start = np.random.default_rng(1).random(len(core.active)) * 100
    for threads in (1, 2, 100):
        clients = ClientStream(
            core.client_rtt,
            demand.near[0][core.active],
            demand.relay[0][core.active],
            core.active.astype(np.int64),
            threads,
        )
        u = start.copy()
        bound, selected = CompiledKernel(empty).stream_steps(clients, 3, u, 12, math.inf)
        result = search(core, kernel=ManyClientsKernel(core, threads), certify=False)
        found.add((bound, selected, u.tobytes(), result.score, result.proven, result.counters))
    assert len(found) == 1


def states_of(core: ReducedProblem, leader: int, rng: np.random.Generator) -> np.ndarray:
    """A state below the root of a leader: each other site is free, in or out."""
    states = rng.choice([FREE, FREE, IN, OUT], core.sites).astype(np.uint8)
    states[leader] = IN
    return states


def cost_by_client(core: ReducedProblem, leader: int, replicas: np.ndarray) -> float:
    """Costs of clients for reads and relays, client by client: nearest by RTT, then by site."""
    rtt = core.client_rtt[:, replicas]
    nearest = replicas[rtt.argmin(axis=1)]
    relay = np.where(nearest == leader, 0.0, core.site_rtt[nearest, leader])
    return float((core.demand.near[0] * rtt.min(axis=1) + core.demand.relay[0] * relay).sum())


@settings(max_examples=examples(20), deadline=None)
@given(st.integers(0, 10**6), st.integers(2, 8))
def test_groups_cost_what_their_clients_cost(seed, sites):
    rng = np.random.default_rng(seed)
    core = crowd(seed, clients=80, sites=max(sites, 4))
    sites, leader = core.sites, int(rng.integers(core.sites))
    kernel, clients = rooted(core)
    u = rng.random(len(core.active)) * 50
    upper = states_of(core, leader, rng)
    below = np.where((upper == FREE) & (rng.random(sites) < 0.5), IN, upper).astype(np.uint8)
    groups = ClientGroups.of(kernel, clients, leader, u, upper, math.inf)
    assert groups.count <= len(core.active)
    lower = groups.below(below, math.inf)
    assert lower.count <= groups.count
    for states, found in ((upper, groups), (below, lower)):
        free = np.flatnonzero(states == FREE)
        chosen = free[rng.random(len(free)) < 0.5]
        replicas = np.sort([*chosen, *np.flatnonzero(states == IN)])
        paid = cost_by_client(core, leader, replicas)
        assert found.cost(chosen.tolist(), sites) == pytest.approx(paid, rel=1e-12, abs=1e-9)
        assert found.cost(chosen.tolist(), sites) <= paid * (1 + 1e-15) + 1e-12
    direct = ClientGroups.of(kernel, clients, leader, u, below, math.inf)
    assert (direct.count, direct.cells) == (lower.count, lower.cells)


@settings(max_examples=examples(8), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0, 40]))
def test_same_optimum_when_all_nodes_are_grouped(seed, cells):
    core = crowd(seed, clients=400, sites=7)
    usual = search(core, kernel="compiled", certify=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "GROUPED_CELLS", cells)
        patch.setattr(tuning, "SAMPLE_CLIENTS", 5)
        patch.setattr(tuning, "STREAM_SCAN_STEPS", 1)
        patch.setattr(tuning, "GROUPED_ROOT_STEPS", 2)
        patch.setattr(tuning, "GROUPED_STEPS", 2)
        grouped = search(core, kernel="streamed", certify=False)
    assert grouped.status is usual.status
    if usual.status is Status.OPTIMAL:
        assert grouped.score == pytest.approx(usual.score, rel=1e-9)
        assert grouped.proven <= usual.score * (1 + 1e-12)
        assert all(report.bound <= usual.score * (1 + 1e-12) for report in grouped.reports)


def test_clients_are_added_up_below_what_the_root_fixes():
    core, handed_over = crowd(9, clients=3000, sites=12), []
    made = ClientGroups.of

    def spied(kernel, clients, leader, u, states, seconds):
        handed_over.append(np.count_nonzero(states != FREE))
        return made(kernel, clients, leader, u, states, seconds)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "STREAM_SCAN_STEPS", 1)
        patch.setattr(ClientGroups, "of", spied)
        search(core, kernel="streamed", certify=False)
    rules = core.rules
    certain = 1 + np.count_nonzero(rules.must_hold) + np.count_nonzero(~rules.may_hold)
    assert max(handed_over) > certain


@pytest.mark.parametrize("rows", [100, 9_000])
def test_the_same_groups_whatever_the_number_of_threads(rows):
    core = crowd(3, clients=rows, sites=8)
    kernel, clients = rooted(core)
    u = np.random.default_rng(1).random(len(core.active)) * 100
    states = np.array([IN, FREE, FREE, OUT, FREE, FREE, IN, FREE], dtype=np.uint8)
    found = {
        kernel.compiled.groups_arrays(
            ClientGroups.of(
                kernel, replace(clients, threads=threads), 0, u, states, math.inf
            )._groups
        )
        for threads in (1, 2, 100)
    }
    assert len(found) == 1


def test_no_time_ends_a_grouping():
    core = crowd(5, clients=100_000, sites=30)
    kernel, clients = rooted(core)
    u, states = np.zeros(len(core.active)), np.full(30, FREE, dtype=np.uint8)
    assert ClientGroups.of(kernel, clients, 0, u, states, 0.0) is None
    groups = ClientGroups.of(kernel, clients, 0, u, states, math.inf)
    assert groups is not None
    assert groups.below(states, 0.0) is None
    assert groups.below(states, math.inf).count == groups.count


def test_the_same_optimum_when_groupings_run_out_of_time():
    core = crowd(14, clients=400, sites=9)
    usual = search(core, kernel="compiled", certify=False)
    refused = {}

    def refusing(name):
        made = getattr(ClientGroups, name)

        def first_refused(*given):
            refused[name] = refused.get(name, 0) + 1
            return None if refused[name] % 3 else made(*given)

        return first_refused

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "GROUPED_CELLS", 0)
        patch.setattr(tuning, "SAMPLE_CLIENTS", 5)
        patch.setattr(tuning, "STREAM_SCAN_STEPS", 1)
        patch.setattr(ClientGroups, "of", refusing("of"))
        patch.setattr(ClientGroups, "below", refusing("below"))
        grouped = search(core, kernel="streamed", certify=False)
    assert min(refused["of"], refused["below"]) > 2
    assert grouped.status is usual.status
    assert grouped.score == pytest.approx(usual.score, rel=1e-9)
    assert all(report.bound <= usual.score * (1 + 1e-12) for report in grouped.reports)


def test_an_interrupt_ends_a_grouping():
    core = crowd(5, clients=100_000, sites=30)
    kernel, clients = rooted(core)
    u, states = np.zeros(len(core.active)), np.full(30, FREE, dtype=np.uint8)
    ClientGroups.of(kernel, clients, 0, u, states, math.inf)
    whole = kernel.counters().work
    previous = signal.signal(signal.SIGALRM, signal.default_int_handler)

    def group_and_wait() -> None:
        ClientGroups.of(kernel, clients, 0, u, states, math.inf)
        signal.pause()

    try:
        for seconds in (0.002, 0.01, 0.05, 0.25):  # until the signal comes inside
            before = kernel.counters().work
            signal.setitimer(signal.ITIMER_REAL, seconds)
            with pytest.raises(KeyboardInterrupt):
                group_and_wait()
            if 0 < kernel.counters().work - before < whole:
                return
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
    pytest.fail("no grouping was left before its end")


def test_groups_of_another_problem_are_refused():
    core, other = crowd(4, clients=30, sites=5), crowd(4, clients=30, sites=8)
    kernel, clients = rooted(core)
    wide, crowded = rooted(other)
    states = np.full(5, FREE, dtype=np.uint8)
    with pytest.raises(ValueError, match="states do not fit"):
        ClientGroups.of(kernel, clients, 0, np.zeros(len(core.active)), states[:4], 1.0)
    with pytest.raises(ValueError, match="states do not fit"):
        ClientGroups.of(kernel, clients, 0, np.zeros(len(core.active)), states + 3, 1.0)
    with pytest.raises(ValueError, match="arrays of the clients do not fit"):
        ClientGroups.of(kernel, clients, 0, np.zeros(3), states, 1.0)
    everywhere = np.full(8, FREE, dtype=np.uint8)
    of_more = ClientGroups.of(wide, crowded, 0, np.zeros(len(other.active)), everywhere, 1.0)
    groups = wide.compiled.regroup(wide.context, of_more._groups, 0, everywhere.tobytes(), 1.0)
    with pytest.raises(ValueError, match="another problem"):
        kernel.compiled.regroup(kernel.context, groups, 0, states.tobytes(), 1.0)


def test_a_site_that_must_hold_may_hold():
    rtt, weights = np.ones((3, 3)), (np.ones(3), np.zeros(3), np.zeros(3), 0.0)
    with pytest.raises(InputError, match="must hold a replica"):
        ReducedProblem.of_arrays(
            rtt,
            rtt - np.eye(3),
            weights,
            replicas=(2, 2),
            voters=1,
            may_hold=[True, False, True],
            must_hold=[False, True, False],
        )


def test_events_name_the_sites_of_the_whole_problem():
    u = [5.0, 0.0, 2.0]
    flat = [4, 1, 5, 2, 0, 1, 0.5, 2, 2, 0.25, 1, 0, *u, 2, 0, 2, 1, 1, 3, 0, 2, 0, *u]
    kept = np.array([3, 5, 9])
    whole = [4, 5, 5, 2, 3, 1, 0.5, 9, 2, 0.25, 1, 0, *u, 2, 3, 9, 1, 5, 3, 0, 2, 0, *u]
    assert events_on_sites(np.array(flat, dtype=float), kept, 3).tolist() == whole


def test_arrays_that_do_not_fit_are_refused():
    core = crowd(4, clients=30, sites=5)
    nobody = np.zeros((0, 5))
    empty = partial_problem(core, nobody, (np.zeros(0), np.zeros(0)), np.arange(5), core.rules)
    kernel, full = CompiledKernel(empty), open_kernel(core, "compiled")
    assert isinstance(full, CompiledKernel)
    rtt, weight, u = np.zeros((4, 5)), np.ones(4), np.zeros(4)
    rows = np.arange(4)
    kernel.stream_steps(ClientStream(rtt, weight, weight, rows, 1), 0, u, 1, 1.0)
    wrong = [
        (ClientStream(rtt[:3], weight, weight, None, 1), u),
        (ClientStream(rtt, weight[:3], weight, None, 1), u),
        (ClientStream(rtt, weight, weight[:3], None, 1), u),
        (ClientStream(rtt, weight, weight, None, 1), u[:3]),
        (ClientStream(rtt, weight, weight, None, 0), u),
        (ClientStream(rtt, weight, weight, rows + 1, 1), u),
        (ClientStream(rtt, weight, weight, rows - 1, 1), u),
        (ClientStream(rtt, weight, weight, rows[:3], 1), u),
    ]
    for clients, own in wrong:
        with pytest.raises(ValueError, match="do not fit"):
            kernel.stream_steps(clients, 0, own, 1, 1.0)
        with pytest.raises(ValueError, match="do not fit"):
            kernel.stream_fix(clients, 0, own, 1.0)
    with pytest.raises(ValueError, match="do not fit"):  # its context has clients of its own
        full.stream_steps(ClientStream(rtt, weight, weight, None, 1), 0, u, 1, 1.0)
    with pytest.raises(ValueError, match="no such leader"):
        kernel.stream_steps(ClientStream(rtt, weight, weight, None, 1), 5, u, 1, 1.0)


def test_solve_takes_the_sweeps_and_its_certificate_holds():
    rng = np.random.default_rng(5)
    points, homes = 100 * rng.random((5, 2)), 100 * rng.random((4500, 2))
    instance = placement.Instance(
        sites=[f"s{i}" for i in range(5)],
        clients=[f"c{i}" for i in range(4500)],
        client_rtt=np.linalg.norm(homes[:, None] - points, axis=-1),
        site_rtt=np.linalg.norm(points[:, None] - points, axis=-1),
        counts=rng.integers(0, 50, (4500, 5)),
    )
    problem = placement.Problem(instance, replicas=3, voters=3)
    assert isinstance(open_kernel(ReducedProblem.of(problem)), ManyClientsKernel)
    one, two = (placement.solve(problem, threads=threads) for threads in (1, 2))
    assert one.status is Status.OPTIMAL
    assert (one.score, one.bound, one.stats) == (two.score, two.bound, two.stats)
    assert one.score == pytest.approx(placement.solve(problem, method="exhaustive").score)
    assert placement.check_certificate(one).bound <= one.score
