"""Instances whose sites can hold several replicas: copies of sites, in one place each."""

from __future__ import annotations

import warnings

import numpy as np

from placement.errors import InputError, UnitsWarning
from placement.model.instance import Instance

__all__ = ["PLACE", "with_copies"]

PLACE = "place"
"""Level of an instance with copies whose domains are the sites of the instance it was made of."""


def with_copies(instance: Instance, copies: int) -> Instance:
    """Return the instance with every site `copies` times, in groups; itself for one copy.

    Copy k of a site is called ``NAME (k)``. The level ``place`` (:data:`PLACE`) has the sites of
    the instance as domains.

    Raises
    ------
    InputError
        When the instance has a level of that name already.
    """
    if copies == 1:
        return instance
    if PLACE in instance.domains:
        raise InputError(
            "the level is needed for sites with several replicas",
            field="domains",
            value=PLACE,
            expected="another name for this level",
        )
    names = tuple(
        name if k == 0 else f"{name} ({k + 1})" for name in instance.sites for k in range(copies)
    )
    place = np.repeat(np.arange(len(instance.sites)), copies)
    prices = instance.prices
    if prices is not None:
        prices = prices.at_sites(instance.sites, place.tolist())
    where = instance.site_coordinates
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnitsWarning)  # an RTT of 0 between copies is meant
        return instance.replace(
            sites=names,
            client_rtt=instance.client_rtt[..., place],
            site_rtt=instance.site_rtt[..., place[:, None], place],
            domains={
                **{level: tuple(v[i] for i in place) for level, v in instance.domains.items()},
                PLACE: tuple(instance.sites[i] for i in place),
            },
            site_coordinates=None if where is None else where[place],
            prices=prices,
        )
