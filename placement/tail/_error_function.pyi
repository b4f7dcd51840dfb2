"""Types of csrc/error_function.c."""

import numpy as np
import numpy.typing as npt

def erfc(values: npt.NDArray[np.float64], /) -> None: ...
