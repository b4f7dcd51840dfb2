"""Adding rows to a file of results so that a crash costs no row that is there.

The format, and its reader, are in :mod:`placement.report.result_file`. With each row the file is
written whole beside itself, synced, and renamed: it never has a part of a line. A torn last line
that a copy or a power failure has left is cut off. A lock beside the file keeps a second run out.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path

from placement.errors import InputError
from placement.io.formats.files import check_file, write_file
from placement.report.result_file import FORMAT, VERSION, Results, read_results


class ResultsFile:
    """A file of results, to which this process alone adds.

    Parameters
    ----------
    path
        Its folder is made when absent. A regular file, or nothing.
    fresh
        Begin again: the rows that stand there are neither read nor kept. They stay on the disk
        until the first new row is safe.

    Raises
    ------
    InputError
        When another process has it open, when it holds no results, or when the path is that of a
        folder, a pipe or a device.
    OSError
        When its folder takes no files.
    """

    def __init__(self, path: str | os.PathLike[str], *, fresh: bool = False) -> None:
        given = Path(path)
        given.parent.mkdir(parents=True, exist_ok=True)
        self.path = check_file(given, force=True, regular=True)
        self._beside = self.path.with_name(f".{self.path.name[:100]}.lock.tmp")
        self._lock = _locked(self._beside, self.path)
        self._lines = b""
        self.earlier: Results = Results((), (), 0)
        try:
            if not fresh and self.path.exists():
                self.earlier = read_results(self.path)
                whole = self.path.read_bytes()
                self._lines = whole[: len(whole) - self.earlier.dropped]
                if self.earlier.dropped:
                    write_file(self.path, self._lines, force=True)
        except BaseException:
            self.close()
            raise

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
        """Begin a run, whose head is written with its first row, and return its number."""
        number = 1 + max((int(run.get("id", 0)) for run in self.earlier.runs), default=0)
        about = {"kind": "run", "format": FORMAT, "version": VERSION, "id": number}
        self._lines += _line({**about, **head})
        return number

    def add(self, row: Mapping[str, object]) -> None:
        """Add one row; when this returns, it is on the disk.

        Raises
        ------
        OSError
            When it cannot be written; the file stays as it was.
        """
        lines = self._lines + _line({"kind": "row", **row})
        write_file(self.path, lines, force=True)
        self._lines = lines

    def close(self) -> None:
        """Release the lock."""
        self._beside.unlink(missing_ok=True)
        os.close(self._lock)

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _locked(beside: Path, path: Path) -> int:
    """Open the file beside a path once it is locked: the run that had it may have removed it."""
    while True:
        handle = os.open(beside, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(handle), beside.stat()):
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
