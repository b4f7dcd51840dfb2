"""A question in a file: read, written, overridden, refused; what verbs show and read."""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

import placement
from placement.cli import main
from placement.cli.argument_parser import MOST_LINES, MOST_SHORT, Parser, options_shown
from placement.cli.dispatch import SHOWN, leaves, options_of, whole_parser
from placement.errors import InputError
from placement.question import GROUPS, KEYS, json_schema, read_question, toml_text
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
    base: Mapping[tuple[str, ...], list[str]], placement: Run, verb: tuple[str, ...]
) -> None:
    done = placement(*verb, *base[verb], "--csv", "--force" if verb == ("import",) else "--csv")
    assert done.code in (0, 2)
    assert done.out or verb == ("db", "diff")  # the same plan twice: no steps
    for table in done.out.split("\n\n"):
        assert len({len(row) for row in csv.reader(table.splitlines(), strict=True)}) <= 1, table
    if verb == ("solve",):
        plan = placement(*verb, *base[verb], "--json").document
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
    placement: Run, world: Path, options: list[str], needed: str
) -> None:
    done = placement("solve", world, "--replicas", 2, *options)
    assert done.code == 1
    assert f"{options[0]}: does nothing without {needed}" in done.err


# --- the file --------------------------------------------------------------------------------


def test_a_file_answers_in_every_verb_and_options_override_it(placement: Run, folder: Path) -> None:
    plan = placement("solve", "question.toml", "--json").document
    assert len(plan["voters"]) == 2
    assert plan["status"] == "optimal"
    more = placement("solve", "question.toml", "--replicas", 3, "--voters", 3, "--json").document
    assert len(more["replicas"]) == len(more["voters"]) == 3
    for verb in ("compare methods", "compare sizes"):
        assert placement(*verb.split(), "question.toml", "--json").code == 0


def test_a_command_line_and_a_plan_give_their_question(placement: Run, folder: Path) -> None:
    asked = placement("question", "question.toml", "--set", "keep+=cost <= 4000").out
    assert 'keep = ["mean(weak_read) <= 90 ms", "cost <= 4000"]' in asked
    (folder / "again.toml").write_text(asked)
    assert toml_text(read_question("again.toml")) == asked
    first = placement("solve", "question.toml", "-o", "plan.json", "--json").document
    made = placement("question", "plan.json").out
    assert 'instance = "plan.json"' in made
    assert 'replicas = "2..3"' in made
    (folder / "of_plan.toml").write_text(made)
    again = placement("solve", "of_plan.toml", "--json").document
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
    placement: Run, folder: Path, asked: list[object], told: str
) -> None:
    (folder / "now.toml").write_text('leader = "a"\nvoters = ["a", "b"]\nreplicas = ["a", "b"]\n')
    (folder / "plans").mkdir()
    tables = '[instance]\nrtt = "rtt.csv"\ndemand = "counts.csv"\n'
    (folder / "question.toml").write_text(f"replicas = 2\nvoters = 2\n{tables}")
    more = ["-o", "plans/plan.json", "--json"]
    first = placement("solve", "question.toml", *asked, *more).document
    made = placement("question", "plans/plan.json")
    assert told in made.out
    assert made.err == ""
    assert placement("question", "plans/plan.json", "-o", "plans/again.toml").code == 0
    again = placement("solve", "plans/again.toml", "--json").document
    for key in ("problem", "objective", "bound"):
        assert again[key] == first[key]
    (folder / "now.toml").write_text('leader = "c"\nvoters = ["c"]\nreplicas = ["c"]\n')
    said = placement("question", "plans/plan.json").err.replace("\n", " ")
    assert ("another configuration than the one that ran" in said) == ("--today" in asked)


def test_a_plan_of_a_data_set_names_the_data_set(placement: Run, folder: Path) -> None:
    placement("solve", "world27", "--replicas", 3, "--mix", "cache", "-o", "plan.json")
    made = placement("question", "plan.json").out
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
    placement: Run, folder: Path, text: str, expected: list[str]
) -> None:
    (folder / "bad.toml").write_text(text)
    (folder / "dump.json").write_text('{"members": [{"name": "a"}]}')
    done = placement("solve", "bad.toml", "-o", "plan.json")
    assert done.code == 1
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


def test_prices_per_gb_say_so(placement: Run, folder: Path) -> None:
    """0.08 USD and 500 GB were billed as 0.24 USD for three replicas, without a word."""
    asked = ["solve", "question.toml", "--replicas", 3, "--voters", 3, "--prices", "prices.csv"]
    silent = placement(*asked, "--stored-gb", 500)
    assert "the price of a whole replica of 500 GB" in silent.err
    (folder / "unit.toml").write_text(
        TABLES["question.toml"]
        + '[prices]\nfile = "prices.csv"\nstorage_unit = "GB-month"\nstored_gb = 500\n'
    )
    said = placement("solve", "unit.toml", "--replicas", 3, "--voters", 3)
    assert "120.00 USD per month for 1,500 GB, 0.08 USD per GB" in said.out
    assert not said.err
    assert placement(*asked, "--storage-unit", "GB-month").code == 1  # of how many GB?


def test_coordinates_are_no_levels(placement: Run, folder: Path) -> None:
    done = placement("solve", "question.toml", "--survive", "latitude")
    assert done.code == 1
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
def test_did_you_mean(placement: Run, words: list[object], hint: str) -> None:
    done = placement(*words)
    assert done.code == 1
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
