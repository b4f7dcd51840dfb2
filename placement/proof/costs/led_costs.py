"""Costs of clients, direct operations and quorums by leader, on an exact or rounded grid."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from placement.evaluation.score import closest_first
from placement.model.site_families import FamilyCount, site_families
from placement.proof.claim import Claim
from placement.proof.costs.exact_costs import ExactCosts
from placement.proof.costs.rounded_costs import RoundedCosts
from placement.proof.event_tree import State

__all__ = ["LedCosts"]


class LedCosts:
    """The terms of Eq. 1 under every leader that is asked for.

    Parameters
    ----------
    claim
        The problem and what is claimed of it.
    exact
        Whether on the exact grid; else `claim.rounded` is not None.
    """

    def __init__(self, claim: Claim, *, exact: bool) -> None:
        self.claim, self.exact = claim, exact
        self._single: dict[int, RoundedCosts | ExactCosts] = {}
        self._near_voters: dict[int, list[list[tuple[int, int]]]] = {}
        self._waits: dict[int, list[int]] = {}

    @property
    def bits(self) -> int:
        """Bits behind the binary point of the grid."""
        grid = self.claim.rounded
        return self.claim.bits if self.exact or grid is None else grid.shift

    def threshold(self, exact: int) -> int:
        """Return a number of the exact grid on this one, rounded up."""
        grid = self.claim.rounded
        return exact if self.exact or grid is None else grid.up(exact, self.claim.bits)

    def costs(self, leaders: int | Sequence[int]) -> RoundedCosts | ExactCosts:
        """Costs of the clients under a leader, with K and its waits for every site; or a group."""
        waits = self.claim.wait_places(leaders) if isinstance(leaders, int) else np.zeros(0)
        kind = ExactCosts if self.exact else RoundedCosts
        return kind(self.claim, leaders, waits)

    def single(self, leader: int) -> RoundedCosts | ExactCosts:
        """Costs under a leader, which are kept."""
        if leader not in self._single:
            self._single[leader] = self.costs(leader)
        return self._single[leader]

    def waits(self, leader: int) -> list[int]:
        """D·d(ℓ, ·) by site; where RTTs vary by interval, floors of Σ_k D_k·d_k(ℓ, ·)."""
        if leader not in self._waits:
            costs = self.single(leader).radius_costs
            if self.claim.varies and len(costs) > 1:
                costs = [costs[place] for place in self.claim.wait_places(leader).astype(int)]
            self._waits[leader] = costs
        return self._waits[leader]

    def wait(self, leader: int, voters: Sequence[int]) -> int:
        """Σ_k D_k·q_k of a leader and its voters, at least m of them, from below."""
        costs, place = self.single(leader), self.claim.rules.quorum - 1
        if costs.waits is None:
            return sorted(costs.radius_costs[v] for v in voters)[place]
        # of each interval, where the floors of `waits` would be less
        rows: list[list[int]] = costs.waits[:, list(voters)].tolist()
        return sum(sorted(row)[place] for row in rows)

    def led(
        self,
        leaders: Sequence[int],
        lost: frozenset[int],
        state: State,
        replicas: int | None = None,
    ) -> int | None:
        """Least K + D·q of a scenario over the leaders that a state leaves; None: no quorum.

        The voters are replicas, obey their rules, and are none of the lost sites: so q is at least
        the m-th wait among known voters and as many more as there may be voters, of whom no more
        are free sites than replicas may be added. `replicas`: the most that there can be; None:
        what the rules say.
        """
        rules = self.claim.rules
        most = rules.replicas_max if replicas is None else replicas
        room = most - len(state.inside), rules.voters - len(state.voters)
        if min(room) < 0:
            return None
        best: int | None = None
        for leader in leaders:
            if leader in state.outside or leader in state.others or leader in lost:
                continue
            costs = self.single(leader)
            if best is not None and costs.constant >= best:
                continue
            wait = self._wait(leader, lost, state, room)
            if wait is not None and (best is None or costs.constant + wait < best):
                best = costs.constant + wait
        return best

    def _wait(
        self, leader: int, lost: frozenset[int], state: State, room: tuple[int, int]
    ) -> int | None:
        """Least quorum wait: by the floors, and by each interval alone.

        `room`: for more replicas, and voters.
        """
        waits: list[int] = []
        for row in self._rows(leader):
            wait = self._quorum(row, lost, state, room)
            if wait is None:
                return None
            waits.append(wait)
        return max(waits[0], sum(waits[1:]))

    def _quorum(
        self,
        row: Sequence[tuple[int, int]],
        lost: frozenset[int],
        state: State,
        room: tuple[int, int],
    ) -> int | None:
        rules, (more_replicas, more_voters) = self.claim.rules, room
        families = site_families(rules, "voters")
        load = FamilyCount(families[0], rules.voters, rules.voters) if len(families) == 1 else None
        voting = held = added = fitting = 0
        for site, wait in row:
            if site in state.outside or site in state.others or site in lost:
                continue
            if site in state.voters:
                voting += 1
            elif site in state.inside:
                held += 1
            else:
                added += 1
            fitting += load is None or load.take(site)
            able = voting + min(held + min(added, more_replicas), more_voters)
            if fitting >= rules.quorum and able >= rules.quorum:
                return wait
        return None

    def _rows(self, leader: int) -> list[list[tuple[int, int]]]:
        """Sites that may vote and their waits, closest to a leader first.

        A row of the floors; then, where RTTs vary, one of D_k·d_k(ℓ, ·) for each interval.
        """
        if leader not in self._near_voters:
            voting, floors = np.nonzero(self.claim.rules.may_vote)[0], self.waits(leader)
            order = voting[closest_first(self.claim.wait_places(leader)[voting])].tolist()
            rows = [[(site, floors[site]) for site in order]]
            for row in self._interval_waits(leader):
                near = ((site, int(row[site])) for site in voting.tolist())
                rows.append(sorted(near, key=lambda pair: pair[1]))
            self._near_voters[leader] = rows
        return self._near_voters[leader]

    def _interval_waits(self, leader: int) -> Iterable[Sequence[int]]:
        waits = self.single(leader).waits
        return () if waits is None else waits.tolist()
