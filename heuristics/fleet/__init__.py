"""Fast plans of fleets without proof: greedy by size, and local search; see `placement.fleet`."""

from heuristics.fleet.greedy_by_size import greedy_by_size
from heuristics.fleet.local_search import local_search

__all__ = ["greedy_by_size", "local_search"]
