"""Units of RTTs: what no network has gives a warning that names the pair and both figures."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import placement
from placement import Instance, datasets
from placement.errors import UnitsWarning

LONDON, VIRGINIA, TOKYO = (51.5, -0.1), (38.9, -77.5), (35.7, 139.7)
MS = np.array([[0.0, 75, 210], [75, 0, 150], [210, 150, 0]])


def world(factor: float, *, places: bool = True, own: float = 0.4) -> Instance:
    return Instance(
        sites=("lhr", "iad", "nrt"),
        clients=("lhr", "iad", "nrt"),
        client_rtt=(MS + np.diag([own] * 3)) * factor,
        site_rtt=MS * factor,
        counts=np.ones((3, 5)),
        site_coordinates=np.array([LONDON, VIRGINIA, TOKYO]) if places else None,
        client_coordinates=np.array([LONDON, VIRGINIA, TOKYO]) if places else None,
    )


def warned(factor: float, *, places: bool = True) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        world(factor, places=places)
    assert all(each.category is UnitsWarning for each in caught)
    return [str(each.message) for each in caught]


def test_seconds_are_seen_with_and_without_coordinates() -> None:
    assert warned(1.0) == []
    assert warned(0.001, places=False) == [
        "site_rtt: the median RTT between distinct sites is 0.15 ms; are these seconds? multiply "
        "by 1000"
    ]
    median, sites, clients = warned(0.001)
    assert "0.15 ms" in median
    assert sites == (
        "site_rtt: 6 of 6 RTTs are below the time of light in fibre: from 'iad' to 'nrt' it is "
        "0.15 ms, and light in fibre needs 109 ms for 10,883 km; are these seconds? multiply by "
        "1000"
    )
    assert clients.startswith("client_rtt: 6 of 9 RTTs are below")


def test_one_pair_that_is_too_fast_is_named() -> None:
    rtt = MS.copy()
    rtt[0, 2] = 60.0
    message = (
        r"1 of 6 .*from 'lhr' to 'nrt' it is 60 ms, and light in fibre needs 95\.6 ms for 9,5\d\d "
        "km; are the units and the coordinates right"
    )
    with pytest.warns(UnitsWarning, match=message):
        world(1.0).replace(site_rtt=rtt)


def test_unknown_places_and_neighbours_give_no_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = world(1.0)
        unknown = np.array([LONDON, (np.nan, np.nan), TOKYO])
        rtt = MS.copy()
        rtt[0, 1] = rtt[1, 0] = 3.0
        made.replace(site_rtt=rtt, site_coordinates=unknown)
        # two cities 95 km apart, whose data centres may be side by side
        near = np.array([LONDON, (51.75, -1.26), TOKYO])
        made.replace(site_rtt=rtt, client_rtt=MS, site_coordinates=near, client_coordinates=None)


def test_rtts_by_interval_are_compared_too() -> None:
    varying = np.stack([MS, MS])
    varying[1, 1, 2] = 20.0
    with pytest.warns(UnitsWarning, match="from 'iad' to 'nrt' it is 20 ms"):
        world(1.0).replace(site_rtt=varying, counts=np.ones((2, 3, 5)), intervals=())


@pytest.mark.parametrize("name", datasets.names())
def test_bundled_data_give_no_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        placement.load(name)
