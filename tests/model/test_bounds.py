"""Bounds, magnitudes and units: what is refused, what gives a warning, what stays finite."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from formulations.enumeration import exhaustive
from formulations.enumeration.replica_sets import ReplicaSets, SetEvaluator, replica_sets
from formulations.exact.branch_and_bound import SearchState
from formulations.linear.leader_search import LeaderSearch
from formulations.milp.program_data import program_data
from formulations.milp.program_model import build
from formulations.milp.recipes import Recipe
from formulations.quorumstore import enumeration
from formulations.solvers import safe_bounds
from placement import (
    Configuration,
    Instance,
    Operation,
    Plan,
    Prices,
    Problem,
    Status,
    datasets,
    solve,
)
from placement.analysis.compare_methods import MethodRun, best_bound
from placement.errors import CertificateError, InputError, SolverError, UnitsWarning
from placement.io import read_counts, read_rtt
from placement.io.rtt_distributions import read_distributions
from placement.overtime.replay import Trace
from placement.proof.certificate_check import check_certificate
from placement.quorumstore import QuorumPlan, StoreRules
from placement.support.checks import LARGEST, number
from placement.support.status import OPTIMALITY_TOLERANCE, least_bound, relative_gap, status_of
from placement.tail.histograms import of_weights
from placement.testing import random_instance
from tests.quorumstore.instances import random_problem

NUMBERS = st.floats(allow_nan=True, allow_infinity=True)


def _problem() -> Problem:
    return Problem(random_instance(12), replicas=3, voters=3)


def _configuration() -> Configuration:
    return Configuration.of(0, (0, 1, 2), (0, 1, 2))


@given(NUMBERS, NUMBERS)
def test_optimal_takes_two_numbers_that_agree(value: float, bound: float) -> None:
    if status_of(True, value, bound) is Status.OPTIMAL:
        assert math.isfinite(value)
        assert bound >= value - OPTIMALITY_TOLERANCE * abs(value)


@pytest.mark.parametrize("value", [0.0, 5.0, -5.0, math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("bound", [math.nan, -math.inf])
def test_nothing_is_proven_by_no_bound(value: float, bound: float) -> None:
    assert status_of(True, value, bound) is Status.FEASIBLE
    assert status_of(False, value, bound) is Status.UNKNOWN
    if value != bound:
        assert relative_gap(value, bound) == math.inf


def test_a_value_beyond_all_numbers_is_not_optimal() -> None:
    assert status_of(True, math.inf, math.inf) is Status.FEASIBLE
    assert status_of(True, math.nan, 3.0) is Status.FEASIBLE
    assert status_of(False, math.inf, math.inf) is Status.INFEASIBLE


@given(st.lists(NUMBERS, max_size=4))
def test_the_least_bound_is_below_all(bounds: list[float]) -> None:
    least = least_bound(*bounds)
    assert not math.isnan(least)
    assert all(least <= bound for bound in bounds if not math.isnan(bound))
    if any(map(math.isnan, bounds)):
        assert least == -math.inf


@pytest.mark.parametrize("configuration", [None, _configuration()])
def test_a_plan_with_a_bound_that_is_no_number(configuration: Configuration | None) -> None:
    plan = Plan.of(_problem(), configuration, method="m", bound=math.nan)
    assert plan.bound == -math.inf
    assert plan.gap == math.inf
    assert plan.status is (Status.UNKNOWN if configuration is None else Status.FEASIBLE)
    assert Plan.of(_problem(), configuration, method="m", bound=np.nan).bound == -math.inf


def test_an_infinite_bound_of_a_known_configuration_is_refused() -> None:
    with pytest.raises(SolverError, match="claims the bound inf"):
        Plan.of(_problem(), _configuration(), method="m", bound=math.inf)


def test_a_quorum_plan() -> None:
    problem = random_problem(np.random.default_rng(3), rules=StoreRules())
    found = enumeration.solve(problem).configuration
    plan = QuorumPlan.of(problem, found, method="m", bound=math.nan)
    assert (plan.status, plan.bound) == (Status.FEASIBLE, -math.inf)
    with pytest.raises(SolverError, match="claims the bound inf"):
        QuorumPlan.of(problem, found, method="m", bound=math.inf)


def test_the_comparison_of_methods_passes_over_it() -> None:
    plan = Plan.of(_problem(), _configuration(), method="m", bound=1.0)
    wrong = plan.replace(bound=math.nan)
    entries = [
        MethodRun("a", wrong, "feasible", "", 0.0),
        MethodRun("b", plan, "feasible", "", 0.0),
    ]
    assert best_bound(entries) == 1.0
    assert best_bound(entries[:1]) == -math.inf


def test_a_certificate_does_not_back_it() -> None:
    plan = solve(_problem())
    assert check_certificate(plan).bound == plan.bound
    with pytest.raises(CertificateError, match="claims the bound nan"):
        check_certificate(plan.replace(bound=math.nan))


BOUNDS = {0: 5.0, 1: math.nan, 2: 7.0}


def test_a_leader_whose_bound_is_no_number_is_not_passed_over() -> None:
    state: Any = SimpleNamespace(bounds=BOUNDS)
    assert LeaderSearch.bound.fget(state) == -math.inf  # type: ignore[attr-defined]
    state = SimpleNamespace(bounds=BOUNDS, opened=None, best_bound=0.0)
    assert SearchState.bound(state) == 0.0


def test_a_set_whose_score_is_no_number_is_not_passed_over() -> None:
    class Scores:
        def scores(self, sets: ReplicaSets) -> tuple[npt.NDArray[np.float64], ...]:
            return np.full((3, len(sets.members)), math.nan), np.zeros((3, len(sets.members)))

    problem = _problem()
    evaluator = SetEvaluator.of(problem)
    block = next(iter(replica_sets(evaluator, problem.rules.may_hold, problem.rules.must_hold, 3)))
    search = exhaustive._ExhaustiveSearch(problem)
    with pytest.raises(SolverError, match="not a number"):
        search.evaluate_sets(Scores(), block)  # type: ignore[arg-type]


def test_safe_bounds_that_are_no_numbers_prove_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    program = build(program_data(_problem()), Recipe.PER_CLIENT.rows).program()
    value = solve(_problem()).objective
    honest = safe_bounds.prove_by_branching(program, value, lambda _: False, most=3)
    assert honest.bound < value
    monkeypatch.setattr(safe_bounds, "safe_bound", lambda *args, **named: math.nan)
    proof = safe_bounds.prove_by_branching(program, value, lambda _: False, most=3)
    assert proof.bound == -math.inf


N = 5
OVER = float(np.nextafter(LARGEST, math.inf))


def world(rtt: float, count: float, *, spread: bool = False) -> Instance:
    """A line of sites whose longest RTT is `rtt`; `spread`: the others are ordinary."""
    steps = np.arange(N, dtype=float)
    between = np.abs(steps[:, np.newaxis] - steps) * (rtt / (N - 1))
    if spread:
        near = 10.0 * np.abs(steps - steps[:, np.newaxis])
        between = np.minimum(between, np.where(between >= rtt, rtt, near))
    names = tuple("abcde")
    counts = np.ones((N, 5))
    counts[0] = count
    return Instance(names, names, between, between, counts)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": np.full((N, 5), 1e308)},
         "counts: out of range at .*client 'a', operation 'weak_read': got 1e\\+308.*<= 1e\\+18"),
        ({"client_rtt": np.full((N, N), 1e160)}, "client_rtt: out of range at client 'a'"),
        ({"site_rtt": OVER * (1 - np.eye(N))}, "site_rtt: out of range at site 'a', site 'b'"),
        ({"prices": Prices(np.full(N, 1e300))}, r"prices\.storage: out of range at site 'a'"),
        ({"prices": Prices(np.ones(N), OVER * (1 - np.eye(N)))}, r"prices\.transfer: out of range"),
    ],
)  # fmt: skip
def test_too_large_is_refused_with_the_cell(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        world(100.0, 1.0).replace(**change)


def test_too_large_elsewhere() -> None:
    with pytest.raises(InputError, match=r"near: bad coefficient .*<= 1e"):
        Operation("read", near=1e300)
    with pytest.raises(InputError, match=r"prices\.written_gb: out of range"):
        Prices(np.ones(N), None, 1e200)
    priced = world(100.0, 1.0).replace(prices=Prices(np.ones(N)))
    with pytest.raises(InputError, match="cost_weight: out of range"):
        Problem(priced, replicas=3, voters=3, cost_weight=1e300)
    with pytest.raises(InputError, match="counts: out of range"):
        Trace(("x",), ("1",), np.full((1, 1, N, 5), 1e308))


@pytest.mark.parametrize("cell", ["1e308", "1e160", repr(OVER)])
def test_too_large_in_a_file_names_the_row(tmp_path: Path, cell: str) -> None:
    (tmp_path / "n.csv").write_text(f"client,weak_read\na,1\nb,{cell}\n")
    with pytest.raises(InputError, match=r"n\.csv, row 3: weak_read: too large: .*at most 1e\+18"):
        read_counts(tmp_path / "n.csv")
    (tmp_path / "r.csv").write_text(f"x,a,b\na,0,{cell}\nb,1,0\n")
    with pytest.raises(InputError, match=r"r\.csv, row 2: b: too large"):
        read_rtt(tmp_path / "r.csv")


METHODS = ("exact", "exhaustive", "local-search", "kq", "qk", "best-of")


@pytest.mark.filterwarnings("ignore::placement.errors.UnitsWarning", "error::RuntimeWarning")
@pytest.mark.parametrize("rtt", [LARGEST, 1.0])
@pytest.mark.parametrize("count", [LARGEST, 1.0])
@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_methods_end_with_the_largest_numbers(
    method: str, rtt: float, count: float, spread: bool
) -> None:
    """No endless loop, no overflow, and one optimum, at the limits of the numbers."""
    problem = Problem(world(rtt, count, spread=spread), replicas=3, voters=3)
    plan = placement.solve(problem, method=method, time_limit=20)
    assert plan.found
    assert math.isfinite(plan.objective)
    if method in ("exact", "exhaustive"):
        best = placement.solve(problem, method="exhaustive")
        assert plan.objective == pytest.approx(best.objective, rel=1e-9)


def test_histograms_with_huge_rtts() -> None:
    """An RTT beyond the grid is overflow, whatever its size."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for far in (1e19, 1e300, 1.7e308):
            assert of_weights([1.0, far], [3, 1], width=0.5, bins=4).tolist() == [0, 0, 0.75, 0]
            assert of_weights([1.0, far], [1, 1], width=1e-3, bins=4).tolist() == [0, 0, 0, 0]
    edges = of_weights(np.nextafter(np.arange(8) + 0.5, 0), np.ones(8), width=1.0, bins=8)
    assert edges.sum() == 1


def test_a_histogram_file_with_a_huge_rtt(tmp_path: Path) -> None:
    rows = "".join(f"{a},{b},5,1\n" for a in "abcde" for b in "abcde" if a != b)
    (tmp_path / "h.csv").write_text("src,dst,rtt,count\n" + rows + "a,b,1e308,1\n")
    with pytest.raises(InputError, match=r"h\.csv, row 22: rtt: too large"):
        read_distributions(tmp_path / "h.csv", world(20.0, 1.0))


LONDON, VIRGINIA, TOKYO = (51.5, -0.1), (38.9, -77.5), (35.7, 139.7)
MS = np.array([[0.0, 75, 210], [75, 0, 150], [210, 150, 0]])


def three_cities(factor: float, *, places: bool = True, own: float = 0.4) -> Instance:
    return Instance(
        sites=("lhr", "iad", "nrt"),
        clients=("lhr", "iad", "nrt"),
        client_rtt=(MS + np.diag([own] * 3)) * factor,
        site_rtt=MS * factor,
        counts=np.ones((3, 5)),
        site_coordinates=np.array([LONDON, VIRGINIA, TOKYO]) if places else None,
        client_coordinates=np.array([LONDON, VIRGINIA, TOKYO]) if places else None,
    )


def warned(factor: float, *, places: bool = True) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        three_cities(factor, places=places)
    assert all(each.category is UnitsWarning for each in caught)
    return [str(each.message) for each in caught]


def test_seconds_are_seen_with_and_without_coordinates() -> None:
    assert warned(1.0) == []
    assert warned(0.001, places=False) == [
        "site_rtt: the median RTT between distinct sites is 0.15 ms; are these seconds? multiply "
        "by 1000"
    ]
    median, sites, clients = warned(0.001)
    assert "0.15 ms" in median
    assert sites == (
        "site_rtt: 6 of 6 RTTs are below the time of light in fibre: from 'iad' to 'nrt' it is "
        "0.15 ms, and light in fibre needs 109 ms for 10,883 km; are these seconds? multiply by "
        "1000"
    )
    assert clients.startswith("client_rtt: 6 of 9 RTTs are below")


def test_one_pair_that_is_too_fast_is_named() -> None:
    rtt = MS.copy()
    rtt[0, 2] = 60.0
    message = (
        r"1 of 6 .*from 'lhr' to 'nrt' it is 60 ms, and light in fibre needs 95\.6 ms for 9,5\d\d "
        "km; are the units and the coordinates right"
    )
    with pytest.warns(UnitsWarning, match=message):
        three_cities(1.0).replace(site_rtt=rtt)


def test_unknown_places_and_neighbours_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = three_cities(1.0)
        unknown = np.array([LONDON, (np.nan, np.nan), TOKYO])
        rtt = MS.copy()
        rtt[0, 1] = rtt[1, 0] = 3.0
        made.replace(site_rtt=rtt, site_coordinates=unknown)
        # two cities 95 km apart, whose data centres may be side by side
        near = np.array([LONDON, (51.75, -1.26), TOKYO])
        made.replace(site_rtt=rtt, client_rtt=MS, site_coordinates=near, client_coordinates=None)


def test_rtts_by_interval_are_compared_too() -> None:
    varying = np.stack([MS, MS])
    varying[1, 1, 2] = 20.0
    with pytest.warns(UnitsWarning, match="from 'iad' to 'nrt' it is 20 ms"):
        three_cities(1.0).replace(site_rtt=varying, counts=np.ones((2, 3, 5)), intervals=())


@pytest.mark.parametrize("name", datasets.names())
def test_bundled_data_give_no_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        placement.load(name)


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 10**400, Fraction(10**400)])
def test_a_number_is_finite_unless_said_otherwise(value: Any) -> None:
    with pytest.raises(InputError, match="x: out of range"):
        number(value, "x", minimum=-math.inf)
    if value == math.inf:
        assert number(value, "x", infinite=True) == math.inf
    else:  # a number that only its rounding makes infinite is not ∞ itself
        with pytest.raises(InputError, match="x: out of range"):
            number(value, "x", infinite=True)
