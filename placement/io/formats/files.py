"""Files that appear whole or not at all.

A single file is written under a temporary name in the same folder, synced to the disk, and then
renamed. A folder of several files has one *manifest*, which names the others: what it does not name
does not exist. A new folder is built under a temporary name and renamed. In an existing folder the
new tables go beside the old ones, under names that no old table has, and then the manifest is
replaced, which is the one moment at which the old content gives way to the new. So a crash, a
Ctrl-C or a full disk at any moment leaves either the old content or the new, and never a mixture;
files of the user's own in that folder are never touched.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from placement.errors import InputError

__all__ = ["Manifest", "check_file", "check_folder", "write_file", "write_folder"]

Manifest = Callable[[Mapping[str, str]], bytes]
"""Makes the manifest's bytes from where each table went: plain name -> name in the folder."""


def check_file(path: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Check that a file could be written, before the work whose result goes there.

    Returns
    -------
    Path
        The file itself, with symbolic links followed: not the link is replaced, but its target.

    Raises
    ------
    InputError
        As :func:`write_file`.
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError("a folder stands at this path", source=str(path), expected="a file name")
    _need_parent(target, path)
    if target.exists() and not force:
        raise _exists(path)
    return target


def check_folder(folder: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Check that a folder could be written, as :func:`check_file` does for a file.

    Raises
    ------
    InputError
        As :func:`write_folder`.
    """
    target = Path(os.path.realpath(folder))
    _need_parent(target, folder)
    if target.exists() and not target.is_dir():
        raise InputError(
            "something other than a folder stands at this path",
            source=str(folder),
            expected="a folder, or a path that does not exist",
        )
    if target.exists() and any(target.iterdir()) and not force:
        raise _exists(folder)
    return target


def write_file(path: str | os.PathLike[str], data: bytes, *, force: bool = False) -> Path:
    """Write one file whole or not at all.

    Parameters
    ----------
    path
        Where; the folder must exist.
    data
        The content.
    force
        Replace an existing file; it stays as it is until the new one is complete.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    InputError
        When the file exists and `force` is false, the folder does not exist, or the path is one of
        a folder. Nothing is written then.
    """
    target = check_file(path, force=force)
    with _blaming(path):
        _replace(target, data)
    _sync_folder(target.parent)
    return Path(path)


def write_folder(
    folder: str | os.PathLike[str],
    tables: Mapping[str, bytes],
    manifest_name: str,
    manifest: Manifest,
    *,
    force: bool = False,
    stale: Iterable[str] = (),
) -> Path:
    """Write tables and the manifest that names them, all or nothing.

    Parameters
    ----------
    folder
        Where; created when absent, its parent must exist.
    tables
        Plain file name -> content.
    manifest_name
        File name of the manifest.
    manifest
        Makes the manifest from the names the tables got.
    force
        Replace the manifest of a folder that exists and is not empty.
    stale
        File names in the folder that the old manifest names: removed once the new manifest stands,
        unless the new one names them too.

    Returns
    -------
    Path
        The manifest.

    Raises
    ------
    InputError
        When the folder exists, holds anything, and `force` is false; or when something other than a
        folder stands there. Nothing is written then.
    """
    target = check_folder(folder, force=force)
    with _blaming(folder):
        if not target.exists() or not any(target.iterdir()):
            _new_folder(target, tables, manifest_name, manifest)
        else:
            _renew_folder(target, tables, manifest_name, manifest, stale)
    return Path(folder) / manifest_name


@contextlib.contextmanager
def _blaming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let an error of the system name what the user asked for, not a temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _new_folder(
    target: Path, tables: Mapping[str, bytes], manifest_name: str, manifest: Manifest
) -> None:
    temporary = _temporary(target)
    temporary.mkdir()
    try:
        for name, data in tables.items():
            _write_synced(temporary / name, data)
        _write_synced(temporary / manifest_name, manifest({name: name for name in tables}))
        _sync_folder(temporary)
        if target.exists():
            target.rmdir()  # empty; os.replace over a folder is not portable
        temporary.replace(target)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise
    _sync_folder(target.parent)


def _renew_folder(
    target: Path,
    tables: Mapping[str, bytes],
    manifest_name: str,
    manifest: Manifest,
    stale: Iterable[str],
) -> None:
    names: dict[str, str] = {}
    written: list[Path] = []
    try:
        for plain, data in tables.items():
            name = _free_name(target, plain, data)
            names[plain] = name
            if not (target / name).exists():
                written.append(target / name)
                _replace(target / name, data)
        content = manifest(names)
        _sync_folder(target)
        _replace(target / manifest_name, content)
    except BaseException:
        for path in written:
            path.unlink(missing_ok=True)
        raise
    _sync_folder(target)
    for name in set(stale) - set(names.values()) - {manifest_name}:
        if Path(name).name == name:  # never follow a manifest out of its folder
            with contextlib.suppress(OSError):  # an orphan does no harm
                (target / name).unlink(missing_ok=True)


def _free_name(folder: Path, plain: str, data: bytes) -> str:
    """Return `plain` if nobody else holds that name, else one that also carries a digest."""
    path = folder / plain
    if not path.exists() or (path.is_file() and path.read_bytes() == data):
        return plain
    digest = hashlib.sha256(data).hexdigest()
    for length in (8, 64):
        name = f"{path.stem}-{digest[:length]}{path.suffix}"
        other = folder / name
        if not other.exists() or (other.is_file() and other.read_bytes() == data):
            return name
    raise InputError("no free name for a table", source=str(path), expected="an emptier folder")


def _replace(target: Path, data: bytes) -> None:
    temporary = _temporary(target)
    try:
        _write_synced(temporary, data)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name[:100]}.{secrets.token_hex(6)}.tmp")


def _write_synced(path: Path, data: bytes) -> None:
    with path.open("xb") as sink:
        sink.write(data)
        sink.flush()
        os.fsync(sink.fileno())


def _sync_folder(folder: Path) -> None:
    """Make renames in a folder durable, where the system can do that."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        with contextlib.suppress(OSError):  # some file systems refuse to sync a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _need_parent(target: Path, path: str | os.PathLike[str]) -> None:
    if not target.parent.is_dir():
        raise InputError(
            "the folder to write into does not exist",
            source=os.fspath(path),
            value=str(target.parent),
            expected="an existing folder",
        )


def _exists(path: str | os.PathLike[str]) -> InputError:
    return InputError(
        "exists already",
        source=os.fspath(path),
        expected="a new path, or force=True (--force) to replace it",
    )
