"""Writes are whole or not at all, at whichever step they are cut short."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from placement import InputError, Instance
from placement.io import load_instance, save_instance
from placement.io.formats import files as module
from placement.io.formats.files import check_file, write_file, write_folder, writing
from tests.io.worlds import same, small

OLD = small()
# other numbers, other names and one table more
NEW = small(
    counts=np.ones((2, 4, 5)), clients=("Oslo", "Bern", "Lagos", "Lima"), provenance=("Changed.",)
)


@contextmanager
def cut_short(step: int, how: Callable[[], None]) -> Iterator[list[int]]:
    """Let the `step`-th call that changes the disk end in `how` instead, half-done writes included.

    Yields the list of calls that were made.
    """
    made: list[int] = []
    write, rename, unlink, mkdir = (module._write_synced, Path.replace, Path.unlink, Path.mkdir)

    def count() -> bool:
        made.append(len(made))
        return len(made) - 1 == step

    def half_write(path: Path, data: bytes) -> None:
        if count():
            path.write_bytes(data[: len(data) // 2])
            how()
        write(path, data)

    def watched(call: Callable[..., Any]) -> Callable[..., Any]:
        def instead(self: Path, *args: Any, **kwargs: Any) -> Any:
            if count():
                how()
            return call(self, *args, **kwargs)

        return instead

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_write_synced", half_write)
        patch.setattr(Path, "replace", watched(rename))
        patch.setattr(Path, "mkdir", watched(mkdir))
        patch.setattr(Path, "unlink", watched(unlink))
        yield made


def _leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.name.endswith(".tmp")]


def _raise(error: type[BaseException]) -> Callable[[], None]:
    def how() -> None:
        raise error("cut short")

    return how


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_at_any_step_leaves_the_old_instance_or_the_new(
    tmp_path: Path, error: type[BaseException]
) -> None:
    seen: set[str] = set()
    for step in itertools.count():
        folder = tmp_path / str(step)
        save_instance(OLD, folder)
        (folder / "notes.txt").write_text("mine")
        before = {path.name for path in folder.iterdir()}
        with cut_short(step, _raise(error)) as made:
            try:
                save_instance(NEW, folder, force=True)
                finished = True
            except error:
                finished = False
        found = load_instance(folder)
        assert same(found, OLD) or same(found, NEW)
        assert not finished or same(found, NEW)
        seen.add("new" if same(found, NEW) else "old")
        assert (folder / "notes.txt").read_text() == "mine"
        if same(found, OLD):  # and nothing of the new one lies about
            assert {path.name for path in folder.iterdir()} == before
        assert _leftovers(folder) == []
        # and it can be written again
        save_instance(NEW, folder, force=True)
        assert same(load_instance(folder), NEW)
        if step >= len(made):
            break
    assert step > 6  # tables and manifest, a write and a rename each
    assert seen == {"old", "new"}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork to be killed")
def test_a_kill_at_any_step_leaves_the_old_instance_or_the_new(tmp_path: Path) -> None:
    def die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    seen: set[str] = set()
    for step in itertools.count():
        folder = tmp_path / str(step)
        save_instance(OLD, folder)
        child = os.fork()
        if child == 0:
            with cut_short(step, die):
                save_instance(NEW, folder, force=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        found = load_instance(folder)
        assert same(found, OLD) or same(found, NEW)
        seen.add("new" if same(found, NEW) else "old")
        if os.WIFEXITED(status):
            break
    assert step > 6
    assert seen == {"old", "new"}
    assert same(found, NEW)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_new_folder_appears_whole_or_not_at_all(
    tmp_path: Path, error: type[BaseException]
) -> None:
    for step in itertools.count():
        folder = tmp_path / str(step) / "w"
        folder.parent.mkdir()
        with cut_short(step, _raise(error)) as made:
            try:
                save_instance(NEW, folder)
            except error:
                assert list(folder.parent.iterdir()) == []
            else:
                assert same(load_instance(folder), NEW)
        if step >= len(made):
            break
    assert step > 6


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_file_is_the_old_one_until_it_is_the_new_one(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "plan.json"
    path.write_bytes(b"old")
    for step in range(2):
        with cut_short(step, _raise(error)), pytest.raises(error):
            write_file(path, b"new and longer", force=True)
        assert path.read_bytes() == b"old"
        assert [p.name for p in tmp_path.iterdir()] == ["plan.json"]
    write_file(path, b"new and longer", force=True)
    assert path.read_bytes() == b"new and longer"


def test_a_failing_sync_is_a_failing_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"No space left on device: '.*/plan\.json'"):
        write_file(tmp_path / "plan.json", b"new")
    with pytest.raises(OSError, match=r"No space left on device: '.*/w'"):
        save_instance(OLD, tmp_path / "w")
    assert list(tmp_path.iterdir()) == []


def test_existing_files_need_force(tmp_path: Path) -> None:
    write_file(tmp_path / "a", b"1")
    with pytest.raises(InputError, match=r"exists already.*--force"):
        write_file(tmp_path / "a", b"2")
    assert (tmp_path / "a").read_bytes() == b"1"
    with pytest.raises(InputError, match="there is a folder at this path"):
        write_file(tmp_path, b"2", force=True)
    with pytest.raises(InputError, match="does not exist"):
        write_file(tmp_path / "b" / "c", b"2")


def test_existing_folders_need_force_and_strangers_files_stay(tmp_path: Path) -> None:
    save_instance(OLD, tmp_path / "w")
    before = {path.name: path.read_bytes() for path in (tmp_path / "w").iterdir()}
    with pytest.raises(InputError, match="exists already"):
        save_instance(NEW, tmp_path / "w")
    assert {path.name: path.read_bytes() for path in (tmp_path / "w").iterdir()} == before
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/sites.csv").write_text("my own")
    with pytest.raises(InputError, match="exists already"):
        save_instance(OLD, tmp_path / "mine")
    save_instance(OLD, tmp_path / "mine", force=True)
    save_instance(NEW, tmp_path / "mine", force=True)
    assert (tmp_path / "mine/sites.csv").read_text() == "my own"
    assert same(load_instance(tmp_path / "mine"), NEW)
    (tmp_path / "file").write_text("x")
    with pytest.raises(InputError, match="this path is not a folder"):
        save_instance(OLD, tmp_path / "file", force=True)


def test_replacing_leaves_no_table_behind(tmp_path: Path) -> None:
    for world in (OLD, NEW, OLD, NEW):
        save_instance(world, tmp_path / "w", force=True)
        assert len(list((tmp_path / "w").iterdir())) == 6  # manifest and five tables
    save_instance(NEW, tmp_path / "w", tables="parquet", force=True)
    names = sorted(path.name for path in (tmp_path / "w").iterdir())
    assert names[2] == "counts.parquet"
    assert len(names) == 6


def test_a_manifest_cannot_make_us_delete_files_elsewhere(tmp_path: Path) -> None:
    save_instance(OLD, tmp_path / "w")
    (tmp_path / "precious.csv").write_text("precious")
    manifest = tmp_path / "w/instance.json"
    manifest.write_text(manifest.read_text().replace('"sites.csv"', '"../precious.csv"'))
    save_instance(NEW, tmp_path / "w", force=True)
    assert (tmp_path / "precious.csv").read_text() == "precious"


def test_an_empty_folder_may_be_filled(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    save_instance(OLD, tmp_path / "w")
    assert same(load_instance(tmp_path / "w"), OLD)


@pytest.mark.skipif(os.name != "posix", reason="needs symbolic links")
def test_a_link_is_followed_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(b"1")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    write_file(tmp_path / "link", b"2", force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"2"


def device(folder: Path) -> Path:
    """A character device of this test's own (the one that swallows everything), or a FIFO."""
    path = folder / "device"
    if os.geteuid() == 0:
        with contextlib.suppress(OSError):  # some containers keep device nodes to themselves
            os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 3))
            return path
    os.mkfifo(path)
    return path


def kind(path: Path) -> tuple[int, int, int]:
    found = path.lstat()
    return stat.S_IFMT(found.st_mode), found.st_rdev, found.st_ino


@contextmanager
def read_from(path: Path) -> Iterator[list[bytes]]:
    """Collect what is written to a pipe meanwhile; nothing to do for a device."""
    found: list[bytes] = []
    if not stat.S_ISFIFO(path.stat().st_mode):
        yield found
        return
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()), daemon=True)
    reader.start()
    yield found
    reader.join(timeout=20)
    assert not reader.is_alive()


@pytest.mark.skipif(os.name != "posix", reason="needs pipes with a name")
@pytest.mark.parametrize("make", [device, None], ids=["device", "pipe"])
@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("linked", [False, True])
def test_devices_and_pipes_are_written_through(
    tmp_path: Path, make: Callable[[Path], Path] | None, force: bool, linked: bool
) -> None:
    data = b"0123456789" * 20_000  # more than a pipe holds
    if make is None:
        os.mkfifo(path := tmp_path / "pipe")
    else:
        path = make(tmp_path)
    before, name = kind(path), path
    if linked:
        (name := tmp_path / "link").symlink_to(path)
    names = sorted(tmp_path.iterdir())
    with read_from(path) as found:
        assert write_file(name, data, force=force) == name
    assert found in ([], [data])
    with read_from(path) as found, writing(name, force=force) as sink:
        sink.write(data)
    assert found in ([], [data])
    assert bool(found) == stat.S_ISFIFO(before[0])
    assert kind(path) == before
    assert sorted(tmp_path.iterdir()) == names
    with pytest.raises(InputError, match="not a regular file"):
        check_file(name, force=True, regular=True)


@pytest.mark.skipif(os.name != "posix", reason="needs sockets with a name")
@pytest.mark.parametrize("force", [False, True])
def test_what_is_neither_file_nor_stream_is_refused(tmp_path: Path, force: bool) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(os.path.relpath(path))
        before = kind(path)
        with pytest.raises(InputError, match=r"socket: not a regular file"):
            write_file(path, b"new", force=force)
        with pytest.raises(InputError, match=r"not a regular file"), writing(path, force=force):
            pass
        assert kind(path) == before


@pytest.mark.skipif(os.name != "posix", reason="needs pipes with a name")
def test_a_manifest_that_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    folder.mkdir()
    os.mkfifo(folder / "instance.json")
    with pytest.raises(InputError, match="not a regular file"):
        write_folder(folder, {"a.csv": b"1"}, "instance.json", lambda names: b"{}", force=True)
    assert [path.name for path in folder.iterdir()] == ["instance.json"]
    assert stat.S_ISFIFO((folder / "instance.json").stat().st_mode)


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_file_written_in_pieces_appears_at_its_end(
    tmp_path: Path, error: type[BaseException]
) -> None:
    path = tmp_path / "table.csv"
    path.write_bytes(b"old")

    def half() -> None:
        with writing(path, force=True) as sink:
            sink.write(b"half")
            raise error("cut short")

    with pytest.raises(error):
        half()
    assert path.read_bytes() == b"old"
    with writing(path, force=True) as sink:
        sink.write(b"a")
        sink.write(b"b")
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"ab"
    assert [entry.name for entry in tmp_path.iterdir()] == ["table.csv"]
    with pytest.raises(InputError, match="exists already"), writing(path):
        pass


def test_an_error_of_another_file_keeps_its_name(tmp_path: Path) -> None:
    missing = tmp_path / "part.csv"
    with pytest.raises(FileNotFoundError) as caught, writing(tmp_path / "table.csv") as sink:
        sink.write(missing.read_bytes())
    assert caught.value.filename == str(missing)


def test_worlds_differ() -> None:
    assert isinstance(NEW, Instance)
    assert not same(OLD, NEW)
