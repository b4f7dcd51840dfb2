"""Every registered method passes the public conformance suite."""

import pytest

from placement.methods.registry import available, load_method
from placement.testing import CHECKS, conformance
from tests.effort import examples, seeds

lowered, large_worlds = conformance._lowered, conformance.large_worlds


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", available())
def test_conformance(name, check, monkeypatch):
    """Answers are held against the truth on every second network, other checks see an eighth.

    Limits of time are asked about on one of the two large networks.
    """
    share = 2 if check.__name__ == "check_answers_are_true" else 8
    first = (CHECKS.index(check) + list(available()).index(name)) % share

    def some(method, seed):
        return lowered(method, seed)[first::share] or lowered(method, seed)

    monkeypatch.setattr(conformance, "_lowered", some)
    monkeypatch.setattr(
        conformance, "large_worlds", lambda seed: large_worlds(seed)[first % 2 :][:1]
    )
    check(load_method(name), seed=0)


@pytest.mark.parametrize("seed", seeds(1, 1 + examples(1)))
@pytest.mark.parametrize("name", available())
def test_conformance_on_all_networks(name, seed):
    conformance.check_method(name, seed=10 * seed)
