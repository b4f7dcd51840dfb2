"""Choice of dynamic copies of objects at sites: one decision, with known rates."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from placement.errors import InputError
from placement.online.dynamic.site_geography import Geography
from placement.support.checks import BoolArray, FloatArray, instance_of, numbers_of, read_only

__all__ = ["ReplicationProblem"]


@dataclass(frozen=True, eq=False)
class ReplicationProblem:
    """Place dynamic copies of objects beside their static ones.

    With H_o the sites that hold object o, static or dynamic, a read at site i goes to the closest
    site of H_o that is preferred by i or holds a static copy of o. The cost of dynamic copies y is

        Σ_io reads[i, o] · rtt[i, serving site]
        + Σ_o writes[o] · ( Σ_j forward[j, o] · y[j, o]  +  max_{j ∈ H_o} wait[j, o] )

    Parameters
    ----------
    geography
        Sites, RTTs, preference lists.
    static
        Whether site j holds a static copy of o, shape (sites, objects); every object has one.
    reads
        Reads of o at site i per unit of time, shape (sites, objects), >= 0.
    capacity
        Most dynamic copies at each site, shape (sites,), or one number for all.
    writes
        Writes of o per unit of time, shape (objects,); zero when not given.
    forward
        Cost of forwarding one write to a dynamic copy at j, in ms, shape (sites, objects) or
        (sites,); zero when not given.
    wait
        What a synchronous write waits for a copy at j, in ms, shape (sites, objects); None when
        writes do not wait for all copies.

    Raises
    ------
    InputError
        Naming field and element.

    Notes
    -----
    Matri et al., "Keeping up with storage: decentralized, write-enabled dynamic geo-replication",
    FGCS 86 (2018), describe the system; the optimisation problem behind it is not in the paper.
    """

    geography: Geography
    static: BoolArray
    reads: FloatArray
    capacity: npt.NDArray[np.int64]
    _: KW_ONLY
    writes: FloatArray | None = None
    forward: FloatArray | None = None
    wait: FloatArray | None = None

    def __post_init__(self) -> None:
        put = object.__setattr__
        instance_of(self.geography, Geography, "geography", "a Geography")
        static = numbers_of(self.static, "static").astype(bool)
        sites = self.geography.count
        if static.ndim != 2 or static.shape[0] != sites or static.shape[1] == 0:
            raise InputError(
                "wrong shape",
                field="static",
                value=static.shape,
                expected=f"{sites} sites × at least 1 object",
            )
        orphans = np.flatnonzero(~static.any(axis=0))
        if orphans.size:
            raise InputError(
                "an object without a static copy",
                field="static",
                value=int(orphans[0]),
                expected="at least one static copy of every object",
            )
        static.flags.writeable = False
        put(self, "static", static)
        objects = static.shape[1]
        put(self, "reads", _rates(self.reads, "reads", (sites, objects)))
        writes = np.zeros(objects) if self.writes is None else self.writes
        put(self, "writes", _rates(writes, "writes", (objects,)))
        forward = np.zeros(sites) if self.forward is None else numbers_of(self.forward, "forward")
        if forward.ndim == 1:
            forward = np.broadcast_to(forward[:, None], (len(forward), objects))
        put(self, "forward", _rates(forward, "forward", (sites, objects)))
        if self.wait is not None:
            put(self, "wait", _rates(self.wait, "wait", (sites, objects)))
        put(self, "capacity", _capacity(self.capacity, sites))

    @property
    def sites(self) -> int:
        """Number of sites."""
        return self.geography.count

    @property
    def objects(self) -> int:
        """Number of objects."""
        return int(self.static.shape[1])

    @cached_property
    def total_reads(self) -> float:
        """Reads per unit of time, all sites and objects."""
        return float(self.reads.sum())

    @cached_property
    def static_rtt(self) -> FloatArray:
        """RTT in ms from site i to the closest static copy of o, shape (sites, objects)."""
        result = np.full(self.static.shape, np.inf)
        for j in range(self.sites):
            here = np.where(self.static[j], 0.0, np.inf)
            np.minimum(result, self.geography.rtt[:, j, None] + here, out=result)
        return read_only(result)

    @cached_property
    def write_rates(self) -> FloatArray:
        """`writes` as an array, shape (objects,)."""
        assert self.writes is not None
        return self.writes

    @cached_property
    def forward_cost(self) -> FloatArray:
        """writes[o] · forward[j, o], shape (sites, objects)."""
        assert self.forward is not None
        return read_only(self.write_rates * self.forward)

    @cached_property
    def none(self) -> BoolArray:
        """No dynamic copies, shape (sites, objects)."""
        return np.zeros(self.static.shape, dtype=bool)


def _rates(values: object, field: str, shape: tuple[int, ...]) -> FloatArray:
    """Check an array of finite numbers >= 0; unlike `nonnegative`, objects have no names."""
    array = numbers_of(values, field)
    if array.shape != shape:
        raise InputError("wrong shape", field=field, value=array.shape, expected=f"{shape}")
    bad = ~(np.isfinite(array) & (array >= 0))
    if bad.any():
        where = tuple(int(axis[0]) for axis in np.nonzero(bad))
        raise InputError(
            f"out of range at {where}",
            field=field,
            value=float(array[where]),
            expected="a finite number >= 0",
        )
    array += 0.0
    return read_only(array)


def _capacity(values: object, sites: int) -> npt.NDArray[np.int64]:
    given = numbers_of(values, "capacity")
    if given.ndim == 0:
        given = np.repeat(given, sites)
    array = _rates(given, "capacity", (sites,))
    if (array != np.floor(array)).any():
        raise InputError(
            "not a whole number of copies",
            field="capacity",
            value=float(array[array != np.floor(array)][0]),
            expected="whole numbers >= 0",
        )
    return read_only(np.minimum(array, 2**62).astype(np.int64))
