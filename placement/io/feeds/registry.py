"""Registry of the formats of RTTs, and the reader that recognises them by content.

A format is an entry point of the group ``placement.feeds``::

    [project.entry-points."placement.feeds"]
    my-prober = "my_package.my_module:FEED"
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from placement.errors import InputError
from placement.io.feeds.quantity_text import Decimal
from placement.io.formats.document import parse_json, read_text
from placement.io.formats.tables import Table, parse_csv, read_table
from placement.io.rtt_distributions import PairTable
from placement.io.rtt_table import RttTable
from placement.support.entry_points import Group

__all__ = ["FEEDS", "Content", "Feed", "FeedRequest", "RttReading", "read_feed", "recognised"]

_HEAD = 2**16


@dataclass(frozen=True, eq=False)
class Content:
    """A file as read, nothing interpreted.

    Attributes
    ----------
    source
        The file, for messages.
    text
        Its text; None for Parquet, which only tables are read from.
    """

    source: str
    text: str | None

    @cached_property
    def head(self) -> str:
        """The first 64 KiB of the text; empty for Parquet."""
        return (self.text or "")[:_HEAD]

    @property
    def braced(self) -> bool:
        """Return whether the text begins as JSON does; MongoDB's shell prints such texts too."""
        return self.head.lstrip("\ufeff \t\r\n")[:1] in ("{", "[")

    @cached_property
    def json(self) -> object:
        """The JSON value of the text; None where the text is no JSON document."""
        try:
            return self.document if self.braced else None
        except InputError:
            return None

    @cached_property
    def document(self) -> object:
        """The JSON value of the text.

        Raises
        ------
        InputError
            For a text that is no JSON document, with its row.
        """
        return parse_json(self.text or "", self.source)

    @cached_property
    def table(self) -> Table:
        """The table of a CSV, TSV or Parquet file; semicolons and tabs are found in the header.

        Raises
        ------
        InputError, MissingDependencyError
            As :func:`placement.io.formats.tables.read_table`.
        """
        if self.text is None:
            return read_table(self.source)
        header = self.text.lstrip("\ufeff\r\n").partition("\n")[0]
        signs = {sign: header.count(sign) for sign in (",", ";", "\t")}
        delimiter = "\t" if Path(self.source).suffix.lower() == ".tsv" else ","
        if not signs[delimiter]:
            delimiter = max(signs, key=lambda sign: signs[sign])
        return parse_csv(self.text, self.source, delimiter)

    @property
    def stem(self) -> str:
        """Name of the file without its last suffix."""
        return Path(self.source).stem


@dataclass(frozen=True, slots=True)
class FeedRequest:
    """Names and units that a format may need beside the file.

    Attributes
    ----------
    columns
        Role -> column, of tables.
    unit
        Unit of numbers without one; None: that of the format, or of the header.
    decimal
        Decimal sign of tables.
    measured_from
        Where a probe ran, for formats that do not say so; empty: the name of the file.
    """

    columns: Mapping[str, str] = field(default_factory=dict)
    unit: str | None = None
    decimal: Decimal = "auto"
    measured_from: str = ""


@dataclass(frozen=True, eq=False)
class RttReading:
    """RTTs as read from one file.

    Attributes
    ----------
    table
        One RTT per pair, ms.
    distributions
        Samples, histograms or percentiles per pair; None where the file has one number per pair.
    unit_known
        Whether the unit is told by the format, the file or the user.
    notes
        Sentences that say what the reader did.
    """

    table: RttTable
    distributions: PairTable | None = None
    unit_known: bool = True
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Feed:
    """A format of RTTs.

    Attributes
    ----------
    name
        Name that users type.
    title
        The format in a few words, for help, messages and documentation.
    recognises
        Whether a file is of this format, by its content.
    read
        The content, and what the user said -> RTTs.
    last
        Whether the format is tried only after all others, because it recognises any table.
    table
        Whether the user may name columns and units.
    """

    name: str
    title: str
    recognises: Callable[[Content], bool]
    read: Callable[[Content, FeedRequest], RttReading]
    last: bool = False
    table: bool = False


FEEDS = Group(
    "placement.feeds",
    "format",
    lambda found: found if isinstance(found, Feed) else None,
    "a Feed",
)
"""All registered formats."""


def read_feed(
    path: str | os.PathLike[str], format: str = "auto", request: FeedRequest | None = None
) -> tuple[Feed, RttReading]:
    """Read RTTs of any registered format.

    Parameters
    ----------
    path
        The file.
    format
        Name of a format; "auto": the one that recognises the content, or "long" where the request
        names columns.
    request
        What the user said about the file.

    Returns
    -------
    feed, reading
        The format, and the RTTs.

    Raises
    ------
    InputError
        When no format, or more than one, recognises the file; and as the reader of the format.
    """
    source = os.fspath(path)
    parquet = Path(path).suffix.lower() in (".parquet", ".pq")
    content = Content(source, None if parquet else read_text(path))
    asked = request or FeedRequest()
    name = "long" if format == "auto" and asked.columns else format
    feed = FEEDS.load(name) if name != "auto" else recognised(content)
    if not feed.table and (asked.columns or asked.unit is not None):
        raise InputError(
            f"the format {feed.name} has its own columns and unit",
            source=source,
            field="--columns" if asked.columns else "--unit",
            value=dict(asked.columns) or asked.unit,
            expected="nothing, or --format with the name of a table",
        )
    return feed, feed.read(content, asked)


def recognised(content: Content) -> Feed:
    """Return the format of a file by its content; errors as :func:`read_feed`."""
    feeds = [FEEDS.load(name) for name in FEEDS.names()]
    groups = ((False, False), (True, False), (True, True))  # tools first, any table last
    for table, last in groups:
        if table and content.braced and content.document is not None:
            break
        fitting = [
            feed
            for feed in feeds
            if (feed.table, feed.last) == (table, last) and feed.recognises(content)
        ]
        if len(fitting) > 1:
            raise InputError(
                "more than one format fits",
                source=content.source,
                field="format",
                value=", ".join(feed.name for feed in fitting),
                expected=f"--format {fitting[0].name} (or another of them)",
            )
        if fitting:
            return fitting[0]
    raise InputError(
        "an unknown format",
        source=content.source,
        field="format",
        value=content.head[:60],
        expected="--format with one of " + ", ".join(feed.name for feed in feeds),
    )
