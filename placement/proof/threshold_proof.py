"""The proof of a tree over scenarios with thresholds, replayed in whole numbers.

What is proved
--------------
A configuration has a value X_s in every scenario s, and the claim is that each configuration of the
tree reaches one of the thresholds, X_s >= T_s. Every X_s is a separate assignment problem, with
costs w_s, sites L_s that serve no client, and a part rest_s that does not depend on the assignment.
In a state (I, O), let f(c) be client c's first site of I ∖ L_s. With any u, as for the mean
(:mod:`placement.proof.leader_proof`),

    X_s >= rest_s + Σ_c min(u_c, w_c,f(c)) + Σ_{j ∈ R∩F, j ∉ L_s} ρ_js
    ρ_js = Σ_{c prefers j to f(c)} ( r_cj + min(0, w_cj − u_c) )

where r_cj >= 0 are the detours of :mod:`placement.proof.costs.detours`.

For weights λ >= 0, not all 0, Σ_s λ_s (X_s − T_s) >= 0 says that some X_s reaches its threshold;
the sum is bounded by the least Σ_j Σ_s λ_s ρ_js over the sets that the rules allow.

Which scenarios there are is a matter of the question (:mod:`placement.proof.measures_proof`).
"""

from __future__ import annotations

import math
from abc import abstractmethod
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import index
from typing import Any

import numpy as np

from placement.errors import CertificateError
from placement.proof.choice.site_choice import SiteChoice
from placement.proof.costs.multipliers import Betas
from placement.proof.costs.rounded_costs import TableCosts
from placement.proof.event_tree import CELLS_PER_STEP, EventTree, State
from placement.support.checks import FloatArray
from placement.support.work import Work

_WEIGHT_BITS = 120
_MOST_BITS = 1000
NO_BETAS = Betas()
"""Trees over scenarios have no multipliers of closest assignment."""


@dataclass(frozen=True, eq=False)
class BoundPart:
    """Scenario of a bound: its weight in units of 2^-120, and its multipliers."""

    scenario: int
    weight: int
    u: FloatArray


class ThresholdProof(EventTree[None, list[BoundPart]]):
    """The proof of one tree over scenarios, in one form: costs in int64 on a grid."""

    def __init__(
        self, choice: SiteChoice, whom: str, work: Work, clients: int, scenarios: int
    ) -> None:
        super().__init__(choice, whom, work)
        self.clients, self.scenarios = clients, scenarios

    # --- what a question says ---------------------------------------------------------------

    @abstractmethod
    def _in_force(self, state: State) -> set[int]:
        """Return the scenarios that may count in a state."""

    @abstractmethod
    def _rest(self, scenario: int, state: State) -> int | None:
        """Return rest_s from below; None where no configuration is left."""

    @abstractmethod
    def _costs(self, scenario: int) -> TableCosts:
        """Return the costs of the clients in a scenario."""

    @abstractmethod
    def _threshold(self, scenario: int) -> int | None:
        """Return T_s; None: it is infinite."""

    @abstractmethod
    def _bits(self, scenario: int) -> int:
        """Bits behind the binary point of the costs of a scenario."""

    @abstractmethod
    def _lost(self, scenario: int) -> frozenset[int]:
        """Return L_s."""

    @abstractmethod
    def _no_voters(self, state: State, parts: Sequence[BoundPart]) -> bool:
        """Return whether the clients' bound of each scenario leaves too little for any voters."""

    def _weights(self, state: State, parts: Sequence[BoundPart]) -> tuple[list[int], int]:
        """Weight of each part in the unit of the finest grid, and the thresholds times these."""
        total, weights = 0, []
        finest = max((self._bits(part.scenario) for part in parts), default=0)
        for part in parts:
            threshold = self._threshold(part.scenario)
            if threshold is None:
                raise CertificateError(f"proof for {self.whom}: scenario {part.scenario} is free")
            weight = part.weight << (finest - self._bits(part.scenario))
            weights.append(weight)
            total += weight * threshold
        return weights, total

    def _less(self, scenario: int, state: State) -> list[int]:
        """Return by how much less than the weight of a scenario ρ counts, by site."""
        return [0] * self.sites

    # --- bounds -----------------------------------------------------------------------------

    def _cells(self, multipliers: list[BoundPart] | None) -> int:
        if multipliers is None:
            most = self.choice.rules.replicas_max
            return 2 * most * most * (self.clients + self.sites)
        return (1 + len(multipliers)) * self.sites * (self.clients + self.sites)

    def _forms(self, multipliers: list[BoundPart] | None) -> Iterator[tuple[None, int]]:
        parts = multipliers or ()
        if all(self._costs(part.scenario).fits(part.u, NO_BETAS) for part in parts):
            yield None, CELLS_PER_STEP

    def _wanted(
        self, form: None, state: State, multipliers: list[BoundPart], less: int | None
    ) -> tuple[float, list[int], list[int]]:
        rho, force = [0] * self.sites, self._in_force(state)
        if not multipliers:  # it is claimed that there is no set of replicas
            stops = any(self._rest(s, state) is None for s in force)
            return -math.inf if stops else math.inf, rho, [0]
        if not {part.scenario for part in multipliers} <= force:
            raise CertificateError(
                f"proof for {self.whom}: a loss that hits no replica has a weight"
            )
        weights, wanted = self._weights(state, multipliers)
        free = self._free(state)
        for part, weight in zip(multipliers, weights, strict=True):
            lost = self._lost(part.scenario)
            rest = self._rest(part.scenario, state)
            if rest is None:
                return -math.inf, rho, [0]
            costs = self._costs(part.scenario)
            left = [s for s in free if s not in lost]
            fixed, saved = costs.evaluation(state.inside - lost, left, part.u, NO_BETAS)
            longer = costs.detours(state.inside - lost, left)
            wanted -= weight * (fixed - costs.constant + rest)  # `rest` has the constant
            less_by_site = self._less(part.scenario, state)
            for s in left:
                rho[s] += (weight - less_by_site[s]) * (saved[s] + longer[s])
        return wanted, rho, [0]

    # --- reading ----------------------------------------------------------------------------

    def _read(self, event: Sequence[Any]) -> list[BoundPart]:
        parts = []
        for scenario, weight, bits, numbers in event[1]:
            whole = 1 if weight is None else math.floor(math.ldexp(float(weight), _WEIGHT_BITS))
            if whole < 0:
                raise CertificateError(f"proof for {self.whom}: a negative weight")
            if not 0 <= index(scenario) < self.scenarios:
                raise CertificateError(f"proof for {self.whom}: no scenario {scenario}")
            u = read_multipliers(numbers, bits, self.clients)
            if whole:
                parts.append(BoundPart(index(scenario), whole, u))
        if len({part.scenario for part in parts}) != len(parts):
            raise CertificateError(f"proof for {self.whom}: a scenario is listed twice")
        if event[1] and not parts:
            raise CertificateError(f"proof for {self.whom}: all weights are 0")
        return parts

    def _other(self, event: Sequence[Any], number: int, state: State) -> bool:
        """Check the claim that no voters satisfy all scenarios, each bounded alone."""
        if event[0] != "voters":
            return super()._other(event, number, state)
        parts = self._read(event)
        for _, cells_per_step in self._forms(parts):
            self._take(parts, cells_per_step)
            if self._no_voters(state, parts):
                return True
        raise self._flaw(number, "some voters are left")


def read_multipliers(numbers: Sequence[Any], bits: Any, clients: int) -> FloatArray:
    """Multipliers as whole numbers of 2^-bits; ValueError where they are none."""
    if len(numbers) != clients or abs(index(bits)) > _MOST_BITS:
        raise ValueError("a list of multipliers has the wrong length or grid")
    try:
        whole = np.array(array("q", numbers)).astype(np.float64)  # refuses what is no whole number
    except OverflowError:
        raise ValueError("a multiplier is too large") from None
    if (np.abs(whole) >= 1 << 53).any():
        raise ValueError("a multiplier is too large")
    return np.asarray(np.ldexp(whole, -index(bits)))


def check_clients(certificate: Mapping[str, Any], clients: Sequence[int]) -> None:
    """Refuse a certificate that has multipliers of other clients than those that are counted."""
    if [index(c) for c in certificate["clients"]] != list(clients):
        raise CertificateError("the certificate counts other clients than the problem has")
