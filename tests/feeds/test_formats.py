"""Every registered format on texts of its tool: recognised, read, or refused in words."""

from __future__ import annotations

import contextlib
import itertools
import json
import math
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placement import InputError
from placement.io.feeds.headers import read_header, rows_of_corner
from placement.io.feeds.registry import FEEDS, Content, FeedRequest, RttReading, read_feed
from tests.effort import examples
from tests.expected import refused

TOOLS = tomllib.loads(Path(__file__).with_name("texts.toml").read_text(encoding="utf-8"))["tools"]

MTR_JSON = {
    "report": {
        "mtr": {"src": "frankfurt", "dst": "virginia", "tests": 10},
        "hubs": [
            {"count": 1, "host": "gateway", "Loss%": 0.0, "Avg": 0.5},
            {"count": 2, "host": "10.0.0.2", "Loss%": 0.0, "Avg": 92.1},
        ],
    }
}
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

CASES = {
    "fping": [
        (TOOLS["fping_c"], {("frankfurt", "virginia"): 91.8, ("frankfurt", "10.0.0.3"): 29.3}),
        (TOOLS["fping_lines"], {("frankfurt", "virginia"): 66.2, ("frankfurt", "oregon"): 141.0}),
    ],
    "ping": [
        (TOOLS["ping"], {("frankfurt", "virginia"): 92.0, ("frankfurt", "tokyo"): 220.0}),
        (TOOLS["windows"], {("frankfurt", "virginia"): 92.0}),
    ],
    "mtr": [
        (TOOLS["mtr"], {("frankfurt", "virginia"): 92.1}),
        (json.dumps(MTR_JSON), {("frankfurt", "virginia"): 92.1}),
    ],
    "blackbox": [
        (TOOLS["blackbox"], {("frankfurt", "virginia"): 92.1, ("frankfurt", 'web, "a"'): 125.0}),
    ],
    "mongodb": [
        (TOOLS["mongodb"], {("frankfurt:27017", "virginia:27017"): 92.0}),
        (TOOLS["mongosh"], {("frankfurt:27017", "virginia:27017"): 92.0}),
    ],
    "markdown": [
        (
            TOOLS["markdown"],
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
    path.write_text(TOOLS["smokeping"])
    feed, reading = read_feed(path)
    assert feed.name == "smokeping"
    assert pairs(reading) == pytest.approx({("frankfurt", "virginia"): 91.7})
    assert reading.distributions is not None
    plain = tmp_path / "virginia.txt"
    plain.write_text(TOOLS["smokeping"])
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
    path.write_text(TOOLS["fping_c"])
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
    with refused(words, "t.txt"):
        read_feed(path)


def test_a_tool_has_its_own_unit(tmp_path: Path) -> None:
    path = tmp_path / "t.txt"
    path.write_text(TOOLS["ping"])
    with pytest.raises(InputError, match="the format ping has its own columns and unit"):
        read_feed(path, "auto", FeedRequest(unit="s"))


@pytest.mark.parametrize(
    "text",
    ["b : xmt/rcv/%loss = N/N/0%, min/avg/max = 5/5/5\n", "src,dst,rtt,sent,lost\na,b,3,N,N\n",
     "PING b (b):\nN packets transmitted, N received\n"],
)  # fmt: skip
def test_a_count_of_5000_digits_is_not_read(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(text.replace("N", "9" * 5000))
    with contextlib.suppress(InputError):
        assert math.isnan(read_feed(tmp_path / "a.txt")[1].table.values).all()


TEXTS = [text for cases in CASES.values() for text, _ in cases] + [
    TOOLS["smokeping"],
    json.dumps(CONSUL),
]


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
def test_long_lines_take_linear_time(name: str) -> None:
    """A pattern with two ways for one blank would take minutes here."""
    units = (" ", "|", "-", "[", "[a](", "1.", "time=", 'probe_x{a="', "name:", "1 ")
    starts = ("", "HOST: a Loss% Snt Avg\n 1.", "PING a b\n", "|a|b|\n|-|-|\n|", "members: [")
    feed = FEEDS.load(name)
    for unit, start in itertools.product(units, starts):
        line = unit * (examples(200_000, 20_000) // len(unit))
        content = Content("t.txt", f"{start}{line}x\n")
        try:
            feed.recognises(content)
            feed.read(content, FeedRequest())
        except InputError:
            continue


# A text that says what it is must be read as that: RTTs under any of their names, and no others.
FOUND = tomllib.loads(Path(__file__).with_name("texts.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", FOUND["read"])
def test_texts_are_read(case: str, tmp_path: Path) -> None:
    given = FOUND["read"][case]
    path = tmp_path / "fra.txt"
    path.write_bytes(given["text"].encode(given.get("encoding", "utf-8")))
    _, reading = read_feed(path, "auto", FeedRequest(**given.get("request", {})))
    found = {" ".join(pair): rtt for pair, rtt in pairs(reading).items() if pair[0] != pair[1]}
    assert found == pytest.approx(given["rtt"])


@pytest.mark.parametrize("case", FOUND["refused"])
def test_texts_are_refused_by_name(case: str, tmp_path: Path) -> None:
    given = FOUND["refused"][case]
    path = tmp_path / "fra.txt"
    path.write_text(given["text"])
    with refused(given["says"], "fra.txt"):
        read_feed(path, "auto", FeedRequest(**given.get("request", {})))


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
