"""Registry of the formats of RTTs, and the reader that recognises them by content.

A format is an entry point of the group ``placement.feeds``::

    [project.entry-points."placement.feeds"]
    my-prober = "my_package.my_module:FEED"
"""

from __future__ import annotations

import dataclasses
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from placement.errors import InputError, refused
from placement.io.feeds.blocks import blocks_of, is_page, json_table
from placement.io.feeds.headers import read_header
from placement.io.feeds.quantity_text import Decimal
from placement.io.formats.document import parse_json
from placement.io.formats.files import read_text
from placement.io.formats.tables import OTHER_LENGTH, PARQUET, Table, read_table
from placement.io.rtt_table import PairTable, RttTable
from placement.support.entry_points import Group

_HEAD = 2**16
_JSON = re.compile(r"[\s\ufeff]*(?:\{|\[\s*(?:[\[\]{\"\d-]|$))")
_BLANK = re.compile(r"[,\s]*")


@dataclass(frozen=True, eq=False)
class Content:
    """A file as read, nothing interpreted."""

    source: str  #: the file, for messages
    text: str | None  #: its text; None for Parquet, which only tables are read from

    @classmethod
    def of(cls, path: str | os.PathLike[str]) -> Content:
        """Return the content of a file; errors as :func:`read_text`."""
        parquet = Path(path).suffix.lower() in PARQUET
        return cls(os.fspath(path), None if parquet else read_text(path))

    @cached_property
    def head(self) -> str:
        """The first 64 KiB of the text; empty for Parquet."""
        return (self.text or "")[:_HEAD]

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Return file and row, for messages, and text of each line."""
        lines = enumerate((self.text or "").splitlines(), 1)
        return [(f"{self.source}, row {number}", line) for number, line in lines]

    @property
    def braced(self) -> bool:
        """Return whether the text begins as JSON does; MongoDB's shell prints such texts too."""
        return _JSON.match(self.head) is not None

    @cached_property
    def document(self) -> object:
        """The JSON value of the text; a list of the values, where several follow one another."""
        text = self.text or ""
        try:
            return parse_json(text, self.source)
        except InputError as error:
            values: list[object] = []
            decoder, place, row = json.JSONDecoder(), 0, 1
            while place < len(text):
                start = _BLANK.match(text, place).end()  # type: ignore[union-attr]  # may be empty
                row, place = row + text.count("\n", place, start), start
                if start == len(text):
                    break
                try:
                    _, place = decoder.raw_decode(text, start)
                except (ValueError, RecursionError):
                    raise error from None
                values.append(parse_json(text[start:place], f"{self.source}, row {row}"))
                row += text.count("\n", start, place)
            if len(values) < 2:
                raise
            return values

    @cached_property
    def json(self) -> object:
        """The JSON value of the text; None where the text is no JSON document."""
        try:
            return self.document if self.braced else None
        except InputError:
            return None

    @cached_property
    def objects(self) -> list[dict[str, object]]:
        """The JSON objects of the text: the items of a list, one a line, or the one; else none."""
        values = self.json if isinstance(self.json, list) else [self.json]
        found = [value for value in values if isinstance(value, dict)]
        return found if len(found) == len(values) else []

    @cached_property
    def is_page(self) -> bool:
        """Whether the text has tables of Markdown, HTML or a shell of SQL."""
        return self.text is not None and not self.braced and is_page(self.head)

    @property
    def form(self) -> str:
        """Return "markdown" for a page, else "csv", "sql", "json" or "nested"."""
        if self.is_page:
            return "sql" if all(block.form == "sql" for block in self.blocks) else "markdown"
        if self.braced:
            return "json" if self._records is None else self._records.form
        return "csv"

    @property
    def tabular(self) -> bool:
        """Return whether the content may be a table."""
        return not self.braced or self._records is not None

    @cached_property
    def is_prose(self) -> bool:
        """Whether the text is no table: its first line has one cell, or others than the second."""
        if self.braced or self.is_page or self.text is None:
            return False
        try:
            return len(self.blocks[0].columns) == 1
        except InputError as error:
            first = re.split("[,;\t|]", self.head.lstrip().partition("\n")[0])[0]
            sentence = len(first.split()) > 2 and read_header(first).unknown
            return error.message == OTHER_LENGTH and bool(sentence)

    @cached_property
    def _records(self) -> Table | None:
        return json_table(self.json, self.source) if self.braced else None

    @cached_property
    def blocks(self) -> list[Table]:
        """The tables of the file."""
        if self.text is None:
            return [read_table(self.source)]
        rows = self._records
        found = [rows] if rows is not None else blocks_of(self.text, self.source)
        return [dataclasses.replace(block, number=i) for i, block in enumerate(found, 1)]

    @property
    def stem(self) -> str:
        """Name of the file without its last suffix."""
        return Path(self.source).stem


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """Names and units that a format may need beside the file."""

    columns: Mapping[str, str] = field(default_factory=dict)  #: role -> column, of tables
    #: unit of numbers without one; None: that of the format, or of the header
    unit: str | None = None
    decimal: Decimal = "auto"  #: decimal sign of tables
    #: where a probe ran, for formats that do not say so; empty: the name of the file
    measured_from: str = ""
    table: str = ""  #: number or heading of the tables to read, of a file with several; empty: all
    #: "sources" or "destinations": the rows of a square table; empty: what its corner says, else
    #: sources
    rows: str = ""
    one_way: bool = False  #: whether the user said that values are one-way delays

    def of_tables(self) -> tuple[str, object] | None:
        """Return the first option that only tables have, and its value; None without any."""
        given: dict[str, object] = {"--columns": dict(self.columns), "--table": self.table}
        given |= {"--rows": self.rows, "--unit": self.unit}
        return next(((name, value) for name, value in given.items() if value), None)


@dataclass(frozen=True, eq=False)
class RttReading:
    """RTTs as read from one file."""

    table: RttTable  #: one RTT per pair, ms
    #: samples, histograms or percentiles per pair; None where the file has one number per pair
    distributions: PairTable | None = None
    unit_known: bool = True  #: whether the unit is told by the format, the file or the user
    notes: tuple[str, ...] = ()  #: sentences that say what the reader did
    #: columns of a table none of which is a row of it: sites only if another table says so
    loose: tuple[str, ...] = ()
    #: address -> name of the host in `table`, where the file tells both
    aliases: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Feed:
    """A format of RTTs."""

    name: str  #: name that users type
    title: str  #: the format in a few words, for help, messages and documentation
    recognises: Callable[[Content], bool]  #: whether a file is of this format, by its content
    read: Callable[[Content, FeedRequest], RttReading]
    #: whether it is a layout of tables: the user may name columns, tables and units, and it is
    #: tried only where no other format fits
    table: bool = False
    units: bool = False  #: whether the user may name the unit
    notes: str = ""  #: what its RTTs are, and what the user must tell, for `placement show formats`


FEEDS = Group(
    "placement.feeds", "format", lambda found: found if isinstance(found, Feed) else None, "a Feed"
)
"""All registered formats."""


def read_feed(
    path: str | os.PathLike[str], format: str = "auto", request: FeedRequest | None = None
) -> tuple[Feed, RttReading]:
    """Read RTTs of a registered format; "auto": of the one that recognises the content.

    Refuses a file that no format or more than one recognises, and what the reader refuses.
    """
    content = Content.of(path)
    asked = request or FeedRequest()
    if format != "auto":
        feed = FEEDS.load(format)
    elif asked.columns and content.tabular and not content.is_page:
        feed = FEEDS.load("long")
    else:
        feed = recognised(content)
    only = asked.of_tables()
    if only is not None and not feed.table and (only[0] != "--unit" or not feed.units):
        words = f"the format {feed.name} has its own columns and unit"
        expected = "nothing, or --format with the name of a table"
        raise refused(content.source, only[0], words, only[1], expected)
    return feed, feed.read(content, asked)


def recognised(content: Content) -> Feed:
    """Return the format of a file by its content; errors as :func:`read_feed`."""
    feeds = [FEEDS.load(name) for name in FEEDS.names()]
    fitting = [feed for feed in feeds if not feed.table and feed.recognises(content)]
    if not fitting and (content.tabular or content.document is None) and not content.is_prose:
        fitting = [feed for feed in feeds if feed.table and feed.recognises(content)]
    if len(fitting) == 1:
        return fitting[0]
    words, given = "more than one format fits", ", ".join(feed.name for feed in fitting)
    expected = f"--format {fitting[0].name if fitting else ''} (or another of them)"
    if not fitting:
        words, given = "an unknown format", content.head[:60]
        expected = "a table, or --format with one of " + ", ".join(feed.name for feed in feeds)
    raise refused(content.source, "format", words, given, expected)
