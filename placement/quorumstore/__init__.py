"""Leaderless quorum stores (Dynamo, Cassandra): the question, its evaluator and its answer.

The model is that of Shankaranarayanan P N, Sivakumar, Rao, Tawarmalani, "Performance sensitive
replication in geo-distributed cloud datastores", DSN 2014: per key, choose replica sites and
N, R, W so that a percentile of read and write latency is smallest, in normal operation (BA) or in
the worst case over the loss of any one site (N-1C). Exact methods live in
``formulations.quorumstore``, fast ones in ``heuristics.quorumstore``.
"""

from placement.quorumstore.goal import (
    Goal,
    Metrics,
    Target,
    ThresholdLimits,
    stages,
    tie_order_of_equals,
)
from placement.quorumstore.latency import (
    SortedSets,
    full_replication_bound,
    loss_thresholds,
    metrics,
    threshold,
    worst_thresholds,
)
from placement.quorumstore.plan import (
    LossEffect,
    QuorumConfiguration,
    QuorumPlan,
    SiteLatency,
    evaluate,
)
from placement.quorumstore.problem import QuorumProblem, site_requests, structural_reasons
from placement.quorumstore.rules import LossScope, Redirect, StoreRules
from placement.support.lazy import lazy_names

__all__ = [
    "Goal",
    "LossEffect",
    "LossScope",
    "Metrics",
    "QuorumConfiguration",
    "QuorumPlan",
    "QuorumProblem",
    "Redirect",
    "SiteLatency",
    "SortedSets",
    "StoreRules",
    "Target",
    "ThresholdLimits",
    "evaluate",
    "full_replication_bound",
    "loss_thresholds",
    "metrics",
    "site_requests",
    "stages",
    "structural_reasons",
    "threshold",
    "tie_order_of_equals",
    "worst_thresholds",
]

__getattr__, __dir__ = lazy_names(__name__)
