"""Times of repeated calls: least and median wall time, and the processor time behind them.

On a machine that is shared with others wall times grow with their work; processor time hardly does.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placement import Plan, Problem

__all__ = ["Timing", "command", "proven_cpu_ms", "repeat"]


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


def proven_cpu_ms(
    problem: Problem,
    runs: int,
    settings: Mapping[str, object] | None = None,
    method: str = "exact",
) -> tuple[Plan, float]:
    """Return the plan of a method, and the least CPU time of its runs in ms.

    Raises
    ------
    SolverError
        When the optimum is not proven.
    """
    import placement

    times = []
    for _ in range(runs):
        asked = problem.replace(quorum=problem.quorum)  # a copy that knows nothing yet
        began = time.process_time()
        plan = placement.solve(asked, method=method, settings=settings)
        times.append(1000 * (time.process_time() - began))
    if plan.status != "optimal":
        raise placement.SolverError(
            f"{problem.instance.name} is left {plan.status}: {method}, {settings}"
        )
    return plan, min(times)


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
