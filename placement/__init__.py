"""Placement of the replicas of a geo-replicated database, its voters and its leader.

    import placement

    instance = placement.load("world27")
    problem = placement.Problem(instance, replicas=5, voters=3, survive="country")
    plan = placement.solve(problem)
    print(plan)

Names and modules (``placement.io``, ``placement.tail``, ``placement.replay``, …) are imported when
they are first used, so that ``import placement`` costs next to nothing.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

from placement.support.lazy import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:
    from placement import analysis as analysis
    from placement import databases as databases
    from placement import datasets as datasets
    from placement import errors as errors
    from placement import io as io
    from placement import methods as methods
    from placement import online as online
    from placement import quorumstore as quorumstore
    from placement import report as report
    from placement import tail as tail
    from placement import testing as testing
    from placement import workloads as workloads
    from placement.analysis.compare_methods import compare as compare
    from placement.analysis.compare_methods import compare_protocols as compare_protocols
    from placement.analysis.next_replica import next_replicas as next_replicas
    from placement.analysis.pareto_frontier import pareto as pareto
    from placement.analysis.sweep import sweep as sweep
    from placement.api import evaluate as evaluate
    from placement.api import load as load
    from placement.contingency.goals import Contingency as Contingency
    from placement.errors import InputError as InputError
    from placement.errors import LimitError as LimitError
    from placement.errors import MissingDependencyError as MissingDependencyError
    from placement.errors import PlacementError as PlacementError
    from placement.errors import SolverError as SolverError
    from placement.errors import UnitsWarning as UnitsWarning
    from placement.errors import UnsupportedError as UnsupportedError
    from placement.evaluation.moves import Moves as Moves
    from placement.methods.options import Options as Options
    from placement.methods.options import Progress as Progress
    from placement.methods.options import Setting as Setting
    from placement.methods.registry import Method as Method
    from placement.methods.registry import available as available
    from placement.methods.registry import solve as solve
    from placement.model.changed_instance import scale_demand as scale_demand
    from placement.model.changed_instance import with_waits as with_waits
    from placement.model.changed_instance import without_sites as without_sites
    from placement.model.configuration import Configuration as Configuration
    from placement.model.constraints import Diversity as Diversity
    from placement.model.instance import Instance as Instance
    from placement.model.operations import STANDARD_OPERATIONS as STANDARD_OPERATIONS
    from placement.model.operations import Operation as Operation
    from placement.model.prices import Prices as Prices
    from placement.model.protocols import Protocol as Protocol
    from placement.model.waits import Wait as Wait
    from placement.overtime import moves
    from placement.overtime import replay as replay
    from placement.overtime import watch as watch
    from placement.plan import Plan as Plan
    from placement.problem import Problem as Problem
    from placement.proof.certificate_check import check_certificate as check_certificate
    from placement.support.status import Status as Status
    from placement.support.status import Termination as Termination

    stability = moves

_HOME = {
    "placement.analysis.compare_methods": ("compare", "compare_protocols"),
    "placement.analysis.next_replica": ("next_replicas",),
    "placement.analysis.pareto_frontier": ("pareto",),
    "placement.analysis.sweep": ("sweep",),
    "placement.api": ("evaluate", "load"),
    "placement.contingency.goals": ("Contingency",),
    "placement.errors": (
        "InputError",
        "LimitError",
        "MissingDependencyError",
        "PlacementError",
        "SolverError",
        "UnitsWarning",
        "UnsupportedError",
    ),
    "placement.evaluation.moves": ("Moves",),
    "placement.methods.options": ("Options", "Progress", "Setting"),
    "placement.methods.registry": ("Method", "available", "solve"),
    "placement.model.changed_instance": ("scale_demand", "with_waits", "without_sites"),
    "placement.model.configuration": ("Configuration",),
    "placement.model.constraints": ("Diversity",),
    "placement.model.instance": ("Instance",),
    "placement.model.prices": ("Prices",),
    "placement.model.operations": ("Operation", "STANDARD_OPERATIONS"),
    "placement.model.protocols": ("Protocol",),
    "placement.model.waits": ("Wait",),
    "placement.plan": ("Plan",),
    "placement.problem": ("Problem",),
    "placement.proof.certificate_check": ("check_certificate",),
    "placement.support.status": ("Status", "Termination"),
}

_MODULES = {
    "replay": "placement.overtime.replay",
    "stability": "placement.overtime.moves",
    "watch": "placement.overtime.watch",
}

__all__ = [*chain.from_iterable(_HOME.values()), "__version__"]

_PUBLIC = (
    "analysis", "databases", "datasets", "errors", "evaluation", "feasibility", "fleet", "io",
    "measures", "methods", "model", "online", "overtime", "plan", "problem", "question",
    "quorumstore", "report", "tail", "testing", "workloads",
)  # fmt: skip

__getattr__, __dir__ = lazy_names(__name__, _HOME, _MODULES, _PUBLIC)
