"""A question with witnesses at given sites as one without: replicas that no client is near to.

Let W be the sites of the witnesses. In the new question every site of W must hold a replica and
vote, may not lead, and is farther from every client than any other site. So a configuration
(ℓ, V, R) with the witnesses W becomes (ℓ, V, R ∪ W): no operation goes to W, as the leader is
nearer to each client, and V waits as before. |R| grows by |W|, and rules for replicas bind R alone,
by levels in which every site of W is a domain of its own.

Configurations of the two questions are one to one, with equal scores and the same rules for voters.
Where the sites of the witnesses are not given, each choice of them is such a question, and the best
of all is the best: a proof of each proves the whole.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from placement.errors import InputError, UnitsWarning
from placement.model.configuration import Configuration
from placement.support.checks import BoolArray

if TYPE_CHECKING:
    from placement.problem import Problem

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

    Without those that leave no site for the leader, or too few for replicas, voters, or a rule
    about one domain.
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
            and all(
                np.count_nonzero(rules.may_hold & others & (group.labels == group.domain))
                >= group.least
                for group in rules.of("replicas")
            )
        )
        if enough:
            yield tuple(places)


def original(found: Configuration, places: tuple[int, ...]) -> Configuration:
    """Return a configuration of the question without witnesses as one with them at some sites."""
    return Configuration.of(
        found.leader, found.voters, [site for site in found.replicas if site not in places]
    )


def named_question(problem: Problem, places: tuple[int, ...]) -> Problem | None:
    """Return the question without witnesses that stands for one with them at given sites.

    Parameters
    ----------
    problem
        With witnesses.
    places
        One of :func:`witness_places`.

    Returns
    -------
    Problem or None
        None where an RTT is as large as numbers may be.

    Notes
    -----
    O(C·S + S²).
    """
    from placement.problem import Problem

    rules, given = problem.rules, problem.instance
    at = np.zeros(len(given.sites), dtype=bool)
    at[list(places)] = True
    taken = [name for labels in given.domains.values() for name in labels if name is not None]
    prefix = "of data"
    while any(name.startswith(prefix) for name in (*given.domains, *taken, *given.sites)):
        prefix += "_"
    domains: dict[str, tuple[str | None, ...]] = dict(given.domains)
    spread = []
    for rule in problem.diversity:
        if rule.role == "replicas":
            labels = given.labels(rule.level)
            level = f"{prefix} {rule.level}"
            domains[level] = tuple(
                f"{prefix} {site}" if at[site] else label for site, label in enumerate(labels)
            )
            least = None if rule.min_domains is None else rule.min_domains + len(places)
            rule = dataclasses.replace(rule, level=level, min_domains=least)
        spread.append(rule)
    rtt = given.client_rtt.copy()
    rtt[..., list(places)] = rtt.max(axis=-1, keepdims=True) + 1.0
    most = min(rules.replicas_max, int(np.count_nonzero(rules.may_hold & ~at)))

    def names(chosen: BoolArray) -> list[str]:
        return [given.sites[site] for site in np.nonzero(chosen)[0].tolist()]

    try:
        with warnings.catch_warnings():  # of the units, which the instance was warned of
            warnings.simplefilter("ignore", UnitsWarning)
            instance = given.replace(client_rtt=rtt, domains=domains, prices=None)
        return Problem(
            instance,
            replicas=(rules.replicas_min + len(places), most + len(places)),
            voters=rules.voters,
            quorum=rules.quorum,
            leaders=names(rules.may_lead & ~at),
            pinned=names(rules.must_hold | at),
            pinned_voters=names(rules.must_vote | at),
            forbidden=names(~rules.may_hold & ~at),
            non_voters=names(rules.may_hold & ~rules.may_vote & ~at),
            diversity=spread,
            survive=problem.survive,
            decay=problem.decay,
            protocol=problem.protocol,
        )
    except InputError:
        return None
