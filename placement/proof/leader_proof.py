"""The proof of one leader in an optimality certificate, replayed in whole numbers.

What is proved
--------------
For one leader ℓ and a *state* (I, O) (sites that hold a replica, sites that do not; F are the
others), any multipliers u and β >= 0 give a lower bound on every configuration that agrees with the
state:

    L = K_ℓ + Σ_{j∈I} price_j + Σ_c [ min(u_c, w_c,f(c) + T_c) − T_c ] + Z(ρ)
    ρ_j = price_j + Σ_{c: j∈N(c)} [ β_cj + min(0, w_cj + P_cj − u_c) ]

with w_cj = A_c·d(c,j) + B_c·d(j,ℓ), f(c) the first site of I in c's order, N(c) the free sites
before f(c), P_cj the β of those before j, T_c the β of all of them.

*Proof.* Let x_cj say that j is c's nearest. Add u_c·(1 − Σ_j x_cj) = 0 and
β_ci·(Σ_{k after i} x_ck + y_i − 1) <= 0, then let each x_cj be 0 or y_j as it likes: client c
leaves u_c − T_c + min(0, w_c,f + T_c − u_c) and Σ_j y_j·(β_cj + min(0, w_cj + P_cj − u_c)). Z(ρ)
bounds Σ_{j∈Y} ρ_j + D·q over the sets Y of free sites that the rules allow: for every radius r that
the leader may have to wait, D·r + max(E, C, W), where E lets I ∪ Y have m voters within r, C obeys
the caps on replicas and W has v voters; each is the least weight of a basis of a matroid, found by
its greedy.

*A fixed site.* Let j be free, and ρ the one of (I, O, u, β). A configuration with a replica at j is
bounded by the same L with ρ_j + Z(ρ) over the sets that hold j, one without by Z(ρ) over those that
do not. One evaluation so bounds both cases of every free site. Where that is too weak, L(I + j, O)
or L(I, O + j) is computed by itself, the latter with u_c less β_cj where j ∈ N(c).

A proof is a list of events that narrow or split the state until nothing is left
(:meth:`LeaderProof.run`). Each bound is first computed in int64 with costs rounded down
(:mod:`placement.proof.rounded_costs`). What that does not prove is computed in exact integers
(:mod:`placement.proof.exact_costs`), which decide.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from functools import cached_property
from operator import index
from typing import Any

import numpy as np

from placement.checks import FloatArray
from placement.errors import LimitError, PlacementError
from placement.proof.claim import Claim
from placement.proof.exact_costs import ExactCosts
from placement.proof.multipliers import Betas
from placement.proof.rounded_costs import RoundedCosts
from placement.proof.site_choice import SiteChoice, SortedSites

__all__ = ["CertificateError", "LeaderProof", "Work"]

_CELLS_PER_STEP = 32
"""Cells of clients × sites in int64 that count as one step, which is one in exact integers."""

_STEPS_OF_A_CALL = 1000
"""Steps that a bound takes beside those of its cells: what calls cost on the smallest instance."""

_STEPS_OF_AN_EVENT = 30
"""The same of an event."""

Costs = RoundedCosts | ExactCosts


class CertificateError(PlacementError):
    """A certificate proves nothing, or not what the plan says; the message names the first flaw."""


class Work:
    """Steps that the check of a certificate may still take.

    A certificate comes from a file, and a few words of it can ask for any number of replica sets.
    Steps are counted before they are taken, so that the limit does not depend on the machine.
    """

    def __init__(self, limit: int) -> None:
        self.limit = self.left = limit

    def take(self, steps: int) -> None:
        """Count steps; LimitError when they are more than are left."""
        self.left -= steps
        if self.left < 0:
            raise LimitError(
                f"checking this certificate takes more than {self.limit:,} steps, the limit; a "
                "larger limit is set by the option --work of 'placement check', or the argument "
                "'work' of check_certificate"
            )


class LeaderProof:
    """The proof of one leader.

    Parameters
    ----------
    claim
        What is to be proved.
    leader
        ℓ; None when the leader does not matter.
    work
        Steps that may still be taken.
    """

    def __init__(self, claim: Claim, leader: int | None, work: Work) -> None:
        self.claim, self.leader, self.work = claim, leader, work
        self.events = self.bounds = 0
        rules = claim.rules
        self.sites = len(rules.may_hold)
        asks_quorum = leader is not None and rules.quorum > 1 and claim.quorum > 0
        self.choice = SiteChoice(rules, leader, claim.site_rtt[leader] if asks_quorum else None)
        self._cells = self.sites * len(claim.clients)
        self._exact_only = claim.rounded is None
        self._take(1 if self._exact_only else _CELLS_PER_STEP)

    @cached_property
    def _rounded(self) -> RoundedCosts:
        return RoundedCosts(self.claim, self.leader, self.choice.radii)

    @cached_property
    def _exact(self) -> ExactCosts:
        self._take(1)
        return ExactCosts(self.claim, self.leader, self.choice.radii)

    def _take(self, cells_per_step: int, times: int = 1) -> None:
        """Count so many evaluations of a bound, or of a set of replicas."""
        cells = self._cells // cells_per_step
        self.work.take(times * (cells + self.choice.steps + _STEPS_OF_A_CALL))

    def _forms(self, u: FloatArray, beta: Betas) -> Iterator[tuple[Costs, int]]:
        """The forms of the costs, the quick one first, and cells per step of each."""
        if not self._exact_only and self._rounded.fits(u, beta):
            yield self._rounded, _CELLS_PER_STEP
        yield self._exact, 1

    # --- bounds ------------------------------------------------------------------------------

    def _reaches(
        self, costs: Costs, inside: set[int], outside: set[int], u: FloatArray, beta: Betas,
        less: int | None = None,
    ) -> bool:  # fmt: skip
        """Return whether L(I, O, u, β) proves the claim."""
        self.bounds += 1
        free = self._free(inside, outside)
        fixed, rho = costs.evaluation(inside, free, u, beta, less)
        sites = SortedSites(inside, free, rho)
        return not self.choice.open_radii(costs.needed - fixed, sites, costs.radius_costs)

    def _free(self, inside: set[int], outside: set[int]) -> list[int]:
        return [s for s in range(self.sites) if s not in inside and s not in outside]

    def _closes(self, inside: set[int], outside: set[int], u: FloatArray, beta: Betas) -> bool:
        for costs, cells_per_step in self._forms(u, beta):
            self._take(cells_per_step)
            if self._reaches(costs, inside, outside, u, beta):
                return True
        return False

    # --- the proof ---------------------------------------------------------------------------

    def run(self, events: Sequence[Sequence[Any]]) -> None:
        """Replay a proof; CertificateError at the first event that does not hold."""
        rules = self.claim.rules
        inside = {int(s) for s in np.nonzero(rules.must_hold)[0]}
        if self.leader is not None:
            inside.add(self.leader)
        outside = {int(s) for s in np.nonzero(~rules.may_hold)[0]} - inside
        pending: list[tuple[set[int], set[int], Betas]] = []
        beta = Betas()
        open_state = True
        for number, event in enumerate(events):
            self.events += 1
            self.work.take(self.sites + _STEPS_OF_AN_EVENT)
            if not open_state:
                raise self._flaw(number, "the proof goes on after its end")
            kind = event[0]
            done = False
            if kind == "beta":
                beta = self._betas(event[1], number)
            elif kind == "fix":
                out, kept = self._fix(event, inside, outside, beta, number)
                outside, inside = outside | out, inside | kept
            elif kind == "close":
                if not self._closes(inside, outside, self._us(event[1]), beta):
                    raise self._flaw(number, "the bound does not reach the claim")
                done = True
            elif kind == "enumerate":
                self._enumerate(inside, outside, number)
                done = True
            elif kind == "branch":
                site = index(event[1])
                if site in inside or site in outside or not 0 <= site < self.sites:
                    raise self._flaw(number, f"site {site} is not free to branch on")
                pending.append((set(inside), outside | {site}, beta))
                inside = inside | {site}
            else:
                raise self._flaw(number, f"unknown event {kind!r:.60}")
            if done:
                open_state = bool(pending)
                if pending:
                    inside, outside, beta = pending.pop()
        if open_state:
            raise self._flaw(len(events), "the proof ends with something left open")

    def _fix(
        self, event: Sequence[Any], inside: set[int], outside: set[int], beta: Betas, number: int
    ) -> tuple[set[int], set[int]]:
        """Prove the sites of an event out and in; return both sets."""
        u = self._us(event[1])
        out, kept = [index(s) for s in event[2]], [index(s) for s in event[3]]
        fixed = {*out, *kept}
        if len(fixed) != len(out) + len(kept) or not fixed <= {*self._free(inside, outside)}:
            raise self._flaw(number, "fixes a site that is not free, or twice")
        left = [*out, *kept]
        outs = set(out)
        for costs, cells_per_step in self._forms(u, beta):
            self._take(cells_per_step)
            left = self._left_by_one(costs, left, outs, inside, outside, u, beta)
            still = []
            for s in left:
                self._take(cells_per_step)
                if s in outs:
                    proved = self._reaches(costs, inside | {s}, outside, u, beta)
                else:
                    proved = self._reaches(costs, inside, outside | {s}, u, beta, less=s)
                if not proved:
                    still.append(s)
            left = still
            if not left:
                return outs, set(kept)
        where = "out" if left[0] in outs else "in"
        raise self._flaw(number, f"nothing proves site {left[0]} {where}")

    def _left_by_one(
        self, costs: Costs, sites: Sequence[int], outs: set[int], inside: set[int],
        outside: set[int], u: FloatArray, beta: Betas,
    ) -> list[int]:  # fmt: skip
        """Return the sites that one evaluation of the bound leaves unproved."""
        self.bounds += 1
        free = self._free(inside, outside)
        fixed, rho = costs.evaluation(inside, free, u, beta)
        ordered, radius_costs = SortedSites(inside, free, rho), costs.radius_costs
        wanted = costs.needed - fixed
        # With one case of a site ruled out no value falls: other radii reach the claim already.
        radii = self.choice.open_radii(wanted, ordered, radius_costs)
        left = []
        for s in sites:
            self.work.take(self.choice.steps)
            if s in outs:
                least = wanted - rho[s]
                below = self.choice.open_radii(least, ordered, radius_costs, put_in=s, radii=radii)
            else:
                below = self.choice.open_radii(
                    wanted, ordered, radius_costs, left_out=s, radii=radii
                )
            if below:
                left.append(s)
        return left

    def _enumerate(self, inside: set[int], outside: set[int], number: int) -> None:
        """Evaluate every replica set that agrees with the state."""
        free = self._free(inside, outside)
        sizes = self.choice.sizes_of(len(inside), len(free))
        cells_per_step = 1 if self._exact_only else _CELLS_PER_STEP
        for size in sizes:
            self._take(cells_per_step, math.comb(len(free), size))
        for size in sizes:
            for more in itertools.combinations(free, size):
                replicas = sorted({*inside, *more})
                if not self._is_no_better(replicas):
                    raise self._flaw(number, f"the replicas {replicas} are better")

    def _is_no_better(self, replicas: list[int]) -> bool:
        """Return whether no configuration with these replicas is below the claim."""
        radius = self.choice.radius_of(replicas)
        if radius is None:
            return True
        for costs, _ in self._forms(np.zeros(0), Betas()):
            if costs.reads(replicas) + costs.radius_costs[radius] >= costs.needed:
                return True
        return False

    # --- reading -----------------------------------------------------------------------------

    def _us(self, values: Sequence[float]) -> FloatArray:
        if len(values) != len(self.claim.clients) or not all(map(math.isfinite, values)):
            raise CertificateError("a list of multipliers has the wrong length or is not finite")
        return np.array(values, dtype=np.float64)

    def _betas(self, entries: Sequence[Sequence[float]], number: int) -> Betas:
        self.work.take(len(entries))
        try:
            return Betas.read(entries, self.sites, len(self.claim.clients))
        except ValueError as flaw:
            raise self._flaw(number, str(flaw)) from None

    def _flaw(self, number: int, what: str) -> CertificateError:
        whom = "all leaders" if self.leader is None else f"leader {self.leader}"
        return CertificateError(f"proof for {whom}, event {number}: {what}")
