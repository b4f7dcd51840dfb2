"""Delays on the loopback device, for machines that allow no namespaces.

Each node has its own address in 127.0.0.0/8. A proxy listens there, and carries the bytes of
every connection to the server behind it, each after half the RTT of the pair. No right is needed.
The source of a connection is the node of the process that opened it: a variable of its environment
says which; the kernel and ``/proc`` say whose connection it is.

Beside :class:`benchmarks.live.emulated_wan.EmulatedWan` this is coarse: the delays are those of a
program in Python (a ms more per round trip), TCP connects at once, and no packet is lost. RTTs do
not vary, and :func:`benchmarks.live.emulated_wan.rtt_samples` sees nothing of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import struct
import sys
import threading
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

from benchmarks.live.programs import free_port
from placement.errors import UnsupportedError
from placement.support.checks import FloatArray

__all__ = ["DelayProxy"]

_VARIABLE = "PLACEMENT_LIVE_NODE"
_CHUNK = 65536
_SOCK_DIAG, _BY_FAMILY = 4, 20  # of the headers of Linux: NETLINK_SOCK_DIAG, SOCK_DIAG_BY_FAMILY


class DelayProxy:
    """Network of named nodes on the loopback device, as a context.

    Parameters
    ----------
    names
        Of the nodes, at most 250.
    rtt
        RTTs in ms, shape (nodes, nodes); the mean of both directions is taken. The diagonal is
        not read.
    ports
        Of the servers. A server listens at :meth:`listener`, and is dialled at :meth:`address`.

    Raises
    ------
    UnsupportedError
        On entry, where the machine is not a Linux with 127.0.0.0/8 on its loopback device.
    """

    def __init__(self, names: Sequence[str], rtt: FloatArray, ports: Sequence[int]) -> None:
        self.names, self.ports = tuple(names), tuple(ports)
        self.rtt = (rtt + rtt.T) / 2
        self._place = {name: i for i, name in enumerate(self.names)}
        self._net = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._servers: list[asyncio.Server] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._up: list[asyncio.Event] = []
        self._node: dict[str | None, int] = {}
        self._known: dict[int, int] = {}  # process -> node
        self._interval = sys.getswitchinterval()

    def __enter__(self) -> Self:
        if not sys.platform.startswith("linux"):
            raise UnsupportedError("the delay proxy needs Linux, whose /proc says who connects")
        # Another run of this machine has another pair of networks: its port drew the numbers.
        self._net = 2 * free_port()
        self._node = {self.address(name): i for i, name in enumerate(self.names)}
        sys.setswitchinterval(1e-4)  # no other thread of this process may hold up a packet for 5 ms
        self._thread.start()
        try:
            asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(60)
        except OSError as error:
            self.close()
            raise UnsupportedError(f"no delay proxy here: {error}") from None
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the proxy and all its connections."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(60)
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(60)
        if not self._loop.is_closed():
            self._loop.close()
            sys.setswitchinterval(self._interval)

    def address(self, name: str) -> str:
        """Return the IP address at which others reach a node."""
        return self._ip(self._net, name)

    def listener(self, name: str) -> str:
        """Return the IP address at which the servers of a node listen, behind the delays."""
        return self._ip(self._net + 1, name)

    def inside(self, name: str) -> list[str]:
        """Return the words before a command that run it at a node."""
        return ["env", f"{_VARIABLE}={self.address(name)}"]

    def cut_off(self, name: str) -> None:
        """Hold back every byte from and to a node."""
        self._loop.call_soon_threadsafe(self._up[self._place[name]].clear)

    def reconnect(self, name: str) -> None:
        """Carry the bytes of a node again, those held back first."""
        self._loop.call_soon_threadsafe(self._up[self._place[name]].set)

    def _ip(self, net: int, name: str) -> str:
        return f"127.{net // 256}.{net % 256}.{self._place[name] + 1}"

    async def _listen(self) -> None:
        for target, name in enumerate(self.names):
            self._up.append(asyncio.Event())
            self._up[target].set()
            for port in self.ports:

                async def serve(
                    reader: asyncio.StreamReader,
                    writer: asyncio.StreamWriter,
                    target: int = target,
                    port: int = port,
                ) -> None:
                    task = asyncio.current_task()
                    assert task is not None
                    self._tasks.add(task)
                    with contextlib.suppress(asyncio.CancelledError):  # at the end of the proxy
                        await self._serve(reader, writer, target, port)
                    self._tasks.discard(task)

                self._servers.append(await asyncio.start_server(serve, self.address(name), port))

    async def _end(self) -> None:
        for server in self._servers:
            server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, target: int, port: int
    ) -> None:
        """Carry a connection to the server behind a node until both sides have ended it."""
        near = writer.get_extra_info("peername")
        source = await asyncio.to_thread(
            self._source, near, (self.address(self.names[target]), port)
        )
        delay = 0.0 if source in (None, target) else float(self.rtt[source, target]) / 2000
        ends = [self._up[end] for end in {target, target if source is None else source}]
        behind = self.listener(self.names[target])
        try:
            there, back = await asyncio.open_connection(behind, port)
        except OSError:
            await asyncio.sleep(2 * delay)
            writer.transport.abort()  # as a server that is not there
            return
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_carry(reader, back, delay, ends))
                both.create_task(_carry(there, writer, delay, ends))
        except* OSError:
            await asyncio.sleep(delay)  # one side has broken off: so hears the other
        finally:
            writer.transport.abort()
            back.transport.abort()

    def _source(self, source: tuple[str, int], target: tuple[str, int]) -> int | None:
        """Return the node of the process at the other end of a connection, None without one."""
        number = _socket_of(source, target)
        if number is None:
            return None
        link = f"socket:[{number}]"
        known = next((one for one in list(self._known) if _holds(one, link)), None)
        if known is not None:
            return self._known[known]
        processes = (int(name) for name in os.listdir("/proc") if name.isdigit())
        for process in sorted(processes, reverse=True):  # ours are among the youngest
            found = _variable_of(process)
            if found in self._node and _holds(process, link):
                self._known[process] = self._node[found]
                return self._node[found]
        return None


async def _carry(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    delay: float,
    ends: Iterable[asyncio.Event],
) -> None:
    """Write every piece that was read after a delay, in the order of arrival."""
    loop = asyncio.get_running_loop()
    waiting: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(256)

    async def read() -> None:
        data = b" "
        while data:
            data = await reader.read(_CHUNK)
            await waiting.put((loop.time() + delay, data))

    async def write() -> None:
        while True:
            due, data = await waiting.get()
            if due > loop.time():
                await asyncio.sleep(due - loop.time())
            for end in ends:
                await end.wait()
            if not data:
                break
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    async with asyncio.TaskGroup() as both:
        both.create_task(read())
        both.create_task(write())


def _socket_of(source: tuple[str, int], target: tuple[str, int]) -> int | None:
    """Return the number of the socket that has connected to a target, asked by `sock_diag(7)`."""
    ends = struct.pack("!HH", source[1], target[1])
    for host, _ in (source, target):
        ends += struct.pack("!4s12x", socket.inet_aton(host))
    asked = struct.pack("=BBBxI", socket.AF_INET, socket.IPPROTO_TCP, 0, 0xFFFFFFFF) + ends
    asked += struct.pack("=III", 0, 0xFFFFFFFF, 0xFFFFFFFF)  # any device, no cookie
    header = struct.pack("=IHHII", 16 + len(asked), _BY_FAMILY, 1, 1, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, _SOCK_DIAG) as kernel:
        kernel.settimeout(10)
        kernel.send(header + asked)
        answer = kernel.recv(4096)
    if struct.unpack_from("=H", answer, 4)[0] != _BY_FAMILY:
        return None
    number: int = struct.unpack_from("=I", answer, 84)[0]
    return number


def _holds(process: int, link: str) -> bool:
    """Return whether a process has a file open; the youngest of its files come first."""
    folder = f"/proc/{process}/fd"
    with contextlib.suppress(OSError):  # it has ended, or is another user's
        for file in sorted(map(int, os.listdir(folder)), reverse=True):
            with contextlib.suppress(OSError):
                if os.readlink(f"{folder}/{file}") == link:
                    return True
    return False


def _variable_of(process: int) -> str | None:
    """Return the node in the environment of a process."""
    with contextlib.suppress(OSError):  # it has ended, or is another user's
        words = Path(f"/proc/{process}/environ").read_bytes()
        found = re.search(rb"(?:^|\0)" + _VARIABLE.encode() + rb"=([^\0]*)", words)
        return found and found[1].decode("ascii", "replace")
    return None
