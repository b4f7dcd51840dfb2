"""``placement watch`` from the outside, and the file that holds its state."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from placement import Configuration, Problem, solve
from placement.errors import InputError, PlacementError
from placement.io import save_instance, save_plan
from placement.overtime.decayed_counts import Decay
from placement.overtime.moves import Hysteresis, MovePrices
from placement.overtime.watch.arrivals import IntervalKey
from placement.overtime.watch.state_store import Rejection, Store, _sane, read_log
from tests.cli.command import Run as Call
from tests.overtime.watch.worlds import Run, csv_text, demand, drop, settings, world

ROOT = Path(__file__).resolve().parents[3]
COUNTS = ("--replicas", 4, "--voters", 3, "--decay", 1.3, "--settle", 0)


@pytest.fixture
def instance(tmp_path: Path) -> Path:
    save_instance(world(), tmp_path / "world")
    counts = demand(12)
    for i, table in enumerate(counts):
        drop(tmp_path / "in", f"{i:02}.csv", csv_text(world(), [i], table[None]))
    return tmp_path / "world"


def test_text_json_and_log_say_the_same(command: Call, instance: Path, tmp_path: Path) -> None:
    asked = ("watch", instance, tmp_path / "in", *COUNTS, "--leader-price", 1)
    text = command(*asked, "--state", tmp_path / "text.db")
    lines = command(*asked, "--state", tmp_path / "json.db", "--json")
    assert (text.code, text.err, lines.code, lines.err) == (0, "", 0, "")
    documents = [json.loads(line) for line in lines.out.splitlines()]
    assert [document["interval"] for document in documents] == [str(i) for i in range(12)]
    for document in documents:
        head = f"{document['interval']}  {document['action']}  leader {document['leader']}"
        assert head in text.out
        for sentence in document["reasons"]:
            assert sentence in text.out
        for i, step in enumerate(document["steps"], start=1):
            assert f"{i}. {step['text']}" in text.out
    log = command(*asked, "--state", tmp_path / "json.db", "--log", "--json")
    assert log.out == lines.out
    again = command(*asked, "--state", tmp_path / "json.db", "--json")
    assert (again.code, again.out) == (0, "")
    assert lines.out.isascii()


def test_what_is_left_out_goes_to_stderr(command: Call, instance: Path, tmp_path: Path) -> None:
    drop(tmp_path / "in", "zz.csv", csv_text(world(), [3], demand(12)[3:4]))
    (tmp_path / "in" / "half.csv").write_text("interval,client")
    asked = ("watch", instance, tmp_path / "in", *COUNTS, "--state", tmp_path / "s.db")
    outcome = command(*asked, code=0)
    assert outcome.err == (
        "incomplete: half.csv: not whole: the last line does not end with a line feed; not used\n"
        "duplicate: zz.csv: interval 3: the same counts as from 03.csv, which were used (row 2); "
        "not used\n"
        "not whole yet: half.csv; left for the next time\n"
    )
    log = command(*asked, "--log")
    assert log.err == "".join(outcome.err.splitlines(keepends=True)[:2])


def test_a_plan_to_start_from(command: Call, instance: Path, tmp_path: Path) -> None:
    plan = solve(Problem(world(), replicas=4, voters=3, leader="f"))
    save_plan(plan, tmp_path / "plan.json")
    asked = ("watch", instance, tmp_path / "in", *COUNTS, "--start", tmp_path / "plan.json")
    outcome = command(*asked, "--state", tmp_path / "s.db", "--horizon", 0, "--json")
    documents = [json.loads(line) for line in outcome.out.splitlines()]
    assert {document["action"] for document in documents} == {"keep"}
    assert {document["leader"] for document in documents} == {"f"}


def test_another_plan_than_the_recommended_one(
    command: Call, instance: Path, tmp_path: Path
) -> None:
    held = tmp_path / "later"
    held.mkdir()
    for path in sorted((tmp_path / "in").iterdir())[6:]:
        path.rename(held / path.name)
    asked = ("watch", instance, tmp_path / "in", *COUNTS, "--state", tmp_path / "s.db")
    first = command(*asked, "--horizon", 0, "--json")
    assert json.loads(first.out.splitlines()[-1])["leader"] != "f"
    save_plan(solve(Problem(world(), replicas=4, voters=3, leader="f")), tmp_path / "plan.json")
    outcome = command(*asked, "--horizon", 0, "--adopt", tmp_path / "plan.json")
    assert (outcome.code, outcome.out, outcome.err) == (0, "", "")
    for path in sorted(held.iterdir()):
        path.rename(tmp_path / "in" / path.name)
    rest = command(*asked, "--horizon", 0, "--json")
    documents = [json.loads(line) for line in rest.out.splitlines()]
    assert [document["leader"] for document in documents] == ["f"] * 6
    log = command(*asked, "--log")
    assert "adopted: " in log.err
    assert "after 6 intervals: leader f, voters " in log.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--horizon", -1), "horizon: out of range"),
        (("--horizon", "nan"), "horizon: out of range"),
        (("--confirm", 0), "confirm: out of range"),
        (("--leader-price", -1), "--leader-price: out of range"),
        (("--decay", 0.5), "--decay: out of range"),
        (("--grace", -1), "grace: out of range"),
        (("--poll", "inf"), "--poll: out of range"),
        (("--final",), "only a table"),
        (("--cost-weight", 1), "a weight of the cost needs prices"),
        (("--start", "nowhere.json"), "no such file"),
        (("--method", "exac"), "unknown method"),
    ],
)
def test_bad_input(
    command: Call, instance: Path, tmp_path: Path, options: tuple[object, ...], words: str
) -> None:
    asked = ("watch", instance, tmp_path / "in", *COUNTS, "--state", tmp_path / "s.db", *options)
    outcome = command(*asked, code=1)
    assert words in outcome.err
    assert outcome.out == ""


def test_nothing_but_malformed_intervals_is_bad_input(
    command: Call, instance: Path, tmp_path: Path
) -> None:
    asked = ("watch", instance, tmp_path / "bad", *COUNTS, "--state", tmp_path / "s.db")
    drop(tmp_path / "bad", "0.csv", csv_text(world(), [0], demand(1)).replace("client a", "nobody"))
    outcome = command(*asked)
    assert (outcome.code, outcome.out) == (1, "")
    assert outcome.err.startswith("malformed: ")
    drop(tmp_path / "bad", "1.csv", csv_text(world(), [1], demand(1)))
    drop(tmp_path / "bad", "2.csv", "no table\n")
    outcome = command(*asked, code=0)
    assert "malformed: 2.csv" in outcome.err


def test_sources_that_are_none(command: Call, instance: Path, tmp_path: Path) -> None:
    for name, words in (("none.csv", "no such folder or table"), ("none.txt", "neither")):
        outcome = command("watch", instance, tmp_path / name, *COUNTS, "--state", tmp_path / "s.db")
        assert outcome.code == 1
        assert words in outcome.err


def test_infeasible_is_2(command: Call, instance: Path, tmp_path: Path) -> None:
    more = ("--cap", "country=1", "--pin-voter", "a,b")
    outcome = command(
        "watch", instance, tmp_path / "in", *COUNTS, *more, "--state", tmp_path / "s.db"
    )
    assert outcome.code == 2
    assert outcome.err.startswith("infeasible: ")
    assert not (tmp_path / "s.db").exists()


def test_one_database_of_a_table_of_many(command: Call, instance: Path, tmp_path: Path) -> None:
    counts = demand(4)
    head, *lines = csv_text(world(), range(4), counts).splitlines()
    _, *others = csv_text(world(), range(4), counts[::-1]).splitlines()
    both = [f"mine,{a}" for a in lines] + [f"theirs,{b}" for b in others]
    (tmp_path / "all.csv").write_text("\n".join([f"database,{head}", *both]) + "\n")
    (tmp_path / "one.csv").write_text("\n".join([head, *lines]) + "\n")
    found = [
        command("watch", instance, tmp_path / name, *COUNTS, "--final", "--json", "--state",
                  tmp_path / f"{name}.db", *more).out
        for name, more in (("all.csv", ("--database", "mine")), ("one.csv", ()))
    ]  # fmt: skip
    assert found[0] == found[1]
    assert len(found[0].splitlines()) == 4


def test_a_watch_follows_until_ctrl_c(instance: Path, tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "placement", "watch", str(instance), str(tmp_path / "in"),
         *map(str, COUNTS), "--state", str(tmp_path / "s.db"), "--follow", "--json",
         "--poll", "0.02"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert child.stdout is not None
    for i in range(12):
        assert json.loads(child.stdout.readline())["interval"] == str(i)
    for i in range(12, 15):  # these come while it runs
        drop(tmp_path / "in", f"{i}.csv", csv_text(world(), [i], demand(12)[[i % 12]]))
        assert json.loads(child.stdout.readline())["interval"] == str(i)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=60)
    assert (child.returncode, out) == (0, "")
    assert err == f"stopped after 15 intervals; {tmp_path / 's.db'} holds them\n"


def test_no_finite_horizon_or_price_is_too_large(
    command: Call, instance: Path, tmp_path: Path
) -> None:
    asked = ("watch", instance, tmp_path / "in", *COUNTS, "--json")
    for i, more in enumerate((("--horizon", "1e308"), ("--add-price", "1e308"))):
        outcome = command(*asked, "--state", tmp_path / f"{i}.db", "--voter-price", 5, *more)
        assert (outcome.code, outcome.err) == (0, "")
        documents = [json.loads(line) for line in outcome.out.splitlines()]
        assert len(documents) == 12
        assert (len({tuple(d["replicas"]) for d in documents}) > 1) == (i == 0)
        assert all(document["proven"] for document in documents)


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
    for content in ("1", "no database, and longer than the header of one " * 20):
        text.write_text(content)
        with pytest.raises(InputError, match=r"no state file|cannot be used"):
            Store.open(text, settings())
        assert text.read_text() == content
    for begin in (b"CREATE TABLE", b'{"confirm"'):  # no text: half a letter
        Store.open(state := tmp_path / f"{len(begin)}.db", settings()).close()
        state.write_bytes(state.read_bytes().replace(begin, b"\xff" + begin[1:]))
        with pytest.raises(InputError, match="cannot be used"):
            Store.open(state, settings())
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
    link = sqlite3.connect(":memory:")
    link.execute("PRAGMA max_page_count = 1")
    with pytest.raises(InputError, match="expected room on the disk"), _sane(other):
        link.execute("CREATE TABLE t (x)")


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
            lambda: behind.store.report(Rejection("late", "0.csv", "", "late", "x")),
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
