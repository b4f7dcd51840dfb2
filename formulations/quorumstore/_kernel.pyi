"""Types of the compiled kernel (csrc/module.c); see enumeration.py."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Array: TypeAlias = npt.NDArray[np.generic]
_Four: TypeAlias = tuple[int, int, int, int]

class _Store: ...
class _Search: ...

def create(
    sizes: tuple[int, int, int, int, int, int, int, int],
    grid: _Array,
    rank: _Array,
    moved: _Array,
    variant_of: _Array,
    loss_begin: _Array,
    loss_site: _Array,
    loss_variant: _Array,
    region: _Array,
    /,
) -> _Store: ...
def open(
    store: _Store,
    reads: _Array,
    writes: _Array,
    needed: tuple[int, int],
    contingency: bool,
    moving: tuple[bool, ...],
    caps: _Four,
    pairs: int,
    shapes: _Array,
    ways: _Array,
    steps: _Array,
    /,
) -> _Search: ...
def probe(search: _Search, pair: int, rows: _Array, /) -> None: ...
def find(search: _Search, /) -> None: ...
def incumbent(search: _Search, /) -> tuple[int, int, tuple[int, ...]]: ...
def choose(search: _Search, /) -> tuple[int, int, tuple[int, ...]]: ...
def list(search: _Search, pair: int, first: int, limits: _Four, /) -> bytes: ...
