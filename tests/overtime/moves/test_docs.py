"""The page on time shows the real output of stability and watch."""

from __future__ import annotations

import doctest
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import placement
from placement.io.formats.tables import csv_bytes
from tests.cli.command import runner

PAGE = Path(__file__).resolve().parents[3] / "docs/over-time.md"


def test_the_examples() -> None:
    failed, tried = doctest.testfile(str(PAGE), module_relative=False)
    assert failed == 0
    assert tried >= 10


def test_the_watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The demand of world27 itself, a file per half hour."""
    text = PAGE.read_text(encoding="utf-8")
    (command,) = re.findall(r"^    placement (watch .*)$", text, flags=re.MULTILINE)
    shown = text.split("to keep the configuration or to move:\n\n", 1)[1].split("\n\n")[0]
    world = placement.load("world27")
    (tmp_path / "intervals").mkdir()
    header = ["interval", "client", "operation", "count"]
    for i, (label, counts) in enumerate(zip(world.intervals, world.counts, strict=True)):
        rows = [
            (label, world.clients[c], world.operations[o].name, float(counts[c, o]))
            for c, o in zip(*np.nonzero(counts), strict=True)
        ]
        (tmp_path / "intervals" / f"{i:02}.csv").write_bytes(csv_bytes(header, rows))
    monkeypatch.chdir(tmp_path)
    outcome = runner(capsys)(*shlex.split(command))
    assert (outcome.code, outcome.err) == (0, "")
    printed = outcome.out.splitlines()
    rows = "\n".join(line[4:] for line in shown.splitlines())
    for part in rows.removesuffix("\n…").split("\n…\n"):
        first = printed.index(part.split("\n")[0])
        assert part.split("\n") == printed[first : first + len(part.split("\n"))]
