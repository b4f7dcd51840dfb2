"""The file that holds the state of a watch."""

from __future__ import annotations

import os
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from placement import Configuration, Problem
from placement.errors import InputError, PlacementError
from placement.overtime.decayed_counts import Decay
from placement.overtime.moves import Hysteresis, MovePrices
from placement.overtime.watch import Store
from placement.overtime.watch.arrivals import IntervalKey
from placement.overtime.watch.state_store import Rejection, read_log
from tests.overtime.watch.worlds import Run, csv_text, demand, drop, settings, world


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
        with pytest.raises(InputError, match="the state file has other settings") as caught:
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


FORGED = [
    ("state", "UPDATE state SET sequence = 9"),
    ("state", "DELETE FROM state"),
    ("state.sequence", "DELETE FROM recommendation WHERE sequence = 1"),
    ("state", "UPDATE state SET demand = 'no JSON'"),
    ("state", "UPDATE state SET demand = json_set(demand, '$.counts[0]', 3.25)"),
    ("state", "UPDATE state SET current = '[0, [0, 2, 3], [0, 2, 3, 5]]'"),
    ("state", "UPDATE state SET current = x'00ff'"),
    ("state", "UPDATE state SET streak = 1 - streak"),
    ("state.shown", "UPDATE state SET shown = 99"),
    ("state.shown", "UPDATE state SET shown = 'all'"),
    ("recommendation 3", "UPDATE recommendation SET kind = 'moon' WHERE sequence = 3"),
    ("recommendation 3", "UPDATE recommendation SET document = '{' WHERE sequence = 3"),
    ("recommendation 3", "UPDATE recommendation "
     "SET document = json_set(document, '$.then_ms', 1.5) WHERE sequence = 3"),
    ("recommendation 2", "UPDATE recommendation SET source = 'elsewhere' WHERE sequence = 2"),
    ("recommendation 2", "UPDATE recommendation SET digest = x'00' WHERE sequence = 2"),
    ("meta.settings", "UPDATE meta SET value = '{' WHERE key = 'settings'; "
     "UPDATE meta SET value = 'x' WHERE key = 'fingerprint'"),
]  # fmt: skip


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state after three intervals, with the folder they came from."""
    place = tmp_path_factory.mktemp("three")
    for i, table in enumerate(demand(3)):
        drop(place / "in", f"{i}.csv", csv_text(world(), [i], table[None]))
    with Run(settings(2), place / "in", place / "s.db") as run:
        run.look()
    return place


@pytest.mark.parametrize(("field", "forgery"), FORGED)
def test_a_state_that_no_watch_wrote_is_refused(
    three: Path, tmp_path: Path, field: str, forgery: str
) -> None:
    """The error names file, table, column and value; nothing is recommended from it."""
    shutil.copytree(three, tmp_path / "it")
    state, folder = tmp_path / "it" / "s.db", tmp_path / "it" / "in"
    link = sqlite3.connect(state)
    link.executescript(forgery)
    link.commit()
    link.close()
    os.utime(folder / "0.csv", (1, 1))  # so that an interval that was used is looked up
    (folder / "1.csv").write_text((folder / "1.csv").read_text() + "\n")
    with (
        pytest.raises(InputError, match="not a state file of a watch") as caught,
        Run(settings(2), folder, state) as run,
    ):
        run.look()
    assert caught.value.field == field
    assert str(state) in str(caught.value)


def test_a_log_that_no_watch_wrote_is_refused(three: Path, tmp_path: Path) -> None:
    state = tmp_path / "s.db"
    shutil.copy(three / "s.db", state)
    link = sqlite3.connect(state)
    link.executescript("UPDATE recommendation SET document = '{}'")
    link.close()
    with pytest.raises(InputError, match="not a state file of a watch"):
        read_log(state)


def test_changed_marks_of_files_let_the_files_be_read_again(three: Path, tmp_path: Path) -> None:
    shutil.copytree(three, tmp_path / "it")
    link = sqlite3.connect(tmp_path / "it" / "s.db")
    link.executescript("UPDATE file SET size = 'big', digest = x'00'")
    link.close()
    with Run(settings(2), tmp_path / "it" / "in", tmp_path / "it" / "s.db") as run:
        run.look()
        assert run.shown == run.reports == []


def test_a_watch_whose_state_another_one_changes_is_told_so(tmp_path: Path) -> None:
    """The file is healthy, and no reason to begin a new one, in each read and write."""
    counts, folder, state = demand(2), tmp_path / "in", tmp_path / "s.db"
    drop(folder, "0.csv", csv_text(world(), [0], counts[:1]))
    with Run(settings(2), folder, state) as behind:
        with Run(settings(2), folder, state) as ahead:
            ahead.look()
            ahead.store.record_deployed(
                Configuration.of(0, [0, 2, 3], [0, 2, 3, 5]), "it", "abcdef"
            )
        for ask in (
            lambda: behind.store.known(IntervalKey("number", 0)),
            behind.store.files,
            behind.store.not_shown,
            behind.store.shown,
            lambda: behind.store.report(Rejection("late", "0.csv", "", "late"), "x"),
            behind.look,
        ):
            with pytest.raises(PlacementError, match="another watch writes to this state file"):
                ask()
    with Run(settings(2), folder, state) as after:
        assert after.store.sequence == 1


def test_watches_that_start_together_leave_one_whole_state(tmp_path: Path) -> None:
    counts, folder, state = demand(12), tmp_path / "in", tmp_path / "s.db"
    for i, table in enumerate(counts):
        drop(folder, f"{i:02d}.csv", csv_text(world(), [i], table[None]))
    start = threading.Barrier(4)

    def watch(_: int) -> str:
        start.wait()
        try:
            with Run(settings(2), folder, state) as run:
                run.look()
        except PlacementError as error:
            return str(error)
        return ""

    with ThreadPoolExecutor(4) as pool:
        said = list(pool.map(watch, range(4)))
    assert "" in said
    assert set(said) <= {"", f"{state}: another watch writes to this state file"}
    assert len(read_log(state)[0]) == 12
