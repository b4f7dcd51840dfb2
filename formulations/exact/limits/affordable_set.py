"""A set of replicas within limits under one leader, by a greedy choice and swaps: no proof."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from formulations.exact import tuning
from formulations.exact.thresholds.threshold_search import QuorumWait, Scenario
from placement.model.constraints import Rules
from placement.support.checks import FloatArray

__all__ = ["affordable_set"]


def affordable_set(
    rules: Rules, leader: int, limits: Sequence[Scenario], objective: Scenario
) -> list[int] | None:
    """Return replicas within the limits that are hard to improve by one swap.

    Caps, prices of votes and of near reads are left out of account.

    Parameters
    ----------
    rules
        With the number of replicas that the limits let in at most.
    leader
        ℓ.
    limits, objective
        The scenarios of a leader; the thresholds of the first are the limits.

    Returns
    -------
    list of int or None
        None where the greedy choice finds nothing within the limits.

    Notes
    -----
    O(|R|·|C|·|S|) for every replica that is added or swapped.
    """
    start = np.nonzero(rules.must_hold)[0].tolist()
    chosen = [*dict.fromkeys([*start, leader])]
    fixed = len(chosen)
    search = _Trials(rules, leader, limits, objective)
    while len(chosen) < rules.replicas_max:
        more = max(0, rules.replicas_min - len(chosen) - 1)
        values = search.values(chosen, more)
        site = int(values.argmin())
        if math.isinf(values[site]):
            break
        if len(chosen) >= rules.replicas_min and values[site] >= search.value(chosen):
            break
        chosen.append(site)
    if len(chosen) < rules.replicas_min:
        return None
    best = search.value(chosen)
    for _ in range(tuning.AFFORDABLE_SWAPS):
        swaps = []
        for out in range(fixed, len(chosen)):
            values = search.values(chosen[:out] + chosen[out + 1 :], 0)
            swaps.append((float(values.min()), out, int(values.argmin())))
        if not swaps or min(swaps)[0] >= best * (1 - 1e-12):
            break
        best, out, site = min(swaps)
        chosen[out] = site
    return sorted(chosen)


class _Trials:
    """Objective of a set of replicas and one more, for every site."""

    def __init__(
        self, rules: Rules, leader: int, limits: Sequence[Scenario], objective: Scenario
    ) -> None:
        assert objective.costs is not None
        assert isinstance(objective.voters, QuorumWait)
        self.may_hold, self.leader = rules.may_hold, leader
        self.reads: FloatArray = objective.costs
        self.limits = [
            (one.prices, one.threshold - one.constant) for one in limits if one.prices is not None
        ]
        self.weighed = objective.prices
        self.place = objective.voters.place
        self.waits = np.full(len(self.reads), np.inf)
        self.waits[objective.voters.sites] = objective.voters.waits

    def values(self, chosen: list[int], more: int) -> FloatArray:
        """Objective of `chosen` and each site; infinite where so many `more` are too expensive."""
        near = self.reads[chosen].min(axis=0)
        values = np.minimum(self.reads, near).sum(axis=1)
        known = np.append(np.sort(self.waits[chosen]), [np.inf] * (self.place + 1))
        least = known[self.place - 1] if self.place else 0.0
        if not self.place:
            values += self.waits[self.leader]
        elif math.isfinite(known[self.place]):
            values += np.clip(self.waits, least, known[self.place])
        elif math.isfinite(least):
            values += np.where(np.isinf(self.waits), 1e3 * least + 1.0, self.waits)
        if self.weighed is not None:
            values += self.weighed + self.weighed[chosen].sum()
        open_sites = self.may_hold.copy()
        open_sites[chosen] = False
        for prices, most in self.limits:
            spare = np.sort(prices[open_sites])[:more].sum()
            values[prices[chosen].sum() + prices + spare > most] = np.inf
        return np.where(open_sites, values, np.inf)

    def value(self, chosen: list[int]) -> float:
        """Objective of `chosen`."""
        reads = float(self.reads[chosen].min(axis=0).sum())
        prices = 0.0 if self.weighed is None else float(self.weighed[chosen].sum())
        return reads + prices + float(np.sort(self.waits[chosen])[self.place])
