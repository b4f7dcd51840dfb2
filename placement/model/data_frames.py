"""Instances from pandas tables, and back. pandas is imported only when a table is made."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from placement.errors import InputError, nearest
from placement.io.formats.frame_axes import values_by_name
from placement.model.instance import Instance
from placement.model.operations import NAMED_OPERATIONS, Operation
from placement.support.checks import FloatArray, instances_of, unique_names

if TYPE_CHECKING:
    import pandas as pd

_COEFFICIENTS = ("near", "relay", "direct", "quorum")


def from_frames(
    rtt: pd.DataFrame | None = None,
    counts: pd.DataFrame | None = None,
    *,
    client_rtt: pd.DataFrame | None = None,
    site_rtt: pd.DataFrame | None = None,
    sites: pd.DataFrame | None = None,
    clients: pd.DataFrame | None = None,
    operations: pd.DataFrame | Iterable[Operation] | None = None,
    name: str = "instance",
    provenance: Iterable[str] = (),
) -> Instance:
    """Build an instance from pandas tables; rows and columns go by name, in any order.

    Parameters
    ----------
    rtt
        One table for both kinds of RTTs, in ms: a row per site or client, a column per site; the
        diagonal is the RTT of a client to a replica at the same place. Clients are the rows of
        `counts`.
    client_rtt
        RTT in ms: a row per client, a column per site. With RTTs per interval the index has two
        levels, interval and client.
    site_rtt
        RTT in ms, read from the row's side: a row and a column per site, zero diagonal. With RTTs
        per interval the index has two levels, interval and site.
    counts
        Operations issued: a row per client (index of two levels for several intervals, oldest
        first), a column per operation.
    sites
        A row per site (named by the index, or by a column ``site``), with ``lat`` and ``lon`` if
        known; every other column is a failure-domain level. None: the rows of `site_rtt`.
    clients
        The same for clients, without levels. None: the rows of `client_rtt`.
    operations
        A row per operation with columns near, relay, direct, quorum, or a list of
        :class:`placement.Operation`; None: the columns of `counts` name standard operations.
    name, provenance
        As in :class:`placement.Instance`.

    Raises
    ------
    InputError
        Naming table, row, column, value and what was expected.
    """
    if rtt is not None:
        _need_frame(rtt, "rtt")
        _need_frame(counts, "counts")
        assert counts is not None
        site_rtt, client_rtt = _split(rtt, _names(counts, "counts"), site_rtt, client_rtt)
    for frame, field in ((client_rtt, "client_rtt"), (site_rtt, "site_rtt"), (counts, "counts")):
        _need_frame(frame, field)
    assert client_rtt is not None
    assert site_rtt is not None
    assert counts is not None
    places = _table(sites, "sites", "site")
    homes = _table(clients, "clients", "client")
    site_names = _names(site_rtt if places is None else places, "sites")
    client_names = _names(client_rtt if homes is None else homes, "clients")
    kinds = _operations(operations, counts)
    return Instance(
        sites=site_names,
        clients=client_names,
        client_rtt=client_rtt,  # type: ignore[arg-type]  # Instance takes tables by name
        site_rtt=site_rtt,  # type: ignore[arg-type]
        counts=counts,  # type: ignore[arg-type]
        operations=kinds,
        domains=_domains(places),
        site_coordinates=_coordinates(places, "sites"),
        client_coordinates=_coordinates(homes, "clients"),
        name=name,
        provenance=provenance,  # type: ignore[arg-type]  # the instance makes a tuple of it
    )


def _split(
    rtt: pd.DataFrame,
    clients: Sequence[str],
    site_rtt: pd.DataFrame | None,
    client_rtt: pd.DataFrame | None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows of the sites with a diagonal of zero, and the rows of the clients."""
    sites = list(rtt.columns)
    for name in (*sites, *clients):
        if name not in rtt.index:
            kind = "site" if name in sites else "client"
            expected = f"a row for each {kind}{nearest(name, rtt.index)}"
            raise InputError(f"a {kind} without a row", field="rtt", value=name, expected=expected)
    between = rtt.loc[sites].astype(float)
    for site in sites:
        between.loc[site, site] = 0.0
    return (
        between if site_rtt is None else site_rtt,
        rtt.loc[list(clients)] if client_rtt is None else client_rtt,
    )


def to_frames(instance: Instance) -> dict[str, pd.DataFrame]:
    """Return an instance as the tables that :func:`from_frames` takes.

    ``Instance.from_frames(**instance.to_frames())`` equals the instance, except for prices, which
    are vectors already (`instance.prices`), and the protocol, a text.

    Raises
    ------
    InputError
        When a failure-domain level is called ``lat`` or ``lon``, which name coordinates.
    """
    import pandas as pd

    site_index = pd.Index(instance.sites, name="site", dtype=object)
    client_index = pd.Index(instance.clients, name="client", dtype=object)
    sites = pd.DataFrame(index=site_index)
    if instance.site_coordinates is not None:
        sites["lat"], sites["lon"] = instance.site_coordinates.T
    for level, labels in instance.domains.items():
        if level in ("lat", "lon", "site"):
            raise InputError("a level with the name of a coordinate", field="domains", value=level)
        sites[level] = pd.Series(list(labels), index=site_index, dtype=object)
    clients = pd.DataFrame(index=client_index)
    if instance.client_coordinates is not None:
        clients["lat"], clients["lon"] = instance.client_coordinates.T

    def matrix(values: FloatArray, index: pd.Index, columns: Sequence[str]) -> pd.DataFrame:
        rows = index
        if values.ndim == 3:
            rows = pd.MultiIndex.from_product(
                [pd.Index(instance.intervals, dtype=object), index],
                names=["interval", index.name],
            )
        return pd.DataFrame(
            values.reshape(-1, values.shape[-1]),
            index=rows,
            columns=pd.Index(list(columns), dtype=object),
        )

    names = [operation.name for operation in instance.operations]
    operations = pd.DataFrame(
        [(*operation.coefficients, operation.kind) for operation in instance.operations],
        index=pd.Index(names, name="operation", dtype=object),
        columns=pd.Index((*_COEFFICIENTS, "kind"), dtype=object),
    )
    if any(operation.has_waits for operation in instance.operations):
        operations["waits"] = [list(map(str, one.waits)) for one in instance.operations]
        operations["constant"] = [one.constant for one in instance.operations]
    return {
        "client_rtt": matrix(instance.client_rtt, client_index, instance.sites),
        "site_rtt": matrix(instance.site_rtt, site_index, instance.sites),
        "counts": matrix(instance.counts, client_index, names),
        "sites": sites,
        "clients": clients,
        "operations": operations,
    }


def _table(frame: pd.DataFrame | None, field: str, key: str) -> pd.DataFrame | None:
    if frame is None:
        return None
    _need_frame(frame, field)
    return frame.set_index(key) if key in frame.columns else frame


def _need_frame(frame: object, field: str) -> None:
    import pandas as pd

    if not isinstance(frame, pd.DataFrame):
        raise InputError(
            "not a table", field=field, value=type(frame).__name__, expected="a pandas DataFrame"
        )


def _names(frame: pd.DataFrame, field: str) -> tuple[str, ...]:
    _need_frame(frame, field)
    last = frame.index.get_level_values(-1)
    if frame.index.nlevels > 1:
        last = last.unique()
    return unique_names(last.tolist(), field)


def _operations(
    given: pd.DataFrame | Iterable[Operation] | None, counts: pd.DataFrame
) -> tuple[Operation, ...]:
    import pandas as pd

    _need_frame(counts, "counts")
    if given is None:
        standard = {operation.name: operation for operation in NAMED_OPERATIONS}
        names = unique_names(counts.columns.tolist(), "counts")
        for name in names:
            if name not in standard:
                expected = "one of " + ", ".join(standard) + ", or give `operations`"
                raise InputError("unknown operation", field="counts", value=name, expected=expected)
        return tuple(standard[name] for name in names)
    if not isinstance(given, pd.DataFrame):
        return instances_of(given, Operation, "operations", "Operation(…), or a table")
    missing = [key for key in _COEFFICIENTS if key not in given.columns]
    if missing:
        expected = ", ".join(_COEFFICIENTS)
        raise InputError("missing column", field="operations", value=missing[0], expected=expected)
    rows = given[list(_COEFFICIENTS)].to_numpy().tolist()
    kinds = given["kind"].tolist() if "kind" in given.columns else [""] * len(rows)
    waits = given["waits"].tolist() if "waits" in given.columns else [()] * len(rows)
    constants = given["constant"].tolist() if "constant" in given.columns else [0.0] * len(rows)
    return tuple(
        Operation(name, near, relay, direct, quorum, kind, wait, constant)
        for name, (near, relay, direct, quorum), kind, wait, constant in zip(
            _names(given, "operations"), rows, kinds, waits, constants, strict=True
        )
    )


def _coordinates(frame: pd.DataFrame | None, field: str) -> FloatArray | None:
    if frame is None or not {"lat", "lon"} & set(frame.columns):
        return None
    for key in ("lat", "lon"):
        if key not in frame.columns:
            raise InputError("missing column", field=field, value=key, expected="lat and lon")
    names = _names(frame, field)
    return values_by_name(
        frame[["lat", "lon"]], field, [(field[:-1], names), ("column", ("lat", "lon"))]
    )


def _domains(frame: pd.DataFrame | None) -> dict[str, tuple[str | None, ...]]:
    import pandas as pd

    if frame is None:
        return {}
    return {
        level: tuple(None if pd.isna(label) else str(label) for label in frame[level].tolist())
        for level in frame.columns
        if level not in ("lat", "lon")
    }
