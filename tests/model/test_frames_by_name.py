"""pandas tables go by name in the constructor and in `replace`, or are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import placement
from placement import Instance, Prices, Problem
from placement.errors import InputError
from placement.quorumstore import QuorumProblem

SITES, CLIENTS = ("a", "b"), ("x", "y", "z")
KINDS = ("weak_read", "bounded_read", "strong_read", "single_group", "multi_group")
CLIENT_RTT = np.array([[10.0, 90.0], [80.0, 20.0], [30.0, 60.0]])
SITE_RTT = np.array([[0.0, 70.0], [75.0, 0.0]])
COUNTS = np.arange(15.0).reshape(3, 5)
WORLD = Instance(SITES, CLIENTS, CLIENT_RTT, SITE_RTT, COUNTS)


def frame(values: np.ndarray, rows: tuple[str, ...], columns: tuple[str, ...]) -> pd.DataFrame:
    """Rows and columns in another order than the instance has."""
    return pd.DataFrame(values, list(rows), list(columns)).iloc[::-1, ::-1]


def test_counts_go_by_name() -> None:
    counts = frame(COUNTS, CLIENTS, KINDS)
    assert WORLD.replace(counts=counts) == WORLD
    leaders = {
        placement.solve(Problem(world, replicas=1, voters=1)).leader
        for world in (WORLD, WORLD.replace(counts=counts))
    }
    assert len(leaders) == 1


def test_every_table_of_an_instance_goes_by_name() -> None:
    prices = Prices(np.array([1.0, 2.0]), np.array([[0.0, 3.0], [4.0, 0.0]]))
    places = np.array([[1.0, 2.0], [3.0, 4.0]])
    level = {"country": ("A", None)}
    arrays = WORLD.replace(prices=prices, site_coordinates=places, domains=level)
    tables = Instance(
        SITES,
        CLIENTS,
        frame(CLIENT_RTT, CLIENTS, SITES),
        frame(SITE_RTT, SITES, SITES),
        frame(COUNTS, CLIENTS, KINDS),
        prices=Prices(
            pd.Series([2.0, 1.0], ["b", "a"]), frame(np.asarray(prices.transfer), SITES, SITES)
        ),
        site_coordinates=frame(places, SITES, ("lat", "lon")),
        domains={"country": pd.Series([None, "A"], ["b", "a"])},
    )
    assert tables == arrays
    np.testing.assert_array_equal(tables.site_coordinates, places)
    assert dict(tables.domains) == level


def test_intervals_go_by_name() -> None:
    counts = np.stack([COUNTS, COUNTS + 100])
    world = WORLD.replace(counts=counts, intervals=("old", "new"))
    blocks = {"new": frame(counts[1], CLIENTS, KINDS), "old": frame(counts[0], CLIENTS, KINDS)}
    assert world.replace(counts=pd.concat(blocks)) == world
    rtt = np.stack([SITE_RTT, SITE_RTT * 2])
    blocks = {"new": frame(rtt[1], SITES, SITES), "old": frame(rtt[0], SITES, SITES)}
    assert world.replace(site_rtt=pd.concat(blocks)) == world.replace(site_rtt=rtt)
    assert Instance(SITES, CLIENTS, CLIENT_RTT, SITE_RTT, pd.concat(
        {"old": frame(counts[0], CLIENTS, KINDS), "new": frame(counts[1], CLIENTS, KINDS)}
    )) == world  # fmt: skip


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": pd.DataFrame(COUNTS)}, "counts: not a name: got 0"),
        ({"counts": frame(COUNTS, ("x", "y", "w"), KINDS)}, "1 of 3 clients missing: got 'z'"),
        ({"counts": frame(COUNTS, CLIENTS, KINDS).rename(columns={"weak_read": "reads"})},
         "1 of 5 operations missing: got 'weak_read'"),
        ({"counts": pd.DataFrame(np.ones((4, 5)), [*CLIENTS, "w"], list(KINDS))},
         "unknown client: got 'w'"),
        ({"site_rtt": frame(SITE_RTT, SITES, ("a", "c"))}, "site_rtt: 1 of 2 sites missing"),
        ({"client_rtt": pd.Series([1.0, 2.0, 3.0], list(CLIENTS))}, "a table with other axes"),
        ({"domains": {"country": pd.Series(["A", "B"])}}, "not a name: got 0"),
        ({"prices": Prices(pd.Series([1.0, 2.0], ["a", "z"]))}, "1 of 2 sites missing: got 'b'"),
        ({"counts": pd.concat({"1": frame(COUNTS, CLIENTS, KINDS)} | {
            "2": frame(COUNTS, CLIENTS, KINDS)})}, "as many labels as intervals"),
    ],
)  # fmt: skip
def test_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError, match=message):
        WORLD.replace(**change)


def test_other_constructors_too() -> None:
    table = frame(SITE_RTT, SITES, SITES)
    arrays, frames = (QuorumProblem(rtt, [1, 1], [1, 1], sites=SITES) for rtt in (SITE_RTT, table))
    np.testing.assert_array_equal(arrays.rtt, frames.rtt)
