"""Bad input, each line of the specification's list: from the library and from the command line.

Every case says how a good file or question is spoilt, and the words the message must have: file,
row or field, value, and what was expected. The command line must say the same, exit with 1 (2 when
the question is fair and has no answer), print nothing on stdout, and write nothing.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placement import Diversity, InputError, Instance, Problem, UnitsWarning, evaluate, load, solve
from placement.cli.dispatch import GONE_OPTIONS
from placement.io import assemble, read_counts, read_rtt
from tests.cli.command import Run
from tests.expected import refused
from tests.io.worlds import small


def _snapshot(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def _refuses(run: Run, folder: Path, arguments: Sequence[object], words: Sequence[str]) -> None:
    """The command line exits with 1, says `words` in one line on stderr, and writes nothing."""
    before = _snapshot(folder)
    outcome = run(*arguments, "-o", folder / "out")
    assert outcome.code == 1
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert outcome.err.count("\n") == 1
    for word in words:
        assert word in outcome.err
    assert _snapshot(folder) == before
    assert not (folder / "out").exists()


# --- NaN, infinite or negative RTT or count --------------------------------------------------

NUMBERS = [
    ("nan", "not a number: got 'nan'"),
    ("", "missing value: got ''"),
    ("inf", "infinite: got 'inf'"),
    ("-inf", "infinite: got '-inf'"),
    ("-4", "negative: got '-4'"),
    ("ten", "not a number: got 'ten'"),
]


@pytest.mark.parametrize(("cell", "message"), NUMBERS)
@pytest.mark.parametrize(
    ("file", "old", "place", "expected"),
    [
        ("client_rtt.csv", "Lagos,110.0", "client_rtt.csv, row 4: Oslo", "milliseconds >= 0"),
        ("site_rtt.csv", "Oslo,0.0,40.0", "site_rtt.csv, row 2: Rome", "milliseconds >= 0"),
        ("counts.csv", "00:00,Bern,5.0", "counts.csv, row 3: weak_read", "a finite number >= 0"),
    ],
)
def test_numbers_that_are_none(
    command: Run,
    tmp_path: Path,
    world: Path,
    file: str,
    old: str,
    place: str,
    expected: str,
    cell: str,
    message: str,
) -> None:
    path = world / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, old.rpartition(",")[0] + "," + cell))
    words = [f"{world / file}, {place.split(', ')[1]}", message, expected]
    with refused(*words):
        load(world)
    question = ["solve", world, "--replicas", 2, "--voters", 1, "--method", "exhaustive"]
    _refuses(command, tmp_path, question, words)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -4.0])
@pytest.mark.parametrize(
    ("argument", "index", "place"),
    [
        ("client_rtt", (2, 0), "client_rtt: .* at client 'Lagos', site 'Oslo'"),
        ("site_rtt", (0, 1), "site_rtt: .* at site 'Oslo', site 'Rome'"),
        ("counts", (0, 1, 0), "counts: .* at interval '00:00', client 'Bern', operation 'weak_r"),
    ],
)
def test_numbers_that_are_none_from_python(
    argument: str, index: tuple[int, ...], place: str, value: float
) -> None:
    array = np.array(vars(small())[argument])
    array[index] = value
    with pytest.raises(InputError, match=f"{place}.*got {value}, expected a finite number >= 0"):
        small(**{argument: array})


# --- files to import -------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """Files to import, and the words of the refusal."""

    name: str
    rtt: str
    words: tuple[str, ...]
    counts: str = "client,strong_read\na,1\nb,2\n"
    sites: str | None = None
    clients: str | None = None


SQUARE = "x,a,b\na,0,3\nb,4,0\n"
IMPORTS = [
    Import(
        "missing pair of a long table",
        "src,dst,rtt\na,b,3\n",
        ("rtt.csv: rtt: 1 of 2 pairs have no RTT: got 'b → a', expected an RTT for every pair",),
    ),
    Import("NaN", "src,dst,rtt\na,b,3\nb,a,NaN\n",
           ("rtt.csv, row 3: rtt: not a number: got 'NaN'",)),
    Import("infinite", SQUARE.replace("4", "inf"), ("rtt.csv, row 3: a: infinite: got 'inf'",)),
    Import("negative", SQUARE.replace("4", "-4"), ("rtt.csv, row 3: a: negative: got '-4'",)),
    Import("unknown site", SQUARE, ("sites.csv, row 3: site: unknown site: got 'q'", "a site of"),
           sites="site\na\nq\n"),
    Import("unknown site of a client", SQUARE,
           ("clients.csv: destination: unknown site: got 'q'",), clients="client,a,q\nz,1,2\n",
           counts="client,strong_read\nz,1\n"),
    Import("unknown client", SQUARE, ("counts.csv: client: unknown client: got 'q'", ": 'a'"),
           counts="client,strong_read\na,1\nb,2\nq,3\n"),
    Import("duplicate site", "x,a,b\na,0,3\na,4,0\n",
           ("rtt.csv, row 3: x: duplicate row: got 'a', expected once (first in row 2)",)),
    Import("duplicate column", "x,a,a\na,0,3\nb,4,0\n", ("header: duplicate column: got 'a'",)),
    Import("duplicate client", SQUARE, ("counts.csv, row 3: client: a row given twice: got 'a'",),
           counts="client,strong_read\na,1\na,2\n"),
    Import("duplicate pair", "src,dst,rtt\na,b,3\na,b,3\n",
           ("rtt.csv, row 3: dst: a pair given twice: got 'a → b'",)),
    Import("negative count", SQUARE, ("counts.csv, row 3: strong_read: negative: got '-2'",),
           counts="client,strong_read\na,1\nb,-2\n"),
    Import("empty file", "", ("rtt.csv: empty",)),
]  # fmt: skip


@pytest.mark.parametrize("case", IMPORTS, ids=lambda case: case.name)
def test_files_to_import(command: Run, tmp_path: Path, case: Import) -> None:
    arguments: list[object] = ["import", tmp_path / "rtt.csv", "--counts", tmp_path / "counts.csv"]
    (tmp_path / "rtt.csv").write_text(case.rtt)
    (tmp_path / "counts.csv").write_text(case.counts)
    for option, name, text in (
        ("--sites", "sites.csv", case.sites),
        ("--client-rtt", "clients.csv", case.clients),
    ):
        if text is not None:
            (tmp_path / name).write_text(text)
            arguments += [option, tmp_path / name]
    with refused(*case.words):
        assemble(
            read_rtt(tmp_path / "rtt.csv"),
            counts=read_counts(tmp_path / "counts.csv"),
            sites=tmp_path / "sites.csv" if case.sites else None,
            client_rtt=read_rtt(tmp_path / "clients.csv") if case.clients else None,
        )
    _refuses(command, tmp_path, arguments, case.words)


# --- questions -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A question that contradicts the small world, asked both ways."""

    name: str
    asked: dict[str, Any]
    options: tuple[object, ...]
    words: tuple[str, ...]
    method: str = "exhaustive"
    spoil: Callable[[Path], None] = field(default=lambda folder: None)


def _no_country_for_rome(folder: Path) -> None:
    path = folder / "sites.csv"
    path.write_text(path.read_text().replace("Rome,IT", "Rome,"))
    _drop_fingerprint(folder)


def _drop_fingerprint(folder: Path) -> None:
    path = folder / "instance.json"
    lines = path.read_text().split("\n")
    path.write_text("\n".join(line for line in lines if "fingerprint" not in line))


def _nobody_asks(folder: Path) -> None:
    path = folder / "counts.csv"
    head, *rows = path.read_text().strip().split("\n")
    zeros = [",".join([*row.split(",")[:2], *["0"] * 5]) for row in rows]
    path.write_text("\n".join([head, *zeros]) + "\n")
    _drop_fingerprint(folder)


COUNTS = {"replicas": 2, "voters": 1}
QUESTIONS = [
    Question("unknown site", {**COUNTS, "pinned": ["Rme"]}, ("--pin", "Rme"),
             ("pinned: unknown site: got 'Rme'", "did you mean 'Rome'?")),
    Question("unknown leader", {**COUNTS, "leader": "Paris"}, ("--leader", "Paris"),
             ("leader: unknown site: got 'Paris'", "'Washington, DC'")),
    Question("unknown voter", {"replicas": 2, "voters": ["Paris"]}, ("--voters", "Paris,"),
             ("voters: unknown site: got 'Paris'",)),
    Question("unknown level", {**COUNTS, "diversity": [Diversity("contry")]}, ("--cap", "contry=1"),
             ("level: unknown failure-domain level: got 'contry'", "did you mean 'country'?")),
    Question("unknown level to survive", {"replicas": 3, "voters": 3, "survive": "contry"},
             ("--replicas", 3, "--voters", 3, "--survive", "contry"),
             ("survive: unknown failure-domain level: got 'contry'", "did you mean 'country'?")),
    Question("unknown level of a loss", {**COUNTS, "minimise": "mean after the loss of any contry"},
             ("--minimise", "mean after the loss of any contry"),
             ("any contry: unknown failure-domain level", "did you mean 'country'?")),
    Question("unknown client of a limit", {**COUNTS, "keep": "mean(client Rme) <= 90 ms"},
             ("--keep", "mean(client Rme) <= 90 ms"), ("mean(client Rme): ", "no such client")),
    Question("duplicate names", {**COUNTS, "forbidden": ["Rome", "Rome"]},
             ("--forbid", "Rome", "--forbid", "Rome"),
             ("forbidden: duplicate name: got 'Rome', expected unique names",)),
    Question("no label where a constraint needs one",
             {"replicas": 3, "voters": 3, "survive": "country"},
             ("--replicas", 3, "--voters", 3, "--survive", "country"),
             ("domains['country']", "site 'Rome' has no country", "(or forbid the site)"),
             spoil=_no_country_for_rome),
    Question("more voters than replicas", {"replicas": 2, "voters": 3}, ("--voters", 3),
             ("voters: more voters than replicas: got 3, expected <= 2",)),
    Question("more replicas than sites", {"replicas": 4, "voters": 1}, ("--replicas", 4),
             ("replicas: more replicas than sites: got 4, expected <= 3",)),
    Question("no voters", {"replicas": 2, "voters": 0}, ("--voters", 0),
             ("voters: out of range: got 0, expected a whole number >= 1",)),
    Question("no replicas", {"replicas": 0, "voters": 1}, ("--replicas", 0),
             ("replicas: out of range: got 0",)),
    Question("half a voter", {"replicas": 2, "voters": 1.5}, ("--voters", "1.5"),
             ("voters: not a whole number: got 1.5, expected a whole number",)),
    Question("an even number of voters where none may be lost",
             {"replicas": 2, "voters": 2, "survive": "country"},
             ("--voters", 2, "--survive", "country"),
             ("survive: with 2 voters and quorum 2 no voter may be lost",
              "expected more voters (3 or more with majorities)")),
    Question("quorum above the voters", {"replicas": 2, "voters": 1, "quorum": 2}, ("--quorum", 2),
             ("quorum: a quorum larger than the number of voters: got 2, expected <= 1",)),
    Question("a range upside down", {"replicas": (3, 2), "voters": 1}, ("--replicas", "3..2"),
             ("replicas: not a possible range: got (3, 2), expected least <= most",)),
    Question("pinned and forbidden", {**COUNTS, "pinned": ["Rome"], "forbidden": ["Rome"]},
             ("--pin", "Rome", "--forbid", "Rome"),
             ("pinned: contradicts another constraint: got 'Rome', expected no forbidden site",)),
    Question("decay below 1", {**COUNTS, "decay": 0.5}, ("--decay", 0.5),
             ("decay: ", "0.5", "number >= 1")),
    Question("money without prices", {**COUNTS, "budget": 3.0}, ("--budget", 3),
             ("budget: a budget or a weight of the cost needs prices, "
              "and the instance has none: got 3.0",)),
    Question("a cap of none", {**COUNTS}, ("--cap", "country=none"),
             ("--cap: not a rule: got 'country=none', expected LEVEL=K or LEVEL=K:replicas",)),
    Question("all counts zero", COUNTS, (),
             ("counts: all counts are zero", "expected at least one operation issued"),
             spoil=_nobody_asks),
    Question("an unknown method", COUNTS, ("--method", "exhaustiv"),
             ("method: unknown method: got 'exhaustiv'", "did you mean 'exhaustive'?"),
             method="exhaustiv"),
]  # fmt: skip


@pytest.mark.parametrize("case", QUESTIONS, ids=lambda case: case.name)
def test_questions(command: Run, tmp_path: Path, world: Path, case: Question) -> None:
    case.spoil(world)
    arguments = ["solve", world, "--method", "exhaustive", *case.options]
    for option, default in (("--replicas", 2), ("--voters", 1)):
        if option not in case.options:
            arguments += [option, default]
    if case.name != "a cap of none":  # which cannot even be said in Python
        with refused(*case.words):
            solve(Problem(load(world), **case.asked), case.method)
    _refuses(command, tmp_path, arguments, case.words)


CONFIGURATIONS = [
    (("Oslo", ["Rome"], ["Oslo", "Rome"]), "leader: not part of the configuration: got 'Oslo'"),
    (("Oslo", ["Oslo", "Rome"], ["Oslo"]), "voters: more voters than replicas: got 2"),
    (("Oslo", ["Oslo"], ["Rome"]), "voters: not part of the configuration: got 'Oslo'"),
    (("Pisa", ["Oslo"], ["Oslo"]), "leader: unknown site: got 'Pisa'"),
    (("Oslo", ["Oslo"], ["Oslo", "Oslo"]), "replicas: duplicate name: got 'Oslo'"),
]


@pytest.mark.parametrize(("given", "message"), CONFIGURATIONS)
def test_configurations(
    command: Run, tmp_path: Path, world: Path, given: tuple[str, list[str], list[str]], message: str
) -> None:
    leader, voters, replicas = given

    def score() -> None:
        problem = Problem(small(), replicas=len(replicas), voters=len(voters))
        evaluate(problem, leader=leader, voters=voters, replicas=replicas)

    with refused(message):
        score()
    arguments: list[object] = ["check", "configuration", world, "--leader", leader]
    arguments += ["--voters", ",".join(voters)]
    for replica in replicas:
        arguments += ["--replicas", replica]
    _refuses(command, tmp_path, arguments, [message])


# --- fair questions without an answer --------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "options", "reason"),
    [
        (
            {"diversity": [Diversity("continent")]},
            ("--cap", "continent=1"),
            "at most 1 of the voters per continent: the level continent has 2 domains with allowed "
            "sites, so at most 2 voters fit, but 3 are asked for",
        ),
        (
            {"diversity": [Diversity("continent", min_domains=3)]},
            ("--distinct", "continent=3"),
            "voters in at least 3 distinct continent domains: the level continent has only 2 "
            "domains with allowed sites",
        ),
        (
            {"diversity": [Diversity("continent", "replicas", cap=1)]},
            ("--cap", "continent=1:replicas"),
            "the level continent has 2 domains with allowed sites, so at most 2 replicas fit",
        ),
        (
            {"diversity": [Diversity("continent", domain="Europe", least=4)]},
            ("--require", "continent:Europe=4:voters"),
            "at least 4 of the voters in the continent Europe: only ",
        ),
        (
            {"forbidden": ["Rome"]},
            ("--forbid", "Rome"),
            "3 replicas are asked for, but only 2 of 3 sites may hold one",
        ),
    ],
)
@pytest.mark.parametrize("output", [(), ("--json",)])
def test_what_cannot_be_met_says_which_constraint_and_which_numbers(
    command: Run,
    tmp_path: Path,
    world: Path,
    asked: dict[str, Any],
    options: tuple[str, ...],
    reason: str,
    output: tuple[str, ...],
) -> None:
    plan = solve(Problem(small(), replicas=3, voters=3, **asked), "exhaustive")
    assert plan.status == "infeasible"
    assert reason in plan.reasons[0]
    before = _snapshot(tmp_path)
    outcome = command(
        *("solve", world, "--replicas", 3, "--voters", 3, "--method", "exhaustive"),
        *(*options, *output, "-o", tmp_path / "plan.json"),
    )
    assert outcome.code == 2
    assert outcome.err == ""
    if output:
        assert outcome.document["status"] == "infeasible"
        assert reason in outcome.document["reasons"][0]
    else:
        assert reason in " ".join(outcome.out.split())
        assert "Nothing was written" in outcome.out
    assert _snapshot(tmp_path) == before


# --- the wrong file, or a file in vain -------------------------------------------------------

STRANGE_FILES = [
    (("solve", "rtt.csv", "--replicas", 2),
     "rtt.csv: a table, and no instance: expected a folder; placement import rtt.csv -o FOLDER"),
    (("solve", "world", "--replicas", 2, "--from", "nowhere.json"),
     "--today: does nothing without a bill of the plan: got 'nowhere.json', expected prices "
     "(--prices), or an option of moves"),
    (("check", "configuration", "world", "--leader", "Oslo", "--voters", "Oslo,",
      "--replicas", "Oslo,", "--from", "nowhere.json"),
     "--today: does nothing without a bill of the plan: got 'nowhere.json', expected prices "
     "(--prices)"),
    (("solve", "world", "--replicas", 2, "--prices", 3, "--from", "nowhere.json"),
     "nowhere.json: no such file"),
    (("solve", "world", "--replicas", 2, "--prices", 3, "--from", "object.json"),
     "object.json: format: a file of another kind"),
    (("report", "list.json"), "list.json: nothing to report on: expected a plan"),
    (("import", "rtt.csv"), "counts: no demand is given: expected either a table of counts"),
    (("solve", "world", "--replicas", -2),
     "replicas: out of range: got -2, expected a whole number >= 1"),
    (("solve", "world", "--replicas", "3..2"),
     "replicas: not a possible range: got (3, 2), expected least <= most"),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "message"), STRANGE_FILES)
def test_files_that_are_another_or_in_vain(
    command: Run,
    tmp_path: Path,
    world: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[object, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rtt.csv").write_text("x,a,b\na,1,30\nb,30,1\n")
    Path("object.json").write_text("{}")
    Path("list.json").write_text("[]")
    before = _snapshot(tmp_path)
    output = () if "--foo" in arguments else ("-o", "out")
    outcome = command(*arguments, *output, code=1)
    assert outcome.err.startswith(f"error: {message}")
    assert _snapshot(tmp_path) == before


# --- suspected units -------------------------------------------------------------------------


@pytest.mark.parametrize(("factor", "fix"), [(1e-6, "multiply by 1000"), (1e3, "divide by 1000")])
def test_suspect_units_are_a_warning_that_names_the_fix(
    command: Run, tmp_path: Path, factor: float, fix: str
) -> None:
    (tmp_path / "rtt.csv").write_text(
        f"x,a,b\na,{factor},{20 * factor}\nb,{30 * factor},{factor}\n"
    )
    with pytest.warns(UnitsWarning, match=fix):
        assemble(read_rtt(tmp_path / "rtt.csv"), mix="cache")
    line = ("import", tmp_path / "rtt.csv", "--mix", "cache", "-o", tmp_path / "w")
    outcome = command(*line, code=1)  # no terminal: nobody can be asked
    assert "no unit is told" in outcome.err
    assert "or --unit ms if they are milliseconds" in outcome.err
    outcome = command(*line, "--unit", "ms")
    assert outcome.code == 0  # a warning, not a refusal
    lines = outcome.err.strip().split("\n")
    assert all(line.startswith("warning: ") and fix in line for line in lines)
    assert {line.split(":")[1].strip() for line in lines} == {"client_rtt", "site_rtt"}
    assert (tmp_path / "w/instance.json").exists()
    outcome = command(
        *("import", tmp_path / "rtt.csv", "--mix", "cache", "-o", tmp_path / "v"),
        *("--scale", 1 / factor),
    )
    assert (outcome.code, outcome.err) == (0, "")


# --- what the list takes for granted ---------------------------------------------------------


def test_a_damaged_instance_is_not_replaced_by_a_failed_import(
    command: Run, tmp_path: Path, world: Path
) -> None:
    (tmp_path / "rtt.csv").write_text("x,a,b\na,0,3\nb,oops,0\n")
    before = _snapshot(world)
    outcome = command("import", tmp_path / "rtt.csv", "--mix", "cache", "-o", world, "--force")
    assert outcome.code == 1
    assert "got 'oops'" in outcome.err
    assert _snapshot(world) == before


def test_the_cases_are_spoilt_and_not_the_world_itself(
    command: Run, tmp_path: Path, world: Path
) -> None:
    assert isinstance(load(world), Instance)
    outcome = command(
        *("solve", world, "--replicas", 2, "--voters", 1, "--method", "exhaustive"),
        *("-o", tmp_path / "out"),
    )
    assert outcome.code == 0
    assert (tmp_path / "out").exists()
    shutil.rmtree(world)
    outcome = command("show", world, code=1)
    assert "no such data set or file" in outcome.err
    assert "world27" in outcome.err


VERBS_WITH_GONE_OPTIONS = {
    "": ("explain", "world27"),
    "compare methods": ("compare", "world27", "--replicas", "3"),
    "fleet": ("fleet", "world27", "--fleet", "3"),
    "lab quorum": ("lab", "quorum", "world27"),
}


@pytest.mark.parametrize("option", GONE_OPTIONS)
def test_options_that_are_gone_name_what_took_their_place(command: Run, option: str) -> None:
    verb, _, name = option.rpartition(" ")
    found = command(*VERBS_WITH_GONE_OPTIONS[verb], "--replica", "3", f"{name}=x", code=1)
    assert found.err == f"error: {name}: this option is gone: expected {GONE_OPTIONS[option]}\n"
