"""Where the replicas of a geo-replicated database go, which of them vote, and which one leads.

    import placement

    instance = placement.load("world27")
    problem = placement.Problem(instance, replicas=5, voters=3, survive="country")
    plan = placement.solve(problem)
    print(plan)

Names are imported when they are first used, so that ``import placement`` costs next to nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

__version__ = "0.1.0"

if TYPE_CHECKING:
    from placement.api import evaluate as evaluate
    from placement.api import load as load
    from placement.certificate import check_certificate as check_certificate
    from placement.comparison import compare as compare
    from placement.configuration import Configuration as Configuration
    from placement.constraints import Diversity as Diversity
    from placement.contingency import Contingency as Contingency
    from placement.errors import InputError as InputError
    from placement.errors import LimitError as LimitError
    from placement.errors import MissingDependencyError as MissingDependencyError
    from placement.errors import PlacementError as PlacementError
    from placement.errors import SolverError as SolverError
    from placement.errors import UnitsWarning as UnitsWarning
    from placement.errors import UnsupportedError as UnsupportedError
    from placement.instance import Instance as Instance
    from placement.instance import Prices as Prices
    from placement.methods import Method as Method
    from placement.methods import Options as Options
    from placement.methods import Progress as Progress
    from placement.methods import Setting as Setting
    from placement.methods import available as available
    from placement.methods import solve as solve
    from placement.operations import STANDARD_OPERATIONS as STANDARD_OPERATIONS
    from placement.operations import Operation as Operation
    from placement.plan import Plan as Plan
    from placement.problem import Problem as Problem
    from placement.status import Status as Status
    from placement.status import Termination as Termination
    from placement.sweeps import pareto as pareto
    from placement.sweeps import sweep as sweep

_HOME = {
    "evaluate": "placement.api",
    "load": "placement.api",
    "compare": "placement.comparison",
    "Configuration": "placement.configuration",
    "Contingency": "placement.contingency",
    "check_certificate": "placement.certificate",
    "Diversity": "placement.constraints",
    "InputError": "placement.errors",
    "LimitError": "placement.errors",
    "MissingDependencyError": "placement.errors",
    "PlacementError": "placement.errors",
    "SolverError": "placement.errors",
    "UnitsWarning": "placement.errors",
    "UnsupportedError": "placement.errors",
    "Instance": "placement.instance",
    "Prices": "placement.instance",
    "Method": "placement.methods",
    "Options": "placement.methods",
    "Progress": "placement.methods",
    "Setting": "placement.methods",
    "available": "placement.methods",
    "solve": "placement.methods",
    "STANDARD_OPERATIONS": "placement.operations",
    "Operation": "placement.operations",
    "Plan": "placement.plan",
    "Problem": "placement.problem",
    "Status": "placement.status",
    "Termination": "placement.status",
    "pareto": "placement.sweeps",
    "sweep": "placement.sweeps",
}

__all__ = [*sorted(_HOME), "__version__"]


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'placement' has no attribute {name!r}")
    value = vars(importlib.import_module(_HOME[name]))[name]
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return list(__all__)
