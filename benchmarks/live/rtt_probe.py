"""Program: RTTs to addresses, a line of ms for each. Needs nothing beside the standard library.

python rtt_probe.py COUNT ADDRESS…
"""

from __future__ import annotations

import socket
import sys
import time
from concurrent.futures import ThreadPoolExecutor

_PORT = 9  # nothing listens on it in the namespaces: TCP refuses after one round trip


def _rtt(address: str) -> float:
    with socket.socket() as wire:
        started = time.perf_counter()
        try:
            wire.connect((address, _PORT))
        except ConnectionRefusedError:
            return 1000 * (time.perf_counter() - started)
    raise SystemExit(f"something listens on port {_PORT} of {address}")


def _rtts(address: str, count: int) -> list[float]:
    return [_rtt(address) for _ in range(count + 1)][1:]


if __name__ == "__main__":
    count, addresses = int(sys.argv[1]), sys.argv[2:]
    with ThreadPoolExecutor(len(addresses) or 1) as pool:
        for row in pool.map(_rtts, addresses, [count] * len(addresses)):
            print(*(f"{ms:.4f}" for ms in row))
