"""C3 and the policies of its comparison, and the compiled simulator that plays them."""

from heuristics.online.selection.policies import (
    C3,
    DynamicSnitch,
    EarliestCompletion,
    Hedged,
    LeastOutstanding,
    LeastResponseTime,
    LimiterRules,
    NearestReplica,
    Oracle,
    Policy,
    RandomChoice,
    RoundRobin,
    TwoChoices,
    WeightedResponseTime,
    comparison,
)
from heuristics.online.selection.run_policy import play, run

__all__ = [
    "C3",
    "DynamicSnitch",
    "EarliestCompletion",
    "Hedged",
    "LeastOutstanding",
    "LeastResponseTime",
    "LimiterRules",
    "NearestReplica",
    "Oracle",
    "Policy",
    "RandomChoice",
    "RoundRobin",
    "TwoChoices",
    "WeightedResponseTime",
    "comparison",
    "play",
    "run",
]
