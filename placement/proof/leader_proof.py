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
the rules for replicas and W has v voters; each is the least weight of a basis of a matroid, found
by its greedy. Rules that make no matroid together are several families of rules
(:mod:`placement.model.site_families`), and E, C and W are the largest over them. Free sites for
which the rules leave no room beside I are not in Y.

*Detours.* Where no β is given, ρ_j has the detours of j too: what clients would pay less at f(c),
if j did not take them away (:mod:`placement.proof.costs.detours` has the lemma).

*Several scenarios.* Where RTTs vary by interval, clients count once for each scenario, a radius is
a place in a common order of the sites, and D·r is the floor of
:mod:`placement.evaluation.waits.wait_floors` for the sites of I ∪ F. Where that is too low,
:mod:`placement.proof.choice.site_choice` searches the sites near the leader. A complete set of
replicas waits Σ_k D_k·q_k over its best voters, who are searched.

*More than votes.* Where a leader has other waits than one quorum, its cases take the place of the
radii (:mod:`placement.evaluation.waits.wait_cases`): for each, D·r is its price, and E lets I ∪ Y
hold what the blocks of a family ask for, the largest over its families.

*Transfers of cost.* A proof may begin with transfers of cost between clients
(:mod:`placement.proof.costs.multipliers`). All its bounds then use the costs after them, under
which no configuration costs more; a set of replicas costs what it did.

*Shared multipliers.* A proof may close its state with multipliers of another leader, moved along
(:mod:`placement.proof.costs.multipliers`).

*A fixed site.* Let j be free, and ρ the one of (I, O, u, β). A configuration with a replica at j is
bounded by the same L with ρ_j + Z(ρ) over the sets that hold j, one without by Z(ρ) over those that
do not. One evaluation so bounds both cases of every free site. Where that is too weak, L(I + j, O)
or L(I, O + j) is computed by itself, the latter with u_c less β_cj where j ∈ N(c).

A proof is a list of events that narrow or split the state until nothing is left
(:mod:`placement.proof.event_tree`). Each bound is first computed in int64 with costs rounded down
(:mod:`placement.proof.costs.rounded_costs`). Bounds that are not proved so are computed in exact
integers (:mod:`placement.proof.costs.exact_costs`), which decide.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from operator import index
from typing import Any, NamedTuple

import numpy as np

from placement.errors import CertificateError
from placement.proof.choice.site_choice import IntervalChoice, SiteChoice
from placement.proof.choice.sorted_sites import SortedSites
from placement.proof.claim import Claim
from placement.proof.costs.exact_costs import ExactCosts
from placement.proof.costs.multipliers import Betas, CostTransfers, SharedMultipliers
from placement.proof.costs.rounded_costs import RoundedCosts
from placement.proof.event_tree import CELLS_PER_STEP, EventTree, State
from placement.support.checks import FloatArray
from placement.support.work import Work

Costs = RoundedCosts | ExactCosts
_NO_BETAS = Betas()  # one for all leaders


class _MeanMultipliers(NamedTuple):
    u: FloatArray
    beta: Betas


class LeaderProof(EventTree[Costs, _MeanMultipliers]):
    """The proof of one leader; None when none matters. `shared`: by number in the certificate."""

    def __init__(
        self,
        claim: Claim,
        leader: int | None,
        work: Work,
        shared: Sequence[SharedMultipliers] = (),
    ) -> None:
        self.claim, self.leader, self.shared = claim, leader, shared
        rules = claim.rules
        waits = None
        cases = None if leader is None else claim.cases(leader)
        if leader is not None and cases is None and rules.quorum > 1 and claim.quorum.any():
            waits = claim.wait_places(leader)
        choice = SiteChoice(rules, leader, waits, cases)
        super().__init__(choice, "all leaders" if leader is None else f"leader {leader}", work)
        self.beta = _NO_BETAS
        self._transfers: CostTransfers | None = None
        self._last_detours: tuple[Costs | None, State | None, list[int]] = (None, None, [])
        self._last_floors: tuple[Costs | None, frozenset[int], list[int]] = (None, frozenset(), [])
        self._intervals: dict[Costs, IntervalChoice] = {}
        self._exact_only = claim.rounded is None
        self._adds_detours = False
        self._take(None, 1 if self._exact_only else CELLS_PER_STEP)

    @cached_property
    def _rounded(self) -> RoundedCosts:
        return RoundedCosts(self.claim, self.leader, self.choice.radii)

    @cached_property
    def _exact(self) -> ExactCosts:
        self._take(None, 1)
        return ExactCosts(self.claim, self.leader, self.choice.radii)

    @cached_property
    def _rounded_bounds(self) -> RoundedCosts | None:
        return self._rounded.after(self._transfers) if self._transfers else self._rounded

    @cached_property
    def _exact_bounds(self) -> ExactCosts:
        after = self._exact.after(self._transfers) if self._transfers else self._exact
        assert after is not None  # exact integers hold any transfers
        return after

    def replay(self, events: Sequence[Sequence[Any]]) -> None:
        """Replay a proof; CertificateError at the first event that does not hold."""
        self.run(events, self.start() if self.leader is None else self.start(self.leader))

    def _cells(self, multipliers: _MeanMultipliers | None) -> int:
        return self.sites * len(self.claim.clients)

    def _forms(self, multipliers: _MeanMultipliers | None) -> Iterator[tuple[Costs, int]]:
        if multipliers is None:
            yield from () if self._exact_only else ((self._rounded, CELLS_PER_STEP),)
            yield self._exact, 1
            return
        quick = None if self._exact_only else self._rounded_bounds
        self._adds_detours = False
        if quick is not None and quick.fits(*multipliers):
            yield quick, CELLS_PER_STEP  # detours take longer than all the rest
            self._adds_detours = not len(multipliers.beta.clients)
            if self._adds_detours:
                yield quick, CELLS_PER_STEP
        self._adds_detours = not len(multipliers.beta.clients)
        yield self._exact_bounds, 1

    def _wanted(
        self, form: Costs, state: State, multipliers: _MeanMultipliers, less: int | None
    ) -> tuple[float, list[int], list[int]]:
        free = self._free(state)
        fixed, rho = form.evaluation(state.inside, free, *multipliers, less)
        if self._adds_detours:
            longer = self._detours(form, state)
            rho = [saved + more for saved, more in zip(rho, longer, strict=True)]
        return form.needed - fixed, rho, self._radius_costs(form, state)

    def _radius_costs(self, form: Costs, state: State) -> list[int]:
        """Costs of the radii; floors of several scenarios are those of the sites that are left."""
        if form.waits is None or self.leader is None:
            return form.radius_costs
        if self._last_floors[0] is not form or self._last_floors[1] != state.outside:
            floors = self.claim.floor_costs(form.waits, self.leader, state.outside)
            self._last_floors = form, state.outside, floors
        return self._last_floors[2]

    def _reaches_otherwise(self, form: Costs, wanted: float, sites: SortedSites) -> bool:
        return form.waits is not None and self._reaches_by_waits(form, wanted, sites)

    def _left_otherwise(
        self, form: Costs, wanted: float, sites: SortedSites, outs: Collection[int], left: list[int]
    ) -> list[int]:
        if form.waits is None:
            return left
        still, rho = [], sites.rho
        for s in left:
            others = [other for other in sites.order if other != s]
            inside = sites.inside | {s} if s in outs else sites.inside
            needed = wanted - rho[s] if s in outs else wanted
            if not self._reaches_by_waits(form, needed, SortedSites(inside, others, rho)):
                still.append(s)
        return still

    def _reaches_by_waits(self, form: Costs, wanted: float, sites: SortedSites) -> bool:
        """Return whether the sites near the leader, searched, reach a value."""
        assert form.waits is not None
        if form not in self._intervals:
            rtt = self.claim.scenario_rtt[:, self.leader]
            self._intervals[form] = IntervalChoice(self.claim.rules, form.waits, rtt)
        sizes = self.choice.sizes_of(len(sites.inside), len(sites.order))
        return not self._intervals[form].is_open(wanted, sites, sizes, self.work.take)

    def _detours(self, form: Costs, state: State) -> list[int]:
        """Detours of a state; the last are kept: several bounds of one state follow each other."""
        if self._last_detours[0] is not form or self._last_detours[1] is not state:
            self._last_detours = form, state, form.detours(state.inside, self._free(state))
        return self._last_detours[2]

    def _no_better(self, form: Costs, replicas: list[int]) -> bool:
        if self.leader is None and not self.claim.rules.may_lead[replicas].any():
            return True  # no site could lead
        cost = self.choice.radius_cost(replicas, form.radius_costs)
        if cost is None:
            return True
        spare = form.needed - form.reads(replicas)
        if cost >= spare:
            return True
        if form.waits is None:
            return False
        return self.choice.least_wait(replicas, form.waits, self.work.take) >= spare

    # --- reading -----------------------------------------------------------------------------

    def _other(self, event: Sequence[Any], number: int, state: State) -> bool:
        """Take new closest-assignment multipliers, or transfers of cost, or shared multipliers."""
        if event[0] == "shared":
            if not self._closes(state, _MeanMultipliers(self._moved(event, number), self.beta)):
                raise self._flaw(number, "the bound does not reach the claim")
            return True
        if event[0] not in ("beta", "transfer"):
            return super()._other(event, number, state)
        entries = event[1]
        try:
            if event[0] == "transfer":
                if number > 0:
                    raise ValueError("transfers of cost are the first event, or there are none")
                self.work.take(len(entries) * self.sites + self._cells(None))
                self._transfers = CostTransfers(entries, self.sites, len(self.claim.clients))
                return False
            self.work.take(len(entries))
            self.beta = Betas.read(entries, self.sites, len(self.claim.clients))
        except ValueError as flaw:
            raise self._flaw(number, str(flaw)) from None
        return False

    def _moved(self, event: Sequence[Any], number: int) -> FloatArray:
        """Return shared multipliers, moved to this leader."""
        entry, claim = index(event[1]), self.claim
        if self.leader is None or claim.varies or not 0 <= entry < len(self.shared):
            raise self._flaw(number, f"there are no shared multipliers {entry}")
        return claim.moved(self.shared[entry], self.leader)

    def _remember(self) -> Betas:
        return self.beta

    def _restore(self, remembered: object) -> None:
        assert isinstance(remembered, Betas)
        self.beta = remembered

    def _read(self, event: Sequence[Any]) -> _MeanMultipliers:
        u = np.array(array("d", event[1]))  # refuses what is no number
        if len(u) != len(self.claim.clients) or not np.isfinite(u).all():
            raise CertificateError("a list of multipliers has the wrong length or is not finite")
        return _MeanMultipliers(u, self.beta)
