"""The bundled data sets as instances."""

from __future__ import annotations

import numpy as np
import pytest

import placement
from placement import datasets
from placement.datasets import distance_rtt as geo
from placement.datasets import modelled
from placement.datasets import modelled as demand
from placement.errors import InputError
from placement.model.instance import Instance
from placement.model.operations import STANDARD_OPERATIONS
from placement.workloads import MIXES, Clients, mix_shares

MODELLED = ("world27", "aws", "gcp")


@pytest.fixture(scope="module", params=MODELLED)
def instance(request) -> Instance:
    return datasets.load(request.param)


def test_names():
    assert datasets.names() == ("world27", "azure", "aws", "gcp")
    for name in datasets.names():
        assert "RTTs" in datasets.describe(name)


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
    sites, clients = modelled.world27_sites(), modelled.world27_cities()
    made = modelled.modelled("world27", sites, clients, levels=("country", "continent", "provider"))
    stored = modelled.world27()
    assert made.keys() == stored.keys()
    arrays = {"client_rtt", "site_rtt", "counts", "site_coordinates", "client_coordinates"}
    for name in made.keys() - arrays:
        assert made[name] == stored[name], name
    np.testing.assert_array_equal(made["counts"], stored["counts"])
    for name in ("client_rtt", "site_rtt"):  # the sine of another C library may differ
        np.testing.assert_allclose(stored[name], made[name], rtol=1e-12)


def test_world27_clients_are_spread():
    rows = modelled.world27_cities()
    countries = [row.country for row in rows]
    assert max(countries.count(each) for each in countries) <= 4
    continents = [row.continent for row in rows]
    assert min(continents.count(each) for each in datasets.CONTINENTS) >= 5
    assert [row.users for row in rows] == sorted((row.users for row in rows), reverse=True)


def test_rtts_are_modelled_and_say_so(instance):
    text = " ".join(instance.provenance)
    assert "RTTs are modelled, not measured" in text
    assert "Demand is synthetic" in text
    assert "seed 0" in text
    assert 0.01 <= geo.triangle_violations(instance.site_rtt) <= 0.06
    assert (instance.site_rtt == instance.site_rtt.T).all()
    km = geo.great_circle_km(instance.client_coordinates, instance.site_coordinates)
    assert (instance.client_rtt >= km / 100 - 0.01).all()
    assert np.corrcoef(km.ravel(), instance.client_rtt.ravel())[0, 1] > 0.8
    # nobody is further from the closest region than a continent's width
    assert instance.client_rtt.min(axis=1).max() < 150


def test_country_is_inside_continent(instance):
    inside: dict[str | None, str | None] = {}
    for country, continent in zip(
        instance.labels("country"), instance.labels("continent"), strict=True
    ):
        assert inside.setdefault(country, continent) == continent


def test_the_demand_is_the_mix_it_says(instance):
    shares = instance.counts.sum(axis=(0, 1)) / instance.counts.sum()
    np.testing.assert_allclose(shares, mix_shares("social"), atol=2e-3)
    assert (instance.counts == np.round(instance.counts)).all()
    assert instance.counts.sum() == pytest.approx(48 * demand.RATE, rel=0.5)


def test_demand_goes_with_internet_users():
    world = datasets.load("world27")
    rows = modelled.world27_cities()
    assert tuple(row.city for row in rows) == world.clients
    weight = np.array([row.users**0.7 for row in rows])
    share = world.counts.sum(axis=(0, 2)) / world.counts.sum()
    ratio = share / (weight / weight.sum())
    assert np.abs(np.log(ratio)).max() < 0.25  # the noise of one day
    assert Clients.from_cities(rows).names == world.clients


def test_evening_comes_to_each_city_in_its_turn():
    world = datasets.load("world27")
    hours = np.arange(48) / 2 + 0.25
    for city, offset in (("Tokyo", 9), ("London", 0), ("New York", -4), ("Sydney", 11)):
        series = world.counts[:, world.client_index(city)].sum(axis=1)
        angle = np.angle((series * np.exp(2j * np.pi * hours / 24)).sum())
        local = (angle * 24 / (2 * np.pi) + offset) % 24
        # the first harmonic of the consumers' curve crests some hours before its peak at 21 h
        assert 15.5 < local < 20.5, (city, local)


def test_seed_changes_the_demand_and_not_the_network():
    one, same, other = (datasets.load("world27", seed=seed) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    assert (one.counts != other.counts).any()
    assert (one.client_rtt == other.client_rtt).all()
    assert (one.site_rtt == other.site_rtt).all()


@pytest.mark.parametrize("mix", MIXES)
def test_every_mix_can_be_chosen(mix):
    world = datasets.load("world27", mix=mix)
    shares = world.counts.sum(axis=(0, 1)) / world.counts.sum()
    np.testing.assert_allclose(shares, mix_shares(mix), atol=2e-3)
    assert mix in " ".join(world.provenance)


def test_the_public_face_loads_by_name():
    assert placement.load("world27") == datasets.load("world27")
    assert placement.load("gcp", mix="ledger", seed=4) == datasets.load("gcp", mix="ledger", seed=4)


def test_unknown_level_is_refused():
    with pytest.raises(InputError, match="unknown failure-domain level: got 'planet'"):
        modelled.domains_of(datasets.regions("aws"), ("planet",))


def test_gather_adds_up():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 9, (3, 6, 2)).astype(float)
    owner = np.array([0, 2, 2, 0, 3, 2])
    total = demand.gather(counts, owner, 4)
    assert total.shape == (3, 4, 2)
    for i in range(4):
        assert (total[:, i] == counts[:, owner == i].sum(axis=1)).all()
    assert not total[:, 1].any()


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True])
def test_seeds_are_checked(seed):
    with pytest.raises(InputError, match="seed: "):
        datasets.load("world27", seed=seed)
