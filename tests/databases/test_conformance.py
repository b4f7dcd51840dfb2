"""Every registered system passes the conformance suite."""

import pytest

from placement.databases import available, load_system
from placement.testing.databases import DATABASE_CHECKS


@pytest.mark.parametrize("name", available())
@pytest.mark.parametrize("check", DATABASE_CHECKS, ids=lambda check: check.__name__)
def test_conformance(name, check):
    check(load_system(name), seed=0, count=40)


@pytest.mark.slow
@pytest.mark.parametrize("name", available())
@pytest.mark.parametrize("check", DATABASE_CHECKS, ids=lambda check: check.__name__)
def test_conformance_at_length(name, check):
    check(load_system(name), seed=1, count=4000)
