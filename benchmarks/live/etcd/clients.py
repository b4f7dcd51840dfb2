"""Clients of etcd at nodes of the network, and their measurements."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.live.delay_proxy import DelayProxy
from benchmarks.live.emulated_wan import EmulatedWan
from benchmarks.live.live_world import client_node
from benchmarks.live.processes import Processes

__all__ = ["EtcdClients", "Measured"]


@dataclass(frozen=True, slots=True)
class Measured:
    """Operation of a client.

    Attributes
    ----------
    start
        Seconds since 1970.
    client, operation
        Who issued what.
    ms
        Latency from the first attempt.
    attempts
        How many it took.
    done
        Whether it succeeded in the end.
    """

    start: float
    client: str
    operation: str
    ms: float
    attempts: int
    done: bool


class EtcdClients:
    """Running clients at one node each; `finish` returns what they measured.

    Parameters
    ----------
    program
        etcd with the mode ``load``.
    wan
        The network.
    urls
        Of all members; the clients follow the leader among them.
    mix
        Client -> operations as "KIND:WEIGHT:URL", URL "leader" or "near" for the
        leader or the closest member.
    folder
        For the output of the clients.
    options
        Of the program, such as ``count`` of operations per worker and ``workers``.
    """

    def __init__(
        self,
        program: Path,
        wan: EmulatedWan | DelayProxy,
        urls: Sequence[str],
        mix: Mapping[str, Sequence[str]],
        folder: Path,
        **options: float | str,
    ) -> None:
        self._processes = Processes()
        self._running: dict[str, tuple[subprocess.Popen[bytes], Path]] = {}
        words = [f"-{name}={value}" for name, value in options.items()]
        for number, (client, operations) in enumerate(mix.items()):
            path = folder / f"clients-{number}.txt"
            output = path.open("wb")
            process = subprocess.Popen(
                [
                    *wan.inside(client_node(client)),
                    *("setpriv", "--pdeathsig", "KILL", "--", str(program), "load"),
                    *("-endpoints", ",".join(urls), "-ops", ",".join(operations)),
                    *("-name", f"c{number}", "-seed", str(number + 1), "-stdin", *words),
                ],
                stdin=subprocess.PIPE,
                stdout=output,
                start_new_session=True,
            )
            self._processes.adopt(process)
            output.close()
            self._running[client] = process, path

    def know(self, urls: Sequence[str]) -> None:
        """Tell the clients the members of a cluster that has changed."""
        for client in self._running:
            self._tell(client, "urls " + ",".join(urls))

    def rest(self, client: str, ms: float) -> None:
        """Tell the clients at a node how long they rest on average between two operations."""
        self._tell(client, f"pause {ms:.3f}ms")

    def _tell(self, client: str, line: str) -> None:
        stdin = self._running[client][0].stdin
        assert stdin is not None
        stdin.write((line + "\n").encode())
        stdin.flush()

    def end(self) -> None:
        """Ask the clients to end after their operation in flight."""
        for process, _ in self._running.values():
            assert process.stdin is not None
            process.stdin.close()

    def finish(self, seconds: float) -> tuple[list[Measured], int]:
        """Return all operations, and the number of acknowledged writes that cannot be read.

        Parameters
        ----------
        seconds
            Limit; clients that take longer are stopped, which is an error.
        """
        found: list[Measured] = []
        missing = 0
        try:
            for client, (process, output) in self._running.items():
                code = process.wait(seconds)
                assert code == 0, f"clients at {client} ended with {code}"
                for line in output.read_text(encoding="ascii").splitlines():
                    start, *rest = line.split()
                    if start == "CHECK":
                        missing += int(rest[1])
                        continue
                    kind, length, attempts, done = rest
                    found.append(
                        Measured(
                            start=int(start) / 1e6,
                            client=client,
                            operation=kind,
                            ms=int(length) / 1e3,
                            attempts=int(attempts),
                            done=done == "1",
                        )
                    )
        finally:
            self._processes.stop_all()
            for process, _ in self._running.values():
                if process.stdin is not None:
                    process.stdin.close()
        return found, missing
