"""docs/errors.md names every error, warning and exit code there is, and its examples run."""

from __future__ import annotations

import importlib
import pkgutil
import re
import shlex
from importlib import metadata
from pathlib import Path

import pytest

from placement import errors
from placement.cli import exit_codes as exits
from placement.errors import install_hint
from tests.cli.command import Run

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
    """The page's extra base classes are those of the code."""
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
