"""Description of a benchmark's machine: hardware, versions, commit."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import placement

__all__ = ["commit", "describe", "hardware", "sentence"]

ROOT = Path(__file__).resolve().parents[2]
SOLVERS = ("numpy", "highspy", "ortools", "pyomo")


def describe(packages: Iterable[str] = SOLVERS) -> dict[str, object]:
    """Describe this machine as a JSON-like mapping.

    Parameters
    ----------
    packages
        Distributions whose versions matter to the benchmark; those not installed are left out.

    Returns
    -------
    dict
        cpu, cores (usable by this process), load (processes that wanted one in the last minute),
        memory_gb, system, python, versions, commit.
    """
    versions = {"replica-placement": placement.__version__}
    for package in packages:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            continue
    return {
        "cpu": _cpu(),
        "cores": _cores(),
        "load": _load(),
        "memory_gb": _memory_gb(),
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


def _cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def _load() -> float | None:
    try:
        return round(os.getloadavg()[0], 1)
    except (AttributeError, OSError):  # not on Windows
        return None


def _cpu() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    found = re.search(r"^model name\s*:\s*(.+)$", text, re.MULTILINE)
    return found.group(1).strip() if found else platform.machine()


def _memory_gb() -> int | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30)
    except (AttributeError, ValueError, OSError):
        return None
