"""Fast methods for leaderless quorum stores with many sites or large N; no proof, but a bound."""

from heuristics.quorumstore.baselines import (
    busiest_sites,
    coverage_greedy,
    home_and_nearest,
    local_search,
    random_placement,
    weighted_medians,
)

__all__ = [
    "busiest_sites",
    "coverage_greedy",
    "home_and_nearest",
    "local_search",
    "random_placement",
    "weighted_medians",
]
