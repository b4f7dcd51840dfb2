"""Steps that a check of a file may still take, counted before they are taken."""

from __future__ import annotations

import math

from placement.errors import LimitError

WORK = 1_000_000_000
"""Steps that a check takes at most, unless it is told otherwise: two to four minutes."""

_PRINTED = 10**15
"""Counts from here on are printed as a power of ten."""


class Work:
    """Steps that the check of a file may still take.

    A plan or a certificate comes from a file, and a few words of it can ask for any number of
    replica sets and losses. Steps are counted before they are taken, so that the limit does not
    depend on the machine.
    """

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    def take(self, steps: int, what: str = "checking this certificate takes") -> None:
        """Count steps, which `what` takes; LimitError when they are more than are left."""
        self.left -= steps
        if self.left < 0:
            raise LimitError(
                f"{what} more than {self.limit:,} steps, the limit; set a larger limit by the "
                "option --work of 'placement check', or the argument 'work' of check_certificate"
            )


def large_count(count: int) -> str:
    """Return a count as text; a power of ten where it has more than 15 digits.

    >>> large_count(2_118_760), large_count(3 * 10**20)
    ('2,118,760', 'about 10^20')
    """
    if count < _PRINTED:
        return f"{count:,}"
    return f"about 10^{math.floor((count.bit_length() - 1) * math.log10(2))}"
