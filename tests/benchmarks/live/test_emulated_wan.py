"""The emulated network: RTTs as asked for, nodes cut off, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import placement
from benchmarks.live.emulated_wan import EmulatedWan, Jitter, rtt_samples
from benchmarks.live.programs import Processes, awaited
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


def test_every_pair_has_its_rtt(make, matrix):
    wan = make(NAMES, matrix)
    for source in NAMES:
        others = [name for name in NAMES if name != source]
        for sample in rtt_samples(wan, source, others, 5):
            i, j = NAMES.index(source), NAMES.index(sample.target)
            asked = (matrix[i, j] + matrix[j, i]) / 2
            # the least of 5; the limit above is for a busy machine
            assert asked - 0.1 < min(sample.ms) < asked + 10
    lateness = wan.statistics()
    assert lateness["carried"] > 100
    assert lateness["dropped"] == 0


def test_delays_vary_as_asked(make):
    rtt = np.full((2, 2), 20.0)
    jitter = Jitter.gamma(0.1, floor=0.7)
    wan = make(("a", "b"), rtt, jitter)
    ms = np.array(rtt_samples(wan, "a", ["b"], 400)[0].ms)
    late = wan.statistics()["mean"]
    # two independent halves: the RTT varies by a share of 0.1 / sqrt(2)
    assert ms.min() > 0.7 * 20 - 0.1
    assert 20 - 1 < np.median(ms) < 20 + 1.5 + 4 * late
    assert 0.8 < np.subtract(*np.quantile(ms, [0.75, 0.25])) < 3.5


def test_the_draws_are_those_of_the_seed():
    assert Jitter.gamma(0.1).quantiles == Jitter.gamma(0.1).quantiles
    assert np.mean(Jitter.gamma(0.2, floor=0.6).quantiles) == pytest.approx(1)
    assert min(Jitter.gamma(0.2, floor=0.6).quantiles) > 0.6
    assert np.std(Jitter.gamma(0.1, floor=0.7).quantiles) == pytest.approx(0.1, rel=0.05)


def test_a_node_is_cut_off_and_comes_back(make):
    wan = make(("a", "b"), np.full((2, 2), 4.0))
    assert len(rtt_samples(wan, "a", ["b"], 2)[0].ms) == 2
    wan.cut_off("b")
    tries = f"import socket; socket.create_connection(({wan.address('b')!r}, 9))"
    with subprocess.Popen(
        [*wan.inside("a"), sys.executable, "-c", tries], stderr=subprocess.DEVNULL
    ) as client:
        awaited(lambda: wan.statistics()["dropped"], lambda dropped: dropped > 0, 60)
        assert client.poll() is None
        wan.reconnect("b")
        assert client.wait(60) == 1  # TCP sends again, and is refused
    assert min(rtt_samples(wan, "a", ["b"], 3)[0].ms) < 10


def test_packets_are_lost_as_asked(make):
    wan = make(("a", "b"), np.full((2, 2), 1.0), Jitter(loss=0.1))
    rtt_samples(wan, "a", ["b"], 100)  # TCP sends again after a second
    found = wan.statistics()
    assert 6 <= found["dropped"] <= 60  # 202 packets arrive; lost beside them: 22 of 224
    assert found["carried"] >= 202


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
