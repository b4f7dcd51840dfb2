"""The model written once more, in loops, from its definition and nothing else of this package.

Only the fields that a user fills in are read: no rules, no aggregation, no evaluator.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import chain, combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from placement import Diversity, Instance, Problem


def small(
    sites: Sequence[str], client_rtt: ArrayLike, site_rtt: ArrayLike, counts: ArrayLike, **more: Any
) -> Instance:
    """Return an instance whose clients have numbers; sites of a text are its letters."""
    clients = [f"k{client}" for client in range(np.shape(client_rtt)[-2])]
    return Instance(tuple(sites), clients, client_rtt, site_rtt, counts, **more)


class Answer(NamedTuple):
    """Objective and configuration on site indices; voters closest to the leader first."""

    objective: float
    leader: int
    voters: tuple[int, ...]
    replicas: tuple[int, ...]


def score(
    instance: Instance,
    leader: int,
    voters: Iterable[int],
    replicas: Iterable[int],
    quorum: int,
    decay: float = 1.0,
) -> float:
    """Eq. 1 summed over the intervals with the weights of Eq. 2."""
    total = 0.0
    for age, counts in enumerate(reversed(instance.counts)):
        k = len(instance.counts) - 1 - age
        rtt = instance.client_rtt[k] if instance.client_rtt.ndim == 3 else instance.client_rtt
        between = instance.site_rtt[k] if instance.site_rtt.ndim == 3 else instance.site_rtt
        wait = sorted(between[leader][x] for x in voters)[quorum - 1]
        for c, issued in enumerate(counts):
            near = min(replicas, key=lambda r: (rtt[c][r], r))
            for n, (alpha, beta, gamma, delta) in zip(
                issued, (o.coefficients for o in instance.operations), strict=True
            ):
                time = alpha * rtt[c][near] + beta * between[near][leader]
                time += gamma * rtt[c][leader] + delta * wait
                total += (float(age == 0) if math.isinf(decay) else decay**-age) * n * time
    return float(total)


def quorum_of(problem: Problem, voters: int) -> int:
    """Votes that a commit waits for: a majority, ⌈(v + 1)/2⌉, unless a flexible quorum is asked."""
    return math.ceil((voters + 1) / 2) if problem.quorum is None else problem.quorum


def cost(problem: Problem, leader: int, replicas: Iterable[int]) -> float:
    """Storage of every replica, and what the leader ships to it."""
    prices = problem.instance.prices
    if prices is None:
        return 0.0
    shipped = [0.0 if prices.transfer is None else prices.transfer[leader][r] for r in replicas]
    return float(sum(prices.storage[r] for r in replicas) + prices.written_gb * sum(shipped))


def votes_obey(problem: Problem, leader: int, voters: Sequence[int]) -> bool:
    """Return whether voters and leader obey their rules, wherever the replicas are."""
    sites, domains = problem.instance.sites, problem.instance.domains
    votes, asked = {sites[v] for v in voters}, problem.voters
    good = votes == set(asked) if isinstance(asked, tuple) else len(votes) == asked
    good &= leader in voters and problem.leader in (None, sites[leader])
    good &= problem.leaders is None or sites[leader] in problem.leaders
    good &= votes >= set(problem.pinned_voters) and not votes & set(problem.non_voters)
    good &= all(spread(problem, r, voters) for r in problem.diversity if r.role == "voters")
    if problem.survive is not None:
        quorum = quorum_of(problem, len(voters))
        enough = max(quorum, len(voters) - quorum + 1)  # to commit, and to elect a leader
        known = sites if problem.survive == "site" else domains[problem.survive]
        labels = [known[s] for s in voters]
        good &= all(len(voters) - labels.count(x) >= enough for x in labels)
    return bool(good)


def spread(problem: Problem, rule: Diversity, chosen: Sequence[int]) -> bool:
    """Return whether sites obey the cap, the minimum of domains or the named domain of a rule."""
    instance = problem.instance
    known = instance.sites if rule.level == "site" else instance.domains[rule.level]
    labels = [known[s] for s in chosen]
    good = rule.cap is None or all(labels.count(x) <= rule.cap for x in labels)
    if rule.least is not None:
        good = good and labels.count(rule.domain) >= rule.least
    return good and (rule.min_domains is None or len(set(labels)) >= rule.min_domains)


def obeys(problem: Problem, leader: int, voters: Sequence[int], replicas: Sequence[int]) -> bool:
    """Return whether a configuration obeys all rules, and ℓ ∈ V ⊆ R."""
    sites, asked = problem.instance.sites, problem.replicas
    held = {sites[r] for r in replicas}
    if isinstance(asked, tuple) and isinstance(asked[0], str):
        good = held == set(asked)
    else:
        low, high = asked if isinstance(asked, tuple) else (asked, asked)
        good = low <= len(held) <= high
    good &= votes_obey(problem, leader, voters) and set(voters) <= set(replicas)
    good &= held >= set(problem.pinned) and not held & set(problem.forbidden)
    good &= all(spread(problem, r, replicas) for r in problem.diversity if r.role == "replicas")
    if problem.budget is not None:
        good &= cost(problem, leader, replicas) <= problem.budget * (1 + 1e-9) + 1e-9
    return bool(good)


def configurations(problem: Problem) -> Iterable[tuple[int, tuple[int, ...], tuple[int, ...]]]:
    """Every (leader, voters, replicas) that obeys the problem, by R, then V, then ℓ."""
    sites = range(len(problem.instance.sites))
    for replicas in chain.from_iterable(combinations(sites, n) for n in range(1, len(sites) + 1)):
        if isinstance(problem.replicas, int) and len(replicas) != problem.replicas:
            continue
        for voters in chain.from_iterable(
            combinations(replicas, n)
            for n in range(1, len(replicas) + 1)
            if not isinstance(problem.voters, int) or n == problem.voters
        ):
            for leader in voters:
                if obeys(problem, leader, voters, replicas):
                    yield leader, voters, replicas


def objective(
    problem: Problem, leader: int, voters: Sequence[int], replicas: Sequence[int]
) -> float:
    """Score plus the weighted cost."""
    quorum = quorum_of(problem, len(voters))
    value = score(problem.instance, leader, voters, replicas, quorum, problem.decay)
    return value + problem.cost_weight * cost(problem, leader, replicas)


def solve(problem: Problem) -> Answer | None:
    """Best configuration of all; ties by leader, then fewer replicas, then R, then close voters.

    Close: the smallest quorum wait, then the ranks of the voters in the leader's order of sites.
    Only for one RTT matrix are the voters of a tie defined.
    """
    found = [(objective(problem, *chosen), *chosen) for chosen in configurations(problem)]
    if not found:
        return None
    least = min(found)[0]

    def precedence(
        answer: tuple[float, int, tuple[int, ...], tuple[int, ...]],
    ) -> tuple[int, int, tuple[int, ...], float, list[tuple[float, int]]]:
        _, leader, voters, replicas = answer
        row = problem.instance.site_rtt[..., leader, :].reshape(-1, len(problem.instance.sites))[-1]
        answers = sorted((float(row[x]), x) for x in voters)
        wait = answers[quorum_of(problem, len(voters)) - 1][0]
        return leader, len(replicas), replicas, wait, answers

    best = min((a for a in found if a[0] <= least * (1 + 1e-12)), key=precedence)
    return Answer(best[0], best[1], tuple(x for _, x in precedence(best)[4]), best[3])
