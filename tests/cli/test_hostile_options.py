"""Every option of every verb, found by looking at the parsers, with values that nobody means."""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from placement import Problem, solve
from placement.cli import main
from placement.cli.dispatch import add_verbs
from placement.cli.options import Parser
from placement.io import save_instance, save_plan
from tests.effort import PROFILE, SHORT
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


def some(values: Sequence[str], verb: tuple[str, ...], action: argparse.Action) -> Sequence[str]:
    """Return a part of the values, and all in the long form.

    The verbs with the same option, of the same type, share them out: six of them get them all
    before a landing, 24 in ordinary runs. An option of fewer verbs gets such a part in each.
    """
    if not SHORT:
        return values
    option = (action.option_strings, action.type)
    verbs = [of for of, a in OPTIONS if (a.option_strings, a.type) == option]
    shares = max(6 if PROFILE == "landing" else 24, min(len(verbs), len(values)))
    start = sum(map(ord, "".join(action.option_strings)))  # not the same values for all
    return values[(start + verbs.index(verb)) % shares :: shares]


def converter(action: argparse.Action) -> Callable[[str], object]:
    parser = Parser()
    convert: Callable[[str], object] = parser._registry_get("type", action.type, action.type)
    return convert


def is_number(action: argparse.Action) -> bool:
    if action.choices is not None:
        return False
    convert = converter(action)
    try:
        convert("word")
    except (argparse.ArgumentTypeError, ValueError):
        return True
    return False


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    instance = small()
    save_instance(instance, folder / "world")
    (folder / "rtt.csv").write_text("site,a,b,c\na,1,20,90\nb,20,1,80\nc,90,80,1\n")
    (folder / "arriving").mkdir()
    (folder / "fleet.csv").write_text("database,client,operation,count\nd,Oslo,weak_read,5\n")
    (folder / "places.csv").write_text(
        'locality,site\nwashington,"Washington, DC"\noslo,Oslo\nrome,Rome\n'
    )
    plan = solve(Problem(instance, replicas=2, voters=1), "exhaustive")
    save_plan(plan, folder / "plan.json")
    (folder / "zones.sql").write_text(
        "ALTER DATABASE app CONFIGURE ZONE USING num_replicas = 3, "
        "constraints = '{+region=Oslo: 2, +region=Rome: 1}', "
        "lease_preferences = '[[+region=Oslo]]';\n"
    )
    return folder


def good_calls() -> Mapping[tuple[str, ...], list[str]]:
    """Return a good call of every verb, by its arguments."""
    plan = ["world", *QUESTION, "--method", "exhaustive"]
    zones = ["cockroachdb", "zones.sql", "--instance", "world"]
    return {
        ("solve",): plan,
        ("check", "configuration",): [
            "world", "--leader", "Oslo", "--voters", "Oslo", "--replicas", "Oslo,Rome"],
        ("question",): ["world", *QUESTION],
        ("compare", "methods"): ["world", *QUESTION, "--methods", "exhaustive"],
        ("compare", "protocols"): ["world", *QUESTION, "--protocols", "raft"],
        ("compare", "sizes"): plan,
        ("next",): ["world", "--from", "plan.json"],
        ("compare", "fronts"): ["world", "--replicas", "3", "--voters", "3", "--prices", "100"],
        ("lab", "quorum"): ["rtt.csv", "--reads", "a=5", "--writes", "b=1"],
        ("lab", "replay"): ["world", *QUESTION, "--tiers", "1"],
        ("watch",): ["world", "arriving", "--state", "state.db", *QUESTION],
        ("lab", "online", "reads"): ["world", "--leader", "Oslo", *(
            word for site in ("Oslo", "Rome", "Washington, DC") for word in ("--replicas", site))],
        ("lab", "online", "selection"): ["world", "--replicas", "Oslo,Rome", "--requests", "40"],
        ("lab", "online", "dynamic"): [
            "world", "--replicas", "Oslo", "--objects", "9", "--copies", "2"],
        ("check", "plan"): ["plan.json"],
        ("lab", "migrate"): ["plan.json"],
        ("explain",): ["plan.json", "--runner-ups", "1", "--clients", "1"],
        ("report",): ["plan.json", "-o", "page.html"],
        ("show", "instance"): ["world"],
        ("import",): ["rtt.csv", "--mix", "cache", "-o", "made"],
        ("show", "methods"): [],
        ("show", "protocols"): ["epaxos"],
        ("fleet",): ["world", "--demand", "fleet.csv", *QUESTION],
        ("explore",): ["world", "--no-open"],
        ("db", "read"): zones,
        ("db", "lint"): zones,
        ("db", "evaluate"): ["plan.json", "--instance", "world"],
        ("db", "diff"): ["plan.json", "plan.json"],
        ("db", "export"): ["etcd", "plan.json", "--localities", "places.csv"],
    }  # fmt: skip


@pytest.fixture
def base(
    files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Mapping[tuple[str, ...], list[str]]:
    shutil.copytree(files, tmp_path / "folder")
    monkeypatch.chdir(tmp_path / "folder")
    monkeypatch.setattr("placement.explore.verb.serve", lambda *given, **more: None)
    return good_calls()


def test_every_verb_has_a_good_call():
    assert set(good_calls()) == set(OF_VERBS)


def test_numbers_are_read_by_a_type_of_ours():
    """Neither ``int`` nor ``float``: they take 5,000 digits, NaN and 1e400."""
    for verb, action in OPTIONS:
        assert action.type not in (int, float, str), (verb, action.option_strings)


@pytest.mark.parametrize("verb", OF_VERBS, ids=" ".join)
def test_numbers_that_are_none_are_refused(files, monkeypatch, capsys, verb):
    monkeypatch.chdir(files)  # shared: nothing is written where everything is refused
    call, there = [*verb, *good_calls()[verb]], set(files.rglob("*"))
    for number, (of, action) in enumerate(OPTIONS):
        if of != verb or not is_number(action):
            continue
        option, values = action.option_strings[-1], list(NO_NUMBERS)
        if option in ("--decay", "--half-life") or option.endswith("-price"):
            values.remove("inf")  # it has a meaning there
        for value in values:
            with pytest.raises((argparse.ArgumentTypeError, ValueError)):
                converter(action)(value)
        if SHORT:  # the type refuses them all, one goes through the command
            values = [values[number % len(values)]]
        for value in values:
            capsys.readouterr()
            assert main([*call, f"{option}={value}"]) == 1, (option, value[:20])
            shown = capsys.readouterr()
            assert shown.out == ""
            assert shown.err.startswith("error: ")
            assert option in shown.err
            assert "expected" in shown.err
            assert len(shown.err) < 500
            assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in shown.err
    assert set(files.rglob("*")) == there


@pytest.mark.parametrize("verb", OF_VERBS, ids=" ".join)
def test_strange_text_ends_without_a_traceback(base, capsys, verb):
    for of, action in OPTIONS:
        if of != verb or is_number(action) or action.choices is not None:
            continue
        for value in some(TEXTS, verb, action):
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
        (("lab", "quorum"), "--local-rtt", "-1", "a finite number >= 0"),
        (("lab", "quorum"), "--processes", "0", "a whole number >= 1"),
        (("lab", "quorum"), "--batch", "0", "a whole number >= 1"),
        (("lab", "quorum"), "--time-limit", "-1", "a finite number >= 0"),
        (("lab", "quorum"), "--reads", "a=" + "9" * 5000, "a whole number >= 0"),
        (("compare", "fronts"), "--points", "0", "a whole number >= 1"),
        (("compare", "sizes"), "--replicas", "1.." + "9" * 30, "a whole number >= 0"),
        (("solve",), "--pin", "", "names separated by commas"),
        (("solve",), "--cap", "country=" + "9" * 5000, "a whole number >= 0"),
        (("solve",), "--spread", "1e308", "a finite number >= 0 and <= 100"),
    ],
)
def test_what_was_accepted_once(base, command, verb, option, value, expected):
    arguments = list(base[verb])
    if option in arguments:
        del arguments[arguments.index(option) : arguments.index(option) + 2]
    shown = command(*verb, *arguments, f"{option}={value}", code=1).err
    assert option in shown
    assert expected in shown
