"""Quick bounds of all leaders, and searches that begin with them."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from formulations.exact import branch_and_bound as engine
from formulations.exact import tuning
from formulations.exact.branch_and_bound import SearchLimits, SearchState, Stop, search
from formulations.exact.kernel import QuickBounds, ReferenceLeader, open_kernel
from formulations.exact.warm_start import adapt_multipliers
from placement.methods.options import Progress
from placement.support.status import Termination
from tests.effort import examples
from tests.exact.test_engine import check_result, each_kernel, spread_out
from tests.exact.worlds import brute_force, random_core, varied


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use quick bounds on problems of any size."""
    monkeypatch.setattr(tuning, "QUICK_BOUND_CELLS", 0)


@each_kernel
@settings(max_examples=examples(60))
@given(st.integers(0, 10**9), st.integers(1, 700))
def test_a_quick_bound_is_a_root_bound_of_one_step(kernel, seed, clients):
    # more clients than the compiled loop takes at a time, and any rule: what the masks of certain
    # sites leave out can only raise the bound
    rng = np.random.default_rng(seed)
    core = spread_out(9, clients, seed, 3, 2) if seed % 2 else random_core(seed)
    if seed % 3 == 0:  # runs of clients of one scenario end inside the blocks of the compiled loop
        core = varied(core, seed)
    if not core.leader_matters:
        return
    leaders = core.leaders.astype(np.int32)
    shape = len(leaders), len(core.active)
    u = rng.random(shape) * 200 * core.demand.near.ravel()[core.active]
    quick = QuickBounds(leaders, u.copy(), np.full(len(leaders), np.nan))
    opened, done, calls = open_kernel(core, kernel), 0, 0
    while done < len(leaders):
        done += opened.quick_bounds(quick, done, 0.0, 60.0)
        calls += 1
    assert calls == len(leaders)
    for i, leader in enumerate(leaders.tolist()):
        own = u[i].copy()
        bound = opened.bound_root(leader, own, 1, 0, True, 60.0)
        assert np.array_equal(quick.u[i], own)
        if core.rules.must_hold.any():
            assert quick.bounds[i] <= bound or quick.bounds[i] == pytest.approx(bound)
        else:
            assert quick.bounds[i] == pytest.approx(bound, rel=1e-11)


@each_kernel
@settings(max_examples=examples(60))
@given(st.integers(0, 10**9), st.booleans(), st.booleans())
@example(501043, False, True)  # shared multipliers are not enough for a leader, its floor is
def test_search_with_quick_bounds_equals_enumeration(kernel, seed, inflated, shares):
    core = random_core(seed)
    best = brute_force(core)
    reports: list[Progress] = []
    pretend = best * 1.5 + 1 if inflated and math.isfinite(best) else None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tuning, "SHARED_LEADERS", 1 if shares else math.inf)
        patch.setattr(tuning, "FULL_DESCENTS", 1 if shares else tuning.FULL_DESCENTS)
        result = search(core, kernel=kernel, pretend=pretend, listen=reports.append)
    assert all(report.bound <= best * (1 + 1e-12) for report in reports)
    check_result(core, result, best)
    if result.certificate is not None:
        assert set(result.certificate.leaders) == set(core.leaders.tolist())


@settings(max_examples=examples(60))
@given(st.integers(0, 10**9), st.integers(2, 40))
def test_shared_bounds_are_no_greater_than_those_of_the_moved_multipliers(seed, clients):
    """Nor greater than the best of each leader; references may be any numbers."""
    rng = np.random.default_rng(seed)
    core = random_core(seed) if seed % 2 else spread_out(8, clients, seed, 3, 2)
    leaders = core.leaders.astype(np.int32)
    if not len(leaders) or not core.leader_matters or not core.shares_multipliers:
        return
    opened = open_kernel(core)
    given_u = rng.random(len(core.active)) * rng.choice([1, 200]) * core.near[core.active]
    reference = ReferenceLeader.of(core, int(rng.choice(leaders)), given_u)
    bounds = opened.shared_bounds(reference, leaders, 60.0)
    assert not np.isnan(bounds).any()
    for leader, bound in zip(leaders.tolist(), bounds.tolist(), strict=True):
        moved = reference.under(core, leader)
        own = opened.bound_root(leader, moved.copy(), 1, 0, True, 60.0)
        assert bound <= own * (1 + 1e-11) or bound == pytest.approx(own, rel=1e-11)
        only = dataclasses.replace(core.rules, may_lead=np.arange(core.sites) == leader)
        assert bound <= brute_force(dataclasses.replace(core, rules=only)) * (1 + 1e-11)


def test_bounds_whose_pass_is_stopped_are_forgotten():
    """The next search with the kernel took reduced costs and multipliers of two passes for one."""
    core, rng = spread_out(900, 40, 1, 3, 2), np.random.default_rng(0)
    leaders, opened = core.leaders.astype(np.int32), open_kernel(core)
    for seconds, largest in ((60.0, 1), (0.0, 300)):
        given_u = largest * rng.random(len(core.active)) * core.near[core.active]
        reference = ReferenceLeader.of(core, 0, given_u)
        bounds = opened.shared_bounds(reference, leaders, seconds)
        recalled = opened.bounds_from_memory(leaders.tolist(), 0, 60.0)
        assert np.isnan(bounds).all() == np.isnan(recalled).all() == (seconds == 0)


@each_kernel
def test_the_bound_rises_before_all_have_root_bounds(kernel, monkeypatch):
    core = spread_out(24, 30, seed=3, size=6, voters=3)
    optimum = search(core).score
    monkeypatch.setattr(tuning, "CHUNK_WORK", 1.0)
    monkeypatch.setattr(tuning, "REPORT_EVERY", 0.0)
    noted_ends: list[int] = []
    bounds: list[tuple[int, float]] = []
    noted = engine._BranchAndBound.note_root_bounds

    def counting(work, asked, at):
        end = noted(work, asked, at)
        noted_ends.append(end)
        return end

    def listen(report: Progress) -> None:
        assert report.bound <= optimum * (1 + 1e-12)
        bounds.append((len(noted_ends), report.bound))

    monkeypatch.setattr(engine._BranchAndBound, "note_root_bounds", counting)
    search(core, kernel=kernel, listen=listen)
    first = tuning.FULL_DESCENTS
    static = core.floors.min()
    quick_bound = max(bound for number, bound in bounds if number <= first)
    assert optimum - quick_bound < 0.5 * (optimum - static)
    assert len(noted_ends) < core.sites  # and some leaders needed no steps


@each_kernel
def test_stopped_at_a_quick_bound_the_bound_is_honest(kernel, monkeypatch):
    core = spread_out(14, 20, seed=8, size=4, voters=3)
    optimum = search(core).score
    monkeypatch.setattr(tuning, "CHUNK_WORK", 1.0)
    check = SearchState.check
    for turn in range(13):  # four leaders have root bounds, ten quick ones, a check between any two
        asked = 0

        def stop(state, turn=turn):
            nonlocal asked
            asked += 1
            if asked > turn:
                raise Stop(Termination.TIME_LIMIT)
            check(state)

        monkeypatch.setattr(SearchState, "check", stop)
        result = search(core, kernel=kernel, limits=SearchLimits(seconds=60))
        assert result.termination is Termination.TIME_LIMIT
        assert result.bound <= optimum <= result.score
        assert result.certificate is None


@settings(max_examples=examples(50))
@given(st.integers(0, 10**9))
def test_multipliers_follow_the_leader(seed):
    core = spread_out(8, 12, seed % 1000, 3, 2)
    rng = np.random.default_rng(seed)
    u = rng.random(12) * 100
    leader, replicas = 2, (1, 2, 5)
    found = adapt_multipliers(core, u, leader, replicas, range(8))
    rtt, relay = core.client_rtt, core.demand.relay[0]
    grain = 2.0 ** (math.frexp(found.max())[1] - 15)
    for other in range(8):
        for c in range(12):
            r = min(replicas, key=lambda one: (rtt[c, one], one))
            more = relay[c] * (core.site_rtt[r, other] - core.site_rtt[r, leader])
            assert found[other, c] == pytest.approx(max(0.0, u[c] + more), abs=grain)
