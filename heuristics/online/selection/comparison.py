"""Policies that a comparison shows, in its order."""

from __future__ import annotations

from heuristics.online.selection.blind_policies import NearestReplica, RandomChoice, RoundRobin
from heuristics.online.selection.c3 import C3
from heuristics.online.selection.dynamic_snitch import DynamicSnitch
from heuristics.online.selection.least_outstanding import LeastOutstanding
from heuristics.online.selection.oracle_policies import EarliestCompletion
from heuristics.online.selection.response_times import LeastResponseTime, TwoChoices
from placement.online.selection import Hedged, Policy

__all__ = ["comparison"]


def comparison() -> tuple[Policy, ...]:
    """Return the policies: blind ones first, then by the state they use; a clairvoyant one last."""
    return (
        NearestReplica(),
        RandomChoice(limiter=None),
        RoundRobin(limiter=None),
        DynamicSnitch(),
        LeastResponseTime(),
        TwoChoices(),
        LeastOutstanding(),
        Hedged(NearestReplica()),
        Hedged(LeastOutstanding()),
        C3(),
        EarliestCompletion(future=True),
    )
