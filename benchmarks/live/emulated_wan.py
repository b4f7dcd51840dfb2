"""A wide-area network on one machine: namespaces joined by delays, for unmodified servers.

Each node is a network namespace with the address 10.77.0.N. A process (:mod:`benchmarks.live.wan`)
reads the packets that nodes send from TUN devices, and delivers each after the one-way delay of its
pair.
It needs the right to make network namespaces: root, or user namespaces for everybody; and the
device ``/dev/net/tun``. Nothing outside the namespaces is changed, and they end with the program.

Each direction of a path delays packets by half of the RTT, and keeps their order.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

import numpy as np

from placement.errors import UnsupportedError
from placement.support.checks import FloatArray

_PROGRAM = Path(__file__).with_name("wan.py")


class EmulatedWan:
    """Network of at most 120 named nodes with given RTTs in ms, shape (nodes, nodes), as a context.

    One path has one RTT: the mean of both directions is taken. The diagonal is not read: within a
    node, the loopback device is used. UnsupportedError on entry, where the machine does not allow
    such a network, with the reason.
    """

    def __init__(self, names: Sequence[str], rtt: FloatArray) -> None:
        self.names = tuple(names)
        self.rtt = (rtt + rtt.T) / 2
        self._place = {name: i for i, name in enumerate(self.names)}
        self._program: subprocess.Popen[str] | None = None
        self._pid = 0
        self._spaces: tuple[int, ...] = ()

    def __enter__(self) -> Self:
        if not sys.platform.startswith("linux"):
            raise UnsupportedError("the emulated network needs Linux")
        pipe = subprocess.PIPE
        program = [sys.executable, "-S", str(_PROGRAM), str(len(self.names))]
        self._program = subprocess.Popen(
            program, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        )
        try:
            words = self._ask().split()
            if words[:1] != ["ready"]:
                raise UnsupportedError(f"no emulated network here: {' '.join(words[1:])}")
        except BaseException:
            self.close()
            raise
        self._pid, *spaces = map(int, words[1:])
        self._spaces = tuple(spaces)
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the network; its namespaces vanish when no process is left in them."""
        if self._program is not None:
            self._program.kill()
            self._program.communicate()
            self._program = None

    def address(self, name: str) -> str:
        """Return the IP address of a node."""
        return f"10.77.0.{self._place[name] + 1}"

    def inside(self, name: str) -> list[str]:
        """Return the words before a command that run it at a node."""
        words = ["nsenter", f"--net=/proc/{self._pid}/fd/{self._spaces[self._place[name]]}"]
        own, theirs = (Path(f"/proc/{who}/ns/user").readlink() for who in ("self", self._pid))
        if own != theirs:
            words += [f"--user=/proc/{self._pid}/ns/user", "--preserve-credentials"]
        return [*words, "--"]

    def set_rtt(self, rtt: FloatArray) -> None:
        """Give all paths other RTTs, ms, shape (nodes, nodes); what is on its way stays."""
        self.rtt = (rtt + rtt.T) / 2
        self._ask()

    def statistics(self) -> Mapping[str, int]:
        """Return how many packets were carried and dropped since the last call."""
        carried, dropped = map(int, self._ask().split())
        return {"carried": carried, "dropped": dropped}

    def _ask(self) -> str:
        """Send the delays, and return the line that answers."""
        assert self._program is not None
        to, answers = self._program.stdin, self._program.stdout
        assert to is not None
        assert answers is not None
        json.dump(np.rint(5e5 * self.rtt).astype(int).tolist(), to)
        to.write("\n")
        to.flush()
        return answers.readline()
