"""Times of repeated calls, and the most memory that they held."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Timing", "command", "most_memory", "repeat", "watch_memory"]


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of several runs of one call.

    Attributes
    ----------
    least, median
        Wall time in seconds.
    cpu
        Median processor time in seconds, all threads and child processes together.
    runs
        How many there were.
    """

    least: float
    median: float
    cpu: float
    runs: int

    @classmethod
    def of(cls, wall: Sequence[float], cpu: Sequence[float]) -> Timing:
        """Summarise the wall and processor times of one or more runs."""
        return cls(min(wall), statistics.median(wall), statistics.median(cpu), len(wall))


def repeat(call: Callable[[], object], runs: int, *, warm_up: int = 1) -> Timing:
    """Time a call `runs` times after `warm_up` calls that do not count (imports, caches)."""
    for _ in range(warm_up):
        call()
    wall, cpu = [], []
    for _ in range(runs):
        started, busy = time.perf_counter(), _processor_time()
        call()
        wall.append(time.perf_counter() - started)
        cpu.append(_processor_time() - busy)
    return Timing.of(wall, cpu)


def _processor_time() -> float:
    """User and system time of this process and of its children that have ended."""
    children = os.times()  # in ticks of a hundredth of a second, which is fine for processes
    return time.process_time() + children.children_user + children.children_system


def command(arguments: Sequence[str], runs: int) -> Timing:
    """Time a process from its start to its end; CalledProcessError when it fails.

    Python may keep its bytecode, as it does where a package is installed.
    """
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def call() -> None:
        subprocess.run(arguments, check=True, capture_output=True, env=kept)

    return repeat(call, runs)


# --- memory (Linux) -----------------------------------------------------------------------------

_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


def watch_memory() -> bool:
    """Forget the peak so far; whether the system can."""
    try:
        _RESET.write_text("5", encoding="ascii")  # proc(5): resets VmHWM
    except OSError:
        return False
    return _STATUS.exists()


def most_memory() -> float:
    """Return the peak of resident memory since :func:`watch_memory`, in MB (10^6 bytes)."""
    for line in _STATUS.read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return 1.024e-3 * float(line.split()[1])
    raise OSError(f"{_STATUS} does not tell VmHWM")
