"""The bundled data sets as instances."""

from __future__ import annotations

import numpy as np
import pytest

import placement
from placement import datasets
from placement.datasets import distance_rtt as geo
from placement.datasets import modelled
from placement.errors import InputError
from placement.model import distances
from placement.model.instance import Instance
from placement.model.operations import STANDARD_OPERATIONS

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
        modelled.domains_of(datasets.regions("aws"), ("planet",))


@pytest.mark.parametrize("seed", [-1, 1.5, "x", True])
def test_seeds_are_checked(seed):
    with pytest.raises(InputError, match="seed: "):
        datasets.load("world27", seed=seed)
