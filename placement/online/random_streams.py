"""Independent random streams, one per cause, so that every policy meets the same sample path.

Common random numbers: random events of a system (speeds, arrivals, work) are drawn from streams
that no policy touches. Two policies compared under one seed therefore differ only by their
decisions. Without this, ratios between policies are not comparable: the same policy under
another seed moves by up to a third of its value.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placement.errors import InputError

__all__ = ["CAUSES", "checked_seed", "spawn_streams"]

CAUSES = ("speeds", "arrivals", "work", "shadow", "policy")
"""Server speeds; arrivals with their client and key; work per request; extra reads; what a policy
draws for itself."""


def checked_seed(seed: object) -> int:
    """Check a seed, a whole number >= 0 of any size, and return it as an int."""
    if isinstance(seed, bool) or not isinstance(seed, int | np.integer) or seed < 0:
        raise InputError("no seed", field="seed", value=seed, expected="a whole number >= 0")
    return int(seed)


def spawn_streams(seed: int, causes: Sequence[str] = CAUSES) -> dict[str, np.random.Generator]:
    """Return one independent generator per cause.

    The k-th cause gets the k-th child of ``numpy.random.SeedSequence(seed)``: appending a cause
    leaves the streams of the others as they were.

    Parameters
    ----------
    seed
        A whole number >= 0.
    causes
        Distinct names.

    Raises
    ------
    InputError
        For a negative seed, one that is no whole number, or causes that are not distinct.

    Examples
    --------
    >>> streams = spawn_streams(7)
    >>> list(streams)
    ['speeds', 'arrivals', 'work', 'shadow', 'policy']
    >>> float(streams["work"].random()) == float(spawn_streams(7)["work"].random())
    True
    """
    root = np.random.SeedSequence(checked_seed(seed))
    if len(set(causes)) != len(causes):
        raise InputError(
            "a cause is named twice", field="causes", value=tuple(causes), expected="unique names"
        )
    children = root.spawn(len(causes))
    return {
        cause: np.random.default_rng(child) for cause, child in zip(causes, children, strict=True)
    }
