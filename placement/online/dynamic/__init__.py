"""Dynamic replication by votes: copies of hot objects move to where they are read.

Matri, Pérez, Costan, Bougé, Antoniu, "Keeping up with storage: decentralized, write-enabled
dynamic geo-replication", Future Generation Computer Systems 86 (2018).
"""

from placement.online.dynamic.evaluator import Evaluation, evaluate
from placement.online.dynamic.hot_set_demand import HotSetWorld, hot_set_world
from placement.online.dynamic.plan import ReplicationPlan
from placement.online.dynamic.problem import ReplicationProblem
from placement.online.dynamic.site_geography import Geography, clustered_sites, six_sites

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
