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
from placement.contingency.loss_question import Contingency as Contingency
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
from placement.model.operations import Wait as Wait
from placement.model.prices import Prices as Prices
from placement.model.protocols import Protocol as Protocol
from placement.overtime import moves
from placement.overtime import replay as replay
from placement.overtime import watch as watch
from placement.plan import Plan as Plan
from placement.problem import Problem as Problem
from placement.proof.certificate_check import check_certificate as check_certificate
from placement.support.status import Status as Status
from placement.support.status import Termination as Termination

__version__: str

stability = moves
