"""Parse, run, and turn every ending into an exit code without a traceback."""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, TextIO

from placement import __version__
from placement.cli.argument_parser import Parser, Subparsers, Verb
from placement.cli.page import print_label, use_terminal_width
from placement.errors import (
    InputError,
    MissingDependencyError,
    PlacementError,
    PlacementWarning,
    SolverError,
    UnsupportedError,
)
from placement.support.entry_points import Group
from placement.text import escape

if TYPE_CHECKING:
    from placement.model.instance import Instance

__all__ = [
    "BAD_INPUT",
    "BROKEN_PIPE",
    "FOUND",
    "INFEASIBLE",
    "INTERRUPTED",
    "NOTHING",
    "SOLVER",
    "VERBS",
    "add_parts",
    "add_verbs",
    "answer_shell",
    "asked_by_shell",
    "forget_stdout",
    "ignore_broken_pipe",
    "main",
    "open_streams",
    "shell_script",
    "typed_words",
]


# The verbs of the command line, found through the entry-point group ``placement.verbs``

_ORDER = (
    "solve",
    "evaluate",
    "compare",
    "sweep",
    "contingency",
    "replay",
    "watch",
    "online",
    "check",
    "sensitivity",
    "deployment",
    "export",
    "report",
    "show",
    "datasets",
    "import",
    "methods",
)
"""The order of the help. Verbs that are not named here come after these, by name."""


VERBS = Group(
    "placement.verbs",
    "verb",
    lambda found: found if isinstance(found, Verb) else None,
    "a module with add_parser and run",
)
"""All registered verbs, parts of verbs included."""


def _in_order(names: Iterable[str]) -> list[str]:
    """Return verbs in the order of the help."""
    rank = {name: place for place, name in enumerate(_ORDER)}
    return sorted(names, key=lambda name: (rank.get(name, len(rank)), name))


def add_verbs(verbs: Subparsers, arguments: Sequence[str]) -> None:
    """Add the verb that the arguments ask for; all verbs where they name none.

    Only one verb is imported for a call that names one. A verb that cannot be imported is reported
    on stderr and left out, unless it is the one that is asked for.

    Raises
    ------
    UnsupportedError
        When the verb that is asked for cannot be imported.
    """
    wanted = next((text for text in arguments if not text.startswith("-")), None)
    if wanted is not None and wanted in VERBS.names():
        VERBS.load(wanted).add_parser(verbs)
        return
    _add_all(verbs, VERBS.names())


def add_parts(parts: Subparsers, verb: str) -> None:
    """Add the parts of a verb that entry points with the name ``VERB.PART`` bring."""
    _add_all(parts, [name for name in VERBS.entries if name.startswith(verb + ".")])


def _add_all(parsers: Subparsers, names: Iterable[str]) -> None:
    for name in _in_order(names):
        try:
            verb = VERBS.load(name)
        except UnsupportedError as error:
            print_label("warning", escape(str(error)))
            continue
        verb.add_parser(parsers)


# Exit codes

FOUND = 0
"""The answer was found; for a plan, its gap says how good it is proven to be."""

BAD_INPUT = 1
"""An input is wrong, or a method does not support it; nothing was written."""

INFEASIBLE = 2
"""Proven that no plan obeys all constraints, or an evaluated configuration breaks one."""

NOTHING = 3
"""A limit was reached before any plan was found or ruled out."""

SOLVER = 4
"""A solver failed or contradicted the evaluator: a defect, not the user's mistake."""

INTERRUPTED = 130
"""Ctrl-C; the best result so far was printed and written (128 + SIGINT, as shells report it)."""

BROKEN_PIPE = 141
"""The reader of the output went away (128 + SIGPIPE)."""


# Standard streams that are closed, or whose reader leaves: ``placement datasets | head -1``


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
    """Run a command; where the reader of its output goes away, end it without a word.

    Parameters
    ----------
    command
        Writes to standard output and returns an exit code.

    Returns
    -------
    int
        The command's exit code, or :data:`placement.cli.dispatch.BROKEN_PIPE`.

    Notes
    -----
    The output of the command is flushed before this returns: a pipe that breaks later, on the
    interpreter's way out, would show. Whatever else the command raises goes through.
    """
    try:
        try:
            return command()
        finally:  # also after a SystemExit, with which argparse leaves when it printed the help
            sys.stdout.flush()
    except BrokenPipeError:
        forget_stdout()
        return BROKEN_PIPE


def forget_stdout() -> None:
    """Keep the interpreter from flushing into standard output on its way out."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# Completion of words in a shell, by argcomplete

_Values = Callable[[str, argparse.Namespace], list[str]]
"""Completions of a prefix, given the arguments that stand on the line already."""


def asked_by_shell() -> bool:
    """Return whether this process runs to complete a word for a shell."""
    return "_ARGCOMPLETE" in os.environ


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
    for action in _actions(parser):
        values = _values_of(action)
        if values is not None:
            action.completer = _Completer(values)  # type: ignore[attr-defined]
    argcomplete.autocomplete(parser)


def shell_script(shell: str) -> str:
    """Return the lines that teach a shell to complete ``placement``.

    Raises
    ------
    MissingDependencyError
        Without argcomplete.
    """
    try:
        from argcomplete.shell_integration import shellcode
    except ImportError as error:
        raise MissingDependencyError.of("completion needs argcomplete", "completion") from error
    return str(shellcode(["placement"], shell=shell))


class _Completer:
    """Values of an option, in the interface of argcomplete; bad input gives no values."""

    def __init__(self, values: _Values) -> None:
        self._values = values

    def __call__(
        self,
        prefix: str,
        action: argparse.Action,
        parser: argparse.ArgumentParser,
        parsed_args: argparse.Namespace,
    ) -> list[str]:
        try:
            return self._values(prefix, parsed_args)
        except (PlacementError, OSError):
            return []


def _actions(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """Yield the arguments of a parser and of its verbs."""
    for action in parser._actions:  # noqa: SLF001 - argparse has no public name for it
        yield action
        if isinstance(action, argparse._SubParsersAction):  # noqa: SLF001
            for below in action.choices.values():
                yield from _actions(below)


def _values_of(action: argparse.Action) -> _Values | None:
    if not {"--method", "--methods"}.isdisjoint(action.option_strings):
        return _methods
    return _BY_METAVAR.get(str(action.metavar))


def _beginning(prefix: str, values: Iterable[str]) -> list[str]:
    """Return the values that go on from the prefix; after a comma, for the last of a list."""
    head, comma, last = prefix.rpartition(",")
    return [head + comma + value for value in values if value.startswith(last)]


def _instances(prefix: str, given: argparse.Namespace) -> list[str]:
    from argcomplete.completers import FilesCompleter

    from placement import datasets

    return _beginning(prefix, datasets.names()) + list(FilesCompleter()(prefix))


def _methods(prefix: str, given: argparse.Namespace) -> list[str]:
    from placement.methods.registry import available

    return _beginning(prefix, available())


def _protocols(prefix: str, given: argparse.Namespace) -> list[str]:
    from placement.model.protocols import FAMILIES

    return _beginning(prefix, list(FAMILIES))


def _levels(prefix: str, given: argparse.Namespace) -> list[str]:
    return _beginning(prefix, _instance(given).levels)


def _sites(prefix: str, given: argparse.Namespace) -> list[str]:
    return _beginning(prefix, _instance(given).sites)


def _instance(given: argparse.Namespace) -> Instance:
    """Return the instance that the line names."""
    from placement.api import load

    source = vars(given).get("instance")
    if source is None:
        raise InputError("no instance on the line")
    return load(source)


_BY_METAVAR: dict[str, _Values] = {
    "INSTANCE": _instances,
    "SITE": _sites,
    "SITES": _sites,
    "N|SITES": _sites,
    "N|LO..HI|SITES": _sites,
    "LEVEL": _levels,
    "NAME[:PARAMETER=VALUE,…]": _protocols,
}

_EPILOG = """\
exit codes: 0 found · 1 bad input · 2 infeasible, or constraints broken · 3 nothing found in time ·
4 a solver failed · 130 interrupted
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv
        Arguments; None: those of the process.

    Returns
    -------
    int
        The exit code, see :mod:`placement.cli.dispatch`.
    """
    _use_one_blas_thread()
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
        return INTERRUPTED
    except PlacementError as error:
        _print_error(str(error))
        return SOLVER if isinstance(error, SolverError) else BAD_INPUT
    except OSError as error:
        if error.filename is None and error.strerror is None:
            raise
        if error.filename is None:  # most likely what was printed, to a full disk
            forget_stdout()
        where = f"{error.filename}: " if error.filename is not None else ""
        _print_error(f"{where}{error.strerror}")
        return BAD_INPUT


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


def _use_one_blas_thread() -> None:
    """Keep OpenBLAS from starting its threads, unless the user has said how many there should be.

    It starts them while NumPy is imported, and that takes longer than the import. The command line
    has no product of matrices that is large enough to gain by them. A library must not decide this
    for the program that imports it, so it is done here and nowhere else.
    """
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _run(argv: Sequence[str] | None, heard: Sequence[int]) -> int:
    parser = Parser(
        prog="placement",
        description="Choose the sites of the replicas of a geo-replicated database, the replicas "
        "that vote, and the leader: the optimum with its proof, and fast heuristics.",
        epilog=_EPILOG,
    )
    parser.add_argument("--version", action="version", version=f"placement {__version__}")
    verbs = parser.add_subparsers(dest="verb", metavar="VERB", required=True)
    if asked_by_shell():
        add_verbs(verbs, typed_words())
        answer_shell(parser)
        return FOUND
    add_verbs(verbs, sys.argv[1:] if argv is None else argv)
    try:
        args, unknown = parser.parse_known_args(argv)
    except SystemExit as stop:  # --help and --version
        return stop.code if isinstance(stop.code, int) else FOUND
    if unknown:  # argparse would send the user to the help of all verbs
        part = getattr(args, "part", None)
        verb = args.verb if part is None else f"{args.verb} {part}"
        raise InputError(
            f"unrecognized arguments: {' '.join(unknown)} (see placement {verb} --help)"
        )
    code: int = args.run(args)
    goes_on = getattr(args, "until_interrupted", False)  # Ctrl-C is how the verb ends
    early = bool(heard) and not goes_on and code in (FOUND, NOTHING)
    return INTERRUPTED if early else code


def _print_error(message: str) -> None:
    print_label("error", "\n".join(escape(line) for line in message.split("\n")))


@contextlib.contextmanager
def _one_line_warnings() -> Iterator[None]:
    """Show our own warnings as one line each, without the line of code they came from."""

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        if issubclass(category, PlacementWarning):
            print_label("warning", escape(str(message)))
        else:
            before(message, category, filename, lineno, file, line)

    with warnings.catch_warnings():
        before = warnings.showwarning
        warnings.showwarning = show
        warnings.simplefilter("always", PlacementWarning)
        yield
