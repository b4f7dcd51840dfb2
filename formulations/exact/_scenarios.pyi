"""Types of the compiled threshold search (csrc/scenarios/python/).

:mod:`formulations.exact.loss_search` and :mod:`formulations.exact.threshold_search` say what the
arguments are.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Floats: TypeAlias = npt.NDArray[np.float64]
_Ints: TypeAlias = npt.NDArray[np.integer]
_Family: TypeAlias = tuple[int, int, _Ints]

class _Losses: ...
class _LateVoters: ...

def losses(
    rtt: _Floats,
    order: _Ints,
    near: _Floats,
    relay: _Floats,
    intervals: tuple[_Ints, _Floats, _Floats],
    direct: _Floats,
    loss_of: _Ints,
    probability: _Floats,
    moved: tuple[npt.NDArray[np.bool_], _Ints, _Ints, _Floats, _Ints, _Floats] | None,
    flags: npt.NDArray[np.generic],
    rules: tuple[_Family, ...],
    voter_rules: tuple[_Family, ...],
    sizes: tuple[int, int, int, int, int, int, int, int, int, int],
    ceiling: float,
    /,
) -> _Losses: ...
def start(context: _Losses, value: float, /) -> None: ...
def descend(
    context: _Losses, replicas: tuple[int, ...], kicks: int, seed: int, seconds: float, /
) -> float: ...
def floor(
    context: _Losses, leader: int, most: int, steps: int, u: _Floats, seconds: float, /
) -> float: ...
def open(
    context: _Losses,
    leader: int,
    successors: npt.NDArray[np.bool_],
    fixed: int,
    u: _Floats,
    record: int,
    /,
) -> None: ...
def run(context: _Losses, nodes: int, seconds: float, /) -> int: ...
def best(context: _Losses, /) -> tuple[float, int, tuple[int, ...], tuple[int, ...]]: ...
def state(context: _Losses, /) -> tuple[float, float, int, int, int]: ...
def record(context: _Losses, /) -> bytes | None: ...
def late_voters(
    order: _Ints,
    answered: _Floats,
    votes: _Ints,
    share: _Floats,
    asked: _Floats,
    sizes: tuple[int, int, int, int, int, int, int, bool],
    /,
) -> _LateVoters: ...
def least_late(voters: _LateVoters, state: bytes, room: int, /) -> float: ...
def search_thresholds(
    orders: _Ints,
    scenarios: tuple[
        tuple[
            _Floats | None,
            _Floats | None,
            float,
            float,
            float,
            object,
            npt.NDArray[np.bool_] | None,
            object | None,
        ],
        ...,
    ],
    may_hold: npt.NDArray[np.bool_],
    must_hold: npt.NDArray[np.bool_],
    sizes: tuple[int, int, int, int, int, int, int, int],
    rules: tuple[_Family, ...],
    seconds: float,
    record: int,
    leaf: Callable[[bytes], bool | float | None],
    /,
) -> tuple[int, int, int, int, bytes | None]: ...
