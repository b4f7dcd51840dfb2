"""Appending to a file of results so that a crash costs at most the line being written.

The format, and its reader, are in :mod:`placement.report.result_file`. Each line is one ``write``
to a file opened for appending, followed by ``fsync``; a torn last line left by an earlier crash is
cut off before anything is appended; a lock keeps a second run out. A file that is replaced keeps
its old rows until the first new row is on the disk: head and row are written beside it, under the
lock, and renamed over it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from placement.errors import InputError
from placement.io.formats.files import check_file
from placement.report.result_file import FORMAT, VERSION, Results, read_results


class ResultsFile:
    """A file of results, open for appending by this process alone.

    Parameters
    ----------
    path
        Created when absent, with its folder. A regular file, or nothing.
    fresh
        Begin again: the rows that stand there are neither read nor kept. They stay on the disk
        until the first new row is safe.

    Raises
    ------
    InputError
        When another process has it open, when it holds no results, or when the path is that of a
        folder, a pipe or a device.
    OSError
        When the file cannot be opened.
    """

    def __init__(self, path: str | os.PathLike[str], *, fresh: bool = False) -> None:
        given = Path(path)
        given.parent.mkdir(parents=True, exist_ok=True)
        self.path = check_file(given, force=True, regular=True)
        self._file = _open_locked(self.path)
        self._fresh = fresh
        self._head = b""
        self.earlier: Results = Results((), (), 0)
        try:
            if not fresh:
                self.earlier = read_results(self.path)
                self._mend()
            _sync_folder(self.path.parent)
        except BaseException:
            os.close(self._file)
            raise

    def _mend(self) -> None:
        """Cut the file after the last whole line."""
        if self.earlier.dropped:
            size = os.fstat(self._file).st_size
            os.ftruncate(self._file, size - self.earlier.dropped)
            os.fsync(self._file)

    @property
    def keys(self) -> frozenset[str]:
        """Keys of the cells that have a row already."""
        return frozenset(str(row["key"]) for row in self.earlier.rows)

    @property
    def answered(self) -> frozenset[str]:
        """Keys of the cells that were answered, or refused by the method."""
        final = ("ok", "refused")
        return frozenset(str(row["key"]) for row in self.earlier.rows if row["outcome"] in final)

    def start(self, head: Mapping[str, object]) -> int:
        """Append the head of a run and return its number; a fresh file keeps it for the first row.

        Raises
        ------
        OSError
            When it cannot be written.
        """
        number = 1 + max((int(run.get("id", 0)) for run in self.earlier.runs), default=0)
        line = _line({"kind": "run", "format": FORMAT, "version": VERSION, "id": number, **head})
        if self._fresh:
            self._head = line
        else:
            self._append(line)
        return number

    def add(self, row: Mapping[str, object]) -> None:
        """Append one row; when this returns, it is on the disk.

        Raises
        ------
        OSError
            When it cannot be written; no part of it stays in the file then.
        """
        line = _line({"kind": "row", **row})
        if self._fresh:
            self._begin_anew(self._head + line)
        else:
            self._append(line)

    def _append(self, line: bytes) -> None:
        before = os.fstat(self._file).st_size
        try:
            _write_all(self._file, line)
        except OSError as error:  # a full disk: leave no torn line where others will follow
            os.ftruncate(self._file, before)
            raise OSError(error.errno, error.strerror, str(self.path)) from error

    def _begin_anew(self, lines: bytes) -> None:
        """Replace the file by another that is locked before it gets the name."""
        other = self.path.with_name(f".{self.path.name[:100]}.{secrets.token_hex(6)}.tmp")
        handle = os.open(other, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
            _write_all(handle, lines)
            other.replace(self.path)
        except BaseException as error:
            os.close(handle)
            other.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise OSError(error.errno, error.strerror, str(self.path)) from error
            raise
        os.close(self._file)
        self._file, self._fresh = handle, False
        _sync_folder(self.path.parent)

    def close(self) -> None:
        """Close the file and release the lock."""
        os.close(self._file)

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open_locked(path: Path) -> int:
    """Open the file that has this name once it is locked: a run may have replaced it before."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        except FileNotFoundError:  # removed between the two steps: make it again
            pass
        except BlockingIOError:
            os.close(handle)
            raise InputError(
                "another run is writing to it", source=str(path), expected="one run at a time"
            ) from None
        os.close(handle)


def _line(value: Mapping[str, object]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"


def _write_all(handle: int, data: bytes) -> None:
    """Write with one call, and sync.

    Raises
    ------
    OSError
        Also where the system takes a part only, which is how a disk that fills up begins.
    """
    if os.write(handle, data) != len(data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    os.fsync(handle)


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
