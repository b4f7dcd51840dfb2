"""Distances against known figures, modelled RTTs against measured clouds, and the page."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placement import datasets
from placement.datasets import distance_rtt as geo
from placement.datasets.distance_rtt import RouteModel
from placement.errors import InputError, MissingDependencyError
from placement.model import distances
from placement.workloads import MIXES
from tests.effort import examples

points = st.lists(st.tuples(st.floats(-90, 90), st.floats(-180, 180)), min_size=1, max_size=6).map(
    np.array
)


def by_cosines(a: np.ndarray, b: np.ndarray) -> float:
    """Great-circle distance by the angle between unit vectors: another formula, for comparison."""
    x, y = (
        np.array(
            [
                np.cos(np.radians(lat)) * np.cos(np.radians(lon)),
                np.cos(np.radians(lat)) * np.sin(np.radians(lon)),
                np.sin(np.radians(lat)),
            ]
        )
        for lat, lon in (a, b)
    )
    return distances.EARTH_RADIUS_KM * float(np.arctan2(np.linalg.norm(np.cross(x, y)), x @ y))


@given(points, points)
def test_distance_agrees_with_the_angle_between_vectors(a, b):
    km = distances.great_circle_km(a, b)
    assert km.shape == (len(a), len(b))
    expected = np.array([[by_cosines(p, q) for q in b] for p in a])
    # near antipodes the haversine loses half of its digits: metres
    np.testing.assert_allclose(km, expected, rtol=1e-9, atol=0.5)


@given(points)
def test_distance_is_a_metric(a):
    km = distances.great_circle_km(a, a)
    assert (np.diag(km) == 0).all()
    np.testing.assert_allclose(km, km.T, rtol=1e-12)
    assert km.max() <= np.pi * distances.EARTH_RADIUS_KM * (1 + 1e-12)
    longer = km[:, :, None] + km[None, :, :]  # i to j to k
    assert (km[:, None, :] <= longer + 1e-3).all()


@pytest.mark.parametrize(
    ("a", "b", "km"),
    [
        ((51.51, -0.13), (40.71, -74.01), 5570),  # London, New York
        ((35.68, 139.69), (-33.87, 151.21), 7820),  # Tokyo, Sydney
        ((0, 0), (0, 180), np.pi * 6371.0088),  # antipodes
        ((-17.7, 179.0), (-17.7, -179.0), 212),  # over the date line
        ((90, 0), (90, 77), 0),  # one pole, two longitudes
    ],
)
def test_known_distances(a, b, km):
    assert distances.great_circle_km([a], [b])[0, 0] == pytest.approx(km, rel=5e-3, abs=1e-6)


@pytest.mark.parametrize("bad", [[(91.0, 0.0)], [(0.0, -181.0)], [(float("nan"), 0.0)]])
def test_points_off_the_globe_are_refused(bad):
    with pytest.raises(InputError, match="origin: point 0 is not on the globe"):
        distances.great_circle_km(bad, [(0, 0)])


def test_points_of_another_shape_are_refused():
    with pytest.raises(InputError, match=r"destination: wrong shape.*expected \(n, 2\)"):
        distances.great_circle_km([(0, 0)], [1.0, 2.0])


@settings(deadline=None, max_examples=examples(50))
@given(points, points, st.integers(0, 2**32))
def test_modelled_rtts_are_sound(sites, clients, seed):
    client_rtt, site_rtt = geo.modelled_rtt(sites, clients, np.random.default_rng(seed))
    assert client_rtt.shape == (len(clients), len(sites))
    assert site_rtt.shape == (len(sites), len(sites))
    assert (np.diag(site_rtt) == 0).all()
    assert (site_rtt == site_rtt.T).all()
    for rtt, km in (
        (client_rtt, distances.great_circle_km(clients, sites)),
        (site_rtt, distances.great_circle_km(sites, sites)),
    ):
        assert np.isfinite(rtt).all()
        # nothing outruns light in fibre; 0.01 ms is the rounding
        assert (rtt >= km * distances.FIBRE_MS_PER_1000_KM / 1000 - 0.01).all()
    again = geo.modelled_rtt(sites, clients, np.random.default_rng(seed))
    assert (again[0] == client_rtt).all()
    assert (again[1] == site_rtt).all()


def test_with_no_detours_nothing_breaks_the_triangle_inequality():
    sites = np.array([(each.lat, each.lon) for each in datasets.regions("gcp")])
    exact = geo.RouteModel(detours=0.0, decimals=12)
    own = geo.RouteModel(detours=1.0, decimals=12)
    client_rtt, metric = geo.modelled_rtt(sites, sites, np.random.default_rng(3), exact)
    _, free = geo.modelled_rtt(sites, sites, np.random.default_rng(3), own)
    assert geo.triangle_violations(metric) == 0
    assert geo.triangle_violations(free) > 0.05, "relaying is what makes the difference"
    assert (metric <= free + 1e-9).all()
    # no client is better served by way of another site, either
    relayed = (client_rtt[:, :, None] + metric[None, :, :]).min(axis=1)
    np.testing.assert_allclose(np.minimum(client_rtt, relayed), client_rtt, atol=1e-6)


def test_neighbours_share_their_routes():
    """Inflations of Frankfurt and Zurich to far places go together; those of far places do not."""
    places = np.array([(50.11, 8.68), (47.37, 8.54), (-33.87, 151.21), (35.68, 139.69)])
    model = geo.RouteModel(detours=1.0, floor=0.0)
    every = np.array(
        [
            geo.modelled_rtt(places, places[:0], np.random.default_rng(seed), model)[1]
            for seed in range(400)
        ]
    )
    logs = np.log(every[:, :2, 2:])
    near = np.corrcoef(logs[:, 0, 0], logs[:, 1, 0])[0, 1]  # Frankfurt-Sydney, Zurich-Sydney
    far = np.corrcoef(logs[:, 0, 0], logs[:, 1, 1])[0, 1]  # Frankfurt-Sydney, Zurich-Tokyo
    assert near > 0.6
    assert abs(far) < 0.25
    # every pair has the same spread, neighbours among themselves too
    assert logs[:, 0, 0].std() == pytest.approx(model.spread, rel=0.15)
    assert np.log(every[:, 0, 1]).std() == pytest.approx(model.spread, rel=0.15)


@pytest.mark.parametrize("provider", ["aws", "gcp", "azure"])
def test_inflation_and_triangles_are_those_of_real_networks(provider):
    sites = np.array([(each.lat, each.lon) for each in datasets.regions(provider)])
    km = distances.great_circle_km(sites, sites)
    far = km > 30
    broken, quantiles = [], []
    for seed in range(10):
        _, rtt = geo.modelled_rtt(sites, sites[:0], np.random.default_rng(seed))
        broken.append(geo.triangle_violations(rtt))
        light = km[far] * distances.FIBRE_MS_PER_1000_KM / 1000
        quantiles.append(np.quantile(rtt[far] / light, [0.1, 0.5, 0.9]))
    assert 0.01 <= min(broken) <= max(broken) <= 0.06
    p10, median, p90 = np.mean(quantiles, axis=0)
    assert 1.2 <= p10 <= 1.45
    assert 1.55 <= median <= 1.85
    assert 2.3 <= p90 <= 3.0


@pytest.fixture(scope="module")
def measured() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Coordinates, RTTs and distances in km of a measured cloud (Azure, 48 regions)."""
    try:
        instance = datasets.load("azure")
    except MissingDependencyError as error:
        pytest.skip(str(error))
    places = np.asarray(instance.site_coordinates)
    rtt = np.array(instance.site_rtt)
    return places, rtt, distances.great_circle_km(places, places)


def test_the_model_fits_a_measured_cloud(measured):
    places, rtt, km = measured
    pairs = km > 30

    def median_error(model: np.ndarray) -> float:
        return float(np.median(np.abs(model - rtt)[pairs] / rtt[pairs]))

    assert median_error(geo.RouteModel().expected_ms(km)) < 0.19
    errors = [
        median_error(geo.modelled_rtt(places, places[:0], np.random.default_rng(seed))[1])
        for seed in range(20)
    ]
    assert 0.15 < np.mean(errors) < 0.25


def test_the_short_line_beats_the_long_one_on_near_pairs(measured):
    _, rtt, km = measured
    near = (km > 30) & (km < 1500)
    model = geo.RouteModel()
    error = np.median(np.abs(model.expected_ms(km) - rtt)[near] / rtt[near])
    plain = np.median(np.abs(model.fit(km) - rtt)[near] / rtt[near])
    assert error < 0.25
    assert error < plain / 2


# Least published RTT in ms of a region to another one: AWS, medians of cloudping.co, May 2025; GCP,
# means of Enes et al. (EuroSys 2020), September 2019. A misplaced region would need faster light.
NEAREST = {
    "aws": (
        ("af-south-1", "eu-south-2", 134.76),
        ("ap-east-1", "ap-southeast-1", 37.59),
        ("ap-northeast-1", "ap-northeast-3", 9.97),
        ("ap-northeast-2", "ap-northeast-3", 25.09),
        ("ap-south-1", "ap-south-2", 27.22),
        ("ap-southeast-2", "ap-southeast-4", 13.27),
        ("ap-southeast-3", "ap-southeast-1", 18.84),
        ("ca-central-1", "us-east-1", 16.19),
        ("ca-west-1", "us-west-2", 21.76),
        ("eu-central-1", "eu-central-2", 8.86),
        ("eu-north-1", "eu-central-1", 22.9),
        ("eu-south-1", "eu-central-2", 7.13),
        ("eu-west-1", "eu-west-2", 13.92),
        ("eu-west-2", "eu-west-3", 11.02),
        ("il-central-1", "eu-central-2", 49.95),
        ("me-central-1", "me-south-1", 16.32),
        ("mx-central-1", "us-east-2", 51.07),
        ("sa-east-1", "us-east-1", 115.39),
        ("us-east-1", "us-east-2", 14.67),
        ("us-west-1", "us-west-2", 21.93),
    ),
    "gcp": (
        ("asia-east1", "asia-east2", 18.91),
        ("asia-northeast1", "asia-northeast2", 8.61),
        ("asia-south1", "asia-southeast1", 59.92),
        ("australia-southeast1", "asia-southeast1", 91.75),
        ("europe-north1", "europe-west4", 30.63),
        ("europe-west1", "europe-west4", 7.24),
        ("europe-west2", "europe-west4", 9.71),
        ("europe-west3", "europe-west6", 7.51),
        ("northamerica-northeast1", "us-east4", 14.35),
        ("southamerica-east1", "us-east1", 117.77),
        ("us-central1", "us-east4", 25.06),
        ("us-west1", "us-west2", 25.01),
    ),
}


@pytest.mark.parametrize("provider", sorted(NEAREST))
def test_no_measurement_outruns_light_between_our_coordinates(provider):
    known = {each.id: (each.lat, each.lon) for each in datasets.regions(provider)}
    for a, b, rtt in NEAREST[provider]:
        km = float(distances.great_circle_km([known[a]], [known[b]])[0, 0])
        assert rtt > km * distances.FIBRE_MS_PER_1000_KM / 1000, (a, b)


def test_no_measurement_of_a_whole_cloud_outruns_light(measured):
    _, rtt, km = measured
    pairs = km > 100
    assert (rtt[pairs] > km[pairs] * distances.FIBRE_MS_PER_1000_KM / 1000).all()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("local_ms", -1.0),
        ("near_ms_per_1000_km", float("nan")),
        ("spread", float("inf")),
        ("floor", -0.1),
        ("correlation_km", 0.0),
        ("own", 1.5),
        ("detours", -0.1),
    ],
)
def test_parameters_out_of_range_are_refused(field, value):
    with pytest.raises(InputError, match=field):
        geo.RouteModel(**{field: value})


def test_triangle_violations_counts_what_a_loop_counts():
    rng = np.random.default_rng(5)
    rtt = rng.integers(1, 9, (7, 7)).astype(float)
    n, broken = 7, 0
    for i in range(n):
        for j in range(n):
            for k in range(n):
                if len({i, j, k}) == 3:
                    broken += rtt[i, k] > rtt[i, j] + rtt[j, k]
    assert geo.triangle_violations(rtt) == broken / (n * (n - 1) * (n - 2))
    assert broken > 0
    assert geo.triangle_violations(rtt[:2, :2]) == 0


PAGE = Path(__file__).resolve().parents[2] / "docs/datasets.md"


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text(encoding="utf-8")


def test_the_code_runs(page):
    blocks = re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL)
    assert len(blocks) == 2
    for code in blocks:
        names: dict[str, object] = {}
        exec(compile(code, str(PAGE), "exec"), names)
        assert len(names) > 2
    assert names["instance"].counts.shape == (672, 60, 5)


@pytest.mark.parametrize("name", datasets.names())
def test_the_table_of_data_sets_counts_right(page, name):
    try:
        instance = datasets.load(name)
    except MissingDependencyError as error:
        pytest.skip(str(error))
    row = next(line for line in page.splitlines() if line.startswith(f"| `{name}` |"))
    _, _, sites, clients, rtts, levels, _ = (cell.strip() for cell in row.split("|"))
    assert re.match(rf"{len(instance.sites)} ", sites)
    assert re.search(rf"\b{len(instance.clients)} (cities|regions)", clients)
    assert levels == ", ".join(instance.levels[1:])
    assert rtts.strip("*") in instance.provenance[0]


def test_the_table_of_mixes_is_that_of_the_package(page):
    for name, per_cent in MIXES.items():
        row = next(line for line in page.splitlines() if line.strip().startswith(f"| {name} |"))
        assert [float(cell) for cell in row.split("|")[2:7]] == list(per_cent)


def test_the_distance_model_is_that_of_the_package(page):
    model = RouteModel()
    line = (
        f"min({model.local_ms:g} + {model.near_ms_per_1000_km:g} x, "
        f"{model.fit.intercept_ms:g} + {model.fit.slope_ms_per_1000_km:g} x)"
    )
    assert line in page
    assert f"log standard deviation {model.spread:g}" in page
    assert f"below {model.floor:g} times light" in page
    assert model.detours == 1 / 5
    assert "except for a fifth of the pairs" in page
