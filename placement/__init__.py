"""Placement of the replicas of a geo-replicated database, its voters and its leader.

    import placement

    instance = placement.load("world27")
    problem = placement.Problem(instance, replicas=5, voters=3, survive="country")
    plan = placement.solve(problem)
    print(plan)

Names and modules (``placement.io``, ``placement.tail``, ``placement.replay``, …) are imported when
they are first used, so that ``import placement`` costs next to nothing.
"""

from placement.support.lazy import lazy_names

__version__ = "0.1.0"

_PUBLIC = (
    "analysis", "databases", "datasets", "errors", "evaluation", "feasibility", "fleet", "io",
    "measures", "methods", "model", "online", "overtime", "plan", "problem", "question",
    "quorumstore", "report", "tail", "testing", "workloads",
)  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__, _PUBLIC)
