"""The most memory that this process has held since it was last asked, on Linux."""

from __future__ import annotations

from pathlib import Path

__all__ = ["most_memory", "watch_memory"]

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
