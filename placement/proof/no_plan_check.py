"""Independent check that a problem has no plan: counts of sites under its constraints.

It shares no code with any search and rounds nothing: all numbers are counts of sites.

What is proved
--------------
For one leader ℓ let M = {ℓ} ∪ must_vote be the sites that vote, and H = {ℓ} ∪ must_hold those that
hold a replica, in every plan that ℓ leads. There is no such plan when any of these holds:

- M or H contains a site that may not, is larger than asked for, or breaks a cap.
- H and whatever else the caps on replicas let in are fewer than the least number of replicas.
- The rules for voters have no completion of M to v voters, or those for replicas none of H to an
  allowed number of replicas. Each family of rules (:mod:`placement.model.site_families`) is
  completed by its greedy, which in a matroid fails only where there is no completion; this holds
  for minimums, and for levels that cross.
- A *split* of the sites that may vote, but are not in M, into P and Q leaves too few voters:
  |M| + (most sites of P that the caps on voters let in beside M)
  + |Q ∩ H| + (most sites of Q − H that the caps on replicas let in beside H, and no more than
  replicas_max − |H|)  <  voters. For the voters in P obey the caps on voters, and those in Q are
  replicas.

Caps on nested levels make the sets that obey them the independent sets of a laminar matroid, so
that adding sites one by one, in any order, lets in the most there are; where levels cross, splits
are not counted. In splits minimums are left out of account, and everywhere budgets and whatever the
objective asks for, which weakens the proof and nothing else.

Whether some split is short is all there is to know: by the matroid intersection theorem (Edmonds
1970) the most voters that obey both kinds of caps are the least that a split leaves.

Three sites by hand: a and b are in one country, c is in another one, and a country may have one
voter. Then at most two sites vote. Three voters are one too many under each of the three leaders,
and the two splits without data prove it. Two voters have a plan, so the claim is refused:

>>> from placement import Diversity, Instance, Problem
>>> rtt = [[0, 1, 3], [1, 0, 2], [3, 2, 0]]
>>> countries = {"country": ("x", "x", "y")}
>>> line = Instance(["a", "b", "c"], ["d"], [[1, 2, 4]], rtt, [[1] * 5], domains=countries)
>>> for voters in (3, 2):
...     one = Diversity("country", cap=1)
...     rules = Problem(line, replicas=voters, voters=voters, diversity=one).rules
...     try:
...         print(check_no_plan(rules, line.sites, None))
...     except CertificateError as error:
...         print(error)
(3, 6)
counting does not rule out a plan that a leads
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from placement.errors import CertificateError
from placement.model.constraints import GroupRule, Role, Rules, laminar
from placement.model.site_families import FamilyCount, site_families
from placement.support.checks import BoolArray

FORMAT = "replica-placement/no-plan/1"


def check_no_plan(
    rules: Rules, sites: Sequence[str], certificate: Mapping[str, Any] | None
) -> tuple[int, int]:
    """Prove that no configuration obeys the rules, or refuse; `sites` are names, for messages.

    The certificate has splits by leader: ``{"format": FORMAT, "proofs": [{"leaders": [ℓ, …],
    "by_votes": P}, …]}``, sites by index. None: only the two splits without data are tried, all in
    P and all in Q. Return how many leaders there were, and how many times their sites were counted.
    CertificateError when the certificate leaves a leader out or does not prove its claim. O(sites ·
    levels) for each leader, and linear in the certificate.
    """
    may_lead: list[int] = np.nonzero(rules.may_lead)[0].tolist()
    splits = _splits(rules, certificate)
    shown: set[int] = set()
    for leader, by_votes in splits:
        if leader not in shown and _no_plan(rules, leader, by_votes):
            shown.add(leader)
    for leader in may_lead:
        if leader not in shown:
            raise CertificateError(f"counting does not rule out a plan that {sites[leader]} leads")
    return len(may_lead), len(splits)


def _splits(
    rules: Rules, certificate: Mapping[str, Any] | None
) -> list[tuple[int, frozenset[int]]]:
    """Leaders with the sites of P."""
    if certificate is None:
        every = frozenset(range(len(rules.may_lead)))
        leaders = np.nonzero(rules.may_lead)[0].tolist()
        return [(leader, p) for leader in leaders for p in (every, frozenset[int]())]
    if certificate["format"] != FORMAT:
        raise CertificateError(f"unknown format {certificate['format']!r}, expected {FORMAT!r}")
    proofs = [([int(s) for s in one["leaders"]], one["by_votes"]) for one in certificate["proofs"]]
    if sorted(s for some, _ in proofs for s in some) != np.nonzero(rules.may_lead)[0].tolist():
        raise CertificateError("not exactly one proof for every site that may lead")
    splits = [(some, frozenset(int(s) for s in by_votes)) for some, by_votes in proofs]
    return [(leader, by_votes) for some, by_votes in splits for leader in some]


def _capped(rules: Rules, role: Role) -> tuple[GroupRule, ...]:
    return tuple(group for group in rules.of(role) if group.cap is not None)


def _nested(rules: Rules, role: Role) -> bool:
    allowed: BoolArray = rules.may_vote if role == "voters" else rules.may_hold
    return laminar([group.labels for group in _capped(rules, role)], allowed)


def _no_plan(rules: Rules, leader: int, by_votes: frozenset[int]) -> bool:
    """Return whether counting shows that no plan is led by a site; see the module."""
    may_vote, may_hold = _sites(rules.may_vote), _sites(rules.may_hold)
    voters, holders = _sites(rules.must_vote) | {leader}, _sites(rules.must_hold) | {leader}
    votes = _CapUsage(_capped(rules, "voters"), voters)
    places = _CapUsage(_capped(rules, "replicas"), holders)
    spare = rules.replicas_max - len(holders)
    if not (voters <= may_vote and holders <= may_hold and votes.kept and places.kept):
        return True
    if len(voters) > rules.voters or spare < 0:
        return True
    if not (
        _completes(rules, "voters", voters, rules.voters, rules.voters)
        and _completes(rules, "replicas", holders, rules.replicas_min, rules.replicas_max)
    ):
        return True
    if not (_nested(rules, "voters") and _nested(rules, "replicas")):
        return False
    others = may_vote - voters
    most = len(voters) + sum(votes.take(s) for s in others & by_votes)
    rest = others - by_votes
    most += len(rest & holders)
    most += min(spare, sum(places.take(s) for s in rest - holders))
    if most < rules.voters:
        return True
    room = _CapUsage(_capped(rules, "replicas"), holders)
    return len(holders) + sum(room.take(s) for s in may_hold - holders) < rules.replicas_min


def _completes(rules: Rules, role: Role, given: set[int], least: int, most: int) -> bool:
    """Return whether every family of a role can be completed from sites that are given."""
    able = sorted(_sites(rules.may_vote if role == "voters" else rules.may_hold) - given)
    for family in site_families(rules, role):
        count = FamilyCount(family, least, most)
        if not count.take_all(given):
            return False
        for site in able:
            count.take_needed(site)
        if count.missing > 0:
            return False
    return True


def _sites(mask: BoolArray) -> set[int]:
    return {int(s) for s in np.nonzero(mask)[0]}


class _CapUsage:
    """Number of some sites that each domain holds, and the number its caps still let in."""

    def __init__(self, groups: Sequence[GroupRule], sites: Iterable[int]) -> None:
        self.caps = [(g.labels.tolist(), g.cap, [0] * len(g.names)) for g in groups]
        self.kept = True
        for site in sites if self.caps else ():
            self.kept = self.take(site) and self.kept

    def take(self, site: int) -> bool:
        """Count a site if every cap has room for it; say whether it had."""
        if not self.caps:
            return True
        if any(cap is not None and held[labels[site]] >= cap for labels, cap, held in self.caps):
            return False
        for labels, _, held in self.caps:
            held[labels[site]] += 1
        return True
