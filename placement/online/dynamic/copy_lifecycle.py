"""Life of dynamic copies: creation, and deletion after a grace period.

Matri et al. 2018, sections 7.1 and 7.2.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from placement.support.checks import BoolArray, whole

__all__ = ["CopySet"]


class CopySet:
    """Dynamic copies of all sites, with the number of rounds each has been absent from the lists.

    Parameters
    ----------
    static
        Static copies, shape (sites, objects); they never come or go.
    grace
        g >= 1: a copy is deleted at the g-th consecutive list without it. g = 1 deletes at once.

    Examples
    --------
    >>> copies = CopySet(np.zeros((1, 2), dtype=bool), grace=2)
    >>> copies.create(np.array([[True, False]]))
    1
    >>> copies.judge(np.array([[False, False]])), copies.judge(np.array([[False, False]]))
    (0, 1)
    """

    def __init__(self, static: BoolArray, grace: int) -> None:
        grace = whole(grace, "grace", minimum=1)
        self.static = static
        self.grace = grace
        self.active: BoolArray = np.zeros(static.shape, dtype=bool)
        self._absent: npt.NDArray[np.int32] = np.zeros(static.shape, dtype=np.int32)

    def create(self, popular: BoolArray) -> int:
        """Create the copies that a complete list asks for; return how many are new."""
        new = popular & ~self.static & ~self.active
        self.active |= new
        self._absent[new] = 0
        return int(new.sum())

    def judge(self, popular: BoolArray, known: BoolArray | None = None) -> int:
        """Apply a complete serving list: count absences and delete; return how many go.

        Parameters
        ----------
        popular
            The list, shape (sites, objects). An incomplete one must not be given: it neither
            deletes nor counts.
        known
            Copies whose holder has the list, same shape; None: all.
        """
        missing = self.active & ~popular
        if known is not None:
            missing &= known
            popular = popular & known
        self._absent[missing] += 1
        self._absent[popular] = 0
        gone = missing & (self._absent >= self.grace)
        self.active &= ~gone
        self._absent[gone] = 0
        return int(gone.sum())

    def fingerprint(self) -> bytes:
        """Return bytes that are equal exactly for equal states."""
        held = np.packbits(self.active).tobytes()
        return held + self._absent[self.active].tobytes()
