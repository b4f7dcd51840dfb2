"""Parse, run, and turn every ending into an exit code without a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import TextIO

from placement import __version__
from placement.cli import exit_codes as exits
from placement.cli.argument_parser import Parser
from placement.cli.broken_pipe import forget_stdout, ignore_broken_pipe, open_streams
from placement.cli.completion import answer_shell, asked_by_shell, typed_words
from placement.cli.page import print_label, use_terminal_width
from placement.cli.verb_registry import add_verbs
from placement.errors import InputError, PlacementError, PlacementWarning, SolverError
from placement.text import escape

__all__ = ["main"]

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
        The exit code, see :mod:`placement.cli.exit_codes`.
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
        return exits.FOUND
    add_verbs(verbs, sys.argv[1:] if argv is None else argv)
    try:
        args, unknown = parser.parse_known_args(argv)
    except SystemExit as stop:  # --help and --version
        return stop.code if isinstance(stop.code, int) else exits.FOUND
    if unknown:  # argparse would send the user to the help of all verbs
        part = getattr(args, "part", None)
        verb = args.verb if part is None else f"{args.verb} {part}"
        raise InputError(
            f"unrecognized arguments: {' '.join(unknown)} (see placement {verb} --help)"
        )
    code: int = args.run(args)
    goes_on = getattr(args, "until_interrupted", False)  # Ctrl-C is how the verb ends
    early = bool(heard) and not goes_on and code in (exits.FOUND, exits.NOTHING)
    return exits.INTERRUPTED if early else code


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
