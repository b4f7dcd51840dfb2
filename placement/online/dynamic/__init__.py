"""Dynamic replication by votes: copies of hot objects move to where they are read.

Matri, Pérez, Costan, Bougé, Antoniu, "Keeping up with storage: decentralized, write-enabled
dynamic geo-replication", Future Generation Computer Systems 86 (2018).
"""

from placement.online.dynamic.replication_problem import (
    Evaluation,
    Geography,
    ReplicationPlan,
    ReplicationProblem,
    clustered_sites,
    evaluate,
    six_sites,
)
from placement.online.dynamic.store_demand import HotSetWorld, hot_set_world

__all__ = [
    "Evaluation",
    "Geography",
    "HotSetWorld",
    "ReplicationPlan",
    "ReplicationProblem",
    "clustered_sites",
    "evaluate",
    "hot_set_world",
    "six_sites",
]
