"""Every registered method passes the public conformance suite."""

import pytest

from placement.methods.registry import available, load_method
from placement.testing import CHECKS, conformance
from tests.effort import examples, seeds

lowered = conformance._lowered


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", available())
def test_conformance(name, check, monkeypatch):
    """Answers are held against the truth on all networks; other checks see a fourth each."""
    if check.__name__ != "check_answers_are_true":

        def some(method, seed):
            return lowered(method, seed)[CHECKS.index(check) % 4 :: 4] or lowered(method, seed)

        monkeypatch.setattr(conformance, "_lowered", some)
    check(load_method(name), seed=0)


@pytest.mark.parametrize("seed", seeds(1, 1 + examples(1)))
@pytest.mark.parametrize("name", available())
def test_conformance_on_all_networks(name, seed):
    conformance.check_method(name, seed=10 * seed)
