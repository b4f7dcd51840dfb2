"""Vocabulary of headers: quantity, unit, direction and aggregate that a name states.

Every reader of tables asks this module what a name says: the header of a column, the corner of a
square table, the heading of a page, a label of Prometheus. Nothing is concluded from the place of a
column. The words are in ``vocabulary.csv``. Any other word makes a name unknown, and the reader
asks the user.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from placement.errors import refused

UNITS = {"ms": 1.0, "s": 1000.0, "us": 1e-3, "ns": 1e-6}
"""Unit -> milliseconds."""

with (Path(__file__).parent / "vocabulary.csv").open(encoding="utf-8", newline="") as _file:
    _ROWS = [(row["kind"], row["meaning"], row["words"].split()) for row in csv.DictReader(_file)]
_LISTS = ("demand", "label", "row")
_KNOWN = {
    word: (kind, meaning) for kind, meaning, words in _ROWS if kind not in _LISTS for word in words
}
"""Word -> kind and meaning; a word of several kinds has that of the last one."""

DEMAND_ROLES, LABELS, _ROW_WORDS = (
    {role: tuple(words) for kind, role, words in _ROWS if kind == one} for one in _LISTS
)
"""Columns of demand by role; labels of series by end."""

ROW_WORDS = {meaning: frozenset(words) for meaning, words in _ROW_WORDS.items()}
"""Words about rows of RTTs by their meaning."""

_INDEX = {"a": "src", "b": "dst", "1": "src", "2": "dst", "x": "src", "y": "dst", "i": "src"}
_INDEX |= {"j": "dst"}

_ONE_WAY = re.compile(
    r"one ?-? ?way|\b1 ?-? ?way|\bowd\b|\bowl\b|half ?-?(?:of )?(?:the )?(?:rtt|round|latency)|"
    r"(?:rtt|latency|delay|trip|time)\s*(?:/|÷)\s*2\b|½|\b1/2|0\.5 ?[x*×]|uni-?directional"
)
_RATE = re.compile(
    r"\b[kmgt]?i?b(?:it|its|yte|ytes)?(?: ?/ ?| ?per ?|p)s(?:ec|econd|econds)?\b|"
    r"\b[kmgt]?bit\b"
)
_MULTIPLE = re.compile(r"[x×*] ?\d+\b|\b\d+ ?[x×*]|\b10 ?(?:\^|\*\*)|\be-?\d+\b")
_PERCENTILE = re.compile(
    r"\b(\d+(?:\.\d+)?) ?(?:st|nd|rd|th)? ?(?:%|per|p)?-? ?(?:%?-?ile|centile|ctl|ctile|tile)\b|"
    r"\b[pq] ?(\d+(?:\.\d+)?|99 9+)\b|\b(?:percentile|pctl|pctile|perc) ?(\d+(?:\.\d+)?)\b|"
    r"\b(\d+(?:\.\d+)?) ?%"
)
_CAMEL = re.compile(r"(?<=[a-zµ])(?=[A-Z])|(?<=\d)(?=[A-Z][a-z])")
_WORD = re.compile(r"[^\W\d_]+|\d+|[%$€£¥]")
_LONGEST = 200
_CARRIERS = {"tcp", "udp", "icmp", "net", "network"}


@dataclass(frozen=True, slots=True)
class Header:
    """Meaning of a name."""

    text: str  #: the name
    #: "rtt", "one-way delay", or another quantity ("distance", "bandwidth", "price", …); empty
    #: where the name states none
    quantity: str = ""
    #: "ms", "s", "us", "ns"; "US" for a text in capitals, which may be a region; None: no unit
    unit: str | None = None
    aggregate: str = ""  #: "mean", "median", "min", "max", "last"; empty without one
    percent: float | None = None  #: of a percentile; None: none
    ends: tuple[str, ...] = ()  #: "src" and "dst" in the order of their words
    place: bool = False  #: whether it names places, by direction or a word such as region or host
    when: bool = False  #: whether it names times
    unknown: tuple[str, ...] = ()  #: words that are not in the vocabulary

    @property
    def other(self) -> bool:
        """Return whether it states a quantity that is no time between two places."""
        return self.quantity not in ("", "rtt", "one-way delay")

    @property
    def central(self) -> bool:
        """Return whether the value stands for a pair: no minimum, maximum, high percentile."""
        return self.aggregate in ("", "mean", "median") and self.percent in (None, 50.0)

    @property
    def end(self) -> str:
        """Return "src" or "dst" of a column that names one end; empty for any other."""
        ends = set(self.ends)
        return self.ends[0] if len(ends) == 1 and not self.quantity and not self.when else ""


def time_unit(text: str) -> str | None:
    """Return the unit that a word means; None for any other, and for ``US`` and ``S``."""
    word = text.replace("μ", "µ").strip(" .[]()")
    kind, meaning = _KNOWN.get(word.lower(), ("", ""))
    return meaning if kind == "unit" and word not in ("US", "S", "NS") else None


@lru_cache(4096)
def read_header(text: str) -> Header:
    r"""Return the meaning of a name.

    >>> header = read_header("Avg RTT [µs]")
    >>> header.quantity, header.unit, header.aggregate
    ('rtt', 'us', 'mean')
    >>> read_header("one_way_ms").quantity, read_header("Mbit/s").quantity
    ('one-way delay', 'bandwidth')
    >>> read_header("To / From").ends
    ('dst', 'src')
    """
    if len(text) > _LONGEST:
        return Header(text, unknown=(text[:_LONGEST],))
    cased = _CAMEL.sub(" ", text.replace("μ", "µ")).replace("_", " ")
    plain = " ".join(cased.lower().split()).replace("availability zone", "az")
    one_way = _ONE_WAY.search(plain) is not None
    plain, rates = _RATE.subn(" ", _ONE_WAY.sub(" rtt ", plain) if one_way else plain)
    percent = None
    if match := _PERCENTILE.search(plain):
        digits = next(group for group in match.groups() if group).replace(" ", ".")
        if re.fullmatch(r"99\d+", digits):  # 999 is 99.9
            digits = f"{digits[:2]}.{digits[2:]}"
        percent = float(digits)
        plain = _PERCENTILE.sub(" ", plain, count=1).replace("percentile", " ")
    words = [part for word in _WORD.findall(plain) for part in _parts(word)]
    found: dict[str, list[str]] = {"quantity": ["bandwidth"] if rates else []}
    unknown = []
    for place, word in enumerate(words):
        kind, meaning = _KNOWN.get(word, ("", ""))
        if word == "s" and place + 1 < len(words):
            continue  # the s of "region's"
        if word in _INDEX and len(words) > 1 and not kind:
            kind, meaning = "index", _INDEX[word]
        if not kind:
            unknown.append(word)
        found.setdefault(kind or "unknown", []).append(meaning)
    unit = found.get("unit", [None])[0]
    capitals = re.search(r"(?:^|[^A-Za-z])(US|NS|S)(?:$|[^A-Za-z])", text) is not None
    aggregates, quantities = found.get("aggregate", [""]), found["quantity"]
    timed = bool(unit or found.get("aggregate") or percent is not None)
    if "lat" in words and (timed or (len(words) == 1 and percent is not None)):
        quantities = ["rtt" if each == "coordinate" else each for each in quantities]
    elif "lat" in words and _CARRIERS & set(words):  # the tool knows which time tcp_lat is
        quantities = [each for each in quantities if each != "coordinate"]
    others = [each for each in quantities if each != "rtt"]
    if _MULTIPLE.search(plain) and not others and not one_way and (quantities or timed):
        others = ["time in another unit"]
    if one_way and not others:
        quantity = "one-way delay"
    elif others or quantities:
        quantity = "price" if "price" in others else (others or quantities)[0]
    else:
        bare = not (unknown or found.get("end") or found.get("when") or found.get("place"))
        bare = bare and "time" not in words and not capitals
        quantity = "rtt" if timed and bare else ""
    ends = tuple(found.get("end", ()))
    if not ends and found.get("place") and len(found.get("index", ())) == 1:
        ends = (found["index"][0],)
    return Header(
        text,
        quantity,
        "US" if unit in ("us", "ns", "s") and capitals else unit,
        aggregates[0],
        percent,
        ends,
        bool(ends or found.get("place")) and not quantity,
        bool(found.get("when")) or words == ["time"],
        tuple(unknown),
    )


def _parts(word: str) -> list[str]:
    """Return the known words that a word is made of, such as avg and rtt of "avgrtt"."""
    if word in _KNOWN or len(word) < 5:
        return [word]
    for cut in range(len(word) - 2, 2, -1):
        head, tail = word[:cut], word[cut:]
        if head in _KNOWN and tail in _KNOWN and (len(tail) > 2 or tail in ("ms", "us", "ns")):
            return [head, tail]
    return [word]


def rows_of_corner(corner: Header) -> str:
    r"""Return the end that the rows of a square table are: "src", "dst", or "" where unknown.

    A corner such as ``To \ From`` names the rows first, unless words or arrows say more.
    """
    text = corner.text.lower()
    marked = [
        (match[2], match[1])
        for match in re.finditer(r"\b(rows?|col(?:umn)?s?)\s*(?:[:=]|are|is)\s*([^\W\d_]+)", text)
    ] or [
        (match[1], match[2])
        for match in re.finditer(
            r"([^\W\d_]+)\s*[:=(\[]*\s*(rows?\b|col(?:umn)?s?\b|↓|→(?!\s*\w))", text
        )
    ]
    for word, mark in marked:
        kind, end = _KNOWN.get(word, ("", ""))
        if kind == "end":
            rows = mark.startswith("row") or mark == "↓"
            return end if rows else ("dst" if end == "src" else "src")
    return corner.ends[0] if corner.ends else ""


def coordinate_columns(names: Iterable[str]) -> dict[str, str]:
    """Return the columns of latitudes ("lat") and longitudes ("lon"), where there are any."""
    words = {"lat": {"lat", "latitude"}, "lon": {"lon", "lng", "long", "longitude"}}
    found: dict[str, str] = {}
    for name in names:
        plain = set(re.findall(r"[a-z]+", name.lower())) - {"deg", "degrees", "geo", "gps", "in"}
        for axis, known in words.items():
            if len(plain) == 1 and plain <= known:
                found.setdefault(axis, name)
    return found


# --- roles of columns ------------------------------------------------------------------------


def check_given(given: Mapping[str, str], columns: Sequence[str], source: str, option: str) -> None:
    """Refuse a column that the user gives for a role and the table does not have."""
    for role, column in given.items():
        if column not in columns:
            expected = "one of " + ", ".join(map(repr, columns))
            raise refused(source, f"{option} {role}", "no such column", column, expected)


def the_column(fitting: Sequence[str], role: str, source: str, option: str) -> str | None:
    """Return the one column that fits a role, or that is called so; None without any."""
    exact = [name for name in fitting if name == role]
    if len(exact or fitting) > 1:
        words = f"several columns may be the {role}"
        expected = f"{option} {role}={fitting[0]} (or another of them)"
        raise refused(source, "header", words, ", ".join(fitting), expected)
    return next(iter(exact or fitting), None)
