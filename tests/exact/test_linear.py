"""The p-median problem: relaxation, steps, transfers of cost, descents, and the tree."""

from __future__ import annotations

import math
import time
from itertools import combinations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from formulations.exact import branch_and_bound as engine
from formulations.exact import tuning
from formulations.exact.branch_and_bound import search
from formulations.exact.kernel import Incumbent, Kernel, compiled_available, open_kernel
from formulations.exact.p_median import p_median_descents as primal
from formulations.exact.p_median.linear_relaxation import PMedianRelaxation
from formulations.exact.p_median.p_median_descents import descents, promising_sites, reduced_costs
from formulations.exact.p_median.relaxation_tree import LinearKernel
from formulations.exact.reduced_problem import ReducedProblem, _order
from placement.support.status import Status
from tests.effort import examples, seeds
from tests.exact.test_engine import assert_proven, check_result, each_kernel
from tests.exact.test_sparse import relayed
from tests.exact.worlds import assert_proved, brute_force, drawn, random_core


def p_median(seed: int, *, rules: bool = True) -> ReducedProblem:
    """A generated p-median problem: ties, weights of zero, ranges, pins, caps, prices."""
    rng = np.random.default_rng(seed)
    sites, clients = int(rng.integers(1, 9)), int(rng.integers(1, 12))
    scale = 10.0 ** rng.integers(-3, 7)
    rtt = (
        rng.integers(0, 6, (clients, sites)) if rng.random() < 0.4 else rng.random((clients, sites))
    )
    near = rng.integers(0, 4, clients).astype(float)
    near[rng.integers(clients)] = 1.0
    low = int(rng.integers(1, sites + 1))
    high = low if rng.random() < 0.6 else int(rng.integers(low, sites + 1))
    more: dict[str, object] = {}
    if rules:
        may = rng.random(sites) < 0.9
        if rng.random() < 0.4 and may.any():
            more["may_hold"] = may
        if rng.random() < 0.3:
            more["must_hold"] = (rng.random(sites) < 0.15) & np.asarray(more.get("may_hold", True))
        if rng.random() < 0.3:
            more["caps"] = [("replicas", rng.integers(0, 3, sites), int(rng.integers(1, 4)))]
        if rng.random() < 0.3:
            more["price"] = np.tile(rng.random(sites) * scale, (sites, 1))
    zero = np.zeros(clients)
    return ReducedProblem.of_arrays(
        rtt * scale,
        np.zeros((sites, sites)),
        (near, zero, zero, 0.0),
        replicas=(low, high),
        voters=1,
        **more,
    )


def classic_relaxation(core: ReducedProblem) -> float:
    """Optimum of the textbook relaxation (ReVelle and Swain 1970), +∞ when infeasible."""
    optimize = pytest.importorskip("scipy.optimize")
    rules = core.rules
    cost = core.demand.near[0][core.active][:, np.newaxis] * core.client_rtt[core.active]
    clients, sites = cost.shape
    price = np.zeros(sites) if core.price is None else core.price[0]
    above, right = [], []
    for c in range(clients):
        for r in range(sites):  # x_cr <= y_r
            row = np.zeros(sites + clients * sites)
            row[r], row[sites + c * sites + r] = -1.0, 1.0
            above.append(row)
            right.append(0.0)
    for sign, limit in ((1.0, rules.replicas_max), (-1.0, -rules.replicas_min)):
        row = np.zeros(sites + clients * sites)
        row[:sites] = sign
        above.append(row)
        right.append(limit)
    equal = np.zeros((clients, sites + clients * sites))
    for c in range(clients):
        equal[c, sites + c * sites : sites + (c + 1) * sites] = 1.0
    bounds = [(float(rules.must_hold[r]), float(rules.may_hold[r])) for r in range(sites)]
    bounds += [(0.0, None)] * (clients * sites)
    answer = optimize.linprog(
        np.concatenate([price, cost.ravel()]), above, right, equal, np.ones(clients), bounds
    )
    return float(answer.fun) if answer.status == 0 else math.inf


@given(st.integers(0, 10**9))
def test_relaxation_is_the_textbook_one(seed):
    core = p_median(seed)
    if not core.rules.may_hold.any() or not PMedianRelaxation.applies_to(core):
        return
    relaxation = PMedianRelaxation(core, core.rules.may_hold)
    rng = np.random.default_rng(seed)
    relaxation.seed(rng.random(len(core.active)) * core.client_rtt.max())
    rounds = list(relaxation.rounds(math.inf))
    expected = classic_relaxation(core)
    if math.isinf(expected):
        assert not rounds
        return
    assert rounds[-1].final
    values = [one.value for one in rounds]
    assert values == sorted(values) or np.allclose(values, np.maximum.accumulate(values), rtol=1e-6)
    assert values[-1] == pytest.approx(expected, rel=1e-6, abs=1e-9 * core.client_rtt.max())


@given(st.integers(0, 10**9))
def test_multipliers_are_as_good_as_the_relaxation(seed):
    core = p_median(seed, rules=False)
    relaxation = PMedianRelaxation(core, core.rules.may_hold)
    relaxation.seed(np.zeros(len(core.active)))
    last = list(relaxation.rounds(math.inf))[-1]
    cost = core.demand.near[0][core.active][:, np.newaxis] * core.client_rtt[core.active]
    reduced = np.sort(np.minimum(0.0, cost - last.multipliers[:, np.newaxis]).sum(axis=0))
    low, high = core.rules.replicas_min, core.rules.replicas_max
    bound = last.multipliers.sum() + reduced[:low].sum() + np.minimum(0, reduced[low:high]).sum()
    assert bound >= last.value - 1e-6 * (1 + abs(last.value))
    assert bound <= brute_force(core) * (1 + 1e-9) + 1e-9


@given(st.integers(0, 10**9), st.booleans())
def test_tree_equals_enumeration_and_its_proof_holds(seed, inflated):
    core = p_median(seed)
    if not core.rules.may_hold.any() or not PMedianRelaxation.applies_to(core):
        return
    best = brute_force(core)
    if math.isinf(best):
        return
    kernel = LinearKernel(core, core.rules.may_hold)
    if inflated:  # a wrong pruning rule cannot hide behind a good start
        kernel.propose(Incumbent(best * 1.5 + 1, -2, ()))
    kernel.seed(np.zeros(len(core.active)))
    kernel.open_tree(np.zeros(len(core.active)))
    while not kernel.run(1e6, 60.0):
        pass
    found = kernel.incumbent()
    assert found is not None
    assert found.score == pytest.approx(best, rel=1e-9, abs=1e-12)
    # what was enumerated, and not bounded, is as good as the incumbent
    assert (
        kernel.counters().cutoff
        <= min(float(kernel.tree_bounds([-1])[0]), found.score)
        <= best * (1 + 1e-12)
    )


def test_being_stopped_again_and_again_changes_nothing(monkeypatch):
    core = drawn(60, 8, 5)
    values = []
    for span in (1e-5, 1e3):
        monkeypatch.setattr(tuning, "SOLVER_SLICE", span)
        relaxation = PMedianRelaxation(core, core.rules.may_hold)
        relaxation.seed(np.zeros(len(core.active)))
        rounds = list(relaxation.rounds(math.inf))
        assert rounds[-1].final
        assert all(one.value > 0 for one in rounds[1:])
        values.append(rounds[-1].value)
    assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_no_time_yields_no_round():
    core = p_median(1, rules=False)
    relaxation = PMedianRelaxation(core, core.rules.may_hold)
    relaxation.seed(np.zeros(len(core.active)))
    assert list(relaxation.rounds(time.perf_counter() - 1.0)) == []


@pytest.mark.parametrize("style", ["whole", "ties", "distinct", "huge"])
def test_quick_order_is_the_stable_one(style):
    rng = np.random.default_rng(3)
    rtt = rng.random((300, 250)) * 100
    if style == "whole":
        rtt = np.floor(rtt)
    elif style == "ties":
        rtt = np.round(rtt, 1)
    elif style == "huge":
        rtt = np.floor(rtt) * 1e14
    assert (_order(rtt) == np.argsort(rtt, axis=1, kind="stable")).all()


def test_the_order_of_sites_is_that_of_the_active_clients_of_each_demand():
    rng = np.random.default_rng(5)
    rtt, between = rng.integers(1, 5, (6, 7)) * 1.0, 1.0 - np.eye(7)  # with ties
    for active in ([0, 1, 2, 3, 4, 5], [1, 4], [0, 5], [1, 4], []):
        near = np.zeros(6)
        near[active] = 1.0
        weights = near, np.zeros(6), np.ones(6), 1.0
        core = ReducedProblem.of_arrays(rtt, between, weights, replicas=(3, 3), voters=3)
        expected = np.argsort(rtt[active], axis=1, kind="stable")
        for _ in range(2):  # the second time it is known
            assert core.closest_sites.tolist() == expected.tolist()


def cost_of(core: ReducedProblem, replicas: tuple[int, ...]) -> float:
    """Objective of a p-median set, written out client by client; +∞ when it breaks a cap."""
    for group in core.rules.of("replicas"):
        labels = [int(group.labels[site]) for site in replicas]
        if group.cap is not None and any(labels.count(one) > group.cap for one in labels):
            return math.inf
    total = 0.0 if core.price is None else sum(float(core.price[0, r]) for r in replicas)
    for weight, row in zip(core.demand.near[0], core.client_rtt, strict=True):
        total += float(weight) * min(float(row[r]) for r in replicas)
    return total


@given(st.integers(0, 10**9))
def test_descents_end_in_local_optima_that_obey_the_rules(seed):
    core = p_median(seed)
    rules = core.rules
    sites = promising_sites(core, np.zeros(core.sites))
    starts = [
        one
        for one in combinations(sites.tolist(), rules.replicas_min)
        if set(np.nonzero(rules.must_hold)[0]) <= set(one) and cost_of(core, one) < math.inf
    ]
    if not starts:
        return
    start = starts[seed % len(starts)]
    found = list(descents(core, sites, start, 60, math.inf))
    assert found
    assert cost_of(core, found[0]) <= cost_of(core, start) * (1 + 1e-9)
    for replicas in found[:-1]:  # the passes may end before the last descent does
        assert len(replicas) == len(start)
        value = cost_of(core, replicas)
        for old in set(replicas) - set(np.nonzero(rules.must_hold)[0].tolist()):
            for new in set(sites.tolist()) - set(replicas):
                changed = tuple({*replicas, new} - {old})
                assert cost_of(core, changed) >= value * (1 - 2e-9) - 1e-12


@given(st.integers(0, 10**9))
def test_reduced_costs_are_those_of_the_definition(seed):
    core = p_median(seed)
    u = np.random.default_rng(seed).random(len(core.active)) * core.client_rtt.max()
    expected = np.zeros(core.sites) if core.price is None else core.price[0].copy()
    for site in range(core.sites):
        for value, client in zip(u, core.active, strict=True):
            cost = core.demand.near[0][client] * core.client_rtt[client, site]
            expected[site] += min(0.0, cost - value)
    assert reduced_costs(core, u) == pytest.approx(expected, rel=1e-12, abs=1e-9)


def test_promising_are_the_cheapest_and_those_that_must_be_there():
    rng = np.random.default_rng(7)
    must, may = np.zeros(500, dtype=bool), np.ones(500, dtype=bool)
    must[[3, 499]], may[:3] = True, False
    zero = np.zeros(4)
    core = ReducedProblem.of_arrays(
        rng.random((4, 500)),
        np.zeros((500, 500)),
        (np.ones(4), zero, zero, 0.0),
        replicas=(4, 5),
        voters=1,
        must_hold=must,
        may_hold=may,
    )
    reduced = -np.arange(500.0)[::-1]  # the first are the cheapest
    chosen = promising_sites(core, reduced)
    assert chosen.tolist() == [*range(3, 202), 499]


@pytest.mark.parametrize("seed", seeds(1, 4))
def test_descents_find_the_optimum_of_a_network(seed):
    core = drawn(40, 3, seed)
    start = (0, 1, 2)
    best = min(cost_of(core, one) for one in combinations(range(40), 3))
    found = descents(core, np.arange(40), start, 150, math.inf)
    assert min(cost_of(core, replicas) for replicas in found) == best


ANEW = {"PREPARE_BOUNDS": 0.0, "LONG_STEPS": 25, "SCAN_SWAPS": 1}


@pytest.mark.parametrize(
    ("exponent", "changed", "inflated"), [(0.0, {}, True), (0.0, ANEW, False), (9.0, ANEW, False)]
)
@given(st.integers(0, 10**9))
def test_engine_with_a_rival_or_anew_proves_the_optimum(exponent, changed, inflated, seed):
    core = p_median(seed)
    best = brute_force(core)
    pretend = best * 1.5 + 1 if inflated and best < 1e99 else None
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"CHUNK_WORK": 1.0, "SCAN_STEPS": 1, **changed}.items():
            patch.setattr(tuning, name, value)
        patch.setattr(tuning, "RELAX_EXPONENT", exponent)
        result = engine.search(core, pretend=pretend)
    check_result(core, result, best)


@pytest.mark.parametrize("when", ["root bound", "descents"])
def test_interrupt_while_beginning_anew_claims_no_more_than_was_proven(when, monkeypatch):
    core = drawn(120, 8, 1)
    optimum = engine.search(core).score
    monkeypatch.setattr(tuning, "PREPARE_BOUNDS", 0.0)
    monkeypatch.setattr(tuning, "CHUNK_WORK", 1.0)
    monkeypatch.setattr(tuning, "SCAN_STEPS", 1)
    began = engine._BranchAndBound.restart_tree

    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    def anew(work, leader, u, steps, swaps):
        if when == "root bound":
            # what a kernel is like when Ctrl-C comes in the middle of a root bound: without a tree
            bound_root = work.kernel.bound_root

            def half(*arguments):
                bound_root(*arguments)
                raise KeyboardInterrupt

            work.kernel.bound_root = half
        began(work, leader, u, steps, swaps)

    monkeypatch.setattr(engine._BranchAndBound, "restart_tree", anew)
    if when == "descents":
        monkeypatch.setattr(primal, "descents", stop)
    result = engine.search(core)
    assert result.termination is engine.Termination.INTERRUPTED
    assert result.status is Status.FEASIBLE
    assert result.bound < optimum <= result.score


def weighted(rng: np.random.Generator, copies: np.ndarray, split: bool) -> ReducedProblem:
    """Return a problem where client c counts `copies[c]` times: by its weight, or in rows."""
    sites, clients = 8, len(copies)
    rtt, between = rng.random((clients, sites)) * 90 + 5, rng.random((sites, sites)) * 90 + 5
    np.fill_diagonal(between, 0)
    relay = rng.random(clients)
    weight = np.ones(int(copies.sum())) if split else copies.astype(float)
    rows = np.repeat(np.arange(clients), copies if split else 1)
    weights = (weight, weight * relay[rows], weight, 0.1 * float(copies.sum()))
    return ReducedProblem.of_arrays(rtt[rows], between, weights, replicas=(3, 3), voters=3)


@each_kernel
@settings(max_examples=examples(20, 8))
@given(st.integers(0, 10**9), st.integers(1, 8))
def test_a_weight_steps_as_so_many_clients_do(kernel, seed, steps):
    copies = np.random.default_rng(seed).integers(1, 40, 12)
    bounds = []
    for split in (False, True):
        core = weighted(np.random.default_rng(seed), copies, split)
        opened = open_kernel(core, kernel)
        opened.propose(Incumbent(100.0 * float(copies.sum()), 0, (0, 1, 2)))
        start = np.zeros(len(core.active))
        bounds.append(
            [opened.bound_root(leader, start.copy(), steps, 0, True, 60.0) for leader in range(8)]
        )
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-9)


@each_kernel
@settings(max_examples=examples(40, 12))
@given(st.integers(0, 10**9), st.booleans())
@example(166, False)  # both sides of a site are closed before its kernel is opened
def test_weights_of_any_size_are_proven(kernel, seed, inflated):
    # from next to nothing to half of everything: lengths of steps stay numbers
    core = random_core(seed, plain=True)
    rng = np.random.default_rng([seed, 1])
    share = 10.0 ** -rng.integers(0, 14, core.clients)
    share[rng.integers(core.clients)] = 1e-290
    weights = [w[0] * share for w in (core.demand.near, core.demand.relay, core.demand.direct)]
    rules = core.rules
    assert_proven(
        ReducedProblem.of_arrays(
            core.client_rtt,
            core.site_rtt,
            (*weights, core.quorum_weight),
            replicas=(rules.replicas_min, rules.replicas_max),
            voters=rules.voters,
        ),
        kernel,
        inflated=inflated,
    )


@pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
def test_a_tree_that_begins_anew_keeps_its_bound():
    core = relayed(3, 30, 50, 6, 0.0)
    optimum = search(core, certify=False)
    assert optimum.configuration is not None
    kernel = open_kernel(core, "compiled")
    kernel.compiled.set_size_limits(kernel.context, 1e9, 1.0, 60, 50, 0.0, 0)
    kernel.propose(Incumbent(optimum.score * 1.01, -2, ()))
    leader = optimum.configuration.leader
    kernel.open_trees([leader], np.zeros((1, len(core.active))), np.zeros(1))
    bounds, nodes = [0.0], []
    while not kernel.run(1.0, 60.0):
        nodes.append(kernel.counters().nodes)
        bounds.append(float(kernel.tree_bounds([leader])[0]))
        assert bounds[-1] >= bounds[-2] * (1 - 1e-12)
        assert bounds[-1] <= optimum.score * (1 + 1e-12)
    assert nodes[-1] > 60


# --- transfers of cost -------------------------------------------------------------------------

needs_compiled = pytest.mark.skipif(not compiled_available(), reason="no compiled kernel")


def moved(result) -> int:
    """Return the number of transfers in a certificate."""
    return sum(
        len(event[1])
        for events in result.certificate.leaders.values()
        for event in events
        if event[0] == "transfer"
    )


@needs_compiled
@settings(max_examples=examples(12), deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(["tight", "sparse"]))
def test_proofs_with_transfers_hold(seed, which):
    core = relayed(seed, 12, 16, 4, 0.1)
    usual = search(core, kernel="compiled")
    found = search(core, kernel=which)
    assert found.score == pytest.approx(usual.score, rel=1e-12)
    assert_proved(core, found.certificate)


@needs_compiled
def test_transfers_raise_the_bound_and_shrink_the_tree():
    core = relayed(1, 40, 60, 6, 0.1)
    best = search(core, kernel="compiled", certify=False)
    leader, found = best.configuration.leader, {}
    for transfers in (False, True):
        kernel = Kernel(core)
        kernel.propose(Incumbent(best.score, -2, ()))
        kernel.compiled.set_size_limits(kernel.context, 1e18, 1.0, 1, 50, 1e18, int(transfers))
        kernel.open_trees([leader], np.zeros((1, len(core.active))), np.zeros(1))
        while kernel.counters().nodes < 4 and not kernel.run(1.0, 60.0):
            pass
        bound = float(kernel.tree_bounds([leader])[0])
        assert kernel.run(np.inf, 60.0)
        found[transfers] = bound, kernel.counters().nodes
    assert found[False][0] < found[True][0] <= best.score * (1 + 1e-9)
    assert found[True][1] < found[False][1]


@needs_compiled
@pytest.mark.parametrize(
    "seed", [3, *(pytest.param(k, marks=pytest.mark.slow) for k in range(4, 9))]
)
@pytest.mark.parametrize("inflated", [None, 1.02])
def test_proofs_with_transfers_of_several_leaders_hold(seed, inflated):
    core = relayed(seed, 18, 25, 5, 0.1)
    usual = search(core, kernel="compiled")
    pretended = None if inflated is None else usual.score * inflated
    found = search(core, kernel="tight", pretend=pretended)
    assert found.score == pytest.approx(usual.score, rel=1e-12)
    with_transfers = [
        leader
        for leader, events in found.certificate.leaders.items()
        if any(event[0] == "transfer" for event in events)
    ]
    assert len(with_transfers) >= (2 if seed in (3, 4, 5) else 0)
    assert_proved(core, found.certificate)
