"""Instances inside another file, as one JSON object: every number and name, no tables."""

from __future__ import annotations

import math

import numpy as np

from placement.errors import InputError
from placement.io.formats.document import Document
from placement.io.instance_folder import (
    FORMAT,
    VERSION,
    check_fingerprint,
    head,
    operation_from,
)
from placement.io.prices_document import prices_embedded, prices_from_embedded
from placement.io.problem_document import read_protocol, refuse_gone
from placement.model.instance import SITE_LEVEL, Instance
from placement.support.checks import FloatArray

__all__ = ["instance_document", "instance_from_document"]


def instance_document(instance: Instance) -> dict[str, object]:
    """Return an instance as one JSON object, to stand inside another file."""

    def degrees(values: FloatArray | None) -> object:
        if values is None:
            return None
        return [[None if math.isnan(x) else x for x in row] for row in values.tolist()]

    prices = instance.prices
    found = head(instance)
    found["levels"] = {level: list(labels) for level, labels in instance.domains.items()}
    found["coordinates"] = {
        "sites": degrees(instance.site_coordinates),
        "clients": degrees(instance.client_coordinates),
    }
    if prices is not None:
        found["prices"] = prices_embedded(prices)
    return {
        **found,
        "sites": list(instance.sites),
        "clients": list(instance.clients),
        "site_rtt": instance.site_rtt.tolist(),
        "client_rtt": instance.client_rtt.tolist(),
        "counts": instance.counts.tolist(),
    }


def instance_from_document(document: Document) -> Instance:
    """Build an instance from the object that :func:`instance_document` made.

    Raises
    ------
    InputError
        When it was changed since, or is no such object.
    """
    document.check_format(FORMAT, VERSION)
    refuse_gone(document)
    prices = None
    if document.has("prices"):
        prices = prices_from_embedded(document.table("prices"), _array)
    places, levels = document.table("coordinates"), document.table("levels")
    domains: dict[str, tuple[str | None, ...]] = {}
    for level, labels in levels.values.items():
        if not isinstance(labels, list) or level == SITE_LEVEL:
            raise levels.refuse(level, "not a level", "one label per site")
        domains[level] = tuple(None if label is None else str(label) for label in labels)
    try:
        instance = Instance(
            sites=document.names("sites"),
            clients=document.names("clients"),
            client_rtt=_array(document, "client_rtt"),
            site_rtt=_array(document, "site_rtt"),
            counts=_array(document, "counts"),
            operations=tuple(operation_from(row) for row in document.tables("operations")),
            domains=domains,
            intervals=document.names("intervals"),
            site_coordinates=_array(places, "sites") if places.has("sites") else None,
            client_coordinates=_array(places, "clients") if places.has("clients") else None,
            prices=prices,
            name=document.text("name"),
            provenance=document.names("provenance"),
            protocol=read_protocol(document),
        )
    except InputError as error:
        raise (
            error if error.source else error.at(f"{document.source}, {document.place}")
        ) from None
    check_fingerprint(document, instance)
    return instance


def _array(document: Document, key: str) -> FloatArray:
    try:
        # null, an unknown coordinate, becomes NaN; in a table of RTTs Instance refuses that
        return np.array(document.values.get(key), dtype=np.float64)
    except (TypeError, ValueError):
        raise document.refuse(key, "not a table of numbers", "rows of equal length") from None
