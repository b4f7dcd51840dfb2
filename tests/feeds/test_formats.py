"""Every registered format on a text of its tool, recognised by its content."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import InputError
from placement.io.feeds.registry import FEEDS, Content, FeedRequest, RttReading, read_feed

FPING_C = """\
virginia : 91.70 91.90 91.80
10.0.0.3  : 29.20 - 29.40
tokyo     : - - -
"""
FPING_LINES = """\
virginia : [0], 84 bytes, 66.1 ms (66.1 avg, 0% loss)
virginia : [1], 84 bytes, 66.3 ms (66.2 avg, 0% loss)
tokyo    : [0], timed out (NaN avg, 100% loss)

virginia : xmt/rcv/%loss = 2/2/0%, min/avg/max = 66.1/66.2/66.3
oregon   : xmt/rcv/%loss = 2/2/0%, min/avg/max = 140/141/142
tokyo    : xmt/rcv/%loss = 1/0/100%
"""
PING = """\
PING virginia (10.0.0.2) 56(84) bytes of data.
64 bytes from virginia (10.0.0.2): icmp_seq=1 ttl=54 time=91.5 ms
64 bytes from virginia (10.0.0.2): icmp_seq=2 ttl=54 time=92.5 ms

--- virginia ping statistics ---
2 packets transmitted, 2 received, 0% packet loss, time 1001ms
rtt min/avg/max/mdev = 91.500/92.000/92.500/0.500 ms
PING tokyo (10.0.0.3): 56 data bytes

--- tokyo ping statistics ---
3 packets transmitted, 3 packets received, 0.0% packet loss
round-trip min/avg/max/stddev = 219.1/220.0/221.3/0.8 ms
"""
WINDOWS = """\
Pinging virginia [10.0.0.2] with 32 bytes of data:
Reply from 10.0.0.2: bytes=32 time=91ms TTL=54
Reply from 10.0.0.2: bytes=32 time=93ms TTL=54
"""
MTR = """\
Start: 2026-11-01T10:00:00+0000
HOST: frankfurt                   Loss%   Snt   Last   Avg  Best  Wrst StDev
  1.|-- gateway                    0.0%    10    0.4   0.5   0.3   1.0   0.2
  2.|-- ???                       100.0    10    0.0   0.0   0.0   0.0   0.0
  3.|-- virginia                   0.0%    10   91.6  92.1  91.4  93.0   0.4
"""
MTR_JSON = {
    "report": {
        "mtr": {"src": "frankfurt", "dst": "virginia", "tests": 10},
        "hubs": [
            {"count": 1, "host": "gateway", "Loss%": 0.0, "Avg": 0.5},
            {"count": 2, "host": "10.0.0.2", "Loss%": 0.0, "Avg": 92.1},
        ],
    }
}
SMOKEPING = """\
                 uptime              loss            median             ping1             ping2

1761991200: -nan 0.0000000000e+00 9.1700000000e-02 9.1600000000e-02 9.1800000000e-02
1761991500: -nan -nan -nan -nan -nan
"""
BLACKBOX = """\
# HELP probe_success Displays whether or not the probe was a success
# TYPE probe_success gauge
probe_success{region="frankfurt",target="virginia"} 1
probe_duration_seconds{region="frankfurt",target="virginia"} 0.0951
probe_icmp_duration_seconds{phase="resolve",region="frankfurt",target="virginia"} 0.0011
probe_icmp_duration_seconds{phase="rtt",region="frankfurt",target="virginia"} 0.0921
probe_success{region="frankfurt",target="tokyo"} 0
probe_icmp_duration_seconds{phase="rtt",region="frankfurt",target="tokyo"} 0
probe_success{region="frankfurt",target="web, \\"a\\""} 1
probe_duration_seconds{region="frankfurt",target="web, \\"a\\""} 0.3
probe_http_duration_seconds{phase="connect",region="frankfurt",target="web, \\"a\\""} 0.125
"""
CONSUL = [
    {
        "Datacenter": name,
        "AreaID": "wan",
        "Coordinates": [
            {
                "Node": f"{name}-{i}",
                "Coord": {"Vec": [x, 0.0], "Height": 0.001, "Adjustment": adjust},
            }
            for i in range(3)
        ],
    }
    for name, x, adjust in (
        ("frankfurt", 0.0, 0.0005),
        ("virginia", 0.09, 0.0),
        ("tokyo", 0.2, -1.0),
    )
]
MONGODB = """\
{
        "set" : "rs0",
        "members" : [
                { "_id" : 0, "name" : "frankfurt:27017", "health" : 1, "stateStr" : "PRIMARY",
                  "optime" : { "ts" : Timestamp(1556509844, 1) }, "self" : true },
                { "_id" : 1, "name" : "virginia:27017", "health" : 1, "stateStr" : "SECONDARY",
                  "lastHeartbeat" : ISODate("2026-11-01T06:48:44Z"), "pingMs" : NumberLong(92) },
                { "_id" : 2, "name" : "tokyo:27017", "health" : 0, "stateStr" : "(not reachable)",
                  "pingMs" : NumberLong(220) }
        ],
        "ok" : 1
}
"""
MONGOSH = """\
{
  set: 'rs0',
  members: [
    { _id: 0, name: 'frankfurt:27017', health: 1, stateStr: 'PRIMARY', self: true },
    { _id: 1, name: 'virginia:27017', health: 1, stateStr: 'SECONDARY', pingMs: Long("92") }
  ]
}
"""
MARKDOWN = """\
# Latency

Round-trip times in ms, May.

| Source | [Frankfurt](x.md) | **Virginia** |
|:-------|------:|---------:|
| Frankfurt | 1 ms | 92.1 ms |
| Virginia | 92.4 ms | - |

| Tier | Words |
|---|---|
| one | none |
"""

CASES = {
    "fping": [
        (FPING_C, {("frankfurt", "virginia"): 91.8, ("frankfurt", "10.0.0.3"): 29.3}),
        (FPING_LINES, {("frankfurt", "virginia"): 66.2, ("frankfurt", "oregon"): 141.0}),
    ],
    "ping": [
        (PING, {("frankfurt", "virginia"): 92.0, ("frankfurt", "tokyo"): 220.0}),
        (WINDOWS, {("frankfurt", "virginia"): 92.0}),
    ],
    "mtr": [
        (MTR, {("frankfurt", "virginia"): 92.1}),
        (json.dumps(MTR_JSON), {("frankfurt", "virginia"): 92.1}),
    ],
    "blackbox": [
        (BLACKBOX, {("frankfurt", "virginia"): 92.1, ("frankfurt", 'web, "a"'): 125.0}),
    ],
    "mongodb": [
        (MONGODB, {("frankfurt:27017", "virginia:27017"): 92.0}),
        (MONGOSH, {("frankfurt:27017", "virginia:27017"): 92.0}),
    ],
    "markdown": [
        (
            MARKDOWN,
            {
                ("Frankfurt", "Frankfurt"): 1.0,
                ("Frankfurt", "Virginia"): 92.1,
                ("Virginia", "Frankfurt"): 92.4,
            },
        ),
    ],
    "long": [
        ("from,to,Latency (s)\na,b,0.25\nb,a,0.3\n", {("a", "b"): 250.0, ("b", "a"): 300.0}),
        ('region_a;region_b;median\na;b;"12,63 ms"\n', {("a", "b"): 12.63}),
        ('src\tdst\tping\na\tb\t12.63 ms\nb\ta\t0.5 s\n', {("a", "b"): 12.63, ("b", "a"): 500.0}),
        ('source,target,ms\na,b,"22,462"\n', {("a", "b"): 22.462}),
        ('source,target,us\na,b,"22,462"\nb,a,"1,022,462"\n',
         {("a", "b"): 22.462, ("b", "a"): 1022.462}),
    ],
    "square": [
        ("ms,a,b\na,-,12.63 ms\nb,\"1,012.5\",n/a\n", {("a", "b"): 12.63, ("b", "a"): 1012.5}),
    ],
    "percentiles": [
        ("from,to,mean,p50,p99\na,b,10,9,20\n", {("a", "b"): 10.0}),
    ],
    "histogram": [
        ("src,dst,rtt,count\na,b,10,3\na,b,20,1\n", {("a", "b"): 12.5}),
    ],
}  # fmt: skip


def pairs(reading: RttReading) -> dict[tuple[str, str], float]:
    table = reading.table
    return {
        (a, b): float(table.values[i, j])
        for i, a in enumerate(table.sources)
        for j, b in enumerate(table.destinations)
        if not math.isnan(table.values[i, j])
    }


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [(name, text, expected) for name, cases in CASES.items() for text, expected in cases],
)
def test_a_format_is_recognised_by_its_content(
    name: str, text: str, expected: dict[tuple[str, str], float], tmp_path: Path
) -> None:
    path = tmp_path / "frankfurt.txt"
    path.write_text(text)
    feed, reading = read_feed(path)
    assert feed.name == name
    assert pairs(reading) == pytest.approx(expected)
    assert reading.notes


def test_smokeping_takes_both_ends_from_the_name_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "virginia~frankfurt.txt"
    path.write_text(SMOKEPING)
    feed, reading = read_feed(path)
    assert feed.name == "smokeping"
    assert pairs(reading) == pytest.approx({("frankfurt", "virginia"): 91.7})
    assert reading.distributions is not None
    plain = tmp_path / "virginia.txt"
    plain.write_text(SMOKEPING)
    with pytest.raises(InputError, match=r"virginia\.txt.*--measured-from SOURCE"):
        read_feed(plain)
    assert pairs(read_feed(plain, "auto", FeedRequest(measured_from="x"))[1]) == pytest.approx(
        {("x", "virginia"): 91.7}
    )


def test_consul_adds_heights_and_adjustments(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps(CONSUL))
    feed, reading = read_feed(path)
    assert feed.name == "consul"
    found = pairs(reading)
    assert found["frankfurt", "virginia"] == pytest.approx(92.5)  # 90 + 1 + 1 + 0.5
    assert found["virginia", "frankfurt"] == found["frankfurt", "virginia"]
    assert found["frankfurt", "tokyo"] == pytest.approx(202.0)  # adjusted below 0: left out
    assert len(found) == 6


def test_samples_become_distributions(tmp_path: Path) -> None:
    path = tmp_path / "frankfurt.txt"
    path.write_text(FPING_C)
    _, reading = read_feed(path)
    assert reading.distributions is not None
    assert reading.distributions.pairs["frankfurt", "10.0.0.3"] == ((29.2, 29.4), (1.0, 1.0))
    assert any("no answer for 1 pairs: frankfurt → tokyo" in note for note in reading.notes)
    table = tmp_path / "s.csv"
    table.write_text("from,to,ms\na,b,1\na,b,5\n")
    with pytest.raises(InputError, match=r"row 3.*a pair given twice.*--format samples"):
        read_feed(table)
    _, samples = read_feed(table, "samples")
    assert pairs(samples) == {("a", "b"): 3.0}
    assert samples.distributions is not None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("from,source,to,ms\na,a,b,1\n", "several columns may be the src: got 'from, source'"),
        ("from,to,ms\na,b,1 parsec\n", "row 2: ms: an unknown unit: got '1 parsec'"),
        ('from,to,ms\na,b,"1,234"\n', "row 2: ms: ambiguous: thousands or a fraction: got '1,234'"),
        ('from,to,ms\na,b,"1,5"\nb,a,2.5\n', "row 2: ms: decimal points and decimal commas"),
        ("from,to,ms\na,b,-3\n", "row 2: ms: negative: got '-3'"),
        ("from,to,ms\na,b,oops\n", "row 2: ms: not a number: got 'oops'"),
        ("a,b,c\nx,y,1\nx,z,2\n", "--columns src=COLUMN,dst=COLUMN,rtt=COLUMN"),
        ("HOST: a Loss% Snt Best\n", "row 1: header: no column Avg: got 'Loss% Snt Best', "
         "expected mtr -o LSNABWV"),
        ('{"a": 1}', "an unknown format"),
        ('{"report": {"mtr": {}, "hubs": []}}', "report.hubs: not a report of mtr"),
        ('[{"Node": "a", "Coord": {"Vec": [1e999]}}]', "number"),
        ('[{"Node": "a", "Coord": {"Vec": ["x"]}}]', "[0].Coord: not a coordinate"),
        ("{broken", "t.txt"),
    ],
)  # fmt: skip
def test_errors_name_the_place_and_the_way_out(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        read_feed(path)
    assert words in str(caught.value)
    assert "t.txt" in str(caught.value)


def test_a_tool_has_its_own_unit(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(PING)
    with pytest.raises(InputError, match="the format ping has its own columns and unit"):
        read_feed(path, "auto", FeedRequest(unit="s"))


TEXTS = [text for cases in CASES.values() for text, _ in cases] + [SMOKEPING, json.dumps(CONSUL)]


@given(
    text=st.sampled_from(TEXTS),
    at=st.floats(0, 1),
    length=st.integers(0, 12),
    junk=st.text(max_size=8)
    | st.sampled_from(["\0", '"', "1e999", "-1", "{", "|", "nan", "\u202e"]),
    name=st.sampled_from(FEEDS.names()),
)
def test_damaged_files_end_in_errors_of_the_package(
    text: str, at: float, length: int, junk: str, name: str
) -> None:
    place = int(at * len(text))
    content = Content("t.txt", text[:place] + junk + text[place + length :])
    feed = FEEDS.load(name)
    try:
        feed.recognises(content)
        reading = feed.read(content, FeedRequest())
    except InputError as error:
        refusal = str(error)
    else:
        values = reading.table.values
        assert ((values >= 0) | (values != values)).all()
        return
    assert "t.txt" in refusal


@pytest.mark.parametrize("name", FEEDS.names())
@pytest.mark.parametrize(
    "unit", [" ", "|", "-", "[", "[a](", "1.", "time=", 'probe_x{a="', "name:", "1 "]
)
def test_long_lines_take_linear_time(name: str, unit: str) -> None:
    """A pattern with two ways for one blank would take minutes here."""
    line = unit * (200_000 // len(unit))
    starts = ("", "HOST: a Loss% Snt Avg\n 1.", "PING a b\n", "|a|b|\n|-|-|\n|", "members: [")
    for start in starts:
        content = Content("t.txt", f"{start}{line}x\n")
        feed = FEEDS.load(name)
        try:
            feed.recognises(content)
            feed.read(content, FeedRequest())
        except InputError:
            continue
