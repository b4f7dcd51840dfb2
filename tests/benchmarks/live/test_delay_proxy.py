"""The delay proxy: each pair has its delay in user space, and etcd behaves as in namespaces."""

import socket
import subprocess
import sys
import time

import numpy as np
import pytest

from benchmarks.live.delay_proxy import DelayProxy
from benchmarks.live.etcd.world import PORTS, EtcdBench
from benchmarks.live.layouts import Layout, azure_part
from benchmarks.live.live_world import OPERATIONS, proxied
from benchmarks.live.processes import Processes
from placement.errors import UnsupportedError

pytestmark = pytest.mark.live

_ECHO = """
import socket, sys
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as server:
    while True:
        connection, _ = server.accept()
        connection.sendall(connection.recv(9))
        connection.close()
"""
_ASK = """
import socket, sys, time
least = 1e9
for _ in range(5):
    with socket.create_connection((sys.argv[1], int(sys.argv[2])), 60) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        start = time.perf_counter()
        connection.sendall(b"?")
        assert connection.recv(9) == b"?"
        least = min(least, time.perf_counter() - start)
print(least * 1000)
"""
PORT = 7400


@pytest.fixture
def proxy(tmp_path):
    names = ("a", "b", "c")
    rtt = np.array([[0, 30, 90], [30, 0, 200], [90, 200, 0]], dtype=float)
    try:
        network = DelayProxy(names, rtt, (PORT,)).__enter__()
    except UnsupportedError as error:
        pytest.skip(str(error))
    try:
        with Processes() as processes:
            for name in names:
                command = [sys.executable, "-c", _ECHO, network.listener(name), str(PORT)]
                processes.start(command, tmp_path / "log", inside=network.inside(name))
                _wait_for(network.listener(name))
            yield network
    finally:
        network.close()


def _wait_for(address):
    for _ in range(600):
        with socket.socket() as tried:
            tried.settimeout(0.1)
            if tried.connect_ex((address, PORT)) == 0:
                tried.sendall(b"!")
                tried.settimeout(60)
                assert tried.recv(9) == b"!"
                return
        time.sleep(0.1)
    pytest.fail("no server at " + address)


def _asked(proxy, source, target):
    command = [sys.executable, "-c", _ASK, proxy.address(target), str(PORT)]
    done = subprocess.run(
        [*proxy.inside(source), *command], capture_output=True, text=True, check=True, timeout=200
    )
    return float(done.stdout)


def test_every_pair_has_its_delay_and_a_node_none_to_itself(proxy):
    for i, source in enumerate(proxy.names):
        for j, target in enumerate(proxy.names):
            asked = proxy.rtt[i, j]
            # no sooner, and not so late that the delay could be that of another pair
            assert asked - 0.1 < _asked(proxy, source, target) < asked + 25


def test_a_node_that_is_cut_off_is_heard_of_after_it_came_back(proxy):
    proxy.cut_off("b")
    command = [*proxy.inside("a"), sys.executable, "-c", _ASK, proxy.address("b"), str(PORT)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as client:
        with pytest.raises(subprocess.TimeoutExpired):
            client.wait(2)
        proxy.reconnect("b")
        assert client.wait(60) == 0


def test_etcd_takes_as_long_as_in_namespaces():
    sites = ("North Europe", "UK South", "Southeast Asia")
    instance = azure_part(sites, ("West Europe", "Brazil South"))
    layout = Layout("three", sites, (), ("UK South",))
    means = []
    for wan in (proxied(instance, PORTS), None):
        try:
            with EtcdBench(instance, wan=wan) as bench:
                bench.start(layout, "UK South")
                found = bench.measure(
                    bench.mix(layout, *(kind.name for kind in OPERATIONS)), 200, count=30
                )
        except UnsupportedError as error:
            pytest.skip(str(error))
        means.append(
            {
                (client, kind.name): np.median(
                    [one.ms for one in found if (one.client, one.operation) == (client, kind.name)]
                )
                for client in instance.clients
                for kind in OPERATIONS
            }
        )
    for which, in_namespaces in means[1].items():
        # two round trips; the limit is for a busy machine
        assert -3 < means[0][which] - in_namespaces < 40, (which, means)
