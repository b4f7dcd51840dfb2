"""Entry points are read as ``importlib.metadata`` reads them, without its imports."""

from __future__ import annotations

import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from placement.errors import InputError, UnsupportedError
from placement.support.entry_points import EntryPoint, Group, entry_points

TEXT = """# a comment
[other.group]
toy = other:NAME

[toy.methods]
toy = toy_module:METHOD
toy.percentile = toy_module.part : solve.inner [extra]
; another comment
plain = toy_module
"""


def distribution(folder: Path, name: str, text: str) -> None:
    info = folder / name
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\n", encoding="utf-8")
    (info / "entry_points.txt").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "group", ["placement.methods", "placement.verbs", "placement.objectives", "console_scripts"]
)
def test_agrees_with_the_standard_library(group):
    expected = {entry.name: entry.value for entry in metadata.entry_points(group=group)}
    found = {name: e.value for name, e in entry_points(group).items()}
    assert found == expected | {name: v for name, v in found.items() if "heuristics.rules." in v}


def test_sections_comments_and_extras(tmp_path, monkeypatch):
    distribution(tmp_path, "toy-1.0.dist-info", TEXT)
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "missing")])
    # Another test may have imported the backport. Its finder reads "; another comment" as an entry.
    finders = [one for one in sys.meta_path if type(one).__module__ != "importlib_metadata"]
    monkeypatch.setattr(sys, "meta_path", finders)
    assert {name: entry.value for name, entry in entry_points("toy.methods").items()} == {
        "toy": "toy_module:METHOD",
        "toy.percentile": "toy_module.part : solve.inner [extra]",
        "plain": "toy_module",
    }
    assert entry_points("toy") == {}


def test_the_first_of_two_installations_counts(tmp_path, monkeypatch):
    distribution(tmp_path / "a", "Some.Thing-1.0.dist-info", "[g]\nx = first\n")
    distribution(tmp_path / "b", "some_thing-2.0.egg-info", "[g]\nx = second\n")
    distribution(tmp_path / "b", "other-2.0.dist-info", "[g]\ny = third\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "a"), str(tmp_path / "b")])
    found = {name: entry.value for name, entry in entry_points("g").items()}
    assert found == {"x": "first", "y": "third"}


def test_a_zip_file_is_left_to_the_standard_library(tmp_path, monkeypatch):
    path = tmp_path / "toy.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("toy-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: toy\n")
        archive.writestr("toy-1.0.dist-info/entry_points.txt", "[g]\nx = first:X\n")
    monkeypatch.setattr(sys, "path", [str(path)])
    assert {name: entry.value for name, entry in entry_points("g").items()} == {"x": "first:X"}


def test_load():
    assert EntryPoint("a", "os.path").load() is sys.modules["os.path"]
    assert EntryPoint("a", "pathlib : Path.home [extra]").load() == Path.home
    with pytest.raises(ImportError):
        EntryPoint("a", "no_such_module_anywhere:X").load()
    with pytest.raises(AttributeError):
        EntryPoint("a", "pathlib:NoSuchName").load()


@pytest.fixture
def numbers(tmp_path, monkeypatch):
    """A group of whole numbers: a good one, one of another kind, two that cannot be imported."""
    distribution(
        tmp_path,
        "toy-1.0.dist-info",
        "[g]\nmost = sys:maxsize\nmost.part = sys:maxsize\nname = sys:platform\n"
        "lost = no_such_module_anywhere:X\nempty = sys:no_such_name\n",
    )
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return Group("g", "number", lambda found: found if isinstance(found, int) else None, "an int")


def test_a_group_loads_an_object_by_name(numbers):
    assert numbers.load("most") == numbers.load("most.part") == sys.maxsize
    assert numbers.names() == ("empty", "lost", "most", "name")


@pytest.mark.parametrize(
    ("name", "kind", "words"),
    [
        ("mosst", InputError, ("unknown number", "empty, lost, most, name", "did you mean 'most'")),
        ("name", UnsupportedError, ("number 'name' (sys:platform) is a str, not an int",)),
        ("lost", UnsupportedError, ("number 'lost'", "cannot be imported", "no_such_module")),
        ("empty", UnsupportedError, ("number 'empty'", "cannot be imported", "no_such_name")),
    ],
)
def test_a_group_says_why_an_object_cannot_be_loaded(numbers, name, kind, words):
    with pytest.raises(kind) as caught:
        numbers.load(name)
    assert all(word in str(caught.value) for word in words), caught.value
