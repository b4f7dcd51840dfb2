"""Running the command line in this process."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from placement.cli import main

__all__ = ["Outcome", "Run", "runner"]


@dataclass(frozen=True)
class Outcome:
    """Exit code and what was printed."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """The one JSON document on stdout."""
        return json.loads(self.out, parse_constant=pytest.fail)


Run = Callable[..., Outcome]


def runner(capsys: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs ``placement`` with the given arguments."""

    def run(*arguments: object) -> Outcome:
        capsys.readouterr()
        code = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return Outcome(code, captured.out, captured.err)

    return run
