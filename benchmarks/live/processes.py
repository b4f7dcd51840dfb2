"""Processes that end with this one, whatever happens."""

from __future__ import annotations

import atexit
import contextlib
import os
import pwd
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

__all__ = ["Processes", "as_account"]


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
        """Start a program that runs until it is stopped; what it prints goes to the log.

        Parameters
        ----------
        command
            Program and arguments.
        log
            A file that is added to; its folder is the folder of the program.
        inside
            Words before the command that take it into a namespace.
        account
            Name of the user that the program runs as; empty: as this process.
        environment
            Variables beside those of this process.
        """
        with log.open("ab") as file:
            process = subprocess.Popen(
                [*inside, *as_account(account), "--pdeathsig", "KILL", "--", *map(str, command)],
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                cwd=log.parent,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
        self._running.append(process)
        return process

    def adopt(self, process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
        """Stop a process too that was started otherwise, as the leader of its session."""
        self._running.append(process)

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
