"""What a watch uses, what it leaves out, and what it says."""

from __future__ import annotations

import itertools
import json
import math
import os
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from placement import Configuration, Instance, Options, Plan, Problem, Termination
from placement.errors import InputError, PlacementError
from placement.feasibility import violations
from placement.io.tables import parquet_bytes
from placement.methods import load_method
from placement.plan import objective
from placement.replay.decay import Decay
from placement.stability import Hysteresis, MovePrices, changes
from placement.watch import Store
from placement.watch.advice import advise, initial_state
from placement.watch.readings import interval_key
from placement.watch.store import read_log
from tests.watch.worlds import Run, csv_text, demand, drop, settings, world


def kinds(run: Run) -> list[tuple[str, str, str]]:
    return [report[:3] for report in run.reports]


def reference(tier: int, counts: np.ndarray, **more: object):
    """The recommendations, without any file or store."""
    asked = settings(tier, **more)
    state, found = initial_state(asked), []
    for i, table in enumerate(counts):
        state, advice = advise(asked, state, str(i), table)
        found.append(json.loads(json.dumps(advice.document)))
    return found


@pytest.mark.parametrize("tier", [1, 2, 3])
def test_one_file_per_interval(tmp_path: Path, tier: int) -> None:
    counts = demand(24)
    for i, table in enumerate(counts):
        drop(tmp_path / "in", f"{i:03}.csv", csv_text(world(), [i], table[None]))
    with Run(settings(tier), tmp_path / "in", tmp_path / "s.db") as run:
        run.look()
        assert run.shown == reference(tier, counts)
        assert not run.reports
        assert {document["action"] for document in run.shown} == {"start", "keep", "move"}
        run.look()
        assert len(run.shown) == 24
    documents, reports = read_log(tmp_path / "s.db")
    assert documents == reference(tier, counts)
    assert reports == []


def test_recommendations_hold_up_to_the_evaluator() -> None:
    """Gain, price and rule, each computed anew by brute force over every configuration."""
    asked = settings(3)
    instance, counts, decay = asked.instance, demand(20), 1.3
    problem = asked.problem
    every = []
    for replicas in itertools.combinations(range(6), 4):
        for voters in itertools.combinations(replicas, 3):
            for leader in voters:
                one = Configuration.of(leader, voters, replicas)
                if not violations(problem, one):
                    every.append(one)
    state = initial_state(asked)
    for i, table in enumerate(counts):
        before = state.current
        state, advice = advise(asked, state, str(i), table)
        weights = decay ** np.arange(-i, 1.0)
        rates = np.tensordot(weights, counts[: i + 1], 1) / weights.sum()
        now = problem.replace(instance=instance.replace(counts=rates, intervals=()))
        mean = {c: objective(now, c) / rates.sum() for c in every}
        assert advice.document["operations"] == pytest.approx(rates.sum())
        for each in advice.candidates:
            value = objective(now, each.configuration) / rates.sum()
            assert each.mean == pytest.approx(value, rel=1e-12)
        least = min(mean.values())
        assert min(each.mean for each in advice.candidates) == pytest.approx(least, rel=1e-12)
        if before is None:
            assert advice.action == "start"
            continue
        held = [c for c in every if c.replicas == before.replicas]
        same = [c for c in held if set(c.voters) == set(before.voters)]
        for kind, among in (("leader", same), ("roles", held), ("replicas", every)):
            best = min(objective(now, c) / rates.sum() for c in among)
            shown = [each.mean for each in advice.candidates if each.kind in ("keep", kind)]
            wider = [each.mean for each in advice.candidates]
            assert min(wider if kind == "replicas" else [*shown, *wider]) <= best * (1 + 1e-12)
        worth = [
            asked.rule.horizon * (advice.candidates[0].mean - each.mean) - each.price
            for each in advice.candidates
        ]
        assert [each.price for each in advice.candidates] == [
            asked.prices.of(changes(before, each.configuration)) for each in advice.candidates
        ]
        if advice.action == "move":
            assert worth[advice.chosen] == pytest.approx(max(worth))
            assert worth[advice.chosen] > 0
            assert advice.streak == 2
            last = advice.document["steps"][-1]
            assert set(last["replicas"]) == set(advice.document["replicas"])
            assert set(last["voters"]) == set(advice.document["voters"])
            assert last["leader"] == advice.document["leader"]
        else:
            assert max(worth) <= 1e-9 or advice.streak == 1


def test_an_interrupted_search_is_no_recommendation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A method answers Ctrl-C with the best so far; a watch must not go on from there."""
    counts, folder = demand(4), tmp_path / "in"
    for i, table in enumerate(counts):
        drop(folder, f"{i}.csv", csv_text(world(), [i], table[None]))
    true, calls = load_method("exhaustive"), []

    def call(problem: Problem, options: Options) -> Plan:
        calls.append(problem)
        plan = true.call(problem, options)
        return plan.replace(termination=Termination.INTERRUPTED) if len(calls) == 5 else plan

    asked = settings(2, method="exhaustive")
    with monkeypatch.context() as patch, Run(asked, folder, tmp_path / "s.db") as run:
        patch.setattr("placement.watch.advice.load_method", lambda _: replace(true, call=call))
        with pytest.raises(KeyboardInterrupt):
            run.look()
    assert 0 < len(run.shown) < 4
    with Run(asked, folder, tmp_path / "s.db") as run:
        run.look()
    assert read_log(tmp_path / "s.db")[0] == reference(2, counts, method="exhaustive")


def test_extremes_of_the_rule() -> None:
    counts = demand(16)
    never = reference(3, counts, rule=Hysteresis(0.0))
    assert {d["action"] for d in never} == {"start", "keep"}
    forbidden = reference(3, counts, prices=MovePrices(*[math.inf] * 4))
    assert {d["action"] for d in forbidden} == {"start", "keep"}
    assert "forbidden" in " ".join(forbidden[5]["reasons"])
    # for ever and from the last interval alone: the best of the interval before, each time
    eager = reference(3, counts, rule=Hysteresis(math.inf), decay=Decay(math.inf))
    for document in eager[1:]:
        assert document["then_ms"] == min(c["mean_ms"] for c in document["candidates"])
    json.dumps(eager, allow_nan=False)


def test_a_start_that_breaks_the_rules_is_left(tmp_path: Path) -> None:
    start = Configuration.of(0, [0, 1, 2], [0, 1, 2, 3])  # two voters of three in country x
    found = reference(3, demand(2), start=start, rule=Hysteresis(0.0), prices=MovePrices(9.0))
    assert found[0]["action"] == "move"
    assert "breaks the constraints" in found[0]["reasons"][0]


def test_quiet_intervals(tmp_path: Path) -> None:
    counts = np.concatenate([np.zeros((2, 6, 5)), demand(3), np.zeros((2, 6, 5))])
    found = reference(2, counts)
    assert [d["action"] for d in found[:3]] == ["wait", "wait", "start"]
    assert found[0]["leader"] is None
    assert found[0]["reasons"] == ["Nothing was issued yet: there is nothing to go by."]
    assert found[-1]["operations"] > 0


def test_late_duplicate_and_conflicting_intervals(tmp_path: Path) -> None:
    counts, folder = demand(9), tmp_path / "in"
    for i in (0, 1, 3, 4):
        drop(folder, f"{i}.csv", csv_text(world(), [i], counts[i][None]))
    with Run(settings(2), folder, tmp_path / "s.db") as run:
        run.look()
        drop(folder, "2.csv", csv_text(world(), [2], counts[2][None]))
        drop(folder, "copy of 4.csv", csv_text(world(), [4], counts[4][None]))
        drop(folder, "other 3.csv", csv_text(world(), [3], counts[8][None]))
        drop(folder, "5.csv", csv_text(world(), [5], counts[5][None]))
        run.look()
        assert sorted(kinds(run)) == [
            ("conflict", "other 3.csv", "3"),
            ("duplicate", "copy of 4.csv", "4"),
            ("late", "2.csv", "2"),
        ]
        assert [d["interval"] for d in run.shown] == ["0", "1", "3", "4", "5"]
        run.look()
        assert len(run.reports) == 3
    # nothing of them was merged: the same as if they had never come
    used = reference(2, counts[[0, 1, 3, 4, 5]])
    for document, wanted in zip(run.shown, used, strict=True):
        assert {**wanted, "interval": document["interval"]} == document
    # and a second run says nothing again
    with Run(settings(2), folder, tmp_path / "s.db") as run:
        run.look()
        assert (run.shown, run.reports) == ([], [])
    assert len(read_log(tmp_path / "s.db")[1]) == 3


BAD = {
    "unknown client": "interval,client,operation,count\n1,nobody,weak_read,1\n",
    "unknown operation": "interval,client,operation,count\n1,client a,read,1\n",
    "negative": "interval,client,operation,count\n1,client a,weak_read,-1\n",
    "infinite": "interval,client,operation,count\n1,client a,weak_read,inf\n",
    "not a number": "interval,client,operation,count\n1,client a,weak_read,nan\n",
    "missing value": "interval,client,operation,count\n1,client a,weak_read,\n",
    "counted twice": "interval,client,operation,count\n1,client a,weak_read,1\n"
    "1,client a,weak_read,1\n",
    "not a place in time": "interval,client,operation,count\nlater,client a,weak_read,1\n",
    "another length": "interval,client,operation,count\n1,client a,weak_read\n",
    "no such column": "client,operation,count\nclient a,weak_read,1\n",
    "unknown column": "interval,client,operations,count\n1,client a,weak_read,1\n",
    "several databases": "database,interval,client,operation,count\nd,1,client a,weak_read,1\n",
    "two kinds": "interval,client,operation,count\n1,client a,weak_read,1\n"
    "2026-01-01,client a,weak_read,1\n",
    "no rows": "interval,client,operation,count\n",
    "empty": "\n",
}


@pytest.mark.parametrize("words", BAD)
def test_malformed_files_are_reported_and_skipped(tmp_path: Path, words: str) -> None:
    counts, folder = demand(3), tmp_path / "in"
    for i in (0, 2):
        drop(folder, f"{i}.csv", csv_text(world(), [i], counts[i][None]))
    drop(folder, "bad.csv", BAD[words])
    with Run(settings(2), folder, tmp_path / "s.db") as run:
        run.look()
        ((kind, source, _, message),) = run.reports
        assert (kind, source) == ("malformed", "bad.csv")
        assert words in message
        assert [d["interval"] for d in run.shown] == ["0", "2"]


def test_one_bad_interval_of_a_file_does_not_spoil_the_others(tmp_path: Path) -> None:
    counts = demand(3)
    text = csv_text(world(), [0, 1, 2], counts).replace("\n1,client c,", "\n1,client q,", 1)
    drop(tmp_path / "in", "all.csv", text)
    with Run(settings(2), tmp_path / "in", tmp_path / "s.db") as run:
        run.look()
        assert [d["interval"] for d in run.shown] == ["0", "2"]
        assert kinds(run) == [("malformed", "all.csv", "1")]
        # mended before anything later is used it would have counted; now it is late
        drop(tmp_path / "in", "all.csv", csv_text(world(), [0, 1, 2], counts))
        run.look()
        assert kinds(run)[1:] == [("late", "all.csv", "1")]


def test_a_mended_file_counts_if_it_comes_in_time(tmp_path: Path) -> None:
    counts = demand(2)
    drop(tmp_path / "in", "0.csv", csv_text(world(), [0], counts[:1]))
    drop(tmp_path / "in", "1.csv", "interval,client,operation,count\n1,nobody,weak_read,1\n")
    with Run(settings(2), tmp_path / "in", tmp_path / "s.db") as run:
        run.look()
        drop(tmp_path / "in", "1.csv", csv_text(world(), [1], counts[1:]))
        run.look()
        assert run.shown == reference(2, counts)


def test_files_that_are_not_whole_wait(tmp_path: Path) -> None:
    counts, folder = demand(2), tmp_path / "in"
    folder.mkdir()
    text = csv_text(world(), [0], counts[:1])
    (folder / "0.csv").write_text(text[:-1])
    for name in (".1.csv", "1.csv.part", "1.csv.tmp", "1.csv~"):
        (folder / name).write_text(csv_text(world(), [1], counts[1:]))
    (folder / "folder.csv").mkdir()
    with Run(settings(2), folder, tmp_path / "s.db") as run:
        run.watch.resume()
        assert run.watch.look().waiting == ("0.csv",)
        assert (run.shown, kinds(run)) == ([], [("incomplete", "0.csv", "")])
        (folder / "0.csv").write_text(text)
        assert run.watch.look().waiting == ()
        assert run.shown == reference(2, counts[:1])


def test_young_files_wait_until_they_have_settled(tmp_path: Path) -> None:
    counts, folder = demand(1), tmp_path / "in"
    drop(folder, "0.csv", csv_text(world(), [0], counts))
    with Run(settings(2), folder, tmp_path / "s.db", settle=1000.0) as run:
        assert run.watch.look().waiting == ("0.csv",)
        os.utime(folder / "0.csv", (time.time() - 2000, time.time() - 2000))
        assert run.watch.look().used == 1


def test_strange_files_are_named_once(tmp_path: Path) -> None:
    drop(tmp_path / "in", "README", "hello\n")
    with Run(settings(2), tmp_path / "in", tmp_path / "s.db") as run:
        run.look().look()
        assert kinds(run) == [("ignored", "README", "")]


def test_names_of_any_bytes(tmp_path: Path) -> None:
    counts, folder = demand(2), tmp_path / "in"
    folder.mkdir()
    text = csv_text(world(), [0], counts[:1]).encode()
    try:
        Path(os.fsdecode(bytes(folder) + b"/\xff0.csv")).write_bytes(text)
    except OSError:
        pytest.skip("a file system of texts")
    Path(os.fsdecode(bytes(folder) + b"/\xff1.csv")).write_bytes(text)
    (folder / "2.jsonl").write_text('{"interval": 1, "client": "client a", "\\ud800": 1}\n')
    with Run(settings(2), folder, tmp_path / "s.db") as run:
        run.look().look()
        assert kinds(run) == [("malformed", "2.jsonl", ""), ("duplicate", "\\xff1.csv", "0")]
        assert len(run.shown) == 1


def test_the_smallest_world(tmp_path: Path) -> None:
    alone = Instance(
        sites=("s",), clients=("k",), client_rtt=[[0.0]], site_rtt=[[0.0]], counts=np.ones((1, 5))
    )
    asked = settings(problem=Problem(alone, replicas=1, voters=1))
    (tmp_path / "in").mkdir()
    with Run(asked, tmp_path / "in", tmp_path / "s.db") as run:
        run.look()
        assert (run.shown, run.reports) == ([], [])
        text = "interval,client,operation,count\n"
        for i in range(3):
            drop(tmp_path / "in", f"{i}.csv", f"{text}{i},k,single_group,5\n")
        run.look()
        assert [document["action"] for document in run.shown] == ["start", "keep", "keep"]
        assert [document["then_ms"] for document in run.shown] == [0.0, 0.0, 0.0]


def test_the_forms_of_a_file_say_the_same(tmp_path: Path) -> None:
    counts, instance = demand(4), world()
    names = [operation.name for operation in instance.operations]
    labels = [f"2026-03-01T00:{30 * i % 60:02}Z" for i in range(2)] + [
        "2026-03-01T01:00+00:00",
        "5",
    ]
    wide = ["interval,client," + ",".join(names)]
    lines, rows = [], []
    for label, table in zip(labels[:3], counts[:3], strict=True):
        for client, row in zip(instance.clients, table, strict=True):
            wide.append(f"{label},{client}," + ",".join(map(repr, row.tolist())))
            cells = dict(zip(names, row.tolist(), strict=True))
            lines.append(json.dumps({"interval": label, "client": client, **cells}))
            rows.append((label, client, *row.tolist()))
    found = []
    for suffix, content in (
        ("csv", ("\n".join(wide) + "\n").encode()),
        ("tsv", ("\n".join(wide).replace(",", "\t") + "\n").encode()),
        ("jsonl", ("\n".join(lines) + "\n").encode()),
        ("parquet", parquet_bytes(["interval", "client", *names], rows)),
    ):
        folder = tmp_path / suffix
        folder.mkdir()
        (folder / f"all.{suffix}").write_bytes(content)
        with Run(settings(2), folder, tmp_path / f"{suffix}.db") as run:
            run.look()
            assert not run.reports
            found.append(run.shown)
    assert found[0] == found[1] == found[2] == found[3]
    assert len(found[0]) == 3
    # a series of times takes no numbers
    drop(tmp_path / "csv", "more.csv", csv_text(instance, ["5"], counts[3:]))
    with Run(settings(2), tmp_path / "csv", tmp_path / "csv.db") as run:
        run.look()
        assert kinds(run) == [("malformed", "more.csv", "5")]


def test_grace_puts_right_what_comes_in_the_wrong_order(tmp_path: Path) -> None:
    counts, folder = demand(6), tmp_path / "in"
    with_grace = settings(2, grace=2)
    folder.mkdir()
    with Run(with_grace, folder, tmp_path / "s.db") as run:
        for i in (1, 0, 3, 2, 5, 4):
            drop(folder, f"{i}.csv", csv_text(world(), [i], counts[i][None]))
            look = run.watch.look()
            assert look.held <= 2
        assert [d["interval"] for d in run.shown] == ["0", "1", "2", "3"]
        assert not run.reports
    assert run.shown == reference(2, counts)[:4]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_table_that_grows(tmp_path: Path, form: str) -> None:
    """Row by row, byte by byte: an interval counts once a row of the next one is whole."""
    counts, instance, path = demand(5), world(), tmp_path / f"all.{form}"
    text = csv_text(instance, range(5), counts)
    if form == "jsonl":
        head, *lines = text.strip().split("\n")
        text = "".join(
            json.dumps(dict(zip(head.split(","), line.split(","), strict=True))) + "\n"
            for line in lines
        )
    run = Run(settings(2), path, tmp_path / "s.db", follow=True)
    with run:
        run.look()
        rng = np.random.default_rng(0)
        cuts = sorted({*rng.integers(0, len(text), 40).tolist(), len(text)})
        for cut in cuts:
            path.write_text(text[:cut])
            run.watch.look()
            whole = text[: text[:cut].rfind("\n") + 1].split("\n")
            seen = {line.split(",")[0] for line in whole[1:] if line} if form == "csv" else None
            if seen is not None:
                assert len(run.shown) == max(0, len(seen) - 1)
        assert not run.reports
        assert run.shown == reference(2, counts)[:4]
    with Run(settings(2), path, tmp_path / "s.db", final=True) as run:
        run.look()
        assert run.shown == reference(2, counts)[4:]
        assert not run.reports


def test_a_table_in_which_things_went_wrong(tmp_path: Path) -> None:
    counts, path = demand(9), tmp_path / "all.csv"
    parts = csv_text(world(), range(7), counts[:7]).split("\n")
    rows = {i: [line for line in parts[1:] if line.startswith(f"{i},")] for i in range(7)}
    head = parts[0]
    lines = [head, *rows[0], *rows[1][:2], "1,cut off", *rows[1][2:], *rows[2], *rows[3]]
    lines += [*rows[2], *rows[3][:1]]  # 2 again, whole; 3 again, in part
    lines += [*rows[4], "x,client a,weak_read,1", *rows[5], *rows[6], *rows[0]]
    path.write_text("\n".join(lines) + "\n")
    with Run(settings(2), path, tmp_path / "s.db", final=True) as run:
        run.look().look()
        assert [d["interval"] for d in run.shown] == ["0", "2", "3", "6"]
        assert kinds(run) == [
            ("malformed", "all.csv", "1"),
            ("duplicate", "all.csv", "2"),
            ("conflict", "all.csv", "3"),
            ("malformed", "all.csv", "4"),
            ("malformed", "all.csv", "5"),
            ("duplicate", "all.csv", "0"),
        ]
    with Run(settings(2), path, tmp_path / "s.db", final=True) as run:
        run.look()
        assert (run.shown, run.reports) == ([], [])
    used = reference(2, counts[[0, 2, 3, 6]])
    documents, _ = read_log(tmp_path / "s.db")
    assert [d["then_ms"] for d in documents] == [d["then_ms"] for d in used]


def test_a_malformed_run_that_is_mended_at_once_counts(tmp_path: Path) -> None:
    counts, path = demand(3), tmp_path / "all.csv"
    lines = csv_text(world(), range(3), counts).strip().split("\n")
    rows = {i: [line for line in lines[1:] if line.startswith(f"{i},")] for i in range(3)}
    text = [lines[0], *rows[0], rows[1][0], "1,nobody,weak_read,1", *rows[1][1:]]
    path.write_text("\n".join(text) + "\n")
    with Run(settings(2), path, tmp_path / "s.db", final=True) as run:
        run.look()
        assert kinds(run) == [("malformed", "all.csv", "1")]
        path.write_text("\n".join([lines[0], *rows[0], *rows[1], *rows[2]]) + "\n")
        run.look().look()
        assert run.shown == reference(2, counts)
        assert len(run.reports) == 1


def test_the_state_of_another_question_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "s.db"
    Store.open(state, settings()).close()
    Store.open(state, settings()).close()
    busy = settings().problem.instance.replace(counts=np.full((6, 5), 7.0))
    Store.open(state, settings(problem=settings().problem.replace(instance=busy))).close()
    far = busy.replace(client_rtt=busy.client_rtt + 1.0)
    for field, other in (
        ("instance", settings(problem=settings().problem.replace(instance=far))),
        ("problem", settings(problem=Problem(world(), replicas=5, voters=3))),
        ("decay", settings(decay=Decay(2.0))),
        ("horizon", settings(rule=Hysteresis(5.0, 2))),
        ("confirm", settings(rule=Hysteresis(4.0))),
        ("prices", settings(prices=MovePrices())),
        ("method", settings(method="exhaustive")),
        ("start", settings(start=Configuration.of(0, [0, 2, 4], [0, 2, 4, 5]))),
        ("grace", settings(grace=1)),
    ):
        with pytest.raises(InputError, match="a state of other settings") as caught:
            Store.open(state, other)
        assert caught.value.field == field
        assert str(state) in str(caught.value)


def test_other_files_are_no_state(tmp_path: Path) -> None:
    text = tmp_path / "text.db"
    text.write_text("no database, and longer than the header of one " * 20)
    with pytest.raises(InputError, match="cannot be used"):
        Store.open(text, settings())
    other = tmp_path / "other.db"
    link = sqlite3.connect(other)
    link.execute("CREATE TABLE mine (x)")
    link.commit()
    link.close()
    before = other.read_bytes()
    with pytest.raises(InputError, match="another kind"):
        Store.open(other, settings())
    assert other.read_bytes() == before
    for nowhere in (tmp_path, tmp_path / "no" / "s.db"):
        with pytest.raises(InputError, match="no place for a state file"):
            Store.open(nowhere, settings())
    with pytest.raises(InputError, match="no such state file"):
        read_log(tmp_path / "none.db")


def test_two_watches_on_one_state_do_not_mix(tmp_path: Path) -> None:
    counts, folder = demand(3), tmp_path / "in"
    drop(folder, "0.csv", csv_text(world(), [0], counts[:1]))
    with (
        Run(settings(2), folder, tmp_path / "s.db") as one,
        Run(settings(2), folder, tmp_path / "s.db") as other,
    ):
        one.look()
        drop(folder, "1.csv", csv_text(world(), [1], counts[1:2]))
        with pytest.raises(PlacementError, match="another watch writes"):
            other.look()
    assert len(read_log(tmp_path / "s.db")[0]) == 1


@pytest.mark.parametrize(
    ("label", "key"),
    [
        ("7", ("number", 7)),
        ("-3", ("number", -3)),
        ("1970-01-01", ("time", 0)),
        ("1970-01-01T00:00:00.000001Z", ("time", 1)),
        ("1969-12-31T23:00-01:00", ("time", 0)),
    ],
)
def test_places_in_time(label: str, key: tuple[str, int]) -> None:
    assert interval_key(label) == key


@pytest.mark.parametrize("label", ["", "monday", "1.5", "1_000", "2026-13-01", "9" * 30])
def test_no_places_in_time(label: str) -> None:
    with pytest.raises(InputError):
        interval_key(label)


@pytest.mark.parametrize("seed", range(4))
def test_every_arrival_is_used_or_reported(tmp_path: Path, seed: int) -> None:
    """Random deliveries with restarts between, against a clerk with a list."""
    rng = np.random.default_rng(seed)
    counts, folder = demand(12), tmp_path / "in"
    folder.mkdir()
    used: list[int] = []  # what the clerk would use, in order
    versions: dict[int, int] = {}
    expected: list[tuple[str, str, str]] = []
    reports: list[tuple[str, str, str]] = []
    shown: list[str] = []
    files = 0
    for _ in range(12):
        fresh: list[tuple[int, str, int, bool]] = []
        for _ in range(rng.integers(0, 4)):
            name, version = f"{rng.integers(1000):03}-{files}.csv", int(rng.integers(2))
            label, bad = int(rng.integers(0, 12)), bool(rng.random() < 0.15)
            text = csv_text(world(), [label], counts[[(label + version) % 12]])
            drop(folder, name, text.replace("client c", "nobody") if bad else text)
            fresh.append((label, name, version, bad and "client c" in text))
            files += 1
        for label, name, version, bad in sorted(fresh):
            if bad:
                expected.append(("malformed", name, str(label)))
            elif label in versions:
                same = versions[label] == version
                expected.append(("duplicate" if same else "conflict", name, str(label)))
            elif used and label < used[-1]:
                expected.append(("late", name, str(label)))
            else:
                used.append(label)
                versions[label] = version
        with Run(settings(1), folder, tmp_path / "s.db") as run:
            run.look()
            reports += kinds(run)
            shown += [str(document["interval"]) for document in run.shown]
    assert shown == [str(label) for label in used]
    assert reports == expected
    assert len(used) + len(expected) == files
    wanted = reference(1, np.stack([counts[(label + versions[label]) % 12] for label in used]))
    documents, _ = read_log(tmp_path / "s.db")
    assert [d["then_ms"] for d in documents] == [d["then_ms"] for d in wanted]
