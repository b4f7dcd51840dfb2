"""Which sites a growing replica set may still take without painting itself into a corner.

A replica set under construction must leave room for what it still lacks: voters under their caps,
domains, a leader, money. `Room` states the necessary conditions that can be read off counts, for
all candidate sites at once: a candidate is admissible when, after it, every single shortfall fits
into the slots that are left. The conditions are exact for one rule at a time; where several rules
cross, a set that passes may still fail, and the caller falls back on the complete search
:func:`placement.feasibility.complete`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placement.checks import BoolArray, FloatArray
from placement.configuration import site_costs
from placement.constraints import Rules
from placement.problem import Problem

__all__ = ["Room"]


@dataclass(frozen=True, eq=False)
class Room:
    """The rules of a problem as seen by a set that grows to `size` replicas.

    Attributes
    ----------
    problem
        The question.
    size
        |R| to reach.
    leader
        ℓ when it is known; it is then taken to be in the set.
    """

    problem: Problem
    size: int
    leader: int | None = None

    @property
    def rules(self) -> Rules:
        """Constraints on site indices."""
        return self.problem.rules

    @cached_property
    def free_of_rules(self) -> bool:
        """Whether any set of the right size inside `may_hold` is as good as any other."""
        rules = self.rules
        return bool(
            not rules.groups
            and rules.budget is None
            and (rules.may_vote == rules.may_hold).all()
            and (self.leader is not None or (rules.may_lead == rules.may_hold).all())
        )

    @cached_property
    def _costs(self) -> FloatArray | None:
        """Price of each site: under the leader, or the least over all leaders while it is open."""
        if self.rules.budget is None:
            return None
        leaders = [self.leader] if self.leader is not None else np.nonzero(self.rules.may_lead)[0]
        costs = [site_costs(self.problem.instance, int(ell)) for ell in leaders]
        known = [cost for cost in costs if cost is not None]
        return np.min(known, axis=0) if known else None

    def addable(self, members: BoolArray) -> BoolArray:
        """Sites that may join `members` (boolean, shape (sites,)); O(S·groups)."""
        rules = self.rules
        good: BoolArray = rules.may_hold & ~members
        left = self.size - int(members.sum()) - 1
        if left < 0:
            return np.zeros_like(good)
        if self.free_of_rules:
            return good
        voting = rules.may_vote & members
        short = rules.voters - int(voting.sum()) - rules.may_vote.astype(np.intp)
        good &= short <= left
        if self.leader is None and left == 0 and not (rules.may_lead & members).any():
            good &= rules.may_lead
        for group in rules.groups:
            able = rules.may_vote if group.role == "voters" else rules.may_hold
            labels = group.labels
            held = np.bincount(labels[members & able], minlength=len(group.names))
            if group.cap is not None and group.role == "replicas":
                good &= held[labels] < group.cap
            if group.cap is not None and group.role == "voters":
                fit = int(np.minimum(held, group.cap).sum())
                gain = able & (held[labels] < group.cap)
                good &= rules.voters - fit - gain.astype(np.intp) <= left
            if group.min_domains is not None:
                fresh = able & (held[labels] == 0)
                missing = group.min_domains - int((held > 0).sum()) - fresh.astype(np.intp)
                good &= missing <= left
        if self._costs is not None and rules.budget is not None:
            others = np.sort(self._costs[rules.may_hold & ~members])[:left].sum()
            total = self._costs[members].sum() + self._costs + others
            good &= total <= rules.budget * (1 + 1e-9) + 1e-9
        return good

    def replaceable(self, members: BoolArray, site: int) -> BoolArray:
        """Sites that may stand in for the member `site`, itself included if the rules bear it."""
        without = members.copy()
        without[site] = False
        return self.addable(without)
