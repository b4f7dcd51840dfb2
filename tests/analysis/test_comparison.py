"""compare: one row per method, whatever happens to it, and gaps against the best proven bound."""

import math

import numpy as np
import pytest
from hypothesis import given, settings

import placement
from placement import Instance, Prices, Problem
from placement.analysis import compare_methods as comparison
from placement.errors import InputError, LimitError, SolverError
from placement.methods.options import Options
from placement.methods.registry import Method, available, load_method
from placement.model.configuration import Configuration
from placement.plan import Plan
from placement.support.status import Termination
from tests.effort import examples
from tests.strategies import problems

METHODS = ("exhaustive", "cp-sat", "kq", "qk", "best-of")


def small(**asked):
    rng = np.random.default_rng(11)
    site_rtt = rng.uniform(5, 200, (7, 7))
    np.fill_diagonal(site_rtt, 0)
    instance = Instance(
        sites=tuple("abcdefg"),
        clients=tuple("uvwxyz"),
        client_rtt=rng.uniform(1, 200, (6, 7)),
        site_rtt=site_rtt,
        counts=rng.integers(1, 90, (6, 5)).astype(float),
        domains={"side": ("w", "w", "w", "e", "e", "e", "e")},
        prices=Prices(rng.uniform(1, 9, 7)),
    )
    return Problem(instance, **{"replicas": 3, "voters": 3, **asked})


@pytest.fixture
def register(monkeypatch):
    """Put methods beside the registered ones for the length of a test."""
    extra = {}
    monkeypatch.setattr(comparison, "available", lambda: tuple(sorted({*available(), *extra})))
    monkeypatch.setattr(
        comparison, "load_method", lambda name: extra.get(name) or load_method(name)
    )

    def add(name, call, **facts):
        extra[name] = Method(name, call, "made up", exact=True, **facts)
        return name

    return add


def test_rows_columns_and_order():
    problem = small()
    table = placement.compare(problem, methods=METHODS)
    assert list(table.columns) == list(comparison.COLUMNS)
    assert list(table["method"]) == list(METHODS)
    truth = placement.solve(problem, method="exhaustive")
    exact = table[table["method"].isin(["exhaustive", "cp-sat"])]
    assert set(exact["status"]) == {"optimal"}
    assert (exact["own_gap"] <= 1e-9).all()
    assert (table["score"] >= truth.score * (1 - 1e-9)).all()
    assert table.attrs["best_bound"] == pytest.approx(truth.score, rel=1e-9)
    expected = (table["objective"] - table.attrs["best_bound"]) / table["objective"]
    assert np.allclose(table["gap"], expected, atol=1e-12)
    assert np.allclose(table["mean_latency"], table["score"] / problem.demand.operations)
    heuristic = table[table["method"] == "kq"].iloc[0]
    assert heuristic["bound"] == -math.inf
    assert heuristic["own_gap"] == math.inf
    assert set(heuristic["voters"]) <= set(heuristic["replicas"])
    assert heuristic["leader"] in heuristic["voters"]


def test_every_registered_method_has_a_row():
    table = placement.compare(small())
    assert sorted(table["method"]) == sorted(available())
    refused = table[table["status"] == "refused"]
    assert "leader" in set(refused["method"])
    assert (refused["reason"] != "").all()
    assert refused["score"].isna().all()


def test_failures_are_rows(register):
    def limit(problem, options):
        raise LimitError("too much for me")

    def defect(problem, options):
        raise ZeroDivisionError("oops")

    def breaks_the_rules(problem, options):
        return Plan.of(problem, Configuration.of(0, (0,), (0,)), method="broken")

    names = [
        register("limited", limit),
        register("defect", defect),
        register("broken", breaks_the_rules),
        register("choosy", limit, refuses=lambda problem: "not today"),
        "exhaustive",
    ]
    table = placement.compare(small(), methods=names).set_index("method")
    assert list(table["status"]) == ["failed", "failed", "failed", "refused", "optimal"]
    assert table["reason"]["limited"] == "too much for me"
    assert table["reason"]["defect"] == "ZeroDivisionError: oops"
    assert "breaks the problem" in table["reason"]["broken"]
    assert table["reason"]["choosy"] == "not today"
    assert table["reason"]["exhaustive"] == ""


def test_a_false_bound_and_a_false_infeasible_are_called_wrong(register):
    truth = placement.solve(small(), method="exhaustive")
    worst = placement.solve(small(leader="g"), method="exhaustive")
    assert worst.objective > truth.objective

    def liar(problem, options):
        return Plan.of(problem, worst.configuration, method="liar", bound=worst.objective)

    def denier(problem, options):
        return Plan.infeasible(problem, method="denier", reasons=["no"])

    table = placement.compare(
        small(), methods=[register("liar", liar), register("denier", denier), "exhaustive"]
    ).set_index("method")
    assert table["reason"]["liar"].startswith("WRONG")
    assert "'exhaustive'" in table["reason"]["liar"]
    # The explanation that an infeasible plan gets finds the plan that there is.
    assert table["status"]["denier"] == "failed"
    assert "here is one" in table["reason"]["denier"]
    assert table.attrs["best_bound"] == pytest.approx(truth.objective, rel=1e-12)
    assert table["gap"]["exhaustive"] <= 1e-12
    # Without anyone honest who proves something, a refuted bound is no bound at all.
    table = placement.compare(small(), methods=["liar", "local-search"])
    assert table["reason"][0].startswith("WRONG")
    assert table.attrs["best_bound"] < truth.objective


def test_ctrl_c_keeps_what_there_is(register):
    def pressed(problem, options):
        raise KeyboardInterrupt

    def graceful(problem, options):
        plan = placement.solve(problem, method="kq")
        return plan.replace(termination=Termination.INTERRUPTED)

    names = ["exhaustive", register("pressed", pressed), "kq"]
    table = placement.compare(small(), methods=names).set_index("method")
    assert list(table["status"]) == ["optimal", "not run", "not run"]
    names = [register("graceful", graceful), "exhaustive"]
    table = placement.compare(small(), methods=names).set_index("method")
    assert list(table["status"]) == ["feasible", "not run"]
    assert table["gap"]["graceful"] == math.inf  # nobody proved anything


def test_misspelt_methods_and_stray_settings_are_refused_before_anything_runs(register):
    def never(problem, options):
        raise AssertionError("it ran")

    name = register("never", never)
    with pytest.raises(InputError, match="did you mean 'cp-sat'"):
        placement.compare(small(), methods=[name, "cp-sta"])
    with pytest.raises(InputError, match="not compared"):
        placement.compare(small(), methods=["kq"], settings={"cp-sat": {"start": "none"}})
    with pytest.raises(InputError, match="at least one"):
        placement.compare(small(), methods=[])


def test_settings_limits_and_progress_reach_the_methods(register):
    seen = []

    def looks(problem, options):
        seen.append(options)
        options.report(placement.Progress(0.0))
        return placement.solve(problem, method="kq")

    name = register("looks", looks, settings={"depth": placement.Setting(1, "how deep")})
    reports = []
    placement.compare(
        small(),
        methods=[name],
        time_limit=9.0,
        gap_limit=0.5,
        seed=4,
        threads=2,
        progress=lambda method, report: reports.append(method),
        settings={name: {"depth": "3"}},
    )
    (options,) = seen
    assert (options.time_limit, options.gap_limit, options.seed, options.threads) == (
        9.0,
        0.5,
        4,
        2,
    )
    assert options.settings == {"depth": 3}
    assert reports == [name]
    assert isinstance(options, Options)


@given(problems(max_sites=5))
@settings(max_examples=examples(25))
def test_no_gap_is_negative_and_exact_methods_agree(problem):
    table = placement.compare(problem, methods=["exhaustive", "cp-sat", "best-of"])
    assert not table["reason"].str.startswith("WRONG").any()
    found = table[table["score"].notna()]
    assert (found["gap"] >= 0).all()
    assert table["status"][0] == table["status"][1]


def test_solver_errors_are_rows(register):
    def contradicts(problem, options):
        raise SolverError("two truths")

    table = placement.compare(small(), methods=[register("contradicts", contradicts)])
    assert table["status"][0] == "failed"
    assert table.attrs["best_bound"] == -math.inf
