"""Every registered method passes the public conformance suite."""

import pytest

from placement.methods.registry import available, load_method
from placement.testing import CHECKS
from tests.effort import examples


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", available())
def test_conformance(name, check):
    check(load_method(name), seed=0)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 1 + examples(1)))
@pytest.mark.parametrize("name", available())
def test_conformance_on_other_worlds(name, seed):
    for check in CHECKS:
        check(load_method(name), seed=10 * seed)
