"""The file that holds the state of a watch."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

from placement import Configuration, Problem
from placement.errors import InputError, PlacementError
from placement.overtime.decayed_counts import Decay
from placement.overtime.moves import Hysteresis, MovePrices
from placement.overtime.watch import Store
from placement.overtime.watch.state_store import read_log
from tests.watch.worlds import Run, csv_text, demand, drop, settings, world


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
