"""Tier 1: the best leader when replicas and voters are given (method ``leader``).

Sharov et al., PVLDB 8(12), 2015, section 3: λ = argmin over ℓ ∈ V of agg_score(ℓ). Exact, because
every candidate is scored. O(|V|·C·|R|).
"""

from __future__ import annotations

import numpy as np

from placement.evaluation.voter_choice import by_answer_time
from placement.methods.options import Options
from placement.methods.registry import Method, up_to_tier
from placement.model.configuration import Configuration
from placement.plan import Plan, cheapest, objective_value
from placement.problem import Problem


def solve(problem: Problem, options: Options) -> Plan:
    """Score every voter that may lead and take the best."""
    del options
    rules = problem.rules
    replicas = np.nonzero(rules.must_hold)[0].tolist()
    voters = np.nonzero(rules.may_vote)[0].tolist()  # all of them: the question is of tier 1
    best = cheapest(
        problem,
        [
            Configuration.of(ell, by_answer_time(problem.demand, ell, voters), replicas)
            for ell in voters
            if rules.may_lead[ell]
        ],
    )
    if best is None:
        return Plan.infeasible(
            problem,
            method=METHOD.name,
            reasons=("the fixed replicas and voters obey the constraints under no leader",),
        )
    return Plan.of(problem, best, method=METHOD.name, bound=objective_value(problem, best))


METHOD = Method(
    name="leader",
    call=solve,
    summary="tier 1: best leader for given replicas and voters",
    exact=True,
    refuses=up_to_tier(1),
    objectives=("mean", "measures"),
    complexity="O(|V|·C·|R|)",
    reference="Sharov et al. 2015, section 3",
)
