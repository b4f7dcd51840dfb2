"""Heuristics that ``placement contingency quorum --compare`` shows beside the exact methods."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from heuristics.quorumstore.baselines import (
    busiest_sites,
    home_and_nearest,
    random_placement,
    weighted_medians,
)
from heuristics.quorumstore.greedy_cover import coverage_greedy
from heuristics.quorumstore.swap_search import local_search
from placement.errors import UnsupportedError
from placement.quorumstore import QuorumPlan, QuorumProblem

__all__ = ["heuristics"]

_SEED = 1
_USUAL = (3, 2, 2)


def heuristics() -> dict[str, Callable[[QuorumProblem], QuorumPlan]]:
    """Return the heuristics by name; random ones always draw the same.

    Baselines that fix N, R and W take 3-2-2 where the rules leave it, else the first that they do.
    """
    return {
        "coverage-greedy": coverage_greedy,
        "local-search": lambda problem: local_search(problem, np.random.default_rng(_SEED)),
        "weighted-medians": lambda problem: weighted_medians(problem, _pair(problem)),
        "busiest-sites": lambda problem: busiest_sites(problem, _pair(problem)),
        "home-and-nearest": lambda problem: home_and_nearest(problem, _pair(problem)),
        "random": lambda problem: random_placement(
            problem, np.random.default_rng(_SEED), _pair(problem)
        ),
    }


def _pair(problem: QuorumProblem) -> tuple[int, int, int]:
    if not problem.pairs:
        raise UnsupportedError("no N, R and W obey the rules")
    return _USUAL if _USUAL in problem.pairs else problem.pairs[0]
