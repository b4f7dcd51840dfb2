"""Exhaustive search written from the definitions, sharing nothing with the package's evaluator.

Percentiles are found by trying every value, scenarios by writing out the latency matrix E^f, and
*all* consistent (R, W) are tried, not only those with R + W = N + 1.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

from placement.quorumstore import LossScope, QuorumProblem, Redirect, Target


def scenario_matrix(problem: QuorumProblem, lost: tuple[int, ...]) -> list[list[float]]:
    """E^f as nested lists, infinite in the columns of lost sites."""
    n = len(problem.sites)
    d = [[float(problem.rtt[i, j]) for j in range(n)] for i in range(n)]
    alive = [j for j in range(n) if j not in lost]
    matrix = []
    for i in range(n):
        row = list(d[i])
        if i in lost and problem.rules.redirect is not Redirect.KEEP:
            closest = min(alive, key=lambda j: (d[i][j], j))
            hop = d[i][closest] if problem.rules.redirect is Redirect.HOP else 0.0
            row = [hop + d[closest][j] for j in range(n)]
        matrix.append([math.inf if j in lost else row[j] for j in range(n)])
    return matrix


def percentile(latencies: list[float], counts: list[int], fraction: float) -> float:
    total = sum(counts)
    need = math.ceil(Fraction(str(fraction)) * total)
    if need == 0:
        return 0.0
    for value in sorted(set(latencies)):
        if sum(c for c, x in zip(counts, latencies, strict=True) if x <= value) >= need:
            return value
    return math.inf


def thresholds(problem, matrix, replicas, read, write):
    def side(quorum, counts, fraction):
        latencies = []
        for row in matrix:
            answers = sorted(row[j] for j in replicas)
            latencies.append(answers[quorum - 1])
        return percentile(latencies, [int(c) for c in counts], fraction)

    rules = problem.rules
    return (
        side(read, problem.reads, rules.read_fraction),
        side(write, problem.writes, rules.write_fraction),
    )


def losses(problem: QuorumProblem) -> list[tuple[int, ...]]:
    n = len(problem.sites)
    if problem.rules.loss is LossScope.REGION:
        groups = [
            tuple(i for i in range(n) if problem.regions[i] == region)
            for region in dict.fromkeys(problem.regions)
        ]
    else:
        groups = [g for g in combinations(range(n), problem.rules.failures) if g]
    return [g for g in groups if len(g) < n]


def admissible(problem: QuorumProblem, replicas: tuple[int, ...], read: int, write: int) -> bool:
    rules, size = problem.rules, len(replicas)
    regions = [problem.regions[j] for j in replicas]
    if rules.replicas is not None and size != rules.replicas:
        return False
    if rules.replicas is None and size > rules.max_replicas:
        return False
    if rules.read_quorum not in (None, read) or rules.write_quorum not in (None, write):
        return False
    if rules.distinct_regions and len(set(regions)) < size:
        return False
    if rules.loss is LossScope.REGION:
        survivors = min(size - regions.count(region) for region in regions)
        survivors = min(survivors, size - 1)
    else:
        survivors = size - rules.failures
    return read + write >= size + 1 and max(read, write) <= survivors


def every_configuration(problem: QuorumProblem):
    """Yield (replicas, R, W) for everything the rules allow."""
    n = len(problem.sites)
    for size in range(1, n + 1):
        for replicas in combinations(range(n), size):
            for read in range(1, size + 1):
                for write in range(1, size + 1):
                    if admissible(problem, replicas, read, write):
                        yield replicas, read, write


def figures(problem: QuorumProblem, replicas, read, write):
    """(T_r, T_w) normal, (T_r, T_w) worst, mean."""
    n = len(problem.sites)
    plain = scenario_matrix(problem, ())
    normal = thresholds(problem, plain, replicas, read, write)
    worst = list(normal)
    for lost in losses(problem):
        after = thresholds(problem, scenario_matrix(problem, lost), replicas, read, write)
        worst = [max(a, b) for a, b in zip(worst, after, strict=True)]
    total = 0.0
    for i in range(n):
        answers = sorted(plain[i][j] for j in replicas)
        if problem.reads[i]:
            total += int(problem.reads[i]) * answers[read - 1]
        if problem.writes[i]:
            total += int(problem.writes[i]) * answers[write - 1]
    mean = total / int(problem.reads.sum() + problem.writes.sum())
    return normal, tuple(worst), mean


def latency(goal, pair):
    if goal.target is Target.READS:
        return pair[0]
    if goal.target is Target.WRITES:
        return pair[1]
    if goal.target is Target.WEIGHTED:
        parts = [w * x for w, x in ((goal.read_weight, pair[0]), (goal.write_weight, pair[1])) if w]
        return sum(parts)
    return max(pair)


def value_and_ties(problem: QuorumProblem):
    """Best value, and all (replicas, R, W) that reach it in the order of the tie rule."""
    goal, rules = problem.goal, problem.rules
    best, ties = math.inf, []
    for replicas, read, write in every_configuration(problem):
        normal, worst, mean = figures(problem, replicas, read, write)
        judged = worst if rules.contingency else normal
        if judged[0] > goal.read_bound or judged[1] > goal.write_bound:
            continue
        if not all(math.isfinite(x) for x in judged):
            continue
        if not rules.contingency:
            value = latency(goal, normal)
        else:
            value = 0.0
            if goal.normal_weight:
                value += goal.normal_weight * latency(goal, normal)
            if goal.worst_weight:
                value += goal.worst_weight * latency(goal, worst)
        second = {Target.READS: judged[1], Target.WRITES: judged[0], Target.THRESHOLD: 0.0}.get(
            goal.target, max(judged)
        )
        key = (second, max(normal), sum(normal), mean, len(replicas), replicas, read, write)
        if value < best:
            best, ties = value, []
        if value == best:
            ties.append((key, (replicas, read, write)))
    return best, [found for _, found in sorted(ties)]
