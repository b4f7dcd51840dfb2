"""A question with witnesses at given sites as one without: replicas that no client is near to.

Let W be the sites of the witnesses. In the new question every site of W must hold a replica and
vote, may not lead, and is farther from every client than any other site. So a configuration
(ℓ, V, R) with the witnesses W becomes (ℓ, V, R ∪ W): no operation goes to W, as the leader is
nearer to each client, and V waits as before. |R| grows by |W|, and rules for replicas bind R alone,
by levels in which every site of W is a domain of its own. A clause about replicas asks those inside
a domain of all other sites. With lease holders the sites of W hold no lease.

Configurations of the two questions are one to one, with equal scores and the same rules for voters.
Where the sites of the witnesses are not given, each choice of them is such a question, and the best
of all is the best: a proof of each proves the whole.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError, UnitsWarning
from placement.feasibility.lease_copies import LeaseCopies, lease_copies
from placement.model.configuration import Configuration
from placement.model.operations import Operation
from placement.model.wait_terms import TO_LEASE_HOLDER
from placement.model.waits import Clause, Wait
from placement.support.checks import BoolArray

if TYPE_CHECKING:
    from placement.problem import Problem

__all__ = ["MOST_PLACES", "NamedQuestion", "count_places", "named_question", "witness_places"]


MOST_PLACES = 2_000
"""Choices of sites for the witnesses that are proven one by one: each takes milliseconds."""


def count_places(problem: Problem) -> int:
    """Return how many choices of sites for the witnesses there are. O(1)."""
    rules = problem.rules
    if rules.may_witness is None:
        return 0
    named = 0 if rules.must_witness is None else int(rules.must_witness.sum())
    if named > rules.witnesses:
        return 0
    return math.comb(int(rules.may_witness.sum()) - named, rules.witnesses - named)


def witness_places(problem: Problem) -> Iterator[tuple[int, ...]]:
    """Yield every choice of sites for the witnesses, in site order.

    Without those that leave no site for the leader, or too few for replicas or voters.
    """
    rules = problem.rules
    if rules.may_witness is None:
        return
    must = np.zeros_like(rules.may_witness) if rules.must_witness is None else rules.must_witness
    named = np.nonzero(must)[0].tolist()
    free = np.nonzero(rules.may_witness & ~must)[0].tolist()
    for more in itertools.combinations(free, rules.witnesses - len(named)):
        places = sorted((*named, *more))
        others = np.ones_like(rules.may_hold)
        others[places] = False
        enough = (
            (rules.may_lead & others).any()
            and np.count_nonzero(rules.may_hold & others) >= rules.replicas_min
            and np.count_nonzero(rules.may_vote & others) >= rules.data_voters
        )
        if enough:
            yield tuple(places)


@dataclass(frozen=True, eq=False)
class NamedQuestion:
    """A question with witnesses at given sites as one without witnesses and lease holders.

    Attributes
    ----------
    places
        Sites of the witnesses.
    problem
        Without witnesses; with lease holders the question on two copies of every site.
    copies
        The copies, where there are lease holders.
    """

    places: tuple[int, ...]
    problem: Problem
    copies: LeaseCopies | None

    def original(self, found: Configuration) -> Configuration:
        """Return a configuration of this question as one with witnesses."""
        one = found if self.copies is None else self.copies.original(found)
        data = [site for site in one.replicas if site not in self.places]
        return Configuration.of(one.leader, one.voters, data, one.lease_holders)


def named_question(problem: Problem, places: tuple[int, ...]) -> NamedQuestion | None:
    """Return the question without witnesses that stands for one with them at given sites.

    Parameters
    ----------
    problem
        With witnesses.
    places
        One of :func:`witness_places`.

    Returns
    -------
    NamedQuestion or None
        None where there are prices, a present configuration or another objective than the mean,
        where waits are for replicas outside a domain, and with lease holders also where some
        replicas do not vote, or :func:`~placement.feasibility.lease_copies.lease_copies` does not
        take the question.

    Notes
    -----
    O(C·S + S²).
    """
    named = _without_witnesses(problem, places)
    if named is None or not problem.rules.lease_holders:
        return None if named is None else NamedQuestion(places, named, None)
    if problem.rules.voters_hold_leases:
        return None
    copies = lease_copies(named, places)
    return None if copies is None else NamedQuestion(places, copies.problem, copies)


def _without_witnesses(problem: Problem, places: tuple[int, ...]) -> Problem | None:
    from placement.problem import Problem

    rules, given = problem.rules, problem.instance
    if rules.cost_weight or rules.budget is not None:
        return None
    if problem.current is not None or problem.moves is not None or not problem.minimises_mean:
        return None
    taken = [name for level in given.domains.values() for name in level if name is not None]
    prefix = _unused("of data", [*given.domains, *taken, *given.sites])
    domains: dict[str, tuple[str | None, ...]] = dict(given.domains)

    def level_of_data(level: str) -> str:
        """Return a level in which the sites of the witnesses are domains of their own."""
        labels: tuple[str | None, ...] = (prefix,) * len(given.sites)
        if level:
            labels = given.sites if level == "site" else given.domains[level]
        name = f"{prefix} {level}"
        domains[name] = tuple(
            f"{prefix} {site}" if site in places else label for site, label in enumerate(labels)
        )
        return name

    spread = [
        rule
        if rule.role == "voters"
        else dataclasses.replace(
            rule,
            level=level_of_data(rule.level),
            min_domains=None if rule.min_domains is None else rule.min_domains + len(places),
        )
        for rule in problem.diversity
    ]
    operations: list[Operation] = []
    for operation in problem.operations:
        waits = []
        for wait in operation.waits:
            assert isinstance(wait, Wait)  # text was read when the operation was made
            clauses = []
            for clause in wait.clauses:
                if clause.role == "replicas":
                    if clause.scope == "outside" or rules.lease_holders:
                        return None
                    level = level_of_data(clause.level)
                    clause = Clause(clause.need, "replicas", "inside", level)
                clauses.append(clause)
            if wait.origin != "leader" and Wait(wait.origin, wait.clauses) != TO_LEASE_HOLDER:
                return None
            waits.append(Wait(wait.origin, tuple(clauses), wait.times))
        operations.append(dataclasses.replace(operation, waits=tuple(waits)))
    rtt = given.client_rtt.copy()
    rtt[..., list(places)] = rtt.max(axis=-1, keepdims=True) + 1.0
    at = np.zeros(len(given.sites), dtype=bool)
    at[list(places)] = True

    most = min(rules.replicas_max, int(np.count_nonzero(rules.may_hold & ~at)))

    def names(chosen: BoolArray) -> list[str]:
        return [given.sites[site] for site in np.nonzero(chosen)[0].tolist()]

    try:
        with warnings.catch_warnings():  # of the units, which the instance was warned of
            warnings.simplefilter("ignore", UnitsWarning)
            instance = given.replace(
                client_rtt=rtt,
                **({} if rules.lease_holders else _paths_of(problem, operations)),
                domains=domains,
                prices=None,
            )
        return Problem(
            instance,
            replicas=(rules.replicas_min + len(places), most + len(places)),
            voters=rules.voters,
            quorum=rules.quorum if rules.votes is None else problem.quorum,
            votes=problem.votes,
            leaders=names(rules.may_lead & ~at),
            pinned=names(rules.must_hold | at),
            pinned_voters=names(rules.must_vote | at),
            forbidden=names(~rules.may_hold & ~at),
            non_voters=names(rules.may_hold & ~rules.may_vote & ~at),
            diversity=spread,
            survive=problem.survive,
            decay=problem.decay,
            protocol=problem.protocol if rules.lease_holders else None,
        )
    except InputError:  # an RTT that is as large as numbers may be
        return None


def _paths_of(problem: Problem, operations: list[Operation]) -> dict[str, object]:
    """Return operations under a protocol as those of an instance, with counts and leads."""
    paths, counts = problem.client_paths, problem.instance.counts
    if paths is not None:
        counts = paths.parted(counts)
    changes: dict[str, object] = {
        "operations": tuple(operations),
        "counts": counts,
        "shares": (),
        "protocol": None,
    }
    if problem.tunes_lead:
        from placement.model.protocol_families import lead_beyond_least

        leads = lead_beyond_least(problem.instance.site_rtt)
        return {**changes, "site_rtt": leads}
    return changes


def _unused(name: str, taken: Iterable[str]) -> str:
    """Return a name with which none that is taken begins."""
    names = tuple(taken)
    while any(one.startswith(name) for one in names):
        name += "_"
    return name
