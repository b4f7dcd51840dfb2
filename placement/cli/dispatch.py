"""Parse, run, and turn every ending into an exit code without a traceback."""

from __future__ import annotations

import argparse
import contextlib
import difflib
import errno
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from placement import __version__
from placement.cli import exit_codes as exits
from placement.cli.options import Parser, Subparsers, Verb, complete, of_file
from placement.cli.output import print_label, use_terminal_width
from placement.errors import (
    InputError,
    MissingDependencyError,
    PlacementError,
    PlacementWarning,
    SolverError,
    UnsupportedError,
    nearest,
    require,
)
from placement.support.entry_points import Group
from placement.text.text_tables import csv_tables, escape

# The verbs of the command line, found through the entry-point group ``placement.verbs``

# fmt: off
SHOWN = {
    "bring data": {
        "import": ("make an instance of your measurements", "import rtt.csv --mix social -o mine"),
        "show": ("an instance or a plan; data sets, methods, protocols", "show azure"),
    },
    "decide": {
        "solve": ("choose replicas, voters and leader", "solve azure --replicas 5 --voters 3"),
        "compare": ("methods, protocols, numbers of replicas, fronts",
                    "compare sizes azure --replicas 3..5 --voters 3"),
        "next": ("the best site to add or to remove next", "next azure --today plan.json"),
        "fleet": ("plan many databases that share capacity",
                  "fleet azure --fleet 9 --replicas 5 --voters 3"),
    },
    "trust": {
        "check": ("prove a plan again; score a configuration", "check plan.json"),
        "explain": ("the next best plans, safe ranges of demand and RTTs", "explain plan.json"),
        "report": ("one HTML page with a map", "report plan.json -o plan.html"),
    },
    "run": {
        "db": ("read, lint, evaluate, compare and export a database's configuration",
               "db export cockroachdb plan.json --database app"),
        "watch": ("keep or move, after every interval of demand",
                  "watch azure arriving --state state.db --replicas 5 --voters 3"),
        "explore": ("a page that answers every change with a proven plan", "explore azure"),
    },
    "research": {
        "lab": ("replay, migrate, online systems, quorum stores",
                "lab replay azure --replicas 5 --voters 3 --tiers 1"),
        "question": ("print the question of a command line or a plan as a file",
                     "question azure --replicas 5 --voters 3"),
    },
}
# fmt: on
"""The verbs by group, each with one line and an example, as ``placement`` alone prints them."""

EXAMPLES = {
    "show instance": "show azure",
    "show datasets": "show datasets",
    "show formats": "show formats",
    "show methods": "show methods exact",
    "show protocols": "show protocols epaxos",
    "compare methods": "compare methods azure --replicas 5 --voters 3",
    "compare protocols": "compare protocols azure --replicas 5 --voters 3 --protocols raft,leases",
    "compare sizes": "compare sizes azure --replicas 3..5 --voters 3",
    "compare fronts": "compare fronts azure --replicas 3..5 --voters 3 --prices 100",
    "check plan": "check plan.json",
    "check configuration": "check configuration azure --leader 'France South' --voters 'France "
    "South,' --replicas 'France South,East US'",
    "db read": "db read etcd members.json --instance mine -o running.json",
    "db lint": "db lint cockroachdb zones.sql --instance mine --survive region",
    "db evaluate": "db evaluate running.json --instance mine",
    "db diff": "db diff running.json plan.json",
    "lab replay": "lab replay azure --replicas 5 --voters 3 --tiers 1",
    "lab migrate": "lab migrate plan.json --per-step 25",
    "lab online": "lab online reads azure --plan plan.json",
    "lab online reads": "lab online reads azure --plan plan.json",
    "lab online selection": "lab online selection azure --plan plan.json",
    "lab online dynamic": "lab online dynamic azure --plan plan.json --objects 100 --copies 5",
    "lab quorum": "lab quorum rtt.csv --reads a=5 --writes b=1",
    **{verb: each for group in SHOWN.values() for verb, (_, each) in group.items()},
    "db export": "db export cockroachdb plan.json --database app",
}
"""An example of each verb and of each part of one."""

PARTS = {
    "show": ("instance", "datasets", "formats", "methods", "protocols"),
    "compare": ("methods", "protocols", "sizes", "fronts"),
    "check": ("plan", "configuration"),
}
"""Parts of verbs; a line that names none means the first."""

GONE = {
    "completion": "--completion SHELL",
    "contingency": "solve … --minimise 'mean after the loss of any site', or lab quorum",
    "datasets": "show datasets",
    "deployment": "db",
    "evaluate": "check configuration",
    "export": "db export",
    "methods": "show methods",
    "migrate": "lab migrate",
    "online": "lab online",
    "pareto": "compare fronts",
    "protocols": "show protocols",
    "replay": "lab replay",
    "sensitivity": "explain",
    "sweep": "compare sizes",
}
"""Verbs that are gone, and what took their place."""

_LATENCY = "latency alone: traffic has no price in a quorum store"
GONE_OPTIONS = {
    "--worst": "--minimise 'mean after the loss of any site'",
    "--weighted": "--minimise 'mean over outages' --outage NAME=P",
    "--limit": "--keep 'mean after the loss of any site <= 100 ms'",
    "--level": "--minimise 'mean after the loss of any LEVEL'",
    "--pairs": "--minimise 'mean after the loss of any two sites'",
    "--leader-may-move": "'…, the leader may move' at the end of a measure after a loss",
    "--clients-move": "'…, clients move' at the end of a measure after a loss",
    "compare methods --protocols": "placement compare protocols",
    "fleet --check": "placement check FILE, which reads the question from the file",
    "fleet --moves": "placement.overtime.moves, the steps of one database; the file of -o lists "
    "the new replicas of each",
    "lab quorum --pareto": "--target reads with values of --write-limit",
    **{f"lab quorum --{one}": _LATENCY for one in ("traffic", "storage", "object-gb", "digest-gb")},
    "lab quorum --budget": _LATENCY,
}
"""Options that are gone, of all verbs or of one, and what took their place."""


VERBS = Group(
    "placement.verbs",
    "verb",
    lambda found: found if isinstance(found, Verb) else None,
    "a module with add_parser",
)
"""All registered verbs, parts of verbs included."""


def _line(verb: str) -> str:
    return next((group[verb][0] for group in SHOWN.values() if verb in group), "")


def _parts() -> dict[str, list[str]]:
    """Return the parts of each verb that consists of parts alone."""
    found: dict[str, list[str]] = {}
    for name in VERBS.entries:
        verb, dot, part = name.partition(".")
        if dot and verb not in VERBS.entries:
            found.setdefault(verb, []).append(part)
    return found


def with_default_part(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the part of the verb that they leave out."""
    found = list(arguments)
    place = next((i for i, text in enumerate(found) if not text.startswith("-")), len(found))
    parts = PARTS.get(found[place], ()) if place < len(found) else ()
    after = found[place + 1 : place + 2]
    if not parts or not after or after[0] in ("-h", "--help", *parts):
        return found
    mistyped = difflib.get_close_matches(after[0], parts, n=1, cutoff=0.8)
    if mistyped and not Path(after[0]).exists():
        words = f"invalid choice: {after[0]!r} (did you mean {mistyped[0]!r}?)"
        raise InputError(f"{words} (see placement {found[place]} --help)", field="PART")
    return [*found[: place + 1], parts[0], *found[place + 1 :]]


def add_verbs(verbs: Subparsers, arguments: Sequence[str]) -> None:
    """Add the verb that the arguments ask for; all verbs where they name none.

    Only that one is imported, and must be. Another one that cannot be imported is reported on
    stderr and left out.
    """
    words = [text for text in arguments if not text.startswith("-")]
    wanted, parts = (words[0] if words else None), _parts()
    if wanted in parts:
        assert wanted is not None
        part = words[1] if len(words) > 1 else ""
        chosen = [part] if part in parts[wanted] else parts[wanted]
        _add_all(add_parts(verbs, wanted), [f"{wanted}.{each}" for each in chosen])
        return
    if wanted is not None and wanted in VERBS.names():
        VERBS.load(wanted).add_parser(verbs)
        return
    _add_all(verbs, VERBS.names())
    for verb, names in parts.items():
        _add_all(add_parts(verbs, verb), [f"{verb}.{each}" for each in names])


def add_parts(verbs: Subparsers, verb: str) -> Subparsers:
    """Add a verb that consists of parts; return where they go."""
    line = _line(verb)
    meant = f" Without a part: {PARTS[verb][0]}." if verb in PARTS else ""
    words = f"{line[:1].upper()}{line[1:]}.{meant}"
    parser = verbs.add_parser(verb, help=line, description=words)
    parts: Subparsers = parser.add_subparsers(dest="part", metavar="PART", required=True)
    return parts


def option_owners(option: str) -> list[str]:
    """Return the verbs that have an option; all verbs are imported for it."""
    return [verb for verb, parser in leaves(whole_parser()) if option in options_of(parser)]


def whole_parser() -> Parser:
    """Return the parser of all verbs."""
    parser = Parser(prog="placement")
    add_verbs(parser.add_subparsers(), ())
    return parser


def leaves(parser: argparse.ArgumentParser, verb: str = "") -> Iterator[tuple[str, Parser]]:
    """Yield each verb, or part of one, that runs, with its parser."""
    below = [a for a in parser._actions if isinstance(a, argparse._SubParsersAction)]  # noqa: SLF001
    for action in below:
        for name, each in action.choices.items():
            yield from leaves(each, f"{verb} {name}".strip())
    if not below and isinstance(parser, Parser):
        yield verb, parser


def options_of(parser: argparse.ArgumentParser) -> list[str]:
    """Return the options of a parser that its help shows."""
    shown = [a for a in parser._actions if a.help != argparse.SUPPRESS]  # noqa: SLF001
    return [option for action in shown for option in action.option_strings]


def _add_all(parsers: Subparsers, names: Iterable[str]) -> None:
    for name in names:
        try:
            verb = VERBS.load(name)
        except UnsupportedError as error:
            print_label("warning", escape(str(error)))
            continue
        verb.add_parser(parsers)


# Standard streams that are closed, or whose reader leaves: ``placement show datasets | head -1``


class _Closed(io.TextIOBase):
    """Standard output that the caller closed: every write is an error, and not lost in silence."""

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF), "standard output")


def open_streams() -> None:
    """Put something in the place of standard streams that the caller has closed (``>&-``).

    Python then has None, which ``print`` takes for standard output: an error message would go
    there. And the next file that is opened would get the number of the stream, so that what a
    solver prints would go into that file.
    """
    if None not in (sys.stdin, sys.stdout, sys.stderr):
        return
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the process ends


def ignore_broken_pipe(command: Callable[[], int]) -> int:
    """Run a command; where the reader of its output goes away, end it with `BROKEN_PIPE`.

    The output is flushed here: a pipe that breaks later, on the interpreter's way out, would
    show. Whatever else the command raises goes through.
    """
    try:
        try:
            return command()
        finally:  # also after a SystemExit, with which argparse leaves when it printed the help
            sys.stdout.flush()
    except BrokenPipeError:
        forget_stdout()
        return exits.BROKEN_PIPE


def forget_stdout() -> None:
    """Keep the interpreter from flushing into standard output on its way out."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# Completion of words in a shell, by argcomplete


def typed_words() -> list[str]:
    """Return the complete words after the program's name on the line of the shell."""
    line = os.environ.get("COMP_LINE", "")
    line = line[: int(os.environ.get("COMP_POINT", len(line)))]
    words = line.split()[1:]
    return words if line.endswith(" ") else words[:-1]


def answer_shell(parser: argparse.ArgumentParser) -> None:
    """Answer the shell with the words that can come next, and end the process.

    Without argcomplete there is no answer, and this returns.
    """
    try:
        import argcomplete
    except ImportError:
        return
    argcomplete.autocomplete(parser)


def shell_script(shell: str) -> str:
    """Return the lines that teach a shell to complete ``placement``; they need argcomplete."""
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError as error:
        raise MissingDependencyError.of("completion needs argcomplete", "completion") from error
    return str(shellcode(["placement"], shell=shell))


_EPILOG = """\
exit codes: 0 found · 1 bad input · 2 infeasible, or constraints broken · 3 nothing found in time ·
4 a solver failed · 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; without arguments, those of the process."""
    if "numpy" not in sys.modules:
        # OpenBLAS starts its threads with the import of NumPy, which takes longer than the import.
        # No product of matrices here gains by them, and a library must not decide it for others.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    open_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # a terminal that cannot show a letter gets an escape, not a traceback
            stream.reconfigure(errors="backslashreplace")
    try:
        with _one_line_warnings(), use_terminal_width(), _heard_interrupts() as heard:
            return ignore_broken_pipe(lambda: _run(argv, heard))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return exits.INTERRUPTED
    except PlacementError as error:
        _print_error(str(error))
        return exits.SOLVER if isinstance(error, SolverError) else exits.BAD_INPUT
    except OSError as error:
        if error.filename is None and error.strerror is None:
            raise
        if error.filename is None:  # most likely what was printed, to a full disk
            forget_stdout()
        where = f"{error.filename}: " if error.filename is not None else ""
        _print_error(f"{where}{error.strerror}")
        return exits.BAD_INPUT


@contextlib.contextmanager
def _heard_interrupts() -> Iterator[list[int]]:
    """Yield a list that gets every Ctrl-C: searches turn it into the best result so far."""
    heard: list[int] = []

    def hear(number: int, frame: FrameType | None) -> None:
        heard.append(number)
        signal.default_int_handler(number, frame)

    before = signal.getsignal(signal.SIGINT)
    ours = before is signal.default_int_handler
    if not ours or threading.current_thread() is not threading.main_thread():
        yield heard
        return
    signal.signal(signal.SIGINT, hear)
    try:
        yield heard
    finally:
        signal.signal(signal.SIGINT, before)


def overview() -> str:
    """Return the verbs by group, each with one line and an example."""
    lines = ["placement VERB …: where the replicas of a geo-replicated database go, with proof."]
    for group, verbs in SHOWN.items():
        lines.append(f"\n{group}")
        for verb, (line, each) in verbs.items():
            lines += [f"  {verb:<9} {line}", f"            placement {each}"]
    others = [name for name in VERBS.names() if not _line(name)]
    if others:
        lines.append(f"\nmore: {', '.join(others)}")
    return "\n".join([*lines, "", "placement VERB -h: the main options; --help: all of them."])


def _refuse_verb(given: str) -> int:
    """Refuse a verb that there is not, with the one that took its place or the nearest one."""
    known = [verb for group in SHOWN.values() for verb in group] + list(VERBS.names())
    if given in GONE:
        _print_error(f"placement {given} is gone: placement {GONE[given]}")
        return exits.INFEASIBLE
    raise InputError(
        f"invalid choice: {given!r}{nearest(given, known)} (placement alone shows the verbs)",
        field="VERB",
    )


def _run(argv: Sequence[str] | None, heard: Sequence[int]) -> int:
    given = sys.argv[1:] if argv is None else list(argv)
    parser = Parser(
        prog="placement",
        description="Choose the sites of the replicas of a geo-replicated database, the replicas "
        "that vote, and the leader: the optimum with its proof, and fast heuristics.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"placement {__version__}")
    parser.add_argument(
        "--completion", choices=("bash", "zsh", "fish"), metavar="SHELL",
        help="print the lines that let bash, zsh or fish complete verbs, options and files",
    )  # fmt: skip
    verbs = parser.add_subparsers(dest="verb", metavar="VERB")
    if "_ARGCOMPLETE" in os.environ:  # to complete a word for a shell
        words = with_default_part(typed_words())
        if words != typed_words():
            line, point = (os.environ[key] for key in ("COMP_LINE", "COMP_POINT"))
            verb = words[0]
            part = f"{verb} {PARTS[verb][0]}"
            os.environ["COMP_LINE"] = line.replace(verb, part, 1)
            os.environ["COMP_POINT"] = str(int(point) + len(part) - len(verb))
        add_verbs(verbs, words)
        answer_shell(parser)
        return exits.FOUND
    given = with_default_part(given)
    word = next((text for text in given if not text.startswith("-")), None)
    if not given or given in (["-h"], ["--help"]):
        print(overview() + ("" if given != ["--help"] else f"\n\n{_EPILOG}"), end="\n")
        return exits.FOUND
    option = given[0].startswith("--completion")
    if word is not None and not option and word not in (*VERBS.names(), *_parts()):
        return _refuse_verb(word)
    add_verbs(verbs, () if option else given)
    try:
        args, unknown = parser.parse_known_args(given)
    except SystemExit as stop:  # --help and --version
        return stop.code if isinstance(stop.code, int) else exits.FOUND
    if args.completion is not None:
        print(shell_script(args.completion))
        return exits.FOUND
    if args.verb is None:
        raise InputError("the following arguments are required: VERB (see placement --help)")
    command = args.command.removeprefix("placement ")
    if unknown:  # argparse would send the user to the help of all verbs
        known = [o for each, below in leaves(parser) if each == command for o in options_of(below)]
        named = [text.partition("=")[0] for text in unknown if text.startswith("--")]
        for one in named:
            instead = GONE_OPTIONS.get(f"{command} {one}", GONE_OPTIONS.get(one, ""))
            require(not instead, one, "this option is gone", expected=instead)
        hint = nearest(named[0], known) if named else ""
        raise InputError(
            f"unrecognized arguments: {' '.join(unknown)}{hint} (see placement {command} --help)"
        )
    complete(args)
    try:
        as_csv: contextlib.AbstractContextManager[list[str]] = contextlib.nullcontext([])
        with csv_tables() if vars(args).get("csv") else as_csv as tables:
            code: int = args.run(args)
        sys.stdout.write("\n".join(tables))
    except InputError as error:
        raise of_file(error, args) from None
    goes_on = getattr(args, "until_interrupted", False)  # Ctrl-C is how the verb ends
    early = bool(heard) and not goes_on and code in (exits.FOUND, exits.NOTHING)
    return exits.INTERRUPTED if early else code


def _print_error(message: str) -> None:
    print_label("error", "\n".join(escape(line) for line in message.split("\n")))


@contextlib.contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Show our own warnings as one line each, without the line of code they came from."""

    def show(message: Warning | str, category: type[Warning], *where: Any, **more: Any) -> None:
        if issubclass(category, PlacementWarning):
            print_label("warning", escape(str(message)))
        else:
            before(message, category, *where, **more)

    with warnings.catch_warnings():
        before = warnings.showwarning
        warnings.showwarning = show
        warnings.simplefilter("always", PlacementWarning)
        yield
