"""Algorithms 2 to 5 of Sharov et al. written once more, in loops, straight from the pseudo-code.

Only for problems without constraints and with one RTT matrix, where the paper is complete; shared
with the package under test are the fields of the instance and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placement import Problem
from tests import reference

Cost = Callable[[int, int], float]
"""(client, site) -> cost of serving the client from the site."""


def nearest(problem: Problem, client: int, sites: Sequence[int]) -> int:
    rtt = problem.instance.client_rtt[client]
    return min(sites, key=lambda s: (rtt[s], s))


def weights(problem: Problem) -> list[float]:
    clients = range(len(problem.instance.clients))
    return [float(problem.instance.counts[:, c].sum()) for c in clients]


def weighted_k_means(
    problem: Problem, fixed: Sequence[int], n: int, cost: Cost, tolerance: float = 1e-12
) -> list[int]:
    """Algorithm 3, with the paper's gaps filled as its module's docstring says."""
    sites = range(len(problem.instance.sites))
    clients = range(len(problem.instance.clients))

    def total(g: Sequence[int]) -> float:
        return sum(cost(c, nearest(problem, c, g)) for c in clients)

    w = weights(problem)
    g = sorted(set(fixed))
    for c in sorted(clients, key=lambda c: (-w[c], c)):
        if len(g) < n and nearest(problem, c, sites) not in g:
            g.append(nearest(problem, c, sites))
    while len(g) < n:
        g.append(min((s for s in sites if s not in g), key=lambda s: (total([*g, s]), s)))
    g.sort()
    new_cost = total(g)
    while True:
        prev_cost = new_cost
        clusters = {x: [c for c in clients if nearest(problem, c, g) == x] for x in g}
        moved = list(g)
        for x in g:
            if x in fixed:
                continue
            free = [s for s in sites if s == x or s not in moved]
            best = min(free, key=lambda s: (sum(cost(c, s) for c in clusters[x]), s))
            moved[moved.index(x)] = best
        moved.sort()
        new_cost = total(moved)
        if new_cost > prev_cost:
            return g
        g = moved
        if prev_cost - new_cost <= tolerance * prev_cost:
            return g


def k_closest(problem: Problem, leader: int, k: int, among: Sequence[int]) -> list[int]:
    rtt = problem.instance.site_rtt[leader]
    return sorted(among, key=lambda s: (s != leader, rtt[s], s))[:k]


def value(problem: Problem, leader: int, voters: Sequence[int], replicas: Sequence[int]) -> float:
    return reference.objective(problem, leader, voters, replicas)


def tier_2(problem: Problem, replicas: Sequence[int], v: int) -> tuple[float, int, list[int]]:
    """Algorithm 2: (score, leader, voters)."""
    best = None
    for leader in sorted(replicas):
        voters = k_closest(problem, leader, v, replicas)
        score = value(problem, leader, voters, replicas)
        if best is None or score < best[0] * (1 - 1e-12):
            best = (score, leader, voters)
    assert best is not None
    return best


def kq(problem: Problem, n: int, v: int) -> float:
    w, rtt = weights(problem), problem.instance.client_rtt
    g = weighted_k_means(problem, [], n, lambda c, s: w[c] * rtt[c][s])
    return tier_2(problem, g, v)[0]


def qk(problem: Problem, n: int, v: int) -> float:
    instance = problem.instance
    sites = range(len(instance.sites))
    near = [
        sum(x * o.near for x, o in zip(n_c, instance.operations, strict=True))
        for n_c in instance.counts.sum(axis=0)
    ]
    relay = [
        sum(x * o.relay for x, o in zip(n_c, instance.operations, strict=True))
        for n_c in instance.counts.sum(axis=0)
    ]
    scores = []
    for leader in sites:
        quorum = k_closest(problem, leader, v // 2 + 1, sites)

        def cost(c: int, s: int, leader: int = leader) -> float:
            return float(
                near[c] * instance.client_rtt[c][s] + relay[c] * instance.site_rtt[s][leader]
            )

        g = weighted_k_means(problem, quorum, n, cost)
        rest = k_closest(problem, leader, len(g), [s for s in g if s not in quorum])
        voters = [*quorum, *rest[: v - len(quorum)]]
        scores.append(value(problem, leader, voters, g))
    return min(scores)
