"""Readers who leave early: 141 and not a word. Pipes and device nodes: never replaced."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from placement.cli.dispatch import ignore_broken_pipe
from tests.cli.command import Run
from tests.io.test_files import device, kind, read_from

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes of another kind")

SCRIPT = """
import sys
from pathlib import Path
from placement.cli.dispatch import ignore_broken_pipe

def command():
    print("half")
    {ending}

sys.exit(ignore_broken_pipe(command))
"""


def _ending(arguments: list[str], buffered: bool) -> tuple[int, bytes]:
    """The exit code and stderr of Python where nobody reads its output."""
    process = subprocess.Popen(
        [sys.executable, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
        env={**os.environ, "PYTHONUNBUFFERED": "" if buffered else "1"},
    )
    assert process.stdout is not None
    process.stdout.close()
    process.stdout = None
    _, err = process.communicate(timeout=60)
    return process.returncode, err


@pytest.mark.parametrize(
    ("command", "buffered"),
    [
        ("placement show world27 --json", False),
        ("placement show methods", True),
        ("benchmarks report benchmarks/results/agreement.jsonl", False),
        ("benchmarks list smoke", True),
    ],
)
def test_a_reader_who_leaves_early_is_no_error(command: str, buffered: bool) -> None:
    # a broken pipe shows while printing, or, when all fits the buffer, at the very end
    assert _ending(["-m", *command.split()], buffered) == (141, b"")


@pytest.mark.parametrize("program", ["placement", "benchmarks run exact.speed"])
def test_nor_is_one_who_does_not_want_the_help(program: str) -> None:
    assert _ending(["-m", *program.split(), "--help"], buffered=True) == (141, b"")


def test_other_endings_go_through() -> None:
    def fail() -> int:
        raise ValueError("of the command")

    assert ignore_broken_pipe(lambda: 2) == 2
    with pytest.raises(ValueError, match="of the command"):
        ignore_broken_pipe(fail)


@pytest.mark.parametrize(("ending", "code"), [("return 2", 2), ("sys.exit(4)", 4)])
def test_with_a_reader_the_command_says_the_code(ending: str, code: int) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(ending=ending)], capture_output=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, b"half\n", b"")


@pytest.mark.parametrize(
    ("closed", "arguments", "code", "out", "err"),
    [
        (">&-", "show world27", 1, "", "error: standard output: Bad file descriptor\n"),
        ("2>&-", "show nowhere", 1, "", ""),  # nowhere to complain, least of all among the results
        (">&- 2>&-", "show nowhere", 1, "", ""),
        ("<&-", "show methods exact", 0, None, ""),
    ],
)
def test_a_closed_stream_is_not_replaced_by_another(
    tmp_path: Path, closed: str, arguments: str, code: int, out: str | None, err: str
) -> None:
    """A message does not go to standard output because standard error is closed."""
    command = f'exec "{sys.executable}" -m placement {arguments} {closed}'
    outcome = subprocess.run(
        ["sh", "-c", command], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert outcome.returncode == code
    assert outcome.stderr == err
    assert out is None or outcome.stdout == out


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
