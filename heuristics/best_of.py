"""The better of KQ and QK (method ``best-of``).

"Best(QK, KQ)" of Sharov et al., PVLDB 8(12), 2015, section 6.4: neither order of decisions wins
on all workloads (quorum first pays where transactions dominate, replicas first where weak reads
do), and both are cheap. A tie goes to KQ.
"""

from __future__ import annotations

from heuristics import kq, qk
from heuristics.completion import infeasible_plan
from placement.methods.options import Options
from placement.methods.registry import Method
from placement.plan import Plan, cheapest
from placement.problem import Problem
from placement.support.status import Termination

__all__ = ["METHOD", "solve"]


def solve(problem: Problem, options: Options) -> Plan:
    """Run KQ and QK and keep the better plan."""
    termination = Termination.FINISHED
    found = []
    try:
        by_kmeans = kq.best_of_sizes(problem)
        if by_kmeans is not None:
            found.append(by_kmeans)
    except KeyboardInterrupt:
        termination = Termination.INTERRUPTED
    if termination is Termination.FINISHED:
        result = qk.search(problem, options)
        found.extend(result.found)
        termination = result.termination
    best = cheapest(problem, found)
    if best is None and termination is Termination.FINISHED:
        return infeasible_plan(problem, METHOD.name)
    stats = {"winner": "kq" if found and best == found[0] else "qk"}
    return Plan.of(problem, best, method=METHOD.name, termination=termination, stats=stats)


METHOD = Method(
    name="best-of",
    call=solve,
    summary="the better of 'kq' and 'qk'",
    exact=False,
    complexity="O(rounds·C·|R|·|S|²)",
    reference="Sharov et al. 2015, section 6.4",
)
