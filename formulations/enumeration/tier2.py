"""Tier 2 by enumeration (method ``tier2-brute-force``): every voter set, every leader in it.

Algorithm 1 of Sharov et al., PVLDB 8(12), 2015, section 4. It is the reference of Algorithm 2
(method ``tier2``) and shares nothing with it but the evaluator. O(C(|R|, v)·v·(C + v log v)).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from placement.errors import LimitError
from placement.evaluation.score import cutoff, score_many
from placement.feasibility.feasible_plans import violations
from placement.methods.options import Options, Setting
from placement.methods.registry import Method, up_to_tier
from placement.model.configuration import Configuration
from placement.plan import Plan, objective_value
from placement.problem import Problem


def solve(problem: Problem, options: Options) -> Plan:
    """Enumerate every V ⊆ R of the asked size and every ℓ ∈ V."""
    rules = problem.rules
    replicas = np.nonzero(rules.must_hold)[0].tolist()
    sets = math.comb(len(replicas), rules.voters)
    limit = int(str(options.settings["limit"]))
    if sets > limit:
        raise LimitError(
            f"{sets:,} voter sets are more than the limit of {limit:,}; use 'tier2', or raise the "
            "setting 'limit'"
        )
    feasible = [
        Configuration.of(leader, voters, replicas)
        for voters in itertools.combinations(replicas, rules.voters)
        for leader in voters
        if not violations(problem, Configuration.of(leader, voters, replicas))
    ]
    if not feasible:
        return Plan.infeasible(
            problem,
            method=METHOD.name,
            reasons=(f"none of the {sets} voter sets among the fixed replicas obeys all rules",),
        )
    values = score_many(
        problem.demand,
        [c.leader for c in feasible],
        [c.voters for c in feasible],
        [c.replicas for c in feasible],
        rules.quorum,
    )
    if rules.cost_weight:
        values = np.array([objective_value(problem, c) for c in feasible])
    best = _first(problem, [feasible[i] for i in np.nonzero(values <= cutoff(values.min()))[0]])
    return Plan.of(
        problem,
        best,
        method=METHOD.name,
        bound=objective_value(problem, best),
        stats={"sets": sets},
    )


def _first(problem: Problem, tied: list[Configuration]) -> Configuration:
    """Return the first of tied configurations: lowest leader, shortest wait, closest voters.

    The wait decides although the score ties because no operation may need votes. It is the wait of
    the operations, D-weighted over the scenarios, and the plain sum when no operation needs votes.
    """
    demand, quorum = problem.demand, problem.rules.quorum
    weight = demand.quorum if demand.quorum.any() else np.ones(demand.scenarios)
    leader = min(c.leader for c in tied)
    rtt = demand.site_rtt[:, leader]
    order = np.argsort(rtt[0] if demand.scenarios == 1 else weight @ rtt, kind="stable").tolist()
    mine = [c for c in tied if c.leader == leader]
    waits = [float(weight @ np.sort(rtt[:, list(c.voters)])[:, quorum - 1]) for c in mine]
    ranks = [
        sorted(map(order.index, c.voters))
        for c, wait in zip(mine, waits, strict=True)
        if wait <= cutoff(min(waits))
    ]
    return Configuration.of(leader, [order[rank] for rank in min(ranks)], mine[0].replicas)


METHOD = Method(
    name="tier2-brute-force",
    call=solve,
    summary="tier 2: every voter set and every leader (Algorithm 1), the reference of 'tier2'",
    exact=True,
    refuses=up_to_tier(2),
    settings={"limit": Setting(200_000, "most voter sets to enumerate", minimum=1)},
    complexity="O(C(|R|, v)·v·C)",
    reference="Sharov et al. 2015, Algorithm 1",
)
