"""Files that repeat a version or a list of another file say the same as that file."""

import re
import tomllib
from pathlib import Path

import pytest

import placement

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def read(name):
    return (ROOT / name).read_text(encoding="utf-8")


def locked():
    return dict(re.findall(r"^([A-Za-z0-9._-]+)==(\S+)$", read("requirements.lock"), re.MULTILINE))


def test_one_version():
    (cited,) = re.findall(r"^version: (\S+)$", read("CITATION.cff"), re.MULTILINE)
    assert placement.__version__ == PROJECT["project"]["version"] == cited


def test_the_hooks_have_the_locked_versions():
    hooks = re.findall(r"\b([a-z-]+)==([\w.]+)", read(".pre-commit-config.yaml"))
    assert {"ruff", "mypy"} <= {name for name, _ in hooks}
    assert {name: version for name, version in hooks if locked()[name] != version} == {}


def test_ci_runs_the_python_versions_of_the_classifiers():
    (listed,) = re.findall(
        r"^ +python: \[(.*)\]$", read(".github/workflows/tests.yml"), re.MULTILINE
    )
    classifiers = " ".join(PROJECT["project"]["classifiers"])
    assert re.findall(r"[\d.]+", listed) == re.findall(r"Python :: (3\.\d+)", classifiers)


@pytest.mark.parametrize("name", ["tests.yml", "wheels.yml", "docs.yml"])
def test_every_file_that_a_workflow_runs_exists(name):
    text = read(f".github/workflows/{name}")
    for script in re.findall(r"python (\.\S+\.py)", text):
        assert (ROOT / script).is_file(), script
    targets = set(re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE))
    assert set(re.findall(r"run: make ([a-z-]+)", text)) <= targets


@pytest.mark.parametrize(
    "name", [".ci/run", ".ci/sanitize", ".ci/wheel", ".pre-commit-config.yaml", "Makefile"]
)
def test_every_path_of_tests_that_a_gate_names_exists(name):
    paths = re.findall(r"\btests(?:/\w+)+(?:\.py)?", read(name))
    assert {path for path in paths if not (ROOT / path).exists()} == set()


def test_every_second_look_is_there():
    for path, name in re.findall(r"^(\S+\.py)::(\w*)", read("tests/landing.txt"), re.MULTILINE):
        assert f"def {name}" in read(f"tests/{path}"), name


def test_the_source_distribution_has_every_folder_of_c_sources():
    rules = re.findall(r"^recursive-include (\S+) (.*)$", read("MANIFEST.in"), re.MULTILINE)
    kept = {folder for folder, patterns in rules if {"*.c", "*.h"} <= set(patterns.split())}
    found = {
        path.relative_to(ROOT).parts[0]
        for package in ("placement", "formulations", "heuristics")
        for path in (ROOT / package).rglob("*.[ch]")
    }
    assert found == kept
