"""Fast methods for leaderless quorum stores with many sites or large N; no proof, but a bound."""

from heuristics.quorumstore.baselines import (
    busiest_sites,
    home_and_nearest,
    random_placement,
    weighted_medians,
)
from heuristics.quorumstore.set_search import coverage_greedy, local_search

__all__ = [
    "busiest_sites",
    "coverage_greedy",
    "home_and_nearest",
    "local_search",
    "random_placement",
    "weighted_medians",
]
