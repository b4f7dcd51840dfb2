"""Demand as databases, dashboards and Prometheus over HTTP export it."""

from __future__ import annotations

import contextlib
import http.server
import json
import socket
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import InputError
from placement.io.assemble_instance import counts_of
from placement.io.feeds.demand_columns import DemandRequest, is_standard, read_demand_feed
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

GRAFANA_WIDE = """\
"Time","{region=""frankfurt"", op=""select""}","{op=""insert"", region=""tokyo""}"
2026-11-01 10:00:00,"1.20 K",35 req/s
2026-11-01 11:00:00,22.5,
"""
GRAFANA_LONG = """\
"Series";"Time";"Value"
"frankfurt";"2026-11-01T10:00:00Z";120
"frankfurt";"2026-11-01T11:00:00Z";80
"tokyo";"2026-11-01T11:00:00Z";7
"""
SQL = """\
gateway_region,query_type,calls
frankfurt,point_select,"22,462"
frankfurt,point_select,"1,000"
tokyo,insert,"3,100"
"""


def sums(
    path: Path, request: DemandRequest
) -> tuple[dict[tuple[str, str, str], float], tuple[str, ...]]:
    feed = read_demand_feed(path, request)
    table = counts_of(feed).table
    found = {}
    intervals = table.intervals or ("",)
    values = table.values if table.intervals else table.values[None]
    for i, interval in enumerate(intervals):
        for j, client in enumerate(table.rows):
            for k, operation in enumerate(table.columns):
                if values[i, j, k]:
                    found[interval, client, operation] = float(values[i, j, k])
    return found, feed.notes


def test_an_export_of_sql_with_a_map_of_operations(tmp_path: Path) -> None:
    path = tmp_path / "statements.csv"
    path.write_text(SQL)
    maps = {"point_select": "strong_read", "insert": "single_group"}
    found, notes = sums(path, DemandRequest(operations=maps))
    assert found == {
        ("", "frankfurt", "strong_read"): 23462.0,
        ("", "tokyo", "single_group"): 3100.0,
    }
    assert (
        "columns: client is 'gateway_region', operation is 'query_type', count is 'calls'" in notes
    )
    assert "column 'calls': the comma is the separator of thousands" in notes
    with pytest.raises(InputError, match="no such operation in the demand: got 'delete'"):
        sums(path, DemandRequest(operations={"delete": "single_group"}))


def test_statements_of_sql_are_operations_without_a_map(tmp_path: Path) -> None:
    """The table that psql prints, and a long table of the usual columns."""
    psql = (
        "  region   | stmt_type | calls\n-----------+-----------+-------\n paris     | SELECT    |"
    )
    psql += "  1200\n london    | Update    |   40\n london    | INSERT    |    2\n(3 rows)\n"
    (tmp_path / "psql.txt").write_text(psql)
    found, notes = sums(tmp_path / "psql.txt", DemandRequest())
    assert found == {("", "paris", "strong_read"): 1200.0, ("", "london", "single_group"): 42.0}
    assert "operations: INSERT is single_group, SELECT is strong_read" in " ".join(notes)
    (tmp_path / "long.csv").write_text("client,operation,count\nparis,SELECT,1200\n")
    assert not is_standard(tmp_path / "long.csv", DemandRequest())
    weak = DemandRequest(operations={"SELECT": "weak_read"})
    assert sums(tmp_path / "long.csv", weak)[0] == {("", "paris", "weak_read"): 1200.0}


def test_a_column_per_operation_under_other_names(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("dc,selects,updates\nfra,10,2\ntyo,5,1\n")
    maps = {"selects": "strong_read", "updates": "single_group"}
    found, _ = sums(path, DemandRequest(operations=maps, clients={"fra": "frankfurt"}))
    assert found["", "frankfurt", "strong_read"] == 10
    assert found["", "tyo", "single_group"] == 1


def test_grafana_wide_reads_labels(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text(GRAFANA_WIDE)
    maps = {"select": "strong_read", "insert": "single_group"}
    found, notes = sums(path, DemandRequest(operations=maps))
    assert found == {
        ("2026-11-01 10:00:00", "frankfurt", "strong_read"): 1200.0,
        ("2026-11-01 11:00:00", "frankfurt", "strong_read"): 22.5,
        ("2026-11-01 10:00:00", "tokyo", "single_group"): 35.0,
    }
    assert "1 cells without a value count as 0 operations" in notes


def test_grafana_long_needs_an_operation(tmp_path: Path) -> None:
    path = tmp_path / "g.csv"
    path.write_text(GRAFANA_LONG)
    with pytest.raises(
        InputError, match=r"row 2: series: a series without a label for the operation.*\*=strong"
    ):
        sums(path, DemandRequest())
    found, _ = sums(path, DemandRequest(operations={"*": "strong_read"}))
    assert len(found) == 3
    assert found["2026-11-01T11:00:00Z", "tokyo", "strong_read"] == 7.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "region,site,calls,op\na,a,1,x\n",
            "several columns may be the client: got 'region, site'",
        ),
        ("a,b\n1,2\n", "header: no column for the client"),
        ("region,op,calls\na,x,-1\n", "row 2: calls: negative: got '-1'"),
        ("region,op,calls\na,x,12 apples\n", "row 2: calls: a word after the number"),
        ("region,op,calls\na,,12\n", "row 2: op: no name"),
        ('Time,"{op=""x""}"\n1,2\n', "a series without a label for the client"),
        ('Time,"{op=x}"\n1,2\n', "series: not labels"),
        ("region,op,calls\n", "no rows"),
    ],
)
def test_errors_name_the_place(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        sums(path, DemandRequest())
    assert words in str(caught.value)
    assert "d.csv" in str(caught.value)


def test_tables_of_the_package_take_the_fast_reader(tmp_path: Path) -> None:
    path = tmp_path / "d.csv"
    for text, standard in (
        ("client,operation,count\na,strong_read,3\n", True),
        ("client,strong_read\na,many\n", True),
        ("client,operation,count\na,strong_read,3 k\n", False),
        ("region,strong_read\na,3\n", False),
        ("Time,a\n1,3\n", False),
    ):
        path.write_text(text)
        assert is_standard(path, DemandRequest()) is standard, text


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
