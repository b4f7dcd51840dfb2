"""A wide-area network on one machine: one network namespace per node, joined by delays.

    python wan.py NODES

Each namespace has a TUN device with the address 10.77.0.(i+1). Packets that a node sends are read
here, kept for the one-way delay of the pair, and written to the device of the receiver; no packet
of a pair overtakes another. No kernel module beside TUN is needed. The namespaces end with this
process, which ends with its input.

Each line of the input has the delays in ns, a list for each sender, as JSON. The first one is
answered by "ready PID FD0 … FDN-1": the namespace of node i is /proc/PID/fd/FDi, its user namespace
/proc/PID/ns/user. The others are answered by the packets carried and dropped since the last time.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import gc
import heapq
import json
import os
import select
import socket
import struct
import sys
import time
from collections import Counter
from pathlib import Path

_NEW_USER, _NEW_NET = 0x10000000, 0x40000000  # unshare(2)
_TUN, _NO_PI, _SET_TUN = 0x1, 0x1000, 0x400454CA  # of TUN devices
_UP, _RUNNING = 0x1, 0x40
_GET_FLAGS, _SET_FLAGS, _SET_ADDRESS, _SET_MASK, _SET_MTU = 0x8913, 0x8914, 0x8916, 0x891C, 0x8922
_TIMER_SLACK = 29  # prctl(2)
_MTU, _BATCH, _MOST_QUEUED = 1500, 64, 20_000
_LIBC = ctypes.CDLL(None, use_errno=True)


def _unshare(what: int) -> None:
    if _LIBC.unshare(what):
        raise OSError(ctypes.get_errno(), "a namespace of its own is refused")


def _bring_up(device: bytes, address: str = "") -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        for request, value in ((_SET_ADDRESS, address), (_SET_MASK, "255.255.255.0")):
            if address:
                place = struct.pack("HH4s", socket.AF_INET, 0, socket.inet_aton(value))
                fcntl.ioctl(wire, request, struct.pack("16s24s", device, place))
        if address:
            fcntl.ioctl(wire, _SET_MTU, struct.pack("16si20x", device, _MTU))
        known = fcntl.ioctl(wire, _GET_FLAGS, struct.pack("16s24x", device))
        flags = struct.unpack_from("H", known, 16)[0] | _UP | _RUNNING
        fcntl.ioctl(wire, _SET_FLAGS, struct.pack("16sH22x", device, flags))


def made(nodes: int) -> tuple[list[int], list[int]]:
    """Make the namespaces; return the TUN device of each, and the namespace itself."""
    user, group = os.geteuid(), os.getegid()
    try:
        _unshare(_NEW_NET)
    except PermissionError:  # without rights: as the ruler of a user namespace of its own
        _unshare(_NEW_USER)
        Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1", encoding="ascii")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    devices, spaces = [], []
    for node in range(nodes):
        _unshare(_NEW_NET)
        devices.append(os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK))
        fcntl.ioctl(devices[-1], _SET_TUN, struct.pack("16sH22x", b"wan", _TUN | _NO_PI))
        _bring_up(b"lo")
        _bring_up(b"wan", f"10.77.0.{node + 1}")
        spaces.append(os.open("/proc/self/ns/net", os.O_RDONLY))
    return devices, spaces


def carry(devices: list[int], delays: list[list[int]]) -> None:
    """Carry packets until the input ends."""
    sender = {device: node for node, device in enumerate(devices)}
    way: list[tuple[int, int, tuple[int, int], bytes]] = []  # due, in ns; number; pair; packet
    newest, queued, count = Counter[tuple[int, int]](), Counter[tuple[int, int]](), Counter[str]()
    number, text = 0, b""
    while True:
        while way and way[0][0] <= time.monotonic_ns():
            _, _, pair, packet = heapq.heappop(way)
            queued[pair] -= 1
            try:
                os.write(devices[pair[1]], packet)
                count["carried"] += 1
            except OSError:
                count["dropped"] += 1
        wait = max(0, way[0][0] - time.monotonic_ns()) / 1e9 if way else None
        for device in select.select([0, *devices], [], [], wait)[0]:
            for _ in range(_BATCH if device else 0):
                try:
                    packet = os.read(device, _MTU)
                except BlockingIOError:
                    break
                pair = (sender[device], packet[19] - 1 if len(packet) >= 20 else -1)
                known = packet[0] >> 4 == 4 and packet[16:19] == b"\x0a\x4d\x00"
                if not known or not 0 <= pair[1] < len(devices) or pair[0] == pair[1]:
                    continue
                if queued[pair] >= _MOST_QUEUED:
                    count["dropped"] += 1
                    continue
                due = max(newest[pair], time.monotonic_ns() + delays[pair[0]][pair[1]])
                newest[pair], number = due, number + 1
                queued[pair] += 1
                heapq.heappush(way, (due, number, pair, packet))
            if not device:
                more = os.read(0, 1 << 16)
                if not more:  # the process that started the network is gone
                    return
                *lines, text = (text + more).split(b"\n")
                for line in lines:
                    delays = json.loads(line)
                    print(count["carried"], count["dropped"], flush=True)
                    count.clear()


def main() -> None:
    """Make the network and carry its packets."""
    _LIBC.prctl(_TIMER_SLACK, 1)
    with open(0, "rb", buffering=0, closefd=False) as lines:  # no line after it is kept back
        delays = json.loads(lines.readline())
    try:
        devices, spaces = made(int(sys.argv[1]))
    except OSError as error:
        print(f"error {error}", flush=True)
        return
    with contextlib.suppress(PermissionError):  # deliveries are later
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    print("ready", os.getpid(), *spaces, flush=True)
    gc.freeze()
    carry(devices, delays)


if __name__ == "__main__":
    main()
