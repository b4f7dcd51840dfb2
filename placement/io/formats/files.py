"""Files that appear whole or not at all.

A single file is written under a temporary name in the same folder, synced to the disk, and then
renamed. A folder of several files has one *manifest*, which names the other files: a file that it
does not name does not exist. A new folder is built under a temporary name and renamed. In an
existing folder the new tables go beside the old ones, under names that no old table has. Then the
manifest is replaced: at this one moment the new content replaces the old. A crash, a Ctrl-C or a
full disk therefore leaves either the old content or the new, and never a mixture. Files of the user
in that folder are never touched.

Only a regular file is ever replaced. A pipe or a character device (``/dev/stdout``) is written
through and stays what it is. Anything else that is no regular file is refused.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO

from placement.errors import InputError, require

Manifest = Callable[[Mapping[str, str]], bytes]
"""Makes the manifest's bytes from where each table went: plain name -> name in the folder."""


def check_file(path: str | os.PathLike[str], *, force: bool = False, regular: bool = False) -> Path:
    """Check that a file could be written, and return it with symbolic links followed.

    With `force` a regular file may be there. A pipe or character device needs none, and is
    returned as it was named, unless the file must be `regular`: read again, or kept open.
    """
    if not regular and _is_stream(path):
        return Path(path)
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise InputError("there is a folder at this path", source=str(path), expected="a file name")
    _need_parent(target, path)
    if os.path.exists(path):
        _need_regular(path)
        if not force:
            raise _exists(path)
    return target


def check_folder(folder: str | os.PathLike[str], *, force: bool = False) -> Path:
    """Check that a folder could be written, as :func:`check_file` does for a file."""
    target = Path(os.path.realpath(folder))
    _need_parent(target, folder)
    if target.exists() and not target.is_dir():
        expected = "a folder, or a path that does not exist"
        raise InputError("this path is not a folder", source=str(folder), expected=expected)
    if target.exists() and any(target.iterdir()) and not force:
        raise _exists(folder)
    return target


def write_file(path: str | os.PathLike[str], data: bytes, *, force: bool = False) -> Path:
    """Write one file whole or not at all, as :func:`writing` does, and return its path."""
    with writing(path, force=force) as sink:
        sink.write(data)
    return Path(path)


@contextlib.contextmanager
def writing(path: str | os.PathLike[str], *, force: bool = False) -> Iterator[IO[bytes]]:
    """Open a file that is written piece by piece, and appears whole when the block ends.

    When the block raises, nothing is written. A pipe is written through; with `force` an existing
    regular file is replaced; any other path that is in use is refused.
    """
    target = check_file(path, force=force)
    if _is_stream(target):
        with tempfile.TemporaryFile() as whole:
            yield whole
            whole.seek(0)
            with _blaming(path), target.open("wb") as sink:
                shutil.copyfileobj(whole, sink)
        return
    with _blaming(path):
        with _appearing(target) as sink:
            yield sink
        _sync_folder(target.parent)


def write_folder(
    folder: str | os.PathLike[str],
    tables: Mapping[str, bytes],
    manifest_name: str,
    manifest: Manifest,
    *,
    force: bool = False,
    stale: Iterable[str] = (),
) -> Path:
    """Write tables and the manifest that names them, all or nothing; return its path.

    The tables are content by plain file name; `manifest` makes the manifest from the names that
    they got. A folder that is not empty is refused without `force`. `stale` are the files that the
    old manifest names: they are removed once the new manifest stands, unless it names them too.
    """
    target = check_folder(folder, force=force)
    fresh = not target.exists() or not any(target.iterdir())
    place = _temporary(target) if fresh else target
    names: dict[str, str] = {}
    written: list[Path] = []
    with _blaming(folder):
        try:
            place.mkdir(exist_ok=not fresh)
            for plain, data in tables.items():
                names[plain] = _free_name(place, plain, data)
                if not (place / names[plain]).exists():
                    written.append(place / names[plain])
                    _replace(written[-1], data)
            content = manifest(names)
            _sync_folder(place)
            _replace(place / manifest_name, content)
            if fresh:
                _sync_folder(place)
                if target.exists():
                    target.rmdir()  # empty; os.replace over a folder is not portable
                place.replace(target)
        except BaseException:
            for path in written:
                path.unlink(missing_ok=True)
            if fresh:
                shutil.rmtree(place, ignore_errors=True)
            raise
        _sync_folder(target.parent if fresh else target)
        for name in set(stale) - set(names.values()) - {manifest_name}:
            if Path(name).name == name:  # never follow a manifest out of its folder
                with contextlib.suppress(OSError):  # an orphan does no harm
                    (target / name).unlink(missing_ok=True)
    return Path(folder) / manifest_name


@contextlib.contextmanager
def _blaming(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let an error of the system name what the user asked for, not a temporary file."""
    try:
        yield
    except OSError as error:
        if error.errno is None or (error.filename and ".tmp" not in str(error.filename)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error


def _free_name(folder: Path, plain: str, data: bytes) -> str:
    """Return `plain` if no other file has that name, else one that also carries a digest."""
    path = folder / plain
    if not path.exists() or (path.is_file() and path.read_bytes() == data):
        return plain
    import hashlib  # loads OpenSSL

    digest = hashlib.sha256(data).hexdigest()
    for length in (8, 64):
        name = f"{path.stem}-{digest[:length]}{path.suffix}"
        other = folder / name
        if not other.exists() or (other.is_file() and other.read_bytes() == data):
            return name
    raise InputError("no free name for a table", source=str(path), expected="an emptier folder")


def _replace(target: Path, data: bytes) -> None:
    with _appearing(target) as sink:
        sink.write(data)


@contextlib.contextmanager
def _appearing(target: Path) -> Iterator[IO[bytes]]:
    """Rename the file that the block writes onto the target; every file goes by here."""
    if target.exists():
        _need_regular(target)
    temporary = _temporary(target)
    try:
        with temporary.open("xb") as sink:
            yield sink
            sink.flush()
            os.fsync(sink.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _is_stream(path: str | os.PathLike[str]) -> bool:
    """Return whether a pipe or a character device stands there, symbolic links followed.

    The path is asked as it is: ``/dev/stdout`` of a pipeline leads to a name that no file has.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISCHR(mode)


def _need_regular(path: str | os.PathLike[str]) -> None:
    if not stat.S_ISREG(os.stat(path).st_mode):
        words = "not a regular file, so it is not replaced"
        raise InputError(words, source=os.fspath(path), expected="a regular file or a new path")


def _temporary(target: Path) -> Path:
    return target.with_name(f".{target.name[:100]}.{os.urandom(6).hex()}.tmp")


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
    words = "the folder to write into does not exist"
    expected = "an existing folder"
    require(target.parent.is_dir(), "", words, str(target.parent), expected, source=os.fspath(path))


def _exists(path: str | os.PathLike[str]) -> InputError:
    expected = "a new path, or force=True (--force) to replace it"
    return InputError("exists already", source=os.fspath(path), expected=expected)


# Files that are read: their kind and size are checked first

LARGEST_FILE = 8 * 2**30
"""Largest file that is read, in bytes. A table of demand of 100 million rows has about 5 GB."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)


@contextlib.contextmanager
def _refusing(source: str) -> Iterator[None]:
    """Turn the errors of the system about a file that is read into InputErrors."""
    try:
        yield
    except InputError:
        raise
    except (FileNotFoundError, NotADirectoryError):
        raise InputError("no such file", source=source) from None
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", source=source) from None
    except ValueError as error:
        words = f"not a file path ({error})"
        raise InputError(words, value=source, expected="a file name") from None


def check_input(path: str | os.PathLike[str]) -> None:
    """Check that a path is one of a regular file that is not too large, without opening it."""
    source = os.fspath(path)
    with _refusing(source):
        _check(os.stat(source), source)


def read_input(path: str | os.PathLike[str]) -> bytes:
    """Return the content of a regular file; errors as of :func:`check_input`."""
    source = os.fspath(path)
    check_input(path)
    with _refusing(source):
        # Another kind of file may have taken the place of the one that was checked: without
        # O_NONBLOCK the opening of a pipe would wait for a writer.
        kind = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        descriptor = os.open(source, os.O_RDONLY | kind)
        with os.fdopen(descriptor, "rb") as file:
            _check(os.fstat(descriptor), source)
            content = file.read()
    if len(content) > LARGEST_FILE:
        raise _too_large(source, len(content))
    return content


def read_text(path: str | os.PathLike[str]) -> str:
    """Return a file's text: UTF-8, or UTF-16 with a byte-order mark, as PowerShell writes it."""
    source = os.fspath(path)
    content = read_input(path)
    try:
        wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        return content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(
            f"not text: byte {error.start} is not UTF-8",
            source=source,
            value=error.object[error.start : error.start + 1],
            expected="UTF-8",
        ) from None


def _check(found: os.stat_result, source: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = next((word for is_kind, word in _KINDS if is_kind(found.st_mode)), "no file")
        raise InputError(f"{kind}, not a regular file", source=source, expected="a regular file")
    if found.st_size > LARGEST_FILE:
        raise _too_large(source, found.st_size)


def _too_large(source: str, size: int) -> InputError:
    value, expected = f"{size:,} bytes", f"at most {LARGEST_FILE:,} bytes"
    return InputError("too large", source=source, value=value, expected=expected)
