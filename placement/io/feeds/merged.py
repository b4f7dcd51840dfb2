"""RTTs of several files as one table, and hosts under the names of their sites."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from placement.errors import InputError
from placement.io.feeds.registry import RttReading
from placement.io.rtt_distributions import PairTable
from placement.io.rtt_table import RttTable

__all__ = ["merge", "renamed"]


def merge(readings: Sequence[RttReading]) -> RttReading:
    """Return the RTTs of several readings as one.

    Raises
    ------
    InputError
        For a pair with different RTTs in two readings, and for readings with intervals.
    """
    if len(readings) == 1:
        return readings[0]
    tables = [reading.table for reading in readings]
    for table in tables:
        if table.intervals:
            raise InputError(
                "RTTs that vary by interval cannot be combined with other files",
                source=table.source,
                field="interval",
                value=table.intervals[0],
                expected="one file",
            )
    sources = tuple(dict.fromkeys(name for table in tables for name in table.sources))
    destinations = tuple(dict.fromkeys(name for table in tables for name in table.destinations))
    rows, columns = ({name: i for i, name in enumerate(axis)} for axis in (sources, destinations))
    values = np.full((len(sources), len(destinations)), math.nan)
    for table in tables:
        where = np.ix_([rows[a] for a in table.sources], [columns[b] for b in table.destinations])
        part = values[where]
        clash = ~np.isnan(part) & ~np.isnan(table.values) & (part != table.values)
        if clash.any():
            i, j = (int(k) for k in np.argwhere(clash)[0])
            raise InputError(
                "a pair measured twice with different RTTs",
                source=table.source,
                field=f"{table.sources[i]} → {table.destinations[j]}",
                value=float(table.values[i, j]),
                expected=f"{part[i, j]:g}, as before, or one measurement per pair",
            )
        values[where] = np.where(np.isnan(table.values), part, table.values)
    names = tuple(dict.fromkeys(table.source for table in tables))
    provenance = tuple(dict.fromkeys(line for table in tables for line in table.provenance))
    notes = tuple(dict.fromkeys(note for reading in readings for note in reading.notes))
    return RttReading(
        RttTable(", ".join(names), sources, destinations, values, (), provenance),
        _all_distributions(readings),
        all(reading.unit_known for reading in readings),
        notes,
    )


def _all_distributions(readings: Sequence[RttReading]) -> PairTable | None:
    told = [reading.distributions for reading in readings if reading.distributions is not None]
    if len(told) < len(readings) or len({table.percents for table in told}) > 1:
        return None
    pairs = {pair: curve for table in told for pair, curve in table.pairs.items()}
    return PairTable(told[0].source, told[0].percents, pairs)


def renamed(reading: RttReading, names: Mapping[str, str], source: str) -> RttReading:
    """Return a reading with the names of sites in the place of hosts.

    Parameters
    ----------
    reading
        RTTs between hosts.
    names
        Host -> site. Hosts that are not listed keep their names. Where several hosts make one site,
        the RTT of a pair of sites is the median over the pairs of hosts.
    source
        Option or file of the names, for messages.

    Raises
    ------
    InputError
        For a host that the reading does not have.
    """
    if not names:
        return reading
    table = reading.table
    for host in names:
        if host not in table.sources and host not in table.destinations:
            raise InputError(
                "no such host",
                source=source,
                field="host",
                value=host,
                expected="one of "
                + ", ".join(dict.fromkeys((*table.sources, *table.destinations))),
            )
    sources = tuple(names.get(name, name) for name in table.sources)
    destinations = tuple(names.get(name, name) for name in table.destinations)
    rows, columns = tuple(dict.fromkeys(sources)), tuple(dict.fromkeys(destinations))
    values = np.full((*table.values.shape[:-2], len(rows), len(columns)), math.nan)
    for i, a in enumerate(rows):
        from_hosts = [k for k, name in enumerate(sources) if name == a]
        for j, b in enumerate(columns):
            to_hosts = [k for k, name in enumerate(destinations) if name == b]
            cells = table.values[..., from_hosts, :][..., to_hosts]
            cells = cells.reshape(*cells.shape[:-2], -1)
            some = ~np.isnan(cells).all(axis=-1)
            values[..., i, j][some] = np.nanmedian(cells[some], axis=-1)
    merged = len(rows) < len(sources) or len(columns) < len(destinations)
    distributions = reading.distributions
    if merged or distributions is None:
        distributions = None  # several pairs of hosts are no samples of one RTT
    else:
        pairs = {
            (names.get(a, a), names.get(b, b)): curve
            for (a, b), curve in distributions.pairs.items()
        }
        distributions = PairTable(distributions.source, distributions.percents, pairs)
    note = f"{len(names)} hosts were named by site" + (
        "; RTTs are medians over hosts" if merged else ""
    )
    provenance = (*table.provenance, f"Hosts of {Path(table.source).name} were named by site.")
    return RttReading(
        RttTable(table.source, rows, columns, values, table.intervals, provenance),
        distributions,
        reading.unit_known,
        (*reading.notes, note),
    )
