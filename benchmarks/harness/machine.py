"""Machine of a benchmark, which runs Linux: hardware, versions, commit; peak of memory."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import placement

ROOT = Path(__file__).resolve().parents[2]
SOLVERS = ("numpy", "highspy", "ortools", "pyomo")
_STATUS = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


def describe(packages: Iterable[str] = SOLVERS) -> dict[str, object]:
    """Describe this machine, and the versions of the distributions that are installed.

    The load is the number of processes that wanted a processor in the last minute.
    """
    versions = {"replica-placement": placement.__version__}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "load": round(os.getloadavg()[0], 1),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "system": f"{platform.system()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "versions": versions,
        "commit": commit(),
    }


def sentence(machine: Mapping[str, object]) -> str:
    """Return processor, cores, load, Python and commit of a machine as a phrase.

    The versions of the packages stand in the file of results.
    """
    load = "" if machine.get("load") is None else f" (load {machine['load']})"
    commit = str(machine["commit"])
    return (
        f"{machine['cpu']}, {machine['cores']} cores{load}, {machine['python']}, "
        f"commit {commit[:9]}{'+' if commit.endswith('+') else ''}"
    )


def hardware(machines: Iterable[Mapping[str, object]]) -> str:
    """Return processor, cores and Python of machines as one line, each once."""
    found = (f"{one['cpu']}, {one['cores']} cores, {one['python']}" for one in machines)
    return f"Machine: {'; '.join(dict.fromkeys(found))}."


def commit() -> str:
    """Return the commit of the checkout, with "+" after it when files differ; else "unknown"."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        changed = _git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return head + ("+" if changed else "")


def _git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def _cpu() -> str:
    text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()


def cpu_seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    return sum(os.times()[:4])


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
