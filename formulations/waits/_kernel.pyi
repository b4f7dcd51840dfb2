"""Types of the compiled kernel (csrc/module.c); see set_tables.py."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Array: TypeAlias = npt.NDArray[np.generic]

class _Sets: ...

def create(
    sizes: tuple[int, int, int, int, int, int, int],
    original: _Array,
    by_site: _Array,
    site_rtt: _Array,
    near_order: _Array,
    client_order: _Array,
    reads: _Array,
    relays: _Array,
    weights: _Array,
    labels: _Array,
    roles: _Array,
    terms: _Array,
    leaders: _Array,
    rules: _Array,
    prices: _Array,
    /,
) -> _Sets: ...
def lead(sets: _Sets, leader: int, constant: float, /) -> None: ...
def bound(sets: _Sets, prefix: _Array, first: int, /) -> float: ...
def run(sets: _Sets, prefix: _Array, first: int, seconds: float, /) -> bool: ...
def improve(sets: _Sets, chosen: _Array, /) -> None: ...
def limit(sets: _Sets, value: float, /) -> None: ...
def best(sets: _Sets, /) -> tuple[float, int, bytes, bytes, int, int]: ...
def pairs(sets: _Sets, /) -> list[tuple[int, int, float]]: ...
def each(
    sets: _Sets,
    prefix: _Array,
    value: float,
    seconds: float,
    found: Callable[[bytes], float],
    /,
) -> bool: ...
