"""Types of the compiled kernel (csrc/selection.c); see run_policy.py."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

_Floats: TypeAlias = npt.NDArray[np.float64]
_Ints: TypeAlias = npt.NDArray[np.int64]

_Bytes: TypeAlias = npt.NDArray[np.uint8]

def run(
    sizes: tuple[int, int, int, int, int, int, int, int],
    times: tuple[float, float],
    policy: tuple[int, int, float, float, float],
    limiter: tuple[float, float, float, float, float, float, float, float, float, float, float, int]
    | None,
    hedge: tuple[float, float, float] | None,
    snitch: tuple[float, float, float, float, int, int] | None,
    buffers: tuple[
        _Floats,  # arrival
        _Ints,  # client
        _Ints,  # group
        _Floats,  # work
        npt.NDArray[np.bool_],  # shadowed
        _Floats,  # shadow_work
        npt.NDArray[np.int8],  # shuffle
        _Floats,  # means
        _Floats,  # mix
        _Floats,  # delay
        _Ints,  # table
        _Ints,  # generators
        _Floats,  # joins
        _Floats,  # share
        _Floats,  # draws
        _Floats,  # uniform
        _Ints,  # forced
        _Floats,  # latency
        _Ints,  # server
        _Floats,  # start
        _Floats,  # issued
        _Bytes,  # update
    ],
    /,
) -> tuple[float, int, int, int, int]: ...
