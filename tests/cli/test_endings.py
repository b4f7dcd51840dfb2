"""However a run ends: exit code, one line on stderr, no traceback. Verbs are entry points."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import Configuration, Method, Options, Plan, Problem, SolverError, Termination
from placement.cli import main
from placement.cli.dispatch import VERBS, leaves, whole_parser
from placement.cli.output import ProgressLine
from placement.cli.problem_options import count_or_names, names
from placement.errors import LimitError
from placement.io import load_plan, save_instance
from placement.methods.options import Progress
from placement.problem import describe
from placement.support.entry_points import EntryPoint
from placement.support.status import SearchEnd, end_early
from tests.cli.command import Run, output_of
from tests.io.worlds import small

COUNTS = ("--replicas", 2, "--voters", 1, "--method", "exhaustive")


def _script(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "placement", *map(str, arguments)]


def _method(monkeypatch: pytest.MonkeyPatch, call: object) -> None:
    method = Method("toy", call, "for this test", exact=False)  # type: ignore[arg-type]  # checked by use
    monkeypatch.setattr("placement.methods.registry.load_method", lambda name: method)


def test_nothing_found_in_time_is_3(
    command: Run, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def empty_handed(problem: Problem, options: Options) -> Plan:
        assert options.time_limit == 0.5
        return Plan.of(problem, None, method="toy", termination=Termination.TIME_LIMIT)

    _method(monkeypatch, empty_handed)
    outcome = command("solve", world, *COUNTS, "--time-limit", 0.5, "-o", tmp_path / "p.json")
    assert outcome.code == 3
    assert "nothing found" in outcome.out
    assert "stopped: time limit" in " ".join(outcome.out.split())
    assert not (tmp_path / "p.json").exists()


def test_a_plan_at_the_time_limit_is_0_with_its_gap(
    command: Run, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from placement import Configuration

    def half_way(problem: Problem, options: Options) -> Plan:
        plan = Plan.of(problem, Configuration.of(0, (0,), (0, 1)), method="toy")
        return Plan.of(
            problem, plan.configuration, method="toy", bound=plan.objective * 0.75,
            termination=Termination.TIME_LIMIT,
        )  # fmt: skip

    _method(monkeypatch, half_way)
    outcome = command("solve", world, *COUNTS, code=0)
    assert "feasible, gap 25 %" in outcome.out


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        (SolverError("the solver fell over"), 4, "error: the solver fell over"),
        (LimitError("too much"), 1, "error: too much"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (PermissionError(13, "Permission denied", "/x/y"), 1, "error: /x/y: Permission denied"),
        (OSError(28, "No space left on device"), 1, "error: No space left on device"),
    ],
)
def test_errors_have_their_codes(
    command: Run,
    world: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    words: str,
) -> None:
    def fails(problem: Problem, options: Options) -> Plan:
        raise error

    _method(monkeypatch, fails)
    outcome = command("solve", world, *COUNTS)
    assert (outcome.code, outcome.out, outcome.err) == (code, "", words + "\n")


def test_a_defect_of_ours_is_not_hidden(
    command: Run, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(problem: Problem, options: Options) -> Plan:
        raise ZeroDivisionError("ours")

    _method(monkeypatch, fails)
    with pytest.raises(ZeroDivisionError, match="ours"):
        command("solve", world, *COUNTS)


def test_a_method_that_cannot_take_the_question_says_why(command: Run, world: Path) -> None:
    outcome = command("solve", world, "--replicas", 2, "--voters", 1, "--method", "tier2", code=1)
    assert "'tier2' does not support this problem" in outcome.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("solve", "world27", *COUNTS, "-o", "/nowhere/p"), "/nowhere/p: the folder to write into"),
        (("solv", "world27"), "invalid choice: 'solv'"),
        (
            ("show", "methods", "--colour"),
            "arguments: --colour (see placement show methods --help)",
        ),
        (("solve",), "required: INSTANCE (see placement solve --help)"),
        (("solve", "world27", "--rep", "5", "--voters", "3"), "--replicas"),  # no abbreviations
        (("solve", "world27", *COUNTS, "--time-limit", "soon"), "--time-limit: not a number: got"),
        (("solve", "world27", *COUNTS, "--gap", "-1"), "--gap: out of range: got '-1'"),
        (("solve", "world27", *COUNTS, "--seed", "-1"), "--seed: out of range: got '-1'"),
        (("solve", "world27", *COUNTS, "--threads", "0"), "--threads: out of range: got '0'"),
        (("show", "world27", "--workload-seed", "-1"), "--workload-seed: out of range: got '-1'"),
        (("show", "worl27"), "no such data set or file: got 'worl27'"),
        (("solve", "world27", "--replicas", "3", "--voters", "1..3"), "--voters: a range"),
        (("import", "/nowhere.csv", "--mix", "cache", "-o", "w"), "/nowhere.csv: no such file"),
    ],
)
def test_mistakes_in_the_arguments_are_1(
    command: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[object, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = command(*arguments, code=1)
    assert outcome.out == ""
    assert outcome.err.startswith("error: ")
    assert words in outcome.err
    assert list(tmp_path.iterdir()) == []


def test_names_cannot_move_the_cursor(command: Run, tmp_path: Path) -> None:
    (tmp_path / "rtt.csv").write_text("x,a\x1b[2J,b\na\x1b[2J,0,3\nb,4,0\n")
    outcome = command("import", tmp_path / "rtt.csv", "--mix", "cache", "-o", tmp_path / "w")
    assert outcome.code == 0
    assert "\x1b" not in outcome.out
    assert "a\\x1b[2J" in outcome.out
    outcome = command("solve", tmp_path / "w", *COUNTS, "--pin", "\x1b[2J", code=1)
    assert "\x1b" not in outcome.err


WORDS = st.sampled_from(
    ["solve", "check", "configuration", "show", "datasets", "import", "methods", "world27",
     "--replicas", "--voters", "--leader", "--cap", "--distinct", "--survive", "--json", "--set",
     "--mix", "-o",
     "--method", "exhaustive", "1", "2", "0", "-1", "1..2", "country", "country=1", "=", "a,b",
     "us-east-1", "nan", "inf", "--decay", "--time-limit", "--quorum", "--", "", "é", "Rome",
     "Oslo,Rome", "--force", "--workload-seed", "--clients", "--budget", "--forbid", "--seed"]
)  # fmt: skip


SOLVE = ["solve", "world", "--replicas", "2", "--voters", "1", "--method", "exhaustive"]


@given(start=st.sampled_from([[], SOLVE]), more=st.lists(WORDS, max_size=6))
def test_no_arguments_end_in_a_traceback(
    start: list[str], more: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    here = Path.cwd()
    os.chdir(tmp_path_factory.mktemp("run"))
    try:
        save_instance(small(), "world")
        assert main([*start, *more]) in (0, 1, 2, 3)
    finally:
        os.chdir(here)


@given(lists=st.lists(st.lists(st.sampled_from(small().sites), max_size=3), max_size=3))
def test_lists_of_names_are_split_at_commas_and_whole_names_kept(lists: list[list[str]]) -> None:
    known = small().sites
    flat = [name for some in lists for name in some]
    # one option per name works for every name
    assert names(flat, known) == tuple(flat)
    plain = [[name for name in some if "," not in name] for some in lists]
    joined = [", ".join(some) for some in plain if some]
    assert names(joined, known) == tuple(name for some in plain for name in some)


def test_counts_ranges_and_names() -> None:
    assert count_or_names(["5"], ["5"]) == 5
    assert count_or_names(["5,"], ["5"]) == ("5",)
    assert count_or_names([" 3 .. 7 "], []) == (3, 7)
    assert count_or_names(["3", "7"], []) == ("3", "7")
    assert count_or_names(["-2"], []) == -2


# --- fresh processes -------------------------------------------------------------------------


def test_help_and_the_package_import_nothing_heavy() -> None:
    heavy = "{'numpy', 'pandas', 'pyomo', 'highspy', 'ortools', 'matplotlib', 'pyarrow'}"
    for code in (
        "import placement, sys",
        "import sys; from placement.cli import main; assert main(['--help']) == 0",
        "import sys; from placement.cli import main; assert main(['solve', '--help']) == 0",
        "import sys; from placement.cli import main; assert main(['--version']) == 0",
        "import sys; from placement.cli import main; assert main(['solve']) == 1",
    ):
        output_of(f"{code}; loaded = {heavy} & set(sys.modules); assert not loaded, loaded")


@pytest.mark.parametrize("threads", [None, "3"])
def test_a_small_question_loads_only_what_it_needs(threads: str | None) -> None:
    slow = "{'numpy.ma', 'numpy.random', 'email', 'zipfile', 'hashlib', 'importlib.metadata'}"
    ask = "main(['solve', 'world27', '--replicas', '5', '--voters', '3'])"
    script = (
        f"import os, sys; from placement.cli import main; assert {ask} == 0; "
        f"loaded = ({slow} | {{'placement.workloads', 'placement.io.plan_file', "
        f"'placement.io.plan_file'}}) & "
        f"set(sys.modules); assert not loaded, loaded; "
        f"assert os.environ['OPENBLAS_NUM_THREADS'] == '{threads or 1}'"
    )
    output_of(script, **({} if threads is None else {"OPENBLAS_NUM_THREADS": threads}))


def test_the_library_leaves_the_threads_of_the_program_alone() -> None:
    output_of(
        "import os, placement; placement.load('world27'); "
        "assert 'OPENBLAS_NUM_THREADS' not in os.environ"
    )


def test_an_interrupt_before_the_command_has_begun_is_no_traceback(monkeypatch, command):
    class Stop:
        def __getattr__(self, name: str) -> None:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "placement.cli.dispatch", Stop())
    assert command("show", code=130).err == "interrupted\n"


def test_the_help_names_every_verb_and_exit_code() -> None:
    done = subprocess.run(_script("--help"), capture_output=True, text=True, check=True)
    for verb in ("solve", "compare", "show", "db", "import", "question"):
        assert f"\n  {verb} " in done.stdout
    assert "2 infeasible" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="signals of another kind")
def test_an_interrupt_outside_a_search_is_130_without_a_traceback() -> None:
    # A verb that waits, so that the signal meets it at work and not before it begins.
    waiting = (
        "import sys, time\n"
        "from placement.cli import dispatch\n"
        "dispatch._run = lambda argv, heard: (print('begun', flush=True), time.sleep(60))\n"
        "sys.exit(dispatch.main([]))\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", waiting], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")


def test_an_interrupted_search_writes_its_plan_and_ends_with_130(
    command: Run, world: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signal that a search turns into its best plan is still a Ctrl-C, for any verb."""

    def stopped(problem: Problem, options: Options) -> Plan:
        end = SearchEnd()
        with end_early(end):
            signal.raise_signal(signal.SIGINT)
        best = Configuration.of(0, [0], [0, 1])
        return Plan.of(problem, best, method="toy", termination=end.termination)

    _method(monkeypatch, stopped)
    asked = (world, "--replicas", 2, "--voters", 1)
    command("solve", *asked, "-o", tmp_path / "plan.json", code=130)
    assert load_plan(tmp_path / "plan.json").found
    assert command("solve", *asked, "--json").code == 130
    monkeypatch.undo()
    assert command("show", tmp_path / "plan.json").code == 0
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_poor_terminal_gets_escapes_not_a_traceback(world: Path) -> None:
    done = subprocess.run(
        _script("show", world), capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert done.returncode == 0
    assert b"\\u6771\\u4eac" in done.stdout


# --- progress --------------------------------------------------------------------------------


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _clock(times: list[float]) -> object:
    moments = iter(times)
    return lambda: next(moments)


def test_progress_is_one_line_that_is_wiped() -> None:
    screen = _Terminal()
    line = ProgressLine(screen, in_ms=lambda value: value / 10, clock=_clock([0.0, 0.05, 0.2]))  # type: ignore[arg-type]  # a clock
    line(Progress(1.0))
    line(Progress(1.1, 2000.0, 1000.0))  # too soon after the first
    line(Progress(2.0, 1500.0, 1200.0, 3, 4000))
    line.close()
    steps = screen.getvalue().split("\r")
    assert "\n" not in screen.getvalue()
    assert steps[1] == "best –  bound –  gap –  1.0 s"
    assert steps[2] == "best 150.000 ms  bound 120.000 ms  gap 20.00 %  2.0 s  3/4,000 done"
    assert steps[3].strip() == ""
    assert len(steps[3]) >= len(steps[2])


def test_progress_elsewhere_is_a_line_each() -> None:
    file = io.StringIO()
    line = ProgressLine(file, in_ms=float, clock=_clock([0.0, 0.5, 1.5]))  # type: ignore[arg-type]  # a clock
    for seconds in (1.0, 2.0, 3.0):
        line(Progress(seconds, 10.0, 5.0))
    line.close()
    assert file.getvalue() == (
        "best 10.000 ms  bound 5.000 ms  gap 50.00 %  1.0 s\n"
        "best 10.000 ms  bound 5.000 ms  gap 50.00 %  3.0 s\n"
    )


def test_progress_goes_to_stderr_when_asked_for(
    command: Run, world: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from placement import Configuration

    def talks(problem: Problem, options: Options) -> Plan:
        options.report(Progress(0.5, 1000.0 * problem.demand.operations, 0.0))
        assert describe(problem)
        return Plan.of(problem, Configuration.of(0, (0,), (0, 1)), method="toy")

    _method(monkeypatch, talks)
    assert command("solve", world, *COUNTS).err == ""
    outcome = command("solve", world, *COUNTS, "--progress", "--json")
    assert outcome.err == "best 1,000.000 ms  bound 0.000 ms  gap 100.00 %  0.5 s\n"
    assert outcome.document["method"] == "toy"


OVERRIDE = "\N{RIGHT-TO-LEFT OVERRIDE}"


def test_names_cannot_turn_the_text_of_a_quorum_plan(command: Run, tmp_path: Path) -> None:
    (tmp_path / "rtt.csv").write_text(
        f"site,a{OVERRIDE},b,c\na{OVERRIDE},0,3,4\nb,3,0,5\nc,4,5,0\n", encoding="utf-8"
    )
    outcome = command("lab", "quorum", tmp_path / "rtt.csv", "--reads", "b=1", code=0)
    assert OVERRIDE not in outcome.out
    assert "Replicas  a\\u202e, b, c" in outcome.out


PLUG_IN = """
import placement.cli.exit_codes as exits

def add_parser(verbs):
    parser = verbs.add_parser("greet", help="greet the sites")
    parser.add_argument("name")
    parser.set_defaults(run=run)

def run(args):
    print("hello", args.name)
    return exits.FOUND
"""


@pytest.fixture
def plug_in(tmp_path, monkeypatch):
    """Another distribution's verbs: one that works, one whose module is missing."""
    (tmp_path / "greeting_verb.py").write_text(PLUG_IN, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    found = dict(VERBS.entries)
    for name, value in (("greet", "greeting_verb"), ("broken", "no_such_module_anywhere")):
        found[name] = EntryPoint(name, value)
    monkeypatch.setattr(VERBS, "entries", found)


def test_a_plug_in_brings_a_verb(plug_in, command):
    assert command("greet", "Tokyo", code=0).out == "hello Tokyo\n"


def test_a_broken_plug_in_does_not_take_the_help_with_it(plug_in, capsys, command):
    assert "more: broken, greet" in command("--help", code=0).out
    assert main(["broken"]) == 1
    assert "verb 'broken' (no_such_module_anywhere) cannot be imported" in capsys.readouterr().err


def test_every_registered_verb_runs_a_function():
    for _, parser in leaves(whole_parser()):
        assert callable(parser.get_default("run"))


def test_a_call_loads_its_own_verb_only():
    output_of(
        "import sys; from placement.cli import main; assert main(['solve', '--help']) == 0;"
        "other = [name for name in sys.modules if name.endswith('.verb') or '.cli.verbs.' in name];"
        "assert other == ['placement.cli.verbs.solve'], other"
    )
