"""Multipliers of one leader that move along to all others; the lemma is in `certificate_events`.

A multiplier is about what its client costs. When the leader changes, the relay from the client's
replica does: the multipliers of a *reference* leader k, with the site s(c) that serves each client
under it, make multipliers of every leader ℓ, u_c + B_c (d(s(c), ℓ) − d(s(c), k)).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from placement.support.checks import FloatArray

if TYPE_CHECKING:
    from formulations.exact.reduced_problem import ReducedProblem


@dataclass(frozen=True, eq=False)
class ReferenceLeader:
    """Multipliers of a leader that others share.

    Attributes
    ----------
    leader
        Site index.
    u
        Multipliers, in ms times operations, shape (active clients,).
    serving
        Site that serves each active client, shape (active clients,).
    """

    leader: int
    u: FloatArray
    serving: npt.NDArray[np.int32]

    @classmethod
    def of(cls, core: ReducedProblem, leader: int, u: FloatArray) -> ReferenceLeader:
        """Return those of a leader; the kernel finds the sites, and until then it serves all."""
        return cls(leader, u.copy(), np.full(len(core.active), leader, dtype=np.int32))

    def to_json(self) -> list[object]:
        """Return leader, multipliers and sites as JSON-like data."""
        return [self.leader, self.u.tolist(), self.serving.tolist()]

    def under(self, core: ReducedProblem, leader: int) -> FloatArray:
        """Return the multipliers of another leader, shape (active clients,).

        None is below 0, where it bounds no more than 0 does, or above the cost at the leader.
        """
        serving = self.serving.astype(np.intp)
        moved = core.relays(serving, leader) - core.relays(serving, self.leader)
        u = np.maximum(self.u + core.relay[core.active] * moved, 0.0)
        return np.minimum(u, (core.near * core.client_rtt[:, leader])[core.active])


class Multipliers(Mapping[int, FloatArray]):
    """Multipliers by leader: own ones, and shared ones that are worked out when they are read."""

    def __init__(self, core: ReducedProblem, given: Mapping[int, FloatArray] | None = None) -> None:
        self.core = core
        self.own: dict[int, FloatArray] = {}
        self.shared: dict[int, ReferenceLeader] = {}
        if isinstance(given, Multipliers):
            self.own, self.shared = dict(given.own), dict(given.shared)
        elif given is not None:
            self.own = dict(given)

    def __getitem__(self, leader: int) -> FloatArray:
        """Return the multipliers of a leader."""
        if leader in self.shared:
            return self.shared[leader].under(self.core, leader)
        return self.own[leader]

    def __setitem__(self, leader: int, u: FloatArray) -> None:
        """Give a leader multipliers of its own."""
        self.own[leader] = u
        self.shared.pop(leader, None)

    def give(self, leaders: Sequence[int], u: Sequence[FloatArray] | FloatArray) -> None:
        """Give some leaders multipliers of their own, a row for each."""
        for leader, row in zip(leaders, u, strict=True):
            self[leader] = row

    def share(self, leader: int, reference: ReferenceLeader) -> None:
        """Give a leader the multipliers of another one."""
        self.shared[leader] = reference

    def __iter__(self) -> Iterator[int]:
        """Yield the leaders."""
        yield from self.own
        yield from self.shared.keys() - self.own.keys()

    def __len__(self) -> int:
        """Return the number of leaders."""
        return len(self.own.keys() | self.shared.keys())
