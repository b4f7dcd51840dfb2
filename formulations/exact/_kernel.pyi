"""Types of the compiled kernel (csrc/python/module.c); see :mod:`formulations.exact.kernel`."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Floats: TypeAlias = npt.NDArray[np.float64]
_Cap: TypeAlias = tuple[npt.NDArray[np.int32], int | None, int]
_Family: TypeAlias = tuple[int, int, npt.NDArray[np.int32]]

class _Context: ...

MOST_BLOCKS: int

def create(
    rtt: _Floats,
    order: npt.NDArray[np.int32],
    near: _Floats,
    relay: _Floats,
    site_rtt: _Floats,
    direct: _Floats,
    quorum_weight: float,
    price: _Floats | None,
    sizes: tuple[int, int, int, int, int, int],
    flags: npt.NDArray[np.generic],
    replica_families: tuple[_Family, ...],
    voter_families: tuple[_Family, ...],
    granularity: float,
    tolerance: float,
    scenarios: tuple[int, npt.NDArray[np.generic], _Floats, _Floats] | None,
    cases: tuple[int, bool, tuple[tuple[object, ...], ...]] | None,
    /,
) -> _Context: ...
def bound_roots(
    context: _Context,
    leaders: npt.NDArray[np.int32],
    u: _Floats,
    warm: npt.NDArray[np.bool_],
    bounds: _Floats,
    ends: npt.NDArray[np.int64],
    iterations: int,
    swaps: int,
    full: int,
    work: float,
    seconds: float,
    /,
) -> int: ...
def shared_bounds(
    context: _Context,
    leaders: npt.NDArray[np.int32],
    bounds: _Floats,
    reference: npt.NDArray[np.int32],
    u: _Floats,
    serving: npt.NDArray[np.int32],
    seconds: float,
    /,
) -> int: ...
def quick_bounds(
    context: _Context,
    leaders: npt.NDArray[np.int32],
    u: _Floats,
    bounds: _Floats,
    work: float,
    seconds: float,
    /,
) -> int: ...
def bounds_from_memory(
    context: _Context,
    leaders: npt.NDArray[np.int32],
    bounds: _Floats,
    swaps: int,
    seconds: float,
    /,
) -> int: ...
def resize(context: _Context, least: int, most: int, seconds: float, /) -> None: ...
def set_gap(context: _Context, gap: float, /) -> None: ...
def set_size_limits(
    context: _Context,
    cells: float,
    share: float,
    nodes: int,
    burst: int,
    work: float,
    transfers: int,
    /,
) -> None: ...
def open_trees(
    context: _Context, leaders: npt.NDArray[np.int32], u: _Floats, bounds: _Floats, /
) -> None: ...
def run(context: _Context, work: float, seconds: float, /) -> bool: ...
def tree_bounds(context: _Context, leaders: npt.NDArray[np.int32], bounds: _Floats, /) -> None: ...
def decisions_learned(context: _Context, leader: int, /) -> float: ...
def incumbent(context: _Context, /) -> tuple[float, int, tuple[int, ...]]: ...
def propose(context: _Context, score: float, leader: int, replicas: tuple[int, ...], /) -> None: ...
def counters(context: _Context, /) -> tuple[int, int, int, float, float]: ...
def record(context: _Context, on: bool, /) -> bytes: ...
