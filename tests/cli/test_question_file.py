"""Questions in files, moves as options, words that the shell completes, and how pages look."""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

import placement
from placement.cli import exit_codes as exits
from placement.cli import main
from placement.cli.dispatch import SHOWN, leaves, options_of, whole_parser
from placement.cli.options import MOST_LINES, MOST_SHORT, Parser, options_shown
from placement.cli.output import paint, shows_colours
from placement.errors import InputError
from placement.io.plan_file import load_plan
from placement.proof.certificate_check import check_certificate
from placement.question import GROUPS, KEYS, json_schema, read_question, toml_text
from placement.text.text_tables import display_width, page_width, use_page_width
from tests.cli.command import Run
from tests.cli.test_hostile_options import base, files, good_calls

__all__ = ["base", "files"]

TABLES = {
    "rtt.csv": "site,a,b,c,d\na,1,20,90,150\nb,20,1,80,160\nc,90,80,1,70\nd,150,160,70,1\n",
    "counts.csv": "client,weak_read,single_group\na,50,5\nb,9,1\nc,20,5\nd,1,1\n",
    "sites.csv": "region,latitude,longitude,country\n"
    "a,50,8,DE\nb,48,2,FR\nc,38,-77,US\nd,45,-121,US\n",
    "prices.csv": "site,storage\na,0.08\nb,0.08\nc,0.08\nd,0.08\n",
    "question.toml": """replicas = "2..3"
voters = 2
keep = "mean(weak_read) <= 90 ms"
[instance]
rtt = "rtt.csv"
demand = "counts.csv"
sites = "sites.csv"
""",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in TABLES.items():
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


# --- the verbs and their help ----------------------------------------------------------------

VERBS = dict(leaves(whole_parser()))


def test_at_most_fourteen_verbs() -> None:
    assert sum(len(verbs) for verbs in SHOWN.values()) <= 14


@pytest.mark.parametrize("verb", VERBS)
def test_h_is_one_screen_and_help_is_grouped(verb: str) -> None:
    parser = VERBS[verb]
    short = parser.short_help().splitlines()
    assert len(short) <= MOST_LINES == 40
    assert len(parser.main_options()) <= MOST_SHORT == 14
    assert any(line.startswith("example: placement ") for line in short)
    for action in parser.main_options():  # a long name does not run into what it says
        assert action.option_strings[0] in " ".join(short).split()
    grouped = [group.title for group in parser._action_groups if group._group_actions]
    assert len(options_shown(parser)) <= 14 or len(grouped) > 2


def test_every_key_of_a_group_has_help_with_its_unit() -> None:
    for key in KEYS.values():
        assert key.group in GROUPS
        assert key.help
        if key.metavar in ("MS", "GB", "S", "H"):
            assert any(unit in key.help for unit in ("ms", "GB", "seconds", "hours")), key.name


# --- no option is ignored --------------------------------------------------------------------


_DEFAULTS = ("force", "progress", "once", "worst")
"""Options that say what happens anyway, where there is nothing to replace, to show, to choose."""


class _Recorder(argparse.Namespace):
    """Arguments that note which of them are read."""

    read: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> Any:
        if name != "__dict__":
            _Recorder.read.add(name)
            return super().__getattribute__(name)
        return _Noted(super().__getattribute__("__dict__"))

    @staticmethod
    def after(parse: Callable[..., Any]) -> Callable[..., Any]:
        """Return a parser's method that forgets what the parser itself has read."""

        def parsed(*given: Any) -> Any:
            found = parse(*given)
            _Recorder.read = set()
            return found

        return parsed


class _Noted(dict[str, Any]):
    def __init__(self, real: dict[str, Any]) -> None:
        super().__init__(real)
        self.setdefault = real.setdefault  # type: ignore[method-assign]

    def items(self) -> Any:
        _Recorder.read.update(self)
        return super().items()

    def get(self, key: str, default: Any = None) -> Any:
        _Recorder.read.add(key)
        return super().get(key, default)

    def __getitem__(self, key: str) -> Any:
        _Recorder.read.add(key)
        return super().__getitem__(key)


@pytest.mark.parametrize("verb", sorted(good_calls()))
def test_no_verb_accepts_an_option_that_it_ignores(
    base: Mapping[tuple[str, ...], list[str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    verb: tuple[str, ...],
) -> None:
    """The verb reads each of its options, in a plain call or where the option is given."""
    monkeypatch.setattr(argparse, "Namespace", _Recorder)
    monkeypatch.setattr(Parser, "parse_known_args", _Recorder.after(Parser.parse_known_args))
    parser = VERBS[" ".join(verb)]
    options = options_shown(parser)
    call = [*verb, *base[verb]]
    call += ["--force"] if any(action.dest == "force" for action in options) else []
    seen = set(_DEFAULTS)

    def run(more: list[str]) -> str:
        _Recorder.read = set()
        main([*call, *more])
        seen.update(_Recorder.read)
        return capsys.readouterr().err

    assert "error" not in run([])
    if verb == ("show", "instance"):  # a plan has options of its own
        main([*verb, "plan.json"])
        seen.update(_Recorder.read)
    for action in options:
        if action.dest not in seen:
            value = [] if action.nargs == 0 else [_value(action)]
            err = run([action.option_strings[-1], *value])
            refused = "error:" in err and action.option_strings[-1].lstrip("-") in err
            assert action.dest in _Recorder.read or refused, (action.option_strings, err)


TABULAR = [call for call in sorted(good_calls()) if "--csv" in options_of(VERBS[" ".join(call)])]


@pytest.mark.parametrize("verb", TABULAR)
def test_each_table_is_there_as_csv(
    base: Mapping[tuple[str, ...], list[str]], command: Run, verb: tuple[str, ...]
) -> None:
    done = command(*verb, *base[verb], "--csv", "--force" if verb == ("import",) else "--csv")
    assert done.code in (0, 2)
    assert done.out or verb == ("db", "diff")  # the same plan twice: no steps
    for table in done.out.split("\n\n"):
        assert len({len(row) for row in csv.reader(table.splitlines(), strict=True)}) <= 1, table
    if verb == ("solve",):
        plan = command(*verb, *base[verb], "--json").document
        assert repr(plan["mean_latency_ms"]) in done.out  # numbers are whole


def _value(action: argparse.Action) -> str:
    if action.choices:
        return list(action.choices)[-1]
    return {"PLAN": "plan.json", "FILE": "new.csv"}.get(str(action.metavar), "2")


@pytest.mark.parametrize(
    ("options", "needed"),
    [
        (["--zones", "country"], "--transfer"),
        (["--marginal-gb", "5"], "--transfer"),
        (["--storage-unit", "GB-month"], "--prices"),
        (["--database", "etcd"], "--today"),
        (["--client-distributions", "x.csv"], "--distributions"),
        (["--embed"], "-o"),
    ],
)
def test_an_option_that_does_nothing_alone_is_refused(
    command: Run, world: Path, options: list[str], needed: str
) -> None:
    done = command("solve", world, "--replicas", 2, *options, code=1)
    assert f"{options[0]}: does nothing without {needed}" in done.err


# --- the file --------------------------------------------------------------------------------


def test_a_file_answers_in_every_verb_and_options_override_it(command: Run, folder: Path) -> None:
    plan = command("solve", "question.toml", "--json").document
    assert len(plan["voters"]) == 2
    assert plan["status"] == "optimal"
    more = command("solve", "question.toml", "--replicas", 3, "--voters", 3, "--json").document
    assert len(more["replicas"]) == len(more["voters"]) == 3
    for verb in ("compare methods", "compare sizes"):
        assert command(*verb.split(), "question.toml", "--json").code == 0


def test_a_command_line_and_a_plan_give_their_question(command: Run, folder: Path) -> None:
    asked = command("question", "question.toml", "--set", "keep+=cost <= 4000").out
    assert 'keep = ["mean(weak_read) <= 90 ms", "cost <= 4000"]' in asked
    (folder / "again.toml").write_text(asked)
    assert toml_text(read_question("again.toml")) == asked
    first = command("solve", "question.toml", "-o", "plan.json", "--json").document
    made = command("question", "plan.json").out
    assert 'instance = "plan.json"' in made
    assert 'replicas = "2..3"' in made
    (folder / "of_plan.toml").write_text(made)
    again = command("solve", "of_plan.toml", "--json").document
    assert again["objective"] == first["objective"]
    assert again["problem"] == first["problem"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (["--today", "now.toml", "--max-moves", 2, "--move-price", "add=3", "--move-horizon", 2],
         'today = "now.toml"\nmax_moves = 2\nmove_price = "add=3"\nmove_horizon = 2\n'),
        (["--minimise", "p90", "--spread", 0.2, "--bin-width", 2], "spread = 0.2\nbin_width = 2\n"),
    ],
)  # fmt: skip
def test_a_plan_names_what_ran_and_the_distributions(
    command: Run, folder: Path, asked: list[object], told: str
) -> None:
    (folder / "now.toml").write_text('leader = "a"\nvoters = ["a", "b"]\nreplicas = ["a", "b"]\n')
    (folder / "plans").mkdir()
    tables = '[instance]\nrtt = "rtt.csv"\ndemand = "counts.csv"\n'
    (folder / "question.toml").write_text(f"replicas = 2\nvoters = 2\n{tables}")
    assert 'replicas = "99' in command("question", "question.toml", "--replicas", "9" * 5000).out
    more = ["-o", "plans/plan.json", "--json"]
    first = command("solve", "question.toml", *asked, *more).document
    made = command("question", "plans/plan.json")
    assert told in made.out
    assert made.err == ""
    assert command("question", "plans/plan.json", "-o", "plans/again.toml").code == 0
    again = command("solve", "plans/again.toml", "--json").document
    for key in ("problem", "objective", "bound"):
        assert again[key] == first[key]
    (folder / "now.toml").write_text('leader = "c"\nvoters = ["c"]\nreplicas = ["c"]\n')
    said = command("question", "plans/plan.json").err.replace("\n", " ")
    assert ("another configuration than the one that ran" in said) == ("--today" in asked)


def test_a_plan_of_a_data_set_names_the_data_set(command: Run, folder: Path) -> None:
    command("solve", "world27", "--replicas", 3, "--mix", "cache", "-o", "plan.json")
    made = command("question", "plan.json").out
    assert 'source = "world27"' in made
    assert 'mix = "cache"' in made


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("replica = 3\nvoters = true\nper_step = 5\nsurvive = 7\n[prices]\nfil = 'x'\n",
         ["5 errors:", "line 1: replica: unknown key (did you mean 'replicas'?)",
          "line 2: voters: wrong type", "line 3: per_step: unknown key (an option of placement "
          "lab migrate)", "line 4: survive: wrong type",
          "line 6: prices.fil: unknown key (did you mean 'file'?)"]),
        ("replicas = = 3\n", ["not TOML", "line 1"]),
        ('instance = "other.toml"\nreplicas = 3\n',
         ["line 1: instance: a question inside a question"]),
        ("replicas = 3\n", ["no instance"]),
        ('instance = "world27"\nreplicas = 3\nmax_moves = 2\ntoday = "dump.json"\n',
         ["dump.json", "--database"]),
        ('instance = "world27"\nreplicas = 3\ntoday = "none.json"\n[tail]\n'
         'distributions = "none.csv"\n',
         ["2 errors:", "bad.toml, line 3: today: no such file: got 'none.json'",
          "bad.toml, line 5: tail.distributions: no such file: got 'none.csv'"]),
        ('instance = "world27"\nreplicas = 3\n[prices]\nfile = "none.csv"\n',
         ["bad.toml, line 4: --prices: no such file"]),
        ('instance = "world27"\nreplicas = 3\npin = "Atlantis"\n',
         ["bad.toml, line 3: pinned: unknown site: got 'Atlantis'"]),
    ],
)  # fmt: skip
def test_all_mistakes_of_a_file_are_told_at_once(
    command: Run, folder: Path, text: str, expected: list[str]
) -> None:
    (folder / "bad.toml").write_text(text)
    (folder / "dump.json").write_text('{"members": [{"name": "a"}]}')
    done = command("solve", "bad.toml", "-o", "plan.json", code=1)
    for words in expected:
        assert words in done.err, done.err
    assert not (folder / "plan.json").exists()


def test_the_schema_names_every_key() -> None:
    schema: Any = json_schema()
    told = set(schema["properties"])
    for name in GROUPS:
        found = schema["properties"][name]
        told |= set(next(o for o in found.get("anyOf", [found]) if "properties" in o)["properties"])
    hidden = {"rtt", "demand_table", "site_table"}
    assert set(KEYS) - hidden <= told
    assert json.loads(json.dumps(schema)) == schema


# --- prices and their units, levels, hints ---------------------------------------------------


def test_prices_per_gb_say_so(command: Run, folder: Path) -> None:
    """0.08 USD and 500 GB were billed as 0.24 USD for three replicas, without a word."""
    asked = ["solve", "question.toml", "--replicas", 3, "--voters", 3, "--prices", "prices.csv"]
    silent = command(*asked, "--stored-gb", 500)
    assert "the price of a whole replica of 500 GB" in silent.err
    (folder / "unit.toml").write_text(
        TABLES["question.toml"]
        + '[prices]\nfile = "prices.csv"\nstorage_unit = "GB-month"\nstored_gb = 500\n'
    )
    said = command("solve", "unit.toml", "--replicas", 3, "--voters", 3)
    assert "120.00 USD per month for 1,500 GB, 0.08 USD per GB" in said.out
    assert not said.err
    assert command(*asked, "--storage-unit", "GB-month").code == 1  # of how many GB?


def test_coordinates_are_no_levels(command: Run, folder: Path) -> None:
    done = command("solve", "question.toml", "--survive", "latitude", code=1)
    assert "expected one of the levels: 'site', 'country'" in done.err


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (["solv", "world27"], "'solve'"),
        (["solve", "world27", "--voter", 3], "'--voters'"),
        (["solve", "world27", "--replicas", 3, "--leader", "us-est-1"], "'us-east-1'"),
        (["solve", "world27", "--replicas", 3, "--survive", "contry"], "'country'"),
        (["solve", "world27", "--replicas", 3, "--method", "exat"], "'exact'"),
        (["solve", "world27", "--replicas", 3, "--protocol", "epaxo"], "'epaxos'"),
        (["solve", "world72", "--replicas", 3], "'world27'"),
        (["compare", "method", "world27"], "'methods'"),
    ],
)
def test_did_you_mean(command: Run, words: list[object], hint: str) -> None:
    done = command(*words, code=1)
    assert hint in done.err


# --- Python ----------------------------------------------------------------------------------


def test_python_asks_in_one_call() -> None:
    import pandas as pd

    rtt = pd.DataFrame([[1, 90, 145], [90, 1, 65], [145, 65, 1]], list("abc"), list("abc"))
    counts = pd.DataFrame({"weak_read": [4, 5, 6], "single_group": [1, 1, 1]}, list("abc"))
    instance = placement.Instance.from_frames(rtt, counts)
    plan = placement.solve(instance, replicas=3)
    assert plan.per_client["client"].tolist() == ["a", "b", "c"]
    assert "gap" not in repr(plan)
    none = placement.solve(instance, replicas=3, forbidden=["a"])
    assert "infeasible" in repr(none)
    assert none.reasons[0] in repr(none)
    for wrong, name in (
        (lambda: placement.Problem(instance, replicas=2, voter=3), "voters"),  # type: ignore[call-arg]
        (lambda: placement.solve(instance, replica=3), "replicas"),
        (lambda: placement.solve(plan.problem, time_limt=3), "time_limit"),
        (lambda: placement.Instance.from_frames(rtt, counts.rename(index={"a": "aa"})), "a"),
    ):
        with pytest.raises(InputError, match=f"did you mean '{name}'"):
            wrong()


def test_completion_of_the_package_names_what_is_public() -> None:
    listed = {name for name in dir(placement) if not name.startswith("_")}
    assert not listed & {"annotations", "TYPE_CHECKING", "chain", "lazy_names", "cli", "support"}
    assert {"solve", "Problem", "Instance", "io", "watch"} <= listed


WORLD = ["world27", "--replicas", "5", "--voters", "3"]


@pytest.fixture(scope="module")
def today(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The configuration that runs: a leader far from most clients."""
    path = tmp_path_factory.mktemp("moves") / "today.json"
    assert main(["solve", *WORLD, "--leader", "sa-east-1", "-o", str(path)]) == exits.FOUND
    return path


def test_solve_lists_the_steps_and_when_they_pay(
    today: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    moves = ["--max-moves", "3", "--move-price", "add=20,leader=5,promote=1"]
    plan = tmp_path / "plan.json"
    asked = ["solve", *WORLD, "--from", str(today), *moves, "--move-horizon", "8"]
    assert main([*asked, "-o", str(plan)]) == exits.FOUND
    text = capsys.readouterr().out
    assert "hand the leadership over to" in text
    assert "3 changes" in text
    assert "paid back after" in text
    check_certificate(load_plan(plan))
    assert main(["check", str(plan)]) == exits.FOUND
    assert "a sum of mean latency and the price of the move below" in capsys.readouterr().out
    assert main([*asked, "--json"]) == exits.FOUND
    move = json.loads(capsys.readouterr().out)["move"]
    assert move["changes"] == 3
    assert move["leader"]
    assert move["price_ms"] == 6.0
    assert move["gain_ms"] == pytest.approx(move["before_ms"] - move["after_ms"])
    assert move["pays_after_periods"] == pytest.approx(6.0 / move["gain_ms"])
    assert move["steps"][-1]["mean_ms"] == pytest.approx(move["after_ms"])
    assert main(["report", str(plan), "-o", str(tmp_path / "plan.html")]) == exits.FOUND
    assert "How to get there" in (tmp_path / "plan.html").read_text(encoding="utf-8")


def test_a_configuration_by_name_is_read_too(
    today: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = load_plan(today)
    here = {"leader": plan.leader, "voters": plan.voters, "replicas": plan.replicas}
    (tmp_path / "now.json").write_text(json.dumps(here))
    asked = ["solve", *WORLD, "--from", str(tmp_path / "now.json"), "--max-moves", "0", "--json"]
    assert main(asked) == exits.FOUND
    document = json.loads(capsys.readouterr().out)
    assert document["move"]["changes"] == 0
    assert document["move"]["steps"] == []
    (tmp_path / "now.json").write_text(json.dumps({**here, "leader": "nowhere"}))
    assert main(asked) == exits.BAD_INPUT
    assert "nowhere" in capsys.readouterr().err


def test_next_tells_what_each_change_brings(
    today: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "free.json"
    asked = ["solve", *WORLD, "--from", str(today), "--max-moves", "0", "-o", str(plan)]
    assert main(asked) == exits.FOUND
    capsys.readouterr()
    assert main(["next", "world27", "--from", str(plan), "--moves", "--json"]) == exits.FOUND
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["changes"] for row in rows] == list(range(len(rows)))
    gains = [row["gain"] for row in rows]
    assert gains[0] == 0
    assert gains == sorted(gains)
    assert rows[-1]["share"] == pytest.approx(100)
    assert {row["status"] for row in rows} == {"optimal"}
    assert main(["next", "world27", "--from", str(plan), "--moves", "1"]) == exits.FOUND
    assert "% of all" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--max-moves", "2"], "--today"),
        (["--move-price", "5"], "--today"),
        (["--from", "TODAY", "--move-price", "add=-1"], "--move-price"),
        (["--from", "TODAY", "--move-price", "lift=1"], "--move-price"),
        (["--from", "TODAY", "--move-price", "add=1,add=2"], "twice"),
        (["--from", "TODAY", "--copy-gb", "5"], "stored_gb"),
    ],
)
def test_options_that_make_no_sense(
    today: Path, options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [str(today) if option == "TODAY" else option for option in options]
    assert main(["solve", *WORLD, *given]) == exits.BAD_INPUT
    assert words in capsys.readouterr().err


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
        ("placement solve w", {"world/"}, {"azure"}),
        ("placement solve world27 --max-l", set(), {"--json"}),
        ("placement solve world27 --repl", {"--replicas"}, {"--json"}),
        ("placement solve world27 --family g", {"gamma"}, {"lognormal"}),
        ("placement --completion f", {"fish"}, {"bash"}),
    ],
)
def test_words_that_come_next(line: str, some: set[str], none: set[str], tmp_path: Path) -> None:
    (tmp_path / "world").mkdir()
    found = completions(line, tmp_path, start=line == "placement so")
    assert some <= found
    assert not none & found


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_lines_for_a_shell_name_the_command(shell: str, command: Run) -> None:
    outcome = command("--completion", shell, code=0)
    assert "placement" in outcome.out
    assert "_ARGCOMPLETE" in outcome.out


def test_without_argcomplete_the_error_says_how_to_get_it(
    command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "argcomplete.shell_integration", None)
    outcome = command("--completion", "bash", code=1)
    assert "pip install '.[completion]'" in outcome.err


def test_bash_takes_the_lines(command: Run, tmp_path: Path) -> None:
    script = tmp_path / "lines.sh"
    script.write_text(command("--completion", "bash").out)
    done = subprocess.run(
        ["bash", "-c", f". {script} && complete -p placement"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "placement" in done.stdout


ESCAPES = re.compile("\x1b\\[[0-9;]*m")
QUESTION = ("--replicas", "2", "--voters", "1")


class Terminal(io.StringIO):
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


def test_paint_adds_escapes_and_nothing_else(command: Run, world: Path) -> None:
    plain = command("solve", world, *QUESTION).out
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
    columns: str, width: int, command: Run, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    seen: list[int] = []
    page = "placement.cli.output"
    monkeypatch.setattr(f"{page}.paint", lambda text: seen.append(page_width()) or text)
    monkeypatch.setattr(f"{page}.shows_colours", lambda stream: True)
    out = command("solve", world, *QUESTION).out
    assert seen == [width]
    facts = out.split("\n\n")[0].split("\n")
    assert max(map(display_width, facts)) <= max(width, 60)
    assert page_width() == 80


@pytest.mark.parametrize("terminal", [True, False])
def test_names_are_cut_on_a_terminal_alone(
    terminal: bool, command: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr("sys.stdout.isatty", lambda: terminal)
    out = command("compare", "azure", *QUESTION, "--methods", "exact,closest-to-writes").out
    assert ("…" in out) is terminal
    assert terminal or "closest-to-writes" in out


def test_a_width_holds_inside_its_block_only() -> None:
    with use_page_width(100):
        with use_page_width(60):
            assert page_width() == 60
        assert page_width() == 100
    assert page_width() == 80


def test_json_is_never_painted(command: Run, world: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("placement.cli.output.shows_colours", lambda stream: True)
    assert "\x1b" not in command("solve", world, *QUESTION, "--json").out
    assert "\x1b" in command("solve", world, *QUESTION).out
