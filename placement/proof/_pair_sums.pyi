"""Types of the compiled sums (csrc/pair_sums.c); see cheap_pairs.py."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Whole: TypeAlias = npt.NDArray[np.int64]
_Places: TypeAlias = npt.NDArray[np.int32]
_Floats: TypeAlias = npt.NDArray[np.float64]

class _Pairs: ...

def list_table(
    sizes: tuple[int, int, int], rank: npt.NDArray[np.integer], limits: _Whole, table: _Whole, /
) -> _Pairs: ...
def list_sums(
    sizes: tuple[int, int, int, int],
    below: float,
    rank: npt.NDArray[np.integer],
    limits: _Whole,
    near: _Floats,
    relay: _Floats,
    to_leader: _Floats,
    scenario: _Places,
    /,
) -> _Pairs: ...
def narrow(pairs: _Pairs, first: _Places, free: npt.NDArray[np.bool_], /) -> _Pairs: ...
def place_entries(pairs: _Pairs, entries: int, start: _Whole, places: _Places, /) -> None: ...
def savings(
    pairs: _Pairs,
    u: _Whole,
    first: _Places,
    free: npt.NDArray[np.bool_],
    entries: int,
    start: _Whole,
    prefix: _Whole,
    totals: _Whole,
    /,
) -> int: ...
def start_sums(
    sizes: tuple[int, int, int, int],
    below: float,
    rank: npt.NDArray[np.integer],
    u: _Whole,
    near: _Floats,
    relay: _Floats,
    to_leader: _Floats,
    totals: _Whole,
    /,
) -> int: ...
def detours(
    sizes: tuple[int, ...],
    order: _Places,
    costs: _Whole,
    first: _Places,
    alone: _Whole,
    free: npt.NDArray[np.bool_],
    totals: _Whole,
    /,
) -> None: ...
def count(pairs: _Pairs, /) -> int: ...
