"""A reader of the output who leaves early: 141 and not a word, as from other tools."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from placement.cli.dispatch import ignore_broken_pipe

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
