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
from pathlib import Path

import numpy as np

from benchmarks.harness.data_folders import add_folder
from benchmarks.harness.doc_pages import markdown_table
from benchmarks.harness.machine import describe
from benchmarks.harness.result_files import RESULTS, add_results, read_json, read_rows, save_json
from benchmarks.harness.study import Study
from placement.datasets import distance_rtt as geo
from placement.errors import InputError
from placement.support.checks import FloatArray

__all__ = ["measured", "table"]

NETWORKS = {
    "AWS 2025": "aws_cloudping_2025-05_p50",
    "Azure 2025": "azure_2025-06_p50_clean",
    "Google Cloud 2019": "gcp_fantoch_2019-09_avg",
}
APART_KM = 30.0


def measured(here: Path | None, name: str) -> tuple[FloatArray, FloatArray]:
    """Read coordinates and RTTs in ms; a pair missing one way takes the other.

    Parameters
    ----------
    here
        Folder of measured latencies; None: there is none.
    name
        Of the file, without its ending.

    Returns
    -------
    tuple of ndarray
        (latitude, longitude) per site, shape (sites, 2), and RTTs, shape (sites, sites).

    Raises
    ------
    InputError
        When the file is not there.
    """
    if here is None or not (path := here / f"{name}.csv").is_file():
        raise InputError(
            "no such file among the measured latencies",
            source=str(here / f"{name}.csv") if here else f"{name}.csv",
            expected="--latency DIR, a folder that has it",
        )
    sites = read_rows(path.with_suffix(".sites.csv"))
    places = {row["site"]: (row["lat"], row["lon"]) for row in sites}
    cells = {row.pop("site"): row for row in read_rows(path)}
    rtt = np.array([[float(cells[a][b] or "nan") for b in places] for a in places])
    points = np.array(list(places.values()), dtype=np.float64)
    return points, np.where(np.isnan(rtt), rtt.T, rtt)


def _shape(rtt: FloatArray, km: FloatArray) -> list[float]:
    """Share of broken triangles, and three percentiles of the inflation over light in fibre."""
    far = km > APART_KM
    inflation = rtt[far] / (km[far] * geo.FIBRE_MS_PER_1000_KM / 1000)
    closed = rtt.copy()
    np.fill_diagonal(closed, 0.0)
    return [geo.triangle_violations(closed), *np.quantile(inflation, [0.1, 0.5, 0.9]).tolist()]


def table(here: Path | None, draws: int) -> list[dict[str, object]]:
    """Return two lines per network: as measured, and as modelled on its regions."""
    heads = ("broken triangles %", "inflation p10", "median", "p90")
    result: list[dict[str, object]] = []
    for network, name in NETWORKS.items():
        points, rtt = measured(here, name)
        km = geo.great_circle_km(points, points)
        pairs = ~np.eye(len(points), dtype=bool)
        found = []
        for seed in range(draws):
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
            line: dict[str, object] = {"network": label, "median error %": error_percent}
            result.append(line | dict(zip(heads, rounded, strict=True)))
    return result


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    add_folder(parser, "latency")
    parser.add_argument("--draws", type=int, default=30)
    add_results(parser)


def _run_study(asked: argparse.Namespace) -> int:
    """Print and write the table."""
    lines = table(asked.latency, asked.draws)
    for line in lines:
        print("  ".join(f"{'–' if value is None else value}" for value in line.values()))
    about = {"machine": describe(("numpy",)), "draws": asked.draws, "table": lines}
    save_json(asked.results / "rtt_model.json", about)
    return 0


def _report() -> dict[str, str]:
    rows = []
    for name, error, broken, *inflation in (
        line.values() for line in read_json(RESULTS / "rtt_model.json")["table"]
    ):
        known = "–" if error is None else f"{error:.1f} %"
        spread = " / ".join(f"{value:.2f}" for value in inflation)
        rows.append((name, known, f"{broken:.1f} %", spread))
    heads = ("", "median error", "broken triangles", "inflation p10 / median / p90")
    return {"rtt_model.json": markdown_table(heads, rows)}


STUDY = Study(
    __doc__,
    _add_arguments,
    _run_study,
    results=("rtt_model.json",),
    page="docs/datasets.md",
    report=_report,
)
