"""Types of the compiled kernel (csrc/module.c); see run_policy.py."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Floats: TypeAlias = npt.NDArray[np.float64]
_Ints: TypeAlias = npt.NDArray[np.int64]

def run(
    sizes: tuple[int, int, int, int, int, int],
    times: tuple[float, float],
    policy: tuple[int, int, float, float, float],
    limiter: tuple[float, float, float, float, float, float, float, float, float, float, float, int]
    | None,
    arrival: _Floats,
    client: _Ints,
    group: _Ints,
    work: _Floats,
    shadowed: npt.NDArray[np.bool_],
    shadow_work: _Floats,
    shuffle: npt.NDArray[np.int8],
    means: _Floats,
    latency: _Floats,
    server: _Ints,
    start: _Floats,
    /,
) -> tuple[float, int, int, int]: ...
