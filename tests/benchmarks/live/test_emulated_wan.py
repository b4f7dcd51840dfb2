"""The emulated network: RTTs as asked for, nodes cut off, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import placement
from benchmarks.live.emulated_wan import EmulatedWan
from benchmarks.live.programs import Processes
from placement.errors import UnsupportedError

pytestmark = pytest.mark.live

NAMES = ("a", "b", "c", "d")


@pytest.fixture(scope="module")
def matrix():
    return placement.load("world27").site_rtt[:4, 5:9] + np.arange(4)  # not symmetric


@pytest.fixture
def make():
    opened = []

    def made(*arguments):
        wan = EmulatedWan(*arguments)
        try:
            wan.__enter__()
        except UnsupportedError as error:
            pytest.skip(str(error))
        opened.append(wan)
        return wan

    yield made
    for wan in opened:
        wan.close()


_PROBE = """
import socket, sys, time
for _ in range(int(sys.argv[2]) + 1):  # port 9 refuses after one round trip
    started = time.perf_counter()
    assert socket.socket().connect_ex((sys.argv[1], 9)) == 111
    print(1000 * (time.perf_counter() - started))
"""


def rtts(wan, source, target, count):
    words = [*wan.inside(source), sys.executable, "-c", _PROBE, wan.address(target), str(count)]
    done = subprocess.run(words, capture_output=True, text=True, check=True, timeout=600)
    return list(map(float, done.stdout.split()))[1:]


def test_every_pair_has_its_rtt(make, matrix):
    wan = make(NAMES, matrix)
    for source in NAMES:
        for target in (name for name in NAMES if name != source):
            i, j = NAMES.index(source), NAMES.index(target)
            asked = (matrix[i, j] + matrix[j, i]) / 2
            # the least of 5; the limit above is for a busy machine
            assert asked - 0.1 < min(rtts(wan, source, target, 5)) < asked + 10
    lateness = wan.statistics()
    assert lateness["carried"] > 100
    assert lateness["dropped"] == 0


def test_what_was_started_ends_with_who_started_it(make, tmp_path):
    make(("a", "b"), np.full((2, 2), 1.0))  # skips where there is no network
    script = (
        "import numpy, pathlib, time\n"
        "from benchmarks.live.emulated_wan import EmulatedWan\n"
        "from benchmarks.live.programs import Processes\n"
        "wan = EmulatedWan(('a', 'b'), numpy.ones((2, 2))).__enter__()\n"
        "process = Processes().start(['sleep', '600'], pathlib.Path('log').absolute(),\n"
        "                            inside=wan.inside('a'))\n"
        "print(wan._program.pid, process.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE, text=True, cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    ) as parent:  # fmt: skip
        pids = [int(word) for word in parent.stdout.readline().split()]
        assert len(pids) == 2
        time.sleep(0.3)  # until setpriv has asked the kernel to end it with its parent
        parent.send_signal(signal.SIGKILL)
        parent.wait(10)
        end = time.monotonic() + 20
        while any(_runs(pid) for pid in pids):
            assert time.monotonic() < end, pids
            time.sleep(0.1)


def _runs(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_processes_stop_at_the_end_of_the_block(tmp_path):
    with Processes() as processes:
        try:
            process = processes.start(["sleep", "600"], tmp_path / "log")
        except FileNotFoundError:
            pytest.skip("no setpriv on the path")
        assert process.poll() is None
    assert process.poll() is not None
