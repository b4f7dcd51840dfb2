"""The instance library: questions are rebuilt, answers hold, and never get worse."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from benchmarks.instances.library import Entry, LibraryAnswer, better, check, read, write
from benchmarks.instances.question import digest
from placement.errors import SolverError
from tests.cli.command import Run

pytestmark = pytest.mark.filterwarnings("ignore::placement.errors.UnitsWarning")


def _quick() -> list[Entry]:
    """Return one small entry of each kind but percentiles, whose tables take a second to build."""
    found: dict[str, Entry] = {}
    for entry in read():
        if entry.question.size <= 50 and not entry.question.percentile:
            found.setdefault(entry.question.kind, entry)
    return list(found.values())


def test_the_names_of_questions_differ() -> None:
    names = [entry.question.name for entry in read()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("entry", _quick(), ids=lambda entry: entry.question.name)
def test_entries_hold(entry: Entry) -> None:
    assert check(entry, prove_below=0.05) == []


@pytest.mark.slow
@pytest.mark.parametrize("part", range(16))
def test_every_entry_holds(part: int) -> None:
    """Answers of a tenth of a second are proven again; the command itself takes those of 1 s."""
    entries = read()[part::16]
    assert entries
    assert {entry.question.name: check(entry, 0.1) for entry in entries} == {
        entry.question.name: [] for entry in entries
    }


def test_a_wrong_answer_is_found() -> None:
    entry = next(one for one in _quick() if one.answer is not None and one.answer.value)
    known = entry.answer
    assert known is not None
    assert known.value is not None
    wrong = {
        "the plan has the value": {"value": known.value * 1.01, "bound": known.value * 1.01},
        "is above the value": {"bound": known.value * 1.01},
        "voters instead of": {"voters": known.voters[:-1]},
        "a gap of": {"bound": known.value * 0.5},
    }
    for words, change in wrong.items():
        changed = dataclasses.replace(entry, answer=dataclasses.replace(known, **change))
        assert any(words in flaw for flaw in check(changed, 0.0)), words
    assert "the data" in check(dataclasses.replace(entry, data="0" * 32), 0.0)[0]


def _answer(value: float, bound: float, **more: object) -> LibraryAnswer:
    known = LibraryAnswer("feasible", value, bound, 0, (0,), (0,), "m", 1.0, 1.0)
    return dataclasses.replace(known, **more)


def test_an_answer_never_gets_worse() -> None:
    old = _answer(10.0, 8.0)
    assert better(None, old) is old
    assert better(old, _answer(12.0, 7.0)) == old
    both = better(old, _answer(11.0, 9.0, method="n"))
    assert (both.value, both.bound, both.method) == (10.0, 9.0, "m, n")
    assert better(old, _answer(9.0, 7.0)).value == 9.0
    assert better(old, _answer(9.0, 7.0)).bound == 8.0
    closed = better(old, _answer(12.0, 10.0))
    assert (closed.value, closed.status) == (10.0, "optimal")
    proven = _answer(10.0, 10.0, status="optimal")
    assert better(old, proven) is proven
    assert better(proven, old) is proven
    certified = dataclasses.replace(proven, certificate="ab", checked=True)
    assert better(proven, certified) is certified
    assert better(certified, proven) is certified


def test_bounds_that_contradict_a_plan_are_a_defect() -> None:
    old = _answer(10.0, 9.0)
    with pytest.raises(SolverError):
        better(old, _answer(12.0, 11.0))
    with pytest.raises(SolverError):
        better(old, dataclasses.replace(old, status="infeasible", value=None))


def test_the_command_solves_and_goes_on_where_it_ended(tmp_path: Path, bench: Run) -> None:
    path = tmp_path / "library.jsonl"
    asked = [Entry(one.question, "") for one in read() if "mean-00" in one.question.name]
    write(asked, path)
    ask = ["library", "--library", path, "--only", "mean-00"]
    done = bench(*ask, "--all", "--time-limit", 5, code=0)
    assert len(done.err.splitlines()) == 9
    entries = read(path)
    write([*entries[:4], *asked[4:]], path)
    assert len(bench(*ask, "--all", code=0).err.splitlines()) == 5
    assert all(digest(entry.question.problem()) == entry.data for entry in read(path))
    assert "9 of 9 entries hold" in bench(*ask, "--check", code=0).out
    assert "9 optimal" in bench(*ask, code=0).out
    bench("library", "--library", path, "--solve", "no-such", code=1)
