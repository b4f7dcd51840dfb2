"""Output into a pipe whose reader may leave before the end: ``placement datasets | head -1``."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable

from placement.cli.exit_codes import BROKEN_PIPE

__all__ = ["until_the_reader_leaves"]


def until_the_reader_leaves(command: Callable[[], int]) -> int:
    """Run a command; where the reader of its output goes away, end it without a word.

    Parameters
    ----------
    command
        Writes to standard output and returns an exit code.

    Returns
    -------
    int
        The command's exit code, or :data:`placement.cli.exit_codes.BROKEN_PIPE`.

    Notes
    -----
    What the command printed is flushed before this returns: a pipe that breaks later, on the
    interpreter's way out, would show. Whatever else the command raises goes through.
    """
    try:
        try:
            return command()
        finally:  # also after a SystemExit, with which argparse leaves when it printed the help
            sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        return BROKEN_PIPE


def _forget_stdout() -> None:
    """Keep the interpreter from flushing into the closed pipe on its way out."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
