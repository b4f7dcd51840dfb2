"""A wide-area network on one machine: namespaces joined by delays, for unmodified servers.

Each node is a network namespace with the address 10.77.0.N. A small program (``csrc/wan.c``) reads
the packets that nodes send from TUN devices, and delivers each after the one-way delay of its pair.
It needs the right to make network namespaces: root, or user namespaces for everybody; and the
device ``/dev/net/tun``. Nothing outside the namespaces is changed, and they end with the program.

A path has one-way delays that are half of the RTT. Where RTTs vary, each direction draws its delay
again in every period (`hold`), independently of all others. Packets of a path keep their order.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from benchmarks.live.programs import c_program
from placement.errors import UnsupportedError
from placement.support.checks import FloatArray

__all__ = ["EmulatedWan", "Jitter", "RttSample", "rtt_samples"]

_SOURCE = Path(__file__).parent / "csrc" / "wan.c"


@dataclass(frozen=True, slots=True)
class Jitter:
    """Variation of delays.

    Attributes
    ----------
    quantiles
        Factors of half the RTT, rising, each the delay of the same share of periods, shape (Q,).
        Their mean should be 1, for the RTTs are means then.
    hold
        Length of a period in ms.
    loss
        Share of packets that are lost.
    seed
        Of the draws.
    """

    quantiles: tuple[float, ...] = (1.0,)
    hold: float = 20.0
    loss: float = 0.0
    seed: int = 1

    @classmethod
    def gamma(
        cls, variation: float, *, floor: float = 0.8, count: int = 200, seed: int = 1
    ) -> Self:
        """Return delays of at least `floor` times the mean, the rest of a gamma distribution.

        Parameters
        ----------
        variation
            Standard deviation over mean, of the one-way delay.
        floor
            Least delay over the mean one.
        count
            Number of quantiles.
        seed
            Of the draws.
        """
        from scipy.stats import gamma

        rest = 1 - floor
        shape = (rest / variation) ** 2
        values = gamma.ppf((np.arange(count) + 0.5) / count, shape, scale=rest / shape)
        return cls(tuple((floor + values * rest / values.mean()).tolist()), seed=seed)


@dataclass(frozen=True, slots=True)
class RttSample:
    """RTTs of one pair as TCP sees them, ms."""

    source: str
    target: str
    ms: tuple[float, ...]


class EmulatedWan:
    """Network of named nodes with given RTTs, as a context.

    Parameters
    ----------
    names
        Of the nodes, at most 120.
    rtt
        RTTs in ms, shape (nodes, nodes). One path has one RTT: the mean of both directions is
        taken. The diagonal is not read: within a node, the loopback device is used.
    jitter
        How delays vary; by default they do not.

    Raises
    ------
    UnsupportedError
        On entry, where the machine does not allow such a network, with the reason.
    """

    def __init__(self, names: Sequence[str], rtt: FloatArray, jitter: Jitter | None = None) -> None:
        self.names = tuple(names)
        self.rtt = (rtt + rtt.T) / 2
        self.jitter = jitter or Jitter()
        self._place = {name: i for i, name in enumerate(self.names)}
        self._program: subprocess.Popen[str] | None = None
        self._pid = 0
        self._spaces: tuple[int, ...] = ()

    def __enter__(self) -> Self:
        if not sys.platform.startswith("linux"):
            raise UnsupportedError("the emulated network needs Linux")
        self._program = subprocess.Popen(
            [c_program(_SOURCE)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            words = self._ask(self._beginning()).split()
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

    def listener(self, name: str) -> str:
        """Return the IP address of a node, at which its servers listen."""
        return self.address(name)

    def inside(self, name: str) -> list[str]:
        """Return the words before a command that run it at a node."""
        words = ["nsenter", f"--net=/proc/{self._pid}/fd/{self._spaces[self._place[name]]}"]
        own, theirs = (Path(f"/proc/{who}/ns/user").readlink() for who in ("self", self._pid))
        if own != theirs:
            words += [f"--user=/proc/{self._pid}/ns/user", "--preserve-credentials"]
        return [*words, "--"]

    def cut_off(self, name: str) -> None:
        """Drop every packet from and to a node."""
        self._ask(f"down {self._place[name]}\n")

    def reconnect(self, name: str) -> None:
        """Carry the packets of a node again."""
        self._ask(f"up {self._place[name]}\n")

    def statistics(self) -> Mapping[str, float]:
        """Return how late packets were delivered since the last call, in ms, and how many.

        Returns
        -------
        dict
            carried and dropped packets; mean and worst lateness.
        """
        carried, dropped, mean, worst = map(float, self._ask("stats\n").split()[1:])
        return {"carried": carried, "dropped": dropped, "mean": mean / 1000, "worst": worst / 1000}

    def _ask(self, text: str) -> str:
        """Send commands, and return the line that answers."""
        assert self._program is not None
        to, answers = self._program.stdin, self._program.stdout
        assert to is not None
        assert answers is not None
        to.write(text)
        to.flush()
        return answers.readline()

    def _beginning(self) -> str:
        """Return the commands that describe the network."""
        lines = [f"nodes {len(self.names)}", f"seed {self.jitter.seed}"]
        lines += [f"hold {self.jitter.hold * 1000:.0f}", f"loss {self.jitter.loss!r}"]
        for a, b in np.argwhere(~np.eye(len(self.names), dtype=bool)).tolist():
            delays = [f"{500 * self.rtt[a, b] * factor:.0f}" for factor in self.jitter.quantiles]
            lines.append(f"delay {a} {b} {len(delays)} {' '.join(delays)}")
        return "\n".join([*lines, "start\n"])


def rtt_samples(
    wan: EmulatedWan, source: str, targets: Sequence[str], count: int
) -> list[RttSample]:
    """Measure RTTs from a node: how long TCP takes to learn that nothing listens on a port.

    Parameters
    ----------
    wan
        The network.
    source, targets
        Names of nodes.
    count
        Samples per target; one more comes before, which is not kept.
    """
    program = Path(__file__).parent / "rtt_probe.py"
    done = subprocess.run(
        [*wan.inside(source), sys.executable, program, str(count), *map(wan.address, targets)],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    rows = [tuple(map(float, line.split())) for line in done.stdout.splitlines()]
    return [RttSample(source, target, row) for target, row in zip(targets, rows, strict=True)]
