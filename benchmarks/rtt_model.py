"""Agreement of RTTs modelled from distance with measured RTTs.

    python -m benchmarks run rtt_model                  prints the table of docs/datasets.md
    python -m benchmarks run rtt_model --draws 100

Three measured matrices (from the folder that ``--latency`` names): AWS regions and Azure
regions of 2025, Google Cloud regions of 2019. On the coordinates of each,
`placement.datasets.distance_rtt` draws RTTs; a line gives the mean over the draws of the median
relative error over the pairs of sites, the share of ordered triples (i, j, k) with RTT(i, k) >
RTT(i, j) + RTT(j, k), and the 10th, 50th and 90th percentile of RTT over the time of light in
fibre, for pairs more than 30 km apart.

Writes results/rtt_model.json in the folder of the benchmarks. Seeds are 0 to draws − 1.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.harness.results import Row, markdown_table, measured_file, read_json, read_rows
from benchmarks.harness.study import Study
from benchmarks.harness.tier3_worlds import read_matrix
from placement.datasets import distance_rtt as geo
from placement.model import distances
from placement.support.checks import FloatArray

NETWORKS = {
    "AWS 2025": "aws_cloudping_2025-05_p50",
    "Azure 2025": "azure_2025-06_p50_clean",
    "Google Cloud 2019": "gcp_fantoch_2019-09_avg",
}
APART_KM = 30.0


def measured(here: Path | None, name: str) -> tuple[FloatArray, FloatArray]:
    """Read (latitude, longitude) per site, shape (sites, 2), and RTTs in ms, (sites, sites)."""
    path = measured_file(here, f"{name}.csv")
    sites = read_rows(path.with_suffix(".sites.csv"))
    places = {row["site"]: (float(row["lat"]), float(row["lon"])) for row in sites}
    names, rtt = read_matrix(path)
    order = [names.index(site) for site in places]
    return np.array(list(places.values())), rtt[np.ix_(order, order)]


def _shape(rtt: FloatArray, km: FloatArray) -> list[float]:
    """Share of broken triangles, and three percentiles of the inflation over light in fibre."""
    far = km > APART_KM
    inflation = rtt[far] / (km[far] * distances.FIBRE_MS_PER_1000_KM / 1000)
    closed = rtt.copy()
    np.fill_diagonal(closed, 0.0)
    return [geo.triangle_violations(closed), *np.quantile(inflation, [0.1, 0.5, 0.9]).tolist()]


def _table(options: argparse.Namespace) -> Iterator[Row]:
    """Yield two lines per network: as measured, and as modelled on its regions."""
    heads = ("broken triangles %", "inflation p10", "median", "p90")
    for network, name in NETWORKS.items():
        points, rtt = measured(options.latency, name)
        km = distances.great_circle_km(points, points)
        pairs = ~np.eye(len(points), dtype=bool)
        found = []
        for seed in range(options.draws):
            _, drawn = geo.modelled_rtt(points, points[:0], np.random.default_rng(seed))
            error = np.median(np.abs(drawn[pairs] / rtt[pairs] - 1))
            found.append([100 * float(error), *_shape(drawn, km)])
        own = _shape(rtt, km)
        mean = np.mean(found, axis=0)
        for label, error_percent, numbers in (
            (f"{network}, measured", None, own),
            ("modelled on its regions", round(float(mean[0]), 1), mean[1:].tolist()),
        ):
            rounded = [round(100 * numbers[0], 1), *(round(n, 2) for n in numbers[1:])]
            line: Row = {"network": label, "median error %": error_percent}
            yield line | dict(zip(heads, rounded, strict=True))


def _report() -> dict[str, str]:
    rows = []
    for name, error, broken, *inflation in (
        line.values() for line in read_json(STUDY.path)["table"]
    ):
        known = "–" if error is None else f"{error:.1f} %"
        spread = " / ".join(f"{value:.2f}" for value in inflation)
        rows.append((name, known, f"{broken:.1f} %", spread))
    heads = ("", "median error", "broken triangles", "inflation p10 / median / p90")
    return {"rtt_model.json": markdown_table(heads, rows)}


STUDY = Study(
    "rtt_model",
    {"table": _table},
    {"draws": 30},
    folders=("latency",),
    description=__doc__,
    page="docs/datasets.md",
    report=_report,
)
