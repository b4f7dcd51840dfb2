"""Refusals, and the words that say why."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from placement.errors import InputError


@contextmanager
def refused(*words: object) -> Iterator[None]:
    """Expect an input error whose message has all words."""
    with pytest.raises(InputError) as caught:
        yield
    missing = [word for word in map(str, words) if word not in str(caught.value)]
    assert not missing, f"not in {caught.value}: {missing}"
