import numpy as np
import numpy.typing as npt

_Floats = npt.NDArray[np.float64]
_Ints = npt.NDArray[np.int32]

class _Sets: ...

def create(
    sizes: tuple[int, int, int, int, int, int],
    original: _Ints,
    by_site: _Floats,
    site_rtt: _Floats,
    near_order: _Ints,
    reads: _Floats,
    relays: _Floats,
    weights: _Floats,
    labels: _Ints,
    terms: _Ints,
    rules: _Ints,
) -> _Sets: ...
def bound(sets: _Sets, leader: int, constant: float, prefix: _Ints, first: int) -> float: ...
def run(
    sets: _Sets,
    leader: int,
    constant: float,
    prefix: _Ints,
    first: int,
    limit: float,
    seconds: float,
) -> bool: ...
def best(sets: _Sets) -> tuple[float, int, bytes, int, int]: ...
