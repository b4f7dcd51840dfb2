"""``-o`` on a pipe or a device node: written through or refused, and never replaced."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.cli.command import Run
from tests.io.test_files import device, kind, read_from

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs device nodes or named pipes")

SIZES = ("--replicas", "3", "--voters", "3")
SOLVE = ("solve", "world27", *SIZES)


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "plan.json"
    command = [sys.executable, "-m", "placement", *SOLVE, "-o", str(path)]
    subprocess.run(command, check=True, capture_output=True)
    return path


@pytest.mark.parametrize("force", [[], ["--force"]])
@pytest.mark.parametrize(
    ("name", "verb"),
    [
        ("device", SOLVE),
        ("device", ("report", "PLAN")),
        ("table.csv", ("compare", "sizes", "world27", "--replicas", "2..3", "--voters", "2")),
        ("table.json", ("compare", "world27", *SIZES, "--methods", "kq,max-diversity")),
        ("figure.svg", ("compare", "sizes", "world27", "--replicas", "2..3", "--voters", "2")),
    ],
)
def test_everything_that_writes_leaves_a_device_in_its_place(
    command: Run, tmp_path: Path, plan: Path, name: str, verb: Sequence[str], force: list[str]
) -> None:
    path = device(tmp_path).rename(tmp_path / name)
    before = kind(path)
    option = "--plot" if name.endswith(".svg") else "-o"
    words = [str(plan) if word == "PLAN" else word for word in verb]
    with read_from(path) as found:
        assert command(*words, option, path, *force).code == 0
    assert kind(path) == before
    assert [entry.name for entry in tmp_path.iterdir()] == [name]
    assert not stat.S_ISFIFO(before[0]) or len(found[0]) > 100


def test_a_watch_refuses_a_device_as_its_state(command: Run, tmp_path: Path) -> None:
    path = device(tmp_path)
    before = kind(path)
    (tmp_path / "arrivals").mkdir()
    done = command("watch", "world27", tmp_path / "arrivals", *SIZES, "--once", "--state", path)
    assert done.code == 1
    assert "not a regular file" in done.err
    assert kind(path) == before


def test_a_plan_goes_down_the_pipeline(tmp_path: Path) -> None:
    """``-o /dev/stdout`` is the plan, then the text, in a pipeline without --force."""
    command = [sys.executable, "-m", "placement", *SOLVE, "-o", "/dev/stdout"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document, _ = json.JSONDecoder().raw_decode(done.stdout)
    assert document["replicas"]
    assert not list(tmp_path.iterdir())
