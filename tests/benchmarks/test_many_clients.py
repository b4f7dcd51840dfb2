"""The study of many clients and few sites."""

from __future__ import annotations

import numpy as np
import pytest

from benchmarks.exact.many_clients import HEADS, answer, crowd
from formulations.exact.kernel import compiled_available


def test_the_crowd_is_the_same_for_every_question():
    one, two = crowd(50, sites=6), crowd(50, sites=6)
    assert one == two
    assert one.client_rtt.shape == (50, 6)
    assert (one.site_rtt == one.site_rtt.T).all()
    assert np.isfinite(one.counts).all()
    assert one != crowd(50, sites=6, mix="oltp")


@pytest.mark.skipif(not compiled_available(), reason="the C kernel was not built")
def test_a_question_is_answered_with_a_proof():
    row = dict(zip(HEADS, answer(200, 3, 3, 1, False), strict=True))
    assert row["status"] == "optimal"
    assert (row["clients"], row["sites"]) == (200, 32)
