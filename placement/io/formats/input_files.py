"""Files that are read: their kind and size are checked first.

A pipe or a device has no end that can be waited for: reading ``/dev/zero`` never stops, and opening
a pipe without a writer never starts.
"""

from __future__ import annotations

import os
import stat

from placement.errors import InputError

__all__ = ["LARGEST_FILE", "check_input", "read_input"]

LARGEST_FILE = 8 * 2**30
"""Largest file that is read, in bytes. A table of demand of 100 million rows has about 5 GB."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


def check_input(path: str | os.PathLike[str]) -> None:
    """Check that a path is one of a regular file that is not too large, without opening it.

    Raises
    ------
    InputError
        When there is no such file, it is of another kind, it is larger than :data:`LARGEST_FILE`,
        or the path is no path (it holds a NUL, or half of a surrogate pair).
    """
    source = os.fspath(path)
    try:
        found = os.stat(source)
    except (FileNotFoundError, NotADirectoryError):
        raise InputError("no such file", source=source) from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", source=source) from None
    except ValueError as error:
        raise InputError(
            f"not a file path ({error})", value=source, expected="a file name"
        ) from None
    _check(found, source)


def read_input(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a regular file.

    Raises
    ------
    InputError
        As :func:`check_input`, and when the file cannot be read.
    """
    source = os.fspath(path)
    check_input(path)
    try:
        # Another kind of file may have taken the place of the one that was checked: without
        # O_NONBLOCK the opening of a pipe would wait for a writer.
        descriptor = os.open(source, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
        with os.fdopen(descriptor, "rb") as file:
            _check(os.fstat(descriptor), source)
            content = file.read()
    except FileNotFoundError:
        raise InputError("no such file", source=source) from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", source=source) from None
    if len(content) > LARGEST_FILE:
        raise _too_large(source, len(content))
    return content


_BINARY = getattr(os, "O_BINARY", 0)


def _check(found: os.stat_result, source: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = next((word for is_kind, word in _KINDS if is_kind(found.st_mode)), "no file")
        raise InputError(f"{kind}, not a regular file", source=source, expected="a regular file")
    if found.st_size > LARGEST_FILE:
        raise _too_large(source, found.st_size)


def _too_large(source: str, size: int) -> InputError:
    return InputError(
        "too large",
        source=source,
        value=f"{size:,} bytes",
        expected=f"at most {LARGEST_FILE:,} bytes",
    )
