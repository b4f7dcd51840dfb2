"""Tables of RTTs: long, percentiles, histograms, samples, square, of one source; whole pages.

The layout follows from what the headers say (:mod:`placement.io.feeds.headers`); cells may have
units (:mod:`placement.io.feeds.quantity_text`). A quantity that is no round-trip time is refused by
its name, and a header that nobody knows is asked for.
"""

from __future__ import annotations

import dataclasses
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from placement.errors import InputError, refused, require
from placement.io.demand_tables import order_intervals
from placement.io.feeds.headers import (
    ROW_WORDS,
    Header,
    check_given,
    coordinate_columns,
    read_header,
    rows_of_corner,
    the_column,
    time_unit,
)
from placement.io.feeds.pair_samples import merge, table_of
from placement.io.feeds.quantity_text import clean_rtts, is_missing
from placement.io.feeds.registry import Content, Feed, FeedRequest, RttReading, read_feed
from placement.io.formats.column_reader import ColumnTable, matrix_of, text_numbers
from placement.io.formats.tables import RTT, Table, check_unique, free_column
from placement.io.rtt_table import Pair, PairTable, RttTable
from placement.support.checks import FloatArray, IntArray
from placement.tail.histograms import means_of_percentiles

_OPTION = "--columns"
_SAID_ONE_WAY = re.compile(r"\bone[- ]?way\b|\bowd\b|\buni-?directional\b", re.IGNORECASE)
_NUMBER = re.compile(r"\d+(\.\d+)?%?")
_ALL, _NONE = re.compile(r"100(\.0*)?\s*%?"), re.compile(r"0(\.0*)?%?")
_WHOLE = re.compile(r"1(\.0*)?")
_COUNTED = ROW_WORDS["sent"] | ROW_WORDS["lost"]
_SAID = ROW_WORDS["silent"] | ROW_WORDS["alive"]
_FINE, _NO_FAILURE = ROW_WORDS["alive"] | {""}, ROW_WORDS["no failure"] | {""}
_UNIT_AFTER = re.compile(r"(.*\w)(?:\s*[\[(]\s*(\w+)\s*[\])]|[_ ](ms|us|ns|sec))")
_FROM = re.compile(r"\bfrom:?\s+(\S.*?)\s*(?:\(.*\))?$", re.IGNORECASE)


def read_rtt(
    path: str | os.PathLike[str], kind: str = "auto", columns: Mapping[str, str] | None = None
) -> RttTable:
    """Read RTTs of any registered format.

    Parameters
    ----------
    path
        CSV, TSV, Parquet, JSON, a page or the text of a tool.
    kind
        A format of :data:`placement.io.feeds.registry.FEEDS`; "auto": by the content.
    columns
        Of a long table: "src", "dst", "rtt" or "interval" -> column; None: by their names. Missing
        pairs are refused, or filled, by :meth:`RttTable.between`.

    Raises
    ------
    InputError, MissingDependencyError
        As :func:`placement.io.feeds.registry.read_feed`.
    """
    return read_feed(path, kind, FeedRequest(columns or {}))[1].table


def read_pairs(path: str | os.PathLike[str]) -> PairTable:
    """Read distributions: percentiles, a histogram, or a row per sample, under any usual names.

    Percentiles that fall within a row, a pair given twice in a table of percentiles, and a
    histogram without weight are refused, with file, row and field.
    """
    try:
        (table, *_), request = Content.of(path).blocks, FeedRequest()
        roles = _roles(table, request)
        if len(roles.percents) == 1 and len(roles.times) == 1:
            expected = "two or more columns such as p50 and p99"
            raise refused(table.source, "header", "one percentile only", roles.times[0], expected)
        layout = "percentiles" if len(roles.percents) > 1 else "samples"
        found = read_block(table, request, layout, Path(path).stem).distributions
        if found is None:  # one bar per pair
            found = _bars(table, roles, request, whole=True).distributions
        assert found is not None  # both layouts have distributions
        return found
    except InputError as error:
        if "--" not in error.expected:
            raise
        words = "(placement import has these options, and its --distributions writes such a table)"
        raise error.at("", expected=f"{error.expected} {words}") from None


# --- rows of pairs ---------------------------------------------------------------------------


@dataclass(frozen=True)
class _PairRows:
    """Rows of a table of pairs: places of the pair of each row, and its numbers by column."""

    axes: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    places: tuple[IntArray, IntArray, IntArray]
    numbers: FloatArray

    def pairs(self) -> list[Pair]:
        """Return the pair of each row."""
        ends = zip(self.places[1].tolist(), self.places[2].tolist(), strict=True)
        return [(self.axes[1][a], self.axes[2][b]) for a, b in ends]

    def table(self, source: str, values: FloatArray, words: str) -> RttTable:
        """Return a table of RTTs with a value of each row."""
        cells = np.full(tuple(map(len, self.axes)), math.nan)
        cells[self.places] = values
        labels, sources, destinations = self.axes
        varying = labels != ("",)
        return RttTable(
            source,
            sources,
            destinations,
            cells if varying else cells[0],
            labels if varying else (),
            (_from(source, words),),
        )


def _measured(
    table: Table, roles: _Roles, names: Sequence[str], *, once: bool = True, rising: bool = False
) -> _PairRows:
    """Return the rows of a table of pairs.

    The columns `names` hold numbers, which do not fall within a row if they are `rising`; a pair
    stands in one row only, if it stands there `once`.
    """
    for name in (roles.src, roles.dst, *names):
        table.column(name)
    require(table.rows, "", "no rows", expected="a row per pair", source=table.source)
    frame = ColumnTable.of(table)
    labels: tuple[str, ...] = ("",)
    of_interval = np.zeros(frame.rows, dtype=np.intp)
    if roles.interval:
        labels, of_interval = frame.found(roles.interval, strip=False)
    sources, of_source = frame.found(roles.src)
    destinations, of_destination = frame.found(roles.dst)
    numbers = frame.matrix(names, RTT)
    shape = (len(labels), len(sources), len(destinations))
    cells = np.ravel_multi_index((of_interval, of_source, of_destination), shape)
    _, first, which = np.unique(cells, return_index=True, return_inverse=True)
    again = np.flatnonzero(first[which] != np.arange(frame.rows))
    if once and again.size:
        row = int(again[0])
        interval = f", interval {labels[of_interval[row]]}" if roles.interval else ""
        given = f"{sources[of_source[row]]} → {destinations[of_destination[row]]}{interval}"
        expected = f"once (first in row {table.numbers[int(first[which[row]])]})"
        expected += "" if interval else f"; {_OPTION} interval=COLUMN, or --format samples"
        raise refused(table.at(row), roles.dst, "a pair given twice", given, expected)
    if rising and (np.diff(numbers, axis=1) < 0).any():
        row, column = np.argwhere(np.diff(numbers, axis=1) < 0)[0].tolist()
        name, words = names[column + 1], "below the percentile before it"
        cell = table.rows[row][table.column(name)]
        raise refused(table.at(row), name, words, cell, f">= {numbers[row, column]:g}")
    if roles.interval:
        order = order_intervals(labels, table.source, fill=False)
        labels, of_interval = order.labels, order.place[of_interval]
    axes, places = (labels, sources, destinations), (of_interval, of_source, of_destination)
    return _PairRows(axes, places, numbers)


def _from(source: str, words: str = "") -> str:
    return f"RTTs were imported from {Path(source).name}{', ' if words else ''}{words}."


# --- what the headers say --------------------------------------------------------------------


@dataclass(frozen=True)
class _Roles:
    """Columns of a table, empty where there is none; unit and quantity that its cells state."""

    src: str
    dst: str
    rtt: str
    interval: str
    weight: str
    times: tuple[str, ...]
    percents: dict[float, str]
    unit: str | None

    def said(self, rtt: str) -> str:
        """Return the note on the columns that were taken."""
        taken = {"src": self.src, "dst": self.dst, "rtt": rtt, "interval": self.interval}
        named = [f"{role} is {name!r}" for role, name in taken.items() if name]
        return "columns: " + ", ".join(named)


def _header_error(table: Table, words: str, value: str, expected: str) -> InputError:
    return refused(table.source, "header", words, value, expected)


def _roles(table: Table, request: FeedRequest) -> _Roles:
    """Return the roles that the user gives, or that the words of exactly one column state."""
    given = request.columns
    check_given(given, table.columns, table.source, _OPTION)
    heads = {name: read_header(name) for name in table.columns if name not in given.values()}
    ends = {}
    for role in ("src", "dst"):
        fitting = [name for name, head in heads.items() if head.end == role]
        known = [name for name in fitting if not heads[name].unknown]
        told = given.get(role) or the_column(known or fitting, role, table.source, _OPTION)
        ends[role] = told or ""
    unit, measured = _cells_that_say(table)
    times = [name for name, head in heads.items() if head.quantity == "rtt"]
    times = times or [name for name, head in heads.items() if head.quantity == "one-way delay"]
    if measured and not times:
        times = [name for name in heads if name.strip().lower() in ("value", "values", "result")]
    percents: dict[float, str] = {}
    for name in () if "rtt" in given else times:
        percent = heads[name].percent
        if percent is not None and (not 0 < percent < 100 or percent in percents):
            words = "a percentile given twice" if percent in percents else "not a percentile"
            raise _header_error(table, words, name, "p1 to p99.9…, each once")
        if percent is not None:
            percents[percent] = name
    for name in times if percents else ():
        if heads[name].aggregate == "median" and heads[name].percent is None:
            percents.setdefault(50.0, name)
    return _Roles(
        **ends,
        rtt=given.get("rtt", ""),
        interval=given.get("interval", ""),
        weight=next((name for name in heads if name.strip().lower() in ROW_WORDS["weight"]), ""),
        times=tuple(times),
        percents=dict(sorted(percents.items())),
        unit=unit,
    )


def _cells_that_say(table: Table) -> tuple[str | None, bool]:
    """Return the unit that a column ``unit`` has, and whether a column ``metric`` says RTT."""
    unit, measured = None, False
    for place, name in enumerate(table.columns):
        kind = name.strip().lower().rstrip("s")
        kind = "unit" if re.search(r"(?:^|[\W_])units?$", name, re.IGNORECASE) else kind
        if kind not in ("unit", "metric", "measure", "measurement", "quantity", "kpi"):
            continue
        for row, cells in enumerate(table.rows):
            text = str(cells[place] or "").strip()
            found, head = time_unit(text), read_header(text)
            if head.other or (kind == "unit" and text and unit not in (None, found)):
                words = (
                    "rows that are no round-trip times" if head.other else "not one unit of time"
                )
                expected = "rows of RTTs only, in ms, s, us or ns"
                raise refused(table.at(row), name, words, text, expected)
            unit = found if kind == "unit" and text else unit
            measured = measured or (kind != "unit" and head.quantity == "rtt")
    return unit, measured


def _rtt_column(table: Table, roles: _Roles, request: FeedRequest) -> str:
    """Return the column of RTTs; refuse by name what is none, ask for what is unknown."""
    heads = {name: read_header(name) for name in table.columns}
    central = [name for name in roles.times if heads[name].central]
    column = roles.rtt or the_column(central, "rtt", table.source, _OPTION)
    if column:
        _check_one_way(table.source, heads[column], request)
        return column
    words = "no column for the rtt"
    if roles.times:
        raise _header_error(
            table,
            f"{words}: minima, maxima and high percentiles are not the RTT of a pair",
            ", ".join(roles.times),
            f"a mean or a median, or {_OPTION} rtt={roles.times[0]}",
        )
    rest = [name for name in table.columns if name not in (roles.src, roles.dst)]
    others = [f"{name} ({heads[name].quantity})" for name in rest if heads[name].other]
    asked = [name for name in rest if not (heads[name].other or heads[name].place)]
    words += f": {', '.join(others)} is no round-trip time" if others else ""
    expected = f"a column such as rtt_ms, or {_OPTION} rtt={[*asked, 'COLUMN'][0]}"
    raise _header_error(table, words, ", ".join(table.columns), expected)


def _check_one_way(source: str, head: Header, request: FeedRequest) -> None:
    """Refuse one-way delays, unless the user says that both ways are to be added."""
    if head.quantity == "one-way delay" and not request.one_way:
        expected = "--one-way, which adds both directions (or --scale 2)"
        raise refused(source, "header", "one-way delays, not round-trip times", head.text, expected)


def _check_said(table: Table, above: str, used: set[str], request: FeedRequest) -> None:
    """Refuse one-way delays that the text above a table or the cells of another column state."""
    columns = [place for place, name in enumerate(table.columns) if name not in used]
    cells = {str(row[place]) for place in columns for row in table.rows}
    for text in (above, *sorted(cells)):
        if stated := _SAID_ONE_WAY.search(text):
            _check_one_way(table.source, Header(stated[0], "one-way delay"), request)


def _unit(head: Header, table: Table, request: FeedRequest) -> str | None:
    """Return the unit that a header says; refuse capitals that may be a region."""
    if not head.quantity and head.text not in request.columns.values():
        return None
    if head.unit == "US" and request.unit is None:
        words = "a word that is a unit or a region"
        raise _header_error(table, words, head.text, "--unit us, or --unit ms if it is a region")
    return time_unit(head.unit or "")


# --- layouts ---------------------------------------------------------------------------------


def _layout(table: Table, roles: _Roles, request: FeedRequest) -> str:
    """Return the layout that the headers state."""
    if roles.src and roles.dst:
        if len(roles.percents) > 1 and "rtt" not in table.columns:
            return "percentiles"
        bars = any(not read_header(name).aggregate for name in roles.times) and not roles.rtt
        return "histogram" if roles.weight and bars else "long"
    both = {str(row[0]).strip() for row in table.rows} & set(map(str.strip, table.columns[1:]))
    square = (both and not request.columns) or not (roles.times or roles.rtt)
    return "square" if square else "source"


def read_block(
    table: Table, request: FeedRequest, layout: str = "", source: str = ""
) -> RttReading:
    """Read a table in a layout, or in the one that its headers state."""
    roles = _roles(table, request)
    layout = layout or _layout(table, roles, request)
    if layout == "square":
        return _square(table, request)
    places = [name for name in table.columns if read_header(name).place and name != roles.dst]
    if not roles.src and roles.dst and places:
        if len(places) > 1:
            words, expected = "no column for the src", f"{_OPTION} src={places[0]}, or another"
            raise _header_error(table, words, ", ".join(places), expected)
        roles = dataclasses.replace(roles, src=places[0])
    used = {roles.src, roles.dst, roles.rtt, roles.weight, *roles.percents.values(), *roles.times}
    _check_said(table, "", used, request)
    table, notes = _answered(table, used)
    if not roles.src and (layout == "source" or (layout == "long" and roles.dst)):
        column = free_column("src", table.columns)
        dst = roles.dst or [*places, *_names_of_ends(table)][0]
        roles = dataclasses.replace(roles, src=column, dst=dst)
        rows = tuple((source, *row) for row in table.rows)
        table = dataclasses.replace(table, columns=(column, *table.columns), rows=rows)
        notes = (*notes, f"one source: {source!r} was taken")
        layout = _layout(table, roles, request) if layout == "source" else layout
    for role, name in (("src", roles.src), ("dst", roles.dst)):
        if not name:
            expected = f"a column {role}, or {_OPTION} {role}=COLUMN"
            expected += "; --measured-from SITE for a table of one source" * (role == "src")
            words = f"no column for the {role}"
            raise _header_error(table, words, ", ".join(table.columns), expected)
    read = {"percentiles": _percentiles, "histogram": _bars, "samples": _bars}.get(layout, _long)
    reading = read(table, roles, request)
    return dataclasses.replace(reading, notes=(*notes, *reading.notes))


def _names_of_ends(table: Table) -> list[str]:
    """Return the columns that may name the other end of a table of one source."""
    heads = [read_header(name) for name in table.columns]
    found = [head.text for head in heads if not (head.quantity or head.when)][:1]
    both = found and ROW_WORDS["both ends"] & set(re.findall(r"[a-z]+", found[0].lower()))
    if both or not found:
        words = "one column for both ends" if both else "no column for the dst"
        expected = f"a column of sources and one of destinations, or {_OPTION} dst=COLUMN"
        raise _header_error(table, words, (found or [", ".join(table.columns)])[0], expected)
    return found


def _answered(table: Table, used: set[str]) -> tuple[Table, tuple[str, ...]]:
    """Return the table without the rows that say that nothing answered, and a note of them.

    Such a row states a loss of 100 %, no sample, or a failure. An unknown state is asked for.
    """
    silent: dict[int, str] = {}
    for place, name in enumerate(table.columns):
        quantity, words = read_header(name).quantity, set(re.findall("[a-z]+", name.lower()))
        fails, states = (bool(words & ROW_WORDS[what]) for what in ("failure", "state"))
        if "state" in words:  # of a country, unless a cell says otherwise
            states = any(_word(row[place]) in _SAID for row in table.rows)
        nothing = None if words & _COUNTED else {"loss": _ALL, "count": _NONE}.get(quantity)
        if nothing is _ALL and _is_share(table, place, words):
            nothing = _WHOLE
        if name in used or not (fails or states or nothing):
            continue
        for number, row in enumerate(table.rows):
            cell, word = str(row[place]).strip().lower(), _word(row[place])
            numeric = _NUMBER.fullmatch(cell) is not None
            if nothing is not None:
                bad = nothing.fullmatch(cell) is not None
            elif fails:
                bad = not numeric and word not in _NO_FAILURE
            else:
                bad = _NONE.fullmatch(cell) is not None if numeric else word in ROW_WORDS["silent"]
                if not (bad or numeric or word in _FINE):
                    told = "a state that is neither an answer nor a failure"
                    expected = "ok, up, true or success; or leave the row or the column out"
                    raise refused(table.at(number), name, told, cell, expected)
            if bad:
                silent.setdefault(number, f"{name} {cell}")
    sent, lost = (
        [i for i, name in enumerate(table.columns) if ROW_WORDS[what] & {*name.lower().split("_")}]
        for what in ("sent", "lost")
    )
    for number, row in enumerate(table.rows if sent and lost else ()):
        counts = [str(row[place[0]]).strip() for place in (sent, lost)]
        if counts[0] == counts[1] and counts[0].isdecimal() and counts[0].strip("0"):
            silent.setdefault(number, f"{table.columns[lost[0]]} {counts[1]} of {counts[0]}")
    if not silent:
        return table, ()
    left = [number for number in range(len(table.rows)) if number not in silent]
    what = next(iter(silent.values()))
    note = f"{len(silent)} of {len(table.rows)} rows have no answer ({what!r}) and are left out"
    require(left, what, "no RTTs", expected=f"an answer; {note}", source=table.source)
    kept = dataclasses.replace(
        table,
        rows=tuple(table.rows[number] for number in left),
        numbers=tuple(table.numbers[number] for number in left),
    )
    return kept, (note,)


def _word(cell: object) -> str:
    return "".join(str(cell).lower().split())


def _is_share(table: Table, place: int, words: set[str]) -> bool:
    """Return whether losses are shares of 1: by their name, or because none is above 1."""
    cells = [str(row[place]).strip() for row in table.rows]
    small = all(re.fullmatch(r"(0?\.\d+|[01](\.0*)?)?", cell) for cell in cells)
    return small and bool(words & {"ratio", "fraction", "share"} or any("." in c for c in cells))


def _clean(
    table: Table, columns: Sequence[str], request: FeedRequest, default: str | None
) -> tuple[Table, bool, tuple[str, ...]]:
    """Return the table with RTTs in ms in some columns, whether the unit is known, and notes."""
    places = [table.columns.index(name) for name in columns]
    if len(columns) == 1:
        default = default or _unit(read_header(columns[0]), table, request)
    told = request.unit or default
    if told in (None, "ms") and text_numbers(table, places).size:
        return table, told is not None, ()
    done = clean_rtts(
        [row[place] for row in table.rows for place in places],
        lambda i: table.at(i // len(places)),
        columns[0] if len(columns) == 1 else "rtt",
        unit=request.unit,
        decimal=request.decimal,
        default=default,
    )
    rows = [list(row) for row in table.rows]
    for number, cell in enumerate(done.cells):
        row, column = divmod(number, len(places))
        rows[row][places[column]] = cell
    clean = dataclasses.replace(table, rows=tuple(map(tuple, rows)))
    return clean, done.unit_known, done.notes


def _long(table: Table, roles: _Roles, request: FeedRequest) -> RttReading:
    rtt = _rtt_column(table, roles, request)
    done, known, notes = _clean(table, [rtt], request, roles.unit)
    found = _measured(done, roles, [rtt])
    rtts = found.table(table.source, found.numbers[:, 0], f"column {rtt!r}")
    return RttReading(rtts, None, known, (roles.said(rtt), *notes))


def _percentiles(table: Table, roles: _Roles, request: FeedRequest) -> RttReading:
    columns = list(roles.percents.values())
    means = [name for name in roles.times if read_header(name).aggregate in ("mean", "")]
    mean = [name for name in means if name not in columns][:1]
    known, notes = False, [roles.said("")]
    for name in (*columns, *mean):
        _check_one_way(table.source, read_header(name), request)
        table, told, said = _clean(table, [name], request, roles.unit)
        known = known or told
        notes.extend(said)
    found = _measured(table, roles, columns, rising=True)
    percents, curves = tuple(roles.percents), found.numbers.tolist()
    pairs = {pair: (tuple(c), percents) for pair, c in zip(found.pairs(), curves, strict=True)}
    values, words = means_of_percentiles(percents, curves), "means of the percentiles"
    if mean:
        values, words = _measured(table, roles, mean).numbers[:, 0], f"column {mean[0]!r}"
    rtts = found.table(table.source, values, words)
    return RttReading(rtts, PairTable(table.source, percents, pairs), known, tuple(notes))


def _bars(table: Table, roles: _Roles, request: FeedRequest, *, whole: bool = False) -> RttReading:
    """Read a row per bar of a histogram, or per sample.

    One bar per pair is a mean with its count, and no distribution, unless the user knows that the
    table is `whole`.
    """
    rtt = _rtt_column(table, roles, request)
    table, known, notes = _clean(table, [rtt], request, roles.unit)
    names = [rtt, roles.weight] if roles.weight else [rtt]
    found = _measured(table, roles, names, once=False)
    bars: dict[Pair, tuple[list[float], list[float]]] = {}
    for pair, (value, *weight) in zip(found.pairs(), found.numbers.tolist(), strict=True):
        values, weights = bars.setdefault(pair, ([], []))
        values.append(value)
        weights += weight or [1.0]
    means = {}
    for pair, curve in bars.items():
        total = math.fsum(curve[1])
        if total <= 0:
            words = f"a histogram without weight: {pair[0]} → {pair[1]}"
            raise refused(table.source, roles.weight, words, 0.0, "a weight > 0")
        means[pair] = math.fsum(v * w for v, w in zip(*curve, strict=True)) / total
    what = "means of the distributions"
    rtts = table_of(table.source, means, (_from(table.source, what),))
    alone = roles.weight and not whole and all(len(curve[0]) == 1 for curve in bars.values())
    pairs = {pair: (tuple(v), tuple(w)) for pair, (v, w) in bars.items()}
    said = (roles.said(rtt), f"{len(means)} pairs; RTTs are {what}", *notes)
    return RttReading(rtts, None if alone else PairTable(table.source, (), pairs), known, said)


def _square(table: Table, request: FeedRequest) -> RttReading:
    corner = title = read_header(table.columns[0])
    heading = read_header(table.heading)
    about = "rtt" in [read_header(word).quantity for word in heading.text.split()]
    if not corner.quantity and (about or heading.quantity):
        title = heading
    if title.other and not (title is heading and about):
        words, where = f"not round-trip times but {title.quantity}", table.source
        where = table.at(0) if table.rows else where
        field = "heading" if title is heading else "corner"
        raise refused(where, field, words, title.text, "a table of RTTs")
    _check_one_way(table.source, title, request)
    unit = _unit(title, table, request)
    suffixes = [_UNIT_AFTER.fullmatch(name.strip()) for name in table.columns[1:]]
    units = {time_unit(match[2] or match[3]) for match in suffixes if match}
    if suffixes and all(suffixes) and len(units) == 1 and None not in units:
        bare = tuple(match[1] for match in suffixes if match)
        table, unit = dataclasses.replace(table, columns=(table.columns[0], *bare)), units.pop()
    columns = [name.strip() for name in table.columns[1:]]
    names = [str(row[0]).strip() for row in table.rows]
    both = set(columns) & set(names)
    if len(set(names)) < len(names) and not both:
        words = "neither a square table nor a long one whose columns are known by their names"
        expected = f"{_OPTION} src=COLUMN,dst=COLUMN,rtt=COLUMN"
        raise _header_error(table, words, ", ".join(table.columns), expected)
    globe = len(coordinate_columns(columns)) > 1  # else lon is London
    out = [
        name
        for name in columns
        if _is_summary(name)
        and (name not in both or read_header(name).aggregate)
        and (globe or name != "lon")
    ]
    if columns and len(out) == len(columns):
        found = ", ".join(f"{name} ({read_header(name).quantity})" for name in out)
        expected = f"a column for each destination, or {_OPTION} rtt=COLUMN"
        raise _header_error(table, "no column of round-trip times", found, expected)
    rest = [n for n in names if _is_summary(n) and (n in out or (n not in columns and both))]
    if out or rest:
        kept = [0, *(i for i, name in enumerate(columns, 1) if name not in out)]
        rows = [i for i, name in enumerate(names) if name not in rest]
        table = dataclasses.replace(
            table,
            columns=tuple(table.columns[i] for i in kept),
            rows=tuple(tuple(table.rows[i][k] for k in kept) for i in rows),
            numbers=tuple(table.numbers[i] for i in rows),
        )
    known, notes = False, tuple[str, ...]()
    if columns and names:
        table, known, notes = _clean(table, table.columns[1:], request, unit)
    destinations = tuple(name.strip() for name in table.columns[1:])
    if not destinations:
        expected = "a square table (the names in the first column, a column per destination)"
        raise refused(table.source, "", "one column only", table.columns[0], expected)
    check_unique(destinations, table.source)
    require(table.rows, "", "no rows", expected="a row per source", source=table.source)
    told = matrix_of(ColumnTable.of(table), table.columns[:1], "row", RTT, gaps=True)
    source = (_from(table.source),)
    rtts = RttTable(table.source, told.rows, destinations, told.values, (), source)
    end, why = _end_of_rows(table, corner, request)
    if end == "dst":
        rtts = dataclasses.replace(
            rtts, sources=rtts.destinations, destinations=rtts.sources, values=rtts.values.T
        )
    note = f"a square table, {len(names)} × {len(columns)}; rows are "
    note += ("destinations" if end == "dst" else "sources") + why
    said = [note, *notes]
    if out or rest:
        said.append(f"{', '.join(dict.fromkeys((*out, *rest)))}: no sites, left out")
    if not title.central:
        said.append(f"the table holds {title.aggregate or 'a high percentile'}: {title.text!r}")
    loose = tuple(columns) if not both and corner.end != "src" else ()
    return RttReading(rtts, None, known, tuple(said), loose)


def _is_summary(name: str) -> bool:
    """Return whether a name among sites is a statistic or another quantity."""
    head = read_header(name)
    return bool(head.quantity and not head.unknown and not head.ends) or head.other


def _end_of_rows(table: Table, corner: Header, request: FeedRequest) -> tuple[str, str]:
    """Return what the rows of a square table are, and why."""
    if request.rows:
        return ("dst" if request.rows == "destinations" else "src"), " (--rows)"
    end = rows_of_corner(corner)
    if end == "dst" and corner.quantity and len(set(corner.ends)) == 1:
        words = "a corner that does not say whether the rows or the columns are meant"
        raise _header_error(table, words, corner.text, "--rows sources or --rows destinations")
    return end or "src", f" ({corner.text!r})" if end else ""


# --- pages -----------------------------------------------------------------------------------


def _page(content: Content, request: FeedRequest, layout: str = "") -> RttReading:
    """Read all tables of RTTs of a file; a table of other things is left out with a note."""
    wanted = request.table.strip().lower()
    tables = [table for table in content.blocks if wanted in ("", str(table.number))]
    tables = tables or [table for table in content.blocks if wanted in table.heading.lower()]
    expected = "a number or a heading of " + "; ".join(map(_title, content.blocks))
    require(tables, "--table", "no such table", request.table, expected, source=content.source)
    found: list[tuple[Table, RttReading]] = []
    left_out: list[str] = []
    failed: list[InputError] = []
    for table, source in zip(tables, _sources(tables, content, request, layout), strict=True):
        cells = (cell for row in table.rows for cell in row[1:] if not is_missing(cell))
        if len(tables) > 1 and not any(re.search(r"\d", str(cell)) for cell in cells):
            left_out.append(f"{_title(table)}: no numbers")
            continue
        try:
            _check_said(table, _above(content, table), set(table.columns), request)
            found.append((table, read_block(table, request, layout, source)))
        except InputError as error:
            failed.append(error)
            left_out.append(f"{_title(table)}: {error.message}")
    if failed and not found:
        raise failed[0]
    names = {name for _, reading in found for name in reading.table.sources}
    for table, reading in list(found) if len(found) > 1 else ():
        if reading.loose and not names.intersection(reading.loose):
            found.remove((table, reading))
            left_out.append(f"{_title(table)}: {', '.join(reading.loose)} is no site")
    require(found, "", "no table of RTTs", expected="round-trip times", source=content.source)
    try:
        reading = merge([reading for _, reading in found])
    except InputError as error:
        titles = "; ".join(_title(table) for table, _ in found)
        words = f"{len(found)} tables: {error.message}"
        expected = f"--table NUMBER or --table HEADING, of {titles}"
        raise refused(content.source, error.field, words, error.value, expected) from None
    if content.form in ("csv", "json", "nested"):
        return reading
    said = f"{len(found)} table{'s' * (len(found) > 1)}"
    said += "".join(f"; left out: {text}" for text in left_out)
    return dataclasses.replace(reading, notes=(said, *reading.notes))


def _above(content: Content, table: Table) -> str:
    """Return the comments or the paragraph in the six lines above a table."""
    if content.braced:
        return ""
    lines = content.head.splitlines()[: [*table.numbers, 1][0] - 1][-6:]
    words = [line for line in lines if line.lstrip().startswith("#") or "|" not in line]
    return " ".join(words if content.form != "csv" else [w for w in words if w[:1] in "#%;"])


def _title(table: Table) -> str:
    heading = f" {table.heading!r}" if table.heading else ""
    return f"table {table.number}{heading} (row {[*table.numbers, 1][0]})"


def _sources(
    tables: Sequence[Table], content: Content, request: FeedRequest, layout: str
) -> list[str]:
    """Return the source of each table of one source: option, heading, or name of the file."""
    told = request.measured_from or content.stem
    single = [table for table in tables if _stated(table, request) == "source"]
    if request.measured_from or layout or len(single) < 2:
        matches = [_FROM.search(table.heading) for table in tables]
        use = not request.measured_from
        return [match[1] if match and use else told for match in matches]
    found = []
    for table in tables:
        match = _FROM.search(table.heading)
        name = table.heading if not read_header(table.heading).quantity else ""
        found.append(match[1] if match else name or told)
    names = {source for table, source in zip(tables, found, strict=True) if table in single}
    if len(names) < len(single):
        words = "several tables of one source, and no heading names the source"
        expected = "headings such as 'From NAME', or --table and --measured-from"
        raise refused(content.source, "table", words, "; ".join(map(_title, single)), expected)
    return found


def _stated(table: Table, request: FeedRequest) -> str:
    """Return the layout that the headers state; "long" where several columns fit a role."""
    try:
        return _layout(table, _roles(table, request), request)
    except InputError:
        return "long"  # the reader says which columns


def _has(content: Content, layout: str) -> bool:
    """Return whether the first table of a file that is not square, or the last, has a layout."""
    if content.form in ("markdown", "nested") or not content.tabular:
        return False
    stated = [_stated(table, FeedRequest()) for table in content.blocks]
    return next((one for one in stated if one != "square"), stated[-1]) == layout


def _feed(name: str, title: str, notes: str = "", *, recognised: bool = True) -> Feed:
    """Return a layout of tables; the files "nested" and "markdown" hold tables of any layout."""
    form = name in ("nested", "markdown")
    return Feed(
        name,
        title,
        lambda content: recognised and (content.form == name if form else _has(content, name)),
        lambda content, request: _page(content, request, "" if content.is_page or form else name),
        table=True,
        notes=notes,
    )


LONG = _feed(
    "long", "table with a row per pair",
    "--columns src=…,dst=…,rtt=…,interval=… names columns of other names",
)  # fmt: skip
PERCENTILES = _feed(
    "percentiles", "table with a row per pair and columns p50, p99, …",
    "RTTs are the column mean, or the means of what the percentiles describe",
)  # fmt: skip
HISTOGRAM = _feed(
    "histogram", "table with rows of RTT and count (or weight) per pair", "RTTs are the means"
)
SAMPLES = _feed(
    "samples", "table with a row per sample (only by --format)", "RTTs are the means",
    recognised=False,
)  # fmt: skip
SQUARE = _feed(
    "square", "table with a row per source and a column per destination",
    "a blank cell or - is a missing pair; --rows destinations, where the corner does not say so",
)  # fmt: skip
ONE_SOURCE = _feed(
    "source", "table of one source: a row per destination",
    "the source is the file name, or --measured-from",
)  # fmt: skip
NESTED = _feed(
    "nested", "JSON of the form {from: {to: ms}}, or of names and a matrix",
    'a value may be {"value": 12, "unit": "ms"}',
)  # fmt: skip
MARKDOWN = _feed(
    "markdown", "Markdown and HTML tables, as clouds publish them",
    "all tables of RTTs of a page are put together, others are left out; --table chooses",
)  # fmt: skip
