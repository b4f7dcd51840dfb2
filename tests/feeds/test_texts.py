"""Texts as tools, clouds and people write them, with the RTTs in them or the words of the refusal.

A text that says what it is must be read as that: RTTs under any of their names, and nothing else.
"""

from __future__ import annotations

import math
import tomllib
from pathlib import Path

import pytest

from placement import InputError
from placement.io.feeds.headers import read_header, rows_of_corner
from placement.io.feeds.registry import FeedRequest, RttReading, read_feed


def pairs(reading: RttReading) -> dict[tuple[str, str], float]:
    """Return the RTTs between different places."""
    table = reading.table
    return {
        (a, b): float(table.values[i, j])
        for i, a in enumerate(table.sources)
        for j, b in enumerate(table.destinations)
        if a != b and not math.isnan(table.values[i, j])
    }


TEXTS = tomllib.loads(Path(__file__).with_name("texts.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", TEXTS["read"])
def test_texts_are_read(case: str, tmp_path: Path) -> None:
    given = TEXTS["read"][case]
    path = tmp_path / "fra.txt"
    path.write_bytes(given["text"].encode(given.get("encoding", "utf-8")))
    _, reading = read_feed(path, "auto", FeedRequest(**given.get("request", {})))
    assert {" ".join(pair): rtt for pair, rtt in pairs(reading).items()} == pytest.approx(
        given["rtt"]
    )


@pytest.mark.parametrize("case", TEXTS["refused"])
def test_texts_are_refused_by_name(case: str, tmp_path: Path) -> None:
    given = TEXTS["refused"][case]
    path = tmp_path / "fra.txt"
    path.write_text(given["text"])
    with pytest.raises(InputError) as caught:
        read_feed(path, "auto", FeedRequest(**given.get("request", {})))
    assert given["says"] in str(caught.value)
    assert "fra.txt" in str(caught.value)


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
