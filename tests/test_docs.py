"""The documentation is true: doctests, links, names, pages that run, errors and exit codes."""

from __future__ import annotations

import doctest
import importlib
import pkgutil
import re
import shlex
from importlib import metadata
from pathlib import Path

import pytest

import placement.methods
from placement import errors
from placement.cli import exit_codes as exits
from placement.cli import main
from placement.errors import install_hint
from tests.cli.command import Run

ROOT = Path(__file__).resolve().parents[1]


def modules():
    for package in ("placement", "formulations", "heuristics"):
        root = importlib.import_module(package)
        yield package
        for info in pkgutil.walk_packages(root.__path__, package + "."):
            if not info.name.endswith(("__main__", "_kernel", "_scenarios")):
                yield info.name


def test_doctests():
    tried = 0
    for name in modules():
        module = importlib.import_module(name)
        # doctest looks long for the lines of every docstring; most modules have no session.
        source = Path(module.__file__ or "")
        if source.suffix == ".py" and ">>>" in source.read_text(encoding="utf-8"):
            found = doctest.testmod(module)
            assert found.failed == 0, name
            tried += found.attempted
    assert tried > 20


@pytest.mark.parametrize("page", [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/**/*.md"))],
                         ids=lambda page: page.name)  # fmt: skip
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path) if path else page
        assert there.exists(), f"{page.name} links to {target}"
        if anchor and there.suffix == ".md":
            headings = re.findall(r"^#+ (.*)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            slugs = {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}
            assert anchor in slugs, f"{page.name} links to {target}"


def test_every_method_is_documented():
    pages = "".join(p.read_text(encoding="utf-8") for p in ROOT.glob("docs/*.md"))
    for name in placement.methods.registry.available():
        assert f"`{name}`" in pages, name


def test_the_python_of_the_readme_runs(capsys):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    exec(compile(block, "README.md", "exec"), {})
    assert "optimal, proven" in capsys.readouterr().out


ELSEWHERE = {"datasets.md"}  # tests/datasets/test_geo.py runs its blocks and looks at the results
# pages with sessions of the command line are run by tests/test_docs.py
LONG = {"contingency.md", "formulations.md"}  # half a minute each
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def pages_with_python():
    for page in sorted(ROOT.glob("docs/**/*.md")):
        text = page.read_text(encoding="utf-8")
        if page.name not in ELSEWHERE and "```python" in text and "```console" not in text:
            marks = [pytest.mark.slow] if page.name in LONG else []
            yield pytest.param(page, marks=marks, id=page.name)


@pytest.mark.parametrize("page", list(pages_with_python()))
def test_the_python_of_a_page_runs(page, tmp_path, monkeypatch):
    """Every block of a page, in one namespace; a session prints what is shown below it."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": page.stem}
    text = page.read_text(encoding="utf-8")
    for found in re.finditer(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        line = text[: found.start(1)].count("\n")
        code = found.group(1)
        if ">>>" in code:
            test = doctest.DocTestParser().get_doctest(code, names, page.name, str(page), line)
            outcome = doctest.DocTestRunner(optionflags=FLAGS).run(test, clear_globs=False)
            assert outcome.attempted
            assert outcome.failed == 0, f"{page.name}, line {line}"
            names.update(test.globs)
        else:
            exec(compile("\n" * line + code, str(page), "exec"), names)


def test_public_names_exist_and_are_documented():
    for name in placement.__all__:
        thing = getattr(placement, name)
        assert name == "__version__" or isinstance(thing, tuple) or thing.__doc__, name


START = ROOT / "docs" / "quick-start.md"
PAGES = [
    START,
    ROOT / "README.md",
    ROOT / "docs" / "databases.md",
    *sorted((ROOT / "docs" / "how-to").glob("*.md")),
]


# The README, the how-to pages and the page of databases run as they stand, in the folder that the
# quick start makes. A block of text below a paragraph that begins with the name of a file is that
# file. In a block of kind ``console`` each line with ``$`` is run, and its output is compared with
# the lines below it, if there are any; ``...`` stands for anything.


def write_files(text, folder):
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


PAGE = Path(__file__).resolve().parents[1] / "docs" / "errors.md"
TEXT = PAGE.read_text(encoding="utf-8")


def test_every_class_has_a_section_and_is_in_the_tree() -> None:
    named = set(re.findall(r"^### (\w+)$", TEXT, flags=re.MULTILINE))
    assert named == set(errors.__all__)
    for name in named:
        assert re.search(rf"[├└]── {name}\b", TEXT), name


def test_no_other_class_is_raised_on_purpose() -> None:
    """A subclass defined elsewhere would be missing from the page."""
    for package in ("placement", "formulations", "heuristics"):
        root = importlib.import_module(package)
        for info in pkgutil.walk_packages(root.__path__, package + "."):
            if not info.name.endswith(("__main__", "_kernel", "_scenarios")):
                importlib.import_module(info.name)
    found, todo = set(), [errors.PlacementError, errors.PlacementWarning]
    while todo:
        one = todo.pop()
        if one.__module__.split(".")[0] in ("placement", "formulations", "heuristics"):
            found.add(one.__name__)
        todo.extend(one.__subclasses__())
    assert found == set(errors.__all__)


def test_the_tree_is_that_of_the_classes() -> None:
    for name, article in (("InputError", "a ValueError"), ("MissingDependencyError", "an Import")):
        base = {"InputError": ValueError, "MissingDependencyError": ImportError}[name]
        assert issubclass(vars(errors)[name], base)
        assert re.search(rf"── {name} +also {article}", TEXT)


def test_every_exit_code_is_in_the_table() -> None:
    rows = dict(re.findall(r"^\| (\d+) \| `(\w+)` \|", TEXT, flags=re.MULTILINE))
    assert {name: int(code) for code, name in rows.items()} == {
        name: code for name, code in vars(exits).items() if name.isupper() and type(code) is int
    }


def test_the_commands_end_as_shown(
    command: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each command of the console block prints what stands below it, and ends with its code."""
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```console\n(.*?)```", TEXT, flags=re.DOTALL)
    shown = re.findall(r"^\$ placement (.+)\n((?:(?!\$).*\n)*?)exit code (\d+)\n", block, re.M)
    assert [int(code) for *_, code in shown] == [0, 1, 2, 2]
    for line, output, code in shown:
        outcome = command(*shlex.split(line))
        assert outcome.code == int(code), line
        printed = outcome.out + outcome.err
        for piece in filter(str.strip, output.split("…")):
            assert piece.rstrip("\n") in printed, line


@pytest.mark.parametrize(
    ("form", "hint"),
    [
        ("clone", "pip install '.[plot]' in the clone"),
        ("folder", "pip install '.[plot]' in the clone"),
        ("index", "pip install 'replica-placement[plot]'"),
    ],
)
def test_the_hint_names_the_way_of_this_installation(
    form: str, hint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "placement").mkdir()
    if form == "clone":
        (tmp_path / "pyproject.toml").touch()
    found = tmp_path / "replica_placement-1.dist-info"
    found.mkdir()
    (found / "METADATA").write_text("Name: replica-placement\n")
    (found / "direct_url.json").write_text(
        '{"url": "file:///x", "dir_info": {}}' if form == "folder" else ""
    )
    monkeypatch.setattr("placement.errors.__file__", str(tmp_path / "placement" / "errors.py"))
    monkeypatch.setattr(
        "importlib.metadata.distribution", lambda _: metadata.PathDistribution(found)
    )
    assert install_hint("plot") == hint
