"""Tier 2: the best voters and leader when replicas are given (method ``tier2``).

Algorithm 2 of Sharov et al., PVLDB 8(12), 2015, section 4: instead of enumerating voter sets, take
every replica ℓ as leader with the voters that answer it first,

    q_ℓ = the m-th smallest d(ℓ, r), r ∈ R      score_ℓ = agg_score(ℓ, R, q_ℓ)      m = majority(v)

and keep the best leader. Exact, because those voters give the smallest q_ℓ of all voter sets that
contain ℓ. Under failure diversity on nested levels "closest first" becomes "closest first that
still fits the caps", which is exact as well (laminar matroid); under the other rules the voters of
each leader are found by a search: see :mod:`placement.evaluation.voter_choice`. O(|R|·(C·|R| + |R|
log |R|)).
"""

from __future__ import annotations

import numpy as np

from placement.evaluation.voter_choice import best_voters_of_each
from placement.methods.options import Options
from placement.methods.registry import Method, up_to_tier
from placement.model.configuration import Configuration
from placement.plan import Plan, cheapest, objective_value
from placement.problem import Problem


def best_roles(problem: Problem, replicas: list[int]) -> Configuration | None:
    """Best leader and voters among `replicas` (site indices); None when no choice is feasible."""
    leaders = [leader for leader in sorted(replicas) if problem.rules.may_lead[leader]]
    voters = best_voters_of_each(problem.demand, problem.rules, leaders, [replicas] * len(leaders))
    return cheapest(
        problem,
        [
            Configuration.of(leader, chosen, replicas)
            for leader, chosen in zip(leaders, voters, strict=True)
            if chosen is not None
        ],
    )


def solve(problem: Problem, options: Options) -> Plan:
    """Take every replica as leader with its closest voters and keep the best."""
    del options
    replicas = np.nonzero(problem.rules.must_hold)[0].tolist()
    best = best_roles(problem, replicas)
    if best is None:
        return Plan.infeasible(
            problem,
            method=METHOD.name,
            reasons=("no choice of voters and leader among the fixed replicas obeys all rules",),
        )
    return Plan.of(problem, best, method=METHOD.name, bound=objective_value(problem, best))


METHOD = Method(
    name="tier2",
    call=solve,
    summary="tier 2: best voters and leader among given replicas (Algorithm 2)",
    exact=True,
    refuses=up_to_tier(2),
    objectives=("mean",),
    complexity="O(C·|R|²)",
    reference="Sharov et al. 2015, Algorithm 2",
)
