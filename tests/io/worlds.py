"""Small worlds for the tests of files: one worked by hand, and generated ones, oddly named."""

from __future__ import annotations

import math
import struct
from typing import Any

import numpy as np
from hypothesis import strategies as st

from placement import Instance, Operation, Prices
from tests.strategies import instances

ANY_UNITS = "ignore::placement.errors.UnitsWarning"
"""For tests with numbers of any magnitude."""


def small(**changes: Any) -> Instance:
    """Three sites in two countries, four clients, two intervals."""
    arguments: dict[str, Any] = {
        "sites": ("Oslo", "Rome", "Washington, DC"),
        "clients": ("Oslo", "Bern", "Lagos", "東京"),
        "client_rtt": np.array(
            [[0.5, 41.0, 98.0], [30.0, 11.0, 95.0], [110.0, 70.0, 130.0], [240.0, 250.0, 160.0]]
        ),
        "site_rtt": np.array([[0.0, 40.0, 97.5], [42.0, 0.0, 99.0], [97.0, 101.0, 0.0]]),
        "counts": np.arange(40, dtype=float).reshape(2, 4, 5),
        "domains": {
            "country": ("NO", "IT", "US"),
            "continent": ("Europe", "Europe", "North America"),
        },
        "intervals": ("00:00", "00:30"),
        "name": "small",
        "provenance": ("Worked by hand.",),
    }
    return Instance(**{**arguments, **changes})


# Everything but NUL and surrogates, which no name may hold; commas, quotes, line ends and words
# that our own columns are called get more than their share.
NAMES = st.one_of(
    st.sampled_from(
        ["a,b", 'say "hi"', "line\nfeed", "return\rhere", " blanks ", "interval", "interval_",
         "site", "client", "lat", "lon", "lat_", "price", "東京", "nan", "1.5", "\ufeffmark",
         "\x7f", "=1+1", "#", "é", "e\u0301", "a\u2028b", "inf"]
    ),
    st.text(
        st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1, max_size=8
    ).filter(lambda text: bool(text.strip())),
)  # fmt: skip


def _any_float(seed: int) -> float:
    """A finite float >= 0 of any magnitude, by its bits."""
    (value,) = struct.unpack("<d", struct.pack("<Q", seed))
    return abs(value) if math.isfinite(value) else 0.1


@st.composite
def awkward(draw: st.DrawFn) -> Instance:
    """Any generated instance, under names and numbers that strain a file format."""
    varying = draw(st.booleans())
    world = draw(
        instances(
            max_sites=4,
            max_clients=4,
            max_intervals=3,
            varying_rtt=varying,
            prices=draw(st.booleans()),
        )
    )

    def names(count: int, *, forbid: str = "") -> tuple[str, ...]:
        pool = NAMES.filter(lambda name: name != forbid)
        return tuple(draw(st.lists(pool, min_size=count, max_size=count, unique=True)))

    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))

    def floats(like: np.ndarray) -> np.ndarray:
        bits = rng.integers(0, 2**63, size=like.size, dtype=np.uint64)
        values = np.array([_any_float(int(b)) for b in bits]).reshape(like.shape)
        # tiny and huge numbers alike, but sums of counts stay finite
        return np.minimum(values, 1e18)

    site_rtt = floats(world.site_rtt)
    index = np.arange(len(world.sites))
    site_rtt[..., index, index] = 0
    prices = world.prices
    if prices is not None:
        prices = Prices(prices.storage / 3, prices.transfer, 1 / 3, draw(NAMES))
    labels = st.one_of(st.none(), NAMES)
    located = draw(st.sampled_from(["none", "sites", "clients", "both"]))

    def degrees(count: int) -> np.ndarray:
        values = rng.uniform(-1, 1, (count, 2)) * [90, 180]
        return np.where(rng.random((count, 1)) < 0.2, np.nan, values)

    return Instance(
        sites=names(len(world.sites)),
        clients=names(len(world.clients)),
        client_rtt=floats(world.client_rtt),
        site_rtt=site_rtt,
        counts=floats(world.counts),
        operations=tuple(
            Operation(name, *operation.coefficients)
            for name, operation in zip(names(len(world.operations)), world.operations, strict=True)
        ),
        domains={
            level: tuple(draw(labels) for _ in world.sites)
            for level in names(draw(st.integers(0, 3)), forbid="site")
        },
        intervals=names(len(world.intervals)),
        site_coordinates=degrees(len(world.sites)) if located in ("sites", "both") else None,
        client_coordinates=degrees(len(world.clients)) if located in ("clients", "both") else None,
        prices=prices,
        name=draw(NAMES),
        provenance=tuple(
            draw(
                st.lists(
                    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")),
                    max_size=2,
                )
            )
        ),
    )


def same(one: Instance, other: Instance) -> bool:
    def coordinates(values: np.ndarray | None) -> object:
        return None if values is None else (values.shape, values.tobytes())

    def prices(given: Prices | None) -> object:
        if given is None:
            return None
        return (
            given.storage.tobytes(),
            None if given.transfer is None else given.transfer.tobytes(),
            given.written_gb,
            given.currency,
        )

    return all(
        (
            one.sites == other.sites,
            one.clients == other.clients,
            one.client_rtt.shape == other.client_rtt.shape,
            one.client_rtt.tobytes() == other.client_rtt.tobytes(),
            one.site_rtt.shape == other.site_rtt.shape,
            one.site_rtt.tobytes() == other.site_rtt.tobytes(),
            one.counts.shape == other.counts.shape,
            one.counts.tobytes() == other.counts.tobytes(),
            one.operations == other.operations,
            list(one.domains.items()) == list(other.domains.items()),
            one.intervals == other.intervals,
            coordinates(one.site_coordinates) == coordinates(other.site_coordinates),
            coordinates(one.client_coordinates) == coordinates(other.client_coordinates),
            prices(one.prices) == prices(other.prices),
            one.name == other.name,
            one.provenance == other.provenance,
            one.fingerprint == other.fingerprint,
        )
    )
