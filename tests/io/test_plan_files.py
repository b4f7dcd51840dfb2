"""Plans as files, hostile and damaged ones too: nothing that does not hold is believed."""

from __future__ import annotations

import copy
import json
import math
import os
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from benchmarks.harness.result_rows import read_results
from placement import (
    Configuration,
    Contingency,
    Diversity,
    InputError,
    Plan,
    Problem,
    Status,
    Termination,
    solve,
)
from placement import datasets as bundled
from placement.cli import main
from placement.errors import CertificateError, PlacementError, UnsupportedError
from placement.feasibility.feasible_plans import find_feasible
from placement.io import load_instance, load_plan, save_instance, save_plan
from placement.io.formats.document import Document, encode_json, jsonable, parse_json, read_document
from placement.io.instance_folder import instance_from_document
from placement.io.plan_file import Reference, plan_document
from placement.io.problem_document import check_recomputed
from placement.measures.question import MeasureQuestion
from placement.plan import evaluate, objective_value
from placement.report import write_report
from placement.testing import optimum
from tests.effort import examples
from tests.expected import refused
from tests.io.plans import plans
from tests.io.worlds import same, small
from tests.strategies import problems

FIELDS = (
    "voters", "quorum", "leader", "leaders", "pinned", "pinned_voters", "forbidden", "non_voters",
    "diversity", "survive", "decay", "budget", "cost_weight", "objective",
)  # fmt: skip


def _same_question(one: Problem, other: Problem) -> bool:
    rules, others = one.rules, other.rules
    return (
        all(vars(one)[field] == vars(other)[field] for field in FIELDS)
        and (rules.replicas_min, rules.replicas_max) == (others.replicas_min, others.replicas_max)
        and rules.must_hold.tolist() == others.must_hold.tolist()
        and rules.may_hold.tolist() == others.may_hold.tolist()
        and same(one.instance, other.instance)
    )


def _same_plan(one: Plan, other: Plan) -> bool:
    fields = (
        "configuration", "bound", "status", "termination", "method", "seconds", "reasons", "notes",
        "certificate",
    )  # fmt: skip
    return (
        all(vars(one)[field] == vars(other)[field] for field in fields)
        and dict(one.stats) == dict(other.stats)
        and _same_question(one.problem, other.problem)
        and (one.score, one.objective, one.leaders) == (other.score, other.objective, other.leaders)
    )


@given(problem=problems(), slack=st.sampled_from([0.0, 0.25, math.inf]), data=st.data())
def test_any_plan_comes_back(problem: Problem, slack: float, data: st.DataObject) -> None:
    configuration = find_feasible(problem)
    if configuration is None:
        plan = Plan.infeasible(problem, method="proof", reasons=("none", "at all"), seconds=0.5)
    else:
        value = objective_value(problem, configuration)
        plan = Plan.of(
            problem,
            configuration,
            method="some",
            bound=-math.inf if math.isinf(slack) else value * (1 - slack),
            termination=data.draw(st.sampled_from(Termination)),
            seconds=data.draw(st.floats(0, 1e6)),
            notes=("a note",),
            stats={"nodes": 12, "rate": 0.1, "worst": math.inf, "rule": "x"},
            certificate={"prices": [0.1, math.inf], "sets": {"s": [1, 2]}},
        )
    with tempfile.TemporaryDirectory() as folder:
        path = save_plan(plan, Path(folder) / "p.json")
        json.loads(path.read_text(), parse_constant=pytest.fail)
        assert _same_plan(load_plan(path), plan)
        assert _same_plan(load_plan(path, problem.instance), plan)


def _plan(**constraints: Any) -> Plan:
    problem = Problem(small(), **{"replicas": 3, "voters": 3, **constraints})
    value = objective_value(problem, Configuration.of(0, (0, 1, 2), (0, 1, 2)))
    return Plan.of(
        problem, Configuration.of(0, (0, 2, 1), (0, 1, 2)), method="m", bound=0.9 * value
    )


@pytest.mark.parametrize("replicas", [3, (2, 3), range(2, 4), ("Oslo", "Rome", "Washington, DC")])
def test_each_way_to_ask_for_replicas_comes_back(tmp_path: Path, replicas: Any) -> None:
    plan = _plan(replicas=replicas, voters=("Rome", "Oslo", "Washington, DC"), decay=math.inf)
    assert _same_plan(load_plan(save_plan(plan, tmp_path / "p.json")), plan)


def test_every_constraint_comes_back(tmp_path: Path) -> None:
    plan = _plan(
        quorum=2,
        leaders=("Oslo", "Rome"),
        pinned=("Rome",),
        pinned_voters=("Oslo",),
        diversity=(Diversity("country"), Diversity("continent", "replicas", cap=2, min_domains=2)),
        survive="country",
        decay=2.5,
    )
    assert _same_plan(load_plan(save_plan(plan, tmp_path / "p.json")), plan)


OBJECTIVES = [
    Contingency("country"),
    Contingency("site", "bounded", limit=500.5, together=2, clients_move=True),
    Contingency("site", "worst", leader_may_move=True),
    Contingency("site", "weighted", probability=0.01),
    Contingency("country", "weighted", probability={"NO": 0.1, "IT": 1 / 3}),
]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_what_is_minimised_comes_back(tmp_path: Path, objective: MeasureQuestion) -> None:
    problem = Problem(small(), replicas=3, voters=3, objective=objective)
    plan = evaluate(problem, Configuration.of(0, (0, 1, 2), (0, 1, 2)))
    assert _same_plan(load_plan(save_plan(plan, tmp_path / "p.json")), plan)


def test_an_objective_that_files_cannot_hold_is_refused_not_lost(tmp_path: Path) -> None:
    class Other(MeasureQuestion):
        kind = "other"

    plan = _plan()
    problem = plan.problem.replace(objective=Other())
    with pytest.raises(UnsupportedError, match="cannot hold the objective 'other'"):
        save_plan(plan.replace(problem=problem), tmp_path / "p.json")
    assert list(tmp_path.iterdir()) == []


def test_a_plan_that_breaks_constraints_comes_back_with_what_it_breaks(tmp_path: Path) -> None:
    problem = Problem(small(), replicas=3, voters=3, diversity=Diversity("continent"))
    plan = evaluate(problem, Configuration.of(0, (0, 1, 2), (0, 1, 2)))
    assert plan.status is Status.VIOLATING
    assert _same_plan(load_plan(save_plan(plan, tmp_path / "p.json")), plan)


def test_a_plan_can_refer_to_its_instance(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    save_instance(small(), tmp_path / "a" / "world27")  # the name of a data set, on purpose
    (tmp_path / "b").mkdir()
    plan = _plan()
    reference = Reference(str(tmp_path / "a" / "world27"))
    path = save_plan(plan, tmp_path / "b" / "p.json", reference=reference)
    assert json.loads(path.read_text())["instance"]["source"] == "../a/world27"
    assert "content" not in json.loads(path.read_text())["instance"]
    assert _same_plan(load_plan(path), plan)
    beside = save_plan(plan, tmp_path / "a" / "p.json", reference=reference)
    assert json.loads(beside.read_text())["instance"]["source"] == "./world27"
    assert _same_plan(load_plan(beside), plan)
    # the folder as a whole can move
    (tmp_path / "moved").mkdir()
    (tmp_path / "a").rename(tmp_path / "moved" / "a")
    assert _same_plan(load_plan(tmp_path / "moved" / "a" / "p.json"), plan)
    # but not the plan away from its instance
    with pytest.raises(InputError, match="no such file or folder"):
        load_plan(path)


def test_a_plan_can_refer_to_a_data_set(tmp_path: Path) -> None:
    world = bundled.load("world27", mix="ledger", seed=3)
    plan = evaluate(Problem(world, replicas=1, voters=1), Configuration.of(4, (4,), (4,)))
    path = save_plan(plan, tmp_path / "p.json", reference=Reference("world27", "ledger", 3))
    assert _same_plan(load_plan(path), plan)
    other = save_plan(plan, tmp_path / "q.json", reference=Reference("world27", "ledger", 4))
    with pytest.raises(InputError, match="made for another instance"):
        load_plan(other)


def test_a_plan_is_not_read_with_another_instance(tmp_path: Path) -> None:
    path = save_plan(_plan(), tmp_path / "p.json")
    other = small(counts=small().counts + 1)
    with refused(str(path), "instance.fingerprint", small().fingerprint, other.fingerprint):
        load_plan(path, other)


def test_an_instance_edited_inside_the_plan_is_refused(tmp_path: Path) -> None:
    path = save_plan(_plan(), tmp_path / "p.json")
    text = path.read_text()
    assert "97.5" in text
    path.write_text(text.replace("97.5", "97.25"))
    with pytest.raises(InputError, match="fingerprint"):
        load_plan(path)


THREE = {"replicas": 3, "voters": 3}
LATE = {"kind": "measures", "minimise": "p95"}
GRID = {"form": "percentiles", "width": 1, "bins": 9, "percents": 9}
WORLD = {"format": "replica-placement instance", "version": 1}
FORGED: list[tuple[str, Any, str]] = [
    ("score", 1.0, "score: not the value of this configuration: got 1.0"),
    ("status", "optimal", "not the status of this score and bound: got 'optimal', expected 'feas"),
    ("status", "infeasible", "status: not the status of this score and bound"),
    ("status", "violating", "status: the configuration breaks no constraint"),
    ("status", "splendid", "status: not a status: got 'splendid', expected one of optimal, "),
    ("termination", "tired", "termination: not a termination: got 'tired'"),
    ("bound", 1e12, "bound: above the objective"),
    ("leader", "Paris", "leader: unknown site: got 'Paris'"),
    ("replicas", ["Oslo", "Rome"], "score: not the value of this configuration"),
    ("problem", {**THREE, "diversity": [{"level": "continent"}]}, "breaks: at most 1 of the vote"),
    ("voters_as_found", ["Oslo", "Oslo", "Rome"], "duplicate name: got 'Oslo'"),
    ("seconds", "long", "seconds: not a number: got 'long'"),
    ("notes", "one", "notes: not a list of names: got 'one'"),
    ("stats", {"x": [1]}, "stats.x: not a number or text: got [1]"),
    ("method", None, "method: missing key"),
    ("version", 99, "version: a version this release cannot read: got 99, expected 1 to 2"),
    ("format", "poem", "format: a file of another kind: got 'poem'"),
    ("format", None, "format: the file names no format: expected a plan, as placement solve -o"),
    ("problem", {"replicas": 3, "voters": 4}, "voters: more voters than replicas: got 4"),
    ("problem", {"replicas": "x", "voters": 3}, "problem.replicas: not a whole number: got 'x'"),
    ("voters", ["Mars", "Venus", "Pluto"], "voters[0]: not the value of this configuration: got"),
    ("mean_latency_ms", 1, "mean_latency_ms: not the value of this configuration: got 1, expected"),
    ("failures", {}, "failures.level: missing key"),
    ("failures", None, "failures: not the value of this configuration"),
    ("reasons", ["it is too slow"], "reasons: not the constraints that the configuration breaks"),
    ("provenance", ["Measured."], "provenance: does not match the instance: got ['Measured.']"),
    ("claim", "checked by hand", "claim: does not match the bound: got 'checked by hand'"),
    ("bound", {"$float": "nan"}, "bound: not a number"),
    ("bound", "inf", "bound: not a number: got 'inf'"),
    ("seconds", "inf", "seconds: not a number: got 'inf'"),
    ("verified_by", "nobody", "verified_by: unknown key"),
    ("problem", {"replicas": 3, "voters": 3, "forbid": ["Oslo"]}, "problem.forbid: unknown key"),
    ("problem", {**THREE, "objective": {**LATE, "keep": "mean <= 3 ms"}}, "keep: not a list"),
    ("problem", {**THREE, "objective": {"kind": "fair"}}, "objective.kind: unknown objective: got"),
    ("problem", {**THREE, "objective": {**LATE, "distributions": [GRID]}}, "percents: not a list"),
    ("instance", {"content": {**WORLD, "prices": {}}}, "content.prices.storage: missing key"),
]


@pytest.mark.parametrize(("key", "value", "message"), FORGED)
def test_what_does_not_hold_is_not_believed(
    tmp_path: Path, key: str, value: object, message: str
) -> None:
    path = save_plan(_plan(), tmp_path / "p.json")
    document = json.loads(path.read_text())
    document[key] = value
    path.write_text(json.dumps(document))
    with refused(message, str(path)):
        load_plan(path)


def _leaves(value: object, *path: str | int) -> Iterator[tuple[tuple[str | int, ...], object]]:
    inner = (
        value.items() if isinstance(value, dict)
        else enumerate(value) if isinstance(value, list)
        else ()
    )  # fmt: skip
    if path:
        yield path, value
    for key, item in inner:
        yield from _leaves(item, *path, key)


def _other(value: object) -> object:
    if isinstance(value, bool) or value is None:
        return 1.5
    if isinstance(value, (int, float)):
        return value + 1
    return "Mars" if isinstance(value, str) else []


PLANS = plans()


@pytest.mark.parametrize("kind", PLANS)
def test_whatever_can_be_recomputed_is_recomputed(tmp_path: Path, kind: str) -> None:
    path = save_plan(PLANS[kind], tmp_path / "p.json")
    text = path.read_text()
    derived = {
        key: value for key, value in json.loads(text).items()
        if key in ("leader", "voters", "replicas", "score", "objective", "headline", "cost", "gap",
                   "mean_latency_ms", "quorum_wait_ms", "breakdown", "failures", "tail")
    }  # fmt: skip
    leaves = list(_leaves(derived))
    some = leaves[:: 1 + len(leaves) // examples(50)] + [
        leaf for leaf in leaves if len(leaf[0]) < 3
    ]
    for place, value in some:
        document = json.loads(text)
        inner = document
        for key in place[:-1]:
            inner = inner[key]
        inner[place[-1]] = _other(value) if value != [] else ["Mars"]
        path.write_text(json.dumps(document))
        with pytest.raises(InputError) as caught:
            load_plan(path)
        assert caught.value.source.startswith(str(path)), place
        assert caught.value.field, place


def test_a_field_that_is_not_there_says_nothing_false(tmp_path: Path) -> None:
    plan = PLANS["mean"]
    path = save_plan(plan, tmp_path / "p.json")
    document = json.loads(path.read_text())
    for key in ("failures", "breakdown", "mean_latency_ms", "tail", "headline"):
        del document[key]
    path.write_text(json.dumps(document))
    assert _same_plan(load_plan(path), plan)


def test_rows_of_a_ranking_may_swap_only_where_they_tie(tmp_path: Path) -> None:
    expected = {"x": [{"leader": "a", "ms": 1.0}, {"leader": "b", "ms": 1.0 + 1e-14}]}
    swapped = {"x": [{"leader": "b", "ms": 1.0}, {"leader": "a", "ms": 1.0}]}
    check_recomputed(Document("f", "", swapped), expected, "it")
    expected["x"][1]["ms"] = 2.0
    with pytest.raises(InputError, match=r"x\[0\]\.leader: not the value of it"):
        check_recomputed(Document("f", "", swapped), expected, "it")
    swapped["x"][0]["ms"] = 2.0
    with pytest.raises(InputError, match=r"x\[0\]\.leader: not the value of it"):
        check_recomputed(Document("f", "", swapped), expected, "it")


# --- whose word a bound is ---------------------------------------------------------------------


def test_a_loaded_bound_is_a_claim_until_its_certificate_is_checked(tmp_path: Path) -> None:
    plan = PLANS["mean"]
    assert plan.claim == ""
    assert "optimal, proven; by exact" in str(plan)
    path = save_plan(plan, tmp_path / "p.json")
    assert "claim" not in json.loads(path.read_text())
    assert plan_document(plan)["claim"] is None
    loaded = load_plan(path)
    assert loaded.claim == "bound claimed by exact, not checked"
    assert "optimal, bound claimed by exact, not checked; by exact" in str(loaded)
    assert "proven;" not in str(loaded)
    assert "not checked" in repr(loaded)
    assert plan_document(loaded)["claim"] == loaded.claim
    path.write_text(json.dumps(plan_document(loaded, embed=True)))  # as a command prints it
    assert load_plan(path).claim == loaded.claim
    checked = load_plan(path, check=True)
    assert checked.claim == ""
    assert str(checked) == str(plan)


def test_an_edited_plan_of_a_heuristic_is_not_proven(tmp_path: Path) -> None:
    plan = solve(PLANS["mean"].problem, "nearest-centroid")
    path = save_plan(plan, tmp_path / "p.json")
    document = json.loads(path.read_text())
    document |= {"bound": plan.objective, "gap": 0.0, "status": "optimal", "method": "exact"}
    path.write_text(json.dumps(document))
    assert "optimal, bound claimed by exact, not checked" in str(load_plan(path))
    page = write_report(path, tmp_path / "p.html").read_text()
    assert "optimal: bound claimed by exact, not checked" in page
    assert "proven optimal" not in page
    with pytest.raises(CertificateError, match="carries no certificate"):
        load_plan(path, check=True)


def test_that_there_is_no_plan_is_a_claim_too(tmp_path: Path) -> None:
    path = save_plan(PLANS["none"], tmp_path / "p.json")
    loaded = load_plan(path)
    assert loaded.claim.startswith("infeasibility claimed by ")
    assert "infeasible, infeasibility claimed by" in str(loaded)
    assert load_plan(path, check=True).claim == ""


def test_a_gap_is_claimed_with_its_bound(tmp_path: Path) -> None:
    text = str(load_plan(save_plan(_plan(), tmp_path / "p.json")))
    assert "feasible, gap 10 %, bound claimed by m, not checked" in text
    assert "claimed bound" in text
    assert "no plan can be below" not in text


def test_a_certificate_that_is_no_data_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    plan = _plan().replace(certificate={"solver": object()})
    with pytest.raises(InputError, match=r"certificate\.solver"):
        save_plan(plan, tmp_path / "p.json")
    assert list(tmp_path.iterdir()) == []


def test_the_file_carries_the_numbers_behind_the_plan(tmp_path: Path) -> None:
    plan = _plan()
    document = json.loads(save_plan(plan, tmp_path / "p.json").read_text())
    assert document["leader"] == "Oslo"
    assert document["voters"] == ["Oslo", "Rome", "Washington, DC"]  # in order of answer
    assert document["quorum_wait_ms"] == 40.0
    assert document["gap"] == pytest.approx(0.1)
    assert document["mean_latency_ms"] == plan.mean_latency
    assert [row["leader"] for row in document["breakdown"]["leaders"]] == [
        row.leader for row in plan.leaders
    ]
    assert document["breakdown"]["quorum"][2] == {
        "voter": "Washington, DC", "rtt": 97.5, "counted": False
    }  # fmt: skip
    assert document["provenance"] == ["Worked by hand."]


DEEP = "[" * 600 + "]" * 600
LONG = "1" * 5000
JSON = [
    (f'{{"a": {{"b": [1, {LONG}]}}}}', "a.b[1]: a number out of range: got 1111"),
    (f'{{"a": 1{"0" * 400}}}', "a: a number out of range: got 1000"),
    (f'{{"a": -{LONG}.5}}', "a: a number out of range: got -1111"),
    ('{"a": [{}, {"b": 1e999}]}', "a[1].b: a number out of range: got 1e999"),
    (f'{{"a": {{"b": {DEEP}}}}}', "a.b[0][0]"),
    ('{"a": ' * 600 + "1" + "}" * 600, "nested too deeply: expected at most 200 levels"),
    ("[" * 200_000, "nested too deeply"),
    (r'{"a": {"b": "\ud800"}}', r"a.b: not text: got '\ud800'"),
    (r'{"a": {"\udfff": 1}}', r"a: not text: got '\udfff'"),
    ('{"a": 1, "b": 2, "a": 3}', "a: a key given twice"),
    ('{"a": Infinity}', "not JSON: got 'Infinity'"),
]


@pytest.mark.parametrize(("text", "message"), JSON, ids=[text[:20] for text, _ in JSON])
def test_what_no_reader_of_json_should_take(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    for read in (read_document, load_plan, load_instance):
        with pytest.raises(InputError) as caught:
            read(path)
        assert message in str(caught.value)
        assert str(caught.value).startswith(str(path))
        assert len(str(caught.value)) < 500


TOML = [
    (f"[x]\na = 1\nb = {LONG}", "x.b: a number out of range"),
    ("a = 0x" + "f" * 5000, "a: a number out of range"),
    ("a = [1, nan]", "a[1]: a number out of range: got nan"),
    ("a = 1e999", "a: a number out of range: got 1e999"),
    ("a = " + "[" * 5000, "nested too deeply"),
    ("[" + ".".join("a" * 600) + "]\nb = 1", "nested too deeply: expected at most 200 levels"),
]


@pytest.mark.parametrize(("text", "message"), TOML, ids=[text[:20] for text, _ in TOML])
def test_what_no_reader_of_toml_should_take(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text)
    with refused(message, str(path)):
        load_instance(path)


def test_numbers_at_the_edge_and_characters_of_two_halves_are_read() -> None:
    text = '{"a": [1.7976931348623157e308, 5e-324, %s, 1e300], "b": "\\ud83d\\ude00"}' % ("9" * 308)
    assert parse_json(text, "x") == json.loads(text)
    assert parse_json(json.dumps({"a": "1" * 5000}), "x") == {"a": "1" * 5000}
    deep = json.loads("[" * 199 + "]" * 199)
    assert parse_json(json.dumps(jsonable({"a": deep}, "x")), "x") == {"a": deep}


def test_a_long_key_does_not_make_a_long_search() -> None:
    key = "k" * 100_000
    text = json.dumps({key: list(range(100_000))})[:-2] + ", 1e999]}"
    with pytest.raises(InputError) as caught:
        parse_json(text, "x")
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("value", ["zzz", "Infinity", "1", 1, None, ["nan"]])
def test_a_number_that_json_has_not_is_one_of_three(tmp_path: Path, value: object) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"stats": {"x": [{"$float": value}]}, "y": {"$float": "-inf"}}))
    document = read_document(path)
    assert document.plain("y") == float("-inf")
    with pytest.raises(InputError, match=r"x\.json: stats\.x: not a number of the form") as caught:
        document.table("stats").plain("x")
    assert caught.value.value == value


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "a\0b", "."])
def test_what_is_no_file_is_not_read(path: str) -> None:
    if path.startswith("/dev") and not os.path.exists(path):
        pytest.skip("this system has no such device")
    with pytest.raises(InputError, match=r"not a regular file|not a file path"):
        read_document(path)


def test_a_pipe_that_nobody_writes_to_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "p.json")
    with pytest.raises(InputError, match="not a regular file"):
        read_document(tmp_path / "p.json")


@pytest.mark.parametrize(
    "text",
    [f'{{"kind": {LONG}}}', DEEP, f'{{"kind": "run", "x": {LONG}}}', '{"kind": "row"}', '{"kind": ',
     '{"kind": "run", "format": "other"}', "\0\0"],
)  # fmt: skip
def test_results_are_read_as_strictly(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text(text + '\n{"kind": "row"}\n')
    with pytest.raises(InputError, match="row 1"):
        read_results(path)
    assert main(["report", str(path), "-o", str(tmp_path / "x.html")]) == 1


def test_a_manifest_is_read_as_strictly(tmp_path: Path) -> None:
    manifest = save_instance(small(), tmp_path / "w")
    document = json.loads(manifest.read_text())
    document["operations"][0]["near"] = 123456789
    manifest.write_text(json.dumps(document).replace("123456789", LONG))
    with pytest.raises(InputError, match=r"instance\.json: operations\[0\]\.near: a number out"):
        load_instance(tmp_path / "w")


_DIGITS = "1" * 5000
# Files of real plans of every kind are changed by key and by byte. Every command that reads a plan
# then ends with an exit code of its own, never with a traceback, in bounded time.
_SECONDS = 20.0  # of one file, on a busy machine; honest ones take milliseconds

HOSTILE: tuple[object, ...] = (
    None, True, False, 0, 1, -1, 3, 10**6, 10**18, 10**300, 0.5, 1e-320, 1e308, -1e308, "", "inf",
    "nan", "exact", "optimal", "feasible", "infeasible", "violating", "Mars", "site-1", "a\0b",
    "\u202e", "\x1b[31m", "9" * 40, [], [[]], {}, {"$float": "nan"}, {"$float": "inf"},
    {"$float": "zzz"}, {"leader": 1}, ["site-0", "site-0"], [["enumerate"]], [["close", []]],
    {"least": 1, "most": 10**9},
)  # fmt: skip

TOKENS = (
    b"", b"NaN", b"-Infinity", b"1e999", _DIGITS.encode(), b"-" + _DIGITS.encode(), b"[" * 600,
    b"[" * 600 + b"]" * 600, b'{"a":' * 300, b"\\ud800", b"\xff", b"\x00", b"0", b"e9", b",", b'"',
    b"}", b'"x": 1, "x": 2',
)  # fmt: skip


@cache
def _written() -> dict[str, tuple[dict[str, Any], Plan]]:
    return {kind: (plan_document(plan, embed=True), plan) for kind, plan in plans().items()}


@st.composite
def _place(draw: st.DrawFn, document: dict[str, Any]) -> tuple[Any, Any]:
    """A container of the document and a key in it; each level is drawn alike, so none drowns."""
    inner: Any = document
    while True:
        key = draw(st.sampled_from(list(inner) if isinstance(inner, dict) else range(len(inner))))
        below = inner[key]
        if not isinstance(below, (dict, list)) or not below or draw(st.integers(0, 3)) == 0:
            return inner, key
        inner = below


def _change(draw: st.DrawFn, document: dict[str, Any]) -> None:
    inner, key = draw(_place(document))
    value = inner[key]
    kind = draw(st.sampled_from(["replace", "delete", "nudge", "copy", "shuffle", "add"]))
    if kind == "nudge" and isinstance(value, (int, float)) and not isinstance(value, bool):
        factor = draw(st.sampled_from([-1, 0.5, 1 + 1e-8, 1 - 1e-8, 2, 1e9]))
        inner[key] = type(value)(value * factor)
    elif kind == "delete":
        del inner[key]
    elif kind == "copy":
        other, at = draw(_place(document))
        inner[key] = copy.deepcopy(other[at])
    elif kind == "shuffle" and isinstance(value, list):
        inner[key] = draw(st.permutations(value)) if len(value) < 30 else value[::-1]
    elif kind == "add" and isinstance(value, list):
        inner[key] = [*value, *value[:1], draw(st.sampled_from(HOSTILE))]
    elif kind == "add" and isinstance(value, dict):
        inner[key] = {**value, draw(st.sampled_from(["x", "", "$float", "leader"])): 1}
    else:
        inner[key] = copy.deepcopy(draw(st.sampled_from(HOSTILE)))


def _resealed(document: dict[str, Any]) -> None:
    """Write the fingerprints of what the instance has become, as whoever forges it would."""
    about = document.get("instance")
    content = about.get("content") if isinstance(about, dict) else None
    if isinstance(about, dict) and isinstance(content, dict):
        bare = {key: value for key, value in content.items() if key != "fingerprint"}
        try:
            seal = instance_from_document(Document("", "", bare)).fingerprint
        except InputError:
            return
        content["fingerprint"] = about["fingerprint"] = seal


@st.composite
def _damaged(draw: st.DrawFn) -> tuple[str, bytes]:
    kind = draw(st.sampled_from(sorted(plans())))
    document = copy.deepcopy(_written()[kind][0])
    if draw(st.integers(0, 2)):
        for _ in range(draw(st.integers(1, 3))):
            _change(draw, document)
        if draw(st.booleans()):
            _resealed(document)
        return kind, json.dumps(document).encode()
    data = encode_json(document)
    for _ in range(draw(st.integers(1, 2))):
        at = draw(st.integers(0, len(data)))
        end = min(len(data), at + draw(st.sampled_from([0, 1, 2, 10, 1000, 10**6])))
        data = data[:at] + draw(st.sampled_from(TOKENS)) + data[end:]
    return kind, data


def _is_true(plan: Plan) -> bool:
    best = optimum(plan.problem)
    if not plan.found:
        return best == float("inf")
    return plan.bound <= best * (1 + 1e-9) and (
        plan.status is not Status.OPTIMAL or plan.objective <= best * (1 + 1e-8)
    )


def _examine(folder: Path, capsys: pytest.CaptureFixture[str], kind: str, data: bytes) -> None:
    path, page = folder / "p.json", folder / "p.html"
    path.write_bytes(data)
    before = _written()[kind][1]
    began = time.perf_counter()
    codes = {
        "check": main(["check", str(path), "--work", "1000000"]),
        "show": main(["show", str(path)]),
    }
    told = capsys.readouterr().out
    codes["report"] = main(["report", str(path), "-o", str(page), "--force"])
    told += capsys.readouterr().out
    assert time.perf_counter() - began < _SECONDS
    try:
        plan = load_plan(path)
    except PlacementError:
        assert codes["check"] == 1
        assert codes["report"] == (1 if data else 0)  # an empty file is a result without rows
        return
    assert plan.claim or plan.bound == float("-inf")
    assert "optimal, proven" not in told
    assert "infeasible, proven" not in told
    if codes["check"] == 0:
        assert before.certificate is not None or before.status is Status.INFEASIBLE
        assert _is_true(plan)


@settings(max_examples=examples(500, 40), suppress_health_check=list(HealthCheck))
@given(damaged=_damaged())
def test_no_damage_proves_anything(
    tmp_path_factory: pytest.TempPathFactory,
    capsys: pytest.CaptureFixture[str],
    damaged: tuple[str, bytes],
) -> None:
    _examine(tmp_path_factory.getbasetemp(), capsys, *damaged)


@pytest.mark.parametrize("kind", sorted(plans()))
def test_the_files_themselves_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], kind: str
) -> None:
    """Without damage every kind is read, so that the fuzz starts from files that hold."""
    document, plan = _written()[kind]
    (tmp_path / "p.json").write_bytes(encode_json(document))
    assert load_plan(tmp_path / "p.json").status is plan.status
    proved = main(["check", str(tmp_path / "p.json")]) == 0
    assert proved == (plan.certified or kind == "none")
    _examine(tmp_path, capsys, kind, encode_json(document))
