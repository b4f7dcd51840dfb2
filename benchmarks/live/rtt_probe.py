"""Program: RTTs to addresses, a line of ms for each. Needs nothing beside the standard library.

python rtt_probe.py COUNT ADDRESS…
"""

from __future__ import annotations

import socket
import sys
import time

_PORT = 9  # nothing listens on it in the namespaces: TCP refuses after one round trip


def _rtt(address: str) -> float:
    with socket.socket() as wire:
        started = time.perf_counter()
        try:
            wire.connect((address, _PORT))
        except ConnectionRefusedError:
            return 1000 * (time.perf_counter() - started)
    raise SystemExit(f"something listens on port {_PORT} of {address}")


if __name__ == "__main__":
    count, addresses = int(sys.argv[1]), sys.argv[2:]
    rows: list[list[float]] = [[] for _ in addresses]
    for turn in range(count + 1):
        for address, row in zip(addresses, rows, strict=True):
            ms = _rtt(address)
            if turn:
                row.append(ms)
    for row in rows:
        print(*(f"{ms:.4f}" for ms in row))
