"""Programs that are not Python's: made once into a cache, and ended with this process.

Versions are pinned beside each program. A program that this machine does not have is an
:class:`placement.errors.UnsupportedError` with the reason.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import json
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Self, TypeVar

from placement.errors import UnsupportedError

_T = TypeVar("_T")
_GIVEN: set[int] = set()

ETCD = Path(__file__).parent / "etcd"
"""Folder of the Go program that is etcd, etcdctl and a measuring client."""

CACHE = Path(
    os.environ.get("PLACEMENT_DATABASES_CACHE")
    or Path.home() / ".cache" / "replica-placement" / "databases"
)
"""Folder of the programs; the environment variable ``PLACEMENT_DATABASES_CACHE`` names another."""


def _cached(name: str, of: bytes, make: Callable[[Path], None]) -> Path:
    """Return the entry of the cache that `make` fills once for what it is made of."""
    target = CACHE / f"{name}-{hashlib.sha256(of).hexdigest()[:16]}"
    if not target.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = target.with_suffix(f".{os.getpid()}")
        try:
            make(part)
            part.replace(target)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    return target


def _carried_out(name: str, *command: str | Path, cwd: Path | None = None) -> None:
    """Run a command that makes a program; UnsupportedError with its last words when it fails."""
    if shutil.which(command[0]) is None:
        raise UnsupportedError(f"no {command[0]} on the path, which makes {name}")
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " ".join((done.stderr + done.stdout).split())[-300:]
        assert ".go:" not in said, said  # a fault of ours
        raise UnsupportedError(f"{name} could not be made: {said}")


_SOURCES = {
    "go.mod": ("go.mod", "go.sum", "*.go"),
    "Cargo.toml": ("Cargo.toml", "*.rs"),
    "pom.xml": ("pom.xml",),
}
"""File that says how a folder is built -> patterns of the files that it is built from."""


def built(folder: Path, *options: str) -> Path:
    """Return what a folder makes, unless it was made before; the options are Go's.

    That is a program of Go (``go.mod``) or of Rust (``Cargo.toml``), or the class path of the Java
    packages of a ``pom.xml``.
    """
    kind = next(name for name in _SOURCES if (folder / name).exists())

    def make(part: Path) -> None:
        commands: dict[str, tuple[str | Path, ...]] = {
            "go.mod": ("go", "build", "-mod=readonly", *options, "-o", part, "."),
            "Cargo.toml": ("cargo", "build", "--quiet", "--release", "--target-dir", part),
            "pom.xml": ("mvn", "-q", "-B", "dependency:copy-dependencies",
                        f"-DoutputDirectory={part}"),
        }  # fmt: skip
        _carried_out(folder.name, *commands[kind], cwd=folder)

    if kind == "pom.xml" and shutil.which("java") is None:
        raise UnsupportedError("no java on the path")
    files = [file for pattern in _SOURCES[kind] for file in sorted(folder.glob(pattern))]
    sources = b"".join(file.read_bytes() for file in files)
    target = _cached(folder.name, sources, make)
    inside = {"go.mod": "", "Cargo.toml": f"release/{folder.name}", "pom.xml": "*"}
    return target / inside[kind]


def installed(package: str, name: str, pattern: str = "") -> Path:
    """Return a program of a Debian package: the last path of a pattern, or what the path has."""
    found = sorted(Path("/").glob(pattern)) if pattern else []
    if found:
        return found[-1]
    if (path := shutil.which(name)) is not None:
        return Path(path)
    raise UnsupportedError(f"{name} is not installed: the Debian package {package} has it")


def debian_programs(package: str, *names: str) -> list[Path]:
    """Return programs of a Debian package, unpacked once into the cache and not installed.

    An installed service would start by itself.
    """
    found = [shutil.which(name) for name in names]
    if all(found):
        return [Path(str(path)) for path in found]

    def unpack(part: Path) -> None:
        part.mkdir(parents=True)
        _carried_out(package, "apt-get", "download", "-qq", package, cwd=part)
        (archive,) = part.glob("*.deb")
        _carried_out(package, "dpkg-deb", "-x", archive, part)
        archive.unlink()

    folder = _cached(f"debian-{package}", package.encode(), unpack)
    return [folder / "usr" / "bin" / name for name in names]


def python_with(name: str, *requirements: str) -> Path:
    """Return the Python of an environment in the cache that has pinned packages."""
    digest = hashlib.sha256("\n".join((sys.version, *requirements)).encode()).hexdigest()[:16]
    folder = CACHE / f"{name}-{digest}"  # made in its place: an environment knows its path
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        _carried_out(name, sys.executable, "-m", "venv", "--clear", folder)
        install = ("-m", "pip", "install", "--quiet", "--prefer-binary")
        _carried_out(name, python, *install, *requirements)
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
    """Return an answer that is good, asked again for so long; AssertionError without one."""
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if good(answer):
            return answer
        assert time.monotonic() < end, answer
        time.sleep(every)


def postgresql_account() -> str:
    """Return the account of the server, which refuses root; empty for the present account."""
    if os.geteuid() != 0:
        return ""
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name).pw_name
    raise UnsupportedError("the server does not run as root, and there is no other account")


# --- processes that end with this one -----------------------------------------------------------


def as_account(name: str) -> list[str]:
    """Return the words before options and command that run it as a user; empty: as this process."""
    if not name:
        return ["setpriv"]
    group = str(pwd.getpwnam(name).pw_gid)
    return ["setpriv", "--reuid", name, "--regid", group, "--clear-groups"]


class Processes:
    """Processes in separate groups, all of them killed at the end of the block.

    The kernel kills them too when this process ends without a word (``setpriv --pdeathsig``).
    """

    def __init__(self) -> None:
        self._running: list[subprocess.Popen[bytes] | subprocess.Popen[str]] = []
        self.started: list[subprocess.Popen[bytes]] = []
        atexit.register(self.stop_all)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop_all()

    def start(
        self,
        command: Sequence[str | Path],
        log: Path,
        *,
        inside: Sequence[str] = (),
        account: str = "",
        environment: Mapping[str, str] | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a program that runs until it is stopped; what it prints is added to the log.

        The folder of the log is that of the program. `inside` stands before the command and takes
        it into a namespace. An empty account is that of this process.
        """
        words = map(str, (*self.words(), *command))
        with log.open("ab") as file:
            process = subprocess.Popen(
                [*inside, *as_account(account), "--pdeathsig", "KILL", "--", *words],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=log.parent,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        self._running.append(process)
        self.started.append(process)
        return process

    def words(self) -> Sequence[str | Path]:
        """Return what stands before the next command that is started."""
        return ()

    def talk(self, command: Sequence[str | Path]) -> subprocess.Popen[str]:
        """Start a program that is asked on its standard input, and answers in lines."""
        words, pipe = list(map(str, command)), subprocess.PIPE
        process = subprocess.Popen(
            words, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        )
        self._running.append(process)
        return process

    def stop(self, process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
        """Kill a process and its group, and wait for its end."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(20)
        if process in self._running:
            self._running.remove(process)

    def stop_all(self) -> None:
        """Stop every process that was started."""
        for process in list(self._running):
            self.stop(process)
        atexit.unregister(self.stop_all)


def output(*command: str | Path) -> str | None:
    """Return the output of a command, or None when it fails or takes a minute."""
    with contextlib.suppress(subprocess.TimeoutExpired):
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        return done.stdout if done.returncode == 0 else None
    return None


def answer(process: subprocess.Popen[str], question: object) -> Any:
    """Return the answer of a program of :meth:`Processes.talk`; both are lines of JSON."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps(question) + "\n")
    process.stdin.flush()
    line = process.stdout.readline()
    assert line, "a client ended before it answered"
    return json.loads(line)
