"""A real Prometheus, filled by promtool: what is imported is what was put in."""

import json
import subprocess
import urllib.request

import numpy as np
import pytest

from placement.cli import main
from placement.errors import InputError
from placement.io import load_instance
from placement.prometheus.metrics_server import PrometheusServer
from tests.databases.real.tools import awaited, debian_programs, etcd_program, free_port

pytestmark = pytest.mark.databases

START, STEP, COUNT = 1_790_000_000, 15, 480  # two hours
END = START + STEP * (COUNT - 1)
RTT = {("fra", "iad"): 92.0, ("fra", "nrt"): 220.0, ("iad", "nrt"): 160.0}
IDS = {"fra": "a1", "iad": "b2", "nrt": "c3"}
RATES = {("fra", "Range"): 76.1, ("iad", "Range"): 28.5, ("nrt", "Range"): 9.5, ("fra", "Put"): 4.0}
ODD = 'clu"ster\\1'


def lines():
    """Return OpenMetrics: families one after the other, each series in the order of time."""

    def series(name, labels, values):
        text = ",".join(f"{key}={json.dumps(value)}" for key, value in labels.items())
        for i, value in enumerate(values):
            if value is not None:
                yield f"{name}{{{text}}} {value!r} {START + STEP * i}"

    both = {**RTT, **{(b, a): ms for (a, b), ms in RTT.items()}}
    family = "etcd_network_peer_round_trip_time_seconds"
    yield f"# TYPE {family} histogram"
    for (a, b), ms in both.items():  # 1.5 times the truth, two probes a step
        labels = {"region": a, "To": IDS[b], "cluster": ODD}
        yield from series(f"{family}_count", labels, [2.0 * i for i in range(COUNT)])
        yield from series(f"{family}_sum", labels, [3e-3 * ms * i for i in range(COUNT)])
    yield "# TYPE etcd_server_id gauge"
    for region, number in IDS.items():
        yield from series("etcd_server_id", {"region": region, "server_id": number, "cluster": ODD},
                          [1.0] * COUNT)  # fmt: skip
    yield "# TYPE grpc_server_handled counter"
    for (region, method), rate in RATES.items():
        labels = {"region": region, "grpc_method": method, "grpc_code": "OK", "cluster": ODD}
        reset = 200 if region == "iad" else 0  # the server was started again
        values = [rate * STEP * (i if i < reset else i - reset) for i in range(COUNT)]
        yield from series("grpc_server_handled_total", labels, values)
    yield "# TYPE probe_success gauge"
    for a, b in both:
        up = [0.0 if (a, i % 4) == ("fra", 0) else 1.0 for i in range(COUNT)]
        yield from series("probe_success", {"region": a, "instance": f"{b}:7"}, up)
    yield "# TYPE probe_icmp_duration_seconds gauge"
    for (a, b), ms in both.items():
        values = [0.0 if (a, i % 4) == ("fra", 0) else ms / 1000 for i in range(COUNT)]
        if (a, b) == ("nrt", "fra"):
            values[100:] = [None] * (COUNT - 100)
        labels = {"region": a, "instance": f"{b}:7", "phase": "rtt"}
        yield from series("probe_icmp_duration_seconds", labels, values)
    yield "# EOF"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    prometheus, promtool = debian_programs("prometheus", "prometheus", "promtool")
    folder = tmp_path_factory.mktemp("prometheus")
    (folder / "data.om").write_text("\n".join(lines()) + "\n")
    subprocess.run(
        [promtool, "tsdb", "create-blocks-from", "openmetrics", "data.om", "tsdb"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    (folder / "prometheus.yml").write_text("global: {scrape_interval: 15s}\n")
    address = f"http://127.0.0.1:{free_port()}"
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [
                prometheus, "--config.file=prometheus.yml", "--storage.tsdb.path=tsdb",
                "--storage.tsdb.retention.time=100y",
                "--web.listen-address=" + address.removeprefix("http://"),
            ],
            cwd=folder, stdout=log, stderr=log,
        )  # fmt: skip
    try:

        def ready():
            try:
                with urllib.request.urlopen(address + "/-/ready", timeout=2) as response:
                    return response.status == 200
            except OSError:
                return False

        awaited(ready, bool, 30)
        yield address
    finally:
        process.kill()
        process.wait()


def test_etcd(url, tmp_path, capsys):
    code = main([
        "import", "prometheus", url, "--preset", "etcd", "--window", "100m", "--at", str(END),
        "--match", f"cluster={ODD}", "-o", str(tmp_path / "mine"),
    ])  # fmt: skip
    assert code == 0
    out = capsys.readouterr().out
    assert "divided by the known bias 1.5" in out
    world = load_instance(tmp_path / "mine")
    place = {name: i for i, name in enumerate(world.sites)}
    for (a, b), ms in RTT.items():
        assert world.site_rtt[place[a], place[b]] == pytest.approx(ms, rel=1e-6)
        assert world.site_rtt[place[b], place[a]] == pytest.approx(ms, rel=1e-6)
    kinds = [operation.name for operation in world.operations]
    assert kinds == ["strong_read", "single_group"]
    clients = {name: i for i, name in enumerate(world.clients)}
    for (region, method), rate in RATES.items():
        column = 0 if method == "Range" else 1
        found = world.counts[0, clients[region], column] / 6000
        assert found == pytest.approx(rate, rel=0.01), (region, method)  # the reset included
    code = main(["solve", str(tmp_path / "mine"), "--replicas", "3", "--voters", "3"])
    assert code == 0
    assert "fra" in capsys.readouterr().out.split("Leader")[1].split("\n")[0]


def test_a_matcher_that_fits_nothing(url, tmp_path, capsys):
    code = main([
        "import", "prometheus", url, "--preset", "etcd", "--at", str(END), "--mix", "social",
        "--match", 'cluster="} or up{x="', "-o", str(tmp_path / "mine"),
    ])  # fmt: skip
    assert code == 1
    assert "no samples of etcd in the window" in capsys.readouterr().err


def test_blackbox_leaves_out_failed_probes_and_names_gaps(url, tmp_path, capsys):
    code = main([
        "import", "prometheus", url, "--preset", "blackbox", "--window", "100m", "--at", str(END),
        "--site-of", "fra:7=fra,iad:7=iad,nrt:7=nrt", "--mix", "social", "--fill", "transpose",
        "-o", str(tmp_path / "mine"),
    ])  # fmt: skip
    captured = capsys.readouterr()
    assert code == 0, captured.err
    world = load_instance(tmp_path / "mine")
    place = {name: i for i, name in enumerate(world.sites)}
    for (a, b), ms in RTT.items():
        assert world.site_rtt[place[a], place[b]] == pytest.approx(ms)
        assert world.site_rtt[place[b], place[a]] == pytest.approx(ms)
    assert "gaps in the window: nrt" in captured.out


def test_expressions_of_ones_own(url, tmp_path, capsys):
    rtts = (
        'label_replace(quantile_over_time(0.5, probe_icmp_duration_seconds{region!="fra"}[100m]), '
        '"target", "$1", "instance", "(.*):7")'
    )
    code = main([
        "import", "prometheus", url, "--preset", "custom", "--at", str(END), "--rtt-query", rtts,
        "--ops-query", "strong_read=sum by (region) (increase(grpc_server_handled_total"
        '{grpc_method="Range", region="fra"}[1h]))',
        "-o", str(tmp_path / "mine"), "--fill", "transpose",
    ])  # fmt: skip
    assert code == 0, capsys.readouterr().err
    world = load_instance(tmp_path / "mine")
    place = {name: i for i, name in enumerate(world.sites)}
    for (a, b), ms in RTT.items():
        assert world.site_rtt[place[a], place[b]] == pytest.approx(ms)
    assert world.counts[0, place["fra"], 0] / 3600 == pytest.approx(76.1, rel=0.01)


REGIONS = ("fra", "iad", "nrt")


@pytest.fixture(scope="module")
def scraped(tmp_path_factory):
    """Three real etcds, each a region, scraped every second; the number of puts of each client."""
    etcd = etcd_program()
    prometheus, _ = debian_programs("prometheus", "prometheus", "promtool")
    folder = tmp_path_factory.mktemp("circle")
    peers = {region: f"http://127.0.0.1:{free_port()}" for region in REGIONS}
    clients = {region: f"http://127.0.0.1:{free_port()}" for region in REGIONS}
    members = ",".join(f"{region}={url}" for region, url in peers.items())
    targets = ", ".join(
        f"{{targets: ['{url.removeprefix('http://')}'], labels: {{region: {region}}}}}"
        for region, url in clients.items()
    )
    (folder / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\n"
        f"scrape_configs: [{{job_name: etcd, static_configs: [{targets}]}}]\n"
    )
    address = f"http://127.0.0.1:{free_port()}"
    commands = [
        [
            etcd, f"--name={region}", f"--data-dir={folder}/{region}", "--unsafe-no-fsync",
            f"--listen-peer-urls={peers[region]}", f"--initial-advertise-peer-urls={peers[region]}",
            f"--listen-client-urls={clients[region]}", f"--advertise-client-urls={clients[region]}",
            f"--initial-cluster={members}",
        ]
        for region in REGIONS
    ]  # fmt: skip
    commands.append([
        prometheus, "--config.file=prometheus.yml", f"--storage.tsdb.path={folder}/tsdb",
        "--web.listen-address=" + address.removeprefix("http://"),
    ])  # fmt: skip

    def ask(region, *words):
        return subprocess.run(
            [etcd, "etcdctl", f"--endpoints={clients[region]}", *words],
            capture_output=True, check=False, timeout=20,
        ).returncode == 0  # fmt: skip

    processes = []
    try:
        with (folder / "log").open("wb") as log:
            processes.extend(
                subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
                for command in commands
            )
        for region in REGIONS:
            awaited(lambda region=region: ask(region, "put", "warm", "up"), bool, 30)
        server = PrometheusServer(address)
        handled = 'sum by (region) (grpc_server_handled_total{grpc_method="Put"})'

        def asked(query):
            try:
                return server.query(query)
            except InputError:  # it has just been started
                return ()

        awaited(lambda: asked(handled), lambda found: len(found) == 3, 60)
        for region, number in (("fra", 12), ("iad", 4)):
            for i in range(number):
                assert ask(region, "put", f"key{i}", "value")
        # etcd observes the RTTs of its peers every 30 seconds
        probes = "increase(etcd_network_peer_round_trip_time_seconds_count[5m]) > 0"
        awaited(lambda: asked(probes), lambda found: len(found) == 6, 120)
        yield address
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            process.wait()


def test_full_circle_with_real_etcds(scraped, tmp_path, capsys):
    mine = str(tmp_path / "mine")
    code = main(["import", "prometheus", scraped, "--preset", "etcd", "--window", "5m", "-o", mine])
    captured = capsys.readouterr()
    assert code == 0, captured.err
    world = load_instance(mine)
    assert sorted(world.sites) == sorted(REGIONS)
    off = world.site_rtt[~np.eye(3, dtype=bool)]
    assert (off > 0).all()
    assert (off < 50).all()  # loopback
    writes = [operation.name for operation in world.operations].index("single_group")
    found = dict(zip(world.clients, world.counts[0, :, writes].tolist(), strict=True))
    # increase() does not see what came before the first scrape, and rounds to the window
    assert 12 <= found["fra"] <= 14
    assert 4 <= found["iad"] <= 6
    assert main(["solve", mine, "--replicas", "3", "--voters", "3", "-o", mine + ".json"]) == 0
    assert main(["check", mine + ".json"]) == 0
    assert "fra" in capsys.readouterr().out
