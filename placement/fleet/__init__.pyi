from placement.fleet.fleet_plan import FleetPlan as FleetPlan
from placement.fleet.fleet_plan import FleetSearch as FleetSearch
from placement.fleet.fleet_plan import NoFleetPlan as NoFleetPlan
from placement.fleet.fleet_plan import SharedRows as SharedRows
from placement.fleet.fleet_problem import FleetMember as FleetMember
from placement.fleet.fleet_problem import FleetProblem as FleetProblem
from placement.fleet.fleet_problem import SharedLimits as SharedLimits
from placement.fleet.synthetic_fleet import synthetic_fleet as synthetic_fleet
