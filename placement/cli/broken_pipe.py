"""Standard streams that are closed, or whose reader leaves: ``placement datasets | head -1``."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Callable

from placement.cli.exit_codes import BROKEN_PIPE

__all__ = ["forget_stdout", "ignore_broken_pipe", "open_streams"]


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
        The command's exit code, or :data:`placement.cli.exit_codes.BROKEN_PIPE`.

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
