"""Baseline rules: simple choices of sites and leader that people use, to compare methods with.

Each rule is one function. Its docstring gives the rule, its source and its complexity. The constant
of its name in capitals registers it as a method.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable

import numpy as np

from heuristics.completion import (
    AdmissibleSites,
    closest_feasible,
    complete_proposal,
    infeasible_plan,
    mean_rtt,
    replica_counts,
    site_traffic,
    sites_by_distance,
    writing,
)
from heuristics.local_search.steepest_descent import SteepestDescent
from heuristics.local_search.swap_neighbourhood import Pairs, SwapNeighbourhood, grow_sets
from heuristics.objective_terms import ObjectiveTerms, objective_terms, total_operations
from heuristics.rules import kq, qk
from heuristics.rules.qk import quorum_of, quorum_then_kmeans
from heuristics.rules.tier2 import best_roles
from placement.errors import LimitError
from placement.evaluation.score import closest_first
from placement.feasibility.feasible_plans import complete_configuration, violations
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.model.configuration import Configuration
from placement.model.distances import great_circle_km
from placement.model.instance import Instance
from placement.plan import Plan, cheapest
from placement.problem import Problem
from placement.support.checks import FloatArray
from placement.support.status import SearchEnd, Termination, end_early


def well_connected(
    problem: Problem, method: str, badness: Callable[[FloatArray], FloatArray]
) -> Plan:
    """Replicas of smallest mean RTT, and the leader among them of least badness.

    `badness` maps the write latency t_ℓ(c), shape (clients, sites), to one number per leader.
    """
    client_rtt, site_rtt = mean_rtt(problem)
    rules = problem.rules
    order = closest_first(client_rtt.mean(axis=0)).tolist()

    def leaders(size: int) -> list[int]:
        chosen = [site for site in order if rules.may_hold[site]][:size]
        voting = [site for site in chosen if rules.may_vote[site]]
        waits = np.zeros(len(order))
        for leader in range(len(order)):
            others = np.sort(site_rtt[leader, [s for s in voting if s != leader]])
            answers = np.append(0.0, others)  # the leader's own vote
            waits[leader] = answers[min(rules.quorum, len(answers)) - 1]
        ranked = closest_first(badness(client_rtt + waits)).tolist()
        return sorted(ranked, key=lambda site: site not in chosen)

    return complete_proposal(
        problem,
        method,
        leaders,
        lambda leader, size: complete_configuration(problem, leader, order, size),
    )


def solve_best_mean(problem: Problem, options: Options) -> Plan:
    """Best-connected sites (method ``best-mean``): a baseline.

    Replicas go to the n sites with the smallest mean RTT over all clients, and of these the one
    leads that has the smallest mean over clients of

        t_ℓ(c) = d(c, ℓ) + q_ℓ(R)        q_ℓ(R) the m-th smallest RTT from ℓ to the replicas

    the latency of a write as fantoch's planner (`fantoch_bote`) ranks leaders. Every client counts
    the same, as it does there: the rule knows RTTs, and neither demand nor the mix of operations.
    O(S·C + n²).
    """
    del options
    return well_connected(problem, BEST_MEAN.name, lambda latency: latency.mean(axis=0))


BEST_MEAN = Method(
    name="best-mean",
    call=solve_best_mean,
    summary="baseline: the sites of smallest mean RTT, led by the one of smallest mean latency",
    complexity="O(C·|S| + |R|²)",
    reference="fantoch_bote (vitorenesduarte/fantoch), leader by mean",
)


def coefficient_of_variation(latency: FloatArray) -> FloatArray:
    """Standard deviation over mean along the first axis; 0 where all values are 0."""
    mean = latency.mean(axis=0)
    spread = latency.std(axis=0)
    return np.asarray(np.divide(spread, mean, out=np.zeros_like(mean), where=mean > 0))


def solve_best_cov(problem: Problem, options: Options) -> Plan:
    """Fairest leader among the best-connected sites (method ``best-cov``): a baseline.

    As ``best-mean``, but of the n sites of smallest mean RTT the one leads whose write latency
    t_ℓ(c) = d(c, ℓ) + q_ℓ(R) has the smallest coefficient of variation over the clients,

        cov_ℓ = std_c t_ℓ(c) / mean_c t_ℓ(c)

    the "fairness" by which fantoch's planner (`fantoch_bote`) can sort leaders. It divides by the
    mean, so that a leader far from everybody looks fair. O(S·C + n²).
    """
    del options
    return well_connected(problem, BEST_COV.name, coefficient_of_variation)


BEST_COV = Method(
    name="best-cov",
    call=solve_best_cov,
    summary="baseline: the sites of smallest mean RTT, led by the one fairest to all clients",
    complexity="O(C·|S| + |R|²)",
    reference="fantoch_bote (vitorenesduarte/fantoch), leader by coefficient of variation",
)


def no_transactions(problem: Problem) -> str | None:
    """Say that a rule about writes is undefined when no client writes."""
    writes = problem.demand.counts.sum(axis=(0, 1)) @ writing(problem)
    if writes > 0:
        return None
    return "it goes by where transactions come from, and no client issues any"


def solve_most_writes(problem: Problem, options: Options) -> Plan:
    """Lead where most writes come from (method ``most-writes``): a baseline.

    This is the habit of "primary region" databases (TiDB's MAJORITY_IN_PRIMARY is one name for it).
    Every client's transactions are counted at its closest site, and the site with most of them
    leads. The m − 1 sites closest to it complete the quorum, and the other replicas go where most
    operations arrive. Without transactions the rule is undefined, and refuses. O(S·(C + log S)).
    """
    del options
    rules = problem.rules
    leaders = closest_first(-site_traffic(problem, transactions=True)).tolist()
    busiest = closest_first(-site_traffic(problem)).tolist()

    def prefer(leader: int) -> list[int]:
        close = [s for s in sites_by_distance(problem, leader) if rules.may_vote[s] and s != leader]
        return [leader, *close[: rules.quorum - 1], *busiest]

    return complete_proposal(
        problem,
        MOST_WRITES.name,
        lambda size: leaders,
        lambda leader, size: complete_configuration(problem, leader, prefer(leader), size),
    )


MOST_WRITES = Method(
    name="most-writes",
    call=solve_most_writes,
    summary="baseline: leader and majority where most writes come from, the rest where demand is",
    refuses=no_transactions,
    complexity="O(|S|·(C + log |S|))",
    reference="primary-region placement, e.g. TiDB MAJORITY_IN_PRIMARY",
)


def greatest_writer(problem: Problem) -> int:
    """Client index of most transactions, the first of several equal ones."""
    writes = problem.demand.counts.sum(axis=0) @ writing(problem)
    return int(writes.argmax())


def solve_closest_to_writes(problem: Problem, options: Options) -> Plan:
    """Lead close to the greatest writer (method ``closest-to-writes``): a strategy to compare with.

    Sharov et al., PVLDB 8(12), 2015, section 6.1: the leader is the candidate with the smallest RTT
    to the client that issues most transactions. That decides tier 1. In tier 2 the closest replicas
    vote; in tier 3 the quorum is the closest sites and K-means places the other replicas, as in
    Algorithm QK for this one leader. Demand is aggregated over the intervals of the problem. The
    rule is undefined, and refuses, when there are no transactions. O(C + S), beside one run of
    K-means in tier 3.
    """
    del options
    client_rtt, _ = mean_rtt(problem)
    leaders = closest_first(client_rtt[greatest_writer(problem)]).tolist()
    terms = objective_terms(problem, everyone=True)
    return complete_proposal(
        problem,
        CLOSEST_TO_WRITES.name,
        lambda size: leaders,
        lambda leader, size: quorum_then_kmeans(problem, terms, leader, size),
    )


CLOSEST_TO_WRITES = Method(
    name="closest-to-writes",
    call=solve_closest_to_writes,
    summary="comparison strategy: the leader closest to the client that writes most",
    refuses=no_transactions,
    complexity="O(C + |S|), and K-means in tier 3",
    reference="Sharov et al. 2015, section 6.1",
)


def quickest_wait(problem: Problem, leader: int, size: int) -> float:
    """Smallest quorum wait in ms that a leader can have with `size` replicas; infinite: none."""
    quorum = quorum_of(problem, leader, size)
    if quorum is None:
        return math.inf
    demand = problem.demand
    weight = demand.quorum if demand.quorum.any() else np.ones(demand.scenarios)
    slowest = demand.site_rtt[:, leader, list(quorum)].max(axis=1)
    return float(weight @ slowest / weight.sum())


def solve_smallest_quorum(problem: Problem, options: Options) -> Plan:
    """Lead where the quorum is quickest (method ``smallest-quorum``): a strategy to compare with.

    Sharov et al., PVLDB 8(12), 2015, section 6.1: argmin over ℓ of q_ℓ(V). In tier 1 V is given; in
    tier 2 it is the best that the replicas offer ℓ, in tier 3 the best that all sites do, and
    K-means places the other replicas, as in Algorithm QK for this one leader. With RTTs that vary
    by interval the waits are weighted by the rounds of votes. Clients play no part: that is what
    the comparison is about. O(S² log S), beside one run of K-means in tier 3.
    """
    del options
    candidates = np.nonzero(problem.rules.may_lead)[0].tolist()
    terms = objective_terms(problem, everyone=True)
    return complete_proposal(
        problem,
        SMALLEST_QUORUM.name,
        lambda size: sorted(candidates, key=lambda ell: quickest_wait(problem, ell, size)),
        lambda leader, size: quorum_then_kmeans(problem, terms, leader, size),
    )


SMALLEST_QUORUM = Method(
    name="smallest-quorum",
    call=solve_smallest_quorum,
    summary="comparison strategy: the leader with the quickest quorum",
    complexity="O(|S|² log |S|), and K-means in tier 3",
    reference="Sharov et al. 2015, section 6.1",
)


def demand_centroid(problem: Problem) -> FloatArray | None:
    """Latitude and longitude in degrees of the demand's centroid, shape (2,).

    None when the demand is spread so evenly over the globe that its mean has no direction. Clients
    without demand need no coordinates.
    """
    coordinates = problem.instance.client_coordinates
    assert coordinates is not None  # `refuses` has seen to that
    issued = problem.demand.counts.sum(axis=(0, 2))
    busy = issued > 0
    phi, lam = np.radians(coordinates[busy]).T
    points = np.stack([np.cos(phi) * np.cos(lam), np.cos(phi) * np.sin(lam), np.sin(phi)])
    x, y, z = points @ (issued[busy] / issued.sum())
    if np.sqrt(x * x + y * y + z * z) < 1e-9:
        return None
    radians = [np.arctan2(z, np.hypot(x, y)), np.arctan2(y, x)]
    return np.asarray(np.degrees(np.array(radians)))


def refuses(problem: Problem) -> str | None:
    """Say why there is no centroid: missing coordinates, or demand without a direction."""
    instance, rules = problem.instance, problem.rules
    if instance.site_coordinates is None or instance.client_coordinates is None:
        who = "sites" if instance.site_coordinates is None else "clients"
        return f"it goes by distance on the globe, and the instance has no coordinates of its {who}"
    issued = problem.demand.counts.sum(axis=(0, 2))
    for names, coordinates, needed in (
        (instance.clients, instance.client_coordinates, issued > 0),
        (instance.sites, instance.site_coordinates, rules.may_hold),
    ):
        unknown = np.nonzero(needed & np.isnan(coordinates).any(axis=1))[0]
        if unknown.size:
            return (
                "it goes by distance on the globe, and the coordinates of "
                f"{names[int(unknown[0])]!r} are unknown"
            )
    if demand_centroid(problem) is None:
        return "the demand is spread so evenly over the globe that it has no centroid"
    return None


def solve_nearest_centroid(problem: Problem, options: Options) -> Plan:
    """Leader at the centre of gravity of the demand (method ``nearest-centroid``): a baseline.

    What geo-replication tools without a latency model do: lead from the site closest, on the globe,
    to the centroid of the demand, and put the other replicas into the sites closest to the leader.
    The centroid is the spherical mean, the direction of

        Σ_c n_c·(cos φ_c cos λ_c, cos φ_c sin λ_c, sin φ_c)        n_c all operations of client c

    and not the mean of latitudes and longitudes, which puts the centre of Fiji and Samoa into
    Africa. Needs coordinates. RTTs play no part but in the roles: the voters closest to the leader
    vote. O(S·(C + S)).
    """
    del options
    centroid = demand_centroid(problem)
    coordinates = problem.instance.site_coordinates
    assert centroid is not None  # `refuses` has seen to both
    assert coordinates is not None
    places = np.where(problem.rules.may_hold[:, np.newaxis], coordinates, 0.0)
    to_centroid = great_circle_km(places, centroid[np.newaxis])[:, 0]
    between = great_circle_km(places, places)
    leaders = closest_first(to_centroid).tolist()
    return complete_proposal(
        problem,
        NEAREST_CENTROID.name,
        lambda size: leaders,
        lambda leader, size: complete_configuration(
            problem, leader, closest_first(between[leader]).tolist(), size
        ),
    )


NEAREST_CENTROID = Method(
    name="nearest-centroid",
    call=solve_nearest_centroid,
    summary="baseline: leader closest to the demand's centroid, replicas closest to the leader",
    refuses=refuses,
    complexity="O(|S|·(C + |S|))",
    reference="the picker of XDN (fadhilkurnia/xdn), with a spherical mean",
)


def diversity(instance: Instance) -> FloatArray:
    """Diversity of every two sites, in [0, 1], shape (sites, sites); O(S²·levels).

    A site without a domain at a level differs from every other site there.
    """
    size = len(instance.sites)
    tiers = sorted(
        (instance.labels(level) for level in instance.levels),
        key=lambda labels: len({label for label in labels if label is not None}),
    )
    result = np.zeros((size, size))
    for depth in range(len(tiers) - 1, -1, -1):
        codes = np.array(
            [
                f"={label}" if label is not None else f"?{site}"
                for site, label in enumerate(tiers[depth])
            ]
        )
        # a coarser tier overrules the finer ones, which have been written before
        result[codes[:, np.newaxis] != codes] = (len(tiers) - depth) / len(tiers)
    np.fill_diagonal(result, 0.0)
    return result


def spread_out(apart: FloatArray, arriving: FloatArray, first: int) -> tuple[int, ...]:
    """All sites in the order in which the rule adds them, beginning with `first`.

    `apart` is the diversity, shape (sites, sites). More operations that arrive win ties.
    """
    order = [first]
    total = apart[first].copy()
    left = np.ones(len(apart), dtype=bool)
    left[first] = False
    while left.any():
        # sums of a few multiples of 1/k: rounding keeps equal totals equal
        keys = np.lexsort((-arriving, -np.round(total, 9), ~left))
        site = int(keys[0])
        order.append(site)
        left[site] = False
        total += apart[site]
    return tuple(order)


def solve_max_diversity(problem: Problem, options: Options) -> Plan:
    """Replicas as far apart in the failure domains (method ``max-diversity``): a baseline.

    How CockroachDB's allocator spreads replicas without further instruction. Localities are
    compared tier by tier, coarse to fine; the diversity of two sites that first differ at tier i of
    k is (k − i)/k,

        1 for two continents, 0 for the same site

    and replicas are added one by one, each with the greatest total diversity from those chosen
    before. Ties go to the site where more operations arrive, then to site order. The first v are
    the voters, if they may be; the site where most operations arrive leads, as its "follow the
    workload" leases would. Tiers are the failure-domain levels of the instance, those with fewer
    domains first, and the site itself. O(n·S·levels).
    """
    del options
    apart, arriving = diversity(problem.instance), site_traffic(problem)
    leaders = closest_first(-arriving).tolist()
    rules = problem.rules

    def build(leader: int, size: int) -> Configuration | None:
        order = spread_out(apart, arriving, leader)
        found = complete_configuration(problem, leader, order, size)
        if found is None:
            return None
        voting = [site for site in order if site in found.replicas and rules.may_vote[site]]
        pinned_first = sorted(voting, key=lambda s: not (rules.must_vote[s] or s == leader))
        spread = Configuration.of(leader, pinned_first[: rules.voters], found.replicas)
        return found if violations(problem, spread) else spread

    return complete_proposal(problem, MAX_DIVERSITY.name, lambda size: leaders, build)


MAX_DIVERSITY = Method(
    name="max-diversity",
    call=solve_max_diversity,
    summary="baseline: replicas as diverse as possible in their failure domains",
    complexity="O(|R|·|S|·levels)",
    reference="CockroachDB's allocator (locality diversity score)",
)


def p_median(
    problem: Problem, size: int, stop: Callable[[], bool] = lambda: False
) -> tuple[int, ...] | None:
    """Replica sites for the p-median of all operations, in site order; None when nothing was found.

    The rules are obeyed, with some leader. When `stop` is true the substitution ends with the best
    set so far; TimeoutError before the first sets are complete.
    """
    exactly = dataclasses.replace(problem.rules, replicas_min=size, replicas_max=size)
    terms = _without_leader(problem)
    neighbourhood = SwapNeighbourhood(problem, terms, exactly)
    width = size + 1
    leaders = np.nonzero(exactly.may_lead)[0]
    leaders = leaders[exactly.must_hold.sum() + ~exactly.must_hold[leaders] <= size]  # pins fit
    if AdmissibleSites(problem, size).free_of_rules:
        pairs = grow_sets(neighbourhood, leaders, size, width, quorum=False, stop=stop)
    else:
        pairs = _feasible(problem, leaders.tolist(), size, width)
    if not len(pairs):
        return None
    values = SteepestDescent(neighbourhood, stop).run(pairs)
    chosen = pairs.replicas[int(values.argmin())]
    return tuple(sorted(chosen[chosen < terms.sites].tolist()))


def _without_leader(problem: Problem) -> ObjectiveTerms:
    """Terms whose summand is w_c·d(c, r) and that see neither leader, votes nor money."""
    terms = objective_terms(problem, everyone=True)
    return dataclasses.replace(
        terms,
        near=total_operations(problem),
        relay=np.zeros_like(terms.relay),
        votes=np.zeros_like(terms.votes),
        direct=np.zeros_like(terms.direct),
        money=np.zeros_like(terms.money),
        paid=None,
    )


def _feasible(problem: Problem, leaders: list[int], size: int, width: int) -> Pairs:
    """A feasible set for every leader that has one."""
    none = len(problem.rules.may_hold)
    rows, found = [], []
    for leader in leaders:
        try:
            configuration = complete_configuration(problem, leader, (), size)
        except LimitError:
            continue
        if configuration is not None:
            found.append(leader)
            rows.append([*configuration.replicas] + [none] * (width - size))
    replicas = np.array(rows, dtype=np.intp).reshape(len(rows), width)
    return Pairs(np.array(found, dtype=np.intp), replicas)


def solve_p_median_first(problem: Problem, options: Options) -> Plan:
    """p-median first, leader after (method ``p-median-first``): a baseline.

    The approach of a planner with a facility-location package. Place the replicas so that all
    operations are close to one, min Σ_c w_c·d(c, nearest(c, R)) with w_c all operations of c. Only
    then choose voters and leader among them (Algorithm 2). The p-median is found by vertex
    substitution (Teitz and Bart, Operations Research 16(5), 1968) with best improvement from a
    greedy start, or from a feasible one under rules. It is a local optimum, as in the heuristics of
    those packages.

    The set must admit roles, so one site in it is held as if it led: the substitution runs for
    every candidate at once, and the set of least p-median cost over all of them is taken.
    O(steps·S·C·S).
    """
    limit = math.inf if options.time_limit is None else options.time_limit
    end = time.perf_counter() + limit
    search, found = SearchEnd(), list[Configuration]()
    with end_early(search):
        for size in replica_counts(problem):
            sites = p_median(problem, size, lambda: time.perf_counter() > end)
            roles = None if sites is None else best_roles(problem, list(sites))
            if roles is None:
                roles = closest_feasible(problem, sites or (), size)
            if roles is not None:
                found.append(roles)
            if time.perf_counter() > end:
                raise TimeoutError
    best = cheapest(problem, found)
    if best is None and search.termination is Termination.FINISHED:
        return infeasible_plan(problem, P_MEDIAN_FIRST.name)
    return Plan.of(problem, best, method=P_MEDIAN_FIRST.name, termination=search.termination)


P_MEDIAN_FIRST = Method(
    name="p-median-first",
    call=solve_p_median_first,
    summary="baseline: replicas by p-median of all operations, then leader and voters",
    complexity="O(steps·|S|²·C)",
    reference="Teitz and Bart 1968, then Sharov et al. 2015, Algorithm 2",
)


def solve_best_of(problem: Problem, options: Options) -> Plan:
    """The better of KQ and QK (method ``best-of``).

    "Best(QK, KQ)" of Sharov et al., PVLDB 8(12), 2015, section 6.4: neither order of decisions wins
    on all workloads (quorum first pays where transactions dominate, replicas first where weak reads
    do), and both are cheap. A tie goes to KQ.
    """
    search, found = SearchEnd(), list[Configuration]()
    with end_early(search):
        found.extend(kq.of_each_size(problem))
    by_kmeans = cheapest(problem, found)
    if search.termination is Termination.FINISHED:
        result = qk.search(problem, options)
        found.extend(result.found)
        search.termination = result.termination
    best = cheapest(problem, found)
    if best is None and search.termination is Termination.FINISHED:
        return infeasible_plan(problem, BEST_OF.name)
    stats = {"winner": "kq" if best == by_kmeans else "qk"}
    return Plan.of(problem, best, method=BEST_OF.name, termination=search.termination, stats=stats)


BEST_OF = Method(
    name="best-of",
    call=solve_best_of,
    summary="the better of 'kq' and 'qk'",
    complexity="O(rounds·C·|R|·|S|²)",
    reference="Sharov et al. 2015, section 6.4",
)
