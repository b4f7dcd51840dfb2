"""Stability: what moves cost, when they pay, and how to carry one out without losing a quorum."""

from placement.stability.hysteresis import Hysteresis, choose, leader_path
from placement.stability.moves import Changes, MovePrices, changes, outage_price, price_table
from placement.stability.paths import PathCost, path_cost

__all__ = [
    "Changes",
    "Hysteresis",
    "MovePrices",
    "PathCost",
    "changes",
    "choose",
    "leader_path",
    "outage_price",
    "path_cost",
    "price_table",
]
