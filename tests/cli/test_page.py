"""Width and colours of what people read."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest

from placement.cli.output import paint, shows_colours
from placement.text import display_width, page_width, use_page_width
from tests.cli.command import Run

ESCAPES = re.compile("\x1b\\[[0-9;]*m")
QUESTION = ("--replicas", "2", "--voters", "1")


class Terminal(io.StringIO):
    """A stream that calls itself a terminal."""

    def isatty(self) -> bool:
        return True


def test_colours_need_a_terminal_that_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert shows_colours(Terminal())
    assert not shows_colours(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "")  # set but empty: as if it were not set
    assert shows_colours(Terminal())
    monkeypatch.setenv("NO_COLOR", "1")
    assert not shows_colours(Terminal())
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not shows_colours(Terminal())


def test_paint_adds_escapes_and_nothing_else(placement: Run, world: Path) -> None:
    plain = placement("solve", world, *QUESTION).out
    painted = paint(plain)
    assert ESCAPES.sub("", painted) == plain
    assert "Answer       \x1b[32moptimal\x1b[0m, proven" in painted
    assert "\x1b[1mReplicas\x1b[0m\n" in painted
    assert "\x1b[1mQuestion" not in painted


@pytest.mark.parametrize(
    ("text", "painted"),
    [
        ("refused: no", "\x1b[33mrefused\x1b[0m: no"),
        ("qk      infeasible  –", "qk      \x1b[31minfeasible\x1b[0m  –"),
        ("optimality counts", "optimality counts"),
        ("an optimal plan", "an optimal plan"),
        ("Answer       optimal (proved by sets; no certificate)",
         "Answer       \x1b[32moptimal\x1b[0m (proved by sets; no certificate)"),
    ],
)  # fmt: skip
def test_the_first_status_of_a_line_is_painted(text: str, painted: str) -> None:
    assert paint(text) == painted


@pytest.mark.parametrize(("columns", "width"), [("60", 60), ("100", 100), ("7", 40), ("999", 120)])
def test_the_page_is_as_wide_as_the_terminal(
    columns: str, width: int, placement: Run, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    seen: list[int] = []
    page = "placement.cli.output"
    monkeypatch.setattr(f"{page}.paint", lambda text: seen.append(page_width()) or text)
    monkeypatch.setattr(f"{page}.shows_colours", lambda stream: True)
    out = placement("solve", world, *QUESTION).out
    assert seen == [width]
    facts = out.split("\n\n")[0].split("\n")
    assert max(map(display_width, facts)) <= max(width, 60)
    assert page_width() == 80


@pytest.mark.parametrize("terminal", [True, False])
def test_names_are_cut_on_a_terminal_alone(
    terminal: bool, placement: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    out = placement("compare", "azure", *QUESTION, "--methods", "exact,closest-to-writes").out
    assert ("…" in out) is terminal
    assert terminal or "closest-to-writes" in out


def test_a_width_holds_inside_its_block_only() -> None:
    with use_page_width(100):
        with use_page_width(60):
            assert page_width() == 60
        assert page_width() == 100
    assert page_width() == 80


def test_json_is_never_painted(
    placement: Run, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("placement.cli.output.shows_colours", lambda stream: True)
    assert "\x1b" not in placement("solve", world, *QUESTION, "--json").out
    assert "\x1b" in placement("solve", world, *QUESTION).out
