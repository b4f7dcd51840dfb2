"""Programs that are not Python's: built or downloaded once into a cache.

Versions are pinned beside each program. A program that this machine does not have is an
:class:`placement.errors.UnsupportedError` with the reason.
"""

from __future__ import annotations

import hashlib
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from placement.errors import UnsupportedError

__all__ = [
    "CACHE",
    "ETCD",
    "awaited",
    "c_program",
    "debian_programs",
    "free_port",
    "go_program",
    "java_classpath",
    "python_with",
]

_T = TypeVar("_T")
_GIVEN: set[int] = set()

ETCD = Path(__file__).parent / "etcd"
"""Folder of the Go program that is etcd, etcdctl and a measuring client."""

CACHE = Path(
    os.environ.get("PLACEMENT_DATABASES_CACHE")
    or Path.home() / ".cache" / "replica-placement" / "databases"
)
"""Folder of the programs; the environment variable ``PLACEMENT_DATABASES_CACHE`` names another."""


def c_program(source: Path) -> Path:
    """Return the program of one file of C, compiled unless it was before.

    Raises
    ------
    UnsupportedError
        Without a compiler (``cc``), or when it refuses the file.
    """
    return _built(source.stem, [source], ["cc", "-O2", "-o"], [str(source)], source.parent)


def go_program(folder: Path, *options: str) -> Path:
    """Return the program of a folder, built with options unless its sources were built before.

    Raises
    ------
    UnsupportedError
        Without Go, or when the program cannot be built.
    """
    sources = [folder / name for name in ("go.mod", "go.sum", "main.go")]
    return _built(
        folder.name, sources, ["go", "build", "-mod=readonly", *options, "-o"], ["."], folder
    )


def _built(
    name: str, sources: Sequence[Path], before: Sequence[str], after: Sequence[str], folder: Path
) -> Path:
    """Run `before`, the name of the program and `after`, unless the program is in the cache."""
    digest = hashlib.sha256()
    for source in sources:
        digest.update(source.read_bytes())
    target = CACHE / f"{name}-{digest.hexdigest()[:16]}"
    if target.exists():
        return target
    if shutil.which(before[0]) is None:
        raise UnsupportedError(f"no {before[0]} on the path, which builds {name}")
    CACHE.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}")
    done = subprocess.run(
        [*before, part, *after], cwd=folder, capture_output=True, text=True, check=False
    )
    if done.returncode:
        said = " ".join(done.stderr.split())[-300:]
        assert not any(f"{source.name}:" in said for source in sources), said  # a fault of ours
        raise UnsupportedError(f"{name} could not be built: {said}")
    part.replace(target)
    return target


def debian_programs(package: str, *names: str) -> list[Path]:
    """Return programs of a Debian package, unpacked once into the cache and not installed.

    An installed service would start by itself.

    Raises
    ------
    UnsupportedError
        Where they are neither on the path nor to be downloaded.
    """
    found = [shutil.which(name) for name in names]
    if all(found):
        return [Path(str(path)) for path in found]
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            raise UnsupportedError(f"no {' or '.join(names)} on the path, and no {program}")
    folder = CACHE / f"debian-{package}"
    if not folder.exists():
        part = folder.with_suffix(f".{os.getpid()}")
        part.mkdir(parents=True)
        done = subprocess.run(
            ["apt-get", "download", "-qq", package],
            cwd=part,
            capture_output=True,
            text=True,
            check=False,
        )
        archives = list(part.glob("*.deb"))
        if done.returncode or len(archives) != 1:
            shutil.rmtree(part)
            raise UnsupportedError(
                f"{package} could not be downloaded: {done.stderr.strip()[-300:]}"
            )
        subprocess.run(["dpkg-deb", "-x", archives[0], part], check=True)
        archives[0].unlink()
        part.replace(folder)
    return [folder / "usr" / "bin" / name for name in names]


def java_classpath(folder: Path) -> str:
    """Return the class path of the packages in a folder's ``pom.xml``, downloaded once.

    Raises
    ------
    UnsupportedError
        Without Java and Maven, or when the download fails.
    """
    source = folder / "pom.xml"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    target = CACHE / f"{folder.name}-{digest}"
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            raise UnsupportedError(f"no {program} on the path")
    if not target.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(f".{os.getpid()}")
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={part}"]
        done = subprocess.run(
            ["mvn", "-q", "-B", "-f", source, *copy], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise UnsupportedError(
                f"{folder.name} could not be downloaded: {done.stdout.strip()[-300:]}"
            )
        part.replace(target)
    return f"{target}/*"


def python_with(name: str, *requirements: str) -> Path:
    """Return the Python of an environment in the cache that has pinned packages.

    Raises
    ------
    UnsupportedError
        When the environment cannot be made.
    """
    digest = hashlib.sha256("\n".join((sys.version, *requirements)).encode()).hexdigest()[:16]
    folder = CACHE / f"{name}-{digest}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        install: list[str | Path] = [
            python,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--prefer-binary",
            *requirements,
        ]
        for command in ([sys.executable, "-m", "venv", "--clear", str(folder)], install):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise UnsupportedError(
                    f"{name} could not be installed: {done.stderr.strip()[-300:]}"
                )
        (folder / "complete").touch()
    return python


def free_port() -> int:
    """Return a port of loopback that nothing listens on, another at each call.

    It lies below the range from which the system takes the ports of outgoing connections, so that
    no connection takes it before the server starts.
    """
    for port in random.SystemRandom().sample(range(20_000, 32_000), 200):
        with socket.socket() as tried:
            if port in _GIVEN or tried.connect_ex(("127.0.0.1", port)) == 0:
                continue
        with socket.socket() as tried:
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
        _GIVEN.add(port)
        return port
    raise AssertionError("no free port of loopback between 20000 and 32000")


def awaited(
    ask: Callable[[], _T], good: Callable[[_T], bool], seconds: float = 30, every: float = 0.2
) -> _T:
    """Return an answer that is good, asked again until the seconds are over.

    Raises
    ------
    AssertionError
        With the last answer, when none was good in time.
    """
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if good(answer):
            return answer
        assert time.monotonic() < end, answer
        time.sleep(every)
