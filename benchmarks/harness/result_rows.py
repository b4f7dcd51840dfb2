"""Appending to a file of results so that a crash costs at most the line being written.

The format, and its reader, are in :mod:`placement.report.result_file`. Each line is one ``write``
to a file opened for appending, followed by ``fsync``; a torn last line left by an earlier crash is
cut off before anything is appended; a lock keeps a second run out.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType

from placement.errors import InputError
from placement.report.result_file import FORMAT, VERSION, Results, read_results

__all__ = ["ResultsFile"]


class ResultsFile:
    """A file of results, open for appending by this process alone.

    Parameters
    ----------
    path
        Created when absent, with its folder.

    Raises
    ------
    InputError
        When another process has it open, or what it holds are no results.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            try:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise InputError(
                    "another run is writing to it", source=str(path), expected="one run at a time"
                ) from None
            self.earlier: Results = read_results(self.path)
            self._mend()
            _sync_folder(self.path.parent)
        except BaseException:
            os.close(self._file)
            raise

    def _mend(self) -> None:
        """Cut off what stands behind the last whole line."""
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
        """Keys of the cells that were answered, or refused for good."""
        final = ("ok", "refused")
        return frozenset(str(row["key"]) for row in self.earlier.rows if row["outcome"] in final)

    def start(self, head: Mapping[str, object]) -> int:
        """Append the head of a run and return its number."""
        number = 1 + max((int(run.get("id", 0)) for run in self.earlier.runs), default=0)
        self._append({"kind": "run", "format": FORMAT, "version": VERSION, "id": number, **head})
        return number

    def add(self, row: Mapping[str, object]) -> None:
        """Append one row; when this returns, it is on the disk."""
        self._append({"kind": "row", **row})

    def _append(self, value: Mapping[str, object]) -> None:
        line = json.dumps(value, ensure_ascii=False, allow_nan=False).encode() + b"\n"
        before = os.fstat(self._file).st_size
        written = os.write(self._file, line)
        if written != len(line):  # a full disk: leave no torn line where others will follow
            os.ftruncate(self._file, before)
            raise OSError(28, "no space left for a row", str(self.path))
        os.fsync(self._file)

    def close(self) -> None:
        """Close the file and release the lock."""
        os.close(self._file)

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
