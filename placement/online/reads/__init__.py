"""Reads from the leaseholder or from a majority, in a database replicated by Raft.

The question and the protocols are those of V. Arora, T. Mittal, D. Agrawal, A. El Abbadi, X. Xue,
Zhiyanan, Zhu Jianfeng, "Leader or majority: why have one when you can have both? Improving read
scalability in Raft-like consensus protocols", HotCloud 2017: send a share x of the reads to the
leaseholder and the others to majorities without it.

- closed forms: :mod:`~placement.online.reads.leader_share`,
  :mod:`~placement.online.reads.retry_model`;
- optimal strategies: :class:`ReadProblem`, :func:`evaluate`, :func:`lower_bound`;
- what clients see: :mod:`~placement.online.reads.simulator`, and whether it was linearizable:
  :mod:`~placement.online.reads.linearizability`, over several keys:
  :mod:`~placement.online.reads.snapshots`;
- what they see while leaders fail: :mod:`~placement.online.reads.elections`.
"""

from placement.online.reads.cluster import RaftCluster, ReadWorkload, Visibility
from placement.online.reads.lease_problem import LeasePlan, LeaseProblem, evaluate_leases
from placement.online.reads.linearizability import (
    History,
    HistoryEntry,
    Violation,
    Violations,
    check,
)
from placement.online.reads.load_bound import (
    NodePrices,
    cheapest_choice,
    infeasible_by,
    lower_bound,
    node_prices,
)
from placement.online.reads.operational_laws import Bottleneck, bottleneck
from placement.online.reads.plan import ReadPlan
from placement.online.reads.problem import ReadGoal, ReadProblem
from placement.online.reads.quorum_mixture import ReadStrategy, subsets_of
from placement.online.reads.quorum_systems import (
    GridQuorums,
    ListedQuorums,
    Quorum,
    QuorumSystem,
    ThresholdQuorums,
)
from placement.online.reads.read_rules import (
    Answered,
    FromStrategy,
    ReadRule,
    RuleState,
    WaitsForAll,
)
from placement.online.reads.run_result import ReadRun
from placement.online.reads.sample_path import ReadSamplePath, draw_path, uniforms
from placement.online.reads.simulator import simulate
from placement.online.reads.snapshots import (
    ReadTransaction,
    SnapshotViolations,
    check_snapshots,
)
from placement.online.reads.strategy_evaluator import ReadFigures, evaluate

__all__ = [
    "Answered",
    "Bottleneck",
    "FromStrategy",
    "GridQuorums",
    "History",
    "HistoryEntry",
    "LeasePlan",
    "LeaseProblem",
    "ListedQuorums",
    "NodePrices",
    "Quorum",
    "QuorumSystem",
    "RaftCluster",
    "ReadFigures",
    "ReadGoal",
    "ReadPlan",
    "ReadProblem",
    "ReadRule",
    "ReadRun",
    "ReadSamplePath",
    "ReadStrategy",
    "ReadTransaction",
    "ReadWorkload",
    "RuleState",
    "SnapshotViolations",
    "ThresholdQuorums",
    "Violation",
    "Violations",
    "Visibility",
    "WaitsForAll",
    "bottleneck",
    "cheapest_choice",
    "check",
    "check_snapshots",
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
