"""Measured instance: sites, clients, round-trip times, demand, failure domains.

An :class:`Instance` holds data only; a :class:`placement.problem.Problem` holds the question.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError, nearest
from placement.model.distances import RttMatrix, checked_coordinates, warn_of_units
from placement.model.operations import NAMED_OPERATIONS, STANDARD_OPERATIONS, Operation
from placement.model.prices import Prices, checked_prices
from placement.model.protocols import Protocol
from placement.support.checks import (
    FloatArray,
    IntArray,
    are_plain_names,
    axes_of,
    elements,
    instance_of,
    instances_of,
    interval_labels,
    is_frame,
    labels_by_name,
    mapping,
    nonnegative,
    suggest,
    text,
    unique_names,
    values_by_name,
)

if TYPE_CHECKING:
    import pandas as pd

    from placement.evaluation.cost_model import CostModel
    from placement.model.demand import Demand

SITE_LEVEL = "site"
"""The failure-domain level that always exists: every site is a domain of its own."""


@dataclass(frozen=True, eq=False)
class Instance:
    """Sites, clients, RTTs and demand, validated and read-only.

    Parameters
    ----------
    sites
        Names of the candidate replica locations, unique.
    clients
        Names of the client clusters, unique; a client need not be a site.
    client_rtt
        d(c, r) in ms: shape (clients, sites), or (intervals, clients, sites) when RTTs were
        measured per interval. Finite, >= 0, need not be symmetric or metric.
    site_rtt
        d(r, s) in ms, read from r's side (r waits for s): shape (sites, sites), or with a leading
        axis of intervals. The diagonal is 0: a server reaches itself for free.
    counts
        n[c, o], number of operations issued per client and operation: shape (clients, operations),
        or (intervals, clients, operations). >= 0, fractions allowed. Stored with the interval axis.
    operations
        The kinds of operations, in the order of the last axis of `counts`.
    domains
        Failure domains: level -> one label per site. A site without a domain at a level has None
        there. The level ``site`` exists always and need not be given.
    intervals
        Labels of the intervals of `counts`, oldest first; "1", "2", … when not given.
    site_coordinates, client_coordinates
        Latitude and longitude in degrees, shape (n, 2), NaN where unknown; for maps only.
    prices
        Prices of replicas, if money matters.
    protocol
        The commit protocol in use, which questions have that name none: a :class:`.Protocol`, its
        text, or a protocol for each kind of operation. None: what the operations say.
    name
        What people call this instance.
    provenance
        Sentences that say where the numbers come from; they travel with the instance.

    Raises
    ------
    InputError
        Naming field, element, value and what was expected. No number may be larger than 1e18
        (:data:`placement.support.checks.LARGEST`), so that every score is finite.

    Warns
    -----
    UnitsWarning
        When RTTs look as if they were not milliseconds, see
        :func:`placement.model.distances.warn_of_units`.

    Notes
    -----
    Rows and columns of pandas tables (RTTs, counts, coordinates, prices) go by name, in any order;
    arrays and lists go by position.

    Two instances are equal when all that can change a score is equal: names, RTTs, counts,
    operations, domains and prices. `fingerprint` is a digest of exactly that.
    """

    sites: tuple[str, ...]
    clients: tuple[str, ...]
    client_rtt: FloatArray
    site_rtt: FloatArray
    counts: FloatArray
    operations: tuple[Operation, ...] = STANDARD_OPERATIONS
    domains: Mapping[str, tuple[str | None, ...]] = dataclasses.field(default_factory=dict)
    intervals: tuple[str, ...] = ()
    site_coordinates: FloatArray | None = None
    client_coordinates: FloatArray | None = None
    prices: Prices | None = None
    name: str = "instance"
    provenance: tuple[str, ...] = ()
    protocol: Protocol | str | None = None

    def __post_init__(self) -> None:
        instance_of(self.name, str, "name", "a string")
        self._put("sites", unique_names(self.sites, "sites"))
        self._put("clients", unique_names(self.clients, "clients"))
        if not self.sites:
            raise InputError("no sites", field="sites", expected="at least one site")
        if not self.clients:
            raise InputError("no clients", field="clients", expected="at least one client")
        self._put("operations", _operations(self.operations))

        varying = axes_of(self.counts) == 3
        if is_frame(self.counts):
            labels = interval_labels(self.counts)
            self._put("intervals", _intervals(self.intervals or labels, len(labels) or 1))
        else:
            periods = np.shape(self.counts)[0] if varying else 1
            self._put("intervals", _intervals(self.intervals, periods))
        axes: list[tuple[str, Sequence[str]]] = [
            ("client", self.clients),
            ("operation", [operation.name for operation in self.operations]),
        ]
        if varying:
            axes.insert(0, ("interval", self.intervals))
        counts = nonnegative(self.counts, "counts", axes)
        self._put("counts", counts if counts.ndim == 3 else counts[np.newaxis])

        self._put("client_rtt", self._rtt(self.client_rtt, "client_rtt", ("client", self.clients)))
        self._put("site_rtt", self._rtt(self.site_rtt, "site_rtt", ("site", self.sites)))
        self._check_diagonal()
        self._put("domains", _domains(self.domains, self.sites))
        if self.prices is not None:
            names = (self.sites, self.clients)
            self._put("prices", checked_prices(self.prices, *names, self.operations))
        for field, rows in (
            ("site_coordinates", self.sites),
            ("client_coordinates", self.clients),
        ):
            self._put(field, checked_coordinates(getattr(self, field), field, rows))
        self._put(
            "provenance", tuple(map(str, elements(self.provenance, "provenance", "sentences")))
        )
        if self.protocol is not None and not isinstance(self.protocol, Protocol):
            self._put("protocol", Protocol(self.protocol))
        self._check_units()

    def _put(self, field: str, value: object) -> None:
        """Set a field of the frozen instance while it is being built."""
        object.__setattr__(self, field, value)

    def _rtt(self, values: object, field: str, rows: tuple[str, tuple[str, ...]]) -> FloatArray:
        axes = [rows, ("site", self.sites)]
        if axes_of(values) == 3:
            axes.insert(0, ("interval", self.intervals))
        return nonnegative(values, field, axes)

    def _check_units(self) -> None:
        for field, names, homes in (
            ("site_rtt", self.sites, self.site_coordinates),
            ("client_rtt", self.clients, self.client_coordinates),
        ):
            warn_of_units(
                RttMatrix(field, getattr(self, field), names, self.sites, homes),
                self.site_coordinates,
            )

    def _check_diagonal(self) -> None:
        diagonal = np.diagonal(self.site_rtt, axis1=-2, axis2=-1)
        if diagonal.any():
            where = int(np.nonzero(diagonal)[-1][0])
            size = len(self.sites)
            raise InputError(
                f"site {self.sites[where]!r} has a non-zero RTT to itself",
                field="site_rtt",
                value=float(diagonal[np.nonzero(diagonal)][0]),
                expected="0 on the diagonal: a server reaches itself for free (NumPy array: "
                f"site_rtt[..., range({size}), range({size})] = 0; DataFrame: for s in "
                "site_rtt: site_rtt.loc[site_rtt.index.get_level_values(-1) == s, s] = 0); "
                "keep the intra-site figure in client_rtt for the clients there",
            )

    # --- looking things up -----------------------------------------------------------------

    @cached_property
    def aggregated(self) -> dict[tuple[float, object], Demand]:
        """The demands that were aggregated, by decay and operations; None: its own."""
        return {}

    @cached_property
    def cost_models(self) -> list[CostModel]:
        """The model that :func:`placement.evaluation.cost_model.cost_model` has built."""
        return []

    @cached_property
    def _site_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.sites)}

    @cached_property
    def _client_index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.clients)}

    def site_indices(self, names: Iterable[str], field: str = "sites") -> IntArray:
        """Return the indices of named sites, in the order given.

        Raises
        ------
        InputError
            For a name that is no site (with the closest spelling that is one), or given twice.
        """
        found = []
        for name in unique_names(names, field):
            if name not in self._site_index:
                expected = suggest(name, self.sites, "one of the sites")
                raise InputError("unknown site", field=field, value=name, expected=expected)
            found.append(self._site_index[name])
        return np.array(found, dtype=np.intp)

    def client_index(self, name: str) -> int:
        """Return the index of a named client; InputError when there is none."""
        if text(name, "clients") not in self._client_index:
            expected = suggest(name, self.clients, "one of the clients")
            raise InputError("unknown client", field="clients", value=name, expected=expected)
        return self._client_index[name]

    @property
    def levels(self) -> tuple[str, ...]:
        """Failure-domain levels, ``site`` first."""
        return (SITE_LEVEL, *self.domains)

    def labels(self, level: str, field: str = "level") -> tuple[str | None, ...]:
        """Return the domain label of every site at a level; `field` names it in messages.

        Two or more levels with "+" between them are a level of their own: the domains of
        "provider+continent" are the sites of one provider in one continent, with labels such as
        "aws+EU". A site without a label at one of the levels has none here.

        Raises
        ------
        InputError
            For a level that the instance does not know.
        """
        if text(level, field) == SITE_LEVEL:
            return self.sites
        if level not in self.domains and "+" in level:
            parts = zip(*(self.labels(part, field) for part in level.split("+")), strict=True)
            return tuple("+".join(map(str, p)) if all(p) else None for p in parts)
        if level not in self.domains:
            words = "unknown failure-domain level"
            expected = suggest(level, self.levels, "one of the levels")
            raise InputError(words, field=field, value=level, expected=expected)
        return self.domains[level]

    @property
    def varying_rtt(self) -> bool:
        """Return whether RTTs differ per interval."""
        return self.client_rtt.ndim == 3 or self.site_rtt.ndim == 3

    def replace(self, **changes: object) -> Instance:
        """Return a copy with some fields changed, validated again.

        Rows and columns of pandas tables go by name, as in the constructor.
        """
        return dataclasses.replace(self, **changes)  # type: ignore[arg-type]  # checked at run time

    def at_interval(self, interval: int, counts: FloatArray | None = None) -> Instance:
        """Return the instance with one interval of demand and the RTTs of one interval.

        Parameters
        ----------
        interval
            Whose RTTs, where they vary.
        counts
            Demand, shape (clients, operations); None: that of the interval.
        """
        changes: dict[str, object] = {
            "counts": self.counts[interval] if counts is None else counts,
            "intervals": (),
        }
        if self.prices is not None:
            changes["prices"] = self.prices.of_one_interval(len(self.intervals))
        for field in ("client_rtt", "site_rtt"):
            rtt: FloatArray = vars(self)[field]
            if rtt.ndim == 3:
                changes[field] = rtt[interval]
        return self.replace(**changes)

    # --- identity --------------------------------------------------------------------------

    @cached_property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of everything that can change a score; display data is left out."""
        import hashlib  # loads OpenSSL, which few callers need

        digest = hashlib.sha256()
        head: dict[str, object] = {
            "sites": self.sites,
            "clients": self.clients,
            "operations": [(o.name, *(c.hex() for c in o.coefficients)) for o in self.operations],
            "domains": {level: list(labels) for level, labels in sorted(self.domains.items())},
            "intervals": self.intervals,
            "written_gb": self.prices.written_gb.hex() if self.prices else None,
        }
        if self.prices is not None and self.prices.given:
            head["prices"] = {k: v for k, v in self.prices.given.items() if k != "source"}
        if any(operation.has_waits for operation in self.operations):
            head["waits"] = [(*map(str, o.waits), o.constant.hex()) for o in self.operations]
        if self.protocol is not None:
            head["protocol"] = str(self.protocol)
        digest.update(json.dumps(head, sort_keys=True).encode())
        arrays = [self.client_rtt, self.site_rtt, self.counts]
        if self.prices is not None:
            arrays.append(self.prices.storage)
            if self.prices.transfer is not None:
                arrays.append(self.prices.transfer)
        for array in arrays:
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array, dtype="<f8").ravel().data)  # no copy
        return digest.hexdigest()

    def __getstate__(self) -> dict[str, object]:
        # A mapping proxy can't be pickled; the look-ups are rebuilt when needed.
        fields = {field.name for field in dataclasses.fields(self)}
        state = {key: value for key, value in self.__dict__.items() if key in fields}
        return {**state, "domains": dict(self.domains)}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__dict__.update(state)
        self.__dict__["domains"] = MappingProxyType(self.__dict__["domains"])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Instance):
            return NotImplemented
        return self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    def __repr__(self) -> str:
        return (
            f"<Instance {self.name!r}: {len(self.sites)} sites, {len(self.clients)} clients, "
            f"{len(self.operations)} operations, {len(self.intervals)} intervals, "
            f"{self.counts.sum():.6g} operations issued>"
        )

    def _repr_html_(self) -> str:
        """Return a small table, which notebooks show."""
        from placement.report.notebook import facts_table

        return facts_table("Instance", [*instance_facts(self), ("Sites", ", ".join(self.sites))])

    # --- pandas ----------------------------------------------------------------------------

    @classmethod
    def from_frames(
        cls,
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
            One table for both kinds of RTTs, in ms: a row per site or client, a column per site;
            the diagonal is the RTT of a client to a replica at the same place. Clients are the rows
            of `counts`.
        client_rtt
            RTT in ms: a row per client, a column per site. With RTTs per interval the index has two
            levels, interval and client.
        site_rtt
            RTT in ms, read from the row's side: a row and a column per site, zero diagonal. With
            RTTs per interval the index has two levels, interval and site.
        counts
            Operations issued: a row per client (index of two levels for several intervals, oldest
            first), a column per operation.
        sites
            A row per site (named by the index, or by a column ``site``), with ``lat`` and ``lon``
            if known; every other column is a failure-domain level. None: the rows of `site_rtt`.
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
        for frame, field in (
            (client_rtt, "client_rtt"),
            (site_rtt, "site_rtt"),
            (counts, "counts"),
        ):
            _need_frame(frame, field)
        assert client_rtt is not None
        assert site_rtt is not None
        assert counts is not None
        places = _table(sites, "sites", "site")
        homes = _table(clients, "clients", "client")
        site_names = _names(site_rtt if places is None else places, "sites")
        client_names = _names(client_rtt if homes is None else homes, "clients")
        kinds = _frame_operations(operations, counts)
        return cls(
            sites=site_names,
            clients=client_names,
            client_rtt=client_rtt,  # type: ignore[arg-type]  # Instance takes tables by name
            site_rtt=site_rtt,  # type: ignore[arg-type]
            counts=counts,  # type: ignore[arg-type]
            operations=kinds,
            domains=_frame_domains(places),
            site_coordinates=_coordinates(places, "sites"),
            client_coordinates=_coordinates(homes, "clients"),
            name=name,
            provenance=provenance,  # type: ignore[arg-type]  # the instance makes a tuple of it
        )

    def to_frames(self) -> dict[str, pd.DataFrame]:
        """Return an instance as the tables that :func:`from_frames` takes.

        ``Instance.from_frames(**instance.to_frames())`` equals the instance, except for prices,
        which are vectors already (`prices`), and the protocol, a text.

        Raises
        ------
        InputError
            When a failure-domain level is called ``lat`` or ``lon``, which name coordinates.
        """
        import pandas as pd

        site_index = pd.Index(self.sites, name="site", dtype=object)
        client_index = pd.Index(self.clients, name="client", dtype=object)
        sites = pd.DataFrame(index=site_index)
        if self.site_coordinates is not None:
            sites["lat"], sites["lon"] = self.site_coordinates.T
        for level, labels in self.domains.items():
            if level in ("lat", "lon", "site"):
                raise InputError(
                    "a level with the name of a coordinate", field="domains", value=level
                )
            sites[level] = pd.Series(list(labels), index=site_index, dtype=object)
        clients = pd.DataFrame(index=client_index)
        if self.client_coordinates is not None:
            clients["lat"], clients["lon"] = self.client_coordinates.T

        def matrix(values: FloatArray, index: pd.Index, columns: Sequence[str]) -> pd.DataFrame:
            rows = index
            if values.ndim == 3:
                rows = pd.MultiIndex.from_product(
                    [pd.Index(self.intervals, dtype=object), index],
                    names=["interval", index.name],
                )
            return pd.DataFrame(
                values.reshape(-1, values.shape[-1]),
                index=rows,
                columns=pd.Index(list(columns), dtype=object),
            )

        names = [operation.name for operation in self.operations]
        operations = pd.DataFrame(
            [(*operation.coefficients, operation.kind) for operation in self.operations],
            index=pd.Index(names, name="operation", dtype=object),
            columns=pd.Index((*_COEFFICIENTS, "kind"), dtype=object),
        )
        if any(operation.has_waits for operation in self.operations):
            operations["waits"] = [list(map(str, one.waits)) for one in self.operations]
            operations["constant"] = [one.constant for one in self.operations]
        return {
            "client_rtt": matrix(self.client_rtt, client_index, self.sites),
            "site_rtt": matrix(self.site_rtt, site_index, self.sites),
            "counts": matrix(self.counts, client_index, names),
            "sites": sites,
            "clients": clients,
            "operations": operations,
        }


def _operations(values: Iterable[Operation]) -> tuple[Operation, ...]:
    operations = instances_of(values, Operation, "operations", "Operation(…)")
    unique_names((operation.name for operation in operations), "operations")
    if not operations:
        raise InputError("no operations", field="operations", expected="at least one operation")
    return operations


def _intervals(values: Iterable[str], periods: int) -> tuple[str, ...]:
    labels = elements(values, "intervals", "a list of labels")
    if not labels:
        return tuple(str(i + 1) for i in range(periods))
    labels = unique_names(labels, "intervals")
    if len(labels) != periods:
        words = "as many labels as intervals of counts are needed"
        raise InputError(words, field="intervals", value=len(labels), expected=f"{periods} labels")
    return labels


def _domains(
    values: Mapping[str, Iterable[str | None]], sites: tuple[str, ...]
) -> Mapping[str, tuple[str | None, ...]]:
    result: dict[str, tuple[str | None, ...]] = {}
    for level, given in mapping(values, "domains", "level -> one label per site").items():
        field = f"domains[{level!r}]"
        if is_frame(given):
            found: Iterable[object] = labels_by_name(given, field, ("site", sites))
        else:
            found = elements(given, field, "one label per site")
        labels = tuple(None if label is None or label == "" else str(label) for label in found)
        distinct = tuple(filter(None, dict.fromkeys(labels)))
        for label in () if are_plain_names(distinct) else distinct:
            text(label, field)
        if len(labels) != len(sites):
            words = f"level {level!r} needs one label per site"
            expected = f"{len(sites)} labels"
            raise InputError(words, field="domains", value=len(labels), expected=expected)
        if level == SITE_LEVEL:
            if labels != sites:
                words = "the level 'site' is built in and can't be redefined"
                expected = "another name for the level"
                raise InputError(words, field="domains", value=SITE_LEVEL, expected=expected)
            continue
        result[str(level)] = labels
    return MappingProxyType(result)


# Tables of pandas, which is imported only when a table is made

_COEFFICIENTS = ("near", "relay", "direct", "quorum")


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


def _frame_operations(
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


def _frame_domains(frame: pd.DataFrame | None) -> dict[str, tuple[str | None, ...]]:
    import pandas as pd

    if frame is None:
        return {}
    return {
        level: tuple(None if pd.isna(label) else str(label) for label in frame[level].tolist())
        for level in frame.columns
        if level not in ("lat", "lon")
    }


# Size, demand and ranges of RTT, as labels and values for people


def instance_facts(instance: Instance) -> list[tuple[str, str]]:
    """Return name, size, demand and ranges of RTT of an instance as labels and values."""
    from placement.text.text_tables import number_text

    between = instance.site_rtt[..., ~np.eye(len(instance.sites), dtype=bool)]
    facts = [
        ("Instance", instance.name),
        (
            "Size",
            ", ".join(
                f"{count} {word}{'' if count == 1 else 's'}"
                for count, word in (
                    (len(instance.sites), "site"),
                    (len(instance.clients), "client"),
                    (len(instance.operations), "operation"),
                    (len(instance.intervals), "interval"),
                )
            ),
        ),
        ("Demand", f"{number_text(float(instance.counts.sum()), 0)} operations in all"),
        ("Client RTT", _range_text(instance.client_rtt.ravel())),
        ("Site RTT", _range_text(between.ravel()) if between.size else "one site only"),
    ]
    if instance.protocol is not None:
        facts.append(("Protocol", str(instance.protocol)))
    if instance.varying_rtt:
        facts.append(("", "RTTs differ per interval"))
    if instance.intervals and len(instance.intervals) > 1:
        facts.append(("Intervals", f"{instance.intervals[0]} to {instance.intervals[-1]}"))
    if instance.prices is not None:
        storage = instance.prices.storage
        facts.append(
            (
                "Prices",
                f"{number_text(float(storage.min()))} to {number_text(float(storage.max()))} "
                f"{instance.prices.currency} per replica",
            )
        )
    facts.append(("Fingerprint", instance.fingerprint[:16]))
    return facts


def _range_text(values: object) -> str:
    from placement.text.text_tables import number_text

    low, middle, high = (float(x) for x in np.quantile(np.asarray(values), [0.0, 0.5, 1.0]))
    return f"{number_text(low)} to {number_text(high)} ms, median {number_text(middle)} ms"
