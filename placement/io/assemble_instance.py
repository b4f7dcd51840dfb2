"""Instance from imported tables: clients, diagonal, demand."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from placement.errors import Gathered, raise_all, refused, require
from placement.io.demand_tables import DemandTable, read_demand
from placement.io.feeds.registry import Content
from placement.io.formats.column_reader import INTERVAL, Labelled, check_known
from placement.io.formats.tables import Table
from placement.io.instance_folder import read_sites
from placement.io.rtt_table import Fill, RttTable
from placement.model.instance import Instance
from placement.model.operations import NAMED_OPERATIONS, STANDARD_OPERATIONS, Operation
from placement.support.checks import FloatArray, number, suggest


@dataclass(frozen=True, eq=False)
class SiteTable:
    """Candidate sites: the table, and the names, coordinates and domains in it."""

    table: Table
    names: tuple[str, ...]
    coordinates: FloatArray | None
    domains: dict[str, tuple[str | None, ...]]


def read_site_table(path: str | os.PathLike[str]) -> SiteTable:
    """Read a table of sites; errors as :func:`placement.io.instance_folder.read_sites`."""
    (table, *_) = Content.of(path).blocks
    found = read_sites(table, None)
    require(found[0], "", "no sites", expected="at least one row", source=table.source)
    return SiteTable(table, *found)


def read_counts(path: str | os.PathLike[str]) -> DemandTable:
    """Read demand: wide (client, one column per operation) or long (client, operation, count).

    A column ``interval`` splits it over time: oldest first where the labels are times or numbers,
    as :func:`placement.io.demand_tables.read_demand` describes, which reads the table.

    Raises
    ------
    InputError
        For anything but counts, the same cell given twice, a missing row of a wide table, several
        databases.
    """
    demand = read_demand(path)
    check_one_database(demand)
    return demand


def check_one_database(demand: DemandTable) -> None:
    """Refuse demand of several databases."""
    if len(demand.databases) > 1:
        words = "demand of several databases"
        expected = "rows of one database; replay takes several"
        raise refused(demand.source, "database", words, ", ".join(demand.databases[:2]), expected)


def assemble(
    rtt: RttTable,
    *,
    counts: DemandTable | None = None,
    mix: str | None = None,
    client_rtt: RttTable | None = None,
    sites: str | os.PathLike[str] | SiteTable | None = None,
    operations: tuple[Operation, ...] = (),
    fill: Fill = "none",
    intra_site: float = 1.0,
    name: str = "instance",
    provenance: tuple[str, ...] = (),
) -> Instance:
    """Make an instance of imported tables.

    Parameters
    ----------
    rtt
        Between sites: sources wait for destinations. What it says about a site and itself goes to
        the client that sits there, and the diagonal of ``site_rtt`` becomes 0.
    counts
        Demand, see :func:`read_counts`; exactly one of it and `mix` is given.
    mix
        Name of an operation mix, for the same demand of every client.
    client_rtt
        From clients to sites; None: there is a client in every site, with the RTTs of the site.
    sites
        A table of sites with coordinates and failure domains; also says which sites of `rtt` are
        candidates, and their order.
    operations
        Operations of one's own that columns of the counts name, beside
        :data:`placement.model.operations.NAMED_OPERATIONS`.
    fill
        What is done about missing pairs.
    intra_site
        RTT in ms of a client to the site it sits in, where the table has no value.
    name, provenance
        Of the instance.

    Raises
    ------
    InputError
        For anything missing, unknown, or contradictory.
    """
    check_one_demand(counts, mix)
    sentences = [*rtt.provenance, *(client_rtt.provenance if client_rtt is not None else ())]
    listed = read_site_table(sites) if isinstance(sites, (str, os.PathLike)) else sites
    check_names(rtt, counts, client_rtt=client_rtt, sites=listed, operations=operations)
    names = _names(rtt) if listed is None else listed.names
    coordinates = None if listed is None else listed.coordinates
    clients = names if client_rtt is None else client_rtt.sources
    if mix is not None:  # the same demand of every client
        from placement.workloads.fleets import mix_shares

        kinds_of_mix = tuple(operation.name for operation in STANDARD_OPERATIONS)
        each = np.tile(mix_shares(mix) * 1000.0, (1, 1, len(clients), 1))
        counts = DemandTable("", (), (), clients, kinds_of_mix, each, sparse=False)
    assert counts is not None  # one of counts and mix was given
    kinds = _operations(counts, operations)
    left_out = [site for site in rtt.sources if site not in set(names)]
    if left_out:
        shown = ", ".join(left_out[:5]) + (", …" if len(left_out) > 5 else "")
        sentences.append(f"{len(left_out)} measured sites are no candidates: {shown}.")
    gathered = Gathered()
    with gathered.part():
        between, filled = rtt.between(names, names, fill=fill, diagonal=False)
        sentences.extend(filled)
    if client_rtt is not None:
        with gathered.part():
            to_sites, filled = client_rtt.between(clients, names, fill=fill)
            sentences.extend(filled)
    with gathered.part():
        values = _counts(counts, clients)
        periods, values = _periods(rtt, client_rtt, counts.intervals, values, assumed=bool(mix))
    gathered.check()
    if client_rtt is None:
        to_sites = _clients_in_sites(between, names, number(intra_site, "intra_site"), sentences)
    else:
        if rtt.source != client_rtt.source and np.nan_to_num(_diagonal(between)).any():
            sentences.append("The measured RTTs of sites to themselves were replaced by 0.")
    site_rtt = between.copy()
    index = np.arange(len(names))
    site_rtt[..., index, index] = 0.0
    if mix is not None:
        sentences.append(
            f"Demand is assumed, not measured: every client issues as much as any other, with the "
            f"operation mix {mix!r}."
        )
    if counts.source:
        name_of = Path(counts.source).name
        sentences.append(f"Demand was imported from {name_of}.")
        sentences.extend(f"Demand of {name_of}: {note}." for note in counts.notes)
    return Instance(
        sites=names,
        clients=clients,
        client_rtt=_by_interval(to_sites, client_rtt or rtt, periods),
        site_rtt=_by_interval(site_rtt, rtt, periods),
        counts=values,
        operations=kinds,
        domains={} if listed is None else listed.domains,
        intervals=periods,
        site_coordinates=coordinates,
        client_coordinates=coordinates if client_rtt is None else None,
        name=name,
        provenance=(*provenance, *sentences),
    )


def check_one_demand(counts: object, mix: object) -> None:
    """Refuse both or none of a table of counts and the name of an operation mix."""
    words = "no demand is given" if counts is None else "demand is given twice"
    expected = "either a table of counts (--counts), or the name of an operation mix (--mix) for "
    expected += "the same demand of every client"
    require((counts is None) != (mix is None), "counts", words, expected=expected)


def check_names(
    rtt: RttTable | None,
    counts: DemandTable | None,
    *,
    client_rtt: RttTable | None,
    sites: SiteTable | None,
    operations: tuple[Operation, ...],
) -> None:
    """Refuse names that stand in one table and not in the others, all such names together.

    None stands for a table that is not given, or that could not be read; the tables are those of
    :func:`assemble`.
    """
    gathered = Gathered()
    clients: tuple[str, ...] = ()
    if rtt is not None:
        known, clients = {*_names(rtt)}, _names(rtt)
        if sites is not None:
            others = sorted(known - {*sites.names})
            stray = [(i, site) for i, site in enumerate(sites.names) if site not in known]
            for i, site in stray:
                expected = suggest(site, others, f"a site of {rtt.source}")
                place, field = sites.table.at(i), sites.table.columns[0]
                gathered.add(refused(place, field, "unknown site", site, expected))
            clients = clients if stray else sites.names
        for site in () if client_rtt is None else client_rtt.destinations:
            if client_rtt is not None and site not in set(rtt.sources):
                words, where = f"a site of {rtt.source}", client_rtt.source
                expected = suggest(site, rtt.sources, words)
                gathered.add(refused(where, "destination", "unknown site", site, expected))
    clients = clients if client_rtt is None else client_rtt.sources
    if counts is not None:
        with gathered.part():
            _operations(counts, operations)
        if clients:
            lacks = [name for name in clients if name not in set(counts.clients)]
            with gathered.part():
                check_known(counts.source, "client", counts.clients, clients, lacks)
    gathered.check()


def _names(rtt: RttTable) -> tuple[str, ...]:
    """Return the sites of RTTs; one that is on one side only has missing pairs."""
    return tuple(dict.fromkeys([*rtt.sources, *rtt.destinations]))


def _diagonal(values: FloatArray) -> FloatArray:
    return np.diagonal(values, axis1=-2, axis2=-1)


def _clients_in_sites(
    between: FloatArray, names: tuple[str, ...], intra_site: float, sentences: list[str]
) -> FloatArray:
    """RTTs of a client in every site: the RTTs of the site, and the measured diagonal."""
    measured = _diagonal(between)
    missing = np.isnan(measured)
    result = between.copy()
    index = np.arange(len(names))
    result[..., index, index] = np.where(missing, intra_site, measured)
    sentence = "Clients sit in the sites and have their RTTs"
    if missing.all():
        sentence += f"; within a site, {intra_site:g} ms is assumed"
    elif missing.any():
        sites = int(missing.reshape(-1, len(names)).any(axis=0).sum())
        sentence += f"; within {sites} sites no value was given, and {intra_site:g} ms is assumed"
    else:
        sentence += "; within a site, what was measured there"
    sentences.append(sentence + ".")
    return result


def _operations(table: DemandTable, operations: tuple[Operation, ...]) -> tuple[Operation, ...]:
    kinds = {kind.name: kind for kind in (*NAMED_OPERATIONS, *operations)}
    expected = "one of " + ", ".join(kinds) + "; operations=… (--operation) defines others"
    raise_all(
        [
            refused(table.source, "operation", "unknown operation", column, expected)
            for column in table.operations
            if column not in kinds
        ]
    )
    return tuple(kinds[column] for column in table.operations)


def _counts(counts: DemandTable, clients: tuple[str, ...]) -> FloatArray:
    """Return the counts of the clients in their order; a silent client of a sparse table has 0."""
    silent = [c for c in clients if c not in set(counts.clients)] if counts.sparse else []
    values = np.concatenate(
        [counts.counts[0], np.zeros((len(counts.counts[0]), len(silent), len(counts.operations)))],
        axis=1,
    )
    rows = (*counts.clients, *silent)
    table = Labelled(counts.source, counts.intervals, rows, counts.operations, values)
    ordered = table.ordered(counts.intervals, ("client", clients), ("operation", table.columns))
    return ordered if counts.intervals else ordered[0]


def _periods(
    rtt: RttTable,
    client_rtt: RttTable | None,
    intervals: tuple[str, ...],
    values: FloatArray,
    *,
    assumed: bool,
) -> tuple[tuple[str, ...], FloatArray]:
    """Intervals of the instance; assumed demand is the same in every interval of the RTTs."""
    for table in (rtt, client_rtt):
        if table is None or not table.intervals:
            continue
        if not intervals and assumed:
            intervals = table.intervals
            values = np.broadcast_to(values, (len(intervals), *values.shape))
        if set(table.intervals) != set(intervals):
            stray = sorted(set(table.intervals) ^ set(intervals))
            words = "RTTs and demand have different intervals"
            raise refused(table.source, INTERVAL, words, stray[0], "the same intervals in both")
    return intervals, values


def _by_interval(values: FloatArray, table: RttTable, periods: tuple[str, ...]) -> FloatArray:
    if not table.intervals:
        return values
    place = {label: i for i, label in enumerate(table.intervals)}
    return values[[place[label] for label in periods]]
