"""Texts as tools, clouds and people write them, with the RTTs in them or the words of the refusal.

A text that says what it is must be read as that: RTTs under any of their names, and nothing else.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from placement import InputError
from placement.io.feeds.headers import read_header, rows_of_corner
from placement.io.feeds.registry import FeedRequest, RttReading, read_feed

BOTH = {("fra", "iad"): 91.0, ("iad", "fra"): 92.0}
TURNED = {("fra", "iad"): 92.0, ("iad", "fra"): 91.0}
ONE = {("fra", "iad"): 91.0}


def pairs(reading: RttReading) -> dict[tuple[str, str], float]:
    """Return the RTTs between different places."""
    table = reading.table
    return {
        (a, b): float(table.values[i, j])
        for i, a in enumerate(table.sources)
        for j, b in enumerate(table.destinations)
        if a != b and not math.isnan(table.values[i, j])
    }


def long(header: str, first: str = "91", second: str = "92") -> str:
    return f"from,to,{header}\nfra,iad,{first}\niad,fra,{second}\n"


def square(corner: str, rule: str = "") -> str:
    return f"{corner},fra,iad\n{rule}fra,0,91\niad,92,0\n"


def page(*tables: str) -> str:
    return "\n\n".join(tables) + "\n"


def markdown(corner: str, value: str = "91") -> str:
    return f"| {corner} | fra | iad |\n|---|---|---|\n| fra | | {value} |\n| **iad** | 92 | |"


MTR = "HOST: fra       Loss%   Snt   Last   Avg  Best  Wrst StDev\n"
GATE = "  1.|-- 10.1.1.1  0.0%    10    0.5   0.6   0.4   1.1   0.2\n"
CSV = "Mtr_Version,Start_Time,Status,Host,Hop,Ip,Loss%,Snt, ,Last,Avg,Best,Wrst,StDev,\n"
SUMMARY = "iad : xmt/rcv/%loss = {}/{}/0%, min/avg/max = {}\n"
PROM = {"status": "success", "data": {"resultType": "vector", "result": []}}


def answer(kind: str, name: str, field: str, given: object, **labels: str) -> str:
    metric = {"__name__": name, "source": "fra", "target": "iad", **labels}
    data = {"resultType": kind, "result": [{"metric": metric, field: given}]}
    return json.dumps({"status": "success", "data": data})


def vector(name: str, value: str, **labels: str) -> str:
    return answer("vector", name, "value", [1, value], **labels)


def matrix(name: str, values: list[list[object]], **labels: str) -> str:
    return answer("matrix", name, "values", values, **labels)


READ: dict[str, tuple[str | bytes, dict[tuple[str, str], float]]] = {
    # quantity, aggregate and unit of a column
    "avg_rtt": (long("avg_rtt"), BOTH),
    "unit in brackets": (long("Latency [ms]"), BOTH),
    "microseconds": (long("RTT [µs]", "91000", "92000"), BOTH),
    "us": (long("latency_us", "91000", "92000"), BOTH),
    "camel": (long("avgRttMs"), BOTH),
    "glued": (long("meanrtt"), BOTH),
    "words": (long("Median round-trip time"), BOTH),
    "one percentile": (long("p50"), BOTH),
    "mean beside others": ("src,dst,min,avg,max,mdev\nfra,iad,80,91,99,3\n", ONE),
    "stddev first": ("src,dst,rtt_stddev,rtt_mean\nfra,iad,2,91\niad,fra,3,92\n", BOTH),
    "bandwidth beside": ("sending_site,receiving_site,Mbit/s,avgrtt\nfra,iad,300,91\n", ONE),
    "latency as lat": (long("lat_ms"), BOTH),
    "unit column": ("src,dst,rtt,unit\nfra,iad,91000,us\n", ONE),
    "metric column": ("src,dst,metric,value\nfra,iad,rtt,91\niad,fra,RTT,92\n", BOTH),
    # form of the file
    "semicolons": ("source;target;RTT (ms)\nfra;iad;91,5\n", {("fra", "iad"): 91.5}),
    "byte-order mark": (b"\xef\xbb\xbffrom,to,rtt_ms\r\nfra,iad,91\r\niad,fra,92\r\n", BOTH),
    "utf-16": ("from\tto\trtt_ms\r\nfra\tiad\t91\r\n".encode("utf-16"), ONE),
    "sep": ("sep=;\nfrom;to;ms\nfra;iad;91\n", ONE),
    "comment": ("# May\nfrom,to,ms\nfra,iad,91\n", ONE),
    "comments with semicolons": ("; May\n; by us\nfrom,to,ms\nfra,iad,91\n", ONE),
    "comments with slashes": ("// May, by us\nfrom,to,ms\nfra,iad,91\n", ONE),
    "a blank corner before semicolons": (";fra;iad\nfra;0;91\niad;92;0\n", BOTH),
    "comma at the end": ("from,to,ms,\nfra,iad,91\niad,fra,92,\n", BOTH),
    "blank column": ("from,to,,ms\nfra,iad,,91\niad,fra,,92\n", BOTH),
    "psql": (
        " source | target | ms \n--------+--------+----\n fra    | iad    | 91\n(1 row)\n",
        ONE,
    ),
    "psql expanded": ("-[ RECORD 1 ]\nsource | fra\ntarget | iad\nms     | 91\n", ONE),
    "mysql": (
        "+---+---+----+\n| a | b | ms |\n".replace("a", "src").replace("b", "dst")
        + "+---+---+----+\n| fra | iad | 91 |\n+---+---+----+\n1 row in set\n",
        ONE,
    ),
    "html": (
        "<table><tr><th>From</th><th>fra</th><th>iad</th></tr><tr><td>fra<td><td>91 ms</tr>"
        "<tr><td>iad</td><td>92</td><td>-</td></tr></table>",
        BOTH,
    ),
    "records": ('[{"from":"fra","to":"iad","ms":91},{"from":"iad","to":"fra","ms":92}]', BOTH),
    "records by line": (
        '{"from":"fra","to":"iad","rtt":91}\n{"from":"iad","to":"fra","rtt":92}\n',
        BOTH,
    ),
    "nested": ('{"fra":{"fra":1,"iad":91},"iad":{"fra":92}}', BOTH),
    "nested with keys": (
        '{"fra":{"iad":{"min":9,"avg":91}},"iad":{"fra":{"min":9,"avg":92}}}',
        BOTH,
    ),
    "nested in a name": ('{"rtt_us":{"fra":{"iad":91000},"iad":{"fra":92000}}}', BOTH),
    "unit beside the values": (
        '{"unit":"us","values":{"fra":{"iad":91000},"iad":{"fra":92000}}}',
        BOTH,
    ),
    "quantities with units": (
        '{"fra":{"iad":{"rtt":{"value":91,"unit":"ms"}}},"iad":{"fra":{"rtt":{"value":0.092,'
        '"unit":"s"}}}}',
        BOTH,
    ),
    "values that are quantities": (
        '{"fra":{"iad":{"value":91,"unit":"ms"}},"iad":{"fra":{"value":92,"unit":"ms"}}}',
        BOTH,
    ),
    "records of quantities": ('[{"from":"fra","to":"iad","rtt":{"value":91,"unit":"ms"}}]', ONE),
    "records in a name": ('{"results":[{"from":"fra","to":"iad","ms":91}]}', ONE),
    "records with keys that others lack": (
        '[{"from":"fra","to":"iad","ms":91},{"from":"iad","to":"fra","ms":92,"note":"x"}]',
        BOTH,
    ),
    "source beside the records": (
        '{"source":"fra","unit":"us","results":[{"target":"iad","rtt":91000}]}',
        ONE,
    ),
    "records by source": ('{"fra":[{"to":"iad","ms":91}],"iad":[{"to":"fra","ms":92}]}', BOTH),
    "one record": ('{"from":"fra","to":"iad","ms":91}', ONE),
    "names and a matrix": ('{"sites":["fra","iad"],"rtt_ms":[[0,91],[92,0]]}', BOTH),
    "loss beside nested values": (
        '{"fra":{"iad":{"ms":91,"loss":0}},"iad":{"fra":{"ms":0,"loss":100}}}',
        ONE,
    ),
    # direction of a square table
    "from first": (square("From/To"), BOTH),
    "to first": (square("To \\ From"), TURNED),
    "rows and columns": (square("target (rows) / source (columns)"), TURNED),
    "rows said": (square("rows: destination; columns: source"), TURNED),
    "arrows": (square("from → / to ↓"), TURNED),
    "receiver": (square("Receiver"), TURNED),
    "sender": (square("Source region"), BOTH),
    "markdown to": (markdown("To / From"), TURNED),
    # sites, and what stands beside them
    "average row and column": (
        ",fra,iad,Average\nfra,0,91,45\niad,92,0,46\nAverage,46,45,\n",
        BOTH,
    ),
    "coordinates beside": ("site,lat,lon,fra,iad\nfra,50.1,8.6,0,91\niad,39,-77.5,92,0\n", BOTH),
    "London": (",fra,lon\nfra,0,11\nlon,12,0\n", {("fra", "lon"): 11.0, ("lon", "fra"): 12.0}),
    "a region called US": (
        "Region US,EU,AP\nEU,0,91\nAP,92,0\n",
        {("EU", "AP"): 91.0, ("AP", "EU"): 92.0},
    ),
    "price table in the page": (
        page(
            "## RTT (ms)",
            markdown("from/to"),
            "## Price",
            "| Region | EUR |\n|---|---|\n| fra | 3 |\n| iad | 4 |",
        ),
        BOTH,
    ),
    "score table in the page": (
        page(markdown("from/to"), "| Region | Stars |\n|---|---|\n| fra | 3 |\n| iad | 4 |"),
        BOTH,
    ),
    "loss under a heading": (
        page("## RTT", markdown("from/to"), "## Packet loss", markdown("from/to", "1")),
        BOTH,
    ),
    # one source
    "one source": ("Region,Latency (ms)\niad,91\nnrt,220\n", ONE | {("fra", "nrt"): 220.0}),
    "one source of mtr": ("Host,Loss%,Sent,Avg,Best,Worst\niad,0,10,91,90,93\n", ONE),
    "headings name the sources": (
        page(
            "## From fra",
            "| To | ms |\n|---|---|\n| iad | 91 |",
            "## From iad",
            "| To | ms |\n|---|---|\n| fra | 92 |",
        ),
        BOTH,
    ),
    # ping
    "duplicates": (
        "PING iad (10.0.0.2) 56(84) bytes of data.\n64 bytes from iad: time=91.0 ms\n"
        "64 bytes from iad: time=700 ms (DUP!)\n--- iad ping statistics ---\n"
        "1 packets transmitted, 1 received, +1 duplicates, 0% packet loss\n",
        ONE,
    ),
    "another address": (
        "PING iad (10.0.0.2): 56 data bytes\n64 bytes from 10.0.0.9: time=1.5 ms "
        "(DIFFERENT ADDRESS!)\n64 bytes from 10.0.0.2: time=91 ms\n",
        ONE,
    ),
    "truncated": (
        "PING iad (10.0.0.2) 56(84) bytes of data.\n76 bytes from iad: time=2 ms "
        "(truncated)\n64 bytes from iad: time=91 ms\n",
        ONE,
    ),
    "damaged": (
        "PING iad (10.0.0.2) 56(84) bytes of data.\n64 bytes from iad: time=2 ms\n"
        "wrong data byte #16 should be 0x10 but was 0x0\n64 bytes from iad: time=91 ms\n",
        ONE,
    ),
    "quiet runs": (
        "PING iad (10.0.0.2) 56(84) bytes of data.\n10 packets transmitted, 10 received\n"
        "rtt min/avg/max/mdev = 90/90/91/1 ms\nPING iad (10.0.0.2) 56(84) bytes of data.\n"
        "10 packets transmitted, 10 received\nrtt min/avg/max/mdev = 90/92/93/1 ms\n",
        ONE,
    ),
    "ipv6 name": (
        "PING iad(iad.example (2001:db8::2)) 56 data bytes\n"
        "64 bytes from iad.example (2001:db8::2): icmp_seq=1 time=91 ms\n",
        ONE,
    ),
    "ping6": (
        "PING6(56=40+8+8 bytes) 2001:db8::1 --> 2001:db8::2\n"
        "16 bytes from 2001:db8::2, icmp_seq=0 hlim=57 time=91 ms\n",
        {("2001:db8::1", "2001:db8::2"): 91.0},
    ),
    "windows": (
        "Pinging iad [10.0.0.2] with 32 bytes of data:\nReply from 10.0.0.2: bytes=32 "
        "time=91ms TTL=54\nRequest timed out.\n"
        "    Packets: Sent = 2, Received = 1, Lost = 1 (50% loss),\n",
        ONE,
    ),
    "german windows": (
        "Ping wird ausgeführt für iad [10.0.0.2] mit 32 Bytes Daten:\n"
        "Antwort von 10.0.0.2: Bytes=32 Zeit=91ms TTL=54\n",
        ONE,
    ),
    "hping": (
        "HPING iad (eth0 10.0.0.2): S set, 40 headers + 0 data bytes\n"
        "len=46 ip=10.0.0.2 ttl=54 sport=80 flags=SA seq=0 win=64240 rtt=91.0 ms\n",
        ONE,
    ),
    "tcping": ("Probing iad:443/tcp - Port is open - time=91.0ms\n", ONE),
    "paping": ("Connected to iad: time=91.00ms protocol=TCP port=443\n", ONE),
    # fping
    "times before lines": (
        "[1700000000.12345] iad : [0], 64 bytes, 91.0 ms (91.0 avg, 0% loss)\n",
        ONE,
    ),
    "address after the name": (
        "iad (10.0.0.2) : [0], 64 bytes, 91.0 ms (91.0 avg, 0% loss)\n",
        ONE,
    ),
    "-C after its lines": (
        "iad : [0], 64 bytes, 90 ms (90 avg, 0% loss)\n"
        "iad : [1], 64 bytes, 92 ms (91 avg, 0% loss)\n\niad : 90 92\n",
        ONE,
    ),
    "fping duplicate": (
        "iad : [0], 64 bytes, 91 ms (91 avg, 0% loss)\niad : duplicate for [0], "
        "64 bytes, 700 ms\n" + SUMMARY.format(1, 1, "91/91/91"),
        ONE,
    ),
    "fping other address": (
        "iad : [0], 64 bytes, 2 ms (2 avg, 0% loss) [<- 10.0.0.9]\n"
        "iad : [1], 64 bytes, 91 ms (46 avg, 0% loss)\n",
        ONE,
    ),
    "a duplicate among samples": ("iad : 90 <duplicate> 92\n", ONE),
    "alive": ("iad is alive (91.0 ms)\nnrt is unreachable\n", ONE),
    "intervals and total": (
        "[10:00:00]\n"
        + SUMMARY.format(10, 10, "11/12/13")
        + "[10:00:10]\n"
        + SUMMARY.format(10, 10, "169/170/171")
        + SUMMARY.format(20, 20, "11/91/171"),
        ONE,
    ),
    "cumulative intervals": (
        SUMMARY.format(10, 10, "11/12/13")
        + SUMMARY.format(20, 20, "11/60/171")
        + SUMMARY.format(30, 30, "11/91/171") * 2,
        ONE,
    ),
    "runs appended": (
        SUMMARY.format(10, 10, "11/12/13") + SUMMARY.format(10, 10, "169/170/171"),
        ONE,
    ),
    "fping json": (
        '{"vSum": {"host": "iad", "values": [90, null, 92]}}\n'
        '{"vSum": {"host": "nrt", "values": [null]}}\n',
        ONE,
    ),
    "fping json summary": (
        '{"resp": {"host": "iad", "seq": 0, "rtt": 91}}\n'
        '{"dup": {"host": "iad", "seq": 0, "rtt": 700}}\n'
        '{"timeout": {"host": "iad", "seq": 1}}\n{"summary": {"host": "iad", '
        '"xmt": 2, "rcv": 1, "rttMin": 91, "rttAvg": 91, "rttMax": 91}}\n',
        ONE,
    ),
    "fping json intervals": (
        "".join(
            json.dumps(
                {kind: {"host": "iad", "xmt": n, "rcv": n, "rttMin": a, "rttAvg": b, "rttMax": c}}
            )
            for kind, n, a, b, c in (
                ("intSum", 10, 11, 12, 13),
                ("intSum", 10, 169, 170, 171),
                ("summary", 20, 11, 91, 171),
            )
        ),
        ONE,
    ),
    # mtr
    "fields in another order": (
        "HOST: fra   Snt  Rcv Loss%  Best   Avg\n 1.|-- gate 10 10 0.0% 1 1\n"
        " 2.|-- iad  10 9 10.0%  90 91\n",
        ONE,
    ),
    "AS numbers": (
        MTR + "  1. AS???    10.1.1.1  0.0% 10 0.5 0.6 0.4 1.1 0.2\n"
        "  2. AS64500  iad (10.0.0.2)  0.0% 10 90.5 91.0 90.4 91.1 0.2\n        10.0.0.9\n",
        ONE,
    ),
    "countries": (MTR + GATE + "  2. US  iad  0.0% 10 90.5 91.0 90.4 91.1 0.2\n", ONE),
    "two reports": (
        MTR
        + GATE
        + "  2.|-- iad  0.0%  10 90 90 90 91 1\n"
        + MTR
        + GATE
        + "  2.|-- iad  0.0%  10 90 92 90 91 1\n",
        ONE,
    ),
    "hop without a name": (
        MTR + "  1.|--   0.0% 10 0.5 0.6 0.4 1.1 0.2\n"
        "  2.|-- iad  0.0% 10 90.5 91.0 90.4 91.1 0.2\n",
        ONE,
    ),
    "csv of mtr": (
        CSV + "MTR.0.95,1,OK,iad,1,10.1.1.1,0.00,5,0,0.7,0.9,0.7,1.7,0.4\n"
        "MTR.0.95,1,OK,iad,2,10.0.0.2,0.00,5,0,90,91.0,90,92,0.9,\n",
        ONE,
    ),
    "two json reports": (
        "".join(
            json.dumps(
                {
                    "report": {
                        "mtr": {"src": "fra", "dst": end},
                        "hubs": [{"host": "x", "Loss%": loss, "Snt": 5, "Avg": 91.0}],
                    }
                }
            )
            for end, loss in (("iad", 0.0), ("nrt", 100.0))
        ),
        ONE,
    ),
    "no losses": (
        "HOST: fra   Snt  Last   Avg\n 1.|-- gate 10 1 1\n 2.|-- iad  10  90 91\n",
        ONE,
    ),
    "answers in place of losses": (
        "HOST: fra   Rcv Snt   Avg\n 1.|-- gate 10 10 1\n 2.|-- iad 9 10 91\n",
        ONE,
    ),
    "drops in place of losses": (
        "HOST: fra   Drop Snt   Avg\n 1.|-- iad 1 10 91\nHOST: fra   Drop Snt   Avg\n"
        " 1.|-- nrt 10 10 0.0\n",
        ONE,
    ),
    # traceroute
    "traceroute": (
        "traceroute to iad (10.0.0.2), 30 hops max, 60 byte packets\n 1  gate (10.1.1.1)  "
        "0.5 ms  0.4 ms  0.4 ms\n 2  * * *\n 3  iad (10.0.0.2)  90 ms  92 ms *\n",
        ONE,
    ),
    "tracert": (
        "\nTracing route to iad [10.0.0.2]\nover a maximum of 30 hops:\n\n  1    <1 ms    <1 ms"
        "    <1 ms  10.1.1.1\n  2    91 ms    92 ms    91 ms  iad [10.0.0.2]\n\nTrace complete.\n",
        ONE,
    ),
    # other documents
    "atlas": (
        json.dumps(
            [
                {
                    "type": "ping",
                    "prb_id": 6042,
                    "msm_id": 1,
                    "dst_name": "iad",
                    "sent": 3,
                    "rcvd": 2,
                    "avg": 91.0,
                    "dup": 1,
                    "result": [{"rtt": 90}, {"rtt": 700, "dup": 1}, {"rtt": 92}, {"x": "*"}],
                }
            ]
        ),
        {("6042", "iad"): 91.0},
    ),
    "atlas by line": (
        '{"prb_id": 1, "msm_id": 1, "dst_addr": "iad", "sent": 1, "rcvd": 1, '
        '"avg": 91.0}\n{"prb_id": 2, "msm_id": 1, "dst_addr": "iad", "sent": 1, '
        '"rcvd": 0, "avg": -1}\n',
        {("1", "iad"): 91.0},
    ),
    "vector": (vector("wan_rtt_seconds", "0.091"), ONE),
    "matrix of probes with a scrape that has no value": (
        matrix("probe_icmp_duration_seconds", [[1, "0.091"], [2, "NaN"]], phase="rtt"),
        ONE,
    ),
    "vector of probes": (vector("probe_icmp_duration_seconds", "0.091", phase="rtt"), ONE),
    "matrix": (
        matrix("rtt_ms", [[1, "90"], [2, "92"], [3, "NaN"]]),
        ONE,
    ),
    **{
        f"a row without an answer: {name} {cell}": (
            f"src,dst,rtt_ms,{name}\nfra,iad,91,{good}\niad,fra,0,{cell}\n",
            ONE,
        )
        for name, good, cell in (
            ("loss_pct", "0", "100"),
            ("loss_ratio", "0", "1"),
            ("loss", "0.25", "1"),
            ("packets_received", "4", "0"),
            ("samples", "3", "0"),
            ("reachable", "true", "false"),
            ("status", "ok", "timeout"),
            ("state", "up", "down"),
            ("error", "", "i/o timeout"),
        )
    },
    "states of a country": ("src,dst,rtt_ms,state\nfra,iad,91,Virginia\n", ONE),
    "as many lost as sent": (
        "src,dst,sent,lost,median\nfra,iad,9,0,91\niad,fra,9,9,0\n",
        ONE,
    ),
    "units after names of sites": ("site,fra (us),iad (us)\nfra,0,91000\niad,92000,0\n", BOTH),
    "units joined to names": ("site,fra_ms,iad_ms\nfra,0,91\niad,92,0\n", BOTH),
    "a column of the unit of RTTs": ("src,dst,rtt,rtt_unit\nfra,iad,91000,us\n", ONE),
    "a source under a name of place": ("region,endpoint,avg_rtt_ms\nfra,iad,91\n", ONE),
}


@pytest.mark.parametrize("case", READ)
def test_texts_are_read(case: str, tmp_path: Path) -> None:
    text, expected = READ[case]
    path = tmp_path / "fra.txt"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    _, reading = read_feed(path)
    assert pairs(reading) == pytest.approx(expected)


NONE = "no column for the rtt"
REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    **{
        header: (long(header), {}, f"header: {NONE}: {header} ({quantity}) is no round-trip time")
        for header, quantity in (
            ("distance_km", "distance"),
            ("Mbit/s", "bandwidth"),
            ("Throughput (MB/s)", "bandwidth"),
            ("packet loss", "loss"),
            ("jitter_ms", "jitter"),
            ("rtt_stddev", "standard deviation"),
            ("hops", "number of hops"),
            ("cost", "price"),
            ("rtt_count", "count"),
            ("TTFB (ms)", "time to first byte"),
            ("Response time (ms)", "latency of a service"),
            ("replication_lag_ms", "latency of a service"),
            ("db_latency_ms", "latency of a service"),
            ("rtt_cs", "time in another unit"),
            ("rtt (x100 ms)", "time in another unit"),
        )
    },
    "unknown": (
        long("wert"),
        {},
        f"{NONE}: got 'from, to, wert', expected a column such as rtt_ms, or --columns rtt=wert",
    ),
    "minimum and maximum": ("src,dst,min_rtt,max_rtt\nfra,iad,1,2\n", {}, "got 'min_rtt, max_rtt'"),
    "p99 alone": (long("p99_ms"), {}, "high percentiles are not the RTT of a pair: got 'p99_ms'"),
    "one-way": (
        long("one_way_ms"),
        {},
        "one-way delays, not round-trip times: got 'one_way_ms', expected --one-way",
    ),
    "owd": (long("OWD"), {}, "--one-way"),
    "half": (square("RTT/2 (ms)"), {}, "--one-way"),
    "one-way heading": ("## One-way delay\n\n" + markdown("from/to"), {}, "--one-way"),
    "capitals": (long("LATENCY_US"), {}, "a word that is a unit or a region"),
    "capitals in a cell": (long("rtt", "91 US"), {}, "an unknown unit: got '91 US'"),
    "unit in a cell": (long("latency", "91 Mbit/s"), {}, "an unknown unit: got '91 Mbit/s'"),
    "rows of several metrics": (
        "src,dst,metric,value\nfra,iad,rtt,91\nfra,iad,loss,2\n",
        {},
        "row 3: metric: rows that are no round-trip times: got 'loss'",
    ),
    "units of several kinds": ("src,dst,rtt,unit\na,b,1,us\nb,a,1,ms\n", {}, "row 3: unit"),
    "square of bandwidth": (square("bandwidth (Mbps)"), {}, "not round-trip times but bandwidth"),
    "square of loss": (square("Packet loss [%]"), {}, "not round-trip times but loss"),
    "prices only": (
        "site,USD\nfra,3\niad,4\n",
        {},
        "no column of round-trip times: got 'USD (price)'",
    ),
    "to what": (square("Latency to"), {}, "--rows sources or --rows destinations"),
    "columns that are no columns": (
        long("ms"),
        {"columns": {"rtt": "nope"}},
        "--columns rtt: no such",
    ),
    "dated tables": (
        page("## May", markdown("from/to"), "## June", markdown("from/to", "90")),
        {},
        "fra → iad: 2 tables: a pair measured twice with different RTTs: got 90.0, "
        "expected --table NUMBER or --table HEADING, of table 1 'May' (row 5); table 2 "
        "'June' (row 12)",
    ),
    "no such table": (
        page("## May", markdown("from/to")),
        {"table": "July"},
        "--table: no such table",
    ),
    "sources unknown": (
        page(*["| To | ms |\n|---|---|\n| iad | 91 |"] * 2),
        {},
        "several tables of one source, and no heading names the source",
    ),
    "cut off": (
        " source | target | ms \n--------+--------+----\n fra | iad | 91\n(2 rows)\n",
        {},
        "a table that is cut off: got 1, expected 2 rows",
    ),
    "nothing answered": (
        "PING iad (10.0.0.2): 56 data bytes\n3 packets transmitted, 0 received\n",
        {},
        "no RTTs: got 'ping', expected one answer; 3 probes, no answer",
    ),
    "too many samples": (
        "PING iad (10.0.0.2): 56 data bytes\n64 bytes from iad: time=1 ms\n64 bytes "
        "from iad: time=2 ms\n1 packets transmitted, 1 received\n",
        {},
        "row 4: fra → iad: more samples than answers in the summary: got 2",
    ),
    "too many answers": (SUMMARY.format(1, 2, "1/1/1"), {}, "more answers than probes: got 2"),
    "silent target": (
        MTR + GATE + "  2.|-- iad  100.0 10 0.0 0.0 0.0 0.0 0.0\n",
        {},
        "no RTTs: got 'mtr",
    ),
    "silent last hop": (
        MTR + GATE + "  2.|-- ???  100.0 10 0.0 0.0 0.0 0.0 0.0\n",
        {},
        "row 3: the last hop did not answer, and its name is unknown",
    ),
    "nameless last hop": (
        MTR + GATE + "  2.|-- \t  0.0% 10 1 1 1 1 1\n",
        {},
        "its name is unknown",
    ),
    "loss that is none": (
        MTR + GATE + "  2.|-- iad nan% 10 1 1 1 1 1\n",
        {},
        "row 3: Loss%: not a loss",
    ),
    "router last": (
        json.dumps(
            {
                "report": {
                    "mtr": {"src": "fra", "dst": "10.0.0.2"},
                    "hubs": [{"host": "10.0.0.9", "Loss%": 0.0, "Snt": 5, "Avg": 3.0}],
                }
            }
        ),
        {},
        "the report ends at 10.0.0.9, before its target",
    ),
    "silent csv": (
        CSV + "MTR.0.95,1,OK,iad,1,???,100.00,5,0,0,0,0,0,0\n",
        {},
        "5 probes, no answer",
    ),
    "traceroute of atlas": (
        '[{"type":"traceroute","prb_id":1,"msm_id":1}]',
        {},
        "not a ping of RIPE",
    ),
    "metric of loss": (vector("packet_loss_ratio", "0.1"), {}, "not round-trip times but loss"),
    "buckets": (vector("rtt_seconds_bucket", "3", le="0.1"), {}, "part of a histogram or counter"),
    "quantile": (vector("rtt_seconds", "3", quantile="0.99"), {}, "a high quantile"),
    "scalar": (
        '{"status":"success","data":{"resultType":"scalar","result":[1,"2"]}}',
        {},
        "an answer of Prometheus without samples per series: got 'scalar'",
    ),
    "error of prometheus": (
        '{"status":"error","errorType":"bad_data","error":"parse error"}',
        {},
        "an error of Prometheus, no answer: got 'parse error'",
    ),
    "nested bandwidth": (
        '{"mbps":{"a":{"b":1},"b":{"a":2}}}',
        {},
        "mbps (bandwidth) is no round-trip time",
    ),
    "nested megabits": (
        '{"fra":{"iad":{"value":9,"unit":"Mbit/s"}},"iad":{"fra":{"value":9,"unit":"Mbit/s"}}}',
        {},
        "fra.iad: rtt: an unknown unit: got '9 Mbit/s'",
    ),
    "kilometres beside the values": (
        '{"unit":"km","values":{"fra":{"iad":9},"iad":{"fra":9}}}',
        {},
        "unit: rows that are no round-trip times: got 'km'",
    ),
    "a nested word": (
        '{"wert":{"fra":{"iad":9},"iad":{"fra":9}}}',
        {},
        "--columns rtt=wert",
    ),
    "one-way beside the values": (
        '{"about":"one-way","ms":{"fra":{"iad":9},"iad":{"fra":9}}}',
        {},
        "--one-way",
    ),
    "coordinates and no names": (
        "src_lat,src_lon,dst_lat,dst_lon,rtt\n1,2,3,4,91\n",
        {},
        "header: no column for the dst",
    ),
    "both ends in a column": ("pair,rtt\nfra-iad,9\n", {}, "one column for both ends: got 'pair'"),
    "two numbers in a cell": (long("rtt", "91/95"), {}, "not one number: got '91/95'"),
    "hours": (long("rtt", "0:00:00.091"), {}, "not one number: got '0:00:00.091'"),
    "latency of a test": (long("tcp_lat"), {}, "--columns rtt=tcp_lat"),
    "losses and times of nothing": (
        "HOST: fra   Snt  Last   Avg\n 1.|-- iad  10  0.0 0.0\n",
        {},
        "row 2: Avg: no answer, or one below 0.05 ms: the report has no losses: got '0.0', "
        "expected mtr -o LSNABWV",
    ),
    "traceroute that does not arrive": (
        "traceroute to iad (10.0.0.2), 30 hops max\n 1  gate (10.1.1.1)  0.5 ms\n 2  * * *\n",
        {},
        "no RTTs: got 'traceroute, last hop', expected one answer; ",
    ),
    "traceroute that a router refuses": (
        "traceroute to iad (10.0.0.2), 30 hops max\n 1  iad (10.0.0.2)  0.5 ms !H\n",
        {},
        "row 2: the trace does not end at iad",
    ),
    **{
        f"no table: {tool}": (text, {}, "format: an unknown format: got '" + text[:8])
        for tool, text in (
            ("nping", "Starting Nping 0.7 ( https://nmap.org/nping ) at 10:00\nMax rtt: 91ms\n"),
            ("arping", "ARPING 10.0.0.2 from 10.1.1.1 eth0\nUnicast reply 0.912ms\n"),
            ("qperf", "tcp_lat:\n    latency  =  45.3 us\n"),
            ("iperf", "Connecting to host iad, port 5201\n[  5] local 10.1.1.1 port 50000\n"),
            ("xml", '<MTR SRC="fra" DST="iad" TOS="0">\n<HUB HOST="iad"></HUB></MTR>\n'),
        )
    },
    "records of bandwidth": ('[{"from":"a","to":"b","mbps":1}]', {}, "mbps (bandwidth) is no"),
    "xport without a name": (
        '{"about":"RRDtool graph JSON output","meta":{"legend":["median"]},"data":[[0.09]]}',
        {},
        "--measured-from SOURCE",
    ),
    "one way above a table": (
        "One-way latency:\n\n| | fra | iad |\n|-|-|-|\n| fra | 0 | 45 |\n| iad | 46 | 0 |\n",
        {},
        "--one-way",
    ),
    "one way in a comment": ("# one-way delays\nsrc,dst,delay\nfra,iad,45\n", {}, "--one-way"),
    "one way in a cell": ("src,dst,rtt_ms,type\nfra,iad,45,owd\n", {}, "--one-way"),
    "a strange state": ("src,dst,rtt_ms,status\nfra,iad,45,odd\n", {}, "got 'odd'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_texts_are_refused_by_name(case: str, tmp_path: Path) -> None:
    text, request, words = REFUSED[case]
    path = tmp_path / "fra.txt"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_feed(path, "auto", FeedRequest(**request))
    assert words in str(caught.value)
    assert "fra.txt" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "request_", "expected"),
    [
        (long("owd"), FeedRequest(one_way=True), BOTH),
        (long("distance_km"), FeedRequest(columns={"rtt": "distance_km"}), BOTH),
        (long("LATENCY_US", "91000", "92000"), FeedRequest(unit="us"), BOTH),
        (square("Latency to"), FeedRequest(rows="destinations"), TURNED),
        (square("Latency to"), FeedRequest(rows="sources"), BOTH),
        (square("To / From"), FeedRequest(rows="sources"), BOTH),
        ("Region,Ping\niad,91\n", FeedRequest(columns={"dst": "Region", "rtt": "Ping"}), ONE),
        (
            "Region,Ping\niad,91\n",
            FeedRequest(measured_from="nrt"),
            {("nrt", "iad"): 91.0},
        ),
        (
            page("## May", markdown("from/to"), "## June", markdown("from/to", "90")),
            FeedRequest(table="june"),
            {**BOTH, ("fra", "iad"): 90.0},
        ),
        (page("## May", markdown("from/to"), markdown("", "9")), FeedRequest(table="1"), BOTH),
        (vector("", "0.091"), FeedRequest(unit="s"), ONE),
    ],
)
def test_the_user_decides(
    text: str, request_: FeedRequest, expected: dict[tuple[str, str], float], tmp_path: Path
) -> None:
    path = tmp_path / "fra.txt"
    path.write_text(text)
    assert pairs(read_feed(path, "auto", request_)[1]) == pytest.approx(expected)


@pytest.mark.parametrize(
    "text", ["a,b\n+---+\n1,2\n", "<html><table></table></html>\n", "-[ RECORD 1 ]-\n"]
)
def test_pages_without_a_table_are_refused(text: str, tmp_path: Path) -> None:
    """A rule or a tag alone made an empty list of tables, and an IndexError."""
    path = tmp_path / "fra.txt"
    path.write_text(text)
    with pytest.raises(InputError, match=r"fra\.txt"):
        read_feed(path)


def test_percentiles_in_microseconds(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text("source,target,P50 (µs),P99 (µs)\nfra,iad,91000,99000\n")
    feed, reading = read_feed(path)
    assert feed.name == "percentiles"
    assert reading.distributions is not None
    assert reading.distributions.pairs["fra", "iad"] == ((91.0, 99.0), (50.0, 99.0))
    path.write_text("Region,p50,p99.9\niad,91,99\n")
    _, reading = read_feed(path)
    assert reading.distributions is not None
    assert reading.distributions.pairs["p", "iad"] == ((91.0, 99.0), (50.0, 99.9))


def test_averages_are_no_distribution(tmp_path: Path) -> None:
    """A mean with the number of its samples is not a histogram of one bar."""
    path = tmp_path / "r.csv"
    path.write_text("src,dst,avg_rtt,count\nfra,iad,91,10\n")
    assert read_feed(path)[1].distributions is None
    path.write_text("src,dst,rtt,count\nfra,iad,91,10\n")
    assert read_feed(path)[1].distributions is None


@pytest.mark.parametrize(
    ("name", "quantity"),
    [
        ("us-east-1", ""),
        ("eu-west-3", ""),
        ("Standard", ""),
        ("Lagos", ""),
        ("as of May", ""),
        ("p99_latency", "rtt"),
        ("Latency 95%", "rtt"),
        ("geo_lat", "coordinate"),
        ("egress_gb", "data volume"),
    ],
)
def test_names_say_their_quantity(name: str, quantity: str) -> None:
    assert read_header(name).quantity == quantity


@pytest.mark.parametrize(
    ("corner", "end"),
    [("site", ""), ("from", "src"), ("to→from", "dst"), ("columns are from, rows are to", "dst")],
)
def test_corners_say_the_direction(corner: str, end: str) -> None:
    assert rows_of_corner(read_header(corner)) == end
