"""Prometheus over HTTP: what is asked, what is refused, against a server of a few lines."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import threading
import urllib.parse
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import InputError
from placement.io.feeds.registry import RttReading
from placement.prometheus.metrics_server import (
    PRESETS,
    PrometheusRequest,
    PrometheusServer,
    matchers,
    quoted,
    read_operations,
    read_rtts,
    window_of,
)

Answer = Callable[[str], tuple[int, object]]


@pytest.fixture
def serve() -> Iterator[Callable[[Answer], PrometheusServer]]:
    """Start servers that answer queries as a function says; all are stopped at the end."""
    running: list[http.server.ThreadingHTTPServer] = []

    def start(answer: Answer) -> PrometheusServer:
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"])).decode()
                status, value = answer(urllib.parse.parse_qs(body)["query"][0])
                data = value if isinstance(value, bytes) else json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: object) -> None:
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        running.append(server)
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        return PrometheusServer(f"http://127.0.0.1:{server.server_port}/", timeout=5)

    yield start
    for server in running:
        server.shutdown()
        server.server_close()


def vector(*samples: tuple[dict[str, str], object]) -> dict[str, object]:
    result = [{"metric": labels, "value": [0, value]} for labels, value in samples]
    return {"status": "success", "data": {"resultType": "vector", "result": result}}


def etcd(query: str) -> tuple[int, object]:
    if "etcd_server_id" in query:
        ids = {"a1": "virginia", "b2": "tokyo", "c3": "frankfurt"}
        return 200, vector(*(({"region": r, "server_id": i}, "1") for i, r in ids.items()))
    if "count_over_time" in query:
        return 200, vector(({"region": "virginia"}, "240"), ({"region": "tokyo"}, "120"))
    if "grpc_server_handled_total" in query:
        reads = 'grpc_method="Range"' in query
        return 200, vector(
            *(({"region": r}, "300" if reads else "20") for r in ("virginia", "tokyo"))
        )
    rtts = [("virginia", "b2", "0.24"), ("tokyo", "a1", "0.243"), ("virginia", "c3", "NaN")]
    rtts.append(("virginia", "dead", "0.1"))
    return 200, vector(*(({"region": r, "To": to}, value) for r, to, value in rtts))


def test_the_bias_of_etcd_is_corrected_and_gaps_are_named(
    serve: Callable[[Answer], PrometheusServer],
) -> None:
    server, request = serve(etcd), PrometheusRequest(window="6h")
    reading: RttReading = read_rtts(server, PRESETS["etcd"], request)
    table = reading.table
    assert table.values[table.sources.index("virginia"), table.destinations.index("tokyo")] == 160
    assert table.values[table.sources.index("tokyo"), table.destinations.index("virginia")] == 162
    notes = " | ".join(reading.notes)
    assert "divided by the known bias 1.5" in notes
    assert "peers of no known region were left out: dead" in notes
    assert "pairs without a value: virginia → frankfurt" in notes
    assert "gaps in the window: tokyo (50% of the samples)" in notes
    assert "frankfurt" in table.destinations  # a missing pair, which --fill may take from the other
    counts = read_operations(server, PRESETS["etcd"], request)
    assert counts.table.columns == ("strong_read", "single_group")
    assert counts.table.values.tolist() == [[300, 20], [300, 20]]
    raw = read_rtts(server, PRESETS["etcd"], PrometheusRequest(bias=1.0))
    assert raw.table.values[0, 0] == 240


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [
        (400, {"status": "error", "error": "parse error: unexpected"}, "parse error: unexpected"),
        (503, b"<html>", "503"),
        (200, b"<html>", "an answer that is no JSON"),
        (200, b"[" * 100_000, "an answer that is no JSON"),
        (200, {"status": "success", "data": {"resultType": "matrix", "result": []}}, "matrix"),
        (200, {"data": {"resultType": "vector", "result": [{"metric": 1}]}}, "no sample"),
        (200, {"data": {"resultType": "vector", "result": [{"metric": {}, "value": [0, "x"]}]}},
         "no sample"),
        (200, vector(), "no samples of blackbox_exporter in the window"),
        (200, vector(({}, "1")), "a series without the label region"),
        (200, vector(({"region": "a", "instance": "b"}, "NaN")),
         "has an RTT: got 'a → b', expected two"),
    ],
)  # fmt: skip
def test_bad_answers(
    status: int, body: object, words: str, serve: Callable[[Answer], PrometheusServer]
) -> None:
    with pytest.raises(InputError) as caught:
        read_rtts(serve(lambda _: (status, body)), PRESETS["blackbox"], PrometheusRequest())
    assert words in str(caught.value)
    assert "127.0.0.1:" in str(caught.value)


@pytest.mark.parametrize(
    "head", [b"HTTP/1.1 200 OK\r\n\r\n", b"HTTP/1.1 503 No\r\n\r\n", b"HTTP/1.1 200 O"]
)
def test_one_deadline_for_the_whole_answer(head: bytes) -> None:
    """Each byte comes in time; the whole does not, wherever the server is slow."""
    done = threading.Event()

    def trickle(server: socket.socket) -> None:
        link, _ = server.accept()
        with link, contextlib.suppress(ConnectionError):
            link.recv(65536)
            for byte in head + json.dumps(vector()).encode():
                link.sendall(bytes([byte]))
                if done.wait(0.02):
                    return

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=trickle, args=(server,), daemon=True).start()
        try:
            with pytest.raises(InputError, match=r"no answer \(not whole after 0.2 s\)"):
                PrometheusServer(f"http://127.0.0.1:{server.getsockname()[1]}", 0.2).query("up")
        finally:
            done.set()


def test_a_server_that_is_not_there() -> None:
    with pytest.raises(InputError, match=r"127\.0\.0\.1:9: query: Prometheus: no answer"):
        PrometheusServer("http://127.0.0.1:9", timeout=5).query("up")


@pytest.mark.parametrize(
    "url", ["ftp://x", "http://", "http://a b", "http://user:secret@x", "http://x?y", "http://x:y"]
)
def test_bad_urls(url: str) -> None:
    with pytest.raises(InputError, match="not the URL") as caught:
        PrometheusServer(url)
    assert "secret" not in str(caught.value)


@given(st.text(max_size=40))
def test_values_of_matchers_stay_inside_their_quotes(value: str) -> None:
    text = quoted(value)
    inside = text[1:-1].replace("\\\\", "").replace('\\"', "")
    assert (text[0], text[-1]) == ('"', '"')
    assert '"' not in inside
    assert "\n" not in inside
    assert matchers([f"job={value}"], "--match") == "job=" + text or value[:1] in ("~", "=")


@pytest.mark.parametrize("text", ["job", "=x", "a b=c", '"=x', "jo{b}=x"])
def test_bad_matchers(text: str) -> None:
    with pytest.raises(InputError, match="--match"):
        matchers([text], "--match")


@pytest.mark.parametrize("text", ["", "1", "d", "1d]", "-1d", "0d", "1 d", "1w) or (up"])
def test_bad_windows(text: str) -> None:
    with pytest.raises(InputError, match="not a duration"):
        window_of(text, "--window")


def test_quantiles_of_buckets_are_refused(serve: Callable[[Answer], PrometheusServer]) -> None:
    query = "histogram_quantile(0.5, rate(x_bucket[5m]))"
    request = PrometheusRequest(rtt_query=query)
    with pytest.raises(InputError, match=r"--rtt-query: a quantile of default buckets is no RTT"):
        read_rtts(serve(lambda _: (200, vector())), PRESETS["custom"], request)
    with pytest.raises(InputError, match="no expression for RTTs"):
        read_rtts(serve(lambda _: (200, vector())), PRESETS["custom"], PrometheusRequest())
    with pytest.raises(InputError, match=r"no operations are known.*--ops-query"):
        read_operations(serve(etcd), PRESETS["custom"], PrometheusRequest())
