"""Tables of keys: order, deduplication, resuming after a kill, refusals."""

from __future__ import annotations

import csv
import dataclasses
import io
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from formulations.quorumstore.enumeration import solve
from formulations.quorumstore.keys import read_keys, row_names, solve_batch, solve_keys
from placement.errors import InputError
from placement.quorumstore import Goal, QuorumProblem, StoreRules, Target
from placement.support.status import Termination

ROOT = Path(__file__).resolve().parents[2]
SITES = tuple("abcdef")


def store(**options):
    rng = np.random.default_rng(0)
    rtt = rng.uniform(5, 200, (6, 6)).round(1)
    return QuorumProblem(rtt, [1] * 6, [0] * 6, sites=SITES, rules=StoreRules(True), **options)


def key_table(count, seed=1):
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"key": [f"k{index}" for index in range(count)]})
    for site in SITES:
        frame[f"reads:{site}"] = rng.integers(0, 9, count)
    frame["writes:a"] = rng.integers(0, 3, count)
    return frame


def rows_of(path):
    return list(csv.DictReader(io.StringIO(Path(path).read_text())))


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "keys.csv"
    key_table(60).to_csv(path, index=False)
    return path


def test_every_key_gets_its_optimum(source, tmp_path):
    problem, target = store(), tmp_path / "out.csv"
    summary = solve_keys(problem, source, target, batch=7)
    table, rows = key_table(60), rows_of(target)
    assert [row["key"] for row in rows] == list(table["key"])
    assert tuple(rows[0]) == row_names()
    assert (summary.keys, summary.resumed, summary.termination) == (60, 0, Termination.FINISHED)
    for row, (_, key) in zip(rows, table.iterrows(), strict=True):
        reads = [key[f"reads:{site}"] for site in SITES]
        plan = solve(problem.with_demand(reads, [key["writes:a"], 0, 0, 0, 0, 0]))
        assert row["replicas"].split(";") == list(plan.replicas)
        assert float(row["value"]) == plan.value
        assert (int(row["n"]), int(row["r"])) == (len(plan.replicas), plan.read_quorum)
        assert float(row["worst_read_ms"]) == max(e.read_threshold for e in plan.losses)
    assert not list(tmp_path.glob("*.part"))
    assert not list(tmp_path.glob(".*"))


def test_proportional_keys_are_solved_once(tmp_path):
    """Demands that differ by a factor share a solution; identical ones too, across batches."""
    table = key_table(5)
    scaled = table.copy()
    scaled["key"] = scaled["key"] + "x"
    scaled.iloc[:, 1:] *= 7
    path, target = tmp_path / "k.csv", tmp_path / "o.csv"
    pd.concat([table, scaled, table.assign(key=lambda t: t["key"] + "y")]).to_csv(path, index=False)
    summary = solve_keys(store(), path, target, batch=4)
    assert (summary.keys, summary.solved) == (15, 5)
    rows = rows_of(target)
    for first, second, third in zip(rows[:5], rows[5:10], rows[10:], strict=True):
        assert {**first, "key": ""} == {**second, "key": ""} == {**third, "key": ""}


def test_processes_and_parquet_give_the_same(source, tmp_path):
    key_table(60).to_parquet(tmp_path / "keys.parquet")
    solve_keys(store(), source, tmp_path / "one.csv", batch=9)
    solve_keys(store(), tmp_path / "keys.parquet", tmp_path / "two.parquet", batch=9, processes=2)
    two = pd.read_parquet(tmp_path / "two.parquet")
    for row, other in zip(rows_of(tmp_path / "one.csv"), two.to_dict("records"), strict=True):
        for name, cell in row.items():
            kind = type(other[name])
            assert kind(cell) == other[name]


def test_a_key_called_na_is_a_key(tmp_path):
    """Only an empty cell is missing."""
    key_table(3).assign(key=["NA", "null", "1e3"]).to_csv(tmp_path / "k.csv", index=False)
    (batch,) = read_keys(tmp_path / "k.csv", SITES)
    assert batch.names == ("NA", "null", "1e3")


def test_keys_without_requests_and_without_a_solution(tmp_path):
    table = key_table(3)
    table.loc[1, table.columns[1:]] = 0
    table.to_csv(tmp_path / "k.csv", index=False)
    solve_keys(store(), tmp_path / "k.csv", tmp_path / "o.csv")
    assert [row["status"] for row in rows_of(tmp_path / "o.csv")] == [
        "optimal",
        "no requests",
        "optimal",
    ]
    bounded = store(goal=Goal(Target.READS, read_bound=0.5))
    solve_keys(bounded, tmp_path / "k.csv", tmp_path / "b.csv")
    assert {row["status"] for row in rows_of(tmp_path / "b.csv")} == {"infeasible", "no requests"}
    impossible = dataclasses.replace(store(), rules=StoreRules(max_replicas=2))
    assert (
        solve_batch(impossible, np.ones((1, 6), int), np.ones((1, 6), int))[0].status
        == "infeasible"
    )


class Stop(BaseException):
    """Stands for a crash in the middle."""


def test_interrupted_run_is_continued(source, tmp_path):
    """Finished batches are not solved again, and the table equals that of an uninterrupted run.

    What was cut off in the middle of a row is no row.
    """
    target, rows = tmp_path / "out.csv", tmp_path / "out.csv.part"

    def crash(state):
        if state.keys >= 20:
            raise Stop

    with pytest.raises(Stop):
        solve_keys(store(), source, target, batch=5, progress=crash)
    assert not target.exists()
    rows.write_bytes(rows.read_bytes()[:-1])
    summary = solve_keys(store(), source, target, batch=5)
    assert 14 <= summary.resumed < 20
    assert summary.keys == 60
    solve_keys(store(), source, tmp_path / "straight.csv", batch=5)
    assert target.read_bytes() == (tmp_path / "straight.csv").read_bytes()


def test_ctrl_c_keeps_what_is_done(source, tmp_path):
    def interrupt(state):
        if state.keys >= 15:
            raise KeyboardInterrupt

    summary = solve_keys(store(), source, tmp_path / "o.csv", batch=5, progress=interrupt)
    assert summary.termination is Termination.INTERRUPTED
    assert not (tmp_path / "o.csv").exists()
    assert solve_keys(store(), source, tmp_path / "o.csv", batch=5).resumed == 15


def test_a_different_run_is_not_continued(source, tmp_path):
    def interrupt(state):
        raise KeyboardInterrupt

    solve_keys(store(), source, tmp_path / "o.csv", batch=5, progress=interrupt)
    other = dataclasses.replace(store(), rules=StoreRules(False))
    with pytest.raises(InputError, match="different run"):
        solve_keys(other, source, tmp_path / "o.csv", batch=5)
    key_table(60, seed=2).to_csv(source, index=False)
    with pytest.raises(InputError, match="different run"):
        solve_keys(store(), source, tmp_path / "o.csv", batch=5)


def test_existing_target_is_kept(source, tmp_path):
    (tmp_path / "o.csv").write_text("mine")
    with pytest.raises(InputError):
        solve_keys(store(), source, tmp_path / "o.csv")
    assert (tmp_path / "o.csv").read_text() == "mine"
    solve_keys(store(), source, tmp_path / "o.csv", force=True)
    assert len(rows_of(tmp_path / "o.csv")) == 60


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.rename(columns={"reads:a": "reads:z"}), "reads:z"),
        (lambda t: t.rename(columns={"key": "name"}), "key"),
        (lambda t: t.assign(**{"reads:b": -1}), "row 2.*-1"),
        (lambda t: t.assign(**{"reads:b": [1, 2, 2.5, 4]}), "row 4.*2.5"),
        (lambda t: t.assign(**{"reads:b": ["1", "x", "2", "3"]}), "row 3.*not a number.*x"),
        (lambda t: t.assign(key=["a", None, "b", "c"]), "row 3.*no name"),
        (lambda t: t.iloc[:0], "no rows"),
        (lambda t: t.assign(**{"reads:b": 2**50}), "too many"),
    ],
)
def test_bad_tables(tmp_path, change, words):
    path = tmp_path / "bad.csv"
    change(key_table(4)).to_csv(path, index=False)
    with pytest.raises(InputError, match=words):
        list(read_keys(path, SITES))


def test_bad_files(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        solve_keys(store(), tmp_path / "none.csv", tmp_path / "o.csv")
    (tmp_path / "x.parquet").write_bytes(b"not parquet")
    with pytest.raises(InputError, match="not a Parquet"):
        list(read_keys(tmp_path / "x.parquet", SITES))
    for options in ({"batch": 0}, {"processes": 0}):
        with pytest.raises(InputError, match="at least 1"):
            solve_keys(store(), tmp_path / "none.csv", tmp_path / "o.csv", **options)


def test_kind_and_size_are_checked_before_reading(source, tmp_path, monkeypatch):
    """A pipe is not waited for, a device is not read, and a table has a largest size."""
    os.mkfifo(tmp_path / "pipe.csv")
    for path, words in ((tmp_path / "pipe.csv", "a pipe"), (Path("/dev/zero"), "a device")):
        with pytest.raises(InputError, match=words):
            list(read_keys(path, SITES))
        with pytest.raises(InputError, match=words):
            solve_keys(store(), path, tmp_path / "o.csv")
    monkeypatch.setattr("placement.io.formats.files.LARGEST_FILE", 100)
    with pytest.raises(InputError, match="too large"):
        list(read_keys(source, SITES))


def test_a_broken_file_of_rows_is_of_another_run(source, tmp_path):
    for text in ("", "[1]", "9" * 5000 + "\n"):
        (tmp_path / "o.csv.part").write_text(text)
        with pytest.raises(InputError, match="a different run"):
            solve_keys(store(), source, tmp_path / "o.csv")
