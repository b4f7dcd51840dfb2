"""Programs that hold exported texts against real parsers, built once into a cache.

Versions are pinned in the ``go.mod`` beside each program. What cannot be built here is skipped with
the reason.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

_T = TypeVar("_T")
_GIVEN: set[int] = set()

HERE = Path(__file__).parent
CACHE = Path(
    os.environ.get("PLACEMENT_DATABASES_CACHE")
    or Path.home() / ".cache" / "replica-placement" / "databases"
)


def go_program(name: str, *options: str) -> Path:
    """Return the program of a folder, built with options unless its sources were built before."""
    folder = HERE / name
    digest = hashlib.sha256()
    for source in ("go.mod", "go.sum", "main.go"):
        digest.update((folder / source).read_bytes())
    target = CACHE / f"{name}-{digest.hexdigest()[:16]}"
    if target.exists():
        return target
    go = shutil.which("go")
    if go is None:
        pytest.skip("no Go compiler (go) on the path")
    CACHE.mkdir(parents=True, exist_ok=True)
    part = target.with_suffix(f".{os.getpid()}")
    done = subprocess.run(
        [go, "build", "-mod=readonly", *options, "-o", part, "."],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"{name} could not be built: {' '.join(done.stderr.split())[-300:]}")
    part.replace(target)
    return target


def debian_programs(package: str, *names: str) -> list[Path]:
    """Return programs of a Debian package, unpacked once into the cache and not installed.

    An installed service would start by itself.
    """
    found = [shutil.which(name) for name in names]
    if all(found):
        return [Path(str(path)) for path in found]
    for program in ("apt-get", "dpkg-deb"):
        if shutil.which(program) is None:
            pytest.skip(f"no {' or '.join(names)} on the path, and no {program}")
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
            pytest.skip(f"{package} could not be downloaded: {done.stderr.strip()[-300:]}")
        subprocess.run(["dpkg-deb", "-x", archives[0], part], check=True)
        archives[0].unlink()
        part.replace(folder)
    return [folder / "usr" / "bin" / name for name in names]


def java_classpath(name: str) -> str:
    """Return the class path of the packages in a folder's ``pom.xml``, downloaded once."""
    source = HERE / name / "pom.xml"
    digest = hashlib.sha256(source.read_bytes()).hexdigest()[:16]
    folder = CACHE / f"{name}-{digest}"
    for program in ("java", "mvn"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on the path")
    if not folder.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        part = folder.with_suffix(f".{os.getpid()}")
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={part}"]
        done = subprocess.run(
            ["mvn", "-q", "-B", "-f", source, *copy], capture_output=True, text=True, check=False
        )
        if done.returncode:
            pytest.skip(f"{name} could not be downloaded: {done.stdout.strip()[-300:]}")
        part.replace(folder)
    return f"{folder}/*"


def python_with(name: str, *requirements: str) -> Path:
    """Return the Python of an environment in the cache that has pinned packages."""
    digest = hashlib.sha256("\n".join((sys.version, *requirements)).encode()).hexdigest()[:16]
    folder = CACHE / f"{name}-{digest}"
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        install = [python, "-m", "pip", "install", "--quiet", "--prefer-binary", *requirements]
        for command in ([sys.executable, "-m", "venv", "--clear", folder], install):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"{name} could not be installed: {done.stderr.strip()[-300:]}")
        (folder / "complete").touch()
    return python


def parsed(program: Path, texts: list[str]) -> list[dict[str, object]]:
    """Return what a program says of each text: `count` of statements, -1 with `error`."""
    lines = "".join(json.dumps(text) + "\n" for text in texts)
    done = subprocess.run([program], input=lines, capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(texts)
    return answers


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


def awaited(ask: Callable[[], _T], good: Callable[[_T], bool], seconds: float = 30) -> _T:
    """Return an answer that is good, asked again until the seconds are over."""
    end = time.monotonic() + seconds
    while True:
        answer = ask()
        if good(answer):
            return answer
        assert time.monotonic() < end, answer
        time.sleep(0.2)
