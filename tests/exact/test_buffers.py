"""The compiled kernel refuses arrays that do not fit: refused, and every buffer let go of."""

from __future__ import annotations

import numpy as np
import pytest

from formulations.exact.kernel import compiled_available, open_kernel
from tests.exact.test_engine import spread_out

pytestmark = pytest.mark.skipif(not compiled_available(), reason="the kernel was not compiled")

SITES, CLIENTS = 6, 4


def columns(leaders: list[int], rows: tuple[int, ...]) -> list[bytearray]:
    """Leaders and zeros, an array per number of bytes in a row; a bytearray knows who holds it."""
    return [bytearray(np.array(leaders, dtype=np.int32).tobytes())] + [
        bytearray(row * len(leaders)) for row in rows
    ]


def call(verb: str, arrays: list[bytearray]) -> int:
    import formulations.exact._kernel as compiled

    core = spread_out(SITES, CLIENTS, seed=1, size=3, voters=2)
    context = open_kernel(core, "compiled").context
    if verb == "quick_bounds":
        return compiled.quick_bounds(context, *arrays, 1e12, 60.0)
    return compiled.bound_roots(context, *arrays, 5, 1, len(arrays[0]) // 4, 1e12, 60.0)


ROWS = {"bound_roots": (8 * CLIENTS, 1, 8, 8), "quick_bounds": (8 * CLIENTS, 8)}
each_verb = pytest.mark.parametrize("verb", ROWS)


def assert_released(arrays: list[bytearray]) -> None:
    for array in arrays:
        array.append(0)  # BufferError while anyone holds it


@each_verb
def test_fitting_arrays_are_filled_and_released(verb):
    arrays = columns([0, 3], ROWS[verb])
    assert call(verb, arrays) == 2
    bounds = np.frombuffer(bytes(arrays[-1 if verb == "quick_bounds" else 3]), dtype=float)
    assert (bounds > 0).all()
    assert_released(arrays)


@each_verb
@pytest.mark.parametrize("change", [-1, 1])
def test_every_array_must_fit(verb, change):
    for wrong in range(len(ROWS[verb]) + 1):
        arrays = columns([0, 3], ROWS[verb])
        if change < 0:
            del arrays[wrong][-1]
        else:
            arrays[wrong].append(0)
        with pytest.raises(ValueError, match="do not fit"):
            call(verb, arrays)
        assert_released(arrays)


@each_verb
@pytest.mark.parametrize("leader", [-2, SITES])
def test_leaders_must_exist(verb, leader):
    arrays = columns([0, leader], ROWS[verb])
    with pytest.raises(ValueError, match="do not fit"):
        call(verb, arrays)
    assert_released(arrays)


@each_verb
def test_results_must_be_writable(verb):
    arrays = columns([0, 3], ROWS[verb])
    with pytest.raises(BufferError):
        call(verb, [*arrays[:-1], bytes(arrays[-1])])
    assert_released(arrays)
