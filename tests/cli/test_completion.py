"""Words that the shell completes, asked the way a shell asks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from placement.cli import main
from tests.cli.command import Run

SEPARATOR = "\013"


def completions(line: str, folder: Path, start: bool) -> set[str]:
    """Return what argcomplete answers to a line: it writes to a file, and ends the process.

    Parameters
    ----------
    start
        Start the command; otherwise it is a fork of this process.
    """
    answer = folder / "answer"
    environment = os.environ | {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_SHELL": "bash",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "COMP_TYPE": "9",
        "IFS": SEPARATOR,
    }
    if start or not hasattr(os, "fork"):
        command = [sys.executable, "-m", "placement"]
        done = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, check=False
        )
        assert done.stdout == b""
    elif (child := os.fork()) == 0:
        try:
            os.chdir(folder)
            os.environ.update(environment)
            main([])
        finally:
            os._exit(1)
    else:
        os.waitpid(child, 0)
    return {word.strip() for word in answer.read_text().split(SEPARATOR) if word.strip()}


@pytest.mark.parametrize(
    ("line", "some", "none"),
    [
        ("placement so", {"solve"}, {"sweep"}),
        ("placement lab qu", {"quorum"}, {"replay"}),
        ("placement solve w", {"world27", "world/"}, {"azure"}),
        ("placement solve world27 --max-l", set(), {"--json"}),
        ("placement solve world27 --repl", {"--replicas"}, {"--json"}),
        ("placement solve world27 --leader us-", {"us-east-1", "us-west-2"}, {"sa-east-1"}),
        ("placement solve world27 --pin us-east-1,us-w", {"us-east-1,us-west-2"}, {"us-west-2"}),
        ("placement solve world27 --survive c", {"country", "continent"}, {"site"}),
        ("placement solve world27 --method lo", {"local-search"}, {"exact"}),
        ("placement compare world27 --methods exact,lo", {"exact,local-search"}, {"exact,exact"}),
        ("placement solve world27 --protocol ep", {"epaxos"}, {"raft"}),
        ("placement solve nowhere --leader us-", set(), {"us-east-1"}),
        ("placement --completion f", {"fish"}, {"bash"}),
    ],
)
def test_words_that_come_next(line: str, some: set[str], none: set[str], tmp_path: Path) -> None:
    (tmp_path / "world").mkdir()
    found = completions(line, tmp_path, start=line == "placement so")
    assert some <= found
    assert not none & found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_lines_for_a_shell_name_the_command(shell: str, placement: Run) -> None:
    outcome = placement("--completion", shell)
    assert outcome.code == 0
    assert "placement" in outcome.out
    assert "_ARGCOMPLETE" in outcome.out


def test_without_argcomplete_the_error_says_how_to_get_it(
    placement: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "argcomplete.shell_integration", None)
    outcome = placement("--completion", "bash")
    assert outcome.code == 1
    assert "pip install '.[completion]'" in outcome.err


def test_bash_takes_the_lines(placement: Run, tmp_path: Path) -> None:
    script = tmp_path / "lines.sh"
    script.write_text(placement("--completion", "bash").out)
    done = subprocess.run(
        ["bash", "-c", f". {script} && complete -p placement"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "placement" in done.stdout
