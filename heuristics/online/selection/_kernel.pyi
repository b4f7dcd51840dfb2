"""Types of the compiled kernel (csrc/selection.c); see run_policy.py."""

from typing import Any

import numpy.typing as npt

def run(
    sizes: tuple[int, int, int, int, int, int, int, int],
    times: tuple[float, float],
    policy: tuple[int, int, float, float, float],
    limiter: tuple[float, float, float, float, float, float, float, float, float, float, float, int]
    | None,
    hedge: tuple[float, float, float] | None,
    snitch: tuple[float, float, float, float, int, int] | None,
    buffers: tuple[npt.NDArray[Any], ...],  # in the order of `run_doc`
    /,
) -> tuple[float, int, int, int, int]: ...
