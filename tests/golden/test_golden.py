"""The answers that stand are still given: the quick ones in every run, all in the slow one."""

import pytest

from tests.golden.__main__ import flaws
from tests.golden.answers import FILES


@pytest.mark.parametrize("kind", FILES)
def test_quick_answers_stand(kind):
    assert not list(flaws([kind]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", FILES)
def test_all_answers_stand(kind):
    assert not list(flaws([kind], everything=True))
