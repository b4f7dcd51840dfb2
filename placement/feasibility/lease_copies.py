"""A question with lease holders as one without: every site twice, with a lease and without.

Let every site r be two sites: r⁰, where a replica holds no lease, and r¹, where it holds one. Both
are where r is. A configuration (ℓ, V, R, L) becomes (ℓ¹, V', R') with r¹ ∈ R' for r ∈ L and r⁰ ∈ R'
for the other replicas r, and voters where they were. The rules of the new question are

- at most one of r⁰ and r¹ holds a replica, and exactly p of all the r¹;
- only r¹ may lead; else r⁰ and r¹ may what r may, and lie in the domains of r.

"All of lease holders" is "all of replicas inside the lease domain of the leader", a domain of all
r¹. A client's strong reads are those of a second client, as far from r¹ as the first from r, and
from every r⁰ farther than from any r¹. As the leader holds a lease, its nearest replica is a lease
holder.

If the voters hold the leases, voters and lease holders are the same sites: m of the voters are m of
the replicas inside the lease domain, a rule for voters is one for the r¹, and beside the leader no
site votes in the new question.

Every configuration of one question is a configuration of the other, with the same score: a proof of
the one proves the other.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError, UnitsWarning
from placement.evaluation.waits.wait_latency import needed
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity, GroupRule, Rules
from placement.model.demand import Demand
from placement.model.instance import Instance
from placement.model.operations import Operation
from placement.model.wait_terms import TO_LEASE_HOLDER
from placement.model.waits import Clause, Need, Wait
from placement.support.checks import BoolArray

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["LeaseCopies", "lease_copies"]

_LEASED = "leased"


@dataclass(frozen=True, eq=False)
class LeaseCopies:
    """The question with two copies of every site that may hold a replica.

    Attributes
    ----------
    problem
        Without lease holders.
    site, leased
        Of each copy: the site that it stands for, and whether a replica there holds a lease.
    voting
        Whether the voters hold the leases.
    """

    problem: Problem
    site: tuple[int, ...]
    leased: tuple[bool, ...]
    voting: bool

    def original(self, found: Configuration) -> Configuration:
        """Return a configuration of the copies as one of the question with lease holders."""
        leased = [self.site[copy] for copy in found.replicas if self.leased[copy]]
        return Configuration.of(
            self.site[found.leader],
            leased if self.voting else [self.site[copy] for copy in found.voters],
            [self.site[copy] for copy in found.replicas],
            leased,
        )

    def copied(self, found: Configuration) -> Configuration | None:
        """Return a configuration with lease holders as one of the copies; None: it cannot be."""
        place = {pair: copy for copy, pair in enumerate(zip(self.site, self.leased, strict=True))}
        copies = {site: place.get((site, site in found.lease_holders)) for site in found.replicas}
        held = {site: copy for site, copy in copies.items() if copy is not None}
        if len(held) < len(found.replicas):
            return None
        voters = (found.leader,) if self.voting else found.voters
        return Configuration.of(held[found.leader], [held[s] for s in voters], [*held.values()])


def lease_copies(problem: Problem, plain: Collection[int] = ()) -> LeaseCopies | None:
    """Return the question without lease holders that stands for one with them.

    Parameters
    ----------
    problem
        With lease holders.
    plain
        Sites where a replica holds no lease.

    Returns
    -------
    LeaseCopies or None
        None where witnesses, pinned voters beside replicas that do not vote, RTTs that vary by
        interval, clauses about a part of the lease holders, or, where the voters hold the leases,
        about a part of them or with a least number of their domains, are asked for.

    Notes
    -----
    O(C·S + S²), for twice as many sites and clients.
    """
    from placement.problem import Problem

    rules = problem.rules
    all_vote = rules.voters == rules.replicas_min == rules.replicas_max
    led = bool((rules.must_vote == rules.may_lead).all()) and int(rules.may_lead.sum()) == 1
    voting = rules.voters_hold_leases
    if rules.witnesses or problem.demand.scenarios > 1 or not rules.may_lead.any():
        return None
    if rules.votes is not None and voting:  # a copy with a lease has its votes, and no plain one
        return None
    if plain and not all_vote:
        return None
    if rules.must_vote.any() and not (led or all_vote or voting):
        return None
    may_lease = rules.may_vote if voting else rules.may_hold
    sites = rules.may_hold.nonzero()[0].tolist()
    copies = tuple(
        (site, held)
        for site in sites
        for held in (False, True)
        if not held or (may_lease[site] and site not in plain)
    )
    place, lease = (_unused(name, problem.instance.domains) for name in ("place", "lease"))
    operations = _operations_of_copies(
        problem.operations, lease, rules.voters, rules.quorum, voting
    )
    bound = _lease_rules(rules, lease) if voting else ()
    if bound is None or operations is None:
        return None
    try:
        with warnings.catch_warnings():  # of the units, which the instance was warned of
            warnings.simplefilter("ignore", UnitsWarning)
            instance = _instance(
                problem.instance,
                problem.demand,
                operations,
                copies,
                (place, lease),
                rules.of("voters") if voting else (),
            )
    except InputError:  # an RTT that is as large as numbers may be
        return None

    def names(chosen: BoolArray, *, leased: bool = False) -> list[str]:
        pairs = zip(instance.sites, copies, strict=True)
        return [name for name, (site, held) in pairs if chosen[site] and (held or not leased)]

    spread = [
        _of_places(rule, problem.instance, place)
        for rule in problem.diversity
        if rule.role == "replicas" or not voting
    ]
    fixed = bool((rules.must_hold == rules.may_hold).all())
    pins: list[int] = [] if fixed else rules.must_hold.nonzero()[0].tolist()
    spread += [
        *bound,
        Diversity(place, "replicas", cap=1),
        Diversity(lease, "replicas", cap=rules.lease_holders),
        Diversity(lease, "replicas", domain=_LEASED, least=rules.lease_holders),
        *(Diversity(place, "replicas", domain=f"{site}", least=1) for site in pins),
    ]
    survive = place if problem.survive == "site" else problem.survive
    try:
        copied = Problem(
            instance,
            replicas=(rules.replicas_min, rules.replicas_max),
            voters=1 if voting else rules.voters,
            quorum=1 if voting else (rules.quorum if rules.votes is None else problem.quorum),
            votes=None
            if rules.votes is None
            else {
                name: int(rules.votes[site])
                for name, (site, _) in zip(instance.sites, copies, strict=True)
            },
            leaders=names(rules.may_lead, leased=True),
            pinned=names(rules.must_vote, leased=True) if voting else (),
            non_voters=() if voting else names(~rules.may_vote),
            diversity=spread,
            survive=None if voting else survive,
        )
    except InputError:  # a rule about a domain that has no copy: there is no plan
        return None
    return LeaseCopies(copied, tuple(s for s, _ in copies), tuple(h for _, h in copies), voting)


def _lease_rules(rules: Rules, lease: str) -> tuple[Diversity, ...] | None:
    """Return the rules for voters as rules for the copies with a lease; None: that is not said."""
    found = []
    for number, group in enumerate(rules.of("voters")):
        if group.min_domains is not None:
            return None
        level = f"{lease} {number}"
        if group.cap is not None:
            found.append(Diversity(level, "replicas", cap=group.cap))
        if group.least:
            name = f"in {group.domain}"
            found.append(Diversity(level, "replicas", domain=name, least=group.least))
    return tuple(found)


def _of_places(rule: Diversity, instance: Instance, place: str) -> Diversity:
    """Return a rule about failure domains for the copies, of which two are one site."""
    if rule.level != "site":
        return rule
    named = None if rule.domain is None else f"{instance.sites.index(rule.domain)}"
    return dataclasses.replace(rule, level=place, domain=named)


def _unused(name: str, taken: Iterable[str]) -> str:
    """Return a name with which none that is taken begins."""
    names = tuple(taken)
    while any(one.startswith(name) for one in names):
        name += "_"
    return name


@lru_cache(maxsize=16)  # as of protocols: sweeps ask for the operations of few of them
def _operations_of_copies(
    operations: tuple[Operation, ...], lease: str, voters: int, quorum: int, voting: bool
) -> tuple[Operation, ...] | None:
    """Return operations on the copies, without trips to lease holders; None for other clauses."""
    found = [_of_copies(one, lease, voters, quorum, voting) for one in operations]
    known = tuple(one for one in found if one is not None)
    return known if len(known) == len(found) else None


def _of_copies(
    operation: Operation, lease: str, voters: int, quorum: int, voting: bool
) -> Operation | None:
    waits = []
    for wait in operation.waits:
        assert isinstance(wait, Wait)  # text was read when the operation was made
        if Wait(wait.origin, wait.clauses) == TO_LEASE_HOLDER:
            continue
        clauses = []
        for clause in wait.clauses:
            votes = clause.role == "voters" and voting
            if clause.role == "lease holders" and clause.need != "all":
                return None
            if votes or clause.role == "lease holders":
                if clause.scope or wait.origin != "leader":  # who asks need not hold a lease
                    return None
                need: Need = "all"
                if clause.need != "all":  # so many votes of all voters
                    need = int(needed(clause, voters, quorum, np.array(voters)))
                clause = Clause(need, "replicas", "inside", lease)
            clauses.append(clause)
        waits.append(Wait(wait.origin, tuple(clauses), wait.times))
    if voting and operation.quorum:
        held = Clause(quorum, "replicas", "inside", lease)
        waits.append(Wait("leader", (held,), operation.quorum))
        operation = dataclasses.replace(operation, quorum=0.0)
    return dataclasses.replace(operation, waits=tuple(waits))


@lru_cache(maxsize=4)  # demands are compared by identity; sweeps and checks ask again and again
def _instance(
    given: Instance,
    demand: Demand,
    operations: tuple[Operation, ...],
    copies: tuple[tuple[int, bool], ...],
    names: tuple[str, str],
    groups: tuple[GroupRule, ...],
) -> Instance:
    """Return the instance of the copies, with a second client for the strong reads of each.

    `names` are those of the levels of places and of leases; `groups` the rules for voters, where
    these hold the leases.
    """
    place, lease = names
    clients, site = len(given.clients), np.array([site for site, _ in copies])
    rtt = demand.client_rtt[0][:, site]
    reads = rtt.copy()
    reads[:, [not held for _, held in copies]] = (reads.max(axis=1) + 1.0)[:, np.newaxis]
    counts = np.zeros((2 * clients, len(operations) + 1))
    counts[:clients, :-1] = demand.counts[0]
    counts[clients:, -1] = demand.lease_reads[0]
    trip = _unused("lease", [one.name for one in operations])

    def labels(of_site: Sequence[str]) -> tuple[str, ...]:
        return tuple(of_site[s] if held else f"none {s}" for s, held in copies)

    domains: dict[str, tuple[str | None, ...]] = {
        level: tuple(named[s] for s, _ in copies) for level, named in given.domains.items()
    }
    domains[place] = tuple(f"{s}" for s, _ in copies)
    domains[lease] = labels([_LEASED] * len(given.sites))
    for number, group in enumerate(groups):
        domains[f"{lease} {number}"] = labels([f"in {d}" for d in group.labels])
    return Instance(
        sites=tuple(f"{s} {'leased' if held else 'plain'}" for s, held in copies),
        clients=tuple(f"{c}{kind}" for kind in ("", " reads") for c in range(clients)),
        client_rtt=np.concatenate([rtt, reads]),
        site_rtt=demand.site_rtt[0][np.ix_(site, site)],
        counts=counts,
        operations=(*operations, Operation(trip, near=1)),
        domains=domains,
        name=f"{given.name}, with a lease and without",
    )
