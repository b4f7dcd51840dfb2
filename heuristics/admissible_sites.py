"""Sites that a growing replica set may still take and remain completable.

A replica set under construction must leave room for its remaining needs: voters under their caps,
domains, a leader, money. `AdmissibleSites` states the necessary conditions that follow from counts,
for all candidate sites of many sets at once. A candidate is admissible if, after it, every single
shortfall fits into the remaining slots. The conditions are exact for one rule at a time. If several
rules cross, a set that passes may still fail, and the caller then uses the complete search
:func:`placement.feasibility.feasible_plans.complete_configuration`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.model.constraints import GroupRule, Rules
from placement.problem import Problem
from placement.support.checks import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class AdmissibleSites:
    """The rules of a problem as seen by sets that grow to `size` replicas."""

    problem: Problem  #: the question
    size: int  #: |R| to reach
    #: ℓ when it is known, one for all sets or one for each; it is then taken to be in the set
    leader: int | IntArray | None = None

    @property
    def rules(self) -> Rules:
        """Constraints on site indices."""
        return self.problem.rules

    @cached_property
    def free_of_rules(self) -> bool:
        """Return whether any set of the right size inside `may_hold` is as good as any other."""
        rules = self.rules
        return bool(
            not rules.groups
            and rules.budget is None
            and (rules.may_vote == rules.may_hold).all()
            and (self.leader is not None or (rules.may_lead == rules.may_hold).all())
        )

    @cached_property
    def _costs(self) -> FloatArray | None:
        """Price of each site under each leader, or the least over all while it is open.

        Shape (sites,) or (leaders, sites).
        """
        if self.rules.budget is None:
            return None
        candidates = np.nonzero(self.rules.may_lead)[0] if self.leader is None else self.leader
        costs = [self.problem.site_costs(int(ell)) for ell in np.atleast_1d(candidates)]
        known = np.array([cost for cost in costs if cost is not None])
        if not len(known):
            return None
        if self.leader is None:
            return np.asarray(known.min(axis=0))
        return np.asarray(known if np.ndim(self.leader) else known[0])

    @cached_property
    def _groups(self) -> tuple[tuple[GroupRule, FloatArray], ...]:
        """Every diversity rule with the domain of each site as a matrix, shape (sites, domains).

        Sites that the rule does not count are in no domain.
        """
        found = []
        for group in self.rules.groups:
            able = self.rules.may_vote if group.role == "voters" else self.rules.may_hold
            member = group.labels[:, np.newaxis] == np.arange(len(group.names))
            found.append((group, (member & able[:, np.newaxis]).astype(np.float64)))
        return tuple(found)

    def addable(self, members: BoolArray, some: IntArray | None = None) -> BoolArray:
        """Sites that may join sets, boolean, shape (..., sites); O(S·domains) for each set.

        `some` are the indices of the leaders, if each set has its own; None: all in order.
        """
        rules = self.rules
        good: BoolArray = rules.may_hold & ~members
        left = self.size - members.sum(axis=-1, keepdims=True) - 1
        good &= left >= 0
        if self.free_of_rules:
            return good
        voting = (rules.may_vote & members).sum(axis=-1, keepdims=True)
        good &= rules.voters - voting - rules.may_vote <= left
        if self.leader is None:
            led = (rules.may_lead & members).any(axis=-1, keepdims=True)
            good &= (left != 0) | led | rules.may_lead
        for group, belongs in self._groups:
            held = members @ belongs
            able = np.asarray(belongs.any(axis=1))
            if group.cap is not None:
                gain = (held < group.cap)[..., group.labels]
                if group.role == "replicas":
                    good &= gain
                else:
                    fit = np.minimum(held, group.cap).sum(axis=-1, keepdims=True)
                    good &= rules.voters - fit - (able & gain) <= left
            if group.has_minimum:
                good &= group.missing_after(held.astype(np.intp), able) <= left
        if self._costs is not None and rules.budget is not None:
            costs = self._costs if some is None or self._costs.ndim == 1 else self._costs[some]
            good &= self._affordable(members, left, costs, rules.budget)
        return good

    def _affordable(
        self, members: BoolArray, left: IntArray, costs: FloatArray, budget: float
    ) -> BoolArray:
        """Return the sites that leave enough budget for the cheapest remaining sites."""
        others = np.sort(np.where(self.rules.may_hold & ~members, costs, np.inf), axis=-1)
        others = np.where(np.isfinite(others), others, 0.0)  # too few of them: all
        upto = np.concatenate([np.zeros_like(others[..., :1]), np.cumsum(others, axis=-1)], axis=-1)
        rest = np.take_along_axis(upto, np.maximum(left, 0), axis=-1)
        total = np.where(members, costs, 0.0).sum(axis=-1, keepdims=True) + costs + rest
        return np.asarray(total <= budget * (1 + 1e-9) + 1e-9)

    def replaceable(
        self, members: BoolArray, site: int | IntArray, some: IntArray | None = None
    ) -> BoolArray:
        """Sites that may stand in for a member of each set, maybe itself; as :meth:`addable`."""
        without = members.copy()
        np.put_along_axis(without, np.asarray(site)[..., np.newaxis], False, axis=-1)
        return self.addable(without, some)
