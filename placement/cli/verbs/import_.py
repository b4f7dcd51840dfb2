"""``placement import``: an instance from measured RTTs and counted operations."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from placement.cli import exit_codes as exits
from placement.cli import options as types
from placement.cli.options import FORCE, Subparsers, Switch, add_verb
from placement.cli.output import print_notes, show_result
from placement.errors import Gathered, for_each, refused, require
from placement.support.entry_points import entry_points
from placement.text.plans import instance_text
from placement.text.text_tables import escape

if TYPE_CHECKING:
    from placement.analysis.data_quality import DataQuality, DoubtfulPair
    from placement.io.demand_tables import DemandTable
    from placement.io.feeds.registry import RttReading
    from placement.model.operations import Operation

_ROUND_TRIPS = ("near", "relay", "direct", "quorum")
_UNITS = ("ms", "s", "us", "ns")

WORD = "prometheus"
"""First argument for a server in the place of files."""

_PRESETS = ("etcd", "cockroachdb", "tidb", "cassandra", "blackbox", "custom")
_LABELS = ("region_label", "target_label")
_OF_SERVER = ("window", "at", "match", *_LABELS, "bias", "rtt_query", "ops_query")
"""Options of a server, which are fields of the request."""


def add_parser(verbs: Subparsers) -> None:
    """Add the verb."""
    parser = add_verb(verbs, "import", run)
    formats = sorted(entry_points("placement.feeds"))
    parser.add("",
        Switch("rtt", "RTT", "RTTs between sites: tables, pages, JSON, or the text of ping, fping, "
            "mtr and others; several files are merged; or: prometheus URL", nargs="+"),
        Switch("--format", "NAME", "format of the RTT files (default: by their content): "
            + ", ".join(formats), default="auto", choices=("auto", *formats)),
        Switch("--client-rtt", "FILE", "RTTs from clients to sites (default: a client in every "
            "site)"),
    )  # fmt: skip
    parser.add("reading RTTs",
        Switch("--columns", "ROLE=COLUMN,…", "columns of a long table: src=from,dst=to,rtt=ms; "
            "interval=when if there are several (default: names that fit)"),
        Switch("--unit", "", "unit of a table's RTTs (default: by header and cells, else ms)",
            choices=_UNITS),
        Switch("--decimal", "", "decimal sign of tables (default: by their cells)",
            default="auto", choices=("auto", "point", "comma")),
        Switch("--measured-from", "SITE", "site where a probe ran, or that a table of one "
            "source is about, if the file does not name it (default: the file name)"),
        Switch("--table", "N|HEADING", "tables to read of a page, by number or heading "
            "(default: all tables of RTTs)"),
        Switch("--rows", "", "rows of a square table (default: by its corner cell, else "
            "sources)", choices=("sources", "destinations")),
        Switch("--one-way", "", "the values are one-way delays: add both directions (default: "
            "refuse such headers)"),
        Switch("--site-of", "HOST=SITE,…", "sites of hosts and addresses; hosts of one site "
            "become their median; may be repeated", several=True, default=()),
        Switch("--distributions", "FILE", "file for samples or percentiles, which solve "
            "--percentile --distributions reads"),
    )  # fmt: skip
    parser.add("demand",
        Switch("--counts", "FILE", "operations issued: client and a column per operation, or "
            "client, operation, count; with a column interval if there are several; also "
            "exports of SQL and Grafana"),
        Switch("--count-columns", "ROLE=COLUMN,…", "columns of --counts: "
            "client=region,operation=statement,count=calls,interval=time (default: names that "
            "fit)"),
        Switch("--mix", "MIX", "in place of --counts: the same demand of every client, with a "
            "named mix"),
        Switch("--operation", "NAME=OPERATION or NAME:KEY=VALUE,…", "map a name in --counts to "
            "an operation (select=strong_read; '*' is every other name), or define an "
            "operation by round trips: near (client to nearest replica), relay (nearest "
            "replica to leader), direct (client to leader), quorum (rounds of votes); may be "
            "repeated", several=True, default=()),
        Switch("--merge-clients", "MS", "add up clients whose RTTs differ by at most MS to "
            "every site; the largest change of the mean of any plan is printed, and kept in "
            "the manifest", types.number()),
    )  # fmt: skip
    parser.add("more about the sites",
        Switch("--sites", "FILE", "candidate sites: name, lat, lon, a column per "
            "failure-domain level"),
        Switch("--fill", "", "take a missing RTT from the opposite direction (default: refuse)",
            default="none", choices=("none", "transpose")),
        Switch("--intra-site", "MS", "RTT within a site in ms, used where the table has no "
            "value (default 1)", types.number(), 1.0),
        Switch("--scale", "F", "multiply RTTs, 1000 for seconds", types.number(above=True), 1.0),
        Switch("--name", "NAME", "name of the instance (default: the folder name)"),
    )  # fmt: skip
    parser.add("files",
        Switch("-o --output", "FOLDER", "folder of the new instance", required=True),
        Switch("--tables", "", "format of the tables in the folder (default csv)",
            default="csv", choices=("csv", "parquet")),
        FORCE,
    )  # fmt: skip
    parser.add_output()
    parser.add("Prometheus (import prometheus URL …)",
        Switch("--preset", "NAME", f"system whose metrics the server has: {', '.join(_PRESETS)}",
            choices=_PRESETS),
        Switch("--window", "DURATION", "time before --at (default 1d)"),
        Switch("--at", "TIME", "end of the window, RFC 3339 (default: now)"),
        Switch("--match", "LABEL=VALUE", "only series with this label; also =~ with a regular "
            "expression; may be repeated", several=True),
        Switch("--region-label", "LABEL", "label with the region (default region)"),
        Switch("--target-label", "LABEL", "label with the far end of a probe (default "
            "instance; of --rtt-query: target)"),
        Switch("--bias", "F", "known ratio of the metric to the RTT (default: of the preset, "
            "1.5 for etcd)", types.number(above=True)),
        Switch("--rtt-query", "PROMQL", "RTTs in seconds, with the labels of region and target"),
        Switch("--ops-query", "OPERATION=PROMQL", "operations in the window with the label of "
            "the region; may be repeated", several=True),
    )  # fmt: skip
    parser.needs(count_columns="counts")


def run(args: argparse.Namespace) -> int:
    """Make an instance from measured RTTs between sites, and demand.

    The format of a file is recognised by its content. RTTs are milliseconds; rows (sources) wait
    for columns (destinations).
    """
    from placement.analysis.data_quality import data_quality
    from placement.io.assemble_instance import (
        assemble,
        check_names,
        check_one_demand,
        read_site_table,
    )
    from placement.io.formats.files import check_file, check_folder, write_file
    from placement.io.instance_folder import save_instance
    from placement.io.merge_clients import merge_clients
    from placement.io.rtt_distributions import pairs_csv

    check_folder(args.output, force=args.force)
    if args.distributions is not None:
        check_file(args.distributions, force=args.force)
    served, gathered = args.rtt[0] == WORD, Gathered()  # the errors of all files are told at once
    for option in () if served else ("preset", *_OF_SERVER):
        words = "an option for placement import prometheus only"
        expected, field = f"placement import {WORD} URL --preset NAME", f"--{option}"
        given = vars(args)[option]
        require(given is None, field.replace("_", "-"), words, given, expected)
    names = types.read_named_texts(_parts(args.site_of), "--site-of", "HOST=SITE")
    own = tuple(_operation(text) for text in args.operation if ":" in text)
    said: list[str] = []
    counts: DemandTable | None = None
    reading = client_reading = sites = None
    with gathered.part():
        if not served:
            check_one_demand(args.counts, args.mix)
    with gathered.part(), gathered.cells():
        if served:
            reading, counts = _served(args, names, said)
        else:
            reading = _rtts(args.rtt, args, names, said, between=True)
        if args.distributions is not None and reading.distributions is None:
            words, expected = "no distributions in the RTTs", "samples, histograms or percentiles"
            place, expected = reading.table.source, f"{expected} of every pair"
            raise refused(place, "--distributions", words, args.distributions, expected)
    with gathered.part(), gathered.cells():
        if args.client_rtt is not None:
            client_reading = _rtts([args.client_rtt], args, {}, said, between=False)
    with gathered.part(), gathered.cells():
        if args.counts is not None:
            counts = _demand(args, names)
    with gathered.part():
        sites = None if args.sites is None else read_site_table(args.sites)
    tables = [None if one is None else one.table for one in (reading, client_reading)]
    if args.client_rtt is None or client_reading is not None:
        with gathered.part():
            check_names(tables[0], counts, client_rtt=tables[1], sites=sites, operations=own)
    gathered.check()
    assert reading is not None  # else there was an error
    instance = assemble(
        reading.table,
        counts=counts,
        mix=args.mix,
        client_rtt=tables[1],
        sites=sites,
        operations=own,
        fill=args.fill,
        intra_site=args.intra_site,
        name=args.name if args.name is not None else Path(args.output).resolve().name,
    )
    if args.merge_clients is not None:
        merged = merge_clients(instance, args.merge_clients)
        instance = merged.instance
        said.append(merged.note)
    quality, missing = data_quality(instance), reading.table.missing(instance.sites)
    manifest = save_instance(instance, args.output, tables=args.tables, force=args.force)
    if args.distributions is not None and reading.distributions is not None:
        write_file(args.distributions, pairs_csv(reading.distributions), force=args.force)
    told = {
        "manifest": str(manifest),
        "fingerprint": instance.fingerprint,
        **{name: len(getattr(instance, name)) for name in ("sites", "clients", "intervals")},
        "provenance": list(instance.provenance),
        "notes": said,
        "quality": _quality_document(quality, missing),
    }
    lines = ["", *map(escape, (*said, *_quality_lines(quality, missing)))]
    page, written = "\n".join([instance_text(instance), *lines]), [f"Written to {manifest}"]
    show_result(args, lambda: told, lambda: page, written=written)
    return exits.FOUND


def _served(
    args: argparse.Namespace, names: Mapping[str, str], said: list[str]
) -> tuple[RttReading, DemandTable | None]:
    """Read a Prometheus server, and its demand unless another is given; add lines to `said`."""
    from placement.prometheus import metrics_server as prometheus

    for option, value in (("--columns", args.columns), ("--unit", args.unit)):
        require(value is None, option, "an option for files only", value, "files")
    expected = f"placement import {WORD} http://HOST:PORT --preset NAME"
    require(len(args.rtt) == 2, WORD, "one URL is required", args.rtt[1:], expected)
    known = " or ".join(_PRESETS)
    require(args.preset is not None, "--preset", "whose metrics", expected=known)
    given = {name: vars(args)[name] for name in _OF_SERVER if vars(args)[name] is not None}
    if "target_label" in given:
        prometheus.label_name(given["target_label"], "--target-label")
    if "ops_query" in given:
        queries = types.read_named_texts(args.ops_query, "--ops-query", "OPERATION=PROMQL")
        given["ops_query"] = queries
    request = prometheus.PrometheusRequest(**given, sites=names)
    server, preset = prometheus.PrometheusServer(args.rtt[1]), prometheus.PRESETS[args.preset]
    reading, counts = prometheus.read_rtts(server, preset, request), None
    said.append(f"{WORD}: " + "; ".join(reading.notes))
    if args.counts is None and args.mix is None:
        counts = prometheus.read_operations(server, preset, request)
        said.append(f"{WORD}: " + "; ".join(counts.notes))
    return dataclasses.replace(reading, table=reading.table.scaled(args.scale)), counts


def _rtts(
    paths: list[str],
    args: argparse.Namespace,
    names: Mapping[str, str],
    said: list[str],
    *,
    between: bool,
) -> RttReading:
    """Read RTT files, `between` sites or from clients, and merge them; add lines to `said`."""
    from placement.io.feeds.pair_samples import merge, renamed, round_trips
    from placement.io.feeds.registry import FeedRequest, read_feed

    roles = _columns(args.columns, ("src", "dst", "rtt", "interval"), "--columns")
    places = (args.measured_from or "", args.table or "", args.rows or "")
    one_way = args.one_way or args.scale == 2
    request = FeedRequest(roles, args.unit, args.decimal, *places, one_way)

    def read(path: str) -> RttReading:
        feed, reading = read_feed(path, args.format, request)
        guessed = " (recognised by its content)" if args.format == "auto" and not roles else ""
        notes = "; ".join((f"format {feed.name}{guessed}", *reading.notes))
        said.append(f"{Path(path).name}: {notes}")
        return reading

    reading = merge(for_each(read, paths), closed=between)
    if args.one_way:
        reading = round_trips(reading)
        said.append(reading.notes[-1])
    reading = renamed(reading, names, "--site-of")
    factor = args.scale
    if not reading.unit_known and args.unit is None and factor == 1:
        factor = _asked_unit(reading)
    return dataclasses.replace(reading, table=reading.table.scaled(factor))


def _asked_unit(reading: RttReading) -> float:
    """Return milliseconds per unit of numbers without a unit; ask where they are no likely ms."""
    from placement.io.feeds.headers import UNITS
    from placement.io.rtt_table import likely_unit

    guess = likely_unit(reading.table)
    if guess is None:
        return 1.0
    unit, largest = guess
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        words = f"RTTs that look like {unit}, and no unit is told"
        expected = f"--unit {unit}, or --unit ms if they are milliseconds"
        raise refused(reading.table.source, "rtt", words, largest, expected)
    print(f"RTTs look like {unit}: the largest is {largest:g}.", file=sys.stderr)
    print(f"Unit ({', '.join(_UNITS)}) [{unit}]: ", end="", file=sys.stderr, flush=True)
    answer = sys.stdin.readline().strip() or unit
    require(answer in _UNITS, "unit", "no unit", answer, " or ".join(_UNITS))
    return UNITS[answer]


def _demand(args: argparse.Namespace, names: Mapping[str, str]) -> DemandTable:
    """Read demand, and print a line about the file."""
    from placement.io.assemble_instance import check_one_database
    from placement.io.demand_tables import DemandRequest, is_standard, read_demand, read_demand_feed
    from placement.io.feeds.headers import DEMAND_ROLES

    columns = _columns(args.count_columns, tuple(DEMAND_ROLES), "--count-columns")
    form = "NAME=OPERATION, or NAME:near=1,relay=0.3"
    maps = _parts(text for text in args.operation if ":" not in text)
    operations = types.read_named_texts(maps, "--operation", form)
    request = DemandRequest(columns, operations, names, args.decimal)
    standard = is_standard(args.counts, request)
    counts = read_demand(args.counts) if standard else read_demand_feed(args.counts, request)
    check_one_database(counts)
    print_notes(args.counts, counts.notes)
    return counts


def _columns(text: str | None, roles: Sequence[str], option: str) -> dict[str, str]:
    """Read ``src=from,dst=to``: role -> column."""
    return types.read_named_texts(_parts([text or ""]), option, "ROLE=COLUMN", known=roles)


def _parts(texts: Iterable[str]) -> list[str]:
    """Return the parts between commas."""
    return [part for text in texts if text for part in text.split(",")]


def _operation(argument: str) -> Operation:
    """Read an operation such as ``audit:near=1,relay=0.3``."""
    from placement.model.operations import Operation

    name, _, rest = argument.rpartition(":")
    trips = types.read_named_numbers(
        rest.split(","), "--operation", "NAME:ROUND_TRIPS=NUMBER,…", known=_ROUND_TRIPS
    )
    near, relay, direct, quorum = (trips.get(key, 0.0) for key in _ROUND_TRIPS)
    return Operation(name.strip(), near, relay, direct, quorum)


# --- quality of the RTTs ---------------------------------------------------------------------

_Missing = tuple[tuple[str, str], ...]


def _quality_lines(quality: DataQuality, missing: _Missing) -> list[str]:
    """Return lines about missing and inconsistent RTTs; one line if there are none."""
    lines = []
    if missing:
        first, several = f"{missing[0][0]} → {missing[0][1]}", "s" * (len(missing) != 1)
        lines.append(f"{len(missing)} pair{several} missing and filled in, such as {first}")
    for pairs, words in (
        (quality.asymmetric, "asymmetric"),
        (quality.detours, "slower than a detour"),
        (quality.faster_than_light, "faster than light"),
    ):
        for one in pairs[:1]:
            ends = f"{one.source} → {one.destination}"
            told = f"{one.rtt:g} ms, {one.reason} {one.against:.4g} ms"
            lines.append(f"{len(pairs)} {words}, such as {ends} ({told})")
    if quality.zero:
        start, end = quality.zero[0]
        words = "one building, or below the resolution of the tool"
        lines.append(f"{len(quality.zero)} of 0 ms, such as {start} → {end} ({words})")
    if not lines:
        lines = ["no pair is missing, asymmetric or slower than a detour"]
        if quality.located:
            lines[0] += ", none is faster than light"
    if not quality.located:
        lines.append("no coordinates, so that light was not compared")
    said = [f"Quality of {quality.pairs} RTTs between sites: " + "; ".join(lines)]
    if missing or quality.doubtful:
        said.append("placement explain PLAN --doubt 20 shows whether these pairs matter")
    return said


def _quality_document(quality: DataQuality, missing: _Missing) -> dict[str, object]:
    """Return all findings for JSON."""

    def rows(pairs: tuple[DoubtfulPair, ...]) -> list[dict[str, object]]:
        return [
            {"source": p.source, "destination": p.destination, "rtt_ms": p.rtt, "than": p.reason,
             "than_ms": p.against}
            for p in pairs
        ]  # fmt: skip

    return {
        "pairs": quality.pairs,
        "missing": [list(pair) for pair in missing],
        "zero": [list(pair) for pair in quality.zero],
        "asymmetric": rows(quality.asymmetric),
        "detours": rows(quality.detours),
        "faster_than_light": rows(quality.faster_than_light) if quality.located else None,
    }
