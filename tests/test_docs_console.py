"""Quick start and how-to pages run as they stand: files, commands and Python, in their order.

A block of text below a paragraph that begins with the name of a CSV, SQL, JSON or text file is that
file.
A block of kind ``console`` is a session: each line with ``$`` is run, and its output is compared
with the lines below it, if there are any; ``...`` stands for anything. The README, the how-to pages
and the page of databases start from the folder that the quick start makes.
"""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from placement.cli import main

ROOT = Path(__file__).resolve().parents[1]
START = ROOT / "docs" / "quick-start.md"
PAGES = [
    START,
    ROOT / "README.md",
    ROOT / "docs" / "databases.md",
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def write_files(text, folder):
    """Write the files that a page shows."""
    found = re.findall(
        r"^`([\w-]+\.(?:csv|sql|json|txt))`.*?^```text\n(.*?)^```", text, re.DOTALL | re.MULTILINE
    )
    for name, table in found:
        (folder / name).write_text(table, encoding="utf-8")


def run_session(block, capsys, page):
    """Run each command of a console block, and compare what it prints."""
    for found in re.finditer(r"^\$ placement (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE):
        command, expected = found.groups()
        code = main(shlex.split(command, comments=True))
        out = capsys.readouterr().out
        assert code == 0, f"{page}: {command}"
        said = doctest.OutputChecker().check_output(expected, out, FLAGS)
        assert said or not expected, f"{command}\n{out}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_runs(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    start = START.read_text(encoding="utf-8")
    write_files(start, tmp_path)
    if page != START:
        assert (
            main(shlex.split("import rtt.csv --counts counts.csv --sites sites.csv -o mine")) == 0
        )
        (tmp_path / "intervals").mkdir()
        capsys.readouterr()
    text = page.read_text(encoding="utf-8")
    write_files(text, tmp_path)
    names = {"__name__": page.stem}
    ran = 0
    for found in re.finditer(r"^```(python|console)\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        kind, code = found.groups()
        ran += 1
        if kind == "console":
            run_session(code, capsys, page.name)
            continue
        line = text[: found.start(2)].count("\n")
        if ">>>" not in code:  # tests/test_docs.py runs it
            continue
        test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
        with capsys.disabled():
            outcome = doctest.DocTestRunner(optionflags=FLAGS).run(test, clear_globs=False)
        assert outcome.attempted
        assert outcome.failed == 0, f"{page.name}, line {line}"
        names.update(test.globs)
    assert ran
