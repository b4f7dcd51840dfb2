"""Stability: costs of moves, decisions to move, and safe steps that keep a quorum."""

from placement.evaluation.moves import RoleChanges, changes
from placement.overtime.moves.hysteresis import Hysteresis, choose, leader_path
from placement.overtime.moves.move_prices import (
    MovePrices,
    PathCost,
    outage_price,
    path_cost,
)
from placement.overtime.moves.move_search import BestMove, best_move
from placement.overtime.moves.move_steps import (
    MoveState,
    MoveStep,
    QuorumSizes,
    quorums_of,
    safe_steps,
    step_text,
    steps_between,
)

__all__ = [
    "BestMove",
    "Hysteresis",
    "MovePrices",
    "MoveState",
    "MoveStep",
    "PathCost",
    "QuorumSizes",
    "RoleChanges",
    "best_move",
    "changes",
    "choose",
    "leader_path",
    "outage_price",
    "path_cost",
    "quorums_of",
    "safe_steps",
    "step_text",
    "steps_between",
]
