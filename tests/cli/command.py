"""Running the command line in this process, and Python in another one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from placement.cli import main

__all__ = ["Outcome", "Run", "output_of", "runner"]


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out, parse_constant=pytest.fail)


Run = Callable[..., Outcome]


def runner(capsys: pytest.CaptureFixture[str], main: Callable[[list[str]], int] = main) -> Run:
    """Return a function that runs ``placement``, or another command, with the given arguments.

    With `code` it asserts that the command ends with this exit code.
    """

    def run(*arguments: object, code: int | None = None) -> Outcome:
        capsys.readouterr()
        found = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        assert code in (None, found), captured.err or captured.out
        return Outcome(found, captured.out, captured.err)

    return run


def output_of(script: str, *arguments: str, **environment: str) -> str:
    """Return what a Python program prints in a process of its own, which ends without an error.

    A signal that comes late interrupts nothing else there. The threads of OpenBLAS are not set.
    """
    kept = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=Path(__file__).resolve().parents[2],
        env={**kept, **environment},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
