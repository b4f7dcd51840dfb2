"""The two pages show the output of the commands."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.command import runner

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture
def placement(capsys):
    return runner(capsys)


def commands(page):
    text = (DOCS / page).read_text(encoding="utf-8")
    return re.findall(r"^    placement (.+world27.+)$", text, flags=re.MULTILINE), text


def without_seconds(table):
    """Rows of a table as words; the second to last number column, seconds, differs by run."""
    return [re.sub(r"\d+\.\d{2,3}(?=\s+\S[^.]*$)", "s", line).split() for line in table if line]


def test_the_tables_are_what_is_printed(placement):
    shown, text = commands("compare-and-sweep.md")
    assert [command.split()[0] for command in shown] == ["compare", "compare"]
    for command in shown:
        outcome = placement(*shlex.split(command))
        assert outcome.code == 0
        after = text.split(command, 1)[1].lstrip("\n").split("\n\n", 1)[0]
        rows = [line[4:] for line in after.splitlines()]
        printed = outcome.out.splitlines()
        start = next(i for i, line in enumerate(printed) if line.split()[:1] == rows[0].split()[:1])
        assert without_seconds(rows) == without_seconds(printed[start : start + len(rows)])


def test_the_conflict_is_what_is_printed(placement):
    shown, text = commands("infeasible.md")
    outcome = placement(*shlex.split(shown[0]))
    assert outcome.code == 2
    first = text.split("\n> ", 1)[1].split("\n\n", 1)[0]
    quoted = first.replace("\n> ", " ")
    assert quoted in " ".join(outcome.out.split())


def test_the_proof_is_what_is_printed(placement, tmp_path):
    (_, command), text = commands("infeasible.md")
    solve, file = command.split(" > ")
    (tmp_path / file).write_text(placement(*shlex.split(solve)).out)
    outcome = placement("check", tmp_path / file)
    assert outcome.code == 0
    after = text.split(f"    placement check {file}\n", 1)[1].split("\n\n", 2)[1]
    assert [line[4:] for line in after.splitlines()] == outcome.out.splitlines()
