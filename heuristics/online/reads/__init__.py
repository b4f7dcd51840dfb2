"""Rules for reads: from the paper, and rules that choose the majority by distance or load.

The paper (:mod:`placement.online.reads`) draws the majority uniformly and leaves a better choice
to the future. The other rules are such choices, each with or without the coin.
"""

from heuristics.online.reads.read_rules import (
    C3Majority,
    LeaseHolder,
    LeastUtilised,
    Local,
    NearestMajority,
    RepeatedMajority,
    TwoChoiceMajority,
    UniformQuorum,
)

__all__ = [
    "C3Majority",
    "LeaseHolder",
    "LeastUtilised",
    "Local",
    "NearestMajority",
    "RepeatedMajority",
    "TwoChoiceMajority",
    "UniformQuorum",
]
