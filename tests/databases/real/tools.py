"""Programs that hold exported texts against real parsers; a test without its program is skipped.

Versions are pinned in the ``go.mod`` beside each program. What cannot be built here is skipped with
the reason.
"""

from __future__ import annotations

import functools
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

import pytest

from benchmarks.live import programs
from benchmarks.live.programs import awaited, free_port
from placement.errors import UnsupportedError

__all__ = [
    "HERE", "awaited", "debian_programs", "etcd_program", "free_port", "go_program", "or_skip",
    "parsed", "python_with",
]  # fmt: skip

_P = ParamSpec("_P")
_T = TypeVar("_T")

HERE = Path(__file__).parent


def or_skip(make: Callable[_P, _T]) -> Callable[_P, _T]:
    """Return a function that skips the test where the machine does not allow what it makes."""

    @functools.wraps(make)
    def skipping(*arguments: _P.args, **named: _P.kwargs) -> _T:
        try:
            return make(*arguments, **named)
        except UnsupportedError as error:
            pytest.skip(str(error))

    return skipping


debian_programs = or_skip(programs.debian_programs)
python_with = or_skip(programs.python_with)


@or_skip
def go_program(name: str, *options: str) -> Path:
    return programs.built(HERE / name, *options)


@or_skip
def etcd_program() -> Path:
    """Return etcd, which is etcdctl and a measuring client too."""
    return programs.built(programs.ETCD)


def parsed(program: Path, texts: list[str]) -> list[dict[str, object]]:
    """Return what a program says of each text: `count` of statements, -1 with `error`."""
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(texts)
    return answers
