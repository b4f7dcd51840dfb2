"""Every option of every verb, found by looking at the parsers, with values that nobody means."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from placement.cli import main
from placement.cli.argument_parser import Parser
from placement.cli.verb_registry import add_verbs
from placement.io import save_instance
from tests.io.worlds import small

NO_NUMBERS = ("", " ", "abc", "nan", "inf", "-inf", "1e400", "9" * 5000, "-" + "9" * 5000, "1,2,3",
              "\N{RIGHT-TO-LEFT OVERRIDE}5", "0x10", "-1")  # fmt: skip
"""Values that no option for a number takes."""

TEXTS = ("", " ", ",", ";", "=", "=1", "country=", "country=" + "9" * 5000, "country=-1",
         "Oslo=" + "9" * 5000, "Oslo=nan", "Oslo=1e308", "9" * 5000, "1.." + "9" * 5000, "5..1",
         "nan", "1e308", "nan,nan", "1,1,1", "-1", "[" * 2000, "a\0b", "\ud800", "\x1b[2J",
         "\N{RIGHT-TO-LEFT OVERRIDE}", "../" * 300)  # fmt: skip
"""Values for options that take text: they may be refused, or be a strange name."""

QUESTION = ("--replicas", "2", "--voters", "1")


def parsers(
    parser: argparse.ArgumentParser, *path: str
) -> Iterator[tuple[tuple[str, ...], argparse.ArgumentParser]]:
    """Yield the parsers that take options of their own, by verb and part."""
    parts = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]
    if not parts:
        yield path, parser
    for action in parts:
        for name, below in action.choices.items():
            yield from parsers(below, *path, name)


def every_option() -> list[tuple[tuple[str, ...], argparse.Action]]:
    root = Parser(prog="placement")
    add_verbs(root.add_subparsers(), [])
    return [
        (verb, action)
        for verb, parser in parsers(root)
        for action in parser._actions
        if action.nargs != 0
    ]


OPTIONS = every_option()
OF_VERBS = sorted({verb for verb, _ in OPTIONS})


def converter(action: argparse.Action) -> Callable[[str], object]:
    parser = Parser()
    convert: Callable[[str], object] = parser._registry_get("type", action.type, action.type)
    return convert


def is_number(action: argparse.Action) -> bool:
    """Whether a type refuses words."""
    if action.choices is not None:
        return False
    convert = converter(action)
    try:
        convert("word")
    except (argparse.ArgumentTypeError, ValueError):
        return True
    return False


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mapping[tuple[str, ...], list[str]]:
    """A good call of every verb, in an empty folder."""
    monkeypatch.chdir(tmp_path)
    save_instance(small(), tmp_path / "world")
    Path("rtt.csv").write_text("site,a,b,c\na,1,20,90\nb,20,1,80\nc,90,80,1\n")
    Path("arriving").mkdir()
    plan = ["world", *QUESTION, "--method", "exhaustive"]
    assert main(["solve", *plan, "-o", "plan.json"]) == 0
    return {
        ("solve",): plan,
        ("evaluate",): ["world", "--leader", "Oslo", "--voters", "Oslo", "--replicas", "Oslo,Rome"],
        ("compare",): ["world", *QUESTION, "--methods", "exhaustive"],
        ("sweep",): plan,
        ("contingency", "leader"): ["world", "--replicas", "3", "--voters", "3", "--method",
                                    "exhaustive"],
        ("contingency", "quorum"): ["rtt.csv", "--reads", "a=5", "--writes", "b=1"],
        ("replay",): ["world", *QUESTION, "--tiers", "1"],
        ("watch",): ["world", "arriving", "--state", "state.db", *QUESTION],
        ("check",): ["plan.json"],
        ("sensitivity",): ["plan.json", "--runner-ups", "1", "--clients", "1"],
        ("report",): ["plan.json", "-o", "page.html"],
        ("show",): ["world"],
        ("import",): ["rtt.csv", "--mix", "cache", "-o", "made"],
        ("methods",): [],
    }  # fmt: skip


def test_every_verb_has_a_good_call(base):
    assert set(base) == set(OF_VERBS)


def test_numbers_are_read_by_a_type_of_ours():
    """Neither ``int`` nor ``float``: they take 5,000 digits, NaN and 1e400."""
    for verb, action in OPTIONS:
        assert action.type not in (int, float, str), (verb, action.option_strings)


@pytest.mark.parametrize(
    ("verb", "action"),
    [(verb, action) for verb, action in OPTIONS if is_number(action)],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else value.option_strings[-1],
)
def test_numbers_that_are_none_are_refused(base, capsys, verb, action):
    option = action.option_strings[-1]
    for value in NO_NUMBERS:
        if value == "inf" and (option in ("--decay", "--half-life") or option.endswith("-price")):
            continue  # it has a meaning there
        capsys.readouterr()
        assert main([*verb, *base[verb], f"{option}={value}"]) == 1, value[:20]
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith("error: ")
        assert option in shown.err
        assert "expected" in shown.err
        assert len(shown.err) < 500
        assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in shown.err


@pytest.mark.parametrize("verb", OF_VERBS, ids=" ".join)
def test_strange_text_ends_without_a_traceback(base, capsys, verb):
    for of, action in OPTIONS:
        if of != verb or is_number(action) or action.choices is not None:
            continue
        for value in TEXTS:
            capsys.readouterr()
            if action.option_strings:
                arguments = [*base[verb], f"{action.option_strings[-1]}={value}"]
            else:
                arguments = [value, *base[verb][1:]]
                if value.startswith("-"):
                    continue  # an option
            code = main([*verb, *arguments])
            shown = capsys.readouterr()
            assert code in (0, 1, 2, 3), (action.option_strings, value)
            assert code == 0 or shown.err.startswith("error: ") or shown.out
            if not value.strip():
                assert code == 1, (action.option_strings, value)


@pytest.mark.parametrize(
    ("verb", "option", "value", "expected"),
    [
        (("contingency", "quorum"), "--local-rtt", "-1", "a finite number >= 0"),
        (("contingency", "quorum"), "--object-gb", "nan", "a finite number >= 0"),
        (("contingency", "quorum"), "--processes", "0", "a whole number >= 1"),
        (("contingency", "quorum"), "--batch", "0", "a whole number >= 1"),
        (("contingency", "quorum"), "--time-limit", "-1", "a finite number >= 0"),
        (("contingency", "quorum"), "--reads", "a=" + "9" * 5000, "a whole number >= 0"),
        (("sweep",), "--points", "0", "a whole number >= 1"),
        (("sweep",), "--replicas", "1.." + "9" * 30, "a whole number >= 0"),
        (("solve",), "--pin", "", "names separated by commas"),
        (("solve",), "--cap", "country=" + "9" * 5000, "a whole number >= 0"),
        (("solve",), "--spread", "1e308", "a finite number >= 0 and <= 100"),
    ],
)
def test_what_was_accepted_once(base, capsys, verb, option, value, expected):
    arguments = list(base[verb])
    if option in arguments:
        del arguments[arguments.index(option) : arguments.index(option) + 2]
    assert main([*verb, *arguments, f"{option}={value}"]) == 1
    shown = capsys.readouterr().err
    assert option in shown
    assert expected in shown
