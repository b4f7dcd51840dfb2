"""Proof that no configuration obeys the rules, in a form that counting confirms.

Under one leader the voters are a common independent set of two matroids: sets that obey the caps
on voters, and sets that obey, as replicas, the caps on replicas and their greatest number.
:mod:`placement.proof.no_plan_check` says what a split of the sites proves. Here it is found: the
most voters there are by augmenting paths (Edmonds 1970; Schrijver 2003, section 41.2), and the
sites from which no such path starts are the split.  That takes milliseconds where the trees, which
see one matroid at a time, would branch without end.

Three sites, a and b in one region, c in another; two voters are asked for, at most one in a region,
and at most one replica is allowed in {b, c}. {a, c} is a plan. When c may not vote, none is left:

>>> import numpy as np
>>> from formulations.exact.reduced_problem import ReducedProblem
>>> rtt, one = np.ones((3, 3)) - np.eye(3), np.ones(3)
>>> def rules(may_vote):
...     return ReducedProblem.of_arrays(
...         rtt, rtt, (one, one, one, 1.0), replicas=(2, 2), voters=2, may_vote=may_vote,
...         caps=[("voters", [0, 0, 1], 1), ("replicas", [0, 1, 1], 1)],
...     ).rules
>>> no_plan(rules([True, True, True])) is None
True
>>> no_plan(rules([True, True, False])).to_json()["proofs"]
[{'leaders': [0], 'by_votes': [1]}, {'leaders': [1], 'by_votes': [0]}]

Under leader a, the only other site that may vote is b; as a voter it has no room beside a in
their region. So there is one voter, and two were asked for.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from placement.model.constraints import Role, Rules, laminar
from placement.support.checks import BoolArray

FORMAT = "replica-placement/no-plan/1"
"""Name and version of the certificate."""


@dataclass(frozen=True, slots=True)
class NoPlan:
    """The sites counted as voters for each leader; the other sites count as replicas."""

    by_votes: Mapping[int, frozenset[int]]

    def to_json(self) -> Mapping[str, object]:
        """Return the certificate as JSON-like data; one entry for each split."""
        by_split: dict[frozenset[int], list[int]] = {}
        for leader, split in self.by_votes.items():
            by_split.setdefault(split, []).append(leader)
        return {
            "format": FORMAT,
            "proofs": [
                {"leaders": leaders, "by_votes": sorted(split)}
                for split, leaders in by_split.items()
            ],
        }


class _Matroid:
    """Sets of sites that caps on nested levels allow beside given ones, which cost nothing."""

    def __init__(self, caps: Sequence[tuple[Sequence[int], int]], given: set[int]) -> None:
        self._caps = [(labels, cap, [0] * (max(labels) + 1)) for labels, cap in caps]
        self.given = given
        for site in given:
            self._count(site, 1)
        self.kept = all(max(held) <= cap for _, cap, held in self._caps)

    def _count(self, site: int, change: int) -> None:
        for labels, _, held in self._caps:
            held[labels[site]] += change

    def take(self, site: int) -> None:
        """Choose a site."""
        if site not in self.given:
            self._count(site, 1)

    def drop(self, site: int) -> None:
        """Choose a site no more."""
        if site not in self.given:
            self._count(site, -1)

    def room(self, site: int, instead: int | None = None) -> bool:
        """Return whether one more site, or one instead of another, may be chosen."""
        if site in self.given:
            return True
        freed = None if instead in self.given else instead
        return all(
            held[labels[site]] - (freed is not None and labels[freed] == labels[site]) < cap
            for labels, cap, held in self._caps
        )


def counting_applies(rules: Rules) -> bool:
    """Return whether the caps are on nested levels, so that counting is exact for them."""
    allowed: dict[Role, BoolArray] = {"voters": rules.may_vote, "replicas": rules.may_hold}
    return all(
        laminar([group.labels for group in rules.of(role) if group.cap is not None], sites)
        for role, sites in allowed.items()
    )


def counting_decides(rules: Rules) -> bool:
    """Return whether the rules are caps on nested levels only: then counting finds every proof."""
    return rules.nested_voter_caps and rules.nested_replica_caps


def no_plan(rules: Rules) -> NoPlan | None:
    """Return a proof that no configuration obeys the caps, on nested levels, or None: one does.

    Minimums are left out of account. For each leader at most `voters` augmentations of O(sites ·
    voters · levels); leaders that the split of another shows to be impossible take O(sites ·
    levels).
    """
    found: dict[int, frozenset[int]] = {}
    tried: dict[frozenset[int], None] = {}
    for leader in _sites(rules.may_lead):
        split = next((s for s in tried if _short(rules, leader, s)), None)
        if split is None:
            split = _split(rules, leader)
            if split is None:
                return None
            tried[split] = None
        found[leader] = split
    return NoPlan(found)


def _matroids(rules: Rules, leader: int) -> tuple[_Matroid, _Matroid]:
    """Return voters beside those that vote anyway, and replicas beside those that hold anyway."""
    sites = len(rules.may_hold)
    voters = [(g.labels.tolist(), g.cap) for g in rules.of("voters") if g.cap is not None]
    replicas = [(g.labels.tolist(), g.cap) for g in rules.of("replicas") if g.cap is not None]
    return (
        _Matroid([*voters, ([0] * sites, rules.voters)], {leader, *_sites(rules.must_vote)}),
        _Matroid(
            [*replicas, ([0] * sites, rules.replicas_max)], {leader, *_sites(rules.must_hold)}
        ),
    )


def _sites(mask: BoolArray) -> list[int]:
    chosen: list[int] = np.nonzero(mask)[0].tolist()
    return chosen


def _most(matroid: _Matroid, sites: Iterable[int]) -> int:
    """Return how many of some sites can be chosen in turn: in a matroid, the most there are."""
    count = 0
    for site in sites:
        if matroid.room(site):
            matroid.take(site)
            count += 1
    return count


def _hopeless(rules: Rules, leader: int) -> bool:
    """Return whether pins or the least number of replicas alone rule a leader out."""
    votes, places = _matroids(rules, leader)
    if not (votes.kept and places.kept):
        return True
    if not (votes.given <= set(_sites(rules.may_vote)) and rules.may_hold[[*places.given]].all()):
        return True
    others = [s for s in _sites(rules.may_hold) if s not in places.given]
    return len(places.given) + _most(places, others) < rules.replicas_min


def _short(rules: Rules, leader: int, split: frozenset[int]) -> bool:
    """Return whether a split leaves too few voters under a leader."""
    if _hopeless(rules, leader):
        return True
    votes, places = _matroids(rules, leader)
    others = set(_sites(rules.may_vote)) - votes.given
    most = len(votes.given) + _most(votes, others & split) + _most(places, others - split)
    return most < rules.voters


def _split(rules: Rules, leader: int) -> frozenset[int] | None:
    """Return a split that leaves too few voters under a leader, or None: there are enough."""
    if _hopeless(rules, leader):
        return frozenset()
    votes, places = _matroids(rules, leader)
    others = [s for s in _sites(rules.may_vote) if s not in votes.given]
    chosen: set[int] = set()
    while len(chosen) < rules.voters - len(votes.given):
        path, reached = _augmenting(votes, places, others, chosen)
        if not path:
            return frozenset(reached)
        for step, site in enumerate(path):
            for matroid in (votes, places):
                if step % 2:
                    matroid.drop(site)
                else:
                    matroid.take(site)
        chosen ^= set(path)
    return None


def _augmenting(
    votes: _Matroid, places: _Matroid, sites: Sequence[int], chosen: set[int]
) -> tuple[list[int], set[int]]:
    """Return a shortest path that adds one site to the chosen, and the sites where paths start.

    Backwards from the sites that fit as replicas: before a site comes one that is dropped for it
    among the voters, before a dropped one a site that takes its place among the replicas. The path
    is empty when none starts at a site that fits as a voter.
    """
    queue = deque(s for s in sites if s not in chosen and places.room(s))
    after: dict[int, int | None] = dict.fromkeys(queue)
    while queue:
        site = queue.popleft()
        if site in chosen:
            before = [s for s in sites if s not in chosen and places.room(s, instead=site)]
        elif votes.room(site):
            path = [site]
            while (following := after[path[-1]]) is not None:
                path.append(following)
            return path, set(after)
        else:
            before = [s for s in sorted(chosen) if votes.room(site, instead=s)]
        for one in before:
            if one not in after:
                after[one] = site
                queue.append(one)
    return [], set(after)
