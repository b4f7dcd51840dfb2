"""RTTs that do not fit the others, and what they change in a plan."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import placement
from placement import InputError, Instance, Problem
from placement.analysis.data_quality import data_quality, effects_of_doubt
from placement.cli import main
from placement.io.assemble_instance import assemble
from placement.io.rtt_table import RttTable

SITES = ("a", "b", "c", "d")
RTT = np.array([[0, 20, 90, 300], [40, 0, 60, 200], [90, 60, 0, 100], [160, 160, 100, 0.0]])


def world(rtt: np.ndarray = RTT, places: list[list[float]] | None = None) -> Instance:
    made = assemble(RttTable("r.csv", SITES, SITES, rtt), mix="social")
    return made.replace(site_coordinates=None if places is None else np.array(places))


def test_asymmetry_detours_and_light() -> None:
    nan = float("nan")
    places = [[50.1, 8.7], [38.9, -77.4], [35.7, 139.7], [nan, nan]]
    with pytest.warns(placement.errors.UnitsWarning):
        instance = world(places=places)
    found = data_quality(instance)
    assert found.pairs == 12
    assert [(p.source, p.destination, p.rtt, p.against) for p in found.asymmetric] == [
        ("a", "d", 300, 160), ("b", "d", 200, 160), ("b", "a", 40, 20)
    ]  # fmt: skip
    assert [(p.source, p.destination, p.reason) for p in found.detours] == [
        ("a", "d", "the way over c"), ("b", "d", "the way over c"), ("a", "c", "the way over b")
    ]  # fmt: skip
    assert {(p.source, p.destination) for p in found.faster_than_light} == {
        ("a", "b"), ("b", "a"), ("a", "c"), ("b", "c"), ("c", "b")
    } | {("c", "a")}  # fmt: skip
    assert found.located
    assert len(found.doubtful) == len({frozenset(pair) for pair in found.doubtful}) == 5


@given(st.lists(st.floats(1, 400), min_size=16, max_size=16))
def test_detours_against_all_triples(values: list[float]) -> None:
    rtt = np.array(values).reshape(4, 4)
    np.fill_diagonal(rtt, 0)
    found = {(p.source, p.destination): p.against for p in data_quality(world(rtt)).detours}
    for i, a in enumerate(SITES):
        for j, b in enumerate(SITES):
            if i != j:
                way = min(rtt[i, k] + rtt[k, j] for k in range(4) if k not in (i, j))
                doubtful = rtt[i, j] > 1.1 * way and rtt[i, j] > way + 5
                assert found.get((a, b)) == (way if doubtful else None)


def test_effects_are_those_of_solving_the_changed_problem() -> None:
    instance = world()
    plan = placement.solve(Problem(instance, replicas=2, voters=2))
    changes = effects_of_doubt(plan, [("a", "b"), ("b", "a"), ("c", "d")], off=0.5)
    assert [(change.pairs, change.factor) for change in changes] == [
        ((("a", "b"),), 0.5), ((("a", "b"),), 1.5),
        ((("c", "d"),), 0.5), ((("c", "d"),), 1.5),
        ((("a", "b"), ("c", "d")), 0.5), ((("a", "b"), ("c", "d")), 1.5),
    ]  # fmt: skip
    moved = 0
    for change in changes:
        rtt = RTT.copy()
        for a, b in change.pairs:
            i, j = SITES.index(a), SITES.index(b)
            rtt[[i, j], [j, i]] *= change.factor
        problem = Problem(world(rtt), replicas=2, voters=2)
        best = placement.solve(problem)
        assert change.plan.objective == pytest.approx(best.objective, rel=1e-12)
        assert plan.leader is not None
        own = placement.evaluate(
            problem, leader=plan.leader, voters=plan.voters, replicas=plan.replicas
        )
        assert change.regret == pytest.approx(own.objective / best.objective - 1, abs=1e-9)
        moved += change.regret > 0
    assert moved
    with pytest.raises(InputError, match="off"):
        effects_of_doubt(plan, [("a", "b")], off=1.0)
    with pytest.raises(InputError, match="unknown site"):
        effects_of_doubt(plan, [("a", "z")])


def test_the_import_reports_and_sensitivity_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("r.csv").write_text("from,to,ms\na,b,20\nb,a,40\na,c,90\nc,a,90\nb,c,60\n")
    assert main(["import", "r.csv", "--mix", "social", "--fill", "transpose", "-o", "mine"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "1 pair missing and filled in, such as c → b" in out
    assert "1 asymmetric, such as b → a (40 ms, the other direction 20 ms)" in out
    line = ["import", "r.csv", "--mix", "social", "--fill", "transpose", "-o", "other", "--json"]
    assert main(line) == 0
    document = json.loads(capsys.readouterr().out)["quality"]
    assert document["missing"] == [["c", "b"]]
    assert document["faster_than_light"] is None
    assert main(["solve", "mine", "--replicas", "2", "--voters", "2", "-o", "plan.json"]) == 0
    capsys.readouterr()
    assert main(["explain", "plan.json", "--doubt", "20", "--pair", "c:b"]) == 0
    out = capsys.readouterr().out
    assert "Doubtful RTTs 20 % off: the optimum moves in " in out
    assert "all 3 pairs" in out
    assert main(["explain", "plan.json", "--doubt", "20", "--pair", "c:b", "--json"]) == 0
    doubts = json.loads(capsys.readouterr().out)["doubts"]
    assert [(d["pairs"], d["factor"]) for d in doubts[:2]] == [
        ([["c", "b"]], 0.8),
        ([["c", "b"]], 1.2),
    ]
    assert main(["explain", "plan.json", "--pair", "c:b"]) == 1
    assert "--pair: no share" in capsys.readouterr().err
