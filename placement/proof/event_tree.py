"""The events of a proof, replayed: sites fixed, states closed, enumerated and branched on.

A *state* (I, O) names sites that hold a replica and sites that do not; F are the others. A proof is
a list of events that narrow or split the state of its beginning until nothing is left:

- ``["fix", multipliers, out, in]``: bounds show that nothing better has a replica at a site of
  `out`, or none at a site of `in`;
- ``["close", multipliers]``: a bound shows that the state holds nothing better;
- ``["enumerate"]``: every replica set of the state is evaluated;
- ``["branch", j]``: first come the events of the state with j in I, up to the one that closes it,
  then those of the state with j in O;
- ``["vote", j]``: the same of the state in which j votes, with j in I, and of that in which it does
  not vote.

What is bounded, and by what, is a matter of the kind of proof
(:mod:`placement.proof.leader_proof`, :mod:`placement.proof.measures_proof`). Every bound has a
quick form in int64 that is rounded in the valid direction and, where that does not decide, an exact
one.
"""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from operator import index
from typing import Any, Generic, TypeVar

import numpy as np

from placement.errors import CertificateError
from placement.proof.choice.site_choice import SiteChoice
from placement.proof.choice.sorted_sites import SortedSites
from placement.support.work import Work

CELLS_PER_STEP = 32
"""Cells of clients × sites in int64 that count as one step, which is one in exact integers."""

STEPS_OF_A_CALL = 1000
"""Steps that a bound takes beside those of its cells: what calls cost on the smallest instance."""

_STEPS_OF_AN_EVENT = 30
"""Steps that an event takes beside those of its bounds."""

_Form = TypeVar("_Form")
_Multipliers = TypeVar("_Multipliers")


@dataclass(frozen=True)
class State:
    """Sites that hold a replica and sites that do not, and sites that are known to vote or not to.

    A bound may leave out known votes: it then holds for more configurations.
    """

    inside: frozenset[int]
    outside: frozenset[int]
    voters: frozenset[int] = frozenset()
    others: frozenset[int] = frozenset()

    def with_site(self, site: int) -> State:
        """Return the state with a replica at one more site."""
        return replace(self, inside=self.inside | {site})

    def without_site(self, site: int) -> State:
        """Return the state with no replica at one more site."""
        return replace(self, outside=self.outside | {site})

    def with_vote(self, site: int) -> State:
        """Return the state in which a site votes, and so holds a replica."""
        return replace(self, inside=self.inside | {site}, voters=self.voters | {site})

    def without_vote(self, site: int) -> State:
        """Return the state in which a site does not vote."""
        return replace(self, others=self.others | {site})


class EventTree(ABC, Generic[_Form, _Multipliers]):
    """The proof of one tree, about `whom` in messages; counts events read and bounds computed."""

    def __init__(self, choice: SiteChoice, whom: str, work: Work) -> None:
        self.choice, self.whom, self.work = choice, whom, work
        self.sites = len(choice.rules.may_hold)
        self.events = self.bounds = 0
        self._last_free: tuple[State | None, list[int]] = (None, [])

    # --- what a kind of proof says --------------------------------------------------------

    @abstractmethod
    def _read(self, event: Sequence[Any]) -> _Multipliers:
        """Return the multipliers of a "fix" or "close"."""

    @abstractmethod
    def _forms(self, multipliers: _Multipliers | None) -> Iterator[tuple[_Form, int]]:
        """Yield the forms of the costs, the quick one first, and cells per step of each.

        Without multipliers: those that evaluate a set of replicas.
        """

    @abstractmethod
    def _wanted(
        self, form: _Form, state: State, multipliers: _Multipliers, less: int | None
    ) -> tuple[float, list[int], list[int]]:
        """Bound a state without its inner problem.

        Returned are what the inner problem must reach (−∞: nothing), ρ of every site, and the costs
        of its radii. `less` is a site that has just been ruled out, when the multipliers may be
        lowered for it.
        """

    @abstractmethod
    def _no_better(self, form: _Form, replicas: list[int]) -> bool:
        """Return whether no configuration with these replicas is below the claim."""

    @abstractmethod
    def _cells(self, multipliers: _Multipliers | None) -> int:
        """Return the cells of one bound, or (None) of the evaluation of one replica set."""

    def _other(self, event: Sequence[Any], number: int, state: State) -> bool:
        """Take an event of another kind; return whether it is done with the state."""
        raise self._flaw(number, f"unknown event {event[0]!r:.60}")

    def _remember(self) -> object:
        """Return the values that a branch has to restore beside the state."""
        return None

    def _restore(self, remembered: object) -> None:
        """Restore the values of :meth:`_remember`."""

    # --- bounds -----------------------------------------------------------------------------

    def _take(self, multipliers: _Multipliers | None, cells_per_step: int, times: int = 1) -> None:
        """Count so many evaluations of a bound, or of a set of replicas."""
        cells = self._cells(multipliers) // cells_per_step
        self.work.take(times * (cells + self.choice.steps + STEPS_OF_A_CALL))

    def _free(self, state: State) -> list[int]:
        if self._last_free[0] is not state:  # several bounds of one state follow each other
            is_free = np.ones(self.sites, dtype=bool)
            is_free[[*state.inside, *state.outside]] = False
            free: list[int] = np.flatnonzero(is_free).tolist()
            self._last_free = (state, free)
        return self._last_free[1]

    def _open_sites(self, state: State) -> list[int]:
        return self.choice.open_sites(state.inside, self._free(state))

    def _reaches(
        self, form: _Form, state: State, multipliers: _Multipliers, less: int | None = None
    ) -> bool:
        """Return whether the bound proves the claim for a state."""
        self.bounds += 1
        wanted, rho, radius_costs = self._wanted(form, state, multipliers, less)
        sites = SortedSites(state.inside, self._open_sites(state), rho)
        if not self.choice.open_radii(wanted, sites, radius_costs):
            return True
        return self._reaches_otherwise(form, wanted, sites)

    def _reaches_otherwise(self, form: _Form, wanted: float, sites: SortedSites) -> bool:
        """Return whether another inner problem reaches what that of the radii does not."""
        return False

    def _left_otherwise(
        self, form: _Form, wanted: float, sites: SortedSites, outs: Collection[int], left: list[int]
    ) -> list[int]:
        """Return the sites of `left` that another inner problem leaves unproved too."""
        return left

    def _closes(self, state: State, multipliers: _Multipliers) -> bool:
        for form, cells_per_step in self._forms(multipliers):
            self._take(multipliers, cells_per_step)
            if self._reaches(form, state, multipliers):
                return True
        return False

    # --- the proof ---------------------------------------------------------------------------

    def run(self, events: Sequence[Sequence[Any]], state: State) -> None:
        """Replay a proof from a state; CertificateError at the first event that does not hold."""
        pending: list[tuple[State, object]] = []
        open_state = True
        for number, event in enumerate(events):
            self.events += 1
            self.work.take(self.sites + _STEPS_OF_AN_EVENT)
            if not open_state:
                raise self._flaw(number, "the proof goes on after its end")
            kind = event[0]
            done = False
            if kind == "fix":
                out, kept = self._fix(event, state, number)
                state = replace(state, inside=state.inside | kept, outside=state.outside | out)
            elif kind == "close":
                if not self._closes(state, self._read(event)):
                    raise self._flaw(number, "the bound does not reach the claim")
                done = True
            elif kind == "enumerate":
                self._enumerate(state, number)
                done = True
            elif kind == "branch":
                site = index(event[1])
                if site in state.inside | state.outside or not 0 <= site < self.sites:
                    raise self._flaw(number, f"site {site} is not free to branch on")
                pending.append((state.without_site(site), self._remember()))
                state = state.with_site(site)
            elif kind == "vote":
                site = index(event[1])
                if site in state.outside | state.voters | state.others or not (
                    0 <= site < self.sites
                ):
                    raise self._flaw(number, f"the vote of site {site} is not open to branch on")
                pending.append((state.without_vote(site), self._remember()))
                state = state.with_vote(site)
            else:
                done = self._other(event, number, state)
            if done:
                open_state = bool(pending)
                if pending:
                    state, remembered = pending.pop()
                    self._restore(remembered)
        if open_state:
            raise self._flaw(len(events), "the proof ends with something left open")

    def _fix(
        self, event: Sequence[Any], state: State, number: int
    ) -> tuple[frozenset[int], frozenset[int]]:
        """Prove the sites of an event out and in; return both sets."""
        multipliers = self._read(event)
        out, kept = [index(s) for s in event[-2]], [index(s) for s in event[-1]]
        fixed = {*out, *kept}
        if len(fixed) != len(out) + len(kept) or not fixed <= {*self._free(state)}:
            raise self._flaw(number, "fixes a site that is not free, or twice")
        left = [*out, *kept]
        outs = frozenset(out)
        for form, cells_per_step in self._forms(multipliers):
            self._take(multipliers, cells_per_step)
            left = self._left_by_one(form, left, outs, state, multipliers)
            still = []
            for s in left:
                self._take(multipliers, cells_per_step)
                if s in outs:
                    proved = self._reaches(form, state.with_site(s), multipliers)
                else:
                    proved = self._reaches(form, state.without_site(s), multipliers, less=s)
                if not proved:
                    still.append(s)
            left = still
            if not left:
                return outs, frozenset(kept)
        where = "out" if left[0] in outs else "in"
        raise self._flaw(number, f"nothing proves site {left[0]} {where}")

    def _left_by_one(
        self, form: _Form, sites: Sequence[int], outs: frozenset[int], state: State,
        multipliers: _Multipliers,
    ) -> list[int]:  # fmt: skip
        """Return the sites that one evaluation of the bound leaves unproved."""
        self.bounds += 1
        wanted, rho, radius_costs = self._wanted(form, state, multipliers, None)
        ordered = SortedSites(state.inside, self._open_sites(state), rho)
        # With one case of a site ruled out no value falls: other radii reach the claim already.
        radii = self.choice.open_radii(wanted, ordered, radius_costs)
        self.work.take(len(sites) * self.choice.steps)
        # for a site that is not free the rules leave no room: it is out
        added = [s for s in sites if s in outs and ordered.place[s] >= 0]
        left = self.choice.open_with(wanted, ordered, radius_costs, added, radii)
        for s in sites:
            if s not in outs and (
                ordered.place[s] < 0
                or self.choice.open_radii(wanted, ordered, radius_costs, left_out=s, radii=radii)
            ):
                left.append(s)
        return self._left_otherwise(form, wanted, ordered, outs, left)

    def _enumerate(self, state: State, number: int) -> None:
        """Evaluate every replica set that agrees with the state."""
        free = self._free(state)
        sizes = self.choice.sizes_of(len(state.inside), len(free))
        cells_per_step = next(cells for _, cells in self._forms(None))
        for size in sizes:
            self._take(None, cells_per_step, math.comb(len(free), size))
        for size in sizes:
            for more in itertools.combinations(free, size):
                replicas = sorted({*state.inside, *more})
                if not any(self._no_better(form, replicas) for form, _ in self._forms(None)):
                    raise self._flaw(number, f"the replicas {replicas} are better")

    def start(self, *held: int) -> State:
        """Return the state in which nothing is decided but pins, and `held`, where a replica is."""
        rules = self.choice.rules
        inside = {int(s) for s in np.nonzero(rules.must_hold)[0]}.union(held)
        outside = {int(s) for s in np.nonzero(~rules.may_hold)[0]} - inside
        return State(frozenset(inside), frozenset(outside))

    def _flaw(self, number: int, what: str) -> CertificateError:
        return CertificateError(f"proof for {self.whom}, event {number}: {what}")
