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

Every configuration of the one question is one of the other, with the same score: a proof of the one
proves the other.
"""

from __future__ import annotations

import dataclasses
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.checks import BoolArray
from placement.errors import InputError, UnitsWarning
from placement.model.configuration import Configuration
from placement.model.constraints import Diversity
from placement.model.instance import Instance
from placement.model.operations import Operation
from placement.model.wait_terms import TO_LEASE_HOLDER
from placement.model.waits import Clause, Wait

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["LeaseCopies", "lease_copies"]

_LEASED = "leased"


@dataclass(frozen=True, eq=False)
class LeaseCopies:
    """The question with two copies of every site: site 2r has no lease, site 2r + 1 has one.

    Attributes
    ----------
    problem
        Without lease holders.
    """

    problem: Problem

    def original(self, found: Configuration) -> Configuration:
        """Return a configuration of the copies as one of the question with lease holders."""
        return Configuration.of(
            found.leader // 2,
            [site // 2 for site in found.voters],
            [site // 2 for site in found.replicas],
            [site // 2 for site in found.replicas if site % 2],
        )

    def copied(self, found: Configuration) -> Configuration:
        """Return a configuration with lease holders as one of the copies."""
        leased = set(found.lease_holders)

        def copy(site: int) -> int:
            return 2 * site + (site in leased)

        return Configuration.of(
            copy(found.leader), [*map(copy, found.voters)], [*map(copy, found.replicas)]
        )


def lease_copies(problem: Problem) -> LeaseCopies | None:
    """Return the question without lease holders that stands for one with them.

    Parameters
    ----------
    problem
        With lease holders.

    Returns
    -------
    LeaseCopies or None
        None where witnesses, voters that hold the leases, pinned voters beside replicas that do not
        vote, RTTs that vary by interval or clauses about a part of the lease holders are asked for.

    Notes
    -----
    O(C·S + S²), for twice as many sites and clients.
    """
    from placement.problem import Problem

    rules, demand = problem.rules, problem.demand
    all_vote = rules.voters == rules.replicas_min == rules.replicas_max
    led = bool((rules.must_vote == rules.may_lead).all()) and int(rules.may_lead.sum()) == 1
    if rules.witnesses or demand.scenarios > 1 or not rules.may_lead.any():
        return None
    if (rules.voters_hold_leases or (rules.must_vote.any() and not led)) and not all_vote:
        return None
    levels = dict(problem.instance.domains)
    place, lease = (_unused(name, levels) for name in ("place", "lease"))
    operations = [_of_copies(one, lease) for one in problem.operations]
    if any(one is None for one in operations):
        return None
    try:
        with warnings.catch_warnings():  # of the units, which the instance was warned of
            warnings.simplefilter("ignore", UnitsWarning)
            instance = _instance(problem, [one for one in operations if one], place, lease)
    except InputError:  # an RTT that is as large as numbers may be
        return None

    def names(chosen: BoolArray) -> list[str]:
        sites = np.nonzero(chosen)[0].tolist()
        return [instance.sites[2 * site + copy] for site in sites for copy in (0, 1)]

    spread = [_of_places(rule, problem.instance, place) for rule in problem.diversity]
    fixed = bool((rules.must_hold == rules.may_hold).all())
    pins: list[int] = [] if fixed else rules.must_hold.nonzero()[0].tolist()
    spread += [
        Diversity(place, "replicas", cap=1),
        Diversity(lease, "replicas", cap=rules.lease_holders),
        Diversity(lease, "replicas", domain=_LEASED, least=rules.lease_holders),
        *(Diversity(place, "replicas", domain=f"{site}", least=1) for site in pins),
    ]
    return LeaseCopies(
        Problem(
            instance,
            replicas=(rules.replicas_min, rules.replicas_max),
            voters=rules.voters,
            quorum=rules.quorum,
            leaders=[instance.sites[2 * site + 1] for site in rules.may_lead.nonzero()[0]],
            forbidden=names(~rules.may_hold),
            non_voters=names(rules.may_hold & ~rules.may_vote),
            diversity=spread,
            survive=place if problem.survive == "site" else problem.survive,
        )
    )


def _of_places(rule: Diversity, instance: Instance, place: str) -> Diversity:
    """Return a rule about failure domains for the copies, of which two are one site."""
    if rule.level != "site":
        return rule
    named = None if rule.domain is None else f"{instance.sites.index(rule.domain)}"
    return dataclasses.replace(rule, level=place, domain=named)


def _unused(name: str, levels: dict[str, tuple[str | None, ...]]) -> str:
    """Return a name that no level has."""
    while name in levels:
        name += "_"
    return name


def _of_copies(operation: Operation, lease: str) -> Operation | None:
    """Return an operation on the copies, without trips to lease holders; None for other clauses."""
    waits = []
    for wait in operation.waits:
        assert isinstance(wait, Wait)  # text was read when the operation was made
        if Wait(wait.origin, wait.clauses) == TO_LEASE_HOLDER:
            continue
        clauses = []
        for clause in wait.clauses:
            if clause.role == "lease holders" and (clause.scope or clause.need != "all"):
                return None
            held = Clause("all", "replicas", "inside", lease)
            clauses.append(held if clause.role == "lease holders" else clause)
        waits.append(Wait(wait.origin, tuple(clauses), wait.times))
    return dataclasses.replace(operation, waits=tuple(waits))


def _instance(problem: Problem, operations: list[Operation], place: str, lease: str) -> Instance:
    """Return the world of the copies, with a second client for the strong reads of each."""
    given, demand = problem.instance, problem.demand
    sites, clients = len(given.sites), len(given.clients)
    rtt = np.repeat(demand.client_rtt[0], 2, axis=1)
    reads = rtt.copy()
    reads[:, ::2] = (reads.max(axis=1) + 1.0)[:, np.newaxis]
    counts = np.zeros((2 * clients, len(operations) + 1))
    counts[:clients, :-1] = demand.counts[0]
    counts[clients:, -1] = demand.lease_reads[0]
    names = {one.name for one in operations}
    trip = "lease"
    while trip in names:
        trip += "_"
    domains: dict[str, tuple[str | None, ...]] = {
        level: tuple(label for label in labels for _ in range(2))
        for level, labels in given.domains.items()
    }
    domains[place] = tuple(f"{site}" for site in range(sites) for _ in range(2))
    domains[lease] = tuple(label for site in range(sites) for label in (f"none {site}", _LEASED))
    return Instance(
        sites=tuple(f"{site}{copy}" for site in range(sites) for copy in (" plain", " leased")),
        clients=tuple(f"{c}{kind}" for kind in ("", " reads") for c in range(clients)),
        client_rtt=np.concatenate([rtt, reads]),
        site_rtt=np.repeat(np.repeat(demand.site_rtt[0], 2, axis=0), 2, axis=1),
        counts=counts,
        operations=(*operations, Operation(trip, near=1)),
        domains=domains,
        name=f"{given.name}, with a lease and without",
    )
