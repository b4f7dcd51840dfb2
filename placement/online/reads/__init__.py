"""Reads from the lease-holder or from a majority, in a database replicated by Raft.

The question and the protocols are those of V. Arora, T. Mittal, D. Agrawal, A. El Abbadi, X. Xue,
Zhiyanan, Zhu Jianfeng, "Leader or majority: why have one when you can have both? Improving read
scalability in Raft-like consensus protocols", HotCloud 2017: send a share x of the reads to the
lease-holder and the others to majorities without it.

- closed forms: :mod:`~placement.online.reads.shares`, :mod:`~placement.online.reads.retries`;
- optimal strategies: :class:`ReadProblem`, :func:`evaluate`, :func:`lower_bound`;
- what clients see: :mod:`~placement.online.reads.simulator`, and whether it was linearizable:
  :mod:`~placement.online.reads.checker`.
"""

from placement.online.reads.bounds import (
    Prices,
    cheapest_choice,
    infeasible_by,
    lower_bound,
    node_prices,
)
from placement.online.reads.checker import History, Operation, Violation, Violations, check
from placement.online.reads.cluster import Cluster, Visibility, Workload
from placement.online.reads.figures import ReadFigures, evaluate
from placement.online.reads.laws import Bottleneck, bottleneck
from placement.online.reads.leases import LeasePlan, LeaseProblem, evaluate_leases
from placement.online.reads.mixture import ReadStrategy, subsets_of
from placement.online.reads.plan import ReadPlan
from placement.online.reads.problem import ReadGoal, ReadProblem
from placement.online.reads.rules import Answered, FromStrategy, ReadRule, RuleState
from placement.online.reads.run import ReadRun
from placement.online.reads.sample import SamplePath, draw_path, uniforms
from placement.online.reads.simulator import simulate
from placement.online.reads.systems import Grid, Listed, Quorum, QuorumSystem, Threshold

__all__ = [
    "Answered",
    "Bottleneck",
    "Cluster",
    "FromStrategy",
    "Grid",
    "History",
    "LeasePlan",
    "LeaseProblem",
    "Listed",
    "Operation",
    "Prices",
    "Quorum",
    "QuorumSystem",
    "ReadFigures",
    "ReadGoal",
    "ReadPlan",
    "ReadProblem",
    "ReadRule",
    "ReadRun",
    "ReadStrategy",
    "RuleState",
    "SamplePath",
    "Threshold",
    "Violation",
    "Violations",
    "Visibility",
    "Workload",
    "bottleneck",
    "cheapest_choice",
    "check",
    "draw_path",
    "evaluate",
    "evaluate_leases",
    "infeasible_by",
    "lower_bound",
    "node_prices",
    "simulate",
    "subsets_of",
    "uniforms",
]
