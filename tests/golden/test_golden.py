"""The answers that stand are still given: quick ones in every run, all in the slow one."""

import pytest

from tests.effort import PROFILE
from tests.golden.__main__ import flaws
from tests.golden.answers import FILES


@pytest.mark.parametrize("kind", FILES)
def test_quick_answers_stand(kind):
    """Before a landing all that ``python -m tests.golden check`` asks for."""
    assert not list(flaws([kind], quick=0.5 if PROFILE == "ordinary" else 1.0))


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_all_answers_stand(kind):
    assert not list(flaws([kind], everything=True))
