"""Reads from the leaseholder or from a majority, in a database replicated by Raft.

The question and the protocols are those of V. Arora, T. Mittal, D. Agrawal, A. El Abbadi, X. Xue,
Zhiyanan, Zhu Jianfeng, "Leader or majority: why have one when you can have both? Improving read
scalability in Raft-like consensus protocols", HotCloud 2017: send a share x of the reads to the
leaseholder and the others to majorities without it.

- closed forms: :mod:`~placement.online.reads.leader_share`,
  :mod:`~placement.online.reads.retry_model`;
- optimal strategies: :class:`ReadProblem`, :func:`evaluate`, :func:`lower_bound`;
- what clients see: :mod:`~placement.online.reads.read_simulator`, and whether it was linearizable:
  :mod:`~placement.online.reads.linearizability`;
- what they see while leaders fail: :mod:`~placement.online.reads.elections`.
"""

from placement.online.reads.linearizability import (
    History,
    HistoryEntry,
    Violation,
    Violations,
    check,
)
from placement.online.reads.raft_cluster import (
    Bottleneck,
    RaftCluster,
    ReadWorkload,
    Visibility,
    bottleneck,
)
from placement.online.reads.read_problem import (
    ListedQuorums,
    NodePrices,
    Quorum,
    QuorumSystem,
    ReadFigures,
    ReadGoal,
    ReadPlan,
    ReadProblem,
    ReadStrategy,
    ThresholdQuorums,
    cheapest_choice,
    evaluate,
    infeasible_by,
    lower_bound,
    node_prices,
    subsets_of,
)
from placement.online.reads.read_simulator import (
    Answered,
    FromStrategy,
    ReadRule,
    ReadRun,
    ReadSamplePath,
    RuleState,
    WaitsForAll,
    draw_path,
    simulate,
    uniforms,
)

__all__ = [
    "Answered",
    "Bottleneck",
    "FromStrategy",
    "History",
    "HistoryEntry",
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
    "ReadWorkload",
    "RuleState",
    "ThresholdQuorums",
    "Violation",
    "Violations",
    "Visibility",
    "WaitsForAll",
    "bottleneck",
    "cheapest_choice",
    "check",
    "draw_path",
    "evaluate",
    "infeasible_by",
    "lower_bound",
    "node_prices",
    "simulate",
    "subsets_of",
    "uniforms",
]
