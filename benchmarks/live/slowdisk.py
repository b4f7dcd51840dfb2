"""A program whose disk is emulated: every fsync, fdatasync and msync takes a given time.

    python slowdisk.py FILE PROGRAM [ARGUMENT ...]

FILE holds an int32, microseconds, in this machine's byte order; who writes it changes the delay at
once. The kernel tells this process of each call (seccomp, user notification), which answers for the
disk after the delay: nothing is flushed, so that the machine's own disk plays no part. It works for
every program, statically linked ones and virtual machines too, and needs no rights. Calls of
several threads are delayed beside each other; calls through io_uring and writes to files opened
with O_SYNC are not seen.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import heapq
import mmap
import os
import platform
import select
import struct
import sys
import time

_CALLS = {"x86_64": (74, 75, 26, 317), "aarch64": (82, 83, 227, 277)}
"""Numbers of fsync, fdatasync, msync and seccomp."""
_PIDFD_GETFD = 438
_DEATH_SIGNAL, _NO_NEW_RIGHTS = 1, 38  # prctl(2)
_SET_FILTER, _LISTENER, _KILLABLE = 1, 1 << 3, 1 << 5  # seccomp(2)
_RECEIVE, _SEND, _NOTIFICATION = 0xC0502100, 0xC0182101, 80
_LOAD, _EQUAL, _RETURN, _ALLOW, _NOTIFY = 0x20, 0x15, 0x06, 0x7FFF0000, 0x7FC00000
_LIBC = ctypes.CDLL(None, use_errno=True)


def _done(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def filtered() -> int:
    """Have the kernel tell of the calls of this process; return what tells of them."""
    *flushes, seccomp = _CALLS[platform.machine()]
    rules = [(_LOAD, 0, 0, 0)]
    rules += [(_EQUAL, 3 - i, 0, number) for i, number in enumerate(flushes)]
    rules += [(_RETURN, 0, 0, _ALLOW), (_RETURN, 0, 0, _NOTIFY)]
    text = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *rule) for rule in rules))
    program = struct.pack("@HP", len(rules), ctypes.addressof(text))
    _done(_LIBC.prctl(_NO_NEW_RIGHTS, 1, 0, 0, 0))
    # killable: the signals by which Go moves its threads must not repeat a call
    return _done(_LIBC.syscall(seccomp, _SET_FILTER, _LISTENER | _KILLABLE, program))


def supervise(listener: int, delay: mmap.mmap) -> None:
    """Answer calls when their delay is over, until the last process of the program has ended."""
    waiting: list[tuple[int, int]] = []  # when it is due, in ns, and its number
    hung_up = select.poll()
    hung_up.register(listener, 0)
    while True:
        while waiting and waiting[0][0] <= time.monotonic_ns():
            with contextlib.suppress(OSError):  # the caller has ended
                fcntl.ioctl(
                    listener, _SEND, struct.pack("QqiI", heapq.heappop(waiting)[1], 0, 0, 0)
                )
        rest = max(0, waiting[0][0] - time.monotonic_ns()) / 1e9 if waiting else None
        if not select.select([listener], [], [], rest)[0]:
            continue
        if hung_up.poll(0):
            return
        with contextlib.suppress(OSError):
            call = fcntl.ioctl(listener, _RECEIVE, bytes(_NOTIFICATION))
            (us,) = struct.unpack("=i", delay[:4])
            due = time.monotonic_ns() + 1000 * us
            heapq.heappush(waiting, (due, struct.unpack_from("Q", call)[0]))


def main() -> int:
    """Run the program; return its exit code."""
    with open(sys.argv[1], "rb") as file:
        delay = mmap.mmap(file.fileno(), 4, access=mmap.ACCESS_READ)
    told, taken = os.pipe(), os.pipe()
    child = os.fork()
    if not child:
        _LIBC.prctl(_DEATH_SIGNAL, 9)
        listener = filtered()
        os.write(told[1], struct.pack("i", listener))
        os.close(told[1])
        os.close(taken[1])
        os.read(taken[0], 1)  # ends when the parent has the listener
        os.close(listener)
        os.execvp(sys.argv[2], sys.argv[2:])
    os.close(told[1])
    (listener,) = struct.unpack("i", os.read(told[0], 4))
    listener = _done(_LIBC.syscall(_PIDFD_GETFD, os.pidfd_open(child), listener, 0))
    os.close(taken[1])
    supervise(listener, delay)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
