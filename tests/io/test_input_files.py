"""Kinds and sizes of files are checked before they are read."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import placement
from benchmarks.harness.result_rows import read_results
from placement.errors import InputError
from placement.io import load_plan, read_counts, read_rtt
from placement.io.feeds.rtt_tables import read_pairs
from placement.io.formats import files as input_files
from placement.io.formats.document import read_document
from placement.io.formats.tables import read_table

pytestmark = pytest.mark.skipif(os.name != "posix", reason="pipes and devices of POSIX")

READERS: list[Callable[[Path], object]] = [
    read_counts,
    read_rtt,
    read_table,
    read_pairs,
    read_document,
    read_results,
    placement.load,
    load_plan,
]


@pytest.fixture(autouse=True)
def no_hang() -> Iterator[None]:
    """End a test that waits for a pipe, with an error."""

    def late(signum: int, frame: object) -> None:
        raise TimeoutError("the reader hangs")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("suffix", ["", ".csv", ".parquet", ".json"])
@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
def test_a_pipe_is_refused(tmp_path: Path, read: Callable[[Path], object], suffix: str) -> None:
    path = tmp_path / f"pipe{suffix}"
    os.mkfifo(path)
    with pytest.raises(InputError, match=r"pipe.*: a pipe, not a regular file"):
        read(path)


@pytest.mark.parametrize("read", READERS, ids=lambda read: read.__name__)
@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="no /dev/zero")
def test_a_device_is_refused(read: Callable[[Path], object]) -> None:
    with pytest.raises(InputError, match=r"/dev/zero: a device, not a regular file"):
        read(Path("/dev/zero"))


@pytest.mark.parametrize("read", READERS[:6], ids=lambda read: read.__name__)
def test_folders_sockets_and_paths_that_are_none(
    tmp_path: Path, read: Callable[[Path], object]
) -> None:
    with pytest.raises(InputError, match="a folder, not a regular file"):
        read(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(InputError, match="a socket, not a regular file"):
            read(tmp_path / "s")
    for name in ("a\0b", "a\udfff\0"):
        with pytest.raises(InputError, match="not a file path"):
            read(Path(name))
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "none")


def test_a_file_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "t.csv"
    path.write_text("client,weak_read\na,1\n")
    monkeypatch.setattr(input_files, "LARGEST_FILE", 10)
    with pytest.raises(InputError, match=r"t\.csv: too large: got '21 bytes', expected at most 10"):
        read_counts(path)
    path.unlink()
    with path.open("wb") as file:  # a sparse file: a terabyte that is not there
        file.truncate(2**40)
    monkeypatch.undo()
    with pytest.raises(InputError, match="too large"):
        read_table(path)
