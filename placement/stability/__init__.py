"""Stability: what moves cost, when they pay, and how to carry one out without losing a quorum."""

from placement.stability.hysteresis import Hysteresis, choose, leader_path
from placement.stability.moves import Changes, MovePrices, changes, outage_price, price_table
from placement.stability.paths import PathCost, path_cost
from placement.stability.quorums import Quorums, quorums_of
from placement.stability.steps import Stage, Step, safe_steps, step_text, steps_between

__all__ = [
    "Changes",
    "Hysteresis",
    "MovePrices",
    "PathCost",
    "Quorums",
    "Stage",
    "Step",
    "changes",
    "choose",
    "leader_path",
    "outage_price",
    "path_cost",
    "price_table",
    "quorums_of",
    "safe_steps",
    "step_text",
    "steps_between",
]
